"""Define the commands that change tasks: add, claim, close, depend, link."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from smara.errors import InvalidInputError, NotFoundError
from smara.memory import Memory
from smara.shapes import task_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.tasks.show import event_text, priority_of, task_argument
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    actor_option,
    common,
    complete_task,
    complete_thread,
    find_message,
    text_or_input,
    together,
    with_memory,
)
from smara.surfaces.cli.render import changed
from smara.tasks.models import CLOSE_REASONS, DEFAULT_PRIORITY, DEPENDENCY_TYPES, RELATIONS, TYPES

with_actor = together(
    actor_option,
    click.option(
        "--session",
        "session_id",
        metavar="ID",
        help="The agent session that does it; also SMARA_SESSION.",
    ),
)


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
@with_memory
@with_actor
def add(
    memory: Memory,
    title: str,
    description: str,
    type_: Any,
    priority: int,
    labels: tuple[str, ...],
    assignee: str | None,
    parent: str | None,
    needs: tuple[str, ...],
    **who: Any,
) -> Reply:
    """Add a task and print its id."""
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
    changed(task, f"Added {task.short_id}: {task.title}")


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
    task_id: str,
    summary: str | None,
    reason: Any,
    force: bool,
    **who: Any,
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
        freed = [
            each.short_id
            for each in (memory.tasks.ready(limit=1000) if before else ())
            if each.id in before
        ]
    more = f" Ready now: {', '.join(freed)}." if freed else ""
    yield task_json(task)
    changed(task, f"Closed {task.short_id}: {task.title}.{more}")


def _revive(name: str, verb: str, help: str) -> click.Command:
    """Return the command that brings a task back by the method of its name."""

    @task_argument
    @with_memory
    @with_actor
    def revive(memory: Memory, task_id: str, **who: Any) -> Reply:
        task = getattr(memory.tasks, name)(task_id, **who)
        yield task_json(task)
        changed(task, f"{verb} {task.short_id}: {task.title}")

    return click.command(name, help=help)(revive)


reopen = _revive("reopen", "Reopened", "Reopen a closed task; its summary stays.")
restore = _revive("restore", "Restored", "Show a compacted task in full again.")


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
    task_id: str,
    title: str | None,
    description: str | None,
    priority: int | None,
    type_: Any,
    add_label: tuple[str, ...],
    remove_label: tuple[str, ...],
    assignee: str | None,
    meta: tuple[str, ...],
    **who: Any,
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
    changed(task, f"{'Changed' if is_new else 'Unchanged:'} {task.short_id}: {task.title}")


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
@with_memory
@with_actor
def undo(memory: Memory, task_id: str, force: bool, **who: Any) -> Reply:
    """Undo the last change of a task.

    Repeat it to go further back.
    """
    task = memory.tasks.undo(task_id, force=force, **who)
    newest = memory.tasks.history(task.id, limit=1)
    change = f" ({event_text(newest[0])})" if newest and event_text(newest[0]) else ""
    yield task_json(task)
    changed(task, f"Reverted the last change of {task.short_id}{change}.")


@click.command("compact")
@with_memory
def compact(memory: Memory) -> Reply:
    """Shorten tasks that were closed long ago.

    Their full text stays stored and searchable.
    """
    count = 0
    while done := memory.tasks.compact():
        count += done
    yield {"tasksCompacted": count}
    output.say(
        f"Compacted {output.count(count, 'task')}. `smara tasks restore TASK` shows one in full."
    )


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
    task_id: str | None,
    is_next: bool,
    type_: Any,
    label: str | None,
    thread_id: str | None,
    **who: Any,
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
    changed(
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
    task_id: str,
    to_session: str | None,
    to_assignee: str | None,
    force: bool,
    **who: Any,
) -> Reply:
    """Release a claimed task, or hand it over.

    SESSION is a session of an agent, or the beginning of its id; `smara threads
    list` has them.
    """
    with call.memory() as memory:
        if to_session is not None and memory.threads.find(to_session) is None:
            call.warnings.append(
                f"No session {to_session!r} was seen here yet. `smara threads list` has those that "
                "were."
            )
        if to_session is not None or to_assignee is not None:
            task = memory.tasks.hand_over(
                task_id, to_session=to_session, to_assignee=to_assignee, force=force, **who
            )
        else:
            task = memory.tasks.release(task_id, force=force, **who)
    yield task_json(task)
    how = f"Handed over to {output.short(task.holder)}:" if task.holder else "Released"
    changed(task, f"{how} {task.short_id}: {task.title}")


_needed_argument = click.argument("depends_on", metavar="NEEDED", shell_complete=complete_task)
_DEPENDENCY_ADDED = {
    "blocks": "{0} is now blocked until {1} is closed.",
    "parent-child": "{0} is now a child of {1}.",
    "related": "{0} is now related to {1}.",
}


dep = click.Group("dep", help="Add or remove dependencies: TASK needs NEEDED.")


@dep.command("add")
@task_argument
@_needed_argument
@click.option(
    "--type",
    "type_",
    type=click.Choice(DEPENDENCY_TYPES),
    default="blocks",
    show_default=True,
    help="parent-child: NEEDED is the parent.",
)
@with_memory
@with_actor
def add_dependency(memory: Memory, task_id: str, depends_on: str, type_: Any, **who: Any) -> Reply:
    """Make TASK depend on NEEDED. A cycle is refused, with its path."""
    task = memory.tasks.depend(task_id, depends_on, type=type_, **who)
    other = memory.tasks.get(depends_on)
    yield task_json(task)
    changed(task, _DEPENDENCY_ADDED[type_].format(task.short_id, other.short_id))


@dep.command("remove")
@task_argument
@_needed_argument
@click.option(
    "--type",
    "type_",
    type=click.Choice(DEPENDENCY_TYPES),
    help="Remove only this type; by default all.",
)
@with_memory
@with_actor
def remove_dependency(
    memory: Memory, task_id: str, depends_on: str, type_: Any, **who: Any
) -> Reply:
    """Remove the dependency of TASK on NEEDED."""
    before = memory.tasks.get(task_id)
    task = memory.tasks.undepend(task_id, depends_on, type=type_, **who)
    other = memory.tasks.get(depends_on)
    yield task_json(task)
    was_there = len(task.dependencies) < len(before.dependencies)
    verb = "no longer depends on" if was_there else "does not depend on"
    changed(task, f"{task.short_id} {verb} {other.short_id}.")


@click.command("link")
@task_argument
@click.argument("message_id", metavar="MESSAGE")
@click.option("--relation", type=click.Choice(RELATIONS), default="reference", show_default=True)
@click.option("--remove", "is_removed", is_flag=True, help="Remove the link.")
@with_memory
@with_actor
def link(
    memory: Memory,
    task_id: str,
    message_id: str,
    relation: Any,
    is_removed: bool,
    **who: Any,
) -> Reply:
    """Link a message to a task.

    MESSAGE is the id of a message, or THREAD:SEQ.
    """
    task = memory.tasks.get(task_id)
    message = find_message(memory, message_id)
    if is_removed:
        memory.links.remove(task.id, message.id, **who)
    else:
        memory.links.add(task.id, message.id, relation=relation, **who)
    yield {
        "taskId": task.short_id,
        "messageId": message.id,
        "relation": None if is_removed else relation,
    }
    if output.is_terminal():
        name = f"{message.thread_id}:{message.seq}"
        how = f"Unlinked {name} from" if is_removed else f"Linked {name} ({relation}) to"
        output.say(output.paragraph(f"{how} {task.short_id}: {task.title}", "", ""))
    else:
        output.row((task.short_id, message.id, "" if is_removed else relation))
