"""The reflector that needs no model: condenses notes by taking away, oldest first, until they fit.

It begins at the level it is given and goes on, level by level, until the notes are as small
as was asked or nothing more may go. What a person preferred, decided, changed or asked for,
what was completed, everything of high priority and the newest notes stay at every level; they
are only told shorter at the last. No word is added but "worked on … until" for merged work.

    level 0   repeated and replaced notes go; stretches of work become one note each
    level 1   details of low notes go, then low priority, then all but three details
    level 2   failures that were mended go; medium notes lose their details, then are told in 160 characters
    level 3   work and errors go, then findings, answers and questions
    level 4   the rest is told in 200 characters, without details
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo

from smara.core.days import zone_of
from smara.core.tokens import TokenCounter, counter_for
from smara.observations.models import Draft, Note, ReflectRequest
from smara.observations.offline import phrases
from smara.observations.offline.drafting import joined
from smara.observations.offline.merging import is_work, merged, stretches
from smara.observations.offline.observer import METHOD
from smara.observations.offline.superseding import without_superseded
from smara.observations.offline.wording import clip

_KEPT = frozenset({"preference", "decision", "change", "completion", "request", "blocker"})
_NEWEST = 5
"""So many of the newest notes are never taken away: where the work stands is told by them."""
_MENDED_CHARACTERS = 20_000
_TOKENS_OF_A_LINE = 9
"""About what a mark and a time cost."""

_MENDED_GO = 2
"""At this level failures go that a later note tells to be mended."""
MOST_LEVEL = 4

Step = Callable[[Note], Note | None]


class OfflineReflector:
    """Deterministic, fast, no key."""

    method = METHOD

    def __init__(self, counter: TokenCounter | None = None) -> None:
        self._counter = counter or counter_for()

    def reflect(self, request: ReflectRequest) -> Draft:
        """Condensed notes, in the order of their times.

        Everything that the levels below the given one allow is taken away; from there on it
        stops as soon as the notes fit into ``target_tokens``. When all that may go is gone
        they may still be larger. The same notes and numbers always give the same result.
        """
        zone = zone_of(request.timezone)
        notes = without_superseded(sorted(request.notes, key=lambda note: note.said_at))
        work = _Condensing(notes, request.target_tokens, self._counter)
        for level in range(MOST_LEVEL + 1):
            work.is_pressed = level < request.level
            if level == 0:
                work.merge(zone)
            if level == _MENDED_GO:
                work.drop_mended()
            for step in _STEPS[level]:
                work.apply(step)
        return Draft(tuple(work.result))


def _shorter(note: Note, details: int) -> Note:
    """A note with fewer details. A text that only introduces them takes the first of them over."""
    if len(note.details) <= details:
        return note
    if details == 0 and note.text.endswith(":"):
        return replace(note, text=f"{note.text} {joined(note.details, 160)}", details=())
    return replace(note, details=note.details[:details])


def _told_in(note: Note, characters: int) -> Note:
    return note if len(note.text) <= characters else replace(note, text=clip(note.text, characters))


def _is_kept(note: Note) -> bool:
    return note.priority == "high" or note.category in _KEPT


_STEPS: tuple[tuple[Step, ...], ...] = (
    (),
    (
        lambda note: _shorter(note, 0) if note.priority == "low" else note,
        lambda note: None if note.priority == "low" and not _is_kept(note) else note,
        lambda note: note if _is_kept(note) else _shorter(note, 3),
    ),
    (
        lambda note: note if _is_kept(note) else _shorter(note, 0),
        lambda note: note if _is_kept(note) else _told_in(note, 160),
    ),
    (
        lambda note: None if not _is_kept(note) and (is_work(note) or note.category in ("error", "note")) else note,
        lambda note: note if _is_kept(note) else None,
    ),
    (
        lambda note: _shorter(note, 2),
        lambda note: _told_in(_shorter(note, 0), 200),
    ),
)
"""What each level may do to a note, the gentlest first."""


class _Condensing:
    """Notes on their way to a size."""

    def __init__(self, notes: Sequence[Note], target_tokens: int, counter: TokenCounter) -> None:
        self._counter = counter
        self._notes: list[Note | None] = list(notes)
        self._sizes = [self._size(note) for note in notes]
        self._target = target_tokens
        self._total = sum(self._sizes)
        self._newest = len(notes) - _NEWEST
        self.is_pressed = False
        """Whether all that may be taken away is, though it fits already."""

    @property
    def fits(self) -> bool:
        return self._total <= self._target and not self.is_pressed

    @property
    def result(self) -> list[Note]:
        return [note for note in self._notes if note is not None]

    def merge(self, zone: tzinfo) -> None:
        """Stretches of work become one note each, the oldest first, until it fits."""
        notes = self.result
        for start, end in list(stretches(notes, zone)):
            if self.fits:
                break
            whole = merged(notes[start:end], zone)
            if self._size(whole) < sum(self._sizes[start:end]):
                self._put(start, whole)
                for place in range(start + 1, end):
                    self._put(place, None)

    def drop_mended(self) -> None:
        """Failures of commands that succeeded later."""
        mended = ""
        for place in range(len(self._notes) - 1, -1, -1):
            note = self._notes[place]
            if note is not None and note.category == "fix":
                mended = f"{mended}\n{note.text}"[-_MENDED_CHARACTERS:]
            elif note is not None and note.category == "error" and not self.fits:
                command = note.text.partition(f" {phrases.FAILED}")[0]
                if command and command in mended:
                    self._put(place, None)

    def apply(self, step: Step) -> None:
        """Do one thing to the notes, the oldest first, until they fit."""
        for place, note in enumerate(self._notes):
            if self.fits:
                return
            if note is not None:
                changed = step(note)
                if changed is not note and (changed is not None or place < self._newest):
                    self._put(place, changed)

    def _put(self, place: int, note: Note | None) -> None:
        size = self._size(note) if note is not None else 0
        self._total += size - self._sizes[place]
        self._notes[place], self._sizes[place] = note, size

    def _size(self, note: Note) -> int:
        lines = (note.text, *note.details)
        return self._counter.count("\n".join(lines)).tokens + _TOKENS_OF_A_LINE * len(lines)
