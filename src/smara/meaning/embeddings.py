"""Manage a project's embeddings: status, switch, drop and check.

The check verifies that vectors belong to records, that each record has its vectors, and that the
stored blocks agree.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import product

from smara.core import log
from smara.core.clock import Clock
from smara.database.database import Session
from smara.database.leases import Leases
from smara.database.session import number
from smara.database.vectors import (
    BLOCK_BITS,
    LAST_ROW,
    TABLES,
    VECTOR_KINDS,
    VectorKind,
    vector_code,
)
from smara.errors import ConflictError, InvalidInputError, NotFoundError, SmaraError
from smara.meaning.embedders import Embedders, is_local
from smara.meaning.models import EmbeddingProgress, Space, SpaceStatus, Status
from smara.meaning.query import Meaning
from smara.meaning.store import VectorStore
from smara.meaning.worker import EmbeddingLimits, EmbeddingWorker, lease_name
from smara.models.embedder import Embedder

_DROPPED_AT_ONCE = 2_000


class Embeddings:
    """The vectors of one project: made, switched, dropped and checked."""

    def __init__(
        self,
        store: VectorStore,
        embedders: Embedders,
        embedding: EmbeddingWorker,
        meaning: Meaning,
        leases: Leases,
        clock: Clock,
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._embedding = embedding
        self._meaning = meaning
        self._leases = leases
        self._clock = clock

    def embed_pending(
        self,
        limit: int | None = None,
        deadline_seconds: float | None = None,
        *,
        stop: threading.Event | None = None,
        tell: Callable[[EmbeddingProgress], object] | None = None,
    ) -> EmbeddingProgress:
        """Make the vectors of what waits, within limits.

        Safe to repeat, to kill and to call from any number of processes: what is done stays done,
        and nothing is done twice. Trouble with the model is told in the answer and never raised.

        Args:
            limit: The most records to embed, at least 1; without it, all that wait.
            deadline_seconds: How long it may take; without it, until it is done.
            stop: Set it from another thread to end after the batch at hand.
            tell: Called with the progress after each batch.

        Returns:
            What was embedded, removed and left, and why it stopped.

        Raises:
            InvalidInputError: If the limit is below 1.
        """
        if limit is not None and limit < 1:
            raise InvalidInputError(f"limit must be at least 1; got {limit}.")
        try:
            spaces = self._store.ask(self._store.spaces)
            embedder, setting = self._embedders.own(spaces), self._embedders.in_force(spaces)
        except SmaraError as error:
            return EmbeddingProgress(stopped="unavailable", note=str(error))
        if embedder is None:
            return EmbeddingProgress(stopped="off", note="the embedder is off")
        space = self._space_of(embedder, setting)
        return self._embedding.run(
            space, embedder, EmbeddingLimits(limit, deadline_seconds, stop, tell=tell)
        )

    def evict_cache(self) -> int:
        """Drop the cached vectors that have expired; return how many."""
        with self._store.database.write(is_derived=True) as session:
            return self._store.evict_cached(session, self._clock.now_ms())

    def status(self) -> Status:
        """Return the state of the embeddings.

        Opens the embedder to name its model.
        """
        model_id, answering = None, None
        with self._store.database.read() as session:
            spaces = self._store.spaces(session)
            statuses = []
            for space in spaces:
                waiting = self._store.count_waiting(session, space.no)
                for walk in self._store.walks(session, space.no):
                    if space.state == "filling" and not walk.is_done:
                        # The records that the walk has still to pass.
                        table = TABLES[walk.kind]
                        statement = self._store.sql(
                            f"SELECT count(*) FROM {table} WHERE project_no = :project AND no < ?"
                        )
                        waiting += number(session, statement, (walk.walked_no,))
                lease = self._leases.find(lease_name(self._store.scope.project_no, space.no))
                is_expired = lease is None or lease.expires_at <= self._clock.now_ms()
                statuses.append(
                    SpaceStatus(
                        space,
                        {
                            kind: self._store.database.vectors.count(
                                session, self._store.shelf(session, space.no, kind)
                            )
                            for kind in VECTOR_KINDS
                        },
                        0 if space.state == "retired" else waiting,
                        failures=tuple(self._store.failures(session, space.no)),
                        holder=None if lease is None or is_expired else lease.owner,
                    )
                )
        setting = self._embedders.in_force(spaces)
        try:
            own = self._embedders.own(spaces)
            model_id = own.model_id if own is not None else None
            answer, note = self._meaning.answering()
            answering = answer.model_id if answer is not None else None
        except SmaraError as error:
            note = f"not used: {error}"
        return Status(setting, model_id, answering, note=note, spaces=tuple(statuses))

    def switch(self, setting: str) -> Space:
        """Fill the space of another embedder; the old one answers until then.

        Nothing is taken away, so switching back is as easy. A model on this machine is the
        project's choice from now on, for every process that is not set to something else.

        Args:
            setting: An embedder, such as ``offline`` or ``ollama:qwen3-embedding:4b``; neither
                ``off`` nor ``auto``.

        Returns:
            The space that is now filled.

        Raises:
            InvalidInputError: If the setting names no embedder.
            NotFoundError: If there is no such embedder.
        """
        if setting in ("off", "auto", ""):
            raise InvalidInputError(
                "Name the embedder to switch to, such as offline or ollama:qwen3-embedding:4b; "
                f"{setting!r} names none."
            )
        embedder = self._embedders.get(setting)
        if embedder is None:
            raise NotFoundError(f"There is no embedder {setting!r}. See the guide of embeddings.")
        space = self._space_of(embedder, setting)
        with self._store.database.write() as session:
            self._store.choose(session, space.no, self._clock.now_ms())
        self._embedders.setting, self._embedders.is_given = setting, True
        log.event("embeddings.switched", model=space.model_id)
        return space

    def is_kept(self, setting: str) -> bool:
        """Return True if other processes follow a switch: only for local embedders.

        Args:
            setting: The setting of an embedder, as for :meth:`switch`.
        """
        return is_local(setting)

    def drop(self, model_id: str) -> int:
        """Remove all vectors of a model; return how many.

        They can be made again.

        Done in small transactions: no writer waits long, and a drop that was cut short goes on.

        Args:
            model_id: The model's id, as ``status`` shows it.

        Raises:
            NotFoundError: If the project has no vectors of it.
            ConflictError: If vectors of it are being made at this moment.
        """
        with self._store.database.read() as session:
            space = self._store.find_space(session, model_id)
            others = ", ".join(each.model_id for each in self._store.spaces(session)) or "none"
        if space is None:
            raise NotFoundError(
                f"There are no vectors of {model_id!r} in this project. There are those of: "
                f"{others}."
            )
        with self._embedding.hold(space) as heartbeat:
            if heartbeat is None:
                raise ConflictError(
                    f"Vectors of {model_id} are being made at this moment. Try again in a while."
                )
            removed = 0
            for kind in VECTOR_KINDS:
                while True:
                    with self._store.database.write(is_derived=True) as session:
                        self._leases.guard(session, heartbeat.lease)
                        shelf = self._store.shelf(session, space.no, kind)
                        taken = self._store.database.vectors.clear(session, shelf, _DROPPED_AT_ONCE)
                    removed += taken
                    if taken < _DROPPED_AT_ONCE:
                        break
            with self._store.database.write() as session:
                self._leases.guard(session, heartbeat.lease)
                self._store.empty(session, space.no, "dropped")
        self._meaning.forget(space.no)
        log.event("embeddings.dropped", model=model_id, vectors=removed)
        return removed

    def retry(self) -> int:
        """Queue the records that a model refused again; return how many."""
        count = 0
        with self._store.database.write() as session:
            for space in self._store.spaces(session):
                failures = self._store.failures(session, space.no, limit=100_000)
                for kind in VECTOR_KINDS:
                    numbers = [each.no for each in failures if each.kind == kind]
                    self._store.enqueue(session, space.no, kind, numbers=numbers)
                    self._store.recover(session, space.no, kind, numbers=numbers)
                count += len(failures)
        return count

    def is_begun(self) -> bool:
        """Return True if this project has vectors, or was meant to."""
        return bool(self._store.ask(self._store.spaces))

    def problems(self) -> list[str]:
        """Return what is wrong with the vectors; reads all of them."""
        problems = []
        with self._store.database.snapshot() as session:
            for space, kind, faults in self._faults(session):
                model, (orphans, missing, blocks) = space.model_id, map(len, faults)
                found = (
                    (orphans, f"vectors of {model} belong to no {kind} any more."),
                    (
                        missing,
                        f"records ({kind}) have no vector of {model}, and none is on its way.",
                    ),
                    (
                        blocks,
                        f"blocks of signs of {model} ({kind}) do not agree with their vectors.",
                    ),
                )
                problems += [f"{count} {fault}" for count, fault in found if count]
        return problems

    def mend(self) -> int:
        """Remove orphans and queue what is missing; return how many rows."""
        mended, vectors = 0, self._store.database.vectors
        with self._store.database.write() as session:
            for space, kind, (orphans, missing, blocks) in self._faults(session):
                shelf = self._store.shelf(session, space.no, kind)
                self._store.enqueue(session, space.no, kind, numbers=missing)
                vectors.put(session, shelf, dict.fromkeys(orphans, ()))
                vectors.remake(session, shelf, blocks)
                mended += len(orphans) + len(missing) + len(blocks)
        return mended

    def _faults(
        self, session: Session
    ) -> Iterator[tuple[Space, VectorKind, tuple[list[int], list[int], list[int]]]]:
        """Yield what is wrong with each shelf.

        Numbers of records that are gone and still have vectors; of records without a vector that
        neither walk, queue nor failures name; of blocks that do not match their vectors' signs.
        """
        store, vectors = self._store, self._store.database.vectors
        for space, kind in product(store.spaces(session), VECTOR_KINDS):
            shelf, table, code = (
                store.shelf(session, space.no, kind),
                TABLES[kind],
                vector_code(kind),
            )
            bits = int(shelf.record_bits)
            orphans = session.all(
                store.sql(
                    f"SELECT DISTINCT (v.no - ?) >> {int(bits)} FROM vectors v"
                    f" WHERE v.no BETWEEN ? AND ?{vectors.in_project} AND NOT EXISTS (SELECT 1 FROM"
                    f" {table} r WHERE r.project_no = :project"
                    f" AND r.no = (v.no - ?) >> {int(bits)})"
                ),
                (shelf.base, shelf.base, shelf.base + LAST_ROW, shelf.base),
            )
            missing = session.all(
                store.sql(
                    f"SELECT r.no FROM {table} r WHERE r.project_no = :project AND NOT EXISTS"
                    f" (SELECT 1 FROM vectors v WHERE v.no = ? + (r.no << {int(bits)})"
                    f"{vectors.in_project})"
                    " AND NOT EXISTS (SELECT 1 FROM embedding_queue q"
                    " WHERE q.project_no = r.project_no"
                    " AND q.space_no IN (0, ?) AND q.kind = ? AND q.no = r.no)"
                    " AND NOT EXISTS (SELECT 1 FROM embedding_failures f"
                    " WHERE f.project_no = r.project_no"
                    " AND f.space_no = ? AND f.kind = ? AND f.no = r.no)"
                    " AND NOT EXISTS (SELECT 1 FROM vector_walks w"
                    " WHERE w.project_no = r.project_no"
                    " AND w.space_no = ? AND w.kind = ? AND w.is_done = 0 AND w.walked_no > r.no)"
                ),
                (shelf.base, *(space.no, code) * 3),
            )
            stored = {block.block: block[2:] for block in vectors.blocks(session, shelf, -1)}
            filled = session.all(
                f"SELECT DISTINCT (no - ?) >> {int(bits + BLOCK_BITS)} FROM vectors"
                " WHERE no BETWEEN ? AND ? AND length(vector) > 0",
                (shelf.base, shelf.base, shelf.base + LAST_ROW),
            )
            blocks = sorted(
                block
                for block in stored.keys() | {int(row[0]) for row in filled}
                if stored.get(block) != vectors.make_block(session, shelf, block)[2:]
            )
            yield (
                space,
                kind,
                (
                    [int(row[0]) for row in orphans],
                    [int(row[0]) for row in missing] if space.state == "ready" else [],
                    blocks,
                ),
            )

    def _space_of(self, embedder: Embedder, setting: str) -> Space:
        with self._store.database.read() as session:
            space = self._store.find_space(session, embedder.model_id)
            has_shelves = space is None or all(
                self._store.shelf(session, space.no, kind).no for kind in VECTOR_KINDS
            )
        if space is not None and not has_shelves:  # it is older than a kind of records
            with self._store.database.write() as session:
                self._store.make_shelves(session, space.no)
        if space is None or space.state == "retired":
            with self._store.database.write() as session:
                now = self._clock.now_ms()
                no = self._store.add_space(
                    session, embedder.model_id, embedder.dims, embedder=setting, now_ms=now
                )
                self._store.begin(session, no, now)
                space = next(each for each in self._store.spaces(session) if each.no == no)
        if space.dims != embedder.dims:
            raise ConflictError(
                f"The vectors of {embedder.model_id} here have {space.dims} dimensions, and this "
                "embedder makes "
                f"{embedder.dims}. Drop the old ones: smara embeddings drop {embedder.model_id}"
            )
        return space
