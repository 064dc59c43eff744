"""``smara tasks tree``"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import click

from smara.surfaces.cli import output, task_lines
from smara.surfaces.cli.options import Call, common, complete_task
from smara.surfaces.cli.task_shapes import mention_json, node_json
from smara.tasks.models import Task, TreeNode


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
def tree(call: Call, task_id: str | None, with_closed: bool, critical: bool) -> None:
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
        task_lines.print_tree(nodes)
        output.say()
        click.echo(task_lines.legend())
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


def _show_path(call: Call, path: list[Task], blocked: set[str]) -> None:
    if call.as_json:
        output.envelope({"criticalPath": [mention_json(task) for task in path]})
    elif not output.is_terminal():
        output.table(task_lines.COLUMNS, task_lines.columns(path, blocked))
    elif path:
        task_lines.print_lines(path, blocked, is_numbered=True)
        task_lines.say_more(f"{len(path)} tasks that wait for each other, the first to do first.")
    else:
        output.say("Nothing waits for anything.")
