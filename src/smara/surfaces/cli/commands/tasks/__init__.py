"""Define the group `smara tasks`."""

from __future__ import annotations

import click

from smara.surfaces.cli.commands.tasks import change, dependencies, files, show


class _TaskGroup(click.Group):
    """A group that lists its commands in the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("tasks", cls=_TaskGroup)
def tasks_command() -> None:
    """Add, order, claim and close tasks.

    TASK is a task's id, with or without the part before its hyphen, or the
    beginning of it if only one task matches.
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
    dependencies.tree,
    show.history,
    change.undo,
    show.search,
    change.compact,
    change.restore,
    files.import_tasks,
    files.export,
):
    tasks_command.add_command(_each)
