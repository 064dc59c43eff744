"""Sets of words, written as people read them."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(words.split())
