"""Find and read the instruction files of a repository.

The table of names is data. Vendored code, build output and nested repositories are skipped,
links to folders are not followed, and a file with two names (``CLAUDE.md`` linked to
``AGENTS.md``) is read once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from smara.adapters.instructions.markdown import InstructionFile, Parsed
from smara.adapters.instructions.parse import parse_instructions
from smara.core.extract import word_set
from smara.core.host_table import INSTRUCTION_FILES
from smara.core.paths import GENERATED_FOLDERS, OUTPUT_FOLDERS, host_of
from smara.errors import InvalidInputError, NotFoundError

_NOT_ENTERED = GENERATED_FOLDERS | OUTPUT_FOLDERS | word_set("deps tmp .env")
_HOST_FOLDERS = frozenset(
    pattern.split("/")[0] for _, pattern in INSTRUCTION_FILES if "/" in pattern
)
MOST_FOLDERS = 20_000
"""A tree with more folders is looked at so far; instruction files stand near the top."""


def find_instructions(root: str | os.PathLike[str]) -> list[InstructionFile]:
    """Return the instruction files below a folder.

    Those of the folder itself come first, then the others in order of their paths.
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
    """Return True if a path is in a folder, with links resolved."""
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
    for host, pattern in INSTRUCTION_FILES:
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


MAX_BYTES = 500_000
"""A longer file tells no agent how to work; it is refused by name."""
_DRAWN_IN = (".md", ".mdc", ".markdown")
_MOST_DEEP = 5
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(frozen=True, slots=True)
class Read:
    """A file and what it says."""

    file: InstructionFile
    parsed: Parsed


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """A referenced file that was not read, with the reason."""

    path: str
    line: int
    target: str
    reason: str


@dataclass(slots=True)
class InstructionSet:
    """Everything an import is about."""

    root: str
    is_whole: bool
    """Whether all files of the root were looked for: one that is missing now is gone."""
    read: list[Read] = field(default_factory=list)
    not_followed: list[NotFollowed] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    folders: tuple[str, ...] = ()
    """Folders elsewhere that were looked through whole, too."""

    def was_looked_for(self, path: str) -> bool:
        """Return True if a file here would have been read."""
        return any(path.startswith(f"{folder}/") for folder in self.folders)


def gather(
    root: str | os.PathLike[str], paths: Sequence[str | os.PathLike[str]] = ()
) -> InstructionSet:
    """Read the instruction files of a repository, or of named paths."""
    base = os.path.realpath(root)
    found: dict[str, InstructionFile] = {}
    for path in paths or [base]:
        for file in _files_at(base, path):
            found.setdefault(file.place, file)
    gathered = InstructionSet(
        base, not paths or any(os.path.realpath(path) == base for path in paths)
    )
    for file in list(found.values()):
        _read_into(gathered, file, found, depth=0)
    return gathered


def _files_at(base: str, path: str | os.PathLike[str]) -> list[InstructionFile]:
    if not os.path.exists(path):
        raise NotFoundError(
            f"There is no file or folder {os.fspath(path)}. Give the path of an instruction file."
        )
    if not os.path.isdir(path):
        return [as_instruction_file(base, path)]
    if os.path.realpath(path) == base:
        return find_instructions(base)
    # The paths of a folder's files are told from the root, when it lies in there.
    return [as_instruction_file(base, file.place) for file in find_instructions(path)]


def _read_into(
    gathered: InstructionSet, file: InstructionFile, known: dict[str, InstructionFile], depth: int
) -> None:
    try:
        text = read_text(file.place)
    except InvalidInputError as error:
        gathered.unreadable.append((file.path, error.message))
        return
    parsed = parse_instructions(text)
    gathered.read.append(Read(file, parsed))
    for reference in parsed.references:
        place, reason = _resolved(gathered.root, file, reference.target)
        if place in known:
            continue
        if reason is None and depth >= _MOST_DEEP:
            reason = "too many files that draw in each other"
        if reason is None and place is not None:
            drawn = as_instruction_file(gathered.root, place)
            inside = InstructionFile(
                drawn.path,
                place,
                file.host,
                folder=drawn.folder or file.folder,
                is_personal=file.is_personal,
            )
            known[place] = inside
            _read_into(gathered, inside, known, depth=depth + 1)
        elif reason:
            gathered.not_followed.append(
                NotFollowed(file.path, reference.line, reference.target, reason=reason)
            )


def _resolved(root: str, file: InstructionFile, target: str) -> tuple[str | None, str | None]:
    """Where a reference leads, and why it is not followed; neither when it is no path at all."""
    if target.startswith("~"):
        return None, "outside the repository"
    here = os.path.join(os.path.dirname(file.place), target)
    place = next(
        (
            os.path.realpath(each)
            for each in (here, os.path.join(root, target))
            if os.path.isfile(each)
        ),
        None,
    )
    if place is None:
        looks_like_one = target.startswith((".", "/")) or target.lower().endswith(_DRAWN_IN)
        return None, "not there" if looks_like_one else None
    if not is_inside(root, place):
        return None, "outside the repository"
    name = Path(place).name.lower()
    if not name.endswith(_DRAWN_IN) or name.startswith("readme"):
        return None, "not a file of instructions"
    return place, None


def read_text(place: str) -> str:
    """Return the text of a file.

    Raises ``InvalidInputError`` for a file that is no text.
    """
    try:
        with open(place, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(
            f"It cannot be read: {error.strerror}. Check its permissions."
        ) from None
    if len(data) > MAX_BYTES:
        raise InvalidInputError(
            f"It has more than {MAX_BYTES:,} bytes. Split it, or name the parts to import."
        )
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data:
        raise InvalidInputError("It is not a text. Give a Markdown or text file.")
    return data.decode(encoding or "utf-8", "replace")
