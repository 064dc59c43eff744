"""Condense notes without a model until they fit a token limit.

Superseded notes go first. Then one step after the other is applied, oldest notes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import tzinfo

from smara.core.dates import zone_of
from smara.core.text import find_words
from smara.core.tokens import TokenCounter, counter_for
from smara.observations.models import Note, ObservationDraft, ReflectRequest
from smara.observations.offline.notes import WordIndex
from smara.observations.offline.observer import METHOD
from smara.observations.offline.shorten import (
    by_first_words,
    by_names,
    in_characters,
    is_talk,
    is_work,
    merged,
    stretches,
    tells,
    under,
    with_details,
    with_details_in,
)

_USER_LABELS = frozenset({"statement", "preference", "change", "decision"})
_LONGEST_REPLACED = 16
"""A longer sentence says other things as well, and stays."""


def without_superseded(notes: Sequence[Note]) -> list[Note]:
    """Drop the notes that a newer one repeats or replaces."""
    index = WordIndex()
    subjects: list[frozenset[str]] = []
    newer: list[Note] = []
    for note in reversed(notes):
        words = _words(" ".join([note.text, *note.details]))
        is_repeated = any(newer[place].category == note.category for place in index.alike(words))
        is_replaced = (
            note.category in _USER_LABELS
            and len(words) <= _LONGEST_REPLACED
            and any(subject and subject <= words for subject in subjects[-200:])
        )
        if not is_repeated and not is_replaced:
            index.add(words)
            newer.append(note)
            if subject := note.mode_specific.get("replaces"):
                subjects.append(_words(str(subject)))
    return newer[::-1]


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in find_words(text))


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
    """Return True if a note stays at every level."""
    return note.priority == "high" or note.category in _KEPT


class NoteBudget:
    """Notes, their sizes, and how large they may be."""

    def __init__(
        self, notes: Sequence[Note], target_tokens: int, counter: TokenCounter, zone: tzinfo
    ) -> None:
        self._counter = counter
        self._zone = zone
        self._notes: list[Note | None] = list(notes)
        self._sizes = [self._size(note) for note in notes]
        self._total = sum(self._sizes)
        self._heads: list[int] = []
        """For each note the place of what the user said last before it, else its own."""
        for place, note in enumerate(notes):
            is_head = not self._heads or note.text.startswith(_BY_USER)
            is_below = not is_head and notes[self._heads[-1]].text.startswith(_BY_USER)
            self._heads.append(self._heads[-1] if is_below else place)
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
                command = note.text.partition(" failed")[0]
                if command and command in mended:
                    self._put(place, None)

    def fold(self) -> None:
        """Tell the little that came of a user's words below them."""
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


_OVER = 1.4
_PRESSING_LEVEL = 2
"""Who begins here or above wants the size, whatever it costs."""
MOST_LEVEL = 4
_ASKED_AND_DONE = frozenset({"request", "completion"})
_RULES = frozenset({"preference", "decision", "change"})
"""What holds for what comes, however long ago it was said."""

Action = Callable[[NoteBudget], None]


class OfflineReflector:
    """Deterministic, fast, no key."""

    method = METHOD

    def __init__(self, counter: TokenCounter | None = None) -> None:
        self._counter = counter or counter_for()

    def reflect(self, request: ReflectRequest) -> ObservationDraft:
        """Condensed notes, in the order of their times.

        Everything that the levels below the given one allow is taken away; from there on it
        stops as soon as the notes fit into ``target_tokens``. When all that may go is gone
        they may still be larger. The same notes and numbers always give the same result.
        """
        notes = without_superseded(sorted(request.notes, key=lambda note: note.said_at))
        work = NoteBudget(
            notes, request.target_tokens, self._counter, zone=zone_of(request.timezone)
        )
        for level, actions in enumerate(_LEVELS):
            work.is_pressed = level < request.level
            for action in actions:
                if action is _drop_the_rest and request.level < _PRESSING_LEVEL:
                    work.target *= _OVER
                action(work)
        return ObservationDraft(tuple(work.result))


def _each(change: Step, *, spares_kept: bool = True) -> Action:
    """Change every note, but for those that stay at every level."""
    return lambda work: work.apply(
        lambda note: note if spares_kept and is_kept(note) else change(note)
    )


def _go(which: Callable[[Note], bool], *, spares_kept: bool = True) -> Action:
    """Take notes of one kind away, but for those that stay at every level."""
    return _each(lambda note: None if which(note) else note, spares_kept=spares_kept)


_drop_the_rest = _go(lambda note: True)

_LEVELS: tuple[tuple[Action, ...], ...] = (
    (NoteBudget.merge,),
    (
        _each(lambda note: with_details(note, 0) if note.priority == "low" else note),
        _go(lambda note: note.priority == "low"),
        _go(is_talk),
        _each(lambda note: with_details(note, 3, is_bare=True)),
    ),
    (
        NoteBudget.drop_mended,
        _each(by_first_words),
        _each(by_names),
        _each(lambda note: with_details(note, 0, is_bare=True), spares_kept=False),
        _each(lambda note: in_characters(note, 240)),
        _each(lambda note: with_details_in(note, 160)),
        _each(lambda note: with_details(note, 3)),
    ),
    (
        _go(lambda note: note.category == "answer" and not tells(note)),
        _go(lambda note: note.category == "question"),
        _go(lambda note: is_work(note) and note.category != "code"),
        _go(lambda note: note.category == "error" or not tells(note)),
        NoteBudget.fold,
        _drop_the_rest,
    ),
    (
        _each(lambda note: with_details(note, 2), spares_kept=False),
        _each(lambda note: in_characters(with_details(note, 0), 200), spares_kept=False),
        _go(lambda note: note.category in _ASKED_AND_DONE, spares_kept=False),
        _go(lambda note: note.category not in _RULES, spares_kept=False),
        _go(lambda note: True, spares_kept=False),
    ),
)
"""What each level does, the gentlest first."""
