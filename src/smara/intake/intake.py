"""Taking events in exactly once, and remembering what is to be done for their sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smara.core.clock import Clock
from smara.core.events import HostEvent, is_same_telling, stem_of
from smara.database.leases import Lease, Leases
from smara.intake.models import Heard, Job
from smara.intake.store import IntakeStore

MOST_ATTEMPTS = 5
KEEP_KEYS_MS = 30 * 86_400_000
"""A spool that waited longer than this may be taken in twice; it is bounded to about a week."""
_FIRST_WAIT_MS = 60_000


class Intake:
    """What the hosts of one project told."""

    def __init__(self, store: IntakeStore, clock: Clock, leases: Leases) -> None:
        self._store = store
        self._clock = clock
        self._leases = leases

    def fresh(self, events: Sequence[HostEvent]) -> list[HostEvent]:
        """Those that were not taken in before, each once, in their order."""
        stems = sorted({stem_of(event.key)[0] for event in events})
        with self._store.database.read() as session:
            known = self._store.times_of(session, stems)
        seen = {stem: [_key(stem, at_ms) for at_ms in times] for stem, times in known.items()}
        found = []
        for event in events:
            keys = seen.setdefault(stem_of(event.key)[0], [])
            if not any(is_same_telling(event.key, key) for key in keys):
                found.append(event)
                keys.append(event.key)
        return found

    def end(
        self,
        told: Sequence[HostEvent],
        fresh: Sequence[HostEvent],
        jobs: Iterable[Job],
        lease: Lease,
    ) -> None:
        """Note that events were taken in: their keys, who told them, and what is to be done; all or
        nothing.

        Raises ``LeaseLostError``, and notes nothing, when somebody else is at it by now.
        """
        now = self._clock.now_ms()
        with self._store.database.write() as session:
            self._leases.guard(session, lease)
            keys = [(*stem_of(event.key), event.session_id) for event in fresh]
            self._store.insert_events(session, keys, now)
            self._store.hear(session, _heard(told, fresh))
            for job in jobs:
                self._store.put_job(session, job, now)

    def heard(self) -> list[Heard]:
        """Who told what, and when last."""
        with self._store.database.read() as session:
            return self._store.list_heard(session)

    def jobs(self) -> list[Job]:
        """Everything that is to be done, also what was given up."""
        with self._store.database.read() as session:
            return self._store.list_jobs(session)

    def due(self, limit: int = 50) -> list[Job]:
        """What is to be done now, the oldest first; a transcript before the end of its session."""
        with self._store.database.read() as session:
            return self._store.due_jobs(session, self._clock.now_ms(), MOST_ATTEMPTS, limit=limit)

    def done(self, job: Job) -> None:
        """A job was done."""
        with self._store.database.write() as session:
            self._store.delete_job(session, job)

    def failed(self, job: Job, reason: str) -> None:
        """A job failed: it is tried again after 1, 4, 16 and 64 minutes, and then given up."""
        due_at = self._clock.now_ms() + _FIRST_WAIT_MS * 4**job.attempts
        with self._store.database.write() as session:
            self._store.fail_job(session, job, reason, due_at=due_at)

    def prune(self) -> int:
        """Forget the keys of events from long ago; how many."""
        with self._store.database.write() as session:
            return self._store.delete_events(session, self._clock.now_ms() - KEEP_KEYS_MS)


def _key(stem: str, at_ms: int) -> str:
    return f"{stem}~{at_ms}" if at_ms else stem


def _heard(told: Sequence[HostEvent], fresh: Sequence[HostEvent]) -> list[Heard]:
    ids = {id(event) for event in fresh}
    found: dict[tuple[str, str], list[int]] = {}
    for event in told:
        sums = found.setdefault((event.agent, event.kind), [0, 0, 0])
        sums[0] = max(sums[0], event.at_ms)
        sums[1] += 1
        sums[2] += id(event) not in ids
    return [Heard(agent, kind, *sums) for (agent, kind), sums in found.items()]
