"""Code fences of Markdown: what stands between them is neither a heading nor a list."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OPENING = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")


class Fences:
    """Reads lines one after the other and knows whether they are code."""

    def __init__(self) -> None:
        self.open: str | None = None
        """The fence that would close the code we are in; ``None`` outside."""

    def is_code(self, line: str) -> bool:
        """Whether the next line belongs to a code block, its fences included."""
        line = line.rstrip("\r")
        if self.open is None:
            found = _OPENING.match(line)
            self.open = found[1] if found else None
            return found is not None
        found = _CLOSING.match(line)
        if found and found[1][0] == self.open[0] and len(found[1]) >= len(self.open):
            self.open = None
        return True


def open_fence(lines: Iterable[str]) -> str | None:
    """The fence that is still missing at the end of these lines.

    >>> open_fence(["~~~~ python", "x = 1", "~~~"])
    '~~~~'
    """
    fences = Fences()
    for line in lines:
        fences.is_code(line)
    return fences.open
