"""Write records as Markdown that people read, edit and give back.

Each memory and task carries a mark: a hash of what can be edited. So a reader knows which entries
a person changed, and which were changed in the store since. Lines that would be taken for the
form itself are escaped by a backslash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from smara.core.escape import from_storable
from smara.core.files import read_regular
from smara.core.startup.record import dataclass, fields
from smara.core.startup.regex import re, regex
from smara.knowledge.models import TYPES
from smara.messages.models import Pointer
from smara.privacy.pointers import where
from smara.tasks.models import TYPES as TASK_TYPES

Rows = Iterable[Mapping[str, Any]]
FIRST_LINE = "<!-- smara-markdown 1: edit this file, then read it back with `smara import FILE` -->"
IS_MARKDOWN = regex(r"\ufeff?<!-- smara-markdown (?P<version>\d+)\b")
_MARK = r"<!-- (?P<mark>[0-9a-f]{12}) -->"
_INDENT = "    "
_LISTS = "Files|Tags|From|Evidence|No longer in force|Closed"
_FORM = regex(rf"\\*(?:#{{1,2}}(?:\s|$)|- (?:{_LISTS}): |<!-- smara-)")
_LIST = regex(rf"- (?P<name>{_LISTS}): (?P<value>.*)")
_MEMORY = regex(rf"## (?P<id>\S+) · (?P<type>\w+) · [\d-]+(?:\s+{_MARK})?\s*")
_NEW_MEMORY = regex(r"##\s+(?:new\s*·?\s*)?(?P<words>.*)", re.IGNORECASE)
_TASK = regex(
    r"[-*] \[(?P<box>[ xX])\] (?P<id>\S+) P(?P<priority>\d) (?P<type>\w+): (?P<title>.*?)"
    rf"(?:\s+{_MARK})?\s*"
)
_NEW_TASK = regex(
    r"[-*] \[(?P<box>[ xX])\]\s+(?:P(?P<priority>\d)\s+)?"
    rf"(?:(?P<type>{'|'.join(TASK_TYPES)}):\s*)?(?P<title>.*\S)\s*"
)
_ENTRIES = regex(r"<!-- smara-entries (?P<ids>.*) -->\s*")
_IDS_A_LINE = 20


@dataclass(frozen=True, slots=True)
class MemoryText:
    """The editable fields of a memory, and its state."""

    type: str = ""
    content: str = ""
    files: str = ""
    tags: str = ""
    state: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> MemoryText:
        """Return the text of an exported row."""
        return cls(
            row["type"],
            plain(from_storable(row["content"])),
            _names(row["files"]),
            tags=_names(row["tags"]),
            state=row["deprecated_because"] or "",
        )


@dataclass(frozen=True, slots=True)
class TaskText:
    """The editable fields of a task."""

    title: str = ""
    is_closed: bool = False
    priority: int = 2
    type: str = "task"
    description: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> TaskText:
        """Return the text of an exported row."""
        return cls(
            " ".join(plain(from_storable(row["title"])).split()),
            row["status"] == "closed",
            row["priority"],
            type=row["type"],
            description=plain(from_storable(row["description"] or "")),
        )


EntryText = MemoryText | TaskText


@dataclass(frozen=True, slots=True)
class MarkdownEntry:
    """One memory or task of an edited file."""

    kind: Literal["memory", "task"]
    line: int
    text: EntryText
    id: str | None = None
    """``None`` for a new one."""
    mark: str | None = None
    has_title: bool = False
    """True for a new memory whose heading is a part of its words."""


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """All that an edited file says."""

    entries: tuple[MarkdownEntry, ...]
    exported: frozenset[str] | None
    """The ids that were exported; ``None`` if the list at the end is gone."""
    problems: tuple[tuple[int, str], ...]
    """Lines that belong to nothing, and why."""


def is_markdown(path: str) -> bool:
    """Return True if a file is an export in Markdown."""
    try:
        return bool(IS_MARKDOWN.match(read_regular(path, 100).decode("utf-8", "replace")))
    except OSError:
        return False


def plain(text: str) -> str:
    """Return a text without signs that a file would lose."""
    whole = (
        text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    )
    return "\n".join(line.rstrip() for line in whole.split("\n")).strip()


def mark_of(text: EntryText) -> str:
    """Return the hash of what can be edited."""
    values = json.dumps([getattr(text, each.name) for each in fields(text)])
    return hashlib.sha256(values.encode()).hexdigest()[:12]


def head_of(row: Mapping[str, Any], text: EntryText) -> str:
    """Return the line that an entry begins with."""
    if isinstance(text, MemoryText):
        head = f"## {row['short_id']} · {text.type} · {_day(row['created_at'])}"
    else:
        box = "x" if text.is_closed else " "
        head = f"- [{box}] {row['short_id']} P{text.priority} {text.type}: {text.title}"
    return f"{head} <!-- {mark_of(text)} -->"


def memory_lines(rows: Rows) -> Iterator[str]:
    """Yield the memories, oldest first, each with what it rests on."""
    ids: list[str] = []
    for row in rows:
        if not ids:
            yield "# Memories\n"
        ids.append(row["short_id"])
        text = MemoryText.of_row(row)
        yield f"{head_of(row, text)}\n"
        yield from (_escaped(line) for line in text.content.split("\n"))
        yield ""
        for name, value in (("Files", row["files"]), ("Tags", row["tags"])):
            if value and isinstance(value, list):
                yield f"- {name}: {', '.join(map(str, value))}"
        yield f"- From: {row['source']} by {from_storable(row['created_by'])}"
        for each in row["evidence"] if isinstance(row["evidence"], list) else ():
            facts = ", ".join(f"{key} {value}" for key, value in each.items())
            yield f"- Evidence: {' '.join(facts.split())}"
        if text.state:
            yield f"- No longer in force: {text.state}"
        yield ""
    yield from _entry_list(ids)


def task_lines(rows: Rows) -> Iterator[str]:
    """Yield the tasks as a list with boxes, oldest first."""
    ids: list[str] = []
    for row in rows:
        if not ids:
            yield "# Tasks\n"
        ids.append(row["short_id"])
        text = TaskText.of_row(row)
        yield head_of(row, text)
        for line in text.description.split("\n") if text.description else ():
            yield f"{_INDENT}{_escaped(line)}".rstrip()
        if row["close_reason"]:
            yield f"{_INDENT}- Closed: {row['close_reason']}"
    if ids:
        yield ""
    yield from _entry_list(ids)


def with_head(lines: Iterator[str]) -> Iterator[str]:
    """Yield the first line of an export before its lines, if any."""
    for number, line in enumerate(lines):
        if number == 0:
            yield f"{FIRST_LINE}\n"
        yield line


def _entry_list(ids: Sequence[str]) -> Iterator[str]:
    """Yield what was exported, so that a reader sees what is gone."""
    for start in range(0, len(ids), _IDS_A_LINE):
        yield f"<!-- smara-entries {' '.join(ids[start : start + _IDS_A_LINE])} -->"
    if ids:
        yield ""


def _escaped(line: str) -> str:
    return f"\\{line}" if _FORM.match(line) else line


def _unescaped(line: str) -> str:
    return line[1:] if line.startswith("\\") and _FORM.match(line) else line


def parse(text: str) -> MarkdownFile:
    """Read an edited file: its entries and its problems."""
    return _Parser(text).parse()


class _Parser:
    """Reads a file line by line."""

    def __init__(self, text: str) -> None:
        self._lines = [line.rstrip() for line in text.lstrip("\ufeff").split("\n")]
        self._entries: list[MarkdownEntry] = []
        self._problems: list[tuple[int, str]] = []
        self._exported: set[str] | None = None
        self._section: Literal["memory", "task"] | None = None
        self._start = 0
        self._open: re.Match[str] | None = None
        self._body: list[str] = []

    def parse(self) -> MarkdownFile:
        for number, line in enumerate(self._lines, 1):
            listed = _ENTRIES.fullmatch(line)
            if listed:
                self._exported = (self._exported or set()) | set(listed["ids"].split())
            elif IS_MARKDOWN.match(line):
                continue
            elif line.startswith("# "):
                self._finish()
                self._begin_section(number, line[2:].strip().lower())
            elif not self._begin_entry(number, line):
                self._take(number, line)
        self._finish()
        exported = None if self._exported is None else frozenset(self._exported)
        return MarkdownFile(tuple(self._entries), exported, tuple(self._problems))

    def _begin_section(self, number: int, name: str) -> None:
        sections: dict[str, Literal["memory", "task"]] = {"memories": "memory", "tasks": "task"}
        self._section = sections.get(name)
        if self._section is None:
            self._problems.append((number, f"The section {name!r} is neither Memories nor Tasks."))

    def _begin_entry(self, number: int, line: str) -> bool:
        patterns = {"memory": (_MEMORY, _NEW_MEMORY), "task": (_TASK, _NEW_TASK)}
        found = (each.fullmatch(line) for each in patterns.get(self._section or "", ()))
        match = next(filter(None, found), None)
        if match is not None:
            self._finish()
            self._start, self._open = number, match
        return match is not None

    def _take(self, number: int, line: str) -> None:
        is_inside = self._open is not None and (
            self._section == "memory" or line[:1] in ("", " ", "\t")
        )
        if is_inside:
            self._body.append(line)
        elif line:
            self._problems.append((number, "The line belongs to no memory and to no task."))

    def _finish(self) -> None:
        """End the entry that is open."""
        match, body = self._open, self._body
        self._open, self._body = None, []
        if match is None:
            return
        entry = _memory_entry if self._section == "memory" else _task_entry
        found = entry(match, body, self._start)
        if isinstance(found, str):
            self._problems.append((self._start, found))
        else:
            self._entries.append(found)


def _memory_entry(match: re.Match[str], body: Sequence[str], line: int) -> MarkdownEntry | str:
    named: dict[str, str] = {}
    words: list[str] = []
    for each in body:
        listed = _LIST.fullmatch(each)
        if listed:
            named[listed["name"]] = listed["value"].strip()
        else:
            words.append(_unescaped(each))
    given = match.groupdict()
    content, type_ = plain("\n".join(words)), given.get("type") or ""
    has_title = False
    if "words" in given:
        first, _, rest = given["words"].partition("·")
        type_ = first.strip().lower().replace(" ", "_")
        if type_ not in TYPES:
            type_, rest = "", given["words"]
        has_title = bool(rest.strip())
        content = ": ".join(filter(None, (rest.strip(), content)))
    if type_ and type_ not in TYPES:
        return f"{type_} is not a type of memory. Use one of {', '.join(TYPES)}."
    if not content:
        return "A memory needs words below its heading."
    files, tags = (_names(named.get(name, "").split(",")) for name in ("Files", "Tags"))
    text = MemoryText(type_, content, files, tags=tags, state=named.get("No longer in force", ""))
    return MarkdownEntry(
        "memory", line, text, given.get("id"), mark=given.get("mark"), has_title=has_title
    )


def _task_entry(match: re.Match[str], body: Sequence[str], line: int) -> MarkdownEntry | str:
    given = match.groupdict()
    words = [_outdented(each) for each in body]
    description = plain("\n".join(_unescaped(each) for each in words if not _is_closing(each)))
    text = TaskText(
        " ".join(given["title"].split()),
        given["box"] != " ",
        int(given["priority"] or 2),
        type=given["type"] or "task",
        description=description,
    )
    if text.type not in TASK_TYPES:
        return f"{text.type} is not a type of task. Use one of {', '.join(TASK_TYPES)}."
    if not text.title:
        return "A task needs a title."
    return MarkdownEntry("task", line, text, given.get("id"), mark=given.get("mark"))


def _is_closing(line: str) -> bool:
    listed = _LIST.fullmatch(line)
    return listed is not None and listed["name"] == "Closed"


def _outdented(line: str) -> str:
    is_deep = line.startswith(_INDENT)
    return line[len(_INDENT) :] if is_deep else line.lstrip()


def _names(values: Any) -> str:
    """Return names in one line, in an order of their own."""
    if not isinstance(values, list):
        return ""
    return ", ".join(
        sorted({plain(str(each)) for each in ", ".join(map(str, values)).split(",")} - {""})
    )


def thread_lines(rows: Rows) -> Iterator[str]:
    """Yield the messages in order, with a heading for each thread."""
    thread = None
    for row in rows:
        if thread is None:
            yield "# Conversations"
        if row["thread_id"] != thread:
            thread = row["thread_id"]
            yield f"\n## {thread}"
        yield f"\n### {row['role']} · {_day(row['created_at'], '%Y-%m-%d %H:%M')}\n"
        place = row["parts"].get("pointer") if isinstance(row["parts"], dict) else None
        yield f"[{where(Pointer(**place))}.]" if place else from_storable(row["raw_content"])


def instruction_lines(rows: Rows) -> Iterator[str]:
    """Yield confirmed memories in force, as instructions for an agent."""
    by_type: dict[str, list[str]] = {}
    for row in rows:
        if row["is_verified"] and row["deprecated_because"] is None:
            text = from_storable(row["content"]).strip().replace("\n", "\n  ")
            names = row["files"] if isinstance(row["files"], list) else ()
            where = f" ({', '.join(f'`{name}`' for name in names)})" if names else ""
            by_type.setdefault(row["type"], []).append(f"- {text}{where}")
    yield "# What this project's memory holds"
    for kind, lines in sorted(by_type.items()):
        yield f"\n## {kind.replace('_', ' ').capitalize()}\n"
        yield from lines


def _day(time_ms: int, form: str = "%Y-%m-%d") -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime(form)
