"""Ingest host events exactly once and schedule their sessions' jobs.

The key of an event is stored with it, so that a repeated hook is a duplicate and not a second
event. `IntakeStore` stores the keys within a transaction of others, `Intake` has hosts and jobs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from smara.actions.models import HostContact, Job
from smara.core.clock import Clock
from smara.core.escape import from_storable, to_storable
from smara.core.events import HostEvent, is_duplicate_key, stem_of
from smara.core.items import grouped
from smara.core.startup.record import dataclass
from smara.database.database import Session
from smara.database.leases import Lease, Leases
from smara.database.project_store import ProjectStore, Tombstones
from smara.secrets.redact import dump_metadata


class IntakeStore(ProjectStore):
    """The keys of ingested events, in the table ``intake_events`` of one project."""

    def fresh(self, session: Session, events: Sequence[HostEvent]) -> list[HostEvent]:
        """Return events not ingested before, each once, in order.

        Those of a session that was erased afterwards do not come back.
        """
        events = self.unerased(session, events)
        stems = {_stem(event) for event in events} | {_hashed(event) for event in events}
        rows = self.rows(
            session,
            "SELECT stem, at_ms FROM intake_events WHERE project_no = :project AND stem IN (:some)",
            some=[to_storable(stem) for stem in sorted(stems)],
        )
        stored = grouped(
            (from_storable(name), _key(from_storable(name), at_ms)) for name, at_ms in rows
        )
        found = []
        for event in events:
            stem = _stem(event)
            key = _key(stem, stem_of(event.key)[1])
            keys = stored.setdefault(stem, [])
            if _hashed(event) not in stored and not any(
                is_duplicate_key(key, each) for each in keys
            ):
                found.append(event)
                keys.append(key)
        return found

    def unerased(self, session: Session, events: Sequence[HostEvent]) -> list[HostEvent]:
        """Return events without those of sessions that were erased after them."""
        names = {event.session_id for event in events}
        erased = Tombstones(self.database, self.scope).erased(session, "thread", names)
        return [each for each in events if each.at_ms > erased.get(each.session_id, -1)]

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


SILENT_SESSION_MS = 2 * 3_600_000
"""A session without an event for so long is over, even if its host never says so."""
MOST_ATTEMPTS = 5
_FIRST_WAIT_MS = 60_000


@dataclass(frozen=True, eq=False)
class Intake:
    """The ingested events of one project, and its jobs."""

    store: IntakeStore
    clock: Clock
    leases: Leases

    def fresh(self, events: Sequence[HostEvent]) -> list[HostEvent]:
        """Return events not ingested before, each once, in order."""
        return self.store.ask(self.store.fresh, events)

    def erased(self, kind: str, names: Iterable[str]) -> dict[str, int]:
        """Return when names of a kind were erased, of those that were."""
        return self.store.ask(Tombstones(self.store.database, self.store.scope).erased, kind, names)

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
        now = self.clock.now_ms()
        self.leases.guard(session, lease)
        self.store.insert_events(session, fresh, now)
        ids = {id(event) for event in fresh}
        contacts: dict[tuple[str, str], list[int]] = {}
        for event in events:
            sums = contacts.setdefault((event.agent, event.kind), [0, 0, 0])
            sums[0] = max(sums[0], event.at_ms)
            sums[1] += 1
            sums[2] += id(event) not in ids
        session.run_many(
            self.store.sql(
                "INSERT INTO intake_hosts (project_no, agent, kind, last_at, event_count,"
                " repeat_count) VALUES (:project, ?, ?, ?, ?, ?)"
                " ON CONFLICT (project_no, agent, kind) DO UPDATE SET"
                " last_at = CASE WHEN excluded.last_at > intake_hosts.last_at THEN excluded.last_at"
                " ELSE intake_hosts.last_at END,"
                " event_count = intake_hosts.event_count + excluded.event_count,"
                " repeat_count = intake_hosts.repeat_count + excluded.repeat_count"
            ),
            [(*contact, *sums) for contact, sums in contacts.items()],
        )
        # A job that is there already gets its new time and facts, and all attempts again.
        session.run_many(
            self.store.sql(
                "INSERT INTO intake_jobs (project_no, kind, session_id, facts, due_at, attempts,"
                " error, created_at) VALUES (:project, ?, ?, ?, ?, 0, NULL, ?)"
                " ON CONFLICT (project_no, kind, session_id) DO UPDATE SET facts = excluded.facts,"
                " due_at = excluded.due_at, attempts = 0, error = NULL"
            ),
            [
                (
                    job.kind,
                    to_storable(job.session_id),
                    to_storable(dump_metadata(job.facts)),
                    job.due_at,
                    now,
                )
                for job in jobs
            ],
        )

    def heard(self) -> list[HostContact]:
        """List the hosts with their last event of each kind."""
        statement = (
            "SELECT agent, kind, last_at, event_count, repeat_count FROM intake_hosts"
            " WHERE project_no = :project ORDER BY agent, last_at DESC"
        )
        return [HostContact(*row) for row in self.store.ask(self.store.rows, statement)]

    def jobs(self) -> list[Job]:
        """List all jobs, also those that were given up."""
        return self._jobs(" ORDER BY due_at")

    def due(self, limit: int = 50) -> list[Job]:
        """Return due jobs, oldest first; transcripts before session ends."""
        rest = " AND due_at <= ? AND attempts < ? ORDER BY due_at, kind DESC LIMIT ?"
        return self._jobs(rest, (self.clock.now_ms(), MOST_ATTEMPTS, limit))

    def _jobs(self, rest: str, values: Sequence[int] = ()) -> list[Job]:
        rows = self.store.ask(
            self.store.rows,
            "SELECT kind, session_id, facts, due_at, attempts, error FROM intake_jobs"
            f" WHERE project_no = :project{rest}",
            *values,
        )
        return [
            Job(
                kind,
                from_storable(session_id),
                json.loads(from_storable(facts)),
                due_at=due_at,
                attempts=attempts,
                error=None if error is None else from_storable(error),
            )
            for kind, session_id, facts, due_at, attempts, error in rows
        ]

    def done(self, job: Job) -> None:
        """Delete a job that was done, unless it was requested again."""
        with self.store.database.write() as session:
            self.store.run(
                session,
                "DELETE FROM intake_jobs"
                " WHERE project_no = :project AND kind = ? AND session_id = ? AND due_at = ?",
                job.kind,
                to_storable(job.session_id),
                job.due_at,
            )

    def failed(self, job: Job, reason: str) -> None:
        """Postpone a failed job by 1, 4, 16, 64 minutes, then forever."""
        due_at = self.clock.now_ms() + _FIRST_WAIT_MS * 4**job.attempts
        with self.store.database.write() as session:
            self.store.run(
                session,
                "UPDATE intake_jobs SET attempts = attempts + 1, error = ?, due_at = ?"
                " WHERE project_no = :project AND kind = ? AND session_id = ? AND due_at = ?",
                to_storable(reason),
                due_at,
                job.kind,
                to_storable(job.session_id),
                job.due_at,
            )


def _stem(event: HostEvent) -> str:
    """Return the key of an event without its time; a key holds within its session."""
    stem = stem_of(event.key)[0]
    own = f"{event.session_id}:"
    return stem if stem.startswith(own) else f"{own}{stem}"


def _key(stem: str, at_ms: int) -> str:
    """Return a key from its two parts."""
    return f"{stem}~{at_ms}" if at_ms else stem


def _hashed(event: HostEvent) -> str:
    """Return the key as databases before version 22 had it."""
    key = event.key.encode("utf-8", "replace")
    return f"hash:{hashlib.blake2b(key, digest_size=16).hexdigest()}"
