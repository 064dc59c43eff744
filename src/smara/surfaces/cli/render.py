"""Print tasks, memories and code as lines or rows.

A terminal gets fitted lines, a pipe rows. The words come from ``smara.texts``; marks, colors,
bars and trees are added here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import category, east_asian_width

import click

from smara.core.startup.regex import regex
from smara.shapes import memory_json
from smara.surfaces.cli import output
from smara.texts import call_place, card_groups, few, memory_facts, memory_state, place, walk_size

if TYPE_CHECKING:  # a command that lists tasks must not load the models of the code graph
    from smara.codegraph.models import Hop, ImpactWalk, Node, SymbolCard
    from smara.core.freshness import Freshness
    from smara.knowledge.models import TypedMemory
    from smara.links.models import CodeLink
    from smara.tasks.models import Task, TaskProgress, TreeNode

State = Literal["open", "in progress", "blocked", "closed"]
_MARKS: dict[str, tuple[str, str, str | None]] = {
    "open": ("○", "o", None), "in progress": ("◐", ">", "yellow"), "blocked": ("⊘", "!", "red"),
    "closed": ("✓", "x", "green"), "confirmed": ("✓", "+", "green"),
    "unconfirmed": ("○", "o", None), "observed": ("◇", "*", "yellow"),
    "quarantined": ("⚠", "!", "red"), "forgotten": ("✗", "x", None),
}  # fmt: skip
"""The sign of each state of a task and each trust of a memory, its plain form and its color."""
_PRIORITY_COLORS = {0: "red", 1: "yellow"}
_WIDEST_ID = 28
_NARROWEST_TITLE = 16
_BAR_CELLS = 12
_LINES_SHOWN = 2
_UNSURE = 0.75
_MOST_PLACES = 4
_FENCE = regex(r"`{3,}\w*")
TASK_COLUMNS = ("task", "status", "blocked", "priority", "type", "assignee", "labels", "title")
MEMORY_COLUMNS = (
    "memory", "type", "confidence", "trust", "state", "review", "source", "files", "evidence",
    "content",
)  # fmt: skip
WALK_COLUMNS = ("depth", "weight", "where", "name", "how")


def styled(text: str, **style: Any) -> str:
    """Return the text in a style, without empty escapes."""
    given = {name: value for name, value in style.items() if value}
    return click.style(text, **given) if text and given else text


def mark(name: str) -> str:
    """Return the colored mark of a task's state or memory's trust."""
    sign, plain, color = _MARKS[name]
    return styled(_or_plain(sign, plain), fg=color, bold=name == "in progress")


def legend(names: Iterable[str]) -> str:
    """Return the meaning of some marks, in the order of the table."""
    shown = set(names)
    return "  ".join(f"{mark(name)} {name}" for name in _MARKS if name in shown)


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    visible = (each for each in text if category(each) not in ("Mn", "Me", "Cf"))
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in visible)


def cut(text: str, room: int) -> str:
    """Return the text cut to a number of cells."""
    if cells(text) <= room:
        return text
    width, end = 1, 0
    while end < len(text) and (width := width + cells(text[end])) <= room:
        end += 1
    return text[:end].rstrip() + _or_plain("…", "~")


def _pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def _or_plain(sign: str, plain: str) -> str:
    return sign if output.encodable(sign) == sign else plain


def heading(title: str, more: str = "") -> None:
    """Print the title of a section of a card."""
    output.say()
    click.echo(f"  {styled(title, bold=output.is_terminal())}" + (f"  {more}" if more else ""))


def say_more(text: str) -> None:
    """Print a note: below the answer, or to standard error."""
    if output.is_terminal():
        output.say("", output.paragraph(text, "", ""), dim=True)
    else:
        click.echo(output.printable(text), err=True)


# Tasks


def state_of(task: Task, is_blocked: bool) -> State:
    """Return the state of a task, in one word or two."""
    states: dict[str, State] = {"closed": "closed", "in_progress": "in progress"}
    return states.get(task.status, "blocked" if is_blocked else "open")


def print_tasks(
    tasks: Sequence[Task], blocked: set[str], indent: str = "", is_numbered: bool = False
) -> None:
    """Print one line for each task, in a pipe one row.

    ``blocked`` has the ids of blocked ones.
    """
    if not output.is_terminal():
        output.table(
            TASK_COLUMNS,
            [
                (
                    task.short_id,
                    task.status,
                    "yes" if task.id in blocked else "",
                    task.priority,
                    task.type,
                    task.assignee,
                    ", ".join(task.labels),
                    task.title,
                )
                for task in tasks
            ],
        )
        return
    id_cells = min(_WIDEST_ID, max((cells(task.short_id) for task in tasks), default=0))
    for number, task in enumerate(tasks, 1):
        before = f"{indent}{number:>2}. " if is_numbered else indent
        name = _pad(output.printable(task.short_id), id_cells)
        holder = (
            f"@{output.short(task.assignee)}" if task.assignee and task.status != "closed" else ""
        )
        tail = output.printable(" ".join([holder, *(f"#{label}" for label in task.labels)]).strip())
        # A long title leaves its tail a third of the line.
        taken = len(before) + cells(name) + len("○   P0 feature ")
        room = max(output.terminal_width(at_most=120) - taken, _NARROWEST_TITLE)
        spare = max(room // 3, room - cells(output.printable(task.title)) - 2)
        tail = f"  {cut(tail, spare)}" if tail and spare > 3 else ""
        title = cut(output.printable(task.title), room - cells(tail))
        color, is_minor = _PRIORITY_COLORS.get(task.priority), task.priority > 2
        parts = [
            before + mark(state_of(task, task.id in blocked)),
            styled(name, bold=True),
            "",
            styled(f"P{task.priority}", fg=color, dim=is_minor),
            styled(f"{task.type:<7}", dim=True),
            title + styled(tail, dim=True),
        ]
        click.echo(" ".join(parts).rstrip())


def bar(progress: TaskProgress) -> str:
    """Return progress as a bar with its numbers."""
    done = _BAR_CELLS * progress.closed // progress.total if progress.total else 0
    full, empty = _or_plain("█", "#"), _or_plain("░", "-")
    drawn = styled(full * done, fg="green") + empty * (_BAR_CELLS - done)
    return f"{drawn} {progress.closed} of {progress.total} ({progress.percent} %)"


def print_branch(node: TreeNode, first: str = "", others: str = "") -> None:
    """Print a task and the tasks below it.

    ``first`` and ``others`` begin its lines.
    """
    task = node.task
    need = "needs " if node.relation == "needs" else ""
    more = _or_plain(" …", " ~") if node.is_repeated else ""
    numbers = f"  {node.progress.closed}/{node.progress.total}" if node.progress else ""
    taken = cells(f"{first}{need}○ {task.short_id}  {more}{numbers}")
    room = max(_NARROWEST_TITLE, output.terminal_width(at_most=120) - taken)
    click.echo(
        first
        + styled(need, dim=True)
        + f"{mark(state_of(task, node.is_blocked))} "
        + styled(output.printable(task.short_id), bold=True)
        + "  "
        + styled(cut(output.printable(task.title), room), dim=task.status == "closed")
        + styled(numbers, fg="green")
        + styled(more, dim=True)
    )
    for position, each in enumerate(node.nodes, 1):
        is_last = position == len(node.nodes)
        elbow = _or_plain("└─ ", "`- ") if is_last else _or_plain("├─ ", "|- ")
        print_branch(each, others + elbow, others + ("   " if is_last else _or_plain("│  ", "|  ")))


def changed(task: Task, sentence: str) -> None:
    """Print a change: a sentence on a terminal.

    Id, status and title in a pipe.
    """
    if output.is_terminal():
        output.say(output.paragraph(sentence, "", ""))
    else:
        output.row((task.short_id, task.status, task.title))


# Memories


def trust_of(memory: TypedMemory) -> str:
    """Return the name of a memory's mark: its trust, or forgotten."""
    return memory.tier if memory.is_active else "forgotten"


def code_line(code: Freshness | None) -> str:
    """Return the state of all code a memory names, in one line."""
    if code is None:
        return ""
    more = len(code.lines) - _MOST_PLACES
    return "; ".join(code.lines[:_MOST_PLACES]) + (f"; and {more} more" if more > 0 else "")


def print_memories(
    memories: Sequence[TypedMemory],
    worth: Mapping[str, float],
    is_in_review: bool = False,
    code: Mapping[str, Freshness] | None = None,
) -> None:
    """Print memories, in a pipe one row for each.

    ``worth`` is their confidence now and ``code`` the freshness of their code, by id.
    """
    shapes = [
        memory_json(each, worth.get(each.id, each.confidence), (code or {}).get(each.id))
        for each in memories
    ]
    if not output.is_terminal():
        output.table(
            MEMORY_COLUMNS,
            [
                (
                    each.short_id,
                    each.type,
                    f"{shape['confidenceNow']:.2f}",
                    each.tier,
                    memory_state(shape),
                    "; ".join(each.review_reasons) if each.needs_review else "",
                    each.source,
                    ", ".join(each.files),
                    ", ".join(map(str, each.evidence)),
                    each.content,
                )
                for each, shape in zip(memories, shapes, strict=True)
            ],
        )
        return
    id_cells = max((cells(each.short_id) for each in memories), default=0)
    indent = " " * (id_cells + 4)
    for each, shape in zip(memories, shapes, strict=True):
        is_gone = not each.is_active
        first, *others = shown_lines(each.content, output.terminal_width() - len(indent))
        name = styled(_pad(each.short_id, id_cells), bold=True)
        click.echo(f"{mark(trust_of(each))} {name}  {styled(first, dim=is_gone)}")
        for line in others:
            click.echo(f"{indent}{styled(line, dim=is_gone)}")
        output.say(
            output.paragraph(
                output.printable(memory_facts(shape, is_in_review, is_local=True)), indent, indent
            ),
            dim=True,
        )
        if is_in_review and each.review_reasons:
            output.say(
                output.paragraph("; ".join(each.review_reasons), indent, indent), fg="yellow"
            )


def shown_lines(text: str, width: int) -> list[str]:
    """Return the first two lines of a text, wrapped.

    Code blocks lose their marks.
    """
    import textwrap

    plain = " ".join(_FENCE.sub(" ", output.printable(text)).split())
    lines = textwrap.wrap(
        plain, max(20, width), break_on_hyphens=False, max_lines=_LINES_SHOWN, placeholder=" …"
    )
    return [cut(line, max(20, width)) for line in lines] or [""]


def memories_changed(memories: Iterable[TypedMemory], verb: str) -> None:
    """Print changed memories: sentences on a terminal.

    Id, state and content in a pipe.
    """
    for each in memories:
        if output.is_terminal():
            output.say(
                "\n  ".join(
                    shown_lines(
                        f"{verb} {each.short_id}: {each.content}", output.terminal_width() - 2
                    )
                )
            )
        else:
            output.row((each.short_id, memory_state(memory_json(each)), each.content))


# Code


def _way(path: Sequence[Hop], is_backward: bool) -> str:
    """Return a path such as ``calls post → calls login``, or with ``←`` forward."""
    steps = []
    for hop in path:
        is_sure = hop.kind == "contains" or (hop.source != "guess" and hop.confidence >= _UNSURE)
        words = [hop.kind if is_sure else f"{hop.kind}?", hop.node.qualname or hop.node.path]
        steps.append(" ".join(words if is_backward else reversed(words)))
    return (" → " if is_backward else " ← ").join(steps)


def print_walk(walk: ImpactWalk, one: str, many: str, is_backward: bool) -> None:
    """Print a walk: its targets, its size and a table.

    In a pipe the table alone.
    """
    rows = [
        (
            each.depth,
            f"{each.weight:.2f}",
            call_place(each) if is_backward else place(each.node),
            each.node.qualname,
            _way(each.path, is_backward),
        )
        for each in walk.reached
    ]
    if not output.is_terminal():
        output.table(WALK_COLUMNS, rows)
        return
    output.print_lines(map(node_heading, walk.targets[:3]), bold=True)
    if len(walk.targets) > 3:
        output.say(f"and {len(walk.targets) - 3} more files", bold=True)
    if names := [node.label for node in walk.overrides]:
        output.say(f"It overrides {few(names)}: calls of that may reach it.")
    if names := [node.label for node in walk.overridden_by]:
        output.say(f"It is overridden by {few(names)}.")
    output.say(f"{walk_size(walk, one, many)}.")
    if walk.total:
        output.say()
        output.table(WALK_COLUMNS, rows, folding=("where", "name", "how"), wide=("name", "weight"))
    if walk.is_cut:
        output.say("", f"{len(walk.reached)} of {walk.total} shown; --limit shows more.", dim=True)


def node_heading(node: Node) -> str:
    """Return a node as ``src/auth.py:Session.login  method, lines 20-44``."""
    if node.kind == "file":
        return f"{node.path}  file, {node.last_line} lines"
    return f"{node.label}  {node.kind}, lines {node.first_line}-{node.last_line}"


def print_card(card: SymbolCard, links: Sequence[CodeLink]) -> None:
    """Print a node with its callers, tests and memories."""
    node = card.node
    output.say(node_heading(node), bold=True)
    if node.signature:
        output.say(" ".join(node.signature.split()))
    if node.doc:
        output.say(output.paragraph(" ".join(node.doc.split()), "", ""), dim=True)
    facts = [output.count(card.dependents, "dependent")]
    facts += [f"changed in {output.count(card.commits, 'commit')}"] if card.commits else []
    facts += ["being indexed"] if node.is_stale else []
    output.say(", ".join(facts) + ".")
    for title, lines in (("memories", [link.line for link in links]), *card_groups(card)):
        if lines:
            output.say("", title, bold=True)
        output.print_lines(f"  {line.rstrip()}" for line in lines)
