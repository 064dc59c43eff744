"""Bringing files into a memory: whole, in batches, safe to repeat.

Each batch is one transaction. A killed import loses nothing that was reported, and
running it again stores only what is missing. Every line is accounted for.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace

from smara.adapters.records import Counted, Imported, Progress
from smara.adapters.sniff import Format, read_records, sniff
from smara.errors import InvalidInputError
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread

BATCH = 500
_BATCH_CHARACTERS = 4_000_000


@dataclass(slots=True)
class ImportReport:
    """What became of a file. ``lines`` equals stored + repeated + counted + refused."""

    path: str
    format: Format
    lines: int = 0
    stored: int = 0
    repeated: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)
    repaired: int = 0
    threads: dict[str, str] = field(default_factory=dict)


class Importer:
    """Imports files into one memory."""

    def __init__(self, memory: Memory, resource_id: str | None = None) -> None:
        self._memory = memory
        self._resource_id = resource_id
        self._report = ImportReport("", "jsonl")
        self._batch: list[Imported] = []
        self._batch_size = 0
        self._told: dict[str, NewThread] = {}

    def import_file(
        self, path: str | os.PathLike[str], progress: Progress | None = None, format: Format | None = None
    ) -> ImportReport:
        """Import one file; safe to repeat."""
        chosen = format or sniff(path)
        self._report = ImportReport(os.fspath(path), chosen)
        self._told = {}
        for record in read_records(path, progress, format=chosen):
            self._report.lines += 1
            if isinstance(record, Counted):
                self._report.counted[record.kind, record.reason] += 1
                if record.thread is not None:
                    self._told[record.thread.id] = record.thread
                continue
            self._take(record)
        self._flush()
        for thread in self._told.values():
            self._memory.threads.put(self._with_resource(thread))
            self._report.threads.setdefault(thread.id, thread.kind)
        return self._report

    def _take(self, record: Imported) -> None:
        if self._batch and self._batch[0].thread.id != record.thread.id:
            self._flush()
        self._told[record.thread.id] = record.thread
        self._batch.append(record)
        self._report.repaired += bool(record.repairs)
        self._batch_size += _size(record.message)
        if len(self._batch) >= BATCH or self._batch_size > _BATCH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        batch, self._batch, self._batch_size = self._batch, [], 0
        if not batch:
            return
        thread = self._with_resource(batch[0].thread)
        self._report.threads[thread.id] = thread.kind
        try:
            self._store(thread, [record.message for record in batch])
        except InvalidInputError:
            # One message cannot be stored: the others go in one by one, and that one is
            # reported with its line and the reason.
            for record in batch:
                try:
                    self._store(thread, [record.message])
                except InvalidInputError as error:
                    self._report.refused.append((record.line, str(error)))

    def _store(self, thread: NewThread, messages: list[NewMessage]) -> None:
        # Without a title as yet: a file may tell a better one further on, and a thread keeps its first.
        untitled = replace(thread, title=None)
        appended = self._memory.messages.append_batch(untitled, messages, may_differ=True, compact=False)
        self._report.stored += appended.stored
        self._report.repeated += appended.repeated

    def _with_resource(self, thread: NewThread) -> NewThread:
        if thread.resource_id is not None or self._resource_id is None:
            return thread
        return replace(thread, resource_id=self._resource_id)


def _size(message: NewMessage) -> int:
    if isinstance(message.content, str):
        return len(message.content)
    return sum(len(part.text) for part in message.content) + 200
