"""``smara tasks claim`` and ``release``"""

from __future__ import annotations

from typing import Any

import click

from smara.errors import InvalidInputError, NotFoundError
from smara.memory import Memory
from smara.surfaces.cli import output, task_lines
from smara.surfaces.cli.commands.tasks.asking import acting, task_argument
from smara.surfaces.cli.options import Call, common, complete_task, complete_thread
from smara.surfaces.cli.task_shapes import task_json
from smara.tasks.models import TYPES, Task


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
@acting
def claim(
    call: Call,
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
    task_lines.changed(
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
@acting
def release(
    call: Call,
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
    task_lines.changed(task, f"{task.short_id} {where}: {task.title}")
