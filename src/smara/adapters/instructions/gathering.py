"""Reading instruction files: which ones an import is about, what they say, and what could not be
read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smara.adapters.instructions.finding import as_instruction_file, find_instructions, is_inside
from smara.adapters.instructions.models import InstructionFile, Parsed
from smara.adapters.instructions.parsing import parse_instructions
from smara.errors import InvalidInputError, NotFoundError

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
    """A file that another one draws in, and why it was not read."""

    path: str
    line: int
    target: str
    reason: str


@dataclass(slots=True)
class Gathered:
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
        """Whether a file of such a folder would have been read if it were there."""
        return any(path.startswith(f"{folder}/") for folder in self.folders)


def gather(root: str | os.PathLike[str], paths: Sequence[str | os.PathLike[str]] = ()) -> Gathered:
    """Read the instruction files of a repository, or those that are named; folders stand for what
    is in them.
    """
    base = os.path.realpath(root)
    found: dict[str, InstructionFile] = {}
    for path in paths or [base]:
        for file in _files_at(base, path):
            found.setdefault(file.place, file)
    gathered = Gathered(base, not paths or any(os.path.realpath(path) == base for path in paths))
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
    gathered: Gathered, file: InstructionFile, known: dict[str, InstructionFile], depth: int
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
    """The text of a file; raises ``InvalidInputError`` for what is none."""
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
