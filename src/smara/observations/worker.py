"""The worker: looks after every thread of a project that nobody is talking in.

Any number may run anywhere; leases make them safe. One started on a developer's machine
leaves by itself when there was nothing to do for a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from smara.core import log
from smara.core.clock import Clock
from smara.errors import SmaraError
from smara.observations.models import Outcome, Scope
from smara.observations.observations import Observations
from smara.observations.store import ObservationStore

_PAGE = 200


@dataclass(frozen=True, slots=True)
class WorkerRound:
    """What one round over all threads did."""

    looked_at: int = 0
    observed: int = 0
    reflected: int = 0
    failed: int = 0

    @property
    def is_idle(self) -> bool:
        return not (self.observed or self.reflected)


class Worker:
    """Observes what is due: enough tokens, or a thread that has been silent for long."""

    def __init__(
        self, store: ObservationStore, observations: Observations, clock: Clock, scope: Scope,
        buffer_after_tokens: int, stale_after_minutes: int,
    ) -> None:  # fmt: skip
        self._store = store
        self._observations = observations
        self._clock = clock
        self._scope = scope
        self._buffer_after = buffer_after_tokens
        self._stale_ms = stale_after_minutes * 60_000

    def run_once(self) -> WorkerRound:
        """Look at every thread once; trouble with one does not keep the others waiting."""
        looked = observed = reflected = failed = 0
        for thread_id, pending, updated_at in self._due():
            looked += 1
            try:
                is_stale = self._clock.now_ms() - updated_at >= self._stale_ms
                look = self._observations.observe if is_stale else self._observations.buffer
                outcome = look(thread_id)
                observed += outcome.success and outcome.messages > 0
                failed += _failed(outcome)
                reflected += self._reflect(thread_id)
            except SmaraError as error:
                failed += 1
                log.warning("worker.failed", thread=thread_id, error=error.code, pending=pending)
        return WorkerRound(looked, observed, reflected, failed)

    def _reflect(self, thread_id: str) -> int:
        if not self._observations.is_reflection_due(thread_id):
            return 0
        outcome = self._observations.reflect(thread_id)
        return int(outcome.success and outcome.notes > 0)

    def run(
        self,
        stop: threading.Event,
        poll_seconds: float = 5.0,
        leave_after_idle_seconds: float | None = 600.0,
        tell: Callable[[WorkerRound], None] | None = None,
    ) -> int:
        """Go round until told to stop, or until nothing was to do for so long; how many rounds."""
        rounds = 0
        last_busy = self._clock.monotonic()
        while not stop.is_set():
            done = self.run_once()
            rounds += 1
            if tell is not None and (done.failed or not done.is_idle):
                tell(done)
            now = self._clock.monotonic()
            if not done.is_idle:
                last_busy = now
            elif leave_after_idle_seconds is not None and now - last_busy >= leave_after_idle_seconds:
                break
            stop.wait(poll_seconds)
        return rounds

    def _due(self) -> Iterator[tuple[str, int, int]]:
        """(thread, pending tokens, last used) of the threads that have something to observe, oldest first."""
        after = 0
        while True:
            with self._store.database.read() as session:
                rows = session.all(
                    self._store.sql(
                        "SELECT t.no, t.id, t.tokens - coalesce(c.observed_tokens, 0), t.updated_at,"
                        " t.tokens - coalesce(CASE WHEN c.buffered_tokens > c.observed_tokens"
                        " THEN c.buffered_tokens ELSE c.observed_tokens END, 0)"
                        " FROM threads t LEFT JOIN observation_records r ON r.project_no = t.project_no"
                        " AND r.scope = ? AND r.resource_id = t.resource_id"
                        " AND (r.thread_no = t.no OR r.thread_no IS NULL)"
                        " LEFT JOIN observation_cursors c ON c.thread_no = t.no AND c.record_no = r.no"
                        " WHERE t.project_no = :project AND t.no > ? AND t.kind <> 'compaction' ORDER BY t.no LIMIT ?"
                    ),
                    (self._scope, after, _PAGE),
                )
            if not rows:
                return
            now = self._clock.now_ms()
            for _, thread_id, pending, updated_at, unbuffered in rows:
                is_stale = pending > 0 and now - updated_at >= self._stale_ms
                if unbuffered >= self._buffer_after or is_stale:
                    yield thread_id, pending, updated_at
            after = rows[-1][0]


def _failed(outcome: Outcome) -> int:
    return int(not outcome.success and outcome.code != "in_progress")
