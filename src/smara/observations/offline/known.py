"""What is known already is not written again.

A note is known when a line of the known observations says the same: the same words, or
nearly all of them. Outcomes of commands are news unless the last word on the command was
the same.
"""

from __future__ import annotations

import re
from collections import defaultdict

from smara.core.text import find_words
from smara.observations.models import Note
from smara.observations.offline import phrases

_MARKS = re.compile(
    r"^[\s*>-]*(?:[\U0001f534\U0001f7e1\U0001f7e2✅]\s*)?(?:\(\d{1,2}:\d{2}\)\s*)?(?:✅\s*)?(?:->\s*)?"
)
_MEANING = re.compile(r"\s*\((?:meaning|estimated)[^()]{0,60}\)\s*$")
_OUTCOMES = frozenset({"command", "test", "error", "fix", "completion", "code"})
_COMMON = 60
_NEARLY_ALL = 0.88
_LONGEST = 200_000


class Known:
    """The lines that are known, ready to be asked."""

    def __init__(self, rendered: str) -> None:
        self._exact: dict[str, int] = {}
        self._asked: set[str] = set()
        self._lines: list[frozenset[str]] = []
        self._places: dict[str, list[int]] = defaultdict(list)
        for line in rendered[-_LONGEST:].splitlines():
            self._add(_bare(line))

    def is_failing(self, command: str) -> bool:
        """Whether the last that is known of a command is that it failed. Asked once, it counts as
        mended.
        """
        if command in self._asked or not command:
            return False
        self._asked.add(command)
        last = next((line for line in reversed(self._exact) if command.lower() in line), "")
        return f" {phrases.FAILED}" in last and not last.startswith(phrases.FIXED.lower())

    def has(self, note: Note) -> bool:
        """Whether a note says nothing new. Asking also makes it known."""
        text = _bare(note.text)
        is_known = self._is_same(text) if note.category in _OUTCOMES else self._is_alike(text)
        if is_known and note.details:
            is_known = all(_bare(detail) in self._exact for detail in note.details)
        self._add(text)
        for detail in note.details:
            self._add(_bare(detail))
        return is_known

    def _is_same(self, text: str) -> bool:
        return text in self._exact

    def _is_alike(self, text: str) -> bool:
        if text in self._exact:
            return True
        words = _words(text)
        if len(words) < 4:
            return False
        shared: dict[int, int] = defaultdict(int)
        for word in words:
            for place in (
                self._places.get(word, ()) if len(self._places.get(word, ())) <= _COMMON else ()
            ):
                shared[place] += 1
        candidates = sorted(shared, key=lambda place: -shared[place])[:8]
        return any(_are_alike(words, self._lines[place]) for place in candidates)

    def _add(self, text: str) -> None:
        if not text or text in self._exact:
            return
        place = len(self._lines)
        self._exact[text] = place
        words = _words(text)
        self._lines.append(words)
        for word in words:
            self._places[word].append(place)


def _bare(line: str) -> str:
    """A line without its mark, its time and the date it means."""
    return " ".join(_MEANING.sub("", _MARKS.sub("", line.strip(), count=1)).split()).lower()


def _words(text: str) -> frozenset[str]:
    return frozenset(find_words(text))


def _are_alike(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether nearly all words are shared, and every number: a changed figure is news."""
    if len(words & others) < _NEARLY_ALL * len(words | others):
        return False
    return not any(character.isdigit() for word in words ^ others for character in word)
