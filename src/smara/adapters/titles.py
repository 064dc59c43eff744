"""What a thread is called until somebody gives it a better name."""

from __future__ import annotations

MAX_TITLE_CHARS = 100


def shorten(text: str) -> str:
    """The first line with words, cut to the length of a title."""
    line = next((line.strip() for line in text[:10_000].splitlines() if line.strip()), "")
    return line if len(line) <= MAX_TITLE_CHARS else line[: MAX_TITLE_CHARS - 1].rstrip() + "…"
