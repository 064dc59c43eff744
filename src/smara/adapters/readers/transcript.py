"""Share the frame of all transcript readers.

A host's reader is a subclass of `Transcript` that makes records of single entries. The frame reads
the file, gives every message its id, and counts what says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from smara.adapters.lines import (
    MAX_LINE_BYTES,
    Document,
    JsonLine,
    decode,
    elements,
    head_of,
    is_document,
    read_lines,
    text_in,
)
from smara.adapters.records import (
    Counted,
    Identities,
    Progress,
    Record,
    bounded_id,
    build,
    has_content,
    shorten_title,
)
from smara.messages.models import NewThread, Part, Role

_Value = TypeVar("_Value")
_MOST_CALLS = 10_000


class Recent(dict[str, _Value]):
    """A bounded map of the last calls by their id.

    A file may hold any number, and results come soon after.
    """

    def __setitem__(self, call_id: str, value: _Value) -> None:
        if call_id not in self and len(self) >= _MOST_CALLS:
            del self[next(iter(self))]
        super().__setitem__(call_id, value)


@dataclass(slots=True)
class Pending:
    """A record that waits, with all it needs to become a message.

    Attributes:
        is_due: True if it becomes a message unless its own record is the next.
    """

    entry: JsonLine
    role: Role
    part: Part
    kind: str
    created_at: int | None
    thread_id: str = ""
    is_due: bool = False


class Transcript:
    """One file while it is read.

    ``thread`` is what the file has said of its session so far. ``at`` is the time of the entry that
    is read; one without a time has that of the entry before it. ``place`` is the folder where the
    work is; a message keeps it if its thread has another. ``has_begun`` is True when the file has
    described its session.

    Attributes:
        document_list: The name of the list of entries, where a file may be one JSON document.
    """

    host: ClassVar[str]
    document_list: ClassVar[str | None] = None

    def __init__(self, path: Path) -> None:
        self.thread = NewThread(bounded_id(path.name.split(".")[0]), metadata={"host": self.host})
        self.at: int | None = None
        self.place = ""
        self.has_begun = False
        self.identities = Identities()
        self.tool_names: Recent[str | None] = Recent()

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        progress: Progress | None = None,
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        lines: Container[int] | None = None,
    ) -> Iterator[Record]:
        """Read a file into records, or only some of its lines.

        No content makes it raise; only a file that cannot be opened does. Reading a file
        again, also one that has grown, gives the same client ids for the same lines.
        """
        reader = cls(Path(path))
        entries: Iterable[JsonLine | Counted]
        if cls.document_list is not None and is_document(head_of(path)):
            document = elements(path, cls.document_list, progress)
            yield from reader.begin_document(document)
            entries = document.entries
        else:
            every = read_lines(path, progress, max_line_bytes=max_line_bytes)
            entries = (decode(each) for each in every if lines is None or each.number in lines)
        for entry in entries:
            yield from (entry,) if isinstance(entry, Counted) else reader.take(entry)
        yield from reader.finish()

    def begin_document(self, document: Document) -> Iterator[Record]:
        """Learn what a document says around its list of entries."""
        return iter(())

    def take(self, entry: JsonLine) -> Iterator[Record]:
        """Yield the records that an entry gives, or that it settles."""
        raise NotImplementedError

    def finish(self) -> Iterator[Record]:
        """Yield the records held back until the end of the file."""
        return iter(())

    def id_of(self, entry: JsonLine) -> str:
        """Return an entry's own id, or one made of its line."""
        return text_in(entry.value.get("id")) or self.identities.of_line(self.thread.id, entry.raw)

    def count(
        self, entry: JsonLine, kind: str, reason: str, thread: NewThread | None = None
    ) -> Counted:
        """Count an entry as no message: what it is, and why."""
        return Counted(entry.line, kind[:100] or "without a type", reason, thread=thread)

    def suggest_title(self, words: str, *, is_given: bool = False) -> None:
        """Name a thread that has no title yet.

        A title that is given replaces another.
        """
        if (is_given or self.thread.title is None) and (title := shorten_title(words)):
            self.thread = replace(self.thread, title=title)

    def keep(
        self,
        entry: JsonLine,
        role: Role,
        parts: tuple[Part, ...],
        *,
        unit: str,
        thread: NewThread | None = None,
        label: str | None = None,
        **metadata: Any,
    ) -> Record:
        """Return a message, or count the entry if the parts say nothing.

        Args:
            entry: Where it stands.
            role: Who says it.
            parts: What is said.
            unit: The id of the message in its file.
            thread: Its thread, if it is not the session's own.
            label: What the entry is counted as; without it, its type.
            **metadata: Facts to keep with it; empty ones are left out.
        """
        if not has_content(parts):
            label = text_in(entry.value.get("type")) if label is None else label
            return Counted(entry.line, label[:100], "nothing was said")
        thread = thread or self.thread
        if self.place and self.place != thread.metadata.get("cwd"):
            metadata["cwd"] = self.place
        facts = {name: fact for name, fact in metadata.items() if fact not in (None, "", {}, False)}
        return self.identities.settle(
            build(
                entry.line,
                thread,
                role,
                content=parts,
                client_id=bounded_id(unit),
                created_at=self.at,
                metadata=facts,
                repairs=entry.repairs,
            )
        )
