"""One task as a card: what it is, then what stands around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from smara.links.models import LinkedMessage
from smara.surfaces.cli import output, task_lines
from smara.tasks.models import Task, TaskDetails

_ITEM = re.compile(r"\s*((?:[-*+]|\d+[.)])\s+)\S")
"""A list item; its further lines stand below its first word."""

MESSAGES_SHOWN = 5
"""The newest that many messages of a task are on its card."""


def print_card(
    details: TaskDetails, messages: Sequence[LinkedMessage], blocked: set[str], is_full: bool
) -> None:
    """Print a task; ``blocked`` holds the ids of the tasks around it that wait for others."""
    if not output.is_terminal():
        _print_facts(details, is_full)
        return
    task = details.task
    head = f"{task.short_id}  {task.title}"
    click.echo(f"{task_lines.mark(task_lines.state_of(task, details.is_blocked))} ", nl=False)
    output.say(output.paragraph(head, "", "  ").lstrip(), bold=True)
    for line in _facts(details):
        output.say(output.paragraph(line, "  ", "  "), dim=True)
    _print_text(task, is_full)
    for title, tasks in _around(details):
        _print_section(title, tasks, blocked)
    if messages:
        count = len(details.linked_message_ids)
        _heading("Messages", "" if count <= len(messages) else f"the newest of {count}")
        for each in messages:
            _print_message(each)


def _facts(details: TaskDetails) -> list[str]:
    task = details.task
    state = task_lines.state_of(task, details.is_blocked)
    who = f"@{task.assignee}" if task.assignee else ""
    session = f"session {task.session_id}" if task.session_id else ""
    first = [
        f"P{task.priority} {task.type}",
        state,
        who,
        session,
        *(f"#{label}" for label in task.labels),
    ]
    made = f"made {output.moment(task.created_at)}" + (
        f" by {task.created_by}" if task.created_by else ""
    )
    moved = [made, f"changed {output.moment(task.updated_at)}"]
    if task.closed_at is not None:
        moved.append(f"closed {output.moment(task.closed_at)} ({task.close_reason})")
    return [" · ".join(filter(None, first)), " · ".join(moved)]


def _print_text(task: Task, is_full: bool) -> None:
    text = task.full_description if is_full else task.description
    if text.strip():
        output.say()
        for line in text.replace("\r\n", "\n").rstrip().split("\n"):
            indent = " " * (2 + len(line) - len(line.lstrip()))
            item = _ITEM.match(line)
            output.say(
                output.paragraph(
                    line.strip(), indent, indent + " " * len(item[1] if item else "")
                ).rstrip()
            )
    if task.is_compacted and not is_full:
        output.say()
        output.say(
            f"  Shortened; --full shows all {len(task.full_description):,} characters.", dim=True
        )
    if task.summary:
        _heading("Summary")
        output.say(output.paragraph(" ".join(task.summary.split()), "    ", "    "))


def _around(details: TaskDetails) -> list[tuple[str, Sequence[Task]]]:
    children = {task.id for task in details.children}
    parents = {task.id for task in details.parents}
    title = "Children"
    if details.progress is not None:
        title = f"Children\t{task_lines.bar(details.progress)}"
    return [
        ("Blocked by", [task for task in details.blocking_tasks if task.id not in children]),
        (title, details.children),
        ("Blocks", [task for task in details.dependents if task.id not in parents]),
        ("Part of", details.parents),
        ("Related", details.related),
    ]


def _print_section(title: str, tasks: Sequence[Task], blocked: set[str]) -> None:
    if tasks:
        name, _, more = title.partition("\t")
        _heading(name, more)
        task_lines.print_lines(tasks, blocked, "    ")


def _heading(title: str, more: str = "") -> None:
    output.say()
    click.echo(f"  {click.style(title, bold=True)}" + (f"  {more}" if more else ""))


def _print_message(linked: LinkedMessage) -> None:
    message = linked.message
    output.say(
        f"    {message.role} · {message.thread_id}:{message.seq} · "
        f"{output.moment(message.created_at)}"
        f" · {linked.relation}"
    )
    text = output.short(message.raw_content, output.terminal_width() - 6)
    output.say(f"      {text}", dim=True)


def _print_facts(details: TaskDetails, is_full: bool) -> None:
    """Names and values, one a line, then the text as it is."""
    task = details.task
    rows: list[tuple[str, Any]] = [
        ("task", task.short_id),
        ("uuid", task.id),
        ("title", task.title),
        ("status", task.status),
        ("blocked", "yes" if details.is_blocked else "no"),
        ("priority", task.priority),
        ("type", task.type),
        ("assignee", task.assignee),
        ("session", task.session_id),
        ("labels", ", ".join(task.labels)),
        ("created", output.moment(task.created_at)),
        ("created by", task.created_by),
        ("updated", output.moment(task.updated_at)),
        ("closed", "" if task.closed_at is None else output.moment(task.closed_at)),
        ("reason", task.close_reason),
        ("summary", task.summary),
        ("blocked by", _ids(details.blocking_tasks)),
        ("blocks", _ids(details.dependents)),
        ("children", _ids(details.children)),
        ("parents", _ids(details.parents)),
        ("related", _ids(details.related)),
        (
            "progress",
            f"{details.progress.closed}/{details.progress.total}" if details.progress else "",
        ),
        ("messages", " ".join(details.linked_message_ids)),
    ]
    for row in rows:
        output.row(row)
    text = task.full_description if is_full else task.description
    if text.strip():
        output.say()
        output.say(text)


def _ids(tasks: Sequence[Task]) -> str:
    return " ".join(task.short_id for task in tasks)
