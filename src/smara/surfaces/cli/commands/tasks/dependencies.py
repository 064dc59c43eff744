"""Define `smara tasks dep`, `link` and `tree`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import click

from smara.surfaces.cli import output
from smara.surfaces.cli.commands.tasks.show import task_argument, with_actor
from smara.surfaces.cli.options import Invocation, common, complete_task, find_message
from smara.surfaces.cli.render import tasks
from smara.surfaces.cli.render.tasks import mention_json, node_json, task_json
from smara.tasks.models import DEPENDENCY_TYPES, RELATIONS, Task, TreeNode

_needed_argument = click.argument("depends_on", metavar="NEEDED", shell_complete=complete_task)
_SAID = {
    "blocks": "{0} needs {1}: it waits until that is closed.",
    "parent-child": "{0} is part of {1}.",
    "related": "{0} is related to {1}.",
}


@click.group("dep")
def dep() -> None:
    """What needs what: TASK needs NEEDED."""


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
@common
@with_actor
def add(call: Invocation, who: dict[str, Any], task_id: str, depends_on: str, type_: Any) -> None:
    """TASK needs NEEDED. A circle is refused, and its path shown."""
    with call.memory() as memory:
        task = memory.tasks.depend(task_id, depends_on, type=type_, **who)
        other = memory.tasks.get(depends_on)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(task_json(task), warnings)
        return
    output.warn(warnings)
    tasks.changed(task, _SAID[type_].format(task.short_id, other.short_id))


@dep.command("remove")
@task_argument
@_needed_argument
@click.option(
    "--type",
    "type_",
    type=click.Choice(DEPENDENCY_TYPES),
    help="Only this; without it, all between them.",
)
@common
@with_actor
def remove(
    call: Invocation, who: dict[str, Any], task_id: str, depends_on: str, type_: Any
) -> None:
    """TASK no longer needs NEEDED."""
    with call.memory() as memory:
        before = memory.tasks.get(task_id)
        task = memory.tasks.undepend(task_id, depends_on, type=type_, **who)
        other = memory.tasks.get(depends_on)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(task_json(task), warnings)
        return
    output.warn(warnings)
    was_there = len(task.dependencies) < len(before.dependencies)
    said = "no longer depends on" if was_there else "does not depend on"
    tasks.changed(task, f"{task.short_id} {said} {other.short_id}.")


@click.command("link")
@task_argument
@click.argument("message_id", metavar="MESSAGE")
@click.option("--relation", type=click.Choice(RELATIONS), default="reference", show_default=True)
@click.option("--remove", "is_removed", is_flag=True, help="Take the link away.")
@common
@with_actor
def link(
    call: Invocation,
    who: dict[str, Any],
    task_id: str,
    message_id: str,
    relation: Any,
    is_removed: bool,
) -> None:
    """Connect a message of the past with a task.

    THREAD:SEQ works as well as the id of a message.
    """
    with call.memory() as memory:
        task = memory.tasks.get(task_id)
        message = find_message(memory, message_id)
        if is_removed:
            memory.links.remove(task.id, message.id, **who)
        else:
            memory.links.add(task.id, message.id, relation=relation, **who)
        warnings = memory.warnings
    if call.as_json:
        data = {
            "taskId": task.short_id,
            "messageId": message.id,
            "relation": None if is_removed else relation,
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    if output.is_terminal():
        how = "is not linked any more to" if is_removed else f"is linked ({relation}) to"
        output.say(
            output.paragraph(
                f"{message.thread_id}:{message.seq} {how} {task.short_id}: {task.title}", "", ""
            )
        )
    else:
        output.row((task.short_id, message.id, "" if is_removed else relation))


@click.command("tree")
@click.argument("task_id", metavar="[TASK]", required=False, shell_complete=complete_task)
@click.option(
    "--all",
    "with_closed",
    is_flag=True,
    help="Finished branches, too; for one task they always are.",
)
@click.option(
    "--critical", is_flag=True, help="The longest chain of tasks that wait for each other."
)
@common
def tree(call: Invocation, task_id: str | None, with_closed: bool, critical: bool) -> None:
    """Tasks with their children and what they need."""
    with call.memory() as memory:
        if critical:
            path = memory.tasks.critical_path(task_id)
            _show_path(call, path, memory.tasks.blocked(path))
            return
        nodes = memory.tasks.tree(task_id)
        warnings = memory.warnings
    if task_id is None and not with_closed:
        nodes = list(_unfinished(nodes))
    if call.as_json:
        output.envelope({"nodes": [node_json(node) for node in nodes]}, warnings)
        return
    output.warn(warnings)
    if not output.is_terminal():
        output.table(
            (
                "depth",
                "relation",
                "task",
                "status",
                "blocked",
                "priority",
                "type",
                "progress",
                "title",
            ),
            list(_rows(nodes)),
        )
    elif nodes:
        tasks.print_tree(nodes)
        output.say()
        click.echo(tasks.legend())
    else:
        output.say("Nothing is left to do. --all shows what is closed.")


def _unfinished(nodes: Iterable[TreeNode]) -> Iterator[TreeNode]:
    """The branches where something is left to do."""
    for node in nodes:
        below = tuple(_unfinished(node.nodes))
        if below or node.task.status != "closed":
            yield replace(node, nodes=below)


def _rows(nodes: Iterable[TreeNode], depth: int = 0) -> Iterator[tuple[object, ...]]:
    for node in nodes:
        task, progress = node.task, node.progress
        yield (
            depth,
            node.relation,
            task.short_id,
            task.status,
            "yes" if node.is_blocked else "",
            task.priority,
            task.type,
            f"{progress.closed}/{progress.total}" if progress else "",
            task.title,
        )
        yield from _rows(node.nodes, depth + 1)


def _show_path(call: Invocation, path: list[Task], blocked: set[str]) -> None:
    if call.as_json:
        output.envelope({"criticalPath": [mention_json(task) for task in path]})
    elif not output.is_terminal():
        output.table(tasks.COLUMNS, tasks.columns(path, blocked))
    elif path:
        tasks.print_lines(path, blocked, is_numbered=True)
        tasks.say_more(f"{len(path)} tasks that wait for each other, the first to do first.")
    else:
        output.say("Nothing waits for anything.")
