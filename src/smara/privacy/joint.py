"""Merge the projects of a store into another that has some already.

A project is the one of the same name, or of the same repository: the same root commit and remote.
Records are merged by `smara.privacy.merge`. What was erased in either store stays erased: the
tombstones of both are kept, and what the target still holds of it is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice

from smara.core.clock import Clock
from smara.core.git import normalize_remote
from smara.core.ids import Uuid7
from smara.core.scope import Scope, require_id
from smara.database.database import PART, Database, Session, marks
from smara.database.leases import host_name
from smara.database.project_store import Tombstones
from smara.errors import CorruptError
from smara.messages.models import ERASED
from smara.privacy.merge import Course, Merge, counted
from smara.privacy.models import CopyReport
from smara.privacy.pointers import adopt

_NAMED = 5
_STORE_TABLES = {
    "erasures": "id, erased_at, actor, target, counts, outcome",
    "tombstones": "kind, hash, erased_at",
}
_PROJECT_TABLES = {
    "sessions": "id, seen_at, ended_at",
    "intake_events": "stem, at_ms, session_id, taken_at",
}
_PLACE = "kind, host, path, first_commit, remote, proof, stamp, created_at"


class Joint:
    """The projects that two stores share after a merge."""

    def __init__(
        self,
        source: tuple[Database, Session],
        target: Database,
        *,
        scopes: Sequence[Scope],
        into: str | None,
    ) -> None:
        self._source, self._session = source
        self._target = target
        self._here = host_name() if target.kind == "postgres" else ""
        with target.write() as session:
            self._pairs = [
                (scope, self._project(session, scope, into and require_id(into, "project")))
                for scope in scopes
            ]

    def run(self, addresses: tuple[str, str], clock: Clock) -> CopyReport:
        """Merge every project, then see that nothing is left to merge.

        Raises:
            ConflictError: If a message has other words in the target; nothing is changed then.
            CorruptError: If something is left to merge.
        """
        started_at = clock.now_ms()
        merges = [
            Merge((self._source, self._session, mine), (self._target, theirs))
            for mine, theirs in self._pairs
        ]
        for merge in merges:
            merge.require_no_conflict()
        courses = [merge.run() for merge in merges]
        self._copy_rest()
        again = [merge.run() for merge in merges]
        if left := _changes(again):
            raise CorruptError(f"The merge is not finished: {left} rows are left. Call it again.")
        for _, theirs in self._pairs:
            adopt(self._target, theirs, clock.now_ms())
        names = {mine.project_id: theirs.project_id for mine, theirs in self._pairs}
        with self._target.write() as session:
            session.run(
                "INSERT INTO copies (id, source, facts, progress, started_at, finished_at)"
                " VALUES (?, ?, ?, '{}', ?, ?)",
                (Uuid7(clock)(), addresses[0], json.dumps(names), started_at, clock.now_ms()),
            )
        return CopyReport(
            *addresses,
            projects=names,
            is_resumed=False,
            tables={},
            is_merge=True,
            merged=counted(courses),
            conflicts=tuple(each for course in courses for each in course.conflicts),
            erased_in_source=tuple(self._erased()),
        )

    def code_roots(self) -> dict[str, list[str]]:
        """Return the folders that only the source has indexed, by target project."""
        statement = "SELECT root FROM code_trees WHERE project_no = ? ORDER BY no"
        found: dict[str, list[str]] = {}
        with self._target.read() as session:
            for mine, theirs in self._pairs:
                there = {row[0] for row in session.all(statement, (theirs.project_no,))}
                rows = self._session.all(statement, (mine.project_no,))
                found[theirs.project_id] = [row[0] for row in rows if row[0] not in there]
        return {name: roots for name, roots in found.items() if roots}

    def _project(self, session: Session, scope: Scope, into: str | None) -> Scope:
        """Return the project of the target that a project of the source is; made if missing."""
        rows = session.all("SELECT no, id FROM projects WHERE id = ?", (into or scope.project_id,))
        if not rows and into is None:
            rows = self._of_same_repository(session, scope)
        if not rows:
            facts = self._session.one(
                "SELECT name, created_at FROM projects WHERE no = ?", (scope.project_no,)
            )
            rows = session.all(
                "INSERT INTO projects (id, name, created_at) VALUES (?, ?, ?) RETURNING no, id",
                (into or scope.project_id, *(facts or (scope.project_id, 0))),
            )
        return Scope(int(rows[0][0]), str(rows[0][1]))

    def _of_same_repository(self, session: Session, scope: Scope) -> list[tuple[int, str]]:
        statement = (
            "SELECT DISTINCT p.no, p.id, l.first_commit, l.remote FROM project_places l"
            " JOIN projects p ON p.no = l.project_no WHERE l.remote IS NOT NULL"
            " AND l.first_commit IS NOT NULL"
        )
        mine = {
            (commit, normalize_remote(remote))
            for no, _, commit, remote in self._session.all(statement)
            if no == scope.project_no
        }
        return [
            (no, name)
            for no, name, commit, remote in session.all(f"{statement} ORDER BY p.no")
            if (commit, normalize_remote(remote)) in mine
        ][:1]

    def _copy_rest(self) -> None:
        """Copy tombstones, the record of erases, sessions and the folders of projects."""
        for table, columns in _STORE_TABLES.items():
            self._add(table, columns, self._session.each(f"SELECT {columns} FROM {table}"))
        for mine, theirs in self._pairs:
            for table, columns in _PROJECT_TABLES.items():
                rows = self._session.each(
                    f"SELECT {int(theirs.project_no)}, {columns} FROM {table}"
                    f" WHERE project_no = {int(mine.project_no)}"
                )
                self._add(table, f"project_no, {columns}", rows)
            self._add_places(mine, theirs)

    def _add(self, table: str, columns: str, rows: Iterator[tuple[object, ...]]) -> None:
        while batch := list(islice(rows, PART)):
            with self._target.write() as session:
                session.run_many(
                    f"INSERT INTO {table} ({columns}) VALUES ({marks(len(batch[0]))})"
                    " ON CONFLICT DO NOTHING",
                    batch,
                )

    def _add_places(self, mine: Scope, theirs: Scope) -> None:
        statement = f"SELECT {_PLACE} FROM project_places WHERE project_no = ? ORDER BY no"
        with self._target.write() as session:
            there = {row[:5] for row in session.all(statement, (theirs.project_no,))}
            for row in self._session.all(statement, (mine.project_no,)):
                is_here = row[1] in ("", host_name())
                place = (row[0], self._here if is_here else row[1], *row[2:])
                if place[:5] not in there:
                    session.run(
                        f"INSERT INTO project_places (project_no, {_PLACE})"
                        f" VALUES (?, {marks(len(place))})",
                        (theirs.project_no, *place),
                    )

    def _erased(self) -> Iterator[str]:
        """Yield the first things of the target that were erased in the source."""
        if not self._session.one("SELECT 1 FROM tombstones LIMIT 1"):
            return
        for _, theirs in self._pairs:
            stones = Tombstones(self._target, theirs)
            for table in ("threads", "messages", "memories", "tasks"):
                rest = f" AND raw_content <> '{ERASED}'" if table == "messages" else ""
                with self._target.snapshot() as session:
                    ids = (
                        str(row[0])
                        for row in session.each(
                            f"SELECT id FROM {table} WHERE project_no ="
                            f" {int(theirs.project_no)}{rest}"
                        )
                    )
                    found: list[str] = []
                    while len(found) < _NAMED and (batch := list(islice(ids, PART))):
                        with self._target.read() as other:
                            found += stones.erased(other, table, batch)
                yield from (f"{table[:-1]} {name}" for name in found[:_NAMED])


def _changes(courses: Sequence[Course]) -> int:
    return sum(
        counts["added"] + counts["updated"] + counts["filled"]
        for course in courses
        for counts in course.counts.values()
    )
