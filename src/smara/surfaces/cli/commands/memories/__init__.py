"""Define the group `smara memories`."""

from __future__ import annotations

from smara.surfaces.cli.commands.memories import change, instructions, show
from smara.surfaces.cli.options import OrderedGroup

memories_command = OrderedGroup(
    "memories",
    commands=[
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
    ],
    help="""List, review, edit and forget memories.

    A memory is a typed statement with its evidence and trust. Teach one
    with `smara remember TEXT`. MEMORY is a memory's id, with or without the
    part before its hyphen, or the beginning of it.
    """,
)
