"""The tables of the intake room: SQL and the mapping of rows, no decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from smara.core.storable import from_storable, to_storable
from smara.database.database import Row, Session, marks, parts
from smara.database.stores import ProjectStore
from smara.intake.models import Heard, Job
from smara.secrets.metadata import dump_metadata

_JOB = "kind, session_id, facts, due_at, attempts, error"


class IntakeStore(ProjectStore):
    """The tables ``intake_events``, ``intake_hosts`` and ``intake_jobs`` of one project."""

    def times_of(self, session: Session, stems: Sequence[str]) -> dict[str, list[int]]:
        """When each of these events was told, as far as it was taken in."""
        found: dict[str, list[int]] = {}
        for some in parts([to_storable(stem) for stem in stems]):
            rows = session.all(
                self.sql(
                    "SELECT stem, at_ms FROM intake_events"
                    f" WHERE project_no = :project AND stem IN ({marks(len(some))})"
                ),
                some,
            )
            for stem, at_ms in rows:
                found.setdefault(from_storable(stem), []).append(int(at_ms))
        return found

    def insert_events(
        self, session: Session, rows: Iterable[tuple[str, int, str]], now_ms: int
    ) -> None:
        session.run_many(
            self.sql(
                "INSERT INTO intake_events (project_no, stem, at_ms, session_id, taken_at)"
                " VALUES (:project, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
            ),
            [
                (to_storable(stem), at_ms, to_storable(session_id), now_ms)
                for stem, at_ms, session_id in rows
            ],
        )

    def delete_events(self, session: Session, before_ms: int) -> int:
        return session.run(
            self.sql("DELETE FROM intake_events WHERE project_no = :project AND taken_at < ?"),
            (before_ms,),
        )

    def hear(self, session: Session, heard: Iterable[Heard]) -> None:
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

    def list_heard(self, session: Session) -> list[Heard]:
        rows = session.all(
            self.sql(
                "SELECT agent, kind, last_at, event_count, repeat_count FROM intake_hosts"
                " WHERE project_no = :project ORDER BY agent, last_at DESC"
            )
        )
        return [
            Heard(str(a), str(k), int(at), event_count=int(events), repeat_count=int(repeats))
            for a, k, at, events, repeats in rows
        ]

    def put_job(self, session: Session, job: Job, now_ms: int) -> None:
        """Add a job, or give the one that is there the new time and facts; its attempts begin
        again.
        """
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
        """Delete a job that was done, unless it was asked for again in the meantime."""
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
