"""Define the group `smara tasks`."""

from __future__ import annotations

from smara.surfaces.cli.commands.tasks import change, files, show
from smara.surfaces.cli.options import OrderedGroup

tasks_command = OrderedGroup(
    "tasks",
    commands=[
        change.add,
        show.list_tasks,
        show.ready,
        show.show,
        change.claim,
        change.release,
        change.close,
        change.reopen,
        change.update,
        change.dep,
        change.link,
        show.tree,
        show.history,
        change.undo,
        show.search,
        change.compact,
        change.restore,
        files.import_tasks,
        files.export,
    ],
    help="""Add, order, claim and close tasks.

    TASK is a task's id, with or without the part before its hyphen, or the
    beginning of it if only one task matches.
    """,
)
