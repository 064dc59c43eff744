"""Which notes a newer one makes void: the same thing said again, or something that has changed
since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from smara.core.text import find_words
from smara.observations.models import Note

_BY_USER = frozenset({"statement", "preference", "change", "decision"})
_SAME = 0.85
_COMMON = 80
_LONGEST_REPLACED = 16
"""A longer sentence says other things as well, and stays."""


def without_superseded(notes: Sequence[Note]) -> list[Note]:
    """The notes without those that a newer one repeats or replaces, in their order."""
    index = _Index()
    replaced: list[frozenset[str]] = []
    kept: list[Note] = []
    for note in reversed(notes):
        words = frozenset(word.lower() for word in find_words(" ".join([note.text, *note.details])))
        if index.has_alike(note, words) or _is_replaced(note, words, replaced):
            continue
        index.add(note, words)
        kept.append(note)
        if subject := note.mode_specific.get("replaces"):
            replaced.append(frozenset(word.lower() for word in find_words(str(subject))))
    return kept[::-1]


def _is_replaced(note: Note, words: frozenset[str], replaced: Sequence[frozenset[str]]) -> bool:
    if note.category not in _BY_USER or len(words) > _LONGEST_REPLACED:
        return False
    return any(subject and subject <= words for subject in replaced[-200:])


class _Index:
    """The newer notes by their words."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, frozenset[str]]] = []
        self._places: dict[str, list[int]] = defaultdict(list)

    def add(self, note: Note, words: frozenset[str]) -> None:
        place = len(self._notes)
        self._notes.append((note.category, words))
        for word in words:
            if len(self._places[word]) < _COMMON:
                self._places[word].append(place)

    def has_alike(self, note: Note, words: frozenset[str]) -> bool:
        """Whether a newer note of the same kind says the same; a number that differs is a
        difference.
        """
        shared: dict[int, int] = defaultdict(int)
        for word in words:
            for place in self._places.get(word, ()):
                shared[place] += 1
        for place in sorted(shared, key=lambda place: (-shared[place], place))[:6]:
            category, others = self._notes[place]
            has_new_number = any(
                character.isdigit() for word in words - others for character in word
            )
            if (
                category == note.category
                and not has_new_number
                and shared[place] >= _SAME * len(words | others)
            ):
                return True
        return False
