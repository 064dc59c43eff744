"""``smara tasks dep`` and ``link``"""

from __future__ import annotations

from typing import Any

import click

from smara.surfaces.cli import output, task_lines
from smara.surfaces.cli.commands.tasks.asking import acting, task_argument
from smara.surfaces.cli.finding import find_message
from smara.surfaces.cli.options import Call, common, complete_task
from smara.surfaces.cli.task_shapes import task_json
from smara.tasks.models import DEPENDENCY_TYPES, RELATIONS

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
@acting
def add(call: Call, who: dict[str, Any], task_id: str, depends_on: str, type_: Any) -> None:
    """TASK needs NEEDED. A circle is refused, and its path shown."""
    with call.memory() as memory:
        task = memory.tasks.depend(task_id, depends_on, type=type_, **who)
        other = memory.tasks.get(depends_on)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(task_json(task), warnings)
        return
    output.warn(warnings)
    task_lines.changed(task, _SAID[type_].format(task.short_id, other.short_id))


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
@acting
def remove(call: Call, who: dict[str, Any], task_id: str, depends_on: str, type_: Any) -> None:
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
    task_lines.changed(task, f"{task.short_id} {said} {other.short_id}.")


@click.command("link")
@task_argument
@click.argument("message_id", metavar="MESSAGE")
@click.option("--relation", type=click.Choice(RELATIONS), default="reference", show_default=True)
@click.option("--remove", "is_removed", is_flag=True, help="Take the link away.")
@common
@acting
def link(
    call: Call, who: dict[str, Any], task_id: str, message_id: str, relation: Any, is_removed: bool
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
