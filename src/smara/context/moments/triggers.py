"""Match injections to the messages and calls that trigger them.

A first message triggers the work that it names. Triggers of tool calls are precomputed for
hooks, which have no time to open a store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

from smara.actions.failures import constant_part, lacking
from smara.behavior.habits import Habits, KnownFailure
from smara.behavior.methodology import tell_work_state
from smara.codegraph.anchors.maker import names_in
from smara.context.models import (
    BUDGETS,
    Injection,
    InjectionItem,
    MessageTrigger,
    Point,
    ToolTrigger,
)
from smara.context.moments.candidates import (
    MOST_OF_A_FILE,
    InstructionTexts,
    MemoryFinder,
    file_order,
    is_for_file,
    is_telling,
)
from smara.context.moments.draft import (
    InjectionLine,
    day,
    line_of_failure,
    line_of_memory,
    line_of_refusal,
    make_draft,
    one_line,
    quoted,
    with_line,
)
from smara.context.moments.tool_calls import (
    ABOUT_FILE,
    ABOUT_READING,
    ANSWERING,
    EDITING,
    FAILED_BEFORE,
    KNOWN_ERROR,
    LACKING,
    MOST_REFUSING,
    SEARCHING,
    is_worth_saying,
    wanted,
)
from smara.core.scope import WRITTEN_BY
from smara.core.startup.regex import regex
from smara.core.tool_triggers import is_named
from smara.decisions.decisions import Decisions
from smara.knowledge.kinds import KINDS, types_told_at
from smara.knowledge.statements import parse_statement
from smara.knowledge.trust import Tellable
from smara.tasks.models import Task
from smara.tasks.tasks import Tasks

_LONGEST_MESSAGE = 8_000
_LEAST_SHARE = 0.6
LEAST_WORDS = 3
_LOOKED_AT = 60
MOST = 2
_PARTICULAR = regex(r"\w[-_/.]\w|\d")


class Subject(NamedTuple):
    """A subject of messages: its names and its words."""

    names: frozenset[str]
    words: frozenset[str]
    line: Callable[[], InjectionLine]
    """Made for the few that a message is about: who wrote a task takes a look into its history."""


def subjects(finder: MemoryFinder, tasks: Tasks) -> list[Subject]:
    """Return what a first message may be about."""
    found = []
    totals = tasks.totals()
    if totals.open + totals.in_progress:
        page = tasks.list(limit=_LOOKED_AT)
        blocked = tasks.blocked(page)
        found += [
            Subject(
                frozenset({task.short_id.casefold()}),
                _words(task.title),
                partial(_task_line, task, task.id in blocked, tasks),
            )
            for task in page
            if task.status != "closed"
        ]
    return found + [
        _of_memory(tellable)
        for type_ in types_told_at("message")
        for tellable in finder.of_types([type_], _LOOKED_AT // 2)
    ]


def decided(decisions: Decisions, message: str) -> list[InjectionLine]:
    """Return decisions and reasons of commits about a message, surest first."""
    return [
        with_line(InjectionItem(**each, signs=(f"id:{each['id']}",)), line)
        for each in decisions.about(message[:_LONGEST_MESSAGE])
        for line in (each.pop("line"),)
    ]


def matching(subjects: Iterable[Subject], message: str) -> list[InjectionLine]:
    """Return what is said to a message, the surest first."""
    text = message[:_LONGEST_MESSAGE]
    statement = parse_statement(text)
    scored = []
    for number, each in enumerate(subjects):
        share = len(each.words & statement.content_set) / len(each.words) if each.words else 0.0
        is_alike = len(each.words) >= LEAST_WORDS and share >= _LEAST_SHARE
        has_name = is_named(text.casefold(), each.names)
        if has_name or is_alike:
            scored.append((has_name, share, -number, each.line))
    return [each[3]() for each in sorted(scored, key=lambda each: each[:3], reverse=True)[:MOST]]


def _task_line(task: Task, is_blocked: bool, tasks: Tasks) -> InjectionLine:
    author = tasks.author(task.id)
    state = "blocked" if is_blocked else task.status.replace("_", " ")
    holder = f", held by {one_line(task.holder, 40)}" if task.holder else ""
    longest = 300 if author == "person" else 120
    about = f": {quoted(task.description, longest)}" if task.description.strip() else "."
    about += "" if author == "person" else f" Written by {WRITTEN_BY[author]}."
    line = (
        f"- Task {task.short_id} ({state}{holder}, since {day(task.created_at)}) "
        f"{quoted(task.title, 120)}{about}"
    )
    item = InjectionItem(
        "task",
        task.id,
        "the message is about this task",
        text=one_line(task.title, 60),
        key=f"task:{task.id}:{task.updated_at}",
        signs=(f"id:{task.short_id}",),
    )
    return with_line(item, line)


def _of_memory(tellable: Tellable) -> Subject:
    memory = tellable.memory
    kind, unit = KINDS[memory.type], memory.work_unit
    if memory.scope == "module" and memory.modules:
        line = line_of_memory(tellable, "the message is about this module")
        return Subject(_names(memory.modules), frozenset(), lambda: line)
    if memory.type != "work_state" and kind.scope == "work_unit":
        line = line_of_memory(tellable, "the message is about this piece of work")
        parts = [*unit.hierarchy, *unit.label.split(" / ")] if unit is not None else []
        return Subject(_names(parts), frozenset(), lambda: line)
    if memory.type != "work_state":
        subject = [str(memory.data[name]) for name in kind.subject if name in memory.data]
        return Subject(
            frozenset(),
            _words(" ".join(subject) or memory.content),
            lambda: line_of_memory(tellable, "it tells how such a task is done here"),
        )
    state = tell_work_state(memory.data, memory.methodology).replace("\n", "; ")
    detail = one_line(state, 300) if memory.tier == "confirmed" or not state else quoted(state, 300)
    line = line_of_memory(tellable, "the message is about this unfinished work")
    if detail and line.item is not None:
        line = with_line(line.item, f"{line.line} {detail}")
    files = map(str, memory.data.get("open_files", ()))
    names = _names([str(memory.data.get("branch") or ""), *files])
    return Subject(names, _words(memory.content), lambda: line)


def _names(names: Iterable[str]) -> frozenset[str]:
    """Return the names that no message has by chance: not main, and not 2.3."""
    return frozenset(
        name.casefold()
        for name in names
        if _PARTICULAR.search(name) and any(map(str.isalpha, name))
    )


def _words(text: str) -> frozenset[str]:
    return parse_statement(text[:1_000]).content_set


MOST_MEMORIES, MOST_FAILURES, MOST_NAMES = 400, 200, 300
_LEAST_PIECE = 4


def tool_triggers(
    finder: MemoryFinder, habits: Habits, texts: InstructionTexts
) -> list[ToolTrigger]:
    """Return all injections around tool calls."""
    memories = [each for each in finder.sure_of_files(MOST_MEMORIES) if not texts.say(each.memory)]
    found = [*_of_files(memories)]
    failures = habits.failures(MOST_FAILURES)
    wants = list(_of_wants(failures))
    needs = {each.needs for each in wants}
    for refused, tellable in finder.refusing(MOST_REFUSING):
        lines = [line_of_refusal(tellable)]
        found += _trigger("before_tool", lines, tools=("Bash",), needs=refused)
    for failure in failures:
        if is_worth_saying(failure):
            found += _of_failure(failure, needs)
    found += wants
    return [*found, *_of_searches(finder, texts)]


def _of_files(memories: Iterable[Tellable]) -> Iterator[ToolTrigger]:
    by_file: dict[str, list[Tellable]] = {}
    for tellable in memories:
        for path in tellable.memory.files:
            if tellable.memory.applies_at([path]):
                by_file.setdefault(path, []).append(tellable)
    for path, every in by_file.items():
        changed, opened = (
            [
                line_of_memory(each, ABOUT_FILE[is_edit], is_about_file=True)
                for each in file_order(every, is_edit)
                if is_for_file(each.memory, is_edit)
            ][:MOST_OF_A_FILE]
            for is_edit in (True, False)
        )
        costs = [
            line_of_memory(each, ABOUT_READING, is_about_file=True)
            for each in every
            if "read" in KINDS[each.memory.type].told_at
        ]
        yield from _trigger("before_tool", costs[:1], tools=("Read",), file=path, is_whole=True)
        yield from _trigger("before_tool", changed, tools=EDITING, file=path)
        yield from _trigger("after_tool", opened, tools=("Read",), file=path)
        # For hosts that cannot be told anything before a call.
        yield from _trigger("after_tool", changed, tools=EDITING, file=path)


def _of_failure(failure: KnownFailure, wants: Collection[tuple[str, ...]]) -> Iterator[ToolTrigger]:
    before = [line_of_failure(failure, FAILED_BEFORE, is_before=True)]
    command = failure.command
    if failure.tool == "Read":
        yield from _trigger("before_tool", before, tools=("Read",), file=command)
        yield from _trigger("tool_failure", before, tools=("Read",), file=command)
        return
    needs = lacking(command, failure.error)
    if needs not in wants:
        yield from _trigger("before_tool", before, tools=("Bash",), command=command, needs=needs)
    if words := constant_words(failure.error):
        program = next(iter(command.split()), "").rpartition("/")[2].lower()
        after = [line_of_failure(failure, KNOWN_ERROR, is_before=False)]
        yield from _trigger("tool_failure", after, tools=("Bash",), words=(program, *words))


def _of_wants(failures: Iterable[KnownFailure]) -> Iterator[ToolTrigger]:
    """Programs, subcommands and options that are not there: told before any command that needs
    them.
    """
    by_need: dict[tuple[str, ...], list[KnownFailure]] = {}
    for failure in failures:
        if failure.tool == "Bash" and (needs := lacking(failure.command, failure.error)):
            by_need.setdefault(needs, []).append(failure)
    for needs, every in by_need.items():
        every.sort(key=lambda each: (-each.resolved, -each.last_seen_at))
        lines = [line_of_failure(each, LACKING, is_before=True) for each in wanted(every)]
        yield from _trigger("before_tool", lines, tools=("Bash",), needs=needs)


def constant_words(error: str) -> tuple[str, ...]:
    """Return the constant pieces of an error's line, in lower case.

    >>> constant_words("Error: connect ECONNREFUSED 127.0.0.1:5432")
    ('error:', 'connect', 'econnrefused')
    """
    # What varies was replaced, so a piece with something replaced in it does not stand in the line
    # itself.
    lowered = error.lower()
    pieces = [
        word
        for word in constant_part(error).split()
        if len(word) >= _LEAST_PIECE and word in lowered
    ]
    return tuple(dict.fromkeys(pieces))[:8]


def _of_searches(finder: MemoryFinder, texts: InstructionTexts) -> Iterator[ToolTrigger]:
    seen: set[str] = set()
    for tellable in finder.sure_of_any(MOST_MEMORIES):
        if texts.say(tellable.memory):
            continue
        # Of ``Shop.CartTotal`` the one part that can be nothing but a name: shop is any word.
        names = ".".join(names_in(tellable.memory.content)).split(".")
        for word in {name.lower(): None for name in names if is_telling(name)}:
            if word not in seen and len(seen) < MOST_NAMES:
                seen.add(word)
                lines = [line_of_memory(tellable, ANSWERING)]
                yield from _trigger("after_tool", lines, tools=SEARCHING, pattern=word)


def message_triggers(subjects: Iterable[Subject]) -> Iterator[MessageTrigger]:
    """Yield the injections after first messages."""
    for each in subjects:
        injection = _injection("first_message", [each.line()])
        stems = tuple(sorted(each.words)) if len(each.words) >= LEAST_WORDS else ()
        if injection is not None and (each.names or stems):
            yield MessageTrigger(tuple(sorted(each.names)), injection, stems)


def _trigger(
    point: Literal["before_tool", "after_tool", "tool_failure"],
    lines: list[InjectionLine],
    **where: Any,
) -> Iterator[ToolTrigger]:
    """Yield what is said at a point around a tool call, unless there is nothing to say."""
    injection = _injection("before_tool" if point == "before_tool" else "after_tool", lines)
    if injection is not None:
        yield ToolTrigger(point, injection, **where)


def _injection(point: Point, lines: list[InjectionLine]) -> Injection | None:
    draft = make_draft(lines, BUDGETS[point])
    return None if draft is None else Injection(draft.text, draft.tokens, point, items=draft.items)
