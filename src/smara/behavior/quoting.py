"""Short quotations: redacted first, then cut, on one line."""

from __future__ import annotations

from functools import lru_cache

from smara.secrets import redact

_MARGIN = 240
"""So much more than is kept is looked at: a secret that the cut would halve is seen whole."""


def quote(text: str, longest: int) -> str:
    """The beginning of a text as one line of at most so many characters."""
    return _quoted(text[: longest + _MARGIN], longest)


@lru_cache(maxsize=256)
def _quoted(text: str, longest: int) -> str:
    """The same errors come again and again; looking for secrets is what costs."""
    line = " ".join(redact(text).text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def code(text: str) -> str:
    """A text between backticks, whatever is in it."""
    return f"`{text.replace('`', chr(39))}`"
