"""``smara tasks``"""

from __future__ import annotations

import click

from smara.surfaces.cli.commands.tasks import (
    changing,
    claiming,
    dependencies,
    drawing,
    files,
    reading,
)


class _InOrder(click.Group):
    """The commands in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("tasks", cls=_InOrder)
def command() -> None:
    """What is to be done: add, order, claim and close tasks.

    TASK is a task's id, with or without what stands before its hyphen, or
    the beginning of it, as long as only one fits.
    """


for _each in (
    changing.add,
    reading.list_tasks,
    reading.ready,
    reading.show,
    claiming.claim,
    claiming.release,
    changing.close,
    changing.reopen,
    changing.update,
    dependencies.dep,
    dependencies.link,
    drawing.tree,
    reading.history,
    changing.undo,
    reading.search,
    changing.compact,
    changing.restore,
    files.import_tasks,
    files.export,
):
    command.add_command(_each)
