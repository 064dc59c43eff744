"""Any Python text, made fit for a database and given back unchanged.

Lone surrogates cannot be written as UTF-8, and PostgreSQL refuses NUL. Both turn up in
real tool output. They are written as U+FDD0 (a code point that stands for nothing in any
text) and four hexadecimal digits, and read back as they were.
"""

from __future__ import annotations

import re

_ESCAPE = "\ufdd0"
_UNSTORABLE = re.compile(f"[\x00\ud800-\udfff{_ESCAPE}]")
_ESCAPED = re.compile(f"{_ESCAPE}([0-9a-f]{{4}})")


def to_storable(text: str) -> str:
    """The text with unstorable characters escaped; most texts come back as they are.

    >>> from_storable(to_storable("a\\x00b\\ud800")) == "a\\x00b\\ud800"
    True
    """
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(lambda match: f"{_ESCAPE}{ord(match[0]):04x}", text)


def from_storable(text: str) -> str:
    """The text as it was before :func:`to_storable`."""
    if _ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
