"""What is about to be said, before it is decided whether it is: lines with the items they stand
for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from smara.behavior.habits import KnownFailure
from smara.context.moments import saving
from smara.context.moments.models import Budget, Item
from smara.context.moments.signs import signs_of_failure, signs_of_memory
from smara.context.moments.wording import (
    failure_line,
    fenced,
    fit,
    memory_line,
    one_line,
    tokens_of,
)
from smara.core.clock import Clock
from smara.errors import DeadlineError
from smara.knowledge.trust import Tellable


class Said(NamedTuple):
    """One line and what it stands for; a title stands for nothing."""

    line: str
    item: Item | None = None


class Draft(NamedTuple):
    """What would be said, fenced and within its budget."""

    text: str
    tokens: int
    items: tuple[Item, ...]


class Deadline:
    """The time there is for finding something to say; whoever looks past it gives up."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._seconds = seconds

    def check(self) -> None:
        """Raise ``DeadlineError`` when the time is over."""
        if self._clock.monotonic() - self._began > self._seconds:
            raise DeadlineError(
                "There is no time left to look for something to say. It is said the next time."
            )

    @property
    def elapsed_ms(self) -> int:
        return int((self._clock.monotonic() - self._began) * 1_000)


def drafted(lines: Sequence[Said], budget: Budget) -> Draft | None:
    """The lines as one text, those at the end left out where they do not fit; ``None`` when nothing
    is said.
    """
    kept = list(lines[: fit([each.line for each in lines], budget.tokens, budget.characters)])
    while kept and kept[-1].item is None:
        kept.pop()  # a title with nothing under it
    items = tuple(each.item for each in kept if each.item is not None)
    if not items:
        return None
    text = fenced(each.line for each in kept)
    return Draft(text, tokens_of(text), items)


def said_memory(told: Tellable, why: str, root: str | None, is_about_file: bool = False) -> Said:
    """A memory as something that is said."""
    memory = told.memory
    line = memory_line(told)
    spared = saving.of_memory(memory, root)
    item = Item(
        "memory",
        memory.id,
        why,
        text=one_line(memory.label, 60),
        key=f"memory:{memory.id}",
        tokens=tokens_of(line),
        saved_tokens=spared.tokens,
        saved_how=spared.how,
        signs=signs_of_memory(memory, is_about_file),
    )
    return Said(line, item)


def said_failure(failure: KnownFailure, why: str, is_before: bool) -> Said:
    """A failure as something that is said."""
    line = failure_line(failure, is_error=not is_before)
    spared = saving.of_failure()
    key = f"failure:{failure.fingerprint}"
    item = Item(
        "failure",
        key,
        why,
        text=one_line(failure.command, 60),
        key=key,
        tokens=tokens_of(line),
        saved_tokens=spared.tokens,
        saved_how=spared.how,
        signs=signs_of_failure(failure, is_before),
    )
    return Said(line, item)


def unsaid(lines: Iterable[Said], told: set[str]) -> list[Said]:
    """The lines without what was said before."""
    return [each for each in lines if each.item is None or each.item.key not in told]


def with_line(item: Item, line: str) -> Said:
    """A line and its item, which knows what it costs."""
    return Said(line, replace(item, tokens=tokens_of(line)))
