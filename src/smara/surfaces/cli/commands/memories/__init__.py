"""``smara memories``"""

from __future__ import annotations

import click

from smara.surfaces.cli.commands.memories import change, instructions, show


class _MemoryGroup(click.Group):
    """The commands in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("memories", cls=_MemoryGroup)
def memories_command() -> None:
    """What is known: typed statements, each with its evidence and how far it is trusted.

    `smara remember TEXT` teaches one. MEMORY is a memory's id, with or
    without what stands before its hyphen, or the beginning of it.
    """


for _each in (
    show.list_memories,
    show.search,
    show.show,
    show.why,
    change.add,
    change.edit,
    change.review,
    change.pin,
    change.unpin,
    change.verify,
    change.forget,
    change.restore,
    instructions.import_files,
    show.audit,
    change.trust,
):
    memories_command.add_command(_each)
