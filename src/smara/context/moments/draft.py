"""Render memories and failures as lines of an injection.

Each fact is one line with its source, never an order. A draft is the lines that fit a budget,
fenced, with the items they stand for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from smara.actions.error_quote import error_quote, output_words
from smara.behavior.habits import KnownFailure
from smara.commits.edit import injection_of
from smara.context.models import InjectionItem, PointBudget
from smara.context.moments.usage import FAILED_CALL_TOKENS, signs_of_failure, signs_of_memory
from smara.core.clock import Clock
from smara.core.escape import neutralize
from smara.core.extract import shorten
from smara.core.memory_block import CLOSING, OPENING, cites_thread, tokens_of
from smara.decisions.decisions import line_of
from smara.errors import DeadlineError
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import TypedMemory
from smara.knowledge.trust import Tellable

UNCONFIRMED = "Noted in earlier sessions, not confirmed by a person"
BY_PEOPLE = "Said by people in earlier sessions"
LONGEST_LINE = 420
_QUOTE = 160


def cost_of(line: str, budget: PointBudget) -> int:
    """Return what a line takes of a budget, in tokens or characters."""
    return max(tokens_of(line) + 1, math.ceil((len(line) + 1) * budget.tokens / budget.characters))


def fenced(lines: Iterable[str]) -> str:
    """Return lines as the one block in which memory speaks."""
    return "\n".join((OPENING, *lines, CLOSING))


def day(milliseconds: int) -> str:
    """Return a date, which reads the same tomorrow."""
    try:
        return datetime.fromtimestamp(milliseconds / 1_000, UTC).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return "an unknown day"


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Return stored text that cannot leave its line."""
    line = " ".join(neutralize(text[: 8 * longest]).split()).replace("[Memory #", "(Memory #")
    return shorten(line, longest)


def quoted(text: str, longest: int = LONGEST_LINE) -> str:
    """Return stored text between quotation marks that it cannot close."""
    return f'"{one_line(text, longest).replace(chr(34), chr(39))}"'


def as_code(text: str, longest: int = 200) -> str:
    """Return stored text between backticks."""
    return f"`{one_line(text, longest).replace('`', chr(39))}`"


def memory_line(tellable: Tellable, is_grouped: bool = False) -> str:
    """Render a memory as a line with date and source.

    An unconfirmed memory is a quotation, with what it rests on.
    """
    memory = tellable.memory
    hedge = f" ({one_line(tellable.hedge, 200)})" if tellable.hedge else ""
    if memory.source == "said":
        return f"{line_of(memory, LONGEST_LINE)}{hedge}"
    where = _places(memory)
    if memory.tier == "confirmed":
        head = "" if is_grouped else f"{KINDS[memory.type].name}: "
        return (
            f"- {head}{one_line(memory.content)}{hedge} [Memory #{memory.short_id}, "
            f"{day(memory.evidence_at)}{where}]"
        )
    seen = f", {len(memory.session_ids)} sessions" if len(memory.session_ids) > 1 else ""
    proof = next((each.quote for each in memory.evidence if each.quote), None)
    shown = ""
    if proof:
        proof = _reduced(memory, proof)
        start = one_line(proof, _QUOTE).rstrip("…").casefold()[:80]
        is_repeated = start in one_line(memory.content, 4 * LONGEST_LINE).casefold()
        shown = "" if is_repeated else f" Seen: {quoted(proof, _QUOTE)}"
    state = "" if is_grouped else ", not confirmed"
    return (
        f"- {KINDS[memory.type].name} (noted {day(memory.evidence_at)}{seen}{state}): "
        f"{quoted(_reduced(memory, memory.content))}{shown}{hedge}"
        f" [Memory #{memory.short_id}{where}]"
    )


def _reduced(memory: TypedMemory, text: str) -> str:
    """Reduce the output in a text that was stored whole."""
    for name in ("error", "why_it_failed"):
        output = str(memory.data.get(name) or "")
        for line in filter(None, {output, output.replace("`", "'")}):
            text = text.replace(line, error_quote(line) or "an error")
    return text


def _places(memory: TypedMemory) -> str:
    found = [
        str(each) for each in memory.evidence if each.path and each.message_id is None
    ] or list(memory.files)
    return "".join(f", {one_line(place, 120).replace(']', ')')}" for place in found[:2])


def failure_line(failure: KnownFailure, is_error: bool = False) -> str:
    """Render a command that failed here before, why, and what then worked."""
    times = f"{failure.occurrences} times" if failure.occurrences > 1 else "once"
    where = f" in {failure.sessions} sessions" if failure.sessions > 1 else ""
    last = "last " if failure.occurrences > 1 else ""
    when = f"{times}{where}, {last}on {day(failure.last_seen_at)}"
    if failure.tool == "Read":
        subject = f"The file {as_code(failure.command)} was not found ({when})."
    else:
        subject = "This error came" if is_error else f"{as_code(failure.command)} failed"
        quotation = output_words(failure.error)
        subject += f" here before ({when}{quotation and f'; {quotation}'})."
    advice = "Nothing is known that worked."
    if failure.fix and failure.how == "command":
        advice = f"What worked instead: {as_code(failure.fix)}."
    elif failure.fix and failure.how == "first":
        advice = f"It worked after {as_code(failure.fix)} had been run."
    elif failure.fix and failure.how == "path":
        advice = f"It is at {as_code(failure.fix)}."
    elif failure.how == "edit" and failure.files:
        advice = f"It worked after a change of {', '.join(map(as_code, failure.files[:3]))}."
    return f"- {subject} {advice} Not confirmed by a person. [Failure {failure.fingerprint}]"


def fit(lines: Sequence[str], tokens: int, characters: int) -> int:
    """Return how many lines fit a fenced block of a size."""
    used = len(OPENING) + len(CLOSING) + 1
    cost = float(tokens_of(OPENING + CLOSING) + 1)
    for number, line in enumerate(lines):
        used += len(line) + 1
        cost += tokens_of(line) + 1
        if used > characters or cost > tokens:
            return number
    return len(lines)


class InjectionLine(NamedTuple):
    """One line and what it stands for; a title stands for nothing."""

    line: str
    item: InjectionItem | None = None


class InjectionDraft(NamedTuple):
    """A fenced text within its budget, and its items."""

    text: str
    tokens: int
    items: tuple[InjectionItem, ...]


class Deadline:
    """The time there is for finding something to say."""

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


def make_draft(lines: Sequence[InjectionLine], budget: PointBudget) -> InjectionDraft | None:
    """Return lines as one text within a budget, or None."""
    shown = list(lines[: fit([each.line for each in lines], budget.tokens, budget.characters)])
    while shown and shown[-1].item is None:
        shown.pop()  # a title with nothing under it
    items = tuple(each.item for each in shown if each.item is not None)
    if not items:
        return None
    text = fenced(each.line for each in shown)
    return InjectionDraft(text, tokens_of(text), items)


def line_of_memory(
    tellable: Tellable, why: str, *, is_about_file: bool = False, line: str = ""
) -> InjectionLine:
    """Return a memory as a line of an injection."""
    memory = tellable.memory
    text = line or (line_of(memory) if memory.source == "said" else memory_line(tellable))
    item = InjectionItem(
        "memory",
        memory.id,
        why,
        text=one_line(memory.label, 60),
        key=f"memory:{memory.id}",
        tokens=tokens_of(text),
        signs=signs_of_memory(memory, is_about_file),
    )
    return InjectionLine(text, item)


def line_of_refusal(tellable: Tellable) -> InjectionLine:
    """Return the line of a decision that refuses a command.

    It is said again before the command even if the session was told it at its start: what was told
    there is about to be done all the same.
    """
    found = line_of_memory(tellable, "a person refused this command")
    item = found.item
    return found if item is None else found._replace(item=replace(item, key=f"refused:{item.id}"))


def line_of_failure(failure: KnownFailure, why: str, is_before: bool) -> InjectionLine:
    """Return a failure as a line of an injection."""
    line = failure_line(failure, is_error=not is_before)
    key = f"failure:{failure.fingerprint}"
    item = InjectionItem(
        "failure",
        key,
        why,
        text=one_line(failure.command, 60),
        key=key,
        tokens=tokens_of(line),
        saved_tokens=FAILED_CALL_TOKENS if is_before else 0,
        saved_how="one failed call and its output" if is_before else "",
        signs=signs_of_failure(failure, is_before),
    )
    return InjectionLine(line, item)


def line_of_note(note: Mapping[str, Any], is_edit: bool) -> InjectionLine:
    """Return a note on lines as a line of an injection."""
    facts = injection_of(note, "", is_edit)["items"][0]
    return with_line(InjectionItem(**{**facts, "signs": tuple(facts["signs"])}), note["line"])


def new_lines(
    lines: Iterable[InjectionLine], old_keys: set[str], thread_id: str = ""
) -> list[InjectionLine]:
    """Return the lines that are new to a session.

    What was said in its own thread is not.
    """
    return [
        each
        for each in lines
        if each.item is None
        or not (each.item.key in old_keys or cites_thread(each.line, thread_id))
    ]


def with_line(item: InjectionItem, line: str) -> InjectionLine:
    """Return a line and its item, which knows its cost."""
    return InjectionLine(line, replace(item, tokens=tokens_of(line)))
