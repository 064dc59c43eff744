"""Render tasks as JSON and as lines of a terminal.

Marks, colors, bars and trees fit the width of the terminal. The JSON `id` is the short id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal
from unicodedata import category, east_asian_width

import click

from smara.search.models import TaskHit
from smara.surfaces.cli import output
from smara.tasks.models import Task, TaskDetails, TaskEvent, TaskProgress, TreeNode

State = Literal["open", "in progress", "blocked", "closed"]

_MARKS: dict[State, tuple[str, str, str | None]] = {
    "open": ("○", "o", None), "in progress": ("◐", ">", "yellow"), "blocked": ("⊘", "!", "red"),
    "closed": ("✓", "x", "green"),
}  # fmt: skip
_PRIORITY_COLORS = {0: "red", 1: "yellow"}
_WIDEST_ID = 28
_NARROWEST_TITLE = 16
_BAR_CELLS = 12


def state_of(task: Task, is_blocked: bool) -> State:
    """How a task stands, in one word or two."""
    if task.status == "closed":
        return "closed"
    if task.status == "in_progress":
        return "in progress"
    return "blocked" if is_blocked else "open"


def mark(state: State) -> str:
    """The mark of a state, in its color."""
    sign, plain, color = _MARKS[state]
    return styled(_or_plain(sign, plain), fg=color, bold=state == "in progress")


def print_lines(
    tasks: Sequence[Task], blocked: set[str], indent: str = "", is_numbered: bool = False
) -> None:
    """One line for each task; ``blocked`` holds the ids of those that wait for others."""
    id_cells = min(_WIDEST_ID, max((cells(task.short_id) for task in tasks), default=0))
    for number, task in enumerate(tasks, 1):
        before = f"{indent}{number:>2}. " if is_numbered else indent
        click.echo(before + line(task, task.id in blocked, id_cells, taken=len(before)))


def line(task: Task, is_blocked: bool, id_cells: int = 0, taken: int = 0) -> str:
    """A task in one line; ``taken`` cells stand before it."""
    state = state_of(task, is_blocked)
    name = pad(output.printable(task.short_id), id_cells)
    room = _width() - taken - cells(name) - len("○   P0 feature ")
    title, tail = _shared(output.printable(task.title), _tail(task), room)
    return " ".join(
        [
            mark(state),
            styled(name, bold=True),
            "",
            styled(
                f"P{task.priority}", fg=_PRIORITY_COLORS.get(task.priority), dim=task.priority > 2
            ),
            styled(f"{task.type:<7}", dim=True),
            title + styled(tail, dim=True),
        ]
    ).rstrip()


def styled(text: str, **style: Any) -> str:
    """The text in a style, without escapes that say nothing."""
    given = {name: value for name, value in style.items() if value}
    return click.style(text, **given) if text and given else text


def legend() -> str:
    """What the marks mean."""
    return "  ".join(f"{mark(state)} {state}" for state in _MARKS)


def bar(progress: TaskProgress) -> str:
    """How far something is: a bar, and the numbers."""
    done = _BAR_CELLS * progress.closed // progress.total if progress.total else 0
    full, empty = _or_plain("█", "#"), _or_plain("░", "-")
    drawn = styled(full * done, fg="green") + empty * (_BAR_CELLS - done)
    return f"{drawn} {progress.closed} of {progress.total} ({progress.percent} %)"


def print_tree(nodes: Iterable[TreeNode]) -> None:
    """Trees, their branches drawn."""
    for node in nodes:
        _branch(node, "", "")


def _branch(node: TreeNode, first: str, others: str) -> None:
    task = node.task
    state = state_of(task, node.is_blocked)
    need = "needs " if node.relation == "needs" else ""
    more = _or_plain(" …", " ~") if node.is_repeated else ""
    numbers = f"  {node.progress.closed}/{node.progress.total}" if node.progress else ""
    head = f"{first}{need}○ {task.short_id}  "
    room = max(_NARROWEST_TITLE, _width() - cells(head) - cells(more) - cells(numbers))
    title = cut(output.printable(task.title), room)
    click.echo(
        first
        + styled(need, dim=True)
        + f"{mark(state)} "
        + styled(output.printable(task.short_id), bold=True)
        + "  "
        + styled(title, dim=task.status == "closed")
        + styled(numbers, fg="green")
        + styled(more, dim=True)
    )
    for position, each in enumerate(node.nodes, 1):
        is_last = position == len(node.nodes)
        elbow = _or_plain("└─ ", "`- ") if is_last else _or_plain("├─ ", "|- ")
        _branch(each, others + elbow, others + ("   " if is_last else _or_plain("│  ", "|  ")))


def say_more(text: str) -> None:
    """A remark about an answer: below it on a terminal, beside it in a pipe."""
    if output.is_terminal():
        output.say()
        output.say(output.paragraph(text, "", ""), dim=True)
    else:
        click.echo(output.printable(text), err=True)


def changed(task: Task, sentence: str) -> None:
    """Tell a change: a sentence on a terminal; id, status and title in a pipe."""
    if output.is_terminal():
        output.say(output.paragraph(sentence, "", ""))
    else:
        output.row((task.short_id, task.status, task.title))


def cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    return sum(_cells(character) for character in text) if not text.isascii() else len(text)


def cut(text: str, room: int) -> str:
    """The text in at most so many cells."""
    if cells(text) <= room:
        return text
    taken, kept = 1, []
    for character in text:
        taken += _cells(character)
        if taken > room:
            break
        kept.append(character)
    return "".join(kept).rstrip() + _or_plain("…", "~")


def pad(text: str, width: int) -> str:
    """The text with spaces up to so many cells."""
    return text + " " * (width - cells(text))


def _cells(character: str) -> int:
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def _tail(task: Task) -> str:
    holder = f"@{task.assignee}" if task.assignee and task.status != "closed" else ""
    return output.printable(" ".join([holder, *(f"#{label}" for label in task.labels)]).strip())


def _shared(title: str, tail: str, room: int) -> tuple[str, str]:
    """Title and tail in the room there is; a long tail gives way."""
    room = max(room, _NARROWEST_TITLE)
    spare = max(room // 3, room - cells(title) - 2)
    tail = f"  {cut(tail, spare)}" if tail and spare > 3 else ""
    return cut(title, room - cells(tail)), tail


def _width() -> int:
    return output.terminal_width(at_most=120)


def _or_plain(sign: str, plain: str) -> str:
    return sign if output.encodable(sign) == sign else plain


def columns(tasks: Iterable[Task], blocked: set[str]) -> list[tuple[Any, ...]]:
    """Tasks as rows for a pipe; see ``COLUMNS``."""
    return [
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
    ]


COLUMNS = ("task", "status", "blocked", "priority", "type", "assignee", "labels", "title")


def task_json(task: Task, is_full: bool = False) -> dict[str, Any]:
    """A task; ``is_full`` gives all that was written, also of a compacted one."""
    return {
        "id": task.short_id,
        "uuid": task.id,
        "title": task.title,
        "description": task.full_description if is_full else task.description,
        "status": task.status,
        "priority": task.priority,
        "type": task.type,
        "assignee": task.assignee,
        "sessionId": task.session_id,
        "labels": list(task.labels),
        "createdAt": task.created_at,
        "createdBy": task.created_by,
        "updatedAt": task.updated_at,
        "claimedAt": task.claimed_at,
        "closedAt": task.closed_at,
        "closeReason": task.close_reason,
        "summary": task.summary,
        "dependencies": [
            {"taskId": each.task, "dependsOnId": each.depends_on, "type": each.type}
            for each in task.dependencies
        ],
        "compactionLevel": task.compaction_level,
        "compactedAt": task.compacted_at,
        "metadata": dict(task.metadata),
    }


def mention_json(task: Task) -> dict[str, Any]:
    """A task that stands beside another."""
    return {
        "id": task.short_id,
        "uuid": task.id,
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "type": task.type,
        "assignee": task.assignee,
        "sessionId": task.session_id,
    }


def details_json(details: TaskDetails, is_full: bool = False) -> dict[str, Any]:
    """A task with what stands around it."""
    return {
        "task": task_json(details.task, is_full),
        "isBlocked": details.is_blocked,
        "blockingTasks": _mentions(details.blocking_tasks),
        "dependents": _mentions(details.dependents),
        "children": _mentions(details.children),
        "parents": _mentions(details.parents),
        "related": _mentions(details.related),
        "progress": progress_json(details.progress),
        "linkedMessageIds": list(details.linked_message_ids),
    }


def node_json(node: TreeNode) -> dict[str, Any]:
    """A task in a tree, with what is below it."""
    return {
        **mention_json(node.task),
        "relation": node.relation,
        "isBlocked": node.is_blocked,
        "progress": progress_json(node.progress),
        "isRepeated": node.is_repeated,
        "nodes": [node_json(each) for each in node.nodes],
    }


def progress_json(progress: TaskProgress | None) -> dict[str, int] | None:
    """How far the children of a task are."""
    if progress is None:
        return None
    return {"closed": progress.closed, "total": progress.total, "percent": progress.percent}


def event_json(event: TaskEvent) -> dict[str, Any]:
    """One change of a task."""
    return {
        "id": event.id,
        "kind": event.kind,
        "actor": event.actor,
        "sessionId": event.session_id,
        "at": event.at,
        "before": dict(event.before),
        "after": dict(event.after),
        "isUndone": event.is_undone,
    }


def task_hit_json(hit: TaskHit) -> dict[str, Any]:
    """A task that was found, and why."""
    return {
        "rank": hit.rank,
        "score": hit.score,
        "why": list(hit.why),
        "snippet": hit.snippet,
        "task": task_json(hit.task),
    }


def _mentions(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    return [mention_json(task) for task in tasks]
