"""Compile a regular expression when it is first used.

Short commands import far more patterns than they use; compiling takes up to a millisecond each.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from re import compile as regex
    from typing import Any
else:

    def regex(source, flags=0):
        """Return a pattern; it is used as ``re.Pattern`` is."""
        return _Pattern(source, flags)


_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


class _Pattern:
    """A pattern that becomes the compiled one at its first use."""

    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self.flags = source, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        vars(self).update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)


__all__ = ["re", "regex"]
