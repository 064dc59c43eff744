"""``smara tasks``"""

from __future__ import annotations

import click

from smara.surfaces.cli.commands.tasks import change, dependencies, files, show
from smara.surfaces.cli.commands.tasks import dependencies as drawing


class _TaskGroup(click.Group):
    """The commands in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("tasks", cls=_TaskGroup)
def tasks_command() -> None:
    """What is to be done: add, order, claim and close tasks.

    TASK is a task's id, with or without what stands before its hyphen, or
    the beginning of it, as long as only one fits.
    """


for _each in (
    change.add,
    show.list_tasks,
    show.ready,
    show.show,
    change.claim,
    change.release,
    change.close,
    change.reopen,
    change.update,
    dependencies.dep,
    dependencies.link,
    drawing.tree,
    show.history,
    change.undo,
    show.search,
    change.compact,
    change.restore,
    files.import_tasks,
    files.export,
):
    tasks_command.add_command(_each)
