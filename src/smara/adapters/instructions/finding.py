"""Which instruction files a repository has.

The table of names is data: hosts come and go. Folders of other people's code, build
results and nested repositories are not entered, links to folders not followed, and a
file with two names (``CLAUDE.md`` as a link to ``AGENTS.md``) is found once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from smara.adapters.instructions.models import InstructionFile
from smara.core.instruction_files import PATTERNS, host_of
from smara.core.source_paths import MADE_FOLDERS, OUTPUT_FOLDERS
from smara.core.wordlists import word_set

_NOT_ENTERED = MADE_FOLDERS | OUTPUT_FOLDERS | word_set("deps tmp .env")
_HOST_FOLDERS = frozenset(pattern.split("/")[0] for _, pattern in PATTERNS if "/" in pattern)
MOST_FOLDERS = 20_000
"""A tree with more folders is looked at so far; instruction files stand near the top."""


def find_instructions(root: str | os.PathLike[str]) -> list[InstructionFile]:
    """The instruction files below a folder, those of the folder itself first, then in order of
    their paths.
    """
    base = Path(os.path.realpath(root))
    found: dict[str, InstructionFile] = {}
    for folder in _folders(base):
        for file in _files_of(base, folder):
            found.setdefault(file.place, file)
    return list(found.values())


def as_instruction_file(
    root: str | os.PathLike[str], path: str | os.PathLike[str]
) -> InstructionFile:
    """A file that was named, known to a host or not."""
    base, place = Path(os.path.realpath(root)), os.path.realpath(path)
    relative = _relative(base, place)
    if relative is None:
        return InstructionFile(Path(place).as_posix(), place, "any", is_personal=True)
    known = _known(PurePosixPath(relative))
    if known is None:
        return InstructionFile(relative, place, "any")
    host, folder = known
    return InstructionFile(relative, place, host, folder=folder, is_personal=_is_personal(relative))


def is_inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> bool:
    """Whether a path lies in a folder, links resolved."""
    return _relative(Path(os.path.realpath(root)), os.path.realpath(path)) is not None


def _relative(base: Path, place: str) -> str | None:
    try:
        return Path(place).relative_to(base).as_posix()
    except ValueError:
        return None


def _folders(base: Path) -> Iterator[Path]:
    """The folder and those below it, shallow ones first, in the order of their names."""
    waiting, seen = [base], 0
    while waiting and seen < MOST_FOLDERS:
        deeper: list[Path] = []
        for folder in waiting:
            seen += 1
            yield folder
            deeper += _below(folder)
        waiting = deeper


def _below(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
                and entry.name not in _NOT_ENTERED
                and entry.name not in _HOST_FOLDERS
            )
    except OSError:
        return []
    return [folder / name for name in names if not os.path.lexists(folder / name / ".git")]


def _files_of(base: Path, folder: Path) -> Iterator[InstructionFile]:
    """The instruction files that speak of a folder, in the order of the table."""
    about = "" if folder == base else folder.relative_to(base).as_posix()
    for host, pattern in PATTERNS:
        for path in _matching(folder, pattern):
            place = os.path.realpath(path)
            # A link may lead out of the repository: what is there is not the repository's.
            if os.path.isfile(place) and is_inside(base, place):
                relative = path.relative_to(base).as_posix()
                yield InstructionFile(
                    relative, place, host, folder=about, is_personal=_is_personal(relative)
                )


def _matching(folder: Path, pattern: str) -> list[Path]:
    if "*" not in pattern:
        return [folder / pattern]
    first, _, rest = pattern.partition("/")
    if not (folder / first).is_dir():
        return []
    try:
        return sorted((folder / first).glob(rest))
    except OSError:
        return []


def _is_personal(path: str) -> bool:
    return ".local." in path.rsplit("/", 1)[-1]


def _known(path: PurePosixPath) -> tuple[str, str] | None:
    """The host of a path, and the folder it speaks of."""
    return host_of(str(path))
