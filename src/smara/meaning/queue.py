"""Read batches of records that need vectors, newest first.

Every write of a record queues it in the same transaction, so none can be missed. Records older than
a space are reached once by a walk from the newest down.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from smara.database.database import Session
from smara.database.vectors import TABLES, VectorKind, vector_code
from smara.meaning.store import QueueEntry, SpaceWalk, VectorStore
from smara.meaning.texts import Texts

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
    _characters: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.texts or self.gone or self.entries or self.walks)

    @property
    def is_full(self) -> bool:
        return self._characters > BATCH_CHARACTERS

    def add(self, kind: VectorKind, no: int, texts: list[str]) -> None:
        self.texts[kind, no] = texts
        self._characters += sum(map(len, texts))


class EmbeddingQueue:
    """Finds what waits for the vectors of a space."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._texts = Texts(store)

    def next(
        self, session: Session, space_no: int, limit: int, passed: Set[QueueEntry] = frozenset()
    ) -> EmbeddingBatch:
        """Return the next records, read in one snapshot.

        So that texts fit their stamps.

        ``passed`` are entries that another session held when their turn came.
        """
        limit = min(limit, BATCH_RECORDS)
        waiting = self._store.entries(session, space_no, limit + len(passed))
        entries = [each for each in waiting if each not in passed]
        if entries:
            return self._of_entries(session, entries[:limit])
        batch = self._of_walk(session, space_no, limit)
        batch.is_held = bool(waiting)
        return batch

    def is_waiting(self, session: Session, space_no: int) -> bool:
        """Return True if anything waits, in the queue or on a walk."""
        return self._store.is_waiting(session, space_no) or any(
            not walk.is_done for walk in self._store.walks(session, space_no)
        )

    def _of_entries(self, session: Session, entries: list[QueueEntry]) -> EmbeddingBatch:
        batch = EmbeddingBatch()
        for kind in dict.fromkeys(entry.kind for entry in entries):
            of_kind = [entry for entry in entries if entry.kind == kind]
            texts = self._texts.of(session, kind, [entry.no for entry in of_kind])
            for entry in of_kind:
                if batch.is_full:
                    return batch
                batch.entries.append(entry)
                if entry.no in texts:
                    batch.add(kind, entry.no, texts[entry.no])
                else:
                    batch.gone.append((kind, entry.no))
        return batch

    def _of_walk(self, session: Session, space_no: int, limit: int) -> EmbeddingBatch:
        batch = EmbeddingBatch()
        for walk in self._store.walks(session, space_no):
            if walk.is_done:
                continue
            numbers = self._without_vectors(session, space_no, walk, limit=limit)
            texts = self._texts.of(session, walk.kind, numbers)
            for no in numbers:
                if batch.is_full:
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

    def _without_vectors(
        self, session: Session, space_no: int, walk: SpaceWalk, limit: int
    ) -> list[int]:
        """Return the next records of a walk without vectors, newest first."""
        shelf = self._store.shelf(session, space_no, walk.kind)
        table, bits = TABLES[walk.kind], shelf.record_bits
        statement = (
            f"SELECT r.no FROM {table} r WHERE r.project_no = :project AND r.no < ?"
            f" AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.no = ? + (r.no << {bits}))"
            " AND NOT EXISTS (SELECT 1 FROM embedding_failures f WHERE f.project_no = r.project_no"
            " AND f.space_no = ? AND f.kind = ? AND f.no = r.no)"
            " ORDER BY r.no DESC LIMIT ?"
        )
        values = (walk.walked_no, shelf.base, space_no, vector_code(walk.kind), limit)
        rows = session.all(self._store.sql(statement), values)
        return [int(row[0]) for row in rows]
