"""Read batches of records that need vectors, newest first, as texts.

Every write of a record queues it in the same transaction, so none can be missed. Records older than
a space are reached once by a walk from the newest down. A record alone often does not say what it
is about, so its context is put before it: from the record and from what preceded it, so that the
same record always gives the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from smara.codegraph.store import ChunkRow, CodeStore
from smara.core.startup.record import dataclass, field
from smara.core.terms import pieces
from smara.core.text import CHUNK_CHARACTERS
from smara.database.database import Session
from smara.database.vectors import TABLES, VectorKind, vector_code
from smara.knowledge.models import TypedMemory
from smara.knowledge.store import KnowledgeStore
from smara.meaning.store import QueueEntry, SpaceWalk, VectorStore
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.observations.models import Observation
from smara.observations.store import ObservationStore
from smara.tasks.models import Task
from smara.tasks.store import TaskStore
from smara.working.store import WorkingStore

CODE_CHARACTERS = 4_000
"""So much of a piece of code is embedded: a vector of more says less of each part."""


def _of_message(message: Message) -> list[str]:
    """The same pieces as in the text index."""
    return list(pieces(message.raw_content if message.parts else "", CHUNK_CHARACTERS)) or [""]


def _of_task(task: Task) -> list[str]:
    """Return a task's text: kind, title, labels, and descriptions."""
    head = f"{_prefix((task.type, *task.labels))}{task.title}"
    return ["\n".join(filter(None, (head, task.full_description, task.summary)))]


def _of_observation(observation: Observation) -> list[str]:
    """An observation with its category and its files before it."""
    head = _prefix((*observation.files, observation.category))
    return [head + "\n".join((observation.text, *observation.details))]


def of_memory(memory: TypedMemory) -> str:
    """Return a memory's text with files, modules and type, or prefix."""
    head = (
        f"{memory.context_prefix}: "
        if memory.context_prefix
        else _prefix((*memory.files, *memory.modules, memory.type.replace("_", " ")))
    )
    return head + memory.content


def _of_chunk(chunk: ChunkRow) -> list[str]:
    """Return a chunk's text behind its context, cut if long."""
    text = chunk.text[:CODE_CHARACTERS]
    return [f"{chunk.prefix}\n{text}" if chunk.prefix else text]


def _prefix(about: Sequence[str]) -> str:
    """What a text is about, to be put before it.

    >>> _prefix(("src/auth.ts", "gotcha")), _prefix(())
    ('src/auth.ts | gotcha: ', '')
    """
    context = " | ".join(filter(None, about))
    return f"{context}: " if context else ""


BATCH_RECORDS = 256
BATCH_CHARACTERS = 400_000


@dataclass(slots=True)
class EmbeddingBatch:
    """Records to embed together, and what is done once they are."""

    texts: dict[tuple[VectorKind, int], list[str]] = field(default_factory=dict)
    gone: list[tuple[VectorKind, int]] = field(default_factory=list)
    entries: list[QueueEntry] = field(default_factory=list)
    walks: list[SpaceWalk] = field(default_factory=list)
    is_held: bool = False
    """True if something waits that another session held when its turn came."""
    characters: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.texts or self.gone or self.entries or self.walks)

    def add(self, kind: VectorKind, no: int, texts: list[str]) -> None:
        self.texts[kind, no] = texts
        self.characters += sum(map(len, texts))


class EmbeddingQueue:
    """Finds what waits for the vectors of a space."""

    def __init__(self, store: VectorStore, messages: MessageStore) -> None:
        self._store = store
        database, scope = store.database, store.scope
        self.messages = messages
        self._readers: Mapping[
            VectorKind, tuple[Callable[..., Mapping[int, Any]], Callable[[Any], list[str]]]
        ] = {
            "message": (messages.by_numbers, _of_message),
            "task": (TaskStore(database, scope).by_numbers, _of_task),
            "observation": (ObservationStore(database, scope).by_numbers, _of_observation),
            "memory": (
                KnowledgeStore(database, scope).by_numbers,
                lambda memory: [of_memory(memory)],
            ),
            "code": (CodeStore(database, scope).chunks_by_number, _of_chunk),
            "working": (WorkingStore(database, scope).by_numbers, lambda page: [page.content]),
        }
        """How the records of each kind are read, and the texts of one, a row each."""

    def texts(
        self, session: Session, kind: VectorKind, numbers: Sequence[int]
    ) -> dict[int, list[str]]:
        """Return records' texts, one per row; missing are left out."""
        if not numbers:
            return {}
        read, texts_of = self._readers[kind]
        return {no: texts_of(each) for no, each in read(session, numbers).items()}

    def next(
        self, session: Session, space_no: int, limit: int, passed: Set[QueueEntry] = frozenset()
    ) -> EmbeddingBatch:
        """Return the next records, read in one snapshot.

        So that texts fit their stamps.

        ``passed`` are entries that another session held when their turn came.
        """
        limit = min(limit, BATCH_RECORDS)
        waiting = self._store.entries(session, space_no, limit + len(passed))
        entries = [each for each in waiting if each not in passed][:limit]
        if not entries:
            batch = self._of_walk(session, space_no, limit)
            batch.is_held = bool(waiting)
            return batch
        batch = EmbeddingBatch()
        for kind in dict.fromkeys(entry.kind for entry in entries):
            of_kind = [entry for entry in entries if entry.kind == kind]
            texts = self.texts(session, kind, [entry.no for entry in of_kind])
            for entry in of_kind:
                if batch.characters > BATCH_CHARACTERS:
                    return batch
                batch.entries.append(entry)
                if entry.no in texts:
                    batch.add(kind, entry.no, texts[entry.no])
                else:
                    batch.gone.append((kind, entry.no))
        return batch

    def is_waiting(self, session: Session, space_no: int) -> bool:
        """Return True if anything waits, in the queue or on a walk."""
        return self._store.is_waiting(session, space_no) or any(
            not walk.is_done for walk in self._store.walks(session, space_no)
        )

    def _of_walk(self, session: Session, space_no: int, limit: int) -> EmbeddingBatch:
        batch = EmbeddingBatch()
        for walk in self._store.walks(session, space_no):
            if walk.is_done:
                continue
            shelf = self._store.shelf(session, space_no, walk.kind)
            table, bits = TABLES[walk.kind], shelf.record_bits
            statement = (
                f"SELECT r.no FROM {table} r WHERE r.project_no = :project AND r.no < ?"
                f" AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.no = ? + (r.no << {bits})"
                f"{self._store.database.vectors.in_project})"
                " AND NOT EXISTS (SELECT 1 FROM embedding_failures f"
                " WHERE f.project_no = r.project_no"
                " AND f.space_no = ? AND f.kind = ? AND f.no = r.no)"
                " ORDER BY r.no DESC LIMIT ?"
            )
            values = (walk.walked_no, shelf.base, space_no, vector_code(walk.kind), limit)
            numbers = [int(row[0]) for row in session.all(self._store.sql(statement), values)]
            texts = self.texts(session, walk.kind, numbers)
            for no in numbers:
                if batch.characters > BATCH_CHARACTERS:
                    break
                if no in texts:
                    batch.add(walk.kind, no, texts[no])
                walk = SpaceWalk(walk.kind, no, False)
            is_end = len(numbers) < limit and (not numbers or walk.walked_no == numbers[-1])
            batch.walks.append(SpaceWalk(walk.kind, 0, True) if is_end else walk)
            if not is_end:
                return batch
            limit -= len(numbers)
        return batch
