"""Record the work that goes on in the background, for all processes.

An import that a panel started is seen in every other window and by the command line, with its
progress; a round of a worker stands here with what it did. Each change of a job is a new row in
place of the old one, so that the feed tells of it. A job whose process died does not count as
running.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from smara.core.startup.record import dataclass, field, replace
from smara.core.validate import check_page
from smara.database.database import Row, Session
from smara.database.leases import host_name, is_gone
from smara.database.project_store import ProjectStore
from smara.database.projects import ProjectContext
from smara.errors import SmaraError

LOST_MS = 10 * 60_000
"""After so long without a sign of life a job of another machine is taken for lost."""
_STEP_SECONDS = 1.0
_MOST = 500
_LOST = "Its process ended before the work was done. What it reported is stored; start it again."
_COLUMNS = (
    "id, kind, what, state, done, total, facts, error, owner, started_at, updated_at, ended_at"
)


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """A piece of work: ``running``, ``done`` or ``failed``."""

    id: str
    kind: str
    """Such as ``import`` or ``worker``."""
    what: str
    """The part that is at hand."""
    state: str
    done: int
    total: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Counts of what came of it."""
    error: str | None = None
    owner: str = ""
    started_at: int = 0
    updated_at: int = 0
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class LeasedWork:
    """Work that one process holds now, and no other does."""

    kind: str
    """Such as ``observations`` or ``embeddings``."""
    owner: str
    acquired_at: int
    expires_at: int


class RunningJob:
    """A job of this process, while it runs."""

    def __init__(self, jobs: BackgroundJobs, job: BackgroundJob, project: ProjectContext) -> None:
        self._jobs, self._job, self._clock = jobs, job, project.clock
        self._told_at = self._clock.monotonic()
        self.facts: dict[str, Any] = {}

    @contextmanager
    def bar(self, label: str) -> Iterator[Any]:
        """Show the part at hand, and its progress, once a second."""
        self._job = replace(self._job, what=label, done=0, total=0)
        self._tell()

        def progress(done: int, total: int) -> None:
            self._job = replace(self._job, done=done, total=total)
            self._tell()

        yield progress

    def show(self, what: str, done: int, total: int) -> None:
        """Store how far it is, at once; also a sign of life."""
        self._job = replace(self._job, what=what, done=done, total=total, facts=self.facts)
        self._jobs.put(self._job)

    def end(self, error: str | None) -> None:
        """Record what came of it."""
        state = "done" if error is None else "failed"
        self._jobs.put(replace(self._job, state=state, facts=self.facts, error=error, what=""))

    def _tell(self) -> None:
        now = self._clock.monotonic()
        if now - self._told_at >= _STEP_SECONDS:
            self._told_at = now
            self._jobs.put(self._job)


class BackgroundJobs:
    """The background work of one project."""

    def __init__(self, project: ProjectContext) -> None:
        self._project = project
        self._store = ProjectStore(project.database, project.scope)

    def list(self, limit: int = 20) -> builtins.list[BackgroundJob]:
        """Return jobs, the last changed first.

        Args:
            limit: The most jobs.

        Returns:
            Each with its progress or what came of it; a lost one is ``failed``.
        """
        check_page(limit)
        rows = self._store.ask(
            self._store.rows,
            f"SELECT {_COLUMNS} FROM jobs WHERE project_no = :project ORDER BY no DESC LIMIT ?",
            limit,
        )
        return [self._job(row) for row in rows]

    def running(self, kind: str) -> BackgroundJob | None:
        """Return the job of a kind that runs now.

        Args:
            kind: The kind of work.

        Returns:
            The job, or ``None``.
        """
        return self._store.ask(self._running, kind)

    def leases(self) -> builtins.list[LeasedWork]:
        """Return the work of this project that processes hold now.

        Returns:
            The kind, the process, since when and until when, unless it goes on.
        """
        mine = f":{self._project.scope.project_no}:"
        with self._store.database.read() as session:
            rows = session.all(
                "SELECT name, owner, acquired_at, expires_at FROM leases"
                " WHERE owner IS NOT NULL AND expires_at > ? ORDER BY acquired_at",
                (self._project.clock.now_ms(),),
            )
        return [
            LeasedWork(str(name).partition(":")[0], *rest)
            for name, *rest in rows
            if mine in name or str(name).startswith("worker:")
        ]

    @contextmanager
    def run(self, kind: str, what: str = "") -> Iterator[RunningJob | None]:
        """Record a piece of work while a block does it.

        Args:
            kind: The kind of work; at most one of a kind runs at a time.
            what: The part that comes first.

        Returns:
            The job, to tell of its progress; ``None`` if another of its kind is running.
        """
        now = self._project.clock.now_ms()
        owner = f"{host_name()}:{os.getpid()}"
        job = BackgroundJob(
            self._project.new_id(), kind, what, "running", 0, total=0, owner=owner, started_at=now
        )
        with self._store.database.write() as session:
            is_free = self._running(session, kind) is None
            if is_free:
                self._store.run(  # what was lost with its process makes room
                    session,
                    "UPDATE jobs SET state = 'failed', error = ?, ended_at = updated_at"
                    " WHERE project_no = :project AND kind = ? AND state = 'running'",
                    _LOST,
                    kind,
                )
                self._insert(session, job)
        if not is_free:
            yield None
            return
        running = RunningJob(self, job, self._project)
        try:
            yield running
        except BaseException as error:
            running.end(str(error) if isinstance(error, SmaraError) else type(error).__name__)
            raise
        running.end(None)

    def add(self, kind: str, facts: Mapping[str, Any], error: str | None = None) -> None:
        """Record finished work, such as a round of a worker.

        Args:
            kind: The kind of work.
            facts: What came of it, in numbers.
            error: What went wrong.
        """
        now = self._project.clock.now_ms()
        state = "done" if error is None else "failed"
        owner = f"{host_name()}:{os.getpid()}"
        self.put(
            BackgroundJob(
                self._project.new_id(),
                kind,
                "",
                state,
                0,
                total=0,
                facts=facts,
                error=error,
                owner=owner,
                started_at=now,
            )
        )

    def put(self, job: BackgroundJob) -> None:
        """Store a job in place of what it was.

        Args:
            job: The job.
        """
        with self._store.database.write() as session:
            # Removed after the new row has its number: a number is never given twice.
            self._store.run(
                session,
                "UPDATE jobs SET state = 'replaced' WHERE project_no = :project AND id = ?",
                job.id,
            )
            self._insert(session, job)
            self._store.run(
                session,
                "DELETE FROM jobs WHERE project_no = :project AND (state = 'replaced'"
                " OR (state <> 'running' AND no <= (SELECT j.no FROM jobs j"
                f" WHERE j.project_no = :project ORDER BY j.no DESC LIMIT 1 OFFSET {_MOST})))",
            )

    def _insert(self, session: Session, job: BackgroundJob) -> None:
        now = self._project.clock.now_ms()
        self._store.run(
            session,
            f"INSERT INTO jobs (project_no, {_COLUMNS})"
            " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            job.id,
            job.kind,
            job.what,
            job.state,
            job.done,
            job.total,
            json.dumps(dict(job.facts)),
            job.error,
            job.owner,
            job.started_at,
            now,
            None if job.state == "running" else now,
        )

    def _running(self, session: Session, kind: str) -> BackgroundJob | None:
        rows = self._store.rows(
            session,
            f"SELECT {_COLUMNS} FROM jobs WHERE project_no = :project AND kind = ?"
            " AND state = 'running'",
            kind,
        )
        return next((job for row in rows if (job := self._job(row)).state == "running"), None)

    def _job(self, row: Row) -> BackgroundJob:
        values: Any = (*row[:6], json.loads(row[6]), *row[7:])
        job = BackgroundJob(*values)
        is_late = self._project.clock.now_ms() - job.updated_at >= LOST_MS
        if job.state == "running" and (is_late or is_gone(job.owner)):
            return replace(job, state="failed", error=_LOST, ended_at=job.updated_at)
        return job
