"""From a note of an agent to statements: the parser of instruction files reads it, after what is no
prose is blanked.

Lines are blanked and never cut, so that every statement keeps its place. Each vendor's form says
more than its words: Claude's notes are of a type, Codex's stand under telling headings and name the
folder they are about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from smara.adapters.instructions.models import LeftOut, Parsed, Statement
from smara.adapters.instructions.parsing import parse_instructions
from smara.adapters.vendor_memories.finding import Vendor
from smara.knowledge.models import MemoryType

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
    """What a note says about this repository."""
    name = os.path.basename(path)
    if vendor == "claude":
        return _claude(name, text)
    if vendor == "codex":
        return _codex(text, belongs_here) if name == "MEMORY.md" else _noted(text)
    if vendor == "gemini":
        return _claude(name, text) if name != "GEMINI.md" else _added(text)
    return _noted(text)


def _noted(text: str) -> Parsed:
    parsed = parse_instructions(text)
    return replace(parsed, statements=_folded(parsed.statements), references=())


def _claude(name: str, text: str) -> Parsed:
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


def _codex(text: str, belongs_here: BelongsHere) -> Parsed:
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


def _of_section(statement: Statement) -> MemoryType | None:
    under = " ".join(statement.headings).lower()
    return next((type_ for words, type_ in _CODEX_SECTIONS if words in under), None)


def _typed(statement: Statement, type_: MemoryType | None) -> Statement:
    # A procedure is one whatever its file says: its steps have no place in another type.
    return statement if type_ is None or statement.steps else replace(statement, type=type_)


def _folded(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """A rule with the reason and the use that stand below it is one statement."""
    found: list[Statement] = []
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
