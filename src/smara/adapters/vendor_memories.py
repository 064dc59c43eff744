"""Import the notes that agents keep by themselves as typed memories.

Claude, Codex, Gemini and Goose keep notes in files. The parser of instruction files reads
them; lines that are no prose are blanked, never cut, so that every statement keeps its line
number. Only notes about this repository are imported, and a person reviews all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from smara.adapters.host import Here
from smara.adapters.instructions.collect import InstructionSet, Read, read_text, root_of
from smara.adapters.instructions.importer import InstructionReport, import_gathered
from smara.adapters.instructions.markdown import (
    InstructionFile,
    InstructionStatement,
    LeftOut,
    Parsed,
)
from smara.adapters.instructions.parse import parse_instructions
from smara.adapters.lines import mapping_in, text_in
from smara.adapters.readers.gemini import project_root_of
from smara.adapters.readers.opencode_store import read_object
from smara.core.git import find_repository
from smara.environment import home_of
from smara.errors import InvalidInputError
from smara.knowledge.models import MemoryType
from smara.memory import Memory

__all__ = ["VENDORS", "Vendor", "import_vendor_memories"]


Vendor = Literal["claude", "codex", "gemini", "goose"]
VENDORS: tuple[Vendor, ...] = get_args(Vendor)
MOST_FILES = 2_000
_LONGEST_SLUG = 200
_SETTINGS = ("settings.local.json", "settings.json")


@dataclass(frozen=True, slots=True)
class NotesFolder:
    """A folder of notes, and which files in it are notes."""

    vendor: Vendor
    place: str
    files: tuple[str, ...]
    is_whole: bool = True
    """Whether a note of it that is not there any more is gone."""


def find_folders(vendor: Vendor, here: Here) -> list[NotesFolder]:
    """Return an agent's notes about a repository."""
    return [each for each in _FINDERS[vendor](here) if each.files]


def _find_claude(here: Here) -> Iterator[NotesFolder]:
    home = Path(home_of("CLAUDE_CONFIG_DIR", ".claude"))
    named = _named_by_claude(here, home)
    roots = [here.root, *_main_worktree(here.root)]
    folders = [home / "projects" / slug(root) / "memory" for root in dict.fromkeys(roots)]
    for folder in dict.fromkeys([*named, *folders]):
        yield NotesFolder("claude", _real(folder), _markdown(folder))


def slug(root: str) -> str:
    """The name that Claude gives to the folder of a project.

    >>> slug("/home/me/my_app.v2")
    '-home-me-my-app-v2'
    """
    return re.sub(r"[^A-Za-z0-9]", "-", root)[:_LONGEST_SLUG]


def _named_by_claude(here: Here, home: Path) -> Iterator[Path]:
    """The folder that the settings name instead, if they do."""
    for folder in (Path(here.root, ".claude"), home):
        for name in _SETTINGS:
            told = text_in(mapping_in(read_object(folder / name)).get("autoMemoryDirectory"))
            if told.startswith(("/", "~/")):
                yield Path(os.path.expanduser(told))


def _main_worktree(root: str) -> list[str]:
    """The first working folder of a repository: Claude keeps the notes of all its worktrees
    there.
    """
    repository = find_repository(root)
    if repository is None or os.path.basename(repository.common_dir) != ".git":
        return []
    return [os.path.dirname(repository.common_dir)]


def _find_codex(here: Here) -> Iterator[NotesFolder]:
    home = Path(home_of("CODEX_HOME", ".codex")) / "memories"
    notes = home / "extensions" / "ad_hoc" / "notes"
    # The summary and the raw notes say the same in other words; recaps of sessions are what
    # MEMORY.md is made from.
    handbook = home / "MEMORY.md"
    yield NotesFolder(
        "codex", _real(home), (*([str(handbook)] if handbook.is_file() else ()), *_markdown(notes))
    )


def _find_gemini(here: Here) -> Iterator[NotesFolder]:
    home = Path(home_of("GEMINI_CONFIG_DIR", ".gemini"))
    try:
        folders = sorted(each for each in (home / "tmp").glob("*/memory") if each.is_dir())
    except OSError:
        folders = []
    candidates = here.candidates()
    for folder in folders:
        if here.has(project_root_of(folder / "MEMORY.md", candidates)):
            yield NotesFolder("gemini", _real(folder), _markdown(folder))
    everywhere = home / "GEMINI.md"
    if everywhere.is_file():
        yield NotesFolder("gemini", _real(home), (str(everywhere),), is_whole=False)


def _find_goose(here: Here) -> Iterator[NotesFolder]:
    folder = Path(here.root, ".goose", "memory")
    yield NotesFolder("goose", _real(folder), _sorted(folder.glob("*.txt")))


_FINDERS: dict[Vendor, Callable[[Here], Iterator[NotesFolder]]] = {
    "claude": _find_claude, "codex": _find_codex, "gemini": _find_gemini, "goose": _find_goose,
}  # fmt: skip


def _markdown(folder: Path) -> tuple[str, ...]:
    return _sorted(folder.rglob("*.md"))


def _sorted(paths: Iterable[Path]) -> tuple[str, ...]:
    try:
        found = sorted(str(path) for path in paths if path.is_file() and not path.is_symlink())
    except OSError:
        return ()
    return tuple(found[:MOST_FILES])


def _real(path: Path) -> str:
    return Path(os.path.realpath(path)).as_posix()


BelongsHere = Callable[[str], bool]
"""Whether a folder is one of this repository."""

_LONGEST = 1_900
_CONTINUES = re.compile(
    r"^\**(?:why|how to apply|reason|when to apply|impact|example)\b\**\s*:", re.IGNORECASE
)
_TYPE = re.compile(r"^\s*type:\s*[\"']?(\w+)", re.MULTILINE)
_INDEX_LINE = re.compile(r"^\s*[-*] \[[^\]]+\]\([^)\s]+\.md\)")
_WANTED: dict[str, MemoryType] = {"user": "preference", "feedback": "preference"}
_ADDED = re.compile(r"^##\s+Gemini Added Memories\s*$", re.IGNORECASE)
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_CWD = re.compile(r"\bcwd=[\"'`]?((?:/|~|[A-Za-z]:\\)[^\s;,)\"'`]*)")
_TASKS = re.compile(r"\s*(?:\[Task \d+\])+\s*$")
_CODEX_SECTIONS: tuple[tuple[str, MemoryType], ...] = (
    ("user preferences", "preference"), ("failures and how to do differently", "gotcha"),
)  # fmt: skip
_CODEX_LEFT = ("rollout_summary_files", "keywords")
_CODEX_FIELDS = re.compile(
    r"^(?:scope|applies_to|description|keywords|rollout_summary_files|updated_at):", re.I
)


def read_note(vendor: Vendor, path: str, text: str, belongs_here: BelongsHere) -> Parsed:
    """Return a note's statements about this repository."""
    name = os.path.basename(path)
    if vendor == "claude":
        return _read_claude(name, text)
    if vendor == "codex":
        return _read_codex(text, belongs_here) if name == "MEMORY.md" else _noted(text)
    if vendor == "gemini":
        return _read_claude(name, text) if name != "GEMINI.md" else _added(text)
    return _noted(text)


def _noted(text: str) -> Parsed:
    parsed = parse_instructions(text)
    return replace(parsed, statements=_folded(parsed.statements), references=())


def _read_claude(name: str, text: str) -> Parsed:
    """A note with a head that says of what type it is; or the index, whose lines only point to
    notes.
    """
    lines = text.splitlines()
    left: list[LeftOut] = []
    if name.upper() == "MEMORY.MD":
        for at, line in enumerate(lines):
            if _INDEX_LINE.match(line):
                left.append(LeftOut(at + 1, "only points to a note", line.strip()[:80]))
                lines[at] = ""
    parsed = parse_instructions("\n".join(lines))
    told = _TYPE.search("\n".join(lines[: parsed.head.lines]))
    type_ = _WANTED.get(told[1].lower()) if told else None
    statements = tuple(_typed(each, type_) for each in _folded(parsed.statements))
    return replace(parsed, statements=statements, references=(), left_out=(*parsed.left_out, *left))


def _added(text: str) -> Parsed:
    """Of Gemini's own file for all projects, only what it added itself; the rest are
    instructions.
    """
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _ADDED.match(line)), None)
    if start is None:
        return Parsed()
    later = (at for at, line in enumerate(lines) if at > start and re.match(r"##?\s", line))
    end = next(later, len(lines))
    return _noted("\n".join([*[""] * (start + 1), *lines[start + 1 : end]]))


def _read_codex(text: str, belongs_here: BelongsHere) -> Parsed:
    """The handbook of Codex: blocks about one folder each, of which those about other folders are
    left out.
    """
    lines = text.splitlines()
    left: list[LeftOut] = []
    for start, end in _blocks(lines):
        block = lines[start:end]
        folders = {
            os.path.expanduser(found[1].rstrip("/."))
            for line in block
            for found in _CWD.finditer(line)
        }
        if not any(map(belongs_here, folders)):
            why = (
                "it is about another folder"
                if folders
                else "it does not say which folder it is about"
            )
            left.append(
                LeftOut(start + 1, why, next((line for line in block if line.strip("- ")), "")[:80])
            )
            lines[start:end] = [""] * (end - start)
        else:
            lines[start:end] = _without_bookkeeping(block)
    parsed = parse_instructions("\n".join(lines))
    statements = tuple(
        _typed(replace(each, text=_TASKS.sub("", each.text)), _of_section(each))
        for each in _folded(parsed.statements)
    )
    return replace(parsed, statements=statements, references=(), left_out=(*parsed.left_out, *left))


def _blocks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Where blocks begin and end: at *# Task Group*, or in older files at a head between two lines
    of dashes.
    """
    starts = [at for at, line in enumerate(lines) if line.startswith("# ")]
    if not starts:
        rules = [at for at, line in enumerate(lines) if line.strip() == "---"]
        starts = rules[::2]
    if not starts:
        return [(0, len(lines))]
    ends = [*starts[1:], len(lines)]
    first = [(0, starts[0])] if any(line.strip() for line in lines[: starts[0]]) else []
    return [*first, *zip(starts, ends, strict=True)]


def _without_bookkeeping(block: Sequence[str]) -> list[str]:
    """A block without its fields, its lists of files and keywords, and the heads of its tasks."""
    kept: list[str] = []
    is_left = is_head = False
    for line in block:
        heading = _HEADING.match(line)
        if line.strip() == "---":
            is_head = not is_head
            kept.append("")
            continue
        if heading is not None:
            is_left = heading[2].strip().lower() in _CODEX_LEFT
        is_task = (
            heading is not None
            and heading[2].startswith("Task ")
            and not heading[2].startswith("Task Group")
        )
        if is_task or is_left or is_head or _CODEX_FIELDS.match(line):
            kept.append("")
        else:
            kept.append(line)
    return kept


def _of_section(statement: InstructionStatement) -> MemoryType | None:
    under = " ".join(statement.headings).lower()
    return next((type_ for words, type_ in _CODEX_SECTIONS if words in under), None)


def _typed(statement: InstructionStatement, type_: MemoryType | None) -> InstructionStatement:
    # A procedure is one whatever its file says: its steps have no place in another type.
    return statement if type_ is None or statement.steps else replace(statement, type=type_)


def _folded(statements: Sequence[InstructionStatement]) -> tuple[InstructionStatement, ...]:
    """A rule with the reason and the use that stand below it is one statement."""
    found: list[InstructionStatement] = []
    for each in statements:
        before = found[-1] if found else None
        if (
            before is not None
            and _CONTINUES.match(each.text)
            and not each.steps
            and not before.steps
        ):
            whole = f"{before.text}\n{each.text}"
            if before.headings == each.headings and len(whole) <= _LONGEST:
                found[-1] = replace(before, text=whole, last_line=each.last_line)
                continue
        found.append(each)
    return tuple(found)


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
    """Import the notes of agents about a repository.

    Without a root, it is the repository around the current folder.

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
    gathered = InstructionSet(os.path.realpath(folder), is_whole=False)
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


def _read_into(gathered: InstructionSet, folder: NotesFolder, path: str, here: Here) -> None:
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
