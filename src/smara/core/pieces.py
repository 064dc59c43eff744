"""Cutting long texts: pieces of bounded size, at white space where there is some."""

from __future__ import annotations

from collections.abc import Iterator


def pieces(text: str, size: int) -> Iterator[str]:
    """The text in pieces of at most ``size`` characters that together are the text.

    >>> list(pieces("one two three", 6)), list(pieces("abcdefgh", 3))
    (['one', ' two', ' three'], ['abc', 'def', 'gh'])
    """
    start = 0
    while len(text) - start > size:
        cut = max(text.rfind(" ", start, start + size), text.rfind("\n", start, start + size))
        end = cut if cut > start else start + size
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]
