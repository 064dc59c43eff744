"""Everything that would be said, made ahead: a hook has no time to open a store for every call of a
tool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from smara.behavior.failures import constant_part, lacking
from smara.behavior.habits import Habits, KnownFailure
from smara.context.moments.drafts import Said, drafted
from smara.context.moments.first import LEAST_WORDS, Subject
from smara.context.moments.known import FOR_FILE, Known, KnownTexts, is_telling
from smara.context.moments.models import BUDGETS, Point, PreparedFirst, PreparedTool, Told
from smara.context.moments.signs import names_of
from smara.context.moments.tools import EDITING, SEARCHING, Tools, is_worth_saying, wanted
from smara.core.triggers import words_of
from smara.knowledge.trust import Tellable

MOST_MEMORIES, MOST_FAILURES, MOST_NAMES = 400, 200, 300
_MOST_OF_A_FILE = 3
_LEAST_PIECE = 4


def prepared_tools(
    known: Known, tools: Tools, habits: Habits, texts: KnownTexts
) -> list[PreparedTool]:
    """What would be said around tool calls, without what stands in the agent's own instruction
    files.
    """
    memories = [each for each in known.sure_of_files(MOST_MEMORIES) if not texts.say(each.memory)]
    found = [*_of_files(memories, tools)]
    failures = habits.failures(MOST_FAILURES)
    wants = list(_of_wants(failures, tools))
    told = {each.needs for each in wants}
    for failure in failures:
        if is_worth_saying(failure):
            found += _of_failure(failure, tools, told)
    found += wants
    return [*found, *_of_searches(known, tools, texts)]


def _of_files(memories: Iterable[Tellable], tools: Tools) -> Iterator[PreparedTool]:
    by_file: dict[str, list[Tellable]] = {}
    for told in memories:
        for path in told.memory.files:
            by_file.setdefault(path, []).append(told)
    for path, every in by_file.items():
        best = sorted(every, key=lambda each: -each.confidence)
        changed = [tools.of_file(each, is_edit=True) for each in best[:_MOST_OF_A_FILE]]
        opened = [
            tools.of_file(each, is_edit=False) for each in best if each.memory.type in FOR_FILE
        ]
        before, after = _told("before_tool", changed), _told("after_tool", opened[:_MOST_OF_A_FILE])
        afterwards = _told("after_tool", changed)  # for hosts that cannot be told anything before
        if before is not None:
            yield PreparedTool("before_tool", before, EDITING, file=path)
        if after is not None:
            yield PreparedTool("after_tool", after, ("Read",), file=path)
        if afterwards is not None:
            yield PreparedTool("after_tool", afterwards, EDITING, file=path)


def _of_failure(
    failure: KnownFailure, tools: Tools, wants: Collection[tuple[str, ...]]
) -> Iterator[PreparedTool]:
    if failure.tool == "Read":
        told = _told("before_tool", [tools.failed_before(failure)])
        if told is not None:
            yield PreparedTool("before_tool", told, ("Read",), file=failure.command)
        told = _told("after_tool", [tools.failed_before(failure)])
        if told is not None:
            yield PreparedTool("tool_failure", told, ("Read",), file=failure.command)
        return
    needs = lacking(failure.command, failure.error)
    told = _told("before_tool", [tools.failed_before(failure)])
    if told is not None and needs not in wants:
        yield PreparedTool("before_tool", told, ("Bash",), command=failure.command, needs=needs)
    words = constant_words(failure.error)
    told = _told("after_tool", [tools.known_error(failure)])
    if told is not None and words:
        yield PreparedTool(
            "tool_failure", told, ("Bash",), words=(_program(failure.command), *words)
        )


def _of_wants(failures: Iterable[KnownFailure], tools: Tools) -> Iterator[PreparedTool]:
    """Programs, subcommands and options that are not there: told before any command that needs
    them.
    """
    by_need: dict[tuple[str, ...], list[KnownFailure]] = {}
    for failure in failures:
        if failure.tool == "Bash" and (needs := lacking(failure.command, failure.error)):
            by_need.setdefault(needs, []).append(failure)
    for needs, every in by_need.items():
        every.sort(key=lambda each: (-each.resolved, -each.last_seen_at))
        told = _told("before_tool", [tools.lacks(each) for each in wanted(every)])
        if told is not None:
            yield PreparedTool("before_tool", told, ("Bash",), needs=needs)


def constant_words(error: str) -> tuple[str, ...]:
    """The pieces of an error's line that are the same whenever it comes again, in lower case.

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


def _program(command: str) -> str:
    return command.split()[0].rpartition("/")[2].lower() if command.split() else ""


def _of_searches(known: Known, tools: Tools, texts: KnownTexts) -> Iterator[PreparedTool]:
    seen: set[str] = set()
    for told in known.sure_of_any(MOST_MEMORIES):
        if texts.say(told.memory):
            continue
        for name in names_of(told.memory.content):
            for word in words_of(name):
                if word in seen or len(seen) >= MOST_NAMES or not is_telling(name):
                    continue
                seen.add(word)
                said = _told("after_tool", [tools.of_search(told)])
                if said is not None:
                    yield PreparedTool("after_tool", said, SEARCHING, pattern=word)


def prepared_firsts(subjects: Iterable[Subject]) -> Iterator[PreparedFirst]:
    """What is said to first messages, by what they must hold."""
    for each in subjects:
        told = _told("first_message", [each.said])
        stems = tuple(sorted(each.words)) if len(each.words) >= LEAST_WORDS else ()
        if told is not None and (each.names or stems):
            yield PreparedFirst(tuple(sorted(each.names)), told, stems)


def _told(point: Point, said: list[Said]) -> Told | None:
    draft = drafted(said, BUDGETS[point])
    return None if draft is None else Told(draft.text, draft.tokens, point, items=draft.items)
