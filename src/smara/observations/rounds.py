"""Rounds over every project of a store: one worker for all of them, fairly and at little cost.

One statement finds the projects that have something due; only those are looked into. They take
turns thread by thread, so that a project with a thousand threads keeps none waiting that has
one, and a round ends after a while to see what is due meanwhile. What each thread's work may do is
still decided by its lease: any number of workers may go round at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from smara.core import log
from smara.core.clock import Clock
from smara.database.database import Database
from smara.errors import SmaraError
from smara.observations.models import Scope
from smara.observations.worker import (
    FROM_THREADS,
    PENDING,
    UNBUFFERED,
    Worker,
    WorkerRound,
    go_round,
    together,
)

_MOST_SECONDS = 120.0
_MOST_KEPT = 256
_VISITED_BESIDES = 8
"""In each round so many further projects are visited in turn: they may have something to do besides
observing.
"""


class DueRules(NamedTuple):
    """When a thread is due; the same for all projects."""

    scope: Scope
    buffer_after_tokens: int
    stale_after_ms: int


class StoreWorker:
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
        """One round; trouble with one project does not keep the others waiting."""
        due = self._due()
        ends_at = self._clock.monotonic() + _MOST_SECONDS
        waiting = deque((project_id, self._steps(project_id, is_due=True)) for project_id in due)
        waiting += (
            (project_id, self._steps(project_id, is_due=False)) for project_id in self._besides(due)
        )
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

    def run(
        self,
        stop: threading.Event,
        poll_seconds: float = 5.0,
        leave_after_idle_seconds: float | None = 600.0,
        tell: Callable[[WorkerRound], None] | None = None,
    ) -> int:
        """Go round until told to stop, or until nothing was to do for so long; how many rounds."""
        return go_round(
            self.run_once,
            self._clock,
            stop,
            poll_seconds=poll_seconds,
            leave_after_idle_seconds=leave_after_idle_seconds,
            tell=tell,
        )

    def _steps(self, project_id: str, is_due: bool) -> Iterator[WorkerRound]:
        # Opened at its first turn, so that a project that cannot be costs no other its turn.
        if project_id not in self._workers:
            if len(self._workers) >= _MOST_KEPT:
                self._workers.clear()
            self._workers[project_id] = self._worker_of(project_id)
        yield from self._workers[project_id].steps(is_due)

    def _due(self) -> list[str]:
        """The projects with a thread that is due, the one that waits longest first."""
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

    def _besides(self, due: list[str]) -> list[str]:
        """The next few projects in the order of their numbers, round after round."""
        with self._database.read() as session:
            rows = session.all(
                "SELECT no, id FROM projects WHERE no > ? ORDER BY no LIMIT ?",
                (self._last_visited, _VISITED_BESIDES),
            )
        self._last_visited = int(rows[-1][0]) if len(rows) == _VISITED_BESIDES else 0
        return [str(row[1]) for row in rows if row[1] not in due]
