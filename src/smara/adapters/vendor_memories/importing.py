"""Bringing in the notes of agents: only what changed in them is changed here, and the files stay as
they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from smara.adapters.finding import Here
from smara.adapters.instructions.gathering import Gathered, Read, read_text
from smara.adapters.instructions.importing import import_gathered, root_of
from smara.adapters.instructions.models import InstructionFile
from smara.adapters.instructions.report import InstructionReport
from smara.adapters.vendor_memories.finding import VENDORS, Folder, Vendor, find_folders
from smara.adapters.vendor_memories.reading import read_note
from smara.errors import InvalidInputError
from smara.memory import Memory

Progress = Callable[[int, int], None]


def import_vendor_memories(
    memory: Memory,
    root: str | os.PathLike[str] | None = None,
    vendors: Sequence[Vendor] = VENDORS,
    *,
    is_dry_run: bool = False,
    actor: str | None = None,
    progress: Progress | None = None,
) -> InstructionReport:
    """Bring in what agents have noted about a repository, that around the current folder when none
    is named.

    Needs no model. Everything is tainted by where it comes from and waits for a person; twice is
    the same as once.
    """
    unknown = [each for each in vendors if each not in VENDORS]
    if unknown:
        raise InvalidInputError(
            f"There are no notes of {unknown[0]!r} to read. Known are: {', '.join(VENDORS)}."
        )
    folder = root_of(root)
    here = Here(folder)
    found = [each for vendor in vendors for each in find_folders(vendor, here)]
    gathered = Gathered(os.path.realpath(folder), is_whole=False)
    gathered.folders = tuple(each.place for each in found if each.is_whole)
    total = sum(len(each.files) for each in found)
    done = 0
    for each in found:
        for path in each.files:
            _read_into(gathered, each, path, here=here)
            done += 1
            if progress:
                progress(done, total)
    return import_gathered(memory, gathered, is_dry_run=is_dry_run, actor=actor)


def _read_into(gathered: Gathered, folder: Folder, path: str, here: Here) -> None:
    place = os.path.realpath(path)
    name = place.replace(os.sep, "/")
    try:
        parsed = read_note(folder.vendor, path, read_text(place), belongs_here=here.has)
    except InvalidInputError as error:
        gathered.unreadable.append((name, error.message))
        return
    gathered.read.append(
        Read(InstructionFile(name, place, folder.vendor, is_personal=True), parsed)
    )
