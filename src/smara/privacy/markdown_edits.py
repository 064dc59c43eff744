"""Apply an edited Markdown export to the store, as a person's edits.

An entry that a person did not touch is left alone, also if it changed here since. An edited entry
is applied only if the store still has what was exported; otherwise both are shown. What is gone
from the file is reported, and never removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from smara.errors import InvalidInputError, SmaraError
from smara.privacy.foreign.importer import ImportRooms
from smara.privacy.markdown import (
    EntryText,
    MarkdownEntry,
    MarkdownFile,
    MemoryText,
    TaskText,
    head_of,
    mark_of,
    plain,
)
from smara.privacy.models import MarkdownConflict, MarkdownReport
from smara.secrets import redact

_CLOSED_BY_HAND = "Checked off in an edited export."
Rows = Iterable[Mapping[str, Any]]


class MarkdownEdits:
    """The edits of one file."""

    def __init__(
        self, rooms: ImportRooms, file: MarkdownFile, path: str, *, is_dry_run: bool = False
    ) -> None:
        self._rooms = rooms
        self._file = file
        self._report = MarkdownReport(path, is_dry_run)
        self._names: dict[int, str] = {}
        """The ids that new entries got, by their lines."""

    def apply(self, memories: Rows, tasks: Rows) -> MarkdownReport:
        """Apply what was edited.

        Args:
            memories: The rows of all memories, as they are exported.
            tasks: Those of all tasks.

        Raises:
            InvalidInputError: If a line of the file belongs to nothing; nothing is changed.
        """
        if self._file.problems:
            line, why = self._file.problems[0]
            more = len(self._file.problems) - 1
            others = f" {more:,} more lines have such problems." if more else ""
            raise InvalidInputError(
                f"{self._report.path}, line {line}: {why}{others} Nothing was changed."
            )
        here: dict[str, EntryText] = {}
        here |= {row["short_id"]: MemoryText.of_row(row) for row in memories}
        here |= {row["short_id"]: TaskText.of_row(row) for row in tasks}
        named: set[str] = set()
        for entry in self._file.entries:
            if entry.id is None:
                self._add(entry, here)
            elif entry.id in named:
                self._refuse(entry, "It stands in the file twice; the first was read.")
            else:
                named.add(entry.id)
                self._edit(entry, here.get(entry.id))
        exported = self._file.exported or frozenset()
        self._report.missing = sorted(exported & here.keys() - named)
        return self._report

    def refreshed(self, text: str, rows: Rows) -> str:
        """Return the file with new marks and ids.

        Without them, the next edit of the same file would seem to collide with this one.
        """
        now = {row["short_id"]: row for row in rows}
        lines = text.split("\n")
        for entry in self._file.entries:
            row = now.get(entry.id or self._names.get(entry.line, ""))
            if row is None or entry.has_title:
                continue
            here = MemoryText.of_row(row) if entry.kind == "memory" else TaskText.of_row(row)
            mine = _cleaned(entry.text)
            if isinstance(mine, MemoryText) and not mine.type:
                mine = replace(mine, type=row["type"])
            if mine == here and mark_of(here) != entry.mark:
                ending = "\r" if lines[entry.line - 1].endswith("\r") else ""
                lines[entry.line - 1] = head_of(row, here) + ending
        return "\n".join(lines)

    def _refuse(self, entry: MarkdownEntry, why: str) -> None:
        name = entry.id or (entry.text.title if isinstance(entry.text, TaskText) else "new")
        self._report.refused.append((entry.line, name, why))

    def _edit(self, entry: MarkdownEntry, here: EntryText | None) -> None:
        name = str(entry.id)
        text = _cleaned(entry.text)
        if here is None:
            self._refuse(entry, "It is not in this project (any more).")
        elif type(here) is not type(text):
            self._refuse(entry, "It stands in the wrong section.")
        elif text == here or mark_of(entry.text) == entry.mark:
            self._report.unchanged += 1
        elif entry.mark is None:
            self._refuse(entry, "Its mark is gone, so that later changes here cannot be seen.")
        elif mark_of(here) != entry.mark:
            self._report.conflicts.append(
                MarkdownConflict(name, here=_shown(here), file=_shown(text))
            )
        else:
            self._change(entry, name, here, text)

    def _change(self, entry: MarkdownEntry, name: str, here: EntryText, text: EntryText) -> None:
        changed = {
            each.name: getattr(text, each.name)
            for each in fields(text)
            if getattr(text, each.name) != getattr(here, each.name)
        }
        try:
            if not self._report.is_dry_run:
                if isinstance(text, MemoryText):
                    self._change_memory(name, changed)
                else:
                    self._change_task(name, changed)
            self._report.updated.append(name)
        except SmaraError as error:
            self._refuse(entry, str(error))

    def _change_memory(self, name: str, changed: dict[str, Any]) -> None:
        if "state" in changed:
            raise InvalidInputError(
                "Whether it is in force is not edited here: use `smara forget`."
            )
        for each in ("files", "tags"):
            if each in changed:
                changed[each] = [word.strip() for word in changed[each].split(",") if word.strip()]
        self._rooms.memories.update(name, by="person", **changed)

    def _change_task(self, name: str, changed: dict[str, Any]) -> None:
        is_closed = changed.pop("is_closed", None)
        if changed:
            self._rooms.tasks.update(name, **changed)
        if is_closed is True:
            self._rooms.tasks.close(name, _CLOSED_BY_HAND)
        elif is_closed is False:
            self._rooms.tasks.reopen(name)

    def _add(self, entry: MarkdownEntry, here: Mapping[str, EntryText]) -> None:
        text = _cleaned(entry.text)
        try:
            if isinstance(text, MemoryText):
                name = self._add_memory(text, here)
            else:
                name = self._add_task(text, here)
            self._names[entry.line] = name
        except SmaraError as error:
            self._refuse(entry, str(error))

    def _add_memory(self, text: MemoryText, here: Mapping[str, EntryText]) -> str:
        for name, each in here.items():
            if isinstance(each, MemoryText) and each.content == text.content:
                self._report.unchanged += 1
                return name
        name = "new"
        if not self._report.is_dry_run:
            result = self._rooms.memories.remember(
                text.content,
                type=text.type or None,  # type: ignore[arg-type]  # checked against the types
                files=_words(text.files),
                tags=_words(text.tags),
            )
            if result.outcome != "added" or result.memory is None:
                self._report.unchanged += 1
                return ""
            name = result.memory.short_id
        self._report.added.append(name)
        return name

    def _add_task(self, text: TaskText, here: Mapping[str, EntryText]) -> str:
        for name, each in here.items():
            if isinstance(each, TaskText) and each.title == text.title:
                self._report.unchanged += 1
                return name
        name = "new"
        if not self._report.is_dry_run:
            task = self._rooms.tasks.add(
                text.title,
                description=text.description,
                type=text.type,  # type: ignore[arg-type]  # checked against the types
                priority=text.priority,
            )
            name = task.short_id
            if text.is_closed:
                self._rooms.tasks.close(name, _CLOSED_BY_HAND)
        self._report.added.append(name)
        return name


def rewrite(path: str | os.PathLike[str], before: str, after: str) -> bool:
    """Replace the text of a file; return True if it was written."""
    if before == after:
        return False
    place = os.path.realpath(path)
    partial = f"{place}.partial"
    try:
        with open(partial, "w", encoding="utf-8", newline="") as file:
            file.write(after)
        shutil.copymode(place, partial)
        os.replace(partial, place)
    except OSError:
        return False
    return True


def _cleaned(text: EntryText) -> EntryText:
    """Return an edited text without secrets, as the store would have it."""
    if isinstance(text, MemoryText):
        return replace(text, content=plain(redact(text.content).text))
    return replace(
        text, title=redact(text.title).text, description=plain(redact(text.description).text)
    )


def _words(names: str) -> list[str]:
    return [each.strip() for each in names.split(",") if each.strip()]


def _shown(text: EntryText) -> str:
    """Return an entry in a few words, for a person who compares two."""
    if isinstance(text, MemoryText):
        state = f" ({text.state})" if text.state else ""
        return f"{text.type}: {text.content}{state}"
    box = "closed" if text.is_closed else "open"
    return f"P{text.priority} {text.type}, {box}: {text.title}\n{text.description}".strip()
