"""Define the group `smara memories`."""

from __future__ import annotations

import click

from smara.surfaces.cli.commands.memories import change, instructions, show


class _MemoryGroup(click.Group):
    """A group that lists its commands in the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("memories", cls=_MemoryGroup)
def memories_command() -> None:
    """List, review, edit and forget memories.

    A memory is a typed statement with its evidence and trust. Teach one
    with `smara remember TEXT`. MEMORY is a memory's id, with or without the
    part before its hyphen, or the beginning of it.
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
