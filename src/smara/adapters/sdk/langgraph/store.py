"""Keep LangGraph's long-term store in a memory: a ``BaseStore`` over ``memory.frameworks``.

A batch runs in three steps: check and redact what it puts, embed what needs a foreign embedder,
then read and write in one transaction. Reads see the state before the batch's writes. Only the
second step may run on an event loop; the database is worked on in threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from langgraph.store.base import Item as StoreItem
from langgraph.store.base.batch import AsyncBatchedBaseStore

import smara
from smara.adapters.sdk.langgraph.match import (
    check_filter,
    literal_prefix,
    matches,
    required_texts,
    select_namespaces,
)
from smara.adapters.sdk.langgraph.vectors import FieldText, ForeignIndex, rank_by_our_own
from smara.core import log
from smara.core.startup.record import dataclass, field
from smara.errors import SmaraError
from smara.frameworks.items import ItemBatch
from smara.frameworks.models import Item, NewItem
from smara.memory import Memory

FRAMEWORK = "langgraph"
_SECONDS = 60.0
_SWEEP_MINUTES = 5.0
_EMBEDDED_AT_ONCE = 1_000


@dataclass
class _Plan:
    """A batch on its way: what it puts, and the texts that have to be embedded for it."""

    ops: list[Op]
    puts: dict[tuple[tuple[str, ...], str], tuple[NewItem | None, list[FieldText]]]
    late: list[tuple[Item, list[FieldText]]] = field(default_factory=list)
    """Items that have no vectors yet, as after an import or a change of the embedder."""

    @property
    def texts(self) -> list[str]:
        """The texts to embed as documents, in order."""
        fields = [*(each for _, each in self.puts.values()), *(each for _, each in self.late)]
        return [text for each in fields for _, _, text in each]

    @property
    def queries(self) -> list[str]:
        """The texts to embed as queries, in order."""
        return [op.query for op in self.ops if isinstance(op, SearchOp) and op.query]


class SmaraStore(BaseStore):
    """A LangGraph store in a memory's project.

    Safe for threads, tasks and processes.
    """

    supports_ttl = True

    def __init__(
        self, memory: Memory, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        """Open the store of a memory.

        Args:
            memory: The memory; it stays open until its owner closes it.
            index: An embedder of the application; its vectors are kept apart from ours. Without
                it a query is answered by our own words and meaning.
            ttl: How long values live, in minutes, as LangGraph says it.
        """
        super().__init__()
        self.ttl_config = ttl
        self.index_config = index
        self._memory = memory
        self._items = memory.frameworks.items(FRAMEWORK)
        self._foreign = ForeignIndex(index) if index else None
        self.embeddings = self._foreign.embeddings if self._foreign else None
        self._sweeper: threading.Thread | None = None
        self._stop = threading.Event()

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **settings: Any,
    ) -> Iterator[SmaraStore]:
        """Open a memory with its store, and close both at the end.

        Args:
            conn_string: A path or a PostgreSQL URL; by default the store of this user.
            index: See :class:`SmaraStore`.
            ttl: See :class:`SmaraStore`.
            **settings: Other settings of :func:`smara.open`, such as ``project``.
        """
        with smara.open(conn_string, **settings) as memory:
            store = cls(memory, index=index, ttl=ttl)
            try:
                yield store
            finally:
                store.stop_ttl_sweeper()

    def setup(self) -> None:
        """Do nothing: a memory is set up when it is opened."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in one transaction; results are in their order."""
        plan = self._plan(list(ops))
        documents: list[list[float]] = []
        queries: list[list[float]] = []
        if self.embeddings is not None:
            documents = self.embeddings.embed_documents(plan.texts) if plan.texts else []
            queries = [self.embeddings.embed_query(query) for query in plan.queries]
        return self._run(plan, documents, queries)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in one transaction, off the event loop."""
        plan = await asyncio.to_thread(self._plan, list(ops))
        documents: list[list[float]] = []
        queries: list[list[float]] = []
        if self.embeddings is not None:
            documents = await self.embeddings.aembed_documents(plan.texts) if plan.texts else []
            queries = [await self.embeddings.aembed_query(query) for query in plan.queries]
        return await asyncio.to_thread(self._run, plan, documents, queries)

    def sweep_ttl(self) -> int:
        """Remove values whose time is over; return how many."""
        return self._items.sweep()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep in a thread, again and again, until :meth:`stop_ttl_sweeper`.

        Args:
            sweep_interval_minutes: How often; by default as the TTL config says, or 5.

        Returns:
            A future that ends with the sweeper; canceling it stops the sweeper.
        """
        ended: Future[None] = Future()
        if self.ttl_config is None:
            ended.set_result(None)
            return ended
        self.stop_ttl_sweeper()
        minutes = (
            sweep_interval_minutes
            or self.ttl_config.get("sweep_interval_minutes")
            or _SWEEP_MINUTES
        )
        self._stop = threading.Event()
        stop = self._stop
        ended.add_done_callback(lambda _: stop.set())

        def sweep() -> None:
            while not stop.wait(minutes * _SECONDS):
                try:
                    self.sweep_ttl()
                except SmaraError as error:
                    log.event("langgraph.not_swept", error=error.code)
            if not ended.done():
                ended.set_result(None)

        self._sweeper = threading.Thread(target=sweep, name="smara-langgraph-ttl", daemon=True)
        self._sweeper.start()
        return ended

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; return True if none runs any more."""
        self._stop.set()
        if self._sweeper is not None:
            self._sweeper.join(timeout)
        return self._sweeper is None or not self._sweeper.is_alive()

    def _plan(self, ops: list[Op]) -> _Plan:
        """Check a whole batch, redact what it puts, and list what has to be embedded."""
        for op in ops:
            validate_op_namespace(op)
            if isinstance(op, SearchOp):
                check_filter(op.filter)
        plan = _Plan(ops, {})
        for op in ops:
            if isinstance(op, PutOp):
                new = None if op.value is None else self._prepare(op)
                texts = (
                    self._foreign.texts(new.value, new.fields)
                    if self._foreign is not None and new is not None
                    else []
                )
                plan.puts[tuple(op.namespace), op.key] = (new, texts)
        if self._foreign is not None and plan.queries:
            searches = [op for op in ops if isinstance(op, SearchOp) and op.query]
            plan.late = self._late(self._foreign, searches)
        return plan

    def _prepare(self, op: PutOp) -> NewItem:
        fields = () if op.index is False else op.index
        ttl = None if op.ttl is None else op.ttl * _SECONDS
        return self._items.prepare(dict(op.value or {}), fields=fields, ttl_seconds=ttl)

    def _late(
        self, foreign: ForeignIndex, searches: Sequence[SearchOp]
    ) -> list[tuple[Item, list[FieldText]]]:
        found: dict[int, Item] = {}
        with self._items.read() as batch:
            for op in searches:
                for item in batch.without_vectors(
                    foreign.space, op.namespace_prefix, _EMBEDDED_AT_ONCE
                ):
                    found[item.no] = item
        return [(item, foreign.texts(item.value, item.fields)) for item in found.values()]

    def _run(
        self, plan: _Plan, documents: list[list[float]], queries: list[list[float]]
    ) -> list[Result]:
        vectors = iter(self._foreign.encode(documents) if self._foreign else ())
        vectors_asked = iter(queries)
        renewed: list[Item] = []
        is_written = bool(plan.puts or plan.late)
        with self._items.write() if is_written else self._items.read() as batch:
            put = [(name, new, _take(vectors, fields)) for name, (new, fields) in plan.puts.items()]
            there = batch.by_numbers([item.no for item, _ in plan.late])
            for item, fields in plan.late:
                each = _take(vectors, fields)
                # One that was changed meanwhile has the vectors of its change.
                if item.no in there and there[item.no].revision == item.revision:
                    self._put_vectors(batch, item, each)
            results = [
                None if isinstance(op, PutOp) else self._read(batch, op, vectors_asked, renewed)
                for op in plan.ops
            ]
            # In one order everywhere: two batches must not wait for each other on a server.
            for (namespace, key), new, each in sorted(put, key=lambda one: one[0]):
                if new is None:
                    batch.delete(namespace, key)
                else:
                    self._put_vectors(batch, batch.put(namespace, key, new), each, has_none=True)
        if renewed:
            with self._items.write() as batch:
                batch.renew(renewed)
        return results

    def _put_vectors(
        self,
        batch: ItemBatch,
        item: Item,
        vectors: Sequence[tuple[str, int, bytes]],
        *,
        has_none: bool = False,
    ) -> None:
        if self._foreign is not None and (item.fields is None or item.fields):
            # A mark in place of vectors: this one was looked at, and has no text to embed.
            marked = vectors or [("", 0, b"")]
            batch.put_vectors(item, self._foreign.space, marked, has_none=has_none)

    def _read(
        self, batch: ItemBatch, op: Op, queries: Iterator[list[float]], renewed: list[Item]
    ) -> Result:
        if isinstance(op, GetOp):
            item = batch.find(op.namespace, op.key)
            found: list[tuple[Item, float | None]] = [] if item is None else [(item, None)]
            result: Result = _to_item(item) if item is not None else None
        elif isinstance(op, SearchOp):
            found = self._search(batch, op, next(queries) if op.query and self._foreign else None)
            result = [_to_search_item(item, score) for item, score in found]
        elif isinstance(op, ListNamespacesOp):
            prefix = literal_prefix(op.match_conditions or ())
            return select_namespaces(batch.namespaces(prefix), op)
        else:
            raise ValueError(f"Unknown operation: {type(op).__name__}")
        # An operation that says nothing asks for it, so the config decides.
        if op.refresh_ttl and self.ttl_config and self.ttl_config.get("refresh_on_read"):
            renewed += [item for item, _ in found if item.ttl_seconds is not None]
        return result

    def _search(
        self, batch: ItemBatch, op: SearchOp, vector: list[float] | None
    ) -> list[tuple[Item, float | None]]:
        prefix, page = op.namespace_prefix, slice(op.offset, op.offset + op.limit)
        if not op.query:
            every = batch.list(
                prefix,
                includes=lambda item: matches(item.value, op.filter),
                holding=required_texts(op.filter),
                limit=op.limit,
                offset=op.offset,
            )
            return [(item, None) for item in every]
        if self._foreign is not None and vector is not None:
            ranked = self._foreign.rank(batch.vectors(self._foreign.space, prefix), vector)
            nearest = (
                (item, score)
                for part in _parts(ranked)
                for items in [batch.by_numbers([no for no, _ in part])]
                for no, score in part
                if (item := items.get(no)) is not None and matches(item.value, op.filter)
            )
            return list(islice(nearest, page.start, page.stop))
        rooms = self._memory.internals
        numbers = batch.searched_numbers(prefix)
        if op.filter:
            found = batch.list(
                prefix,
                includes=lambda item: matches(item.value, op.filter),
                holding=required_texts(op.filter),
            )
            fitting = {item.no for item in found}
            numbers = [no for no in numbers if no in fitting]
        ours = rank_by_our_own(
            batch,
            rooms.database,
            numbers,
            project_no=rooms.scope.project_no,
            query=op.query,
            with_meaning=self._memory.settings.embedder != "off",
        )
        return [(item, score) for item, score in ours[page]]


class AsyncSmaraStore(AsyncBatchedBaseStore):
    """The same store for an event loop.

    The calls of one tick run as one batch, in a thread.
    """

    supports_ttl = True

    def __init__(
        self, memory: Memory, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        """Open the store of a memory; see :class:`SmaraStore`. Needs a running event loop."""
        super().__init__()
        self._store = SmaraStore(memory, index=index, ttl=ttl)
        self.ttl_config = ttl
        self.index_config = index
        self.embeddings = self._store.embeddings

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **settings: Any,
    ) -> AsyncIterator[AsyncSmaraStore]:
        """Open a memory with its store, and close both at the end."""
        memory = await asyncio.to_thread(smara.open, conn_string, **settings)
        store = cls(memory, index=index, ttl=ttl)
        try:
            yield store
        finally:
            await store.stop_ttl_sweeper()
            await asyncio.to_thread(memory.close)

    async def setup(self) -> None:
        """Do nothing: a memory is set up when it is opened."""

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in one transaction, off the event loop."""
        return await self._store.abatch(ops)

    async def sweep_ttl(self) -> int:
        """Remove values whose time is over; return how many."""
        return await asyncio.to_thread(self._store.sweep_ttl)

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweep in a thread, again and again, until :meth:`stop_ttl_sweeper`."""
        self._store.start_ttl_sweeper(sweep_interval_minutes)

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; return True if none runs any more."""
        return await asyncio.to_thread(self._store.stop_ttl_sweeper, timeout)


def _take(vectors: Iterator[bytes], fields: Sequence[FieldText]) -> list[tuple[str, int, bytes]]:
    return [(path, position, next(vectors)) for path, position, _ in fields]


def _parts(ranked: Sequence[tuple[int, float]]) -> Iterator[Sequence[tuple[int, float]]]:
    for start in range(0, len(ranked), 200):
        yield ranked[start : start + 200]


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _to_item(item: Item) -> StoreItem:
    return StoreItem(
        value=item.value,
        key=item.name,
        namespace=item.namespace,
        created_at=_time(item.created_at),
        updated_at=_time(item.updated_at),
    )


def _to_search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(
        item.namespace,
        item.name,
        item.value,
        created_at=_time(item.created_at),
        updated_at=_time(item.updated_at),
        score=score,
    )
