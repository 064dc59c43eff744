"""Notes on their way to a size: one thing after the other is done to them, the oldest first, until
they fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo

from smara.core.tokens import TokenCounter
from smara.observations.models import Note
from smara.observations.offline import phrases
from smara.observations.offline.merging import merged, stretches, under
from smara.observations.offline.shortening import is_talk

Step = Callable[[Note], Note | None]
"""What is done to one note; ``None`` takes it away."""

_KEPT = frozenset({"preference", "decision", "change", "completion", "request", "blocker"})
_NEWEST = 5
"""So many of the newest notes are never taken away: where the work stands is told by them."""
_MOST_BELOW = 4
"""More than this is not told below a request; it would be a tale of its own."""
_MENDED_CHARACTERS = 20_000
_TOKENS_OF_A_NOTE, _TOKENS_OF_A_DETAIL = 9, 2
"""What a mark and a time cost, and what a detail costs besides its words; measured."""
_AIM = 0.9
"""A little below what was asked: where much must stay it ends above, and elsewhere that is made up
for.
"""
_BY_USER = "User "


def is_kept(note: Note) -> bool:
    """Whether a note stays at every level."""
    return note.priority == "high" or note.category in _KEPT


class Condensing:
    """Notes, their sizes, and how large they may be."""

    def __init__(
        self, notes: Sequence[Note], target_tokens: int, counter: TokenCounter, zone: tzinfo
    ) -> None:
        self._counter = counter
        self._zone = zone
        self._notes: list[Note | None] = list(notes)
        self._sizes = [self._size(note) for note in notes]
        self._total = sum(self._sizes)
        self._heads = list(_heads(notes))
        telling = [place for place, note in enumerate(notes) if not is_talk(note)] or list(
            range(len(notes))
        )
        self._newest = set(telling[-_NEWEST:])
        self.target = target_tokens * _AIM
        self.is_pressed = False
        """Whether all that may be taken away is, though it fits already."""

    @property
    def fits(self) -> bool:
        return self._total <= self.target and not self.is_pressed

    @property
    def result(self) -> list[Note]:
        return [note for note in self._notes if note is not None]

    def apply(self, step: Step) -> None:
        """Do one thing to each note."""
        for place, note in enumerate(self._notes):
            if self.fits:
                return
            if note is not None:
                changed = step(note)
                if changed is not note and (changed is not None or place not in self._newest):
                    self._put(place, changed)

    def merge(self) -> None:
        """Stretches of work become one note each."""
        notes = self.result
        for start, end in list(stretches(notes, self._zone)):
            if self.fits:
                return
            whole = merged(notes[start:end], self._zone)
            if self._size(whole) < sum(self._sizes[start:end]):
                self._put(start, whole)
                if not self._newest.isdisjoint(range(start, end)):
                    self._newest.add(start)
                for place in range(start + 1, end):
                    self._put(place, None)

    def drop_mended(self) -> None:
        """Failures of commands that succeeded later go."""
        mended = ""
        for place in range(len(self._notes) - 1, -1, -1):
            note = self._notes[place]
            if note is not None and note.category == "fix":
                mended = f"{mended}\n{note.text}"[-_MENDED_CHARACTERS:]
            elif note is not None and note.category == "error" and not self.fits:
                command = note.text.partition(f" {phrases.FAILED}")[0]
                if command and command in mended:
                    self._put(place, None)

    def fold(self) -> None:
        """The little that came of something the user said is told below it, without marks and times
        of its own.
        """
        below = Counter(
            head for place, head in enumerate(self._heads) if self._notes[place] and head != place
        )
        for place, head in enumerate(self._heads):
            if self.fits:
                return
            note, top = self._notes[place], self._notes[head]
            if note is None or top is None or head == place or below[head] > _MOST_BELOW:
                continue
            if is_kept(top) and not is_kept(note):
                self._put(head, under(top, note))
                self._put(place, None)

    def _put(self, place: int, note: Note | None) -> None:
        size = self._size(note) if note is not None else 0
        self._total += size - self._sizes[place]
        self._notes[place], self._sizes[place] = note, size

    def _size(self, note: Note) -> int:
        lines = (note.text, *note.details)
        around = _TOKENS_OF_A_NOTE + _TOKENS_OF_A_DETAIL * len(note.details)
        return self._counter.count("\n".join(lines)).tokens + around


def _heads(notes: Sequence[Note]) -> Iterator[int]:
    """For each note the place of what the user said last before it; its own where that is
    nothing.
    """
    head: int | None = None
    for place, note in enumerate(notes):
        if note.text.startswith(_BY_USER):
            head = place
        yield place if head is None else head
