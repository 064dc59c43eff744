"""The reflector that needs no model: condenses notes by taking away, oldest first, until they fit.

It begins at the level it is given and goes on, level by level, until the notes are as small
as was asked or nothing more may go. What a person preferred, decided, changed or asked for,
what was completed, everything of high priority and the newest notes stay until nothing else is
left to take. No word is added but "worked on … until" for merged work.

What holds something particular, a name, a path, a number, quoted words, goes later than what
could be said of anything, and only while the notes are four tenths larger than was asked: a size
is worth less than what somebody will look for. But a conversation of any length must fit, so in
the end the oldest go, whatever they are; they are only shown no more, and can still be found.

    level 0   repeated and replaced notes go; stretches of work become one note each
    level 1   details of low notes go, then low priority, then small talk, then details with nothing
      particular
    level 2   failures that were mended go; commands are told by their first words, code by its
      names;
              details with nothing particular go; the rest is told in 240 characters and three short
                details
    level 3   answers with nothing particular go, then questions, then runs, then errors; what came
      of a
              request is told below it; then, far over the size, the rest
    level 4   what stayed is told in 200 characters, without details; then the oldest requests and
      completions
              go, then the oldest of the rest, and last what was preferred, decided or changed
"""

from __future__ import annotations

from collections.abc import Callable

from smara.core.days import zone_of
from smara.core.tokens import TokenCounter, counter_for
from smara.observations.models import Draft, Note, ReflectRequest
from smara.observations.offline.condensing import Condensing, Step, is_kept
from smara.observations.offline.merging import is_work
from smara.observations.offline.observer import METHOD
from smara.observations.offline.shortening import (
    by_first_words,
    by_names,
    in_characters,
    is_talk,
    tells,
    with_bare_details,
    with_details,
    with_details_in,
)
from smara.observations.offline.superseding import without_superseded

_OVER = 1.4
_PRESSING_LEVEL = 2
"""Who begins here or above wants the size, whatever it costs."""
MOST_LEVEL = 4
_ASKED_AND_DONE = frozenset({"request", "completion"})
_RULES = frozenset({"preference", "decision", "change"})
"""What holds for what comes, however long ago it was said."""

Action = Callable[[Condensing], None]


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
        notes = without_superseded(sorted(request.notes, key=lambda note: note.said_at))
        work = Condensing(
            notes, request.target_tokens, self._counter, zone=zone_of(request.timezone)
        )
        for level, actions in enumerate(_LEVELS):
            work.is_pressed = level < request.level
            for action in actions:
                if action is _drop_the_rest and request.level < _PRESSING_LEVEL:
                    work.target *= _OVER
                action(work)
        return Draft(tuple(work.result))


def _each(change: Step) -> Action:
    return lambda work: work.apply(change)


def _others(change: Step) -> Action:
    """Change the notes that are not kept as they are at every level."""
    return lambda work: work.apply(lambda note: note if is_kept(note) else change(note))


def _go(which: Callable[[Note], bool]) -> Action:
    """Take notes of one kind away, but for those that are kept at every level."""
    return _others(lambda note: None if which(note) else note)


_drop_the_rest = _go(lambda note: True)

_LEVELS: tuple[tuple[Action, ...], ...] = (
    (Condensing.merge,),
    (
        _each(lambda note: with_details(note, 0) if note.priority == "low" else note),
        _go(lambda note: note.priority == "low"),
        _go(is_talk),
        _others(lambda note: with_bare_details(note, 3)),
    ),
    (
        Condensing.drop_mended,
        _others(by_first_words),
        _others(by_names),
        _each(lambda note: with_bare_details(note, 0)),
        _others(lambda note: in_characters(note, 240)),
        _others(lambda note: with_details_in(note, 160)),
        _others(lambda note: with_details(note, 3)),
    ),
    (
        _go(lambda note: note.category == "answer" and not tells(note)),
        _go(lambda note: note.category == "question"),
        _go(lambda note: is_work(note) and note.category != "code"),
        _go(lambda note: note.category == "error" or not tells(note)),
        Condensing.fold,
        _drop_the_rest,
    ),
    (
        _each(lambda note: with_details(note, 2)),
        _each(lambda note: in_characters(with_details(note, 0), 200)),
        _each(lambda note: None if note.category in _ASKED_AND_DONE else note),
        _each(lambda note: note if note.category in _RULES else None),
        _each(lambda note: None),
    ),
)
"""What each level does, the gentlest first."""
