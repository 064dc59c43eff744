"""Observe idle threads in the background.

Worker serves the threads of one project; StoreWorker visits all projects of a store in turn.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import chain
from typing import NamedTuple

from smara.core import log
from smara.core.clock import Clock
from smara.database.database import Database
from smara.errors import SmaraError
from smara.observations.models import Scope, WorkerRound
from smara.observations.observations import Observations
from smara.observations.store import ObservationStore

_PAGE = 200
_MOST_SECONDS = 120.0
_MOST_WORKERS = 256
PENDING = "t.tokens - coalesce(c.observed_tokens, 0)"
UNBUFFERED = (
    "t.tokens - coalesce(CASE WHEN c.buffered_tokens > c.observed_tokens"
    " THEN c.buffered_tokens ELSE c.observed_tokens END, 0)"
)
FROM_THREADS = (
    "FROM threads t LEFT JOIN observation_records r ON r.project_no = t.project_no"
    " AND r.lookup_key = CASE WHEN ? = 'thread' THEN 'thread:' || t.id ELSE 'resource:' || "
    "t.resource_id END"
    " LEFT JOIN observation_cursors c ON c.thread_no = t.no AND c.record_no = r.no"
)
"""The threads with how far they are observed in a scope; a record is found by its key, in one
look.
"""


class DueRules(NamedTuple):
    """The rules of when a thread is due, for all projects."""

    scope: Scope
    buffer_after_tokens: int
    stale_after_ms: int


class _Rounds:
    """A worker that goes round and round."""

    _clock: Clock

    def run_once(self) -> WorkerRound:
        """Run one round."""
        raise NotImplementedError

    def run(
        self,
        stop: threading.Event,
        poll_seconds: float = 5.0,
        leave_after_idle_seconds: float | None = 600.0,
        tell: Callable[[WorkerRound], None] | None = None,
    ) -> int:
        """Run rounds until stopped, or idle for so long.

        Args:
            stop: Ends the worker after the round it is in.
            poll_seconds: The pause between two rounds.
            leave_after_idle_seconds: Ends the worker when nothing was due for so long.
            tell: Hears of every round that did something, or failed.

        Returns:
            The number of rounds.
        """
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
            elif (
                leave_after_idle_seconds is not None and now - last_busy >= leave_after_idle_seconds
            ):
                break
            self._clock.wait(poll_seconds, stop)
        return rounds


class Worker(_Rounds):
    """A worker that observes due threads: many tokens, or long silence."""

    def __init__(
        self,
        clock: Clock,
        store: ObservationStore,
        observations: Observations,
        *,
        rules: DueRules,
        embed: Callable[[], int] | None = None,
        learn: Callable[[], int] | None = None,
        note: Callable[[dict[str, int]], None] | None = None,
    ) -> None:
        self._clock = clock
        self._store = store
        self._observations = observations
        self._rules = rules
        self._embed = embed
        self._learn = learn
        self._note = note

    def run_once(self) -> WorkerRound:
        """Visit every thread once; trouble stays with its thread."""
        return together(self.steps())

    def steps(self, is_due: bool = True) -> Iterator[WorkerRound]:
        """Run one round thread by thread, so that projects can take turns.

        Args:
            is_due: False if it is known that no thread is due, which spares the look at them.
        """
        done: list[WorkerRound] = []
        besides = ((self._embed, self.embed), (self._learn, self.learn))
        for each in chain(
            (self._serve(*thread) for thread in (self._due() if is_due else ())),
            (act() for given, act in besides if given is not None),
        ):
            done.append(each)
            yield each
        self._tell(together(done))

    def _tell(self, done: WorkerRound) -> WorkerRound:
        """Note what came of a round, unless nothing did."""
        if self._note is not None and (done.failed or not done.is_idle):
            self._note({each.name: getattr(done, each.name) for each in fields(done)})
        return done

    def visit(self, thread_no: int) -> WorkerRound:
        """Serve one thread if it is due."""
        threads = self._due(thread_no - 1, thread_no)
        return self._tell(together(self._serve(*thread) for thread in threads))

    def is_due(self, thread_no: int) -> bool:
        """Return True if a thread is due."""
        return any(self._due(thread_no - 1, thread_no))

    def embed(self) -> WorkerRound:
        """Make vectors for some seconds."""
        return WorkerRound(embedded=self._embed() if self._embed is not None else 0)

    def learn(self) -> WorkerRound:
        """Learn from sessions that have ended, and do what is due daily."""
        try:
            return WorkerRound(learned=self._learn() if self._learn is not None else 0)
        except SmaraError as error:
            log.warning("worker.not_learned", error=error.code)
            return WorkerRound()

    def _serve(self, thread_id: str, pending: int, updated_at: int) -> WorkerRound:
        try:
            is_stale = self._clock.now_ms() - updated_at >= self._rules.stale_after_ms
            observe = self._observations.end_session if is_stale else self._observations.buffer
            outcome = observe(thread_id)
            plan = self._observations.planned_reflection(thread_id)
            reflected = 0
            if any(plan):
                reflection = self._observations.reflect(thread_id, is_buffered=plan.buffers)
                reflected = int(reflection.success and reflection.notes > 0)
            return WorkerRound(
                1,
                observed=int(outcome.success and outcome.messages > 0),
                reflected=reflected,
                failed=int(
                    not outcome.success and outcome.code not in ("in_progress", "read_only")
                ),
            )
        except SmaraError as error:
            log.warning("worker.failed", thread=thread_id, error=error.code, pending=pending)
            return WorkerRound(1, failed=1)

    def _due(self, after: int = 0, last: int = 2**62) -> Iterator[tuple[str, int, int]]:
        """Find (thread, pending tokens, last use) of the threads that are due, oldest first."""
        while True:
            rows = self._store.ask(
                self._store.rows,
                f"SELECT t.no, t.id, {PENDING}, t.updated_at, {UNBUFFERED} {FROM_THREADS}"
                " WHERE t.project_no = :project AND t.no > ? AND t.no <= ?"
                " AND t.kind <> 'compaction' ORDER BY t.no LIMIT ?",
                self._rules.scope,
                after,
                last,
                _PAGE,
            )
            if not rows:
                return
            now = self._clock.now_ms()
            for _, thread_id, pending, updated_at, unbuffered in rows:
                is_stale = pending > 0 and now - updated_at >= self._rules.stale_after_ms
                if unbuffered >= self._rules.buffer_after_tokens or is_stale:
                    yield thread_id, pending, updated_at
            after = rows[-1][0]


def together(rounds: Iterable[WorkerRound]) -> WorkerRound:
    """Add up several rounds, or steps of one."""
    done = list(rounds)
    return WorkerRound(
        *(sum(getattr(each, field.name) for each in done) for field in fields(WorkerRound))
    )


# In each round so many further projects are visited in turn: they may have something to do besides
# observing.
_VISITED_BESIDES = 8


class StoreWorker(_Rounds):
    """Serves all projects of a store."""

    def __init__(
        self, database: Database, clock: Clock, rules: DueRules, worker_of: Callable[[str], Worker]
    ) -> None:
        self._database = database
        self._clock = clock
        self._rules = rules
        self._worker_of = worker_of
        self._workers: dict[str, Worker] = {}
        self._last_visited = 0

    def run_once(self) -> WorkerRound:
        """Run one round.

        Trouble with one project does not keep the others waiting.
        """
        due = self._due()
        with self._database.read() as session:  # the next few projects by number
            rows = session.all(
                "SELECT no, id FROM projects WHERE no > ? ORDER BY no LIMIT ?",
                (self._last_visited, _VISITED_BESIDES),
            )
        self._last_visited = int(rows[-1][0]) if len(rows) == _VISITED_BESIDES else 0
        besides = [str(row[1]) for row in rows if row[1] not in due]
        ends_at = self._clock.monotonic() + _MOST_SECONDS
        waiting = deque((project_id, self._steps(project_id, is_due=True)) for project_id in due)
        waiting += ((project_id, self._steps(project_id, is_due=False)) for project_id in besides)
        done: list[WorkerRound] = []
        while waiting and self._clock.monotonic() < ends_at:
            project_id, steps = waiting.popleft()
            try:
                done.append(next(steps))
                waiting.append((project_id, steps))
            except StopIteration:
                continue
            except SmaraError as error:
                log.warning("worker.project_failed", project=project_id, error=error.code)
                done.append(WorkerRound(failed=1))
        return together([*done, WorkerRound(projects=len(due))])

    def _steps(self, project_id: str, is_due: bool) -> Iterator[WorkerRound]:
        # Opened at its first turn, so that a project that cannot be costs no other its turn.
        if project_id not in self._workers:
            if len(self._workers) >= _MOST_WORKERS:
                self._workers.clear()
            self._workers[project_id] = self._worker_of(project_id)
        yield from self._workers[project_id].steps(is_due)

    def _due(self) -> list[str]:
        """Return the projects with a due thread, the longest waiting first."""
        rules = self._rules
        with self._database.read() as session:
            rows = session.all(
                f"SELECT p.id {FROM_THREADS} JOIN projects p ON p.no = t.project_no"
                f" WHERE t.kind <> 'compaction' AND ({UNBUFFERED} >= ? OR ({PENDING} > 0 AND "
                "t.updated_at <= ?))"
                " GROUP BY p.id ORDER BY min(t.updated_at), p.id",
                (
                    rules.scope,
                    rules.buffer_after_tokens,
                    self._clock.now_ms() - rules.stale_after_ms,
                ),
            )
        return [str(row[0]) for row in rows]
