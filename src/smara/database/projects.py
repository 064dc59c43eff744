"""Find and create a database's projects, and their contexts.

A room takes a `ProjectContext` first, then the rooms it uses, by name.

A project is known by its places: clones of a git repository, and folders outside git that a
person named. A clone belongs to the project that has its root commit and its remote; neither
the path nor the remote is enough. See docs/decisions/0023-what-a-project-is.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from smara.config import AUTO_PROJECT, Settings, default_actor, local_timezone
from smara.core.clock import Clock
from smara.core.git import Repository, find_repository, normalize_remote
from smara.core.ids import IdMaker
from smara.core.scope import Scope, lookup_id, require_id
from smara.core.startup.record import dataclass, replace
from smara.core.tokens import TokenCounter
from smara.database.database import Database, Session
from smara.database.session import number
from smara.errors import InvalidInputError, NotFoundError

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
    folders: tuple[str, ...]
    """Where it was seen: git directories, and folders outside git."""
    remotes: tuple[str, ...]
    created_at: int


class _Place(NamedTuple):
    """A clone or folder of a project, as a row of ``project_places``."""

    no: int
    project_no: int
    project_id: str
    host: str
    path: str | None
    """``None`` if something else was seen at its path since."""
    first_commit: str | None
    remote: str | None
    proof: str | None
    """A commit that it held: the root commit, or another in a shallow clone."""
    stamp: str
    created_at: int

    @property
    def scope(self) -> Scope:
        return Scope(self.project_no, self.project_id)

    def is_still(self, repository: Repository) -> bool:
        """Return True if its path still has the same repository."""
        if self.stamp and self.stamp.partition("/")[0] == repository.birth:
            return True
        if self.proof:
            return repository.has_commit(self.proof)
        # Seen without a commit by a version that took no stamps.
        return not self.stamp and 0 < repository.made_at_ms <= self.created_at

    def has_commit(self, commit: str | None) -> bool:
        """Return True if the repository at its path holds a commit."""
        return bool(commit and self.path) and Repository(self.path or "", "").has_commit(
            commit or ""
        )


_PLACES = (
    "SELECT l.no, l.project_no, p.id, l.host, l.path, l.first_commit, l.remote, l.proof, l.stamp,"
    " l.created_at FROM project_places l JOIN projects p ON p.no = l.project_no WHERE l.kind = "
)
_NOTES = {
    "vectors": "It keeps vectors, hashed terms and pointers; the text of its conversations stays "
    "in the agents' transcripts. What else it learns from them is off. The key is {other}.",
    "shared": "Repositories shared this project before each got its own; it was left as it is.",
    "apart": "An older version kept every repository of this store in {other}. What it stored is "
    "still there: `smara --project {other} status`. If it is all of this repository, "
    "`smara projects --adopt {other}` takes it over.",
    "inherited": "It was {other}, which held sessions of this repository alone.",
    "successor": "Another repository was at this path before, and its memories stay in {other}. If "
    "both are the same, `smara projects --adopt {other}` takes them over.",
    "adopted": "It took the place of {other}, which keeps what it stored: `smara --project {other} "
    "status`.",
}
"""What was decided about a project, as people read it."""


class Projects:
    """Finds and makes projects."""

    def __init__(self, database: Database, clock: Clock, new_id: IdMaker) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._host = ""  # a file is on one machine, however that is called today
        if database.kind == "postgres":
            from smara.database.leases import host_name

            self._host = host_name()

    def named(self, project_id: str) -> Scope:
        """Return the project of this name, made on first use.

        Args:
            project_id: Any printable text of at most 512 characters.

        Raises:
            InvalidInputError: If it cannot be the id of a project.
        """
        project_id = require_id(project_id, "project")
        with self._database.read() as session:
            row = session.one("SELECT no FROM projects WHERE id = ?", (project_id,))
        if row is None:
            with self._database.write() as session:
                return self._insert(session, project_id, project_id)
        return Scope(int(row[0]), project_id)

    def at(self, folder: str, name: str | None = None, may_add: bool = True) -> Scope | None:
        """Return the project of a folder, by the rule for opening memories.

        Args:
            folder: Where the work is done.
            name: The project that was asked for; ``None`` and ``auto`` leave it to the folder.
            may_add: Make a project for a repository that has none.

        Returns:
            The project; ``None`` outside git, unless the folder or one above it was named.
        """
        if name is not None and name != AUTO_PROJECT:
            return self.named(name)
        repository = find_repository(folder) if folder else None
        if repository is not None:
            return self.of_repository(repository, may_add)
        path = Path(os.path.realpath(folder)) if folder else Path()
        with self._database.read() as session:
            places = self._places(session, "'folder' AND l.host = ?", self._host)
        above = (lookup_id(str(each)) for each in (path, *path.parents))
        return next((each.scope for there in above for each in places if each.path == there), None)

    def of_repository(self, repository: Repository, may_add: bool = True) -> Scope | None:
        """Return a git repository's project, created on first use.

        Args:
            repository: The repository, as ``smara.core.git`` finds it; its worktrees and its other
                clones share one project.
            may_add: Make a project if there is none.

        Returns:
            The project; ``None`` if there is none and none may be made.
        """
        with self._database.read() as session:
            place = self._place(session, repository)
        if place is not None and place.proof and place.stamp == repository.stamp:
            return place.scope  # git need not be asked
        if not may_add and place is None:
            with self._database.read() as session:
                return self._match(self._places(session, "'git'"), repository)
        with self._locked() as session:
            place = former = self._place(session, repository)
            if place is not None and not place.is_still(repository):
                place = None
            if place is not None:
                self._put(session, place.scope, repository, place)
                return place.scope
            if former is not None:
                session.run("UPDATE project_places SET path = NULL WHERE no = ?", (former.no,))
            scope = self._match(self._places(session, "'git'"), repository)
            if scope is None:
                scope = self._new(session, repository, former)
            self._put(session, scope, repository, None)
            return scope

    def add_folder(self, folder: str) -> Scope:
        """Make a folder outside git a project.

        Args:
            folder: The folder; everything below it belongs to it.

        Returns:
            Its project, which may have been there.
        """
        path = os.path.realpath(folder)
        with self._locked() as session:
            same = self._places(
                session, "'folder' AND l.host = ? AND l.path = ?", self._host, lookup_id(path)
            )
            if same:
                return same[0].scope
            name = lookup_id(os.path.basename(path)) or "folder"
            scope = self._insert(session, f"{name}-{self._new_id()[-8:]}", name)
            self._add(session, scope, "folder", path, (self._host, None, None, None, ""))
            return scope

    def adopt(self, project_id: str, folder: str) -> Scope:
        """Make an existing project the one of the repository around a folder.

        The project that it was until then keeps what it stored, under its name.

        Args:
            project_id: The project to take over.
            folder: A folder in the repository.

        Returns:
            The project.

        Raises:
            NotFoundError: If there is no such project.
            InvalidInputError: If the folder is in no git repository.
        """
        repository = find_repository(folder)
        if repository is None:
            raise InvalidInputError(f"{folder} is in no git repository. Go to one, then try again.")
        before = self.of_repository(repository)
        with self._locked() as session:
            row = session.one("SELECT no FROM projects WHERE id = ?", (project_id,))
            if row is None or before is None:
                raise NotFoundError(
                    f"Project not found: {project_id}. `smara projects` lists them."
                )
            scope = Scope(int(row[0]), project_id)
            if scope != before:
                change = "UPDATE project_places SET project_no = ? WHERE project_no = ?"
                session.run(change, (scope.project_no, before.project_no))
                self._note(session, scope, "adopted", before.project_id)
        return scope

    def notes(self, project_id: str) -> list[str]:
        """Return what was decided about a project, oldest first.

        Args:
            project_id: The project.

        Returns:
            Sentences for people.
        """
        with self._database.read() as session:
            rows = session.all(
                "SELECT n.kind, n.other FROM project_notes n JOIN projects p ON p.no = n.project_no"
                " WHERE p.id = ? ORDER BY n.no",
                (project_id,),
            )
        return [_NOTES[kind].format(other=other) for kind, other in rows]

    def key_of(self, scope: Scope) -> str | None:
        """Return the name of a project's key; ``None`` if it keeps text.

        Args:
            scope: The project.
        """
        with self._database.read() as session:
            row = session.one(
                "SELECT other FROM project_notes WHERE project_no = ? AND kind = 'vectors'",
                (scope.project_no,),
            )
        return None if row is None else str(row[0])

    def has_pointers(self, scope: Scope) -> bool:
        """Return True if a project has messages without their text.

        Args:
            scope: The project.
        """
        with self._database.read() as session:
            row = session.one(
                "SELECT 1 FROM messages WHERE project_no = ? AND substr(parts, 1, 1) = '{' LIMIT 1",
                (scope.project_no,),
            )
        return row is not None

    def settle(self, project: ProjectContext) -> ProjectContext:
        """Return a context under which no words are stored, if so chosen.

        Args:
            project: The context as it was asked for.
        """
        if project.settings.keep == "text" and self.key_of(project.scope) is None:
            return project
        settings = replace(project.settings, keep="vectors", observe_enabled=False)
        return replace(project, settings=replace(settings, compact_every_messages=0))

    def list(self) -> list[Project]:
        """Return every project of this store, oldest first."""
        with self._database.read() as session:
            rows = session.all("SELECT id, name, created_at FROM projects ORDER BY no")
            places = self._places(session, "l.kind")
        seen = {row[0]: [each for each in places if each.project_id == row[0]] for row in rows}
        return [
            Project(
                project_id,
                name,
                tuple(each.path for each in seen[project_id] if each.path),
                tuple(dict.fromkeys(each.remote for each in seen[project_id] if each.remote)),
                created_at=created_at,
            )
            for project_id, name, created_at in rows
        ]

    @contextmanager
    def _locked(self) -> Iterator[Session]:
        """Open a transaction in which no other process makes projects."""
        with self._database.write() as session:
            if self._database.kind == "postgres":
                session.run("SELECT pg_advisory_xact_lock(1397571923, hashtext(current_schema()))")
            yield session

    def _places(self, session: Session, rest: str, *values: object) -> Sequence[_Place]:
        return [_Place(*row) for row in session.all(f"{_PLACES}{rest} ORDER BY l.no", values)]

    def _place(self, session: Session, repository: Repository) -> _Place | None:
        """Return the place at a repository's path on this machine."""
        rest = "'git' AND l.path = ? AND l.host IN (?, '')"
        found = self._places(session, rest, lookup_id(repository.common_dir), self._host)
        return max(found, key=lambda each: (each.host, each.no), default=None)

    def _match(self, places: Sequence[_Place], repository: Repository) -> Scope | None:
        """Return the project that has a clone of this repository.

        They share a root commit and the remote. Without a remote, the other clone must have been
        here, or be gone. A shallow clone has no root commit; it shares the remote and another
        commit.
        """
        roots, remote, here = repository.root_commits, repository.remote, (self._host, "")
        clones = [(each, normalize_remote(each.remote or "")) for each in places]
        for place, theirs in clones:
            if (
                place.first_commit in roots
                and remote == theirs
                and (
                    remote
                    or place.path == lookup_id(repository.common_dir)
                    or (place.host in here and not place.has_commit(place.first_commit))
                )
            ):
                return place.scope
        head = None if roots else repository.head
        for place, theirs in clones:
            if (
                remote
                and remote == theirs
                and not (roots and place.first_commit)
                and (
                    (place.proof and repository.has_commit(place.proof))
                    or (place.host in here and place.has_commit(head))
                )
            ):
                return place.scope
        return None

    def _new(self, session: Session, repository: Repository, former: _Place | None) -> Scope:
        """Make a project, or give the one that all repositories shared to its only user."""
        row = session.one(
            "SELECT p.no, p.id, n.no FROM project_notes n JOIN projects p ON p.no = n.project_no"
            " WHERE n.kind = 'shared' LIMIT 1"
        )
        if row is not None and self._is_all_here(session, row[0], repository):
            session.run("DELETE FROM project_notes WHERE no = ?", (row[2],))
            scope = Scope(int(row[0]), str(row[1]))
            self._note(session, scope, "inherited", scope.project_id)
            return scope
        name = lookup_id(repository.name) or "repository"
        scope = self._insert(session, f"{name}-{self._new_id()[-8:]}", name)
        if former is not None:
            self._note(session, scope, "successor", former.project_id)
        if row is not None:
            self._note(session, scope, "apart", str(row[1]))
        return scope

    @staticmethod
    def _is_all_here(session: Session, project_no: int, repository: Repository) -> bool:
        """Return True if every session of a project that says where it was, was here."""
        rows = session.all("SELECT metadata FROM threads WHERE project_no = ?", (project_no,))
        folders = {str(folder) for row in rows if (folder := json.loads(row[0]).get("cwd"))}
        found = {folder: find_repository(folder) for folder in folders}
        return bool(found) and all(
            each is not None and each.common_dir == repository.common_dir for each in found.values()
        )

    def _put(
        self, session: Session, scope: Scope, repository: Repository, place: _Place | None
    ) -> None:
        """Write how a repository was seen, for the next time."""
        roots = repository.root_commits
        before = place.first_commit if place is not None else None
        first_commit = before if before in roots else roots[-1] if roots else None
        remote = repository.remote or (place.remote if place is not None else None)
        values = (self._host, first_commit, remote, first_commit or repository.head)
        if place is None:
            self._add(session, scope, "git", repository.common_dir, (*values, repository.stamp))
            return
        session.run(
            "UPDATE project_places SET host = ?, first_commit = ?, remote = ?, proof = ?, stamp = ?"
            " WHERE no = ?",
            (*values, repository.stamp, place.no),
        )

    def _add(
        self, session: Session, scope: Scope, kind: str, path: str, facts: tuple[str | None, ...]
    ) -> None:
        session.run(
            "INSERT INTO project_places (project_no, kind, path, created_at, host, first_commit,"
            " remote, proof, stamp) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (scope.project_no, kind, lookup_id(path), self._clock.now_ms(), *facts),
        )

    def _note(self, session: Session, scope: Scope, kind: str, other: str) -> None:
        session.run(
            "INSERT INTO project_notes (project_no, kind, other, at) VALUES (?, ?, ?, ?)",
            (scope.project_no, kind, other, self._clock.now_ms()),
        )

    def _insert(self, session: Session, project_id: str, name: str) -> Scope:
        session.run(
            "INSERT INTO projects (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT (id) DO"
            " NOTHING",
            (project_id, name, self._clock.now_ms()),
        )
        no = number(session, "SELECT no FROM projects WHERE id = ?", (project_id,))
        if not no:
            raise AssertionError("a project that was just inserted is gone")
        return Scope(no, project_id)
