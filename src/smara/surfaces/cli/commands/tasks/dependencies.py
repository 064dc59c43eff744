"""Define `smara tasks dep`, `link` and `tree`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import click

from smara.shapes import mention_json, progress_json, task_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.tasks.show import task_argument, with_actor
from smara.surfaces.cli.options import Invocation, Reply, common, complete_task, find_message
from smara.surfaces.cli.render import tasks
from smara.tasks.models import DEPENDENCY_TYPES, RELATIONS, TreeNode

_needed_argument = click.argument("depends_on", metavar="NEEDED", shell_complete=complete_task)
_SAID = {
    "blocks": "{0} is now blocked until {1} is closed.",
    "parent-child": "{0} is now a child of {1}.",
    "related": "{0} is now related to {1}.",
}


@click.group("dep")
def dep() -> None:
    """Add or remove dependencies: TASK needs NEEDED."""


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
def add(call: Invocation, who: dict[str, Any], task_id: str, depends_on: str, type_: Any) -> Reply:
    """Make TASK depend on NEEDED. A cycle is refused, with its path."""
    with call.memory() as memory:
        task = memory.tasks.depend(task_id, depends_on, type=type_, **who)
        other = memory.tasks.get(depends_on)
    yield task_json(task)
    tasks.changed(task, _SAID[type_].format(task.short_id, other.short_id))


@dep.command("remove")
@task_argument
@_needed_argument
@click.option(
    "--type",
    "type_",
    type=click.Choice(DEPENDENCY_TYPES),
    help="Remove only this type; by default all.",
)
@common
@with_actor
def remove(
    call: Invocation, who: dict[str, Any], task_id: str, depends_on: str, type_: Any
) -> Reply:
    """Remove the dependency of TASK on NEEDED."""
    with call.memory() as memory:
        before = memory.tasks.get(task_id)
        task = memory.tasks.undepend(task_id, depends_on, type=type_, **who)
        other = memory.tasks.get(depends_on)
    yield task_json(task)
    was_there = len(task.dependencies) < len(before.dependencies)
    said = "no longer depends on" if was_there else "does not depend on"
    tasks.changed(task, f"{task.short_id} {said} {other.short_id}.")


@click.command("link")
@task_argument
@click.argument("message_id", metavar="MESSAGE")
@click.option("--relation", type=click.Choice(RELATIONS), default="reference", show_default=True)
@click.option("--remove", "is_removed", is_flag=True, help="Remove the link.")
@common
@with_actor
def link(
    call: Invocation,
    who: dict[str, Any],
    task_id: str,
    message_id: str,
    relation: Any,
    is_removed: bool,
) -> Reply:
    """Link a message to a task.

    MESSAGE is the id of a message, or THREAD:SEQ.
    """
    with call.memory() as memory:
        task = memory.tasks.get(task_id)
        message = find_message(memory, message_id)
        if is_removed:
            memory.links.remove(task.id, message.id, **who)
        else:
            memory.links.add(task.id, message.id, relation=relation, **who)
    data = {
        "taskId": task.short_id,
        "messageId": message.id,
        "relation": None if is_removed else relation,
    }
    yield data
    if output.is_terminal():
        name = f"{message.thread_id}:{message.seq}"
        how = f"Unlinked {name} from" if is_removed else f"Linked {name} ({relation}) to"
        output.say(output.paragraph(f"{how} {task.short_id}: {task.title}", "", ""))
    else:
        output.row((task.short_id, message.id, "" if is_removed else relation))


@click.command("tree")
@click.argument("task_id", metavar="[TASK]", required=False, shell_complete=complete_task)
@click.option(
    "--all",
    "with_closed",
    is_flag=True,
    help="Show closed branches, too; for one task they always are.",
)
@click.option(
    "--critical", is_flag=True, help="Show the longest chain of tasks that block each other."
)
@common
def tree(call: Invocation, task_id: str | None, with_closed: bool, critical: bool) -> Reply:
    """Show tasks as a tree, with their children and what they need."""
    with call.memory() as memory:
        path = memory.tasks.critical_path(task_id) if critical else []
        blocked = memory.tasks.blocked(path)
        nodes = [] if critical else memory.tasks.tree(task_id)
    if critical:
        yield {"criticalPath": [mention_json(task) for task in path]}
        if not output.is_terminal():
            output.table(tasks.COLUMNS, tasks.columns(path, blocked))
        elif path:
            tasks.print_lines(path, blocked, is_numbered=True)
            tasks.say_more(f"{output.count(len(path), 'task')} in order, each blocking the next.")
        else:
            output.say("No task blocks another.")
        return
    if task_id is None and not with_closed:
        nodes = list(_unfinished(nodes))
    yield {"nodes": [_node_json(node) for node in nodes]}
    if not output.is_terminal():
        columns = (
            "depth", "relation", "task", "status", "blocked", "priority", "type", "progress",
            "title",
        )  # fmt: skip
        output.table(columns, list(_rows(nodes)))
    elif nodes:
        tasks.print_tree(nodes)
        output.say()
        click.echo(tasks.legend())
    else:
        output.say("Nothing left to do. --all shows closed tasks.")


def _node_json(node: TreeNode) -> dict[str, Any]:
    """Return a task of a tree with the tasks below it."""
    return {
        **mention_json(node.task),
        "relation": node.relation,
        "isBlocked": node.is_blocked,
        "progress": progress_json(node.progress),
        "isRepeated": node.is_repeated,
        "nodes": [_node_json(each) for each in node.nodes],
    }


def _unfinished(nodes: Iterable[TreeNode]) -> Iterator[TreeNode]:
    """Return the branches with unfinished tasks."""
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
