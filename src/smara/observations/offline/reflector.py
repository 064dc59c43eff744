"""Condense notes without a model until they fit a token limit.

Superseded notes go first. Then one step after the other is applied, oldest notes first.
Shortened notes keep the sentences and details with names, paths and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from smara.core.text import find_words
from smara.core.tokens import TokenCounter, counter_for
from smara.observations.models import Note, ObservationDraft, ReflectRequest
from smara.observations.offline.notes import CUES, WordIndex, clip, joined
from smara.observations.offline.observer import METHOD

_TEXT_CHARACTERS, _DETAIL_CHARACTERS, _TAKEN_OVER_CHARACTERS = 200, 160, 160
_PASSING = frozenset({"command", "test", "question"})
_TALK = frozenset({"answer", "note"})
_USER_LABELS = frozenset({"statement", "preference", "change", "decision"})
# A longer sentence says other things as well, and stays.
_LONGEST_REPLACED = 16
_KEPT = frozenset({"preference", "decision", "change", "completion", "request", "blocker"})
_ASKED_AND_DONE = frozenset({"request", "completion"})
# What holds for what comes, however long ago it was said.
_RULES = frozenset({"preference", "decision", "change"})
# So many of the newest notes are never taken away: where the work stands is told by them.
_NEWEST = 5
# What a mark and a time cost, and what a detail costs besides its words; measured.
_TOKENS_OF_A_NOTE, _TOKENS_OF_A_DETAIL = 9, 2
# A little below what was asked: where much must stay it ends above, and elsewhere that is made up
# for.
_AIM = 0.9
_OVER = 1.4
# A reflection that begins here or above wants the size, whatever it costs.
_PRESSING_LEVEL = 2


def is_particular(text: str) -> bool:
    """Return True if a text holds a name, path, number or quotation.

    >>> is_particular("The flags live in src/toggles.py"), is_particular("There is no hurry.")
    (True, False)
    """
    return CUES["particular"].search(text) is not None


def tells(note: Note) -> bool:
    """Return True if a note holds anything particular."""
    return any(map(is_particular, (note.text, *note.details)))


def is_kept(note: Note) -> bool:
    """Return True if a note stays at every level."""
    return note.priority == "high" or note.category in _KEPT


def told_in(text: str, characters: int, has_outcome: bool = False) -> str:
    """Return the first words of a text, then the particular sentences.

    With ``has_outcome`` the last piece comes before them.
    """
    if len(text) <= characters:
        return text
    pieces = CUES["between sentences"].split(text)
    if len(pieces) == 1 or len(pieces[0]) >= characters:
        return clip(text, characters)
    last = len(pieces) - 1 if has_outcome else 0
    order = sorted(
        range(1, len(pieces)), key=lambda at: (at != last, not is_particular(pieces[at]), at)
    )
    room = characters - len(pieces[0])
    chosen = [0]
    for place in order:
        if len(pieces[place]) < room:
            chosen.append(place)
            room -= len(pieces[place]) + 1
    shown = " ".join(pieces[place] for place in sorted(chosen))
    return shown if has_outcome and last in chosen else f"{shown.rstrip(' ,;:…')} …"


def with_details(note: Note, most: int) -> Note:
    """Keep at most so many details, the particular ones.

    A text that only introduces its details takes them over.
    """
    if len(note.details) <= most:
        return note
    telling = [each for each in note.details if is_particular(each)] or list(note.details)
    if most or not note.text.endswith(":"):
        return replace(note, details=tuple(telling[:most]))
    return replace(note, text=f"{note.text} {joined(telling, _TAKEN_OVER_CHARACTERS)}", details=())


def shortened(note: Note) -> Note:
    """Shorten a note's text and details; the outcome of a fix stays."""
    return replace(
        note,
        text=told_in(note.text, _TEXT_CHARACTERS, has_outcome=note.category == "fix"),
        details=tuple(told_in(each, _DETAIL_CHARACTERS) for each in note.details),
    )


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


class NoteBudget:
    """Notes, their sizes, and how large they may be."""

    def __init__(self, notes: Sequence[Note], target_tokens: int, counter: TokenCounter) -> None:
        self._counter = counter
        self._notes: list[Note | None] = list(notes)
        self._sizes = [self._size(note) for note in notes]
        self._total = sum(self._sizes)
        places = range(len(notes))
        telling = [at for at in places if notes[at].category not in _TALK or tells(notes[at])]
        self._newest = set((telling or places)[-_NEWEST:])
        self.target = target_tokens * _AIM
        self.is_pressed = False
        """Whether all that may be taken away is, though it fits already."""

    @property
    def fits(self) -> bool:
        return self._total <= self.target and not self.is_pressed

    @property
    def result(self) -> list[Note]:
        return [note for note in self._notes if note is not None]

    def apply(self, step: Step, *, spares_kept: bool) -> None:
        """Do one thing to each note, the oldest first, until they fit."""
        for place, note in enumerate(self._notes):
            if self.fits:
                return
            if note is not None and not (spares_kept and is_kept(note)):
                changed = step(note)
                if changed is not None or place not in self._newest:
                    size = self._size(changed)
                    self._total += size - self._sizes[place]
                    self._notes[place], self._sizes[place] = changed, size

    def _size(self, note: Note | None) -> int:
        if note is None:
            return 0
        around = _TOKENS_OF_A_NOTE + _TOKENS_OF_A_DETAIL * len(note.details)
        return self._counter.count("\n".join((note.text, *note.details))).tokens + around


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
        budget = NoteBudget(notes, request.target_tokens, self._counter)
        for level, steps in enumerate(_LEVELS):
            budget.is_pressed = level < request.level
            if level == _LAST_SPARING and request.level < _PRESSING_LEVEL:
                budget.target *= _OVER
            for step in steps:
                budget.apply(step, spares_kept=level <= _LAST_SPARING)
        return ObservationDraft(tuple(budget.result))


def _without(which: Callable[[Note], bool]) -> Step:
    return lambda note: None if which(note) else note


# What each level does, the gentlest first; up to the last sparing one to notes that may go.
_LAST_SPARING = 3
_LEVELS: tuple[tuple[Step, ...], ...] = (
    (_without(lambda note: note.priority == "low"),),
    (shortened, lambda note: with_details(note, 3)),
    (
        _without(lambda note: note.category in _PASSING),
        _without(lambda note: note.category == "error" or not tells(note)),
    ),
    (_without(lambda note: True),),
    (
        lambda note: with_details(note, 2),
        lambda note: shortened(with_details(note, 0)),
        _without(lambda note: note.category in _ASKED_AND_DONE),
        _without(lambda note: note.category not in _RULES),
        _without(lambda note: True),
    ),
)
