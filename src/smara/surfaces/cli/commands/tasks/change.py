"""Define the commands that add, claim, update and close tasks."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from smara.errors import InvalidInputError, NotFoundError
from smara.shapes import task_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.tasks.show import (
    event_text,
    priority_of,
    task_argument,
    text_or_input,
    with_actor,
)
from smara.surfaces.cli.options import Invocation, Reply, common, complete_task, complete_thread
from smara.surfaces.cli.render import tasks
from smara.tasks.models import CLOSE_REASONS, DEFAULT_PRIORITY, TYPES


@click.command("add")
@click.argument("title")
@click.option(
    "--description",
    "-d",
    metavar="TEXT|-",
    default="",
    help="The description; - reads standard input.",
)
@click.option("--type", "type_", type=click.Choice(TYPES), default="task", show_default=True)
@click.option(
    "--priority",
    "-p",
    type=priority_of,
    metavar="0-4",
    default=DEFAULT_PRIORITY,
    show_default=True,
    help="0 is the most urgent; P0 is accepted, too.",
)
@click.option("--label", "-l", "labels", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--assignee", metavar="NAME", help="The person it is for.")
@click.option(
    "--parent", metavar="TASK", help="The task it is part of.", shell_complete=complete_task
)
@click.option(
    "--needs",
    metavar="TASK",
    multiple=True,
    help="A task that must be closed first; may be repeated.",
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
) -> Reply:
    """Add a task and print its id."""
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
    yield task_json(task)
    tasks.changed(task, f"Added {task.short_id}: {task.title}")


@click.command("close")
@task_argument
@click.option(
    "--summary", "-s", metavar="TEXT|-", help="What was done, where, and what was learned."
)
@click.option("--reason", type=click.Choice(CLOSE_REASONS), default="completed", show_default=True)
@click.option("--force", is_flag=True, help="Close it even if another session works on it.")
@common
@with_actor
def close(
    call: Invocation,
    who: dict[str, Any],
    task_id: str,
    summary: str | None,
    reason: Any,
    force: bool,
) -> Reply:
    """Close a task with a summary of the result."""
    text = text_or_input(summary)
    if text is None:
        if call.as_json or not (sys.stdin.isatty() and output.is_terminal()):
            raise InvalidInputError(
                "Closing a task needs a summary: --summary TEXT says what was done, where, and "
                "what was learned; --summary - reads it from standard input."
            )
        with call.memory() as memory:
            memory.tasks.get(task_id)  # an unknown task is reported before the summary is typed
        text = click.prompt("What was done, where, and what was learned")
    with call.memory() as memory:
        before = {task.id for task in memory.tasks.show(task_id).dependents}
        task = memory.tasks.close(task_id, text, reason=reason, force=force, **who)
        ready = memory.tasks.ready(limit=1000) if before else ()
        freed = [each.short_id for each in ready if each.id in before]
    more = f" Ready now: {', '.join(freed)}." if freed else ""
    yield task_json(task)
    tasks.changed(task, f"Closed {task.short_id}: {task.title}.{more}")


@click.command("reopen")
@task_argument
@common
@with_actor
def reopen(call: Invocation, who: dict[str, Any], task_id: str) -> Reply:
    """Reopen a closed task; its summary stays."""
    with call.memory() as memory:
        task = memory.tasks.reopen(task_id, **who)
    yield task_json(task)
    tasks.changed(task, f"Reopened {task.short_id}: {task.title}")


@click.command("update")
@task_argument
@click.option("--title", metavar="TEXT")
@click.option("--description", "-d", metavar="TEXT|-", help="- reads standard input.")
@click.option("--priority", "-p", type=priority_of, metavar="0-4")
@click.option("--type", "type_", type=click.Choice(TYPES))
@click.option("--add-label", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--remove-label", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--assignee", metavar="NAME", help="The person it is for; empty for no one.")
@click.option(
    "--meta",
    metavar="KEY=VALUE",
    multiple=True,
    help="Metadata: JSON or text; KEY= removes the key; may be repeated.",
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
) -> Reply:
    """Change the named fields of a task."""
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
            "Nothing to change: give --title, --description, --priority, --type, --add-label …"
        )
    with call.memory() as memory:
        before = memory.tasks.get(task_id)
        if add_label or remove_label:
            fields["labels"] = sorted((set(before.labels) | set(add_label)) - set(remove_label))
        task = memory.tasks.update(task_id, **fields, **who)
        is_new = task.updated_at != before.updated_at or task_json(task) != task_json(before)
    yield task_json(task)
    tasks.changed(task, f"{'Changed' if is_new else 'Unchanged:'} {task.short_id}: {task.title}")


def _pair(given: str) -> tuple[str, Any]:
    key, equals, value = given.partition("=")
    if not equals or not key.strip():
        raise InvalidInputError(
            f"--meta {given!r} has no key and value. Give KEY=VALUE, or KEY= to remove a key."
        )
    try:
        return key.strip(), json.loads(value) if value else None
    except ValueError:
        return key.strip(), value


@click.command("undo")
@task_argument
@click.option("--force", is_flag=True, help="Undo it even if another session works on the task.")
@common
@with_actor
def undo(call: Invocation, who: dict[str, Any], task_id: str, force: bool) -> Reply:
    """Undo the last change of a task.

    Repeat it to go further back.
    """
    with call.memory() as memory:
        task = memory.tasks.undo(task_id, force=force, **who)
        newest = memory.tasks.history(task.id, limit=1)
    change = f" ({event_text(newest[0])})" if newest and event_text(newest[0]) else ""
    yield task_json(task)
    tasks.changed(task, f"Reverted the last change of {task.short_id}{change}.")


@click.command("compact")
@common
def compact(call: Invocation) -> Reply:
    """Shorten tasks that were closed long ago.

    Their full text stays stored and searchable.
    """
    count = 0
    with call.memory() as memory:
        while done := memory.tasks.compact():
            count += done
    yield {"tasksCompacted": count}
    output.say(
        f"Compacted {output.count(count, 'task')}. `smara tasks restore TASK` shows one in full."
    )


@click.command("restore")
@task_argument
@common
@with_actor
def restore(call: Invocation, who: dict[str, Any], task_id: str) -> Reply:
    """Show a compacted task in full again."""
    with call.memory() as memory:
        task = memory.tasks.restore(task_id, **who)
    yield task_json(task)
    tasks.changed(task, f"Restored {task.short_id}: {task.title}")


@click.command("claim")
@click.argument("task_id", metavar="[TASK]", required=False, shell_complete=complete_task)
@click.option("--next", "is_next", is_flag=True, help="Claim the first ready task.")
@click.option(
    "--type", "type_", type=click.Choice(TYPES), help="With --next: only tasks of this type."
)
@click.option("--label", metavar="TEXT", help="With --next: only tasks with this label.")
@click.option(
    "--thread",
    "thread_id",
    metavar="ID",
    shell_complete=complete_thread,
    help="Link new messages of this thread to the task.",
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
) -> Reply:
    """Claim a ready task for yourself.

    Claiming it again is not an error.
    """
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
            else memory.tasks.claim_next(type=type_, label=label, **who)
        )
        if task is None:
            totals = memory.tasks.totals()
            raise NotFoundError(
                f"No{' such' if type_ or label else ''} task is ready: {totals.in_progress:,} in "
                f"progress, {totals.blocked:,} blocked. `smara tasks list` shows them."
            )
        # Who claimed it before keeps it; the thread is linked in any case.
        task = memory.links.claim(task.id, thread_id=thread_id, **who)
    yield task_json(task)
    tasks.changed(
        task,
        f"Claimed {task.short_id}: {task.title}. `smara tasks show {task.short_id}` shows details.",
    )


@click.command("release")
@task_argument
@click.option("--to", "to_session", metavar="SESSION", help="Hand it over to this session.")
@click.option("--to-assignee", metavar="NAME", help="Hand it over to this person.")
@click.option("--force", is_flag=True, help="Release it even if another session holds it.")
@common
@with_actor
def release(
    call: Invocation,
    who: dict[str, Any],
    task_id: str,
    to_session: str | None,
    to_assignee: str | None,
    force: bool,
) -> Reply:
    """Release a claimed task, or hand it over."""
    with call.memory() as memory:
        if to_session is not None or to_assignee is not None:
            task = memory.tasks.hand_over(
                task_id, to_session=to_session, to_assignee=to_assignee, force=force, **who
            )
        else:
            task = memory.tasks.release(task_id, force=force, **who)
    yield task_json(task)
    how = f"Handed over to {task.holder}:" if task.holder else "Released"
    tasks.changed(task, f"{how} {task.short_id}: {task.title}")
