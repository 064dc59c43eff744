"""``smara memories``"""

from __future__ import annotations

import click

from smara.surfaces.cli.commands.memories import changing, importing, reading, reviewing


class _InOrder(click.Group):
    """The commands in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("memories", cls=_InOrder)
def command() -> None:
    """What is known: typed statements, each with its evidence and how far it is trusted.

    `smara remember TEXT` teaches one. MEMORY is a memory's id, with or
    without what stands before its hyphen, or the beginning of it.
    """


for _each in (
    reading.list_memories,
    reading.search,
    reading.show,
    reading.why,
    changing.add,
    changing.edit,
    reviewing.review,
    changing.pin,
    changing.unpin,
    changing.verify,
    changing.forget,
    changing.restore,
    importing.import_files,
    reading.audit,
    reviewing.trust,
):
    command.add_command(_each)
