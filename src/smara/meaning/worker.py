"""Embed queued records: take a lease, embed a batch, write once.

Any number of processes may try; one at a time works on a space of a project. A killed worker leaves
its batch in the queue. A slow worker keeps its lease by a heartbeat, and one that lost its lease is
stopped by the fence before it writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smara.core import log
from smara.core.clock import Clock
from smara.core.startup.record import dataclass, field, replace
from smara.database.database import Session
from smara.database.leases import Heartbeat, Lease, Leases
from smara.database.vectors import VECTOR_KINDS, VectorKind, encode
from smara.errors import (
    BadReplyError,
    ConfigError,
    DatabaseError,
    LeaseLostError,
    ModelError,
    ModelRefusedError,
    SmaraError,
)
from smara.meaning.embedders import VectorCache
from smara.meaning.models import EmbeddingFailure, EmbeddingProgress, Space, StopReason
from smara.meaning.queue import BATCH_RECORDS, EmbeddingBatch, EmbeddingQueue
from smara.meaning.store import EVERY_SPACE, QueueEntry, VectorStore
from smara.messages.store import MessageStore
from smara.models.embedder import Embedder
from smara.secrets import redact

if TYPE_CHECKING:
    from smara.database.vectors import Floats


LEASE_SECONDS = 60.0
STALE_DAYS = 7
"""A space without new vectors for so long is renewed no more, until it is used again."""
_RETIRED_AT_ONCE = 1_000
_PROBE = "hello"
_BUSY = "another process is writing to the records that are left"


def lease_name(project_no: int, space_no: int) -> str:
    """Return the lease name for embedding a project's space."""
    return f"embeddings:{project_no}:{space_no}"


@dataclass(frozen=True, slots=True)
class EmbeddingLimits:
    """The limits of a run, and a callback for its progress."""

    records: int | None = None
    seconds: float | None = None
    stop: threading.Event | None = None
    tell: Callable[[EmbeddingProgress], object] | None = None


@dataclass(slots=True)
class _EmbeddingTally:
    embedded: int = 0
    removed: int = 0
    failed: int = 0
    cached: int = 0
    passed: set[QueueEntry] = field(default_factory=set)
    """Entries that another session held; they are left for the next time."""


class EmbeddingWorker:
    """Makes the vectors of one project."""

    def __init__(
        self,
        store: VectorStore,
        leases: Leases,
        clock: Clock,
        owner: str,
        messages: MessageStore,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._store = store
        self._leases = leases
        self._clock = clock
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._pending = EmbeddingQueue(store, messages)

    def run(self, space: Space, embedder: Embedder, limits: EmbeddingLimits) -> EmbeddingProgress:
        """Embed what waits for a space within limits; return why it stopped."""
        if not self._store.ask(self._pending.is_waiting, space.no):
            return EmbeddingProgress(space.model_id, stopped="done")
        progress = EmbeddingProgress(space.model_id)
        try:
            with self.hold(space) as heartbeat:
                if heartbeat is None:
                    return replace(
                        progress, stopped="busy", note="another process is making these vectors"
                    )
                for progress in self._batches(space, embedder, limits, heartbeat):
                    if limits.tell is not None:
                        limits.tell(progress)
                if progress.is_done and progress.embedded:
                    self._tidy(space)
        except LeaseLostError as error:
            return replace(progress, stopped="lease_lost", note=str(error))
        return progress

    @contextmanager
    def hold(self, space: Space) -> Iterator[Heartbeat | None]:
        """Hold the lease of a space; None while another process has it."""
        name = lease_name(self._store.scope.project_no, space.no)
        lease = self._leases.acquire(name, self._owner, self._lease_seconds)
        if lease is None:
            yield None
            return
        with self._leases.hold(lease, self._lease_seconds) as heartbeat:
            yield heartbeat

    def _batches(
        self,
        space: Space,
        embedder: Embedder,
        limits: EmbeddingLimits,
        heartbeat: Heartbeat,
    ) -> Iterator[EmbeddingProgress]:
        """Yield the progress after each batch; the last says why it ended."""
        tally, started = _EmbeddingTally(), self._clock.monotonic()
        stopped: StopReason | None
        while True:
            heartbeat.check()
            most, left, stopped = BATCH_RECORDS, limits.seconds, None
            if limits.records is not None:
                most = limits.records - tally.embedded - tally.failed
                stopped = "limit" if most <= 0 else None
            if left is not None:
                left -= self._clock.monotonic() - started
                stopped = "deadline" if left <= 0 else stopped
            if limits.stop is not None and limits.stop.is_set():
                stopped = "closed"
            if stopped is None:
                with self._store.database.snapshot() as session:
                    batch = self._pending.next(session, space.no, most, tally.passed)
                stopped = None if not batch.is_empty else "busy" if batch.is_held else "done"
            if stopped is not None:
                yield self._progress(space, tally, stopped, note=_BUSY if stopped == "busy" else "")
                return
            try:
                made, failures = self._embed(space, embedder, batch, left, tally)
            except (ModelError, ConfigError) as error:
                log.warning("embeddings.unavailable", model=space.model_id, error=error.code)
                yield self._progress(space, tally, "unavailable", note=str(error))
                return
            self._write(space, heartbeat.lease, batch, made, failures, tally)
            if limits.tell is not None:
                yield self._progress(space, tally, "limit")

    def _progress(
        self, space: Space, tally: _EmbeddingTally, stopped: StopReason, note: str = ""
    ) -> EmbeddingProgress:
        waiting = self._store.ask(self._store.count_waiting, space.no)
        return EmbeddingProgress(
            space.model_id,
            tally.embedded,
            tally.removed,
            failed=tally.failed,
            waiting=waiting,
            stopped=stopped,
            note=note,
            cached=tally.cached,
        )

    def _tidy(self, space: Space) -> None:
        """Make the server's index for large shelves, and retire spaces not in use."""
        try:
            database = self._store.database
            with database.read() as session:
                shelves = [self._store.shelf(session, space.no, kind) for kind in VECTOR_KINDS]
                spaces = self._store.spaces(session)
            for shelf in shelves:
                database.vectors.make_index(database, shelf, space.dims)
            for other in spaces:
                if (
                    other.no != space.no
                    and other.state != "retired"
                    and (
                        self._clock.now_ms() - max(other.used_at, other.chosen_at or 0)
                        > STALE_DAYS * 86_400_000
                    )
                ):
                    self._retire(other)
        except DatabaseError as error:  # it is tried again the next time
            log.warning("embeddings.not_tidied", error=error.code)

    def _retire(self, space: Space) -> None:
        """Renew a space no more. What waits for it has changed, so its old vector goes."""
        with self.hold(space) as heartbeat:
            while heartbeat is not None:
                with self._store.database.write(is_derived=True) as session:
                    self._leases.guard(session, heartbeat.lease)
                    entries = self._store.entries(session, space.no, _RETIRED_AT_ONCE, own=True)
                    for kind in dict.fromkeys(each.kind for each in entries):
                        of_kind = [
                            (each.space_no, each.no, each.stamp)
                            for each in entries
                            if each.kind == kind
                        ]
                        shelf, vectors = (
                            self._store.shelf(session, space.no, kind),
                            self._store.database.vectors,
                        )
                        vectors.put(session, shelf, {no: () for _, no, _ in of_kind})
                        vectors.settle(session, shelf, of_kind)
                    if not entries:
                        self._store.empty(session, space.no, "retired")
                if not entries:
                    log.event("embeddings.retired", model=space.model_id)
                    return

    def _embed(
        self,
        space: Space,
        embedder: Embedder,
        batch: EmbeddingBatch,
        left: float | None,
        tally: _EmbeddingTally,
    ) -> tuple[dict[tuple[VectorKind, int], list[bytes]], list[EmbeddingFailure]]:
        """Return the encoded vectors of a batch, and the records that the model refuses."""
        cache = VectorCache(self._store, space, "document", clock=self._clock)
        distinct = list(dict.fromkeys(text for texts in batch.texts.values() for text in texts))
        vectors = cache.find(distinct)
        tally.cached += len(vectors)
        # Some models refuse to be asked nothing.
        vectors |= {text: b"" for text in distinct if not text.strip()}
        missing = [text for text in distinct if text not in vectors]
        refused: dict[str, ModelError] = {}
        fresh = _embed_each(embedder, missing, left, refused=refused, is_probed=False)
        cache.put(fresh)
        vectors |= fresh
        made = {
            record: [vectors[text] for text in texts]
            for record, texts in batch.texts.items()
            if refused.keys().isdisjoint(texts)
        }
        failures = []
        for (kind, no), texts in batch.texts.items():
            if (kind, no) not in made:
                error = next(refused[text] for text in texts if text in refused)
                # A server may quote what it was asked.
                may_quote = type(self._pending.messages) is MessageStore
                message = redact(str(error)[:500]).text if may_quote else error.code
                now = self._clock.now_ms()
                failures.append(EmbeddingFailure(kind, no, error.code, message, failed_at=now))
        return made, failures

    def _write(
        self,
        space: Space,
        lease: Lease,
        batch: EmbeddingBatch,
        made: dict[tuple[VectorKind, int], list[bytes]],
        failures: Sequence[EmbeddingFailure],
        tally: _EmbeddingTally,
    ) -> None:
        with self._store.database.write(is_derived=True) as session:
            self._leases.guard(session, lease)
            self._store.update_fill(session, space.no, used_at=self._clock.now_ms())
            for kind in dict.fromkeys(kind for kind, _ in (*batch.texts, *batch.gone)):
                failed = {each.no: each for each in failures if each.kind == kind}
                self._write_kind(
                    session, space, kind, batch=batch, made=made, failed=failed, tally=tally
                )
            for walk in batch.walks:
                self._store.put_walk(session, space.no, walk)
            if (
                batch.walks
                and space.state == "filling"
                and all(walk.is_done for walk in self._store.walks(session, space.no))
            ):
                now = self._clock.now_ms()
                self._store.update_fill(session, space.no, state="ready", ready_at=now)

    def _write_kind(
        self,
        session: Session,
        space: Space,
        kind: VectorKind,
        batch: EmbeddingBatch,
        made: dict[tuple[VectorKind, int], list[bytes]],
        failed: dict[int, EmbeddingFailure],
        tally: _EmbeddingTally,
    ) -> None:
        store, vectors = self._store, self._store.database.vectors
        shelf = store.shelf(session, space.no, kind)
        numbers = [no for each, no in (*batch.texts, *batch.gone) if each == kind]
        there, busy = vectors.free(session, shelf, numbers)
        records: dict[int, Sequence[bytes]] = {
            no: made.get((kind, no), ()) if no in there else () for no in numbers if no not in busy
        }
        vectors.put(session, shelf, records)
        entries = [each for each in batch.entries if each.kind == kind]
        free = [(each.space_no, each.no, each.stamp) for each in entries if each.no not in busy]
        taken = vectors.settle(session, shelf, free)
        tally.passed.update(each for each in entries if each.no not in taken)
        store.fail(session, space.no, [each for no, each in failed.items() if no in there])
        store.recover(session, space.no, kind, numbers=[no for no in records if no not in failed])
        if busy and not batch.entries:
            # The walk goes on; what another session removes right now waits in the queue.
            store.enqueue(session, space.no, kind, numbers=sorted(busy))
        # What was written for all spaces is queued for the other ones.
        for_all = sorted(
            {no for space_no, no, _ in free if space_no == EVERY_SPACE and no in taken}
        )
        for other in store.spaces(session) if for_all else ():
            if other.no == space.no:
                continue
            if other.state == "retired":
                # It is renewed no more, and must not answer from a text that has changed.
                other_shelf = store.shelf(session, other.no, kind)
                vectors.put(session, other_shelf, dict.fromkeys(for_all, ()))
            else:
                store.enqueue(session, other.no, kind, numbers=for_all)
        tally.embedded += sum(1 for pieces in records.values() if pieces)
        tally.removed += sum(1 for no in records if no not in there)
        tally.failed += sum(1 for no in failed if no in there)


def _embed_each(
    embedder: Embedder,
    texts: Sequence[str],
    left: float | None,
    refused: dict[str, ModelError],
    is_probed: bool,
) -> dict[str, bytes]:
    """Return the vectors of texts; find those the model refuses by halving.

    A model that refuses everything is not available: no record is to blame.
    """
    if not texts:
        return {}
    try:
        return dict(zip(texts, encode(_checked(embedder, texts, left)), strict=True))
    except (ModelRefusedError, BadReplyError) as error:
        if not is_probed:
            _checked(embedder, [_PROBE], left)
        if len(texts) == 1:
            refused[texts[0]] = error
            return {}
    half = len(texts) // 2
    first = _embed_each(embedder, texts[:half], left, refused=refused, is_probed=True)
    return first | _embed_each(embedder, texts[half:], left, refused=refused, is_probed=True)


def _checked(embedder: Embedder, texts: Sequence[str], left: float | None) -> Floats:
    """Return vectors of the right shape with finite numbers, or raise."""
    import numpy as np

    try:
        vectors = embedder.embed(texts, "document", deadline_seconds=left)
    except SmaraError:
        raise
    except Exception as error:  # the edge: an embedder of the caller may raise anything
        raise BadReplyError(
            f"{embedder.model_id} failed ({type(error).__name__}); nothing was stored. Mend it, "
            "or use another one.",
            reason=type(error).__name__,
        ) from error
    if vectors.shape != (len(texts), embedder.dims) or not np.isfinite(vectors).all():
        raise BadReplyError(
            f"{embedder.model_id} gave invalid vectors; nothing was stored of them. Try "
            "again, or switch the "
            "embedder.",
            reason=f"shape {vectors.shape}",
        )
    return vectors
