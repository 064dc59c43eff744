"""Ingest host events exactly once and schedule their sessions' jobs.

The key of an event is stored with it, so that a repeated hook is a duplicate and not a second
event. `IntakeStore` holds the SQL, `Intake` the decisions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from smara.actions.models import HostContact, Job
from smara.core.clock import Clock
from smara.core.escape import from_storable, to_storable
from smara.core.events import HostEvent, is_duplicate_key, stem_of
from smara.database.database import Row, Session, marks, parts
from smara.database.leases import Lease, Leases
from smara.database.project_store import ProjectStore
from smara.secrets.redact import dump_metadata

_JOB = "kind, session_id, facts, due_at, attempts, error"


class IntakeStore(ProjectStore):
    """The tables ``intake_events``, ``intake_hosts`` and ``intake_jobs`` of one project."""

    def fresh(self, session: Session, events: Sequence[HostEvent]) -> list[HostEvent]:
        """Return events not ingested before, each once, in order."""
        stems = {_stem(event) for event in events} | {_hashed(event) for event in events}
        known: dict[str, list[str]] = {}
        for some in parts([to_storable(stem) for stem in sorted(stems)]):
            rows = session.all(
                self.sql(
                    "SELECT stem, at_ms FROM intake_events"
                    f" WHERE project_no = :project AND stem IN ({marks(len(some))})"
                ),
                some,
            )
            for stem, at_ms in rows:
                key = from_storable(stem)
                known.setdefault(key, []).append(f"{key}~{at_ms}" if at_ms else key)
        found = []
        for event in events:
            stem, at_ms = _stem(event), stem_of(event.key)[1]
            key = f"{stem}~{at_ms}" if at_ms else stem
            keys = known.setdefault(stem, [])
            if _hashed(event) not in known and not any(
                is_duplicate_key(key, each) for each in keys
            ):
                found.append(event)
                keys.append(key)
        return found

    def insert_events(self, session: Session, events: Iterable[HostEvent], now_ms: int) -> None:
        """Store the keys of events that are ingested in this transaction."""
        session.run_many(
            self.sql(
                "INSERT INTO intake_events (project_no, stem, at_ms, session_id, taken_at)"
                " VALUES (:project, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
            ),
            [
                (
                    to_storable(_stem(event)),
                    stem_of(event.key)[1],
                    to_storable(event.session_id),
                    now_ms,
                )
                for event in events
            ],
        )

    def delete_events(self, session: Session, before_ms: int) -> int:
        return session.run(
            self.sql("DELETE FROM intake_events WHERE project_no = :project AND taken_at < ?"),
            (before_ms,),
        )

    def hear(self, session: Session, heard: Iterable[HostContact]) -> None:
        session.run_many(
            self.sql(
                "INSERT INTO intake_hosts (project_no, agent, kind, last_at, event_count, "
                "repeat_count)"
                " VALUES (:project, ?, ?, ?, ?, ?)"
                " ON CONFLICT (project_no, agent, kind) DO UPDATE SET"
                " last_at = CASE WHEN excluded.last_at > intake_hosts.last_at THEN excluded.last_at"
                " ELSE intake_hosts.last_at END,"
                " event_count = intake_hosts.event_count + excluded.event_count,"
                " repeat_count = intake_hosts.repeat_count + excluded.repeat_count"
            ),
            [
                (each.agent, each.kind, each.last_at, each.event_count, each.repeat_count)
                for each in heard
            ],
        )

    def list_heard(self, session: Session) -> list[HostContact]:
        rows = session.all(
            self.sql(
                "SELECT agent, kind, last_at, event_count, repeat_count FROM intake_hosts"
                " WHERE project_no = :project ORDER BY agent, last_at DESC"
            )
        )
        return [
            HostContact(str(a), str(k), int(at), event_count=int(events), repeat_count=int(repeats))
            for a, k, at, events, repeats in rows
        ]

    def put_job(self, session: Session, job: Job, now_ms: int) -> None:
        """Add a job, or reset an existing one's time, facts and attempts."""
        session.run(
            self.sql(
                "INSERT INTO intake_jobs (project_no, kind, session_id, facts, due_at, attempts, "
                "error, created_at)"
                " VALUES (:project, ?, ?, ?, ?, 0, NULL, ?)"
                " ON CONFLICT (project_no, kind, session_id) DO UPDATE SET facts = excluded.facts,"
                " due_at = excluded.due_at, attempts = 0, error = NULL"
            ),
            (
                job.kind,
                to_storable(job.session_id),
                to_storable(dump_metadata(job.facts)),
                job.due_at,
                now_ms,
            ),
        )

    def due_jobs(self, session: Session, now_ms: int, most_attempts: int, limit: int) -> list[Job]:
        rows = session.all(
            self.sql(
                f"SELECT {_JOB} FROM intake_jobs WHERE project_no = :project AND due_at <= ? AND "
                "attempts < ?"
                " ORDER BY due_at, kind DESC LIMIT ?"
            ),
            (now_ms, most_attempts, limit),
        )
        return [_job(row) for row in rows]

    def list_jobs(self, session: Session) -> list[Job]:
        rows = session.all(
            self.sql(f"SELECT {_JOB} FROM intake_jobs WHERE project_no = :project ORDER BY due_at")
        )
        return [_job(row) for row in rows]

    def delete_job(self, session: Session, job: Job) -> None:
        """Delete a finished job, unless it was requested again."""
        session.run(
            self.sql(
                "DELETE FROM intake_jobs WHERE project_no = :project AND kind = ? AND session_id "
                "= ? AND due_at = ?"
            ),
            (job.kind, to_storable(job.session_id), job.due_at),
        )

    def fail_job(self, session: Session, job: Job, error: str, due_at: int) -> None:
        session.run(
            self.sql(
                "UPDATE intake_jobs SET attempts = attempts + 1, error = ?, due_at = ?"
                " WHERE project_no = :project AND kind = ? AND session_id = ? AND due_at = ?"
            ),
            (to_storable(error), due_at, job.kind, to_storable(job.session_id), job.due_at),
        )


def _job(row: Row) -> Job:
    kind, session_id, facts, due_at, attempts, error = row
    return Job(
        kind,
        from_storable(session_id),
        json.loads(from_storable(facts)),
        due_at=int(due_at),
        attempts=int(attempts),
        error=None if error is None else from_storable(error),
    )


SILENT_SESSION_MS = 2 * 3_600_000
"""A session without an event for so long is over, even if its host never says so."""
MOST_ATTEMPTS = 5
KEEP_KEYS_MS = 30 * 86_400_000
"""A spool that waited longer than this may be taken in twice; it is bounded to about a week."""
_FIRST_WAIT_MS = 60_000


class Intake:
    """The ingested events of one project, and its jobs."""

    def __init__(self, store: IntakeStore, clock: Clock, leases: Leases) -> None:
        self._store = store
        self._clock = clock
        self._leases = leases

    def fresh(self, events: Sequence[HostEvent]) -> list[HostEvent]:
        """Return events not ingested before, each once, in order."""
        with self._store.database.read() as session:
            return self._store.fresh(session, events)

    def end(
        self,
        session: Session,
        events: Sequence[HostEvent],
        fresh: Sequence[HostEvent],
        jobs: Iterable[Job],
        lease: Lease,
    ) -> None:
        """Record ingested events within a transaction: keys, hosts, jobs.

        Args:
            session: The transaction in which the events are learned from, so that each counts once.
            events: All events that hosts sent.
            fresh: Those that were not ingested before.
            jobs: The work that their sessions ask for.
            lease: The right to ingest.

        Raises:
            LeaseLostError: Another process ingests by now; the transaction must not be committed.
        """
        now = self._clock.now_ms()
        self._leases.guard(session, lease)
        self._store.insert_events(session, fresh, now)
        self._store.hear(session, _heard(events, fresh))
        for job in jobs:
            self._store.put_job(session, job, now)

    def heard(self) -> list[HostContact]:
        """List the hosts with their last event of each kind."""
        with self._store.database.read() as session:
            return self._store.list_heard(session)

    def jobs(self) -> list[Job]:
        """List all jobs, also those that were given up."""
        with self._store.database.read() as session:
            return self._store.list_jobs(session)

    def due(self, limit: int = 50) -> list[Job]:
        """Return due jobs, oldest first; transcripts before session ends."""
        with self._store.database.read() as session:
            return self._store.due_jobs(session, self._clock.now_ms(), MOST_ATTEMPTS, limit=limit)

    def done(self, job: Job) -> None:
        """Delete a job that was done."""
        with self._store.database.write() as session:
            self._store.delete_job(session, job)

    def failed(self, job: Job, reason: str) -> None:
        """Postpone a failed job by 1, 4, 16, 64 minutes, then forever."""
        due_at = self._clock.now_ms() + _FIRST_WAIT_MS * 4**job.attempts
        with self._store.database.write() as session:
            self._store.fail_job(session, job, reason, due_at=due_at)

    def prune(self) -> int:
        """Delete the keys of events from long ago; return how many."""
        with self._store.database.write() as session:
            return self._store.delete_events(session, self._clock.now_ms() - KEEP_KEYS_MS)


def _stem(event: HostEvent) -> str:
    """Return the key of an event without its time; a key holds within its session."""
    stem = stem_of(event.key)[0]
    own = f"{event.session_id}:"
    return stem if stem.startswith(own) else f"{own}{stem}"


def _hashed(event: HostEvent) -> str:
    """Return the key as databases before version 22 had it."""
    key = event.key.encode("utf-8", "replace")
    return f"hash:{hashlib.blake2b(key, digest_size=16).hexdigest()}"


def _heard(told: Sequence[HostEvent], fresh: Sequence[HostEvent]) -> list[HostContact]:
    ids = {id(event) for event in fresh}
    found: dict[tuple[str, str], list[int]] = {}
    for event in told:
        sums = found.setdefault((event.agent, event.kind), [0, 0, 0])
        sums[0] = max(sums[0], event.at_ms)
        sums[1] += 1
        sums[2] += id(event) not in ids
    return [HostContact(agent, kind, *sums) for (agent, kind), sums in found.items()]
