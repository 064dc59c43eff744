"""Import the notes that agents keep by themselves as typed memories.

The spec of a host says where its notes lie and in which form. The parser of instruction files
reads them; lines that are no prose are blanked, never cut, so that every statement keeps its line
number. Only notes about this repository are imported, and a person reviews all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from smara.adapters.host import Here, NoteForm
from smara.adapters.host_specs import NOTES
from smara.adapters.instructions.collect import InstructionSet, Read, read_text, root_of
from smara.adapters.instructions.importer import InstructionImport, InstructionReport
from smara.adapters.instructions.markdown import (
    InstructionFile,
    InstructionStatement,
    LeftOut,
    Parsed,
)
from smara.adapters.instructions.parse import parse_instructions
from smara.adapters.records import Progress
from smara.core.startup.record import replace
from smara.core.startup.regex import re, regex
from smara.errors import InvalidInputError
from smara.knowledge.models import MemoryType
from smara.memory import Memory

# Whether a folder is one of this repository.
BelongsHere = Callable[[str], bool]

_LONGEST = 1_900
_CONTINUES = regex(
    r"^\**(?:why|how to apply|reason|when to apply|impact|example)\b\**\s*:", re.IGNORECASE
)
_TYPE = regex(r"^\s*type:\s*[\"']?(\w+)", re.MULTILINE)
_INDEX_LINE = regex(r"^\s*[-*] \[[^\]]+\]\([^)\s]+\.md\)")
_TYPES: dict[str, MemoryType] = {"user": "preference", "feedback": "preference"}
_ADDED = regex(r"^##\s+Gemini Added Memories\s*$", re.IGNORECASE)
_HEADING = regex(r"^(#{1,6})\s+(.*)$")
_CWD = regex(r"\bcwd=[\"'`]?((?:/|~|[A-Za-z]:\\)[^\s;,)\"'`]*)")
_TASKS = regex(r"\s*(?:\[Task \d+\])+\s*$")
_CODEX_SECTIONS: tuple[tuple[str, MemoryType], ...] = (
    ("user preferences", "preference"), ("failures and how to do differently", "gotcha"),
)  # fmt: skip
_CODEX_LEFT = ("rollout_summary_files", "keywords")
_CODEX_FIELDS = regex(
    r"^(?:scope|applies_to|description|keywords|rollout_summary_files|updated_at):", re.I
)


def read_note(form: NoteForm, path: str, text: str, belongs_here: BelongsHere) -> Parsed:
    """Return a note's statements about this repository."""
    lines, left_out = text.splitlines(), list[LeftOut]()
    is_handbook, has_head = form == "handbook", form == "head"
    if is_handbook:
        left_out = _blank_other_folders(lines, belongs_here)
    elif form == "additions":
        # Of the host's own file for all projects, only what it added itself; the rest are
        # instructions.
        start = next((at for at, line in enumerate(lines) if _ADDED.match(line)), len(lines))
        later = (at for at, line in enumerate(lines) if at > start and re.match(r"##?\s", line))
        lines = [*[""] * (start + 1), *lines[start + 1 : next(later, len(lines))]]
    elif has_head and os.path.basename(path).upper() == "MEMORY.MD":
        for at, line in enumerate(lines):
            if _INDEX_LINE.match(line):
                left_out.append(LeftOut(at + 1, "only points to a note", line.strip()[:80]))
                lines[at] = ""
    parsed = parse_instructions("\n".join(lines))
    head_type = _TYPE.search("\n".join(lines[: parsed.head.lines])) if has_head else None
    statements = []
    for statement in _folded(parsed.statements):
        type_ = _TYPES.get(head_type[1].lower()) if head_type else None
        if is_handbook:
            under = " ".join(statement.headings).lower()
            type_ = next((each for words, each in _CODEX_SECTIONS if words in under), None)
            statement = replace(statement, text=_TASKS.sub("", statement.text))
        # A procedure is one whatever its file says: its steps have no place in another type.
        if type_ is not None and not statement.steps:
            statement = replace(statement, type=type_)
        statements.append(statement)
    return replace(
        parsed,
        statements=tuple(statements),
        references=(),
        left_out=(*parsed.left_out, *left_out),
    )


def _blank_other_folders(lines: list[str], belongs_here: BelongsHere) -> list[LeftOut]:
    """Blank what the handbook of Codex says of other folders, and its bookkeeping.

    It has blocks about one folder each.
    """
    left_out = []
    for start, end in _blocks(lines):
        block = lines[start:end]
        folders = {
            os.path.expanduser(found[1].rstrip("/."))
            for line in block
            for found in _CWD.finditer(line)
        }
        if any(map(belongs_here, folders)):
            lines[start:end] = _without_bookkeeping(block)
            continue
        why = (
            "it is about another folder" if folders else "it does not say which folder it is about"
        )
        first = next((line for line in block if line.strip("- ")), "")
        left_out.append(LeftOut(start + 1, why, first[:80]))
        lines[start:end] = [""] * (end - start)
    return left_out


def _blocks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Where blocks begin and end: at *# Task Group*, or in older files at a head between two lines
    of dashes.
    """
    starts = [at for at, line in enumerate(lines) if line.startswith("# ")]
    if not starts:
        starts = [at for at, line in enumerate(lines) if line.strip() == "---"][::2]
    if not starts:
        return [(0, len(lines))]
    ends = [*starts[1:], len(lines)]
    first = [(0, starts[0])] if any(line.strip() for line in lines[: starts[0]]) else []
    return [*first, *zip(starts, ends, strict=True)]


def _without_bookkeeping(block: Sequence[str]) -> list[str]:
    """A block without its fields, its lists of files and keywords, and the heads of its tasks."""
    lines: list[str] = []
    is_left = is_head = False
    for line in block:
        heading = _HEADING.match(line)
        title = heading[2] if heading else ""
        is_rule = line.strip() == "---"
        is_head = is_head != is_rule
        if heading:
            is_left = title.strip().lower() in _CODEX_LEFT
        is_task = title.startswith("Task ") and not title.startswith("Task Group")
        is_dropped = is_rule or is_task or is_left or is_head or _CODEX_FIELDS.match(line)
        lines.append("" if is_dropped else line)
    return lines


def _folded(statements: Sequence[InstructionStatement]) -> list[InstructionStatement]:
    """A rule with the reason and the use that stand below it is one statement."""
    found: list[InstructionStatement] = []
    for each in statements:
        if found and _CONTINUES.match(each.text) and not each.steps and not found[-1].steps:
            whole = f"{found[-1].text}\n{each.text}"
            if found[-1].headings == each.headings and len(whole) <= _LONGEST:
                found[-1] = replace(found[-1], text=whole, last_line=each.last_line)
                continue
        found.append(each)
    return found


def import_vendor_memories(
    memory: Memory,
    root: str | os.PathLike[str] | None = None,
    vendors: Sequence[str] = tuple(NOTES),
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
    if unknown := [each for each in vendors if each not in NOTES]:
        raise InvalidInputError(
            f"There are no notes of {unknown[0]!r} to read. Known are: {', '.join(NOTES)}."
        )
    folder = root_of(root)
    here = Here(folder)
    folders = [(vendor, each) for vendor in vendors for each in NOTES[vendor](here) if each.files]
    gathered = InstructionSet(os.path.realpath(folder), is_whole=False)
    gathered.folders = tuple(each.place for _, each in folders if each.is_whole)
    files = [(vendor, each.form, path) for vendor, each in folders for path in each.files]
    for done, (vendor, form, path) in enumerate(files, 1):
        place = os.path.realpath(path)
        name = place.replace(os.sep, "/")
        try:
            parsed = read_note(form, path, read_text(place), belongs_here=here.has)
        except InvalidInputError as error:
            gathered.unreadable.append((name, error.message))
        else:
            gathered.read.append(
                Read(InstructionFile(name, place, vendor, is_personal=True), parsed)
            )
        if progress:
            progress(done, len(files))
    return InstructionImport(memory, gathered, is_dry_run=is_dry_run, actor=actor).run()
