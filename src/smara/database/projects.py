"""Find and create a database's projects, and their contexts.

A room takes a `ProjectContext` first, then the rooms it uses, by name.

A project made from a git repository is identified by its common directory, so worktrees
share it. A clone that moved is recognized by its first commit together with its remote.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smara.config import Settings, default_actor, local_timezone
from smara.core.clock import Clock
from smara.core.git import Repository
from smara.core.ids import IdMaker
from smara.core.scope import Scope, require_id
from smara.core.tokens import TokenCounter
from smara.database.database import Database, Session

if TYPE_CHECKING:
    from smara.database.leases import Leases


@dataclass(frozen=True, slots=True)
class ProjectContext:
    """The database, project, clock, ids, token counter and settings of a memory."""

    database: Database
    scope: Scope
    clock: Clock
    new_id: IdMaker
    counter: TokenCounter
    settings: Settings

    @property
    def actor(self) -> str:
        """Return who acts unless a call names someone else."""
        return self.settings.actor or default_actor()

    @property
    def timezone(self) -> str:
        """Return the time zone in which observations are dated."""
        return self.settings.observe_timezone or local_timezone()

    @property
    def leases(self) -> Leases:
        """Return the leases of this database."""
        from smara.database.leases import Leases  # a search does without

        return Leases(self.database, self.clock, self.new_id)


@dataclass(frozen=True, slots=True)
class Project:
    """One project of a store."""

    id: str
    name: str
    git_common_dir: str | None
    remote: str | None
    created_at: int


class Projects:
    """Finds and makes projects."""

    def __init__(self, database: Database, clock: Clock, new_id: IdMaker) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id

    def named(self, project_id: str) -> Scope:
        """Return the project of this name, made on first use.

        Args:
            project_id: Any printable text of at most 512 characters.

        Raises:
            InvalidInputError: If it cannot be the id of a project.
        """
        require_id(project_id, "project")
        with self._database.read() as session:
            row = session.one("SELECT no FROM projects WHERE id = ?", (project_id,))
        if row is None:
            with self._database.write() as session:
                row = self._insert(session, project_id, project_id, None)
        return Scope(int(row[0]), project_id)

    def of_repository(self, repository: Repository) -> Scope:
        """Return a git repository's project, created on first use.

        It is found again after a move.

        Args:
            repository: The repository, as ``smara.core.git`` finds it; all its worktrees share one
                project.
        """
        with self._database.read() as session:
            row = session.one(
                "SELECT no, id FROM projects WHERE git_common_dir = ?", (repository.common_dir,)
            )
        if row is None:
            with self._database.write() as session:
                # A project whose folder is gone and whose history is this one's has moved here.
                first_commit = repository.first_commit
                for no, project_id, common_dir in session.all(
                    "SELECT no, id, git_common_dir FROM projects WHERE first_commit = ?"
                    " AND coalesce(remote, '') = ?",
                    (first_commit, repository.remote or ""),
                ):
                    if common_dir is None or not os.path.isdir(common_dir):
                        session.run(
                            "UPDATE projects SET git_common_dir = ? WHERE no = ?",
                            (repository.common_dir, no),
                        )
                        return Scope(int(no), str(project_id))
                row = self._insert(
                    session, f"{repository.name}-{self._new_id()[-8:]}", repository.name, repository
                )
        return Scope(int(row[0]), str(row[1]))

    def list(self) -> list[Project]:
        """Return every project of this store, oldest first."""
        with self._database.read() as session:
            rows = session.all(
                "SELECT id, name, git_common_dir, remote, created_at FROM projects ORDER BY no"
            )
        return [Project(*row) for row in rows]

    def _insert(
        self, session: Session, project_id: str, name: str, repository: Repository | None
    ) -> tuple[int, str]:
        found = (
            (repository.common_dir, repository.first_commit, repository.remote)
            if repository
            else (None,) * 3
        )
        session.run(
            "INSERT INTO projects (id, name, git_common_dir, first_commit, remote, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (project_id, name, *found, self._clock.now_ms()),
        )
        row = session.one("SELECT no, id FROM projects WHERE id = ?", (project_id,))
        if row is None:
            raise AssertionError("a project that was just inserted is gone")
        return int(row[0]), str(row[1])
