"""Run the background jobs: finalize idle sessions, synthesize, prune daily.

The first worker takes a job, so any number of workers may run. A job that fails does
not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from smara.actions.intake import KEEP_KEYS_MS, SILENT_SESSION_MS, IntakeStore
from smara.behavior.models import JobsDone
from smara.behavior.store import BehaviorStore
from smara.behavior.synthesis import WEEK_MS, Synthesis
from smara.core import log
from smara.core.clock import Clock
from smara.errors import SmaraError
from smara.knowledge.memories import Memories

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class JobParts:
    """The parts that jobs work with."""

    store: BehaviorStore
    synthesis: Synthesis
    memories: Memories
    clock: Clock
    finalize: Callable[[str], int]
    """Decides on a session; how many memories came of it."""
    evict: Callable[[], int] | None = None
    """Empties the cache of vectors of what has expired."""


class Jobs:
    """Does what is due."""

    def __init__(self, parts: JobParts) -> None:
        self._parts = parts

    def run_due(self, limit: int = 8) -> JobsDone:
        """Run what is due, at most ``limit`` sessions; safe anywhere.

        Finding out that nothing is due takes one look, and writes nothing.
        """
        parts = self._parts
        now = parts.clock.now_ms()
        with parts.store.database.read() as session:
            ended = parts.store.due(session, now - SILENT_SESSION_MS, limit)
            modules = parts.synthesis.due(session)
            last = parts.store.job_times(session)
        finalized, promoted, failed = self._finalize(ended)
        if ended:
            with parts.store.database.read() as session:
                modules = parts.synthesis.due(session)
        synthesized = (
            self._tried("synthesis", lambda: len(parts.synthesis.run(modules))) if modules else 0
        )
        weekly = self._every("weekly", WEEK_MS, self._weekly, last=last)
        pruned = self._every("prune", DAY_MS, self._prune, last=last)
        evicted = self._every("evict", DAY_MS, self._evict, last=last)
        failed += sum(each is None for each in (synthesized, weekly, pruned, evicted))
        return JobsDone(
            finalized,
            promoted,
            (synthesized or 0) + (weekly or 0),
            pruned=pruned or 0,
            evicted=evicted or 0,
            failed=failed,
        )

    def _finalize(self, ended: Sequence[str]) -> tuple[int, int, int]:
        done = promoted = failed = 0
        for session_id in ended:
            try:
                promoted += self._parts.finalize(session_id)
                done += 1
            except SmaraError as error:
                failed += 1
                log.warning("behavior.not_finalized", session=session_id, error=error.code)
        return done, promoted, failed

    def _every(
        self, name: str, every_ms: int, work: Callable[[], int], last: Mapping[str, int]
    ) -> int | None:
        now = self._parts.clock.now_ms()
        if now - last.get(name, now - every_ms) < every_ms:
            return 0
        with self._parts.store.database.write() as session:
            is_ours = self._parts.store.claim_job(session, name, now, every_ms=every_ms)
        return self._tried(name, work) if is_ours else 0

    def _tried(self, name: str, work: Callable[[], int]) -> int | None:
        try:
            return work()
        except SmaraError as error:
            log.warning("behavior.job_failed", job=name, error=error.code)
            return None

    def _weekly(self) -> int:
        return len(self._parts.synthesis.weekly(self._parts.clock.now_ms() // WEEK_MS))

    def _prune(self) -> int:
        parts = self._parts
        pruned = parts.memories.prune()
        before = parts.clock.now_ms() - KEEP_KEYS_MS
        with parts.store.database.write() as session:
            IntakeStore(parts.store.database, parts.store.scope).delete_events(session, before)
        return len(pruned.deprecated) + len(pruned.deleted)

    def _evict(self) -> int:
        return 0 if self._parts.evict is None else self._parts.evict()
