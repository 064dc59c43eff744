"""Keep CrewAI's memory in ours: a ``StorageBackend`` over ``memory.frameworks``.

A record is an item; its scope is the item's namespace and its id the item's name. CrewAI hands
over vectors of its own embedder, which are kept apart from ours and compared only with each other.
By its words a record is found by ``memory.search``, as an item; a private one is not.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord, ScopeInfo

from smara.frameworks.items import ItemBatch
from smara.frameworks.models import Item
from smara.memory import Memory

FRAMEWORK = "crewai"
_SPACE = "crewai"
_EPOCH = datetime(1970, 1, 1)  # in UTC without a zone, as CrewAI computes with
_MICROSECOND = timedelta(microseconds=1)
_TIMES = ("created_at", "last_accessed")


class SmaraStorage:
    """The storage of ``crewai.Memory`` in a memory's project.

    Safe for threads, tasks and processes.
    """

    def __init__(self, memory: Memory) -> None:
        """Open the storage of a memory, which stays open until its owner closes it."""
        self._items = memory.frameworks.items(FRAMEWORK)

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records; one whose id is there is replaced.

        Raises:
            EmbeddingDimensionMismatchError: If vectors are of another size than those stored.
            TypeError: If metadata cannot be written as JSON.
        """
        new = [
            (record, self._items.prepare(_value(record), fields=_fields(record)))
            for record in records
        ]
        with self._items.write() as batch:
            size = batch.vector_bytes(_SPACE)
            there = {item.name: item for item in batch.by_names([each.id for each in records])}
            for record, prepared in new:
                labels, vector = _labels(record.scope), _encode(record.embedding)
                if vector:
                    size = size or len(vector)
                    _require_size(size, vector)
                old = there.get(record.id)
                if old is not None:
                    vector = vector or batch.vectors_of([old.no], _SPACE).get(old.no, b"")
                    if old.namespace != labels:
                        batch.delete(old.namespace, old.name)
                item = batch.put(labels, record.id, prepared)
                if vector:
                    batch.put_vectors(item, _SPACE, [("content", 0, vector)], has_none=True)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of the same id.

        Without a vector it keeps the one it has.
        """
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the nearest records with the cosines of their vectors, best first.

        Raises:
            EmbeddingDimensionMismatchError: If the vector is of another size than those stored.
        """
        question = np.asarray(query_embedding, dtype=np.float32)
        found: list[tuple[MemoryRecord, float]] = []
        with self._items.read() as batch:
            stored = batch.vectors(_SPACE, _labels(scope_prefix))
            if not stored or limit <= 0:
                return []
            _require_size(len(stored[0][1]), question.tobytes())
            matrix = np.frombuffer(b"".join(each for _, each in stored), dtype="<f4")
            matrix = matrix.reshape(len(stored), len(question))
            lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(question)
            cosines = np.divide(
                matrix @ question, lengths, out=np.zeros(len(stored), "f4"), where=lengths > 0
            )
            order = np.argsort(-cosines, kind="stable")
            for start in range(0, len(order), 200):
                part = [(stored[at], float(cosines[at])) for at in order[start : start + 200]]
                items = batch.by_numbers([no for (no, _), _ in part])
                for (no, vector), score in part:
                    if score < min_score or len(found) == limit:
                        return found
                    record = _record(items[no], vector)
                    if _fits(record, categories, metadata_filter):
                        found.append((record, max(score, 0.0)))
        return found

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet every condition given; return how many."""
        prefix, before = _labels(scope_prefix), None if older_than is None else _naive(older_than)
        with self._items.write() as batch:
            items = batch.iterate(prefix) if record_ids is None else batch.by_names(record_ids)
            chosen = [
                item
                for item in items
                if item.namespace[: len(prefix)] == prefix
                and _fits(record := _record(item), categories, metadata_filter)
                and (before is None or record.created_at < before)
            ]
            for item in chosen:
                batch.delete(item.namespace, item.name)
        return len(chosen)

    def touch_records(self, record_ids: list[str]) -> None:
        """Note that records were used just now."""
        now = datetime.now(UTC)
        with self._items.read() as batch:
            records = self._find(batch, record_ids)
        self.save([each.model_copy(update={"last_accessed": now}) for each in records])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record by its id, or ``None``."""
        with self._items.read() as batch:
            return next(iter(self._find(batch, [record_id])), None)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Return the records of a scope and below it, the newest first."""
        if limit <= 0 or offset < 0:
            return []
        records = sorted(self._records(scope_prefix), key=lambda each: each.created_at)
        return records[::-1][offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what a scope holds, scopes below it included."""
        records = list(self._records(scope))
        times = [record.created_at for record in records]
        return ScopeInfo(
            path=_scope(_labels(scope)),
            record_count=len(records),
            categories=sorted({name for record in records for name in record.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=_children((_labels(record.scope) for record in records), _labels(scope)),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes right below one, in order."""
        labels = _labels(parent)
        return _children(self._items.namespaces(labels), labels)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count the records of each category."""
        records = self._records(scope_prefix)
        return dict(Counter(name for record in records for name in record.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Count the records of a scope and below it."""
        with self._items.read() as batch:
            return sum(1 for _ in batch.iterate(_labels(scope_prefix)))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete the records of a scope and below it, or all."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Store records, off the event loop."""
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self, query_embedding: list[float], *given: Any, **named: Any
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the nearest records, off the event loop; see :meth:`search`."""
        return await asyncio.to_thread(self.search, query_embedding, *given, **named)

    async def adelete(self, *given: Any, **named: Any) -> int:
        """Delete records, off the event loop; see :meth:`delete`."""
        return await asyncio.to_thread(self.delete, *given, **named)

    def _records(self, scope_prefix: str | None) -> Iterator[MemoryRecord]:
        with self._items.read() as batch:
            yield from map(_record, batch.iterate(_labels(scope_prefix)))

    def _find(self, batch: ItemBatch, ids: Sequence[str]) -> list[MemoryRecord]:
        items = batch.by_names(ids)
        vectors = batch.vectors_of([item.no for item in items], _SPACE)
        return [_record(item, vectors.get(item.no, b"")) for item in items]


def _labels(scope: str | None) -> tuple[str, ...]:
    """Return the labels of a scope.

    >>> _labels("/company/team/"), _labels("/"), _labels(None)
    (('company', 'team'), (), ())
    """
    return tuple(label for label in (scope or "").split("/") if label)


def _scope(labels: Iterable[str]) -> str:
    return "/" + "/".join(labels)


def _children(scopes: Iterable[Sequence[str]], parent: Sequence[str]) -> list[str]:
    depth = len(parent) + 1
    return sorted({_scope(labels[:depth]) for labels in scopes if len(labels) >= depth})


def _fields(record: MemoryRecord) -> tuple[str, ...] | None:
    return () if record.private else None


def _naive(at: datetime) -> datetime:
    """Return a time in UTC without a zone, as CrewAI computes with."""
    return at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)


def _value(record: MemoryRecord) -> dict[str, Any]:
    """Return what is stored of a record beside its name and scope; times are no words of it."""
    json.dumps(record.metadata)  # a TypeError for what would come back as something else
    value: dict[str, Any] = record.model_dump(exclude={"id", "scope", "embedding", *_TIMES})
    times = {name: (_naive(getattr(record, name)) - _EPOCH) // _MICROSECOND for name in _TIMES}
    return value | times


def _record(item: Item, vector: bytes = b"") -> MemoryRecord:
    times = {name: _EPOCH + item.value[name] * _MICROSECOND for name in _TIMES}
    embedding = np.frombuffer(vector, dtype="<f4").tolist() or None
    return MemoryRecord(
        **{**item.value, **times}, id=item.name, scope=_scope(item.namespace), embedding=embedding
    )


def _encode(embedding: Sequence[float] | None) -> bytes:
    return np.asarray(embedding, dtype="<f4").tobytes() if embedding else b""


def _require_size(size: int, vector: bytes) -> None:
    if len(vector) != size:
        raise EmbeddingDimensionMismatchError(size // 4, len(vector) // 4)


def _fits(
    record: MemoryRecord, categories: list[str] | None, metadata: dict[str, Any] | None
) -> bool:
    return (not categories or any(each in record.categories for each in categories)) and all(
        record.metadata.get(name) == value for name, value in (metadata or {}).items()
    )
