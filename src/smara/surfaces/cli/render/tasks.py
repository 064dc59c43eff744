"""Render tasks as lines of a terminal.

Marks, colors, bars and trees fit the width of the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal
from unicodedata import category, east_asian_width

import click

from smara.surfaces.cli import output
from smara.tasks.models import Task, TaskProgress, TreeNode

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
    """Return the state of a task, in one word or two."""
    if task.status == "closed":
        return "closed"
    if task.status == "in_progress":
        return "in progress"
    return "blocked" if is_blocked else "open"


def mark(state: State) -> str:
    """Return the mark of a state, in its color."""
    sign, plain, color = _MARKS[state]
    return styled(_or_plain(sign, plain), fg=color, bold=state == "in progress")


def print_lines(
    tasks: Sequence[Task], blocked: set[str], indent: str = "", is_numbered: bool = False
) -> None:
    """Print one line for each task.

    ``blocked`` has the ids of blocked ones.
    """
    id_cells = min(_WIDEST_ID, max((cells(task.short_id) for task in tasks), default=0))
    for number, task in enumerate(tasks, 1):
        before = f"{indent}{number:>2}. " if is_numbered else indent
        click.echo(before + line(task, task.id in blocked, id_cells, taken=len(before)))


def line(task: Task, is_blocked: bool, id_cells: int = 0, taken: int = 0) -> str:
    """Return a task in one line; ``taken`` cells are used before it."""
    state = state_of(task, is_blocked)
    name = pad(output.printable(task.short_id), id_cells)
    holder = f"@{task.assignee}" if task.assignee and task.status != "closed" else ""
    tail = output.printable(" ".join([holder, *(f"#{label}" for label in task.labels)]).strip())
    # A long title leaves its tail a third of the line.
    room = max(_width() - taken - cells(name) - len("○   P0 feature "), _NARROWEST_TITLE)
    spare = max(room // 3, room - cells(output.printable(task.title)) - 2)
    tail = f"  {cut(tail, spare)}" if tail and spare > 3 else ""
    title = cut(output.printable(task.title), room - cells(tail))
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
    """Return the text in a style, without empty escapes."""
    given = {name: value for name, value in style.items() if value}
    return click.style(text, **given) if text and given else text


def legend() -> str:
    """Return the meaning of the marks."""
    return "  ".join(f"{mark(state)} {state}" for state in _MARKS)


def bar(progress: TaskProgress) -> str:
    """Return progress as a bar with its numbers."""
    done = _BAR_CELLS * progress.closed // progress.total if progress.total else 0
    full, empty = _or_plain("█", "#"), _or_plain("░", "-")
    drawn = styled(full * done, fg="green") + empty * (_BAR_CELLS - done)
    return f"{drawn} {progress.closed} of {progress.total} ({progress.percent} %)"


def print_tree(nodes: Iterable[TreeNode]) -> None:
    """Print trees of tasks."""
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
    """Print a note: below the answer, or to standard error."""
    if output.is_terminal():
        output.say()
        output.say(output.paragraph(text, "", ""), dim=True)
    else:
        click.echo(output.printable(text), err=True)


def changed(task: Task, sentence: str) -> None:
    """Print a change: a sentence on a terminal.

    Id, status and title in a pipe.
    """
    if output.is_terminal():
        output.say(output.paragraph(sentence, "", ""))
    else:
        output.row((task.short_id, task.status, task.title))


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return sum(_cells(character) for character in text) if not text.isascii() else len(text)


def cut(text: str, room: int) -> str:
    """Return the text cut to a number of cells."""
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
    """Return the text padded to a number of cells."""
    return text + " " * (width - cells(text))


def _cells(character: str) -> int:
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def _width() -> int:
    return output.terminal_width(at_most=120)


def _or_plain(sign: str, plain: str) -> str:
    return sign if output.encodable(sign) == sign else plain


def columns(tasks: Iterable[Task], blocked: set[str]) -> list[tuple[Any, ...]]:
    """Return tasks as rows for a pipe; see ``COLUMNS``."""
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
