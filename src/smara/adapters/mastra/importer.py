"""Import a Mastra store into a memory in repeatable batches.

A message keeps its id, so that it is stored once. Mastra appends to existing messages; text
added since the last import becomes a message that names the one it continues. Observations
are kept word for word in a thread of their own, because they do not name their messages.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from smara.adapters.lines import json_in
from smara.adapters.mastra.rows import MessageRow, ObservationNotes, Rows, ThreadRow
from smara.adapters.mastra.source import (
    MESSAGES,
    OBSERVATIONS,
    RESOURCES,
    THREADS,
    Damaged,
    MastraSource,
    Row,
    open_source,
)
from smara.adapters.records import Progress
from smara.core.startup.record import dataclass, field, replace
from smara.errors import UsageError
from smara.memory import Memory
from smara.messages.models import Message, NewMessage, NewThread, Part
from smara.messages.prepare import redact_parts
from smara.secrets import redact
from smara.secrets.redact import redact_value
from smara.working.models import WorkingScope


@dataclass(slots=True)
class MastraReport:
    """The result of importing a store, or of its dry run.

    ``messages`` equals stored + repeated + refused + what is in ``left_out``; ``grown`` counts
    pieces that were added to messages that had been stored before.

    Attributes:
        refused: Pairs of a message's or page's name there and why it was not taken.
        left_out: How many messages did not become one here, by the reason.
        pages: Working memories that were put here now.
        pages_kept: Working memories that were changed here since, and left so.
        observations: Texts of observations and reflections that were stored now.
        problems: What could not be read, in sentences.
    """

    source: str
    is_dry_run: bool = False
    threads: int = 0
    messages: int = 0
    stored: int = 0
    repeated: int = 0
    grown: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    pages: int = 0
    pages_same: int = 0
    pages_kept: int = 0
    observations: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_nothing_new(self) -> bool:
        return not (self.stored or self.grown or self.pages or self.observations)


_Size = tuple[Any, Any] | None

ACTOR = "import: mastra"
_BATCH = 500
_BATCH_CHARACTERS = 4_000_000
_EVERY = 200


def import_mastra(
    memory: Memory,
    where: str | os.PathLike[str],
    *,
    is_dry_run: bool = False,
    resource_id: str | None = None,
    progress: Progress | None = None,
) -> MastraReport:
    """Import the store at a path or URL.

    It is only read; doing it again adds only what is new.

    ``resource_id`` is who threads belong to that do not say so themselves.
    """
    with open_source(where) as source:
        report = MastraReport(source.name, is_dry_run)
        _MastraImport(memory, source, report, resource_id=resource_id, progress=progress).run()
    return report


class _MastraImport:
    """One import."""

    def __init__(
        self,
        memory: Memory,
        source: MastraSource,
        report: MastraReport,
        resource_id: str | None,
        progress: Progress | None,
    ) -> None:
        self._memory = memory
        self._source = source
        self._rows = Rows(source)
        self._report = report
        self._resource_id = resource_id
        self._progress = progress
        self._threads: dict[str, ThreadRow] = {}
        self._seen: set[str] = set()
        self._sizes: tuple[str, dict[str | None, _Size]] = ("", {})

    def run(self) -> None:
        report = self._report
        for table in (THREADS, MESSAGES):
            if table not in self._source.tables:
                report.problems.append(
                    f"There is no table {table}; what would be in it is left out."
                )
        for row in self._read(THREADS):
            if (found := self._rows.thread(row)) is not None:
                self._threads[found.thread.id] = found
        self._read_messages()
        # Threads are made or brought up to date also when nothing was said in them.
        report.threads = len(self._seen | set(self._threads))
        for thread, _ in self._threads.values():
            if not report.is_dry_run:
                with self._refusing(thread.id):
                    self._memory.threads.put(
                        replace(thread, resource_id=thread.resource_id or self._resource_id)
                    )
        for row in self._read(RESOURCES):
            if (page := self._rows.page(row)) is not None:
                with self._refusing(f"resource {page[0]}"):
                    self._put(page[1], resource_id=page[0])
        for thread, text in self._threads.values():
            if text is not None:
                with self._refusing(f"thread {thread.id}"):
                    self._put(text, thread_id=thread.id)
        for row in self._read(OBSERVATIONS):
            if (notes := self._rows.notes(row)) is not None:
                with self._refusing(notes.name):
                    self._note(notes)

    def _read(self, table: str) -> Iterator[Row]:
        """The rows of a table, as far as they can be read."""
        try:
            yield from self._source.rows(table)
        except Damaged as error:
            self._report.problems.append(
                f"{table} broke off: {error}. What was read before is kept."
            )

    def _read_messages(self) -> None:
        total = self._source.count(MESSAGES) if self._progress else 0
        batch: list[MessageRow] = []
        size = 0
        for number, row in enumerate(self._read(MESSAGES), 1):
            read = self._rows.message(row, number)
            self._report.messages += 1
            if self._progress and number % _EVERY == 0:
                self._progress(number, max(total, number))
            if read.message is None:
                self._report.left_out[read.why_not or ""] += 1
                continue
            if batch and (
                batch[0].thread_id != read.thread_id
                or len(batch) >= _BATCH
                or size > _BATCH_CHARACTERS
            ):
                self._flush(batch)
                batch, size = [], 0
            batch.append(read)
            size += sum(len(part.text) for part in read.message.content if isinstance(part, Part))
        if batch:
            self._flush(batch)
        if self._progress:
            self._progress(max(total, 1), max(total, 1))

    def _flush(self, batch: Sequence[MessageRow]) -> None:
        thread_id, resource_id = batch[0].thread_id, batch[0].resource_id
        if thread_id in self._threads:
            thread = self._threads[thread_id].thread
        else:
            thread = NewThread(thread_id, resource_id, metadata={"importedFrom": "mastra"})
        thread = replace(thread, resource_id=thread.resource_id or resource_id or self._resource_id)
        self._seen.add(thread_id)
        if self._sizes[0] != thread_id:
            is_here = self._memory.threads.find(thread_id) is not None
            stored = self._memory.messages.stream(thread_id=thread_id) if is_here else ()
            self._sizes = thread_id, {each.client_id: _size(each.metadata) for each in stored}
        # To make messages ready that are here as they are there would be for nothing.
        sizes = self._sizes[1]
        fresh = {
            row.name: message
            for row in batch
            if (message := row.message)
            and (
                message.client_id not in sizes
                or sizes[message.client_id] != _size(message.metadata)
            )
        }
        self._report.repeated += len(batch) - len(fresh)
        if self._report.is_dry_run or not fresh:
            self._report.stored += len(fresh)
            return
        try:
            self._store(thread, [*fresh.values()])
        except UsageError:
            # One message cannot be stored: the others go in one by one, and that one is told with
            # the reason.
            for name, message in fresh.items():
                with self._refusing(name):
                    self._store(thread, [message])

    def _store(self, thread: NewThread, messages: Sequence[NewMessage]) -> None:
        appended = self._memory.messages.append_batch(
            thread, messages, may_differ=True, compact=False
        )
        fresh = {message.id for message in appended.fresh}
        self._report.stored += appended.stored
        self._report.repeated += appended.repeated
        for given, stored in zip(messages, appended.messages, strict=True):
            # Whether a message is larger or smaller there than when it was imported.
            if stored.id not in fresh and _size(stored.metadata) not in (
                None,
                _size(given.metadata),
            ):
                self._grow(thread, given, stored)

    def _grow(self, thread: NewThread, given: NewMessage, stored: Message) -> None:
        """Store what a message has gained since it was imported; what is there is left as it is."""
        behind = self._memory.messages.stream(thread_id=stored.thread_id, after=stored.seq)
        pieces = [stored, *(each for each in behind if each.metadata.get("continues") == stored.id)]
        present = [part for piece in pieces for part in piece.parts]
        more: list[Part] = []
        for part in redact_parts([each for each in given.content if isinstance(each, Part)]):
            if part in present:
                present.remove(part)
            else:
                more.append(part)
        if not more:
            return
        piece = replace(
            given,
            content=tuple(more),
            client_id=f"{given.client_id}#{_digest(more)}",
            metadata={**given.metadata, "continues": stored.id},
        )
        self._report.grown += self._memory.messages.append_batch(
            thread, [piece], may_differ=True, compact=False
        ).stored

    def _put(
        self, text: str, *, resource_id: str | None = None, thread_id: str | None = None
    ) -> None:
        """Put a page, unless it was changed here since its import."""
        scope: WorkingScope = "thread" if thread_id else "resource"
        page = self._memory.working.find(scope, resource_id, thread_id)
        content: str | dict[str, Any] = redact(text).text
        if text.lstrip().startswith("{"):
            value = json_in(text)
            content = dict(redact_value(value)[0]) if isinstance(value, dict) else content
        is_same = page is not None and (
            page.format == "json" and page.value == content
            if isinstance(content, dict)
            else page.format == "markdown" and page.content.strip() == content.strip()
        )
        if page is not None and page.updated_by != ACTOR:
            self._report.pages_kept += not is_same
        elif is_same:
            self._report.pages_same += 1
        else:
            self._report.pages += 1
            if not self._report.is_dry_run:
                self._memory.working.put(
                    content,
                    scope=scope,
                    resource_id=resource_id,
                    thread_id=thread_id,
                    actor=ACTOR,
                    format="json" if isinstance(content, dict) else "markdown",
                    reason="imported from Mastra",
                )

    def _note(self, notes: ObservationNotes) -> None:
        """Keep the lines of observations that are not here yet, each below the date it stands
        under.
        """
        present = {
            line.strip()
            for message in self._memory.messages.stream(thread_id=notes.thread.id)
            for line in message.raw_content.splitlines()
        }
        for kind, text in notes.texts:
            fresh = _fresh_lines(redact(text).text, present)
            present.update(line.strip() for line in fresh.splitlines())
            self._report.observations += bool(fresh)
            if not fresh or self._report.is_dry_run:
                continue
            metadata = {
                "taint": ["imported"],
                "kind": kind,
                "mastra": {"record": notes.name, **notes.metadata},
            }
            name = f"{notes.name[:150]}#{_digest([Part('text', fresh)])}"
            message = NewMessage(
                "system", fresh, name, created_at=notes.created_at, metadata=metadata
            )
            self._memory.messages.append_batch(
                notes.thread, [message], may_differ=True, compact=False
            )

    @contextmanager
    def _refusing(self, name: str) -> Iterator[None]:
        """Report the trouble of one thing under its name, so that the others go on."""
        try:
            yield
        except UsageError as error:
            self._report.refused.append((name, str(error)))


def _size(metadata: Mapping[str, Any]) -> _Size:
    """How many parts and characters a message had when it was imported."""
    about = metadata.get("mastra")
    return (about.get("parts"), about.get("characters")) if isinstance(about, dict) else None


def _fresh_lines(text: str, present: set[str]) -> str:
    """The lines that are not present, with the date that stands over them."""
    lines: list[str] = []
    heading = ""
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith(("Date:", "#", "<")) or (
            bare.endswith(":") and not bare.startswith(("*", "-"))
        ):
            heading = line
        elif bare and bare not in present:
            lines += [heading, line] if heading else [line]
            heading = ""
    return "\n".join(lines)


def _digest(parts: Sequence[Part]) -> str:
    framed = "\x1f".join(
        f"{part.type}\x1e{part.call_id or ''}\x1e{part.text}\x1e{part.arguments!r}"
        for part in parts
    )
    return hashlib.sha256(framed.encode("utf-8", "replace")).hexdigest()[:16]
