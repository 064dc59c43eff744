"""Import transcript files into a memory in repeatable batches.

Each batch is one transaction. A killed import keeps every batch it reported, and the next
run stores only what is missing. Every line is accounted for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from smara.adapters.host import written_at
from smara.adapters.records import Counted, Imported, Progress
from smara.adapters.replay import Learner
from smara.adapters.sniff import reader_of, sniff
from smara.errors import InvalidInputError
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Part

BATCH = 500
_BATCH_CHARACTERS = 4_000_000


@dataclass(slots=True)
class ImportReport:
    """The result of one file: every line is accounted for.

    ``lines`` equals stored + repeated + counted + refused.
    """

    path: str
    format: str
    lines: int = 0
    stored: int = 0
    repeated: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)
    repaired: int = 0
    threads: dict[str, str] = field(default_factory=dict)


class Importer:
    """Imports files into one memory.

    With a ``learner`` what the files tell is learned from, too; in a ``dry_run`` everything is
    read and compared with the store, and nothing is written. Without a memory nothing is known
    yet, and a dry run is all that can be had.
    """

    def __init__(
        self,
        memory: Memory | None,
        resource_id: str | None = None,
        *,
        learner: Learner | None = None,
        dry_run: bool = False,
    ) -> None:
        self._memory = memory
        self._resource_id = resource_id
        self._learner = None if dry_run else learner
        self._dry_run = dry_run
        self._known: dict[str, set[str]] = {}  # what this dry run has met
        self._hooked: dict[str, Counter[tuple[str, str]]] = {}
        self._report = ImportReport("", "jsonl")
        self._batch: list[Imported] = []
        self._batch_size = 0
        self._told: dict[str, NewThread] = {}

    def import_file(
        self,
        path: str | os.PathLike[str],
        progress: Progress | None = None,
        format: str | None = None,
        *,
        only: str | None = None,
    ) -> ImportReport:
        """Import a file, or ``only`` one of its sessions; safe to repeat."""
        chosen = format or sniff(path)
        self._report = ImportReport(os.fspath(path), chosen)
        self._told = {}
        if self._learner is not None:
            self._learner.begin_file(written_at(path))
        for record in reader_of(chosen)(
            path, progress, **({"only": only} if only is not None else {})
        ):
            self._report.lines += 1
            if self._learner is not None:
                self._learner.take(record)
            if isinstance(record, Counted):
                self._report.counted[record.kind, record.reason] += 1
                if record.thread is not None:
                    self._told[record.thread.id] = record.thread
                continue
            if self._was_told_by_hooks(record):
                self._report.counted["repeat", "words that a hook has told already"] += 1
                continue
            self._take(record)
        self._flush()
        if self._learner is not None:
            self._learner.flush()
        for thread in self._told.values():
            self._report.threads.setdefault(thread.id, thread.kind)
            if self._dry_run or self._memory is None:
                continue
            self._memory.threads.put(self._with_resource(thread))
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
        # Preparing a message costs more than all else, and most imports are repeated.
        ids = [message.client_id or "" for message in messages]
        known = (
            set()
            if self._memory is None
            else self._memory.messages.known_client_ids(thread.id, ids)
        )
        if self._dry_run or self._memory is None:
            told = self._known.setdefault(thread.id, set())
            known |= told & set(ids)
            told.update(ids)
        fresh = [message for message in messages if message.client_id not in known]
        self._report.repeated += len(messages) - len(fresh)
        if not fresh:
            return
        if self._dry_run or self._memory is None:
            self._report.stored += len(fresh)
            return
        # Without a title as yet: a file may tell a better one further on, and a thread keeps its
        # first.
        untitled = replace(thread, title=None)
        appended = self._memory.messages.append_batch(
            untitled, fresh, may_differ=True, compact=False
        )
        self._report.stored += appended.stored
        self._report.repeated += appended.repeated

    def _was_told_by_hooks(self, record: Imported) -> bool:
        """Whether the agent's hooks have brought these words into the thread, under an id of their
        own.
        """
        thread_id, role = record.thread.id, record.message.role
        if thread_id not in self._hooked:
            self._hooked[thread_id] = self._words_of_hooks(thread_id)
        hooked = self._hooked[thread_id]
        if not hooked or role not in ("user", "assistant"):
            return False
        words = (role, _words(record.message.content))
        if not hooked[words]:
            return False
        hooked[words] -= 1  # what was said twice was told twice
        return True

    def _words_of_hooks(self, thread_id: str) -> Counter[tuple[str, str]]:
        thread = None if self._memory is None else self._memory.threads.find(thread_id)
        if thread is None or self._memory is None or thread.metadata.get("told_by") != "hooks":
            return Counter()
        stored = self._memory.messages.stream(thread_id=thread_id)
        return Counter(
            (each.role, each.raw_content.strip())
            for each in stored
            if each.metadata.get("source") == "hook"
        )

    def _with_resource(self, thread: NewThread) -> NewThread:
        if thread.resource_id is not None or self._resource_id is None:
            return thread
        return replace(thread, resource_id=self._resource_id)


def _words(content: str | Sequence[Part]) -> str:
    """The words of a message that is nothing but words; of any other none."""
    if isinstance(content, str):
        return content.strip()
    return (
        "\n".join(part.text for part in content).strip()
        if all(part.type == "text" for part in content)
        else ""
    )


def _size(message: NewMessage) -> int:
    if isinstance(message.content, str):
        return len(message.content)
    return sum(len(part.text) for part in message.content) + 200
