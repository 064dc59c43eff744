"""Import a Mastra store into a memory in repeatable batches.

A message keeps its id, so that it is stored once. Mastra appends to existing messages; text
added since the last import becomes a message that names the one it continues. Observations
are kept word for word in a thread of their own, because they do not name their messages.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from smara.adapters.lines import load_json
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
from smara.errors import UsageError
from smara.memory import Memory
from smara.messages.models import Message, NewMessage, NewThread, Part
from smara.messages.prepare import redact_parts
from smara.secrets import redact
from smara.secrets.redact import redact_value
from smara.working.models import WorkingMemory, WorkingScope


@dataclass(slots=True)
class MastraReport:
    """The result of importing a store, or of its dry run.

    ``messages`` equals stored + repeated + refused + what is in ``left_out``; ``grown`` counts
    pieces that were added to messages that had been stored before.
    """

    source: str
    is_dry_run: bool = False
    threads: int = 0
    messages: int = 0
    stored: int = 0
    repeated: int = 0
    grown: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a message's or page's name there and why it was not taken."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many messages did not become one here, by the reason."""
    pages: int = 0
    """Working memories that were put here now."""
    pages_same: int = 0
    pages_kept: int = 0
    """Working memories that were changed here since, and left so."""
    observations: int = 0
    """Texts of observations and reflections that were stored now."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, in sentences."""

    @property
    def is_nothing_new(self) -> bool:
        return not (self.stored or self.grown or self.pages or self.observations)


Progress = Callable[[int, int], None]
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
        self._known: tuple[str, dict[str, _Size]] = ("", {})

    def run(self) -> None:
        for table in (THREADS, MESSAGES):
            if table not in self._source.tables:
                self._report.problems.append(
                    f"There is no table {table}; what would be in it is left out."
                )
        for row in self._read(THREADS):
            found = self._rows.thread(row)
            if found is not None:
                self._threads[found.thread.id] = found
        self._messages()
        self._empty_threads()
        self._pages()
        for row in self._read(OBSERVATIONS):
            notes = self._rows.notes(row)
            if notes is not None:
                self._guarded(notes.name, partial(self._note, notes))

    def _read(self, table: str) -> Iterator[Row]:
        """The rows of a table, as far as they can be read."""
        return self._whole(self._source.rows(table), table)

    def _whole(self, rows: Iterator[Row], table: str) -> Iterator[Row]:
        try:
            yield from rows
        except Damaged as error:
            self._report.problems.append(
                f"{table} broke off: {error}. What was read before is kept."
            )

    def _messages(self) -> None:
        total = self._source.count(MESSAGES) if self._progress else 0
        batch: list[MessageRow] = []
        size = 0
        for number, row in enumerate(self._whole(self._source.messages(), MESSAGES), 1):
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
        self._flush(batch)
        if self._progress:
            self._progress(max(total, 1), max(total, 1))

    def _flush(self, batch: Sequence[MessageRow]) -> None:
        if not batch:
            return
        thread = self._thread(batch[0])
        self._seen.add(thread.id)
        batch = self._unknown(thread.id, batch)
        messages = [each.message for each in batch if each.message is not None]
        if self._report.is_dry_run:
            self._report.stored += len(messages)
            return
        if not messages:
            return
        try:
            self._store(thread, messages)
        except UsageError:
            # One message cannot be stored: the others go in one by one, and that one is told with
            # the reason.
            for each in batch:
                if each.message is not None:
                    self._guarded(each.name, partial(self._store, thread, [each.message]))

    def _thread(self, read: MessageRow) -> NewThread:
        known = self._threads.get(read.thread_id)
        thread = (
            known.thread
            if known is not None
            else NewThread(read.thread_id, read.resource_id, metadata=_FROM)
        )
        return (
            thread
            if thread.resource_id
            else replace(thread, resource_id=read.resource_id or self._resource_id)
        )

    def _store(self, thread: NewThread, messages: Sequence[NewMessage]) -> None:
        appended = self._memory.messages.append_batch(
            thread, messages, may_differ=True, compact=False
        )
        fresh = {message.id for message in appended.fresh}
        self._report.stored += appended.stored
        self._report.repeated += appended.repeated
        for given, held in zip(messages, appended.messages, strict=True):
            # Whether a message is larger or smaller there than when it was imported.
            if held.id not in fresh and (
                _size(held.metadata) is not None and _size(given.metadata) != _size(held.metadata)
            ):
                self._grow(thread, given, held)

    def _grow(self, thread: NewThread, given: NewMessage, held: Message) -> None:
        """Store what a message has gained since it was imported; what is there is left as it is."""
        pieces = [held, *self._continued(held)]
        known = [part for piece in pieces for part in piece.parts]
        more: list[Part] = []
        for part in redact_parts([each for each in given.content if isinstance(each, Part)]):
            if part in known:
                known.remove(part)
            else:
                more.append(part)
        if not more:
            return
        name = f"{given.client_id}#{_digest(more)}"
        piece = replace(
            given,
            content=tuple(more),
            client_id=name,
            metadata={**given.metadata, "continues": held.id},
        )
        self._report.grown += self._memory.messages.append_batch(
            thread, [piece], may_differ=True, compact=False
        ).stored

    def _continued(self, held: Message) -> Iterator[Message]:
        behind = self._memory.messages.stream(thread_id=held.thread_id, after=held.seq)
        return (each for each in behind if each.metadata.get("continues") == held.id)

    def _unknown(self, thread_id: str, batch: Sequence[MessageRow]) -> Sequence[MessageRow]:
        """The messages that are not here as they are there: to make the others ready again would be
        for nothing.
        """
        if self._known[0] != thread_id:
            is_here = self._memory.threads.find(thread_id) is not None
            held = self._memory.messages.stream(thread_id=thread_id) if is_here else iter(())
            self._known = thread_id, {each.client_id or "": _size(each.metadata) for each in held}
        known = self._known[1]
        fresh = [
            each
            for each in batch
            if each.message
            and not (
                (each.message.client_id or "") in known
                and known[each.message.client_id or ""] == _size(each.message.metadata)
            )
        ]
        self._report.repeated += len(batch) - len(fresh)
        return fresh

    def _empty_threads(self) -> None:
        """Threads are made or brought up to date also when nothing was said in them."""
        self._report.threads = len(self._seen | set(self._threads))
        if self._report.is_dry_run:
            return
        for found in self._threads.values():
            thread = found.thread
            owned = thread if thread.resource_id else replace(thread, resource_id=self._resource_id)
            self._guarded(thread.id, partial(self._memory.threads.put, owned))

    def _pages(self) -> None:
        for row in self._read(RESOURCES):
            page = self._rows.page(row)
            if page is not None:
                self._guarded(
                    f"resource {page[0]}", partial(self._put, page[1], resource_id=page[0])
                )
        for found in self._threads.values():
            if found.page is not None:
                thread_id, text = found.thread.id, found.page
                self._guarded(f"thread {thread_id}", partial(self._put, text, thread_id=thread_id))

    def _put(
        self, text: str, *, resource_id: str | None = None, thread_id: str | None = None
    ) -> None:
        """Put a page, unless it was changed here since its import."""
        scope: WorkingScope = "thread" if thread_id else "resource"
        held = self._memory.working.find(scope, resource_id, thread_id)
        content = _page_of(text)
        if held is not None and held.updated_by != ACTOR:
            self._report.pages_kept += not _says(held, content)
        elif held is not None and _says(held, content):
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
        held = list(self._memory.messages.stream(thread_id=notes.thread.id))
        known = {line.strip() for message in held for line in message.raw_content.splitlines()}
        for kind, text in notes.texts:
            fresh = _fresh_lines(redact(text).text, known)
            if not fresh:
                continue
            known.update(line.strip() for line in fresh.splitlines())
            self._report.observations += 1
            if self._report.is_dry_run:
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

    def _guarded(self, name: str, act: Callable[[], object]) -> None:
        """Do something for one thing; its trouble is told and is not that of the others."""
        try:
            act()
        except UsageError as error:
            self._report.refused.append((name, str(error)))


_FROM = {"importedFrom": "mastra"}


def _page_of(text: str) -> str | dict[str, Any]:
    """A page as it is kept here: an object when it is JSON by a schema, otherwise text; without
    secrets.
    """
    if text.lstrip().startswith("{"):
        try:
            value = load_json(text)[0]
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return dict(redact_value(value)[0])
    return redact(text).text


def _says(held: WorkingMemory, content: str | dict[str, Any]) -> bool:
    if isinstance(content, dict):
        return held.format == "json" and held.value == content
    return held.format == "markdown" and held.content.strip() == content.strip()


def _size(metadata: Mapping[str, Any]) -> _Size:
    """How many parts and characters a message had when it was imported."""
    about = metadata.get("mastra")
    return (about.get("parts"), about.get("characters")) if isinstance(about, dict) else None


def _fresh_lines(text: str, known: set[str]) -> str:
    """The lines that are not known, with the date that stands over them."""
    found: list[str] = []
    heading = ""
    for line in text.splitlines():
        bare = line.strip()
        is_heading = bare.startswith(("Date:", "#", "<")) or (
            bare.endswith(":") and not bare.startswith(("*", "-"))
        )
        if is_heading:
            heading = line
        elif line.strip() and line.strip() not in known:
            if heading:
                found.append(heading)
                heading = ""
            found.append(line)
    return "\n".join(found)


def _digest(parts: Sequence[Part]) -> str:
    framed = "\x1f".join(
        f"{part.type}\x1e{part.call_id or ''}\x1e{part.text}\x1e{part.arguments!r}"
        for part in parts
    )
    return hashlib.sha256(framed.encode("utf-8", "replace")).hexdigest()[:16]
