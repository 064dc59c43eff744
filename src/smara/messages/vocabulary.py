"""Which words a process has already put into the vocabulary.

Most of what is said consists of words that were said before, so remembering them makes a
message cost one set difference instead of a look-up per word. It is only a short cut: a
word that is forgotten here is simply offered to the database once more.
"""

from __future__ import annotations

from collections.abc import Iterable

from smara.core.pieces import pieces

_KEPT = 300_000
_SLICE = 65_536
MOST_NEW = 50_000
"""A single append adds at most so many; a huge dump of random strings is not a vocabulary."""


class Vocabulary:
    """What stands between spaces, once met."""

    def __init__(self) -> None:
        self._met: set[str] = set()

    def unmet(self, texts: Iterable[str]) -> set[str]:
        """What the texts hold that was not met before."""
        found: set[str] = set()
        for text in texts:
            for piece in pieces(text, _SLICE):
                found.update(piece.split())
            if len(found) > MOST_NEW:
                found -= self._met
                if len(found) > MOST_NEW:
                    return set(sorted(found)[:MOST_NEW])
        return found - self._met

    def remember(self, met: set[str]) -> None:
        """Call it after the commit: what was rolled back must be offered again."""
        if len(self._met) + len(met) > _KEPT:
            self._met = set()
        self._met |= met
