"""Define the commands that add, claim, update and close tasks."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from smara.errors import InvalidInputError, NotFoundError
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.tasks.show import (
    event_text,
    priority_of,
    task_argument,
    text_or_input,
    with_actor,
)
from smara.surfaces.cli.options import Invocation, common, complete_task, complete_thread
from smara.surfaces.cli.render import tasks
from smara.surfaces.cli.render.tasks import task_json
from smara.tasks.models import CLOSE_REASONS, DEFAULT_PRIORITY, TYPES, Task


@click.command("add")
@click.argument("title")
@click.option(
    "--description",
    "-d",
    metavar="TEXT|-",
    default="",
    help="All there is to say; - reads standard input.",
)
@click.option("--type", "type_", type=click.Choice(TYPES), default="task", show_default=True)
@click.option(
    "--priority",
    "-p",
    type=priority_of,
    metavar="0-4",
    default=DEFAULT_PRIORITY,
    show_default=True,
    help="0 is the most urgent; P0 works, too.",
)
@click.option("--label", "-l", "labels", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--assignee", metavar="NAME", help="Who it is meant for.")
@click.option(
    "--parent", metavar="TASK", help="The task it is part of.", shell_complete=complete_task
)
@click.option(
    "--needs",
    metavar="TASK",
    multiple=True,
    help="A task that must be done first; may be repeated.",
    shell_complete=complete_task,
)
@common
@with_actor
def add(
    call: Invocation,
    who: dict[str, Any],
    title: str,
    description: str,
    type_: Any,
    priority: int,
    labels: tuple[str, ...],
    assignee: str | None,
    parent: str | None,
    needs: tuple[str, ...],
) -> None:
    """Add a task; its id is printed."""
    with call.memory() as memory:
        task = memory.tasks.add(
            title,
            description=text_or_input(description) or "",
            type=type_,
            priority=priority,
            labels=labels,
            assignee=assignee,
            parent=parent,
            depends_on=needs,
            **who,
        )
        _tell(call, memory, task, sentence=f"Added {task.short_id}: {task.title}")


@click.command("close")
@task_argument
@click.option(
    "--summary", "-s", metavar="TEXT|-", help="What was done, where, and what was learned."
)
@click.option("--reason", type=click.Choice(CLOSE_REASONS), default="completed", show_default=True)
@click.option("--force", is_flag=True, help="Also when somebody else works on it.")
@common
@with_actor
def close(
    call: Invocation,
    who: dict[str, Any],
    task_id: str,
    summary: str | None,
    reason: Any,
    force: bool,
) -> None:
    """Close a task, with a summary of what came of it."""
    said = text_or_input(summary)
    if said is None:
        said = _asked_for_summary(call, task_id)
    with call.memory() as memory:
        before = {task.id for task in memory.tasks.show(task_id).dependents}
        task = memory.tasks.close(task_id, said, reason=reason, force=force, **who)
        ready = memory.tasks.ready(limit=1000) if before else ()
        freed = [each.short_id for each in ready if each.id in before]
        more = f" Ready now: {', '.join(freed)}." if freed else ""
        _tell(call, memory, task, sentence=f"Closed {task.short_id}: {task.title}.{more}")


def _asked_for_summary(call: Invocation, task_id: str) -> str:
    if call.as_json or not (sys.stdin.isatty() and output.is_terminal()):
        raise InvalidInputError(
            "Closing a task needs a summary: --summary TEXT says what was done, where, and what "
            "was learned;"
            " --summary - reads it from standard input."
        )
    with call.memory() as memory:
        memory.tasks.get(task_id)  # nobody should write a summary of a task that is not there
    said: str = click.prompt("What was done, where, and what was learned")
    return said


@click.command("reopen")
@task_argument
@common
@with_actor
def reopen(call: Invocation, who: dict[str, Any], task_id: str) -> None:
    """Make a closed task open again; its summary stays."""
    with call.memory() as memory:
        task = memory.tasks.reopen(task_id, **who)
        _tell(call, memory, task, sentence=f"{task.short_id} is open: {task.title}")


@click.command("update")
@task_argument
@click.option("--title", metavar="TEXT")
@click.option("--description", "-d", metavar="TEXT|-", help="- reads standard input.")
@click.option("--priority", "-p", type=priority_of, metavar="0-4")
@click.option("--type", "type_", type=click.Choice(TYPES))
@click.option("--add-label", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--remove-label", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--assignee", metavar="NAME", help="Who it is meant for; empty for nobody.")
@click.option(
    "--meta",
    metavar="KEY=VALUE",
    multiple=True,
    help="Metadata; JSON where it is JSON, else text. KEY= takes the key out. May be repeated.",
)
@common
@with_actor
def update(
    call: Invocation,
    who: dict[str, Any],
    task_id: str,
    title: str | None,
    description: str | None,
    priority: int | None,
    type_: Any,
    add_label: tuple[str, ...],
    remove_label: tuple[str, ...],
    assignee: str | None,
    meta: tuple[str, ...],
) -> None:
    """Change what a task says; only what is named changes."""
    fields: dict[str, Any] = {
        "title": title,
        "description": text_or_input(description),
        "priority": priority,
        "type": type_,
        "assignee": assignee,
        "metadata": dict(map(_pair, meta)) if meta else None,
    }
    if not any(value is not None for value in fields.values()) and not (add_label or remove_label):
        raise InvalidInputError(
            "Say what to change: --title, --description, --priority, --type, --add-label …"
        )
    with call.memory() as memory:
        before = memory.tasks.get(task_id)
        if add_label or remove_label:
            fields["labels"] = sorted((set(before.labels) | set(add_label)) - set(remove_label))
        task = memory.tasks.update(task_id, **fields, **who)
        is_new = task.updated_at != before.updated_at or task_json(task) != task_json(before)
        _tell(
            call,
            memory,
            task,
            sentence=f"{'Changed' if is_new else 'Nothing new for'} {task.short_id}: {task.title}",
        )


def _pair(given: str) -> tuple[str, Any]:
    key, equals, value = given.partition("=")
    if not equals or not key.strip():
        raise InvalidInputError(
            f"--meta {given!r} has no key and value. Give KEY=VALUE, or KEY= to take a key out."
        )
    try:
        return key.strip(), json.loads(value) if value else None
    except ValueError:
        return key.strip(), value


@click.command("undo")
@task_argument
@click.option("--force", is_flag=True, help="Although somebody else is at the task.")
@common
@with_actor
def undo(call: Invocation, who: dict[str, Any], task_id: str, force: bool) -> None:
    """Take back the newest change of a task; again to go further back."""
    with call.memory() as memory:
        task = memory.tasks.undo(task_id, force=force, **who)
        newest = memory.tasks.history(task.id, limit=1)
        change = f" ({event_text(newest[0])})" if newest and event_text(newest[0]) else ""
        _tell(call, memory, task, sentence=f"Undone on {task.short_id}{change}.")


@click.command("compact")
@common
def compact(call: Invocation) -> None:
    """Shorten what is shown of tasks closed long ago.

    All that was written is kept, and found.
    """
    count = 0
    with call.memory() as memory:
        while done := memory.tasks.compact():
            count += done
        warnings = memory.warnings
    if call.as_json:
        output.envelope({"tasksCompacted": count}, warnings)
        return
    output.warn(warnings)
    output.say(f"{count:,} tasks shortened. `smara tasks restore TASK` shows one whole again.")


@click.command("restore")
@task_argument
@common
@with_actor
def restore(call: Invocation, who: dict[str, Any], task_id: str) -> None:
    """Show all of a compacted task again."""
    with call.memory() as memory:
        task = memory.tasks.restore(task_id, **who)
        _tell(call, memory, task, sentence=f"{task.short_id} is shown whole: {task.title}")


def _tell(call: Invocation, memory: Memory, task: Task, sentence: str) -> None:
    if call.as_json:
        output.envelope(task_json(task), memory.warnings)
        return
    output.warn(memory.warnings)
    tasks.changed(task, sentence)


@click.command("claim")
@click.argument("task_id", metavar="[TASK]", required=False, shell_complete=complete_task)
@click.option("--next", "is_next", is_flag=True, help="The first ready task, whichever that is.")
@click.option("--type", "type_", type=click.Choice(TYPES), help="With --next: only of this type.")
@click.option("--label", metavar="TEXT", help="With --next: only with this label.")
@click.option(
    "--thread",
    "thread_id",
    metavar="ID",
    shell_complete=complete_thread,
    help="Messages added to this thread from now on belong to the task.",
)
@common
@with_actor
def claim(
    call: Invocation,
    who: dict[str, Any],
    task_id: str | None,
    is_next: bool,
    type_: Any,
    label: str | None,
    thread_id: str | None,
) -> None:
    """Take a ready task, so that nobody else does. Claiming it again is no error."""
    if (task_id is None) is not is_next:
        raise InvalidInputError(
            "Give either the id of a task, or --next for the first that is ready."
        )
    if not is_next and (type_ or label):
        raise InvalidInputError(
            "--type and --label choose among ready tasks; give them together with --next."
        )
    with call.memory() as memory:
        task = (
            memory.tasks.get(task_id)
            if task_id is not None
            else _next(memory, type_, label, who=who)
        )
        # Whoever holds it already keeps it, and the thread is marked.
        task = memory.links.claim(task.id, thread_id=thread_id, **who)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(task_json(task), warnings)
        return
    output.warn(warnings)
    tasks.changed(
        task,
        f"{task.short_id} is yours: {task.title}. `smara tasks show {task.short_id}` tells more.",
    )


def _next(memory: Memory, type_: Any, label: str | None, who: dict[str, Any]) -> Task:
    task = memory.tasks.claim_next(type=type_, label=label, **who)
    if task is None:
        totals = memory.tasks.totals()
        raise NotFoundError(
            f"No task{' like that' if type_ or label else ''} is ready: {totals.in_progress:,} in "
            "progress,"
            f" {totals.blocked:,} blocked. `smara tasks list` shows them."
        )
    return task


@click.command("release")
@task_argument
@click.option("--to", "to_session", metavar="SESSION", help="Hand it over to this session.")
@click.option("--to-assignee", metavar="NAME", help="Hand it over to this person.")
@click.option("--force", is_flag=True, help="Also when somebody else holds it.")
@common
@with_actor
def release(
    call: Invocation,
    who: dict[str, Any],
    task_id: str,
    to_session: str | None,
    to_assignee: str | None,
    force: bool,
) -> None:
    """Give a claimed task back, or hand it over."""
    with call.memory() as memory:
        if to_session is not None or to_assignee is not None:
            task = memory.tasks.hand_over(
                task_id, to_session=to_session, to_assignee=to_assignee, force=force, **who
            )
        else:
            task = memory.tasks.release(task_id, force=force, **who)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(task_json(task), warnings)
        return
    output.warn(warnings)
    where = f"belongs to {task.holder} now" if task.holder else f"is {task.status}"
    tasks.changed(task, f"{task.short_id} {where}: {task.title}")
