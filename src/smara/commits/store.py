"""Store commits and their files: SQL and row mapping, no decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from smara.commits.models import Commit
from smara.core.escape import from_storable, to_storable
from smara.database.database import Row, Session, marks, parts
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import ProjectStore

_SELECT = (
    "SELECT c.no, c.sha, c.at, c.author, c.subject, c.body, c.reason, c.files, c.functions,"
    " c.renames FROM commits c WHERE c.project_no = :project"
)


class CommitState(NamedTuple):
    """The place up to which the history was read."""

    head: str | None = None
    total: int = 0
    is_all: bool = True


class LineNotes(NamedTuple):
    """The notes on one file, and the newest commit that they know."""

    tip: str
    is_undone: bool
    facts: str
    """The notes as JSON, see :mod:`smara.commits.note`."""


class CommitStore(ProjectStore):
    """The tables ``commits``, ``commit_files`` and ``line_notes`` of one project."""

    def state(self, session: Session) -> CommitState:
        """Return how far the history was read."""
        row = session.one(
            self.sql("SELECT head, total, is_all FROM commit_state WHERE project_no = :project")
        )
        return CommitState(row[0], int(row[1]), bool(row[2])) if row else CommitState()

    def lock(self, session: Session) -> CommitState:
        """Lock the state until the transaction ends, and return it."""
        session.run(
            self.sql(
                "INSERT INTO commit_state (project_no) VALUES (:project)"
                " ON CONFLICT (project_no) DO UPDATE SET total = commit_state.total"
            )
        )
        return self.state(session)

    def save_state(self, session: Session, state: CommitState) -> None:
        """Write how far the history was read."""
        session.run(
            self.sql(
                "UPDATE commit_state SET head = ?, total = ?, is_all = ?"
                " WHERE project_no = :project"
            ),
            (state.head, state.total, int(state.is_all)),
        )

    def add(self, session: Session, commits: Sequence[Commit]) -> int:
        """Insert commits that are not there yet; return how many were new."""
        old = self.numbers(session, [each.sha for each in commits])
        fresh = [each for each in commits if each.sha not in old]
        if not fresh:
            return 0
        session.run_many(
            self.sql(
                "INSERT INTO commits (project_no, sha, at, author, subject, body, reason, files,"
                " functions, renames, is_named)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
            ),
            [
                (
                    each.sha,
                    each.at,
                    to_storable(each.author),
                    to_storable(each.subject),
                    to_storable(each.body),
                    to_storable(each.reason),
                    _names(each.files),
                    _names(each.functions),
                    json.dumps(each.renames),
                )
                for each in fresh
            ],
        )
        numbers = self.numbers(session, [each.sha for each in fresh])
        session.run_many(
            self.sql(
                "INSERT INTO commit_files (project_no, path, commit_no) VALUES (:project, ?, ?)"
                " ON CONFLICT DO NOTHING"
            ),
            [
                (to_storable(path), numbers[each.sha])
                for each in fresh
                for path in dict.fromkeys(each.files)
            ],
        )
        records = [(numbers[each.sha], commit_terms(each)) for each in fresh]
        self.database.records.put(session, "commit", self.scope.project_no, records, is_new=True)
        return len(fresh)

    def numbers(self, session: Session, shas: Sequence[str]) -> dict[str, int]:
        """Return the numbers of commits by name, of those that are there."""
        return {
            row[0]: int(row[1])
            for part in parts(list(shas))
            for row in session.all(
                self.sql(
                    "SELECT sha, no FROM commits WHERE project_no = :project"
                    f" AND sha IN ({marks(len(part))})"
                ),
                part,
            )
        }

    def select(self, session: Session, rest: str, values: Sequence[object] = ()) -> list[Commit]:
        """Return commits by the rest of a statement."""
        return [_commit(row) for row in session.all(self.sql(f"{_SELECT}{rest}"), values)]

    def by_numbers(self, session: Session, numbers: Sequence[int]) -> dict[int, Commit]:
        """Return commits by number."""
        found: dict[int, Commit] = {}
        for part in parts(list(numbers)):
            # The plus keeps SQLite from reading a whole project by an index that begins with it.
            statement = _SELECT.replace("c.project_no", "+c.project_no")
            rows = session.all(self.sql(f"{statement} AND c.no IN ({marks(len(part))})"), part)
            found.update((int(row[0]), _commit(row)) for row in rows)
        return {no: found[no] for no in numbers if no in found}

    def of_files(self, session: Session, paths: Sequence[str], limit: int) -> list[Commit]:
        """Return the newest commits that changed any of some files."""
        rows = session.all(
            self.sql(
                "SELECT DISTINCT f.commit_no FROM commit_files f"
                f" WHERE f.project_no = :project AND f.path IN ({marks(len(paths))})"
            ),
            [to_storable(path) for path in paths],
        )
        found = self.by_numbers(session, [int(row[0]) for row in rows])
        # Commits of one second, as a rebase makes them, were stored oldest first.
        newest = sorted(found.items(), key=lambda pair: (pair[1].at, pair[0]), reverse=True)
        return [each for _, each in newest[:limit]]

    def reasoned_paths(self, session: Session) -> list[str]:
        """Return the files that commits with reasons changed, newest first."""
        rows = session.all(
            self.sql(
                "SELECT f.path FROM commit_files f JOIN commits c ON c.no = f.commit_no"
                " AND +c.project_no = f.project_no"
                " WHERE f.project_no = :project AND c.reason <> '' GROUP BY f.path"
                " ORDER BY max(c.at) DESC, f.path"
            )
        )
        return [from_storable(row[0]) for row in rows]

    def noted(self, session: Session, place: str) -> dict[str, bool]:
        """Return files with notes, and whether something was undone."""
        rows = self.rows(
            session,
            "SELECT path, is_undone FROM line_notes WHERE project_no = :project AND place = ?"
            " AND path <> '' AND facts <> '[]'",
            place,
        )
        return {from_storable(path): bool(is_undone) for path, is_undone in rows}

    def notes(
        self, session: Session, paths: Sequence[str], place: str | None = None
    ) -> dict[tuple[str, str], LineNotes]:
        """Return notes by file and newest commit, of one place or all."""
        where = "" if place is None else " AND place = ?"
        rows = self.rows(
            session,
            "SELECT path, tip, is_undone, facts FROM line_notes WHERE project_no = :project"
            f"{where} AND path IN (:some)",
            *(() if place is None else (place,)),
            some=[to_storable(path) for path in paths],
        )
        return {
            (from_storable(row[0]), row[1]): LineNotes(row[1], bool(row[2]), row[3]) for row in rows
        }

    def put_notes(self, session: Session, place: str, notes: Mapping[str, LineNotes]) -> None:
        """Write notes on files of a place."""
        session.run_many(
            self.sql(
                "INSERT INTO line_notes (project_no, place, path, tip, is_undone, facts)"
                " VALUES (:project, ?, ?, ?, ?, ?) ON CONFLICT (project_no, place, path)"
                " DO UPDATE SET tip = excluded.tip, is_undone = excluded.is_undone,"
                " facts = excluded.facts"
            ),
            [
                (place, to_storable(path), each.tip, int(each.is_undone), to_storable(each.facts))
                for path, each in notes.items()
            ],
        )

    def places(self, session: Session) -> list[str]:
        """Return the places that have notes."""
        rows = self.rows(
            session, "SELECT place FROM line_notes WHERE project_no = :project AND path = ''"
        )
        return [row[0] for row in rows]

    def remove_notes(self, session: Session, place: str, paths: Sequence[str] | None) -> None:
        """Remove the notes on all files of a place, or on some."""
        statement = "DELETE FROM line_notes WHERE project_no = :project AND place = ?"
        if paths is None:
            self.run(session, statement, place)
        else:
            keys = [to_storable(path) for path in paths]
            self.run(session, f"{statement} AND path IN (:some)", place, some=keys)

    def unnamed(self, session: Session, limit: int) -> list[str]:
        """Return the newest commits whose functions were not looked for yet."""
        rows = session.all(
            self.sql(
                "SELECT sha FROM commits WHERE project_no = :project AND is_named = 0"
                " ORDER BY at DESC, no DESC LIMIT ?"
            ),
            (limit,),
        )
        return [row[0] for row in rows]

    def name_functions(self, session: Session, named: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Write the functions of commits, and index them."""
        session.run_many(
            self.sql(
                "UPDATE commits SET functions = ?, is_named = 1"
                " WHERE project_no = :project AND sha = ?"
            ),
            [(_names(functions), sha) for sha, functions in named],
        )
        numbers = self.numbers(session, [sha for sha, functions in named if functions])
        records = [
            (no, commit_terms(each))
            for no, each in self.by_numbers(session, list(numbers.values())).items()
        ]
        self.database.records.put(session, "commit", self.scope.project_no, records)

    def shas(self, session: Session) -> list[str]:
        """Return the names of all commits."""
        rows = session.all(self.sql("SELECT sha FROM commits WHERE project_no = :project"))
        return [row[0] for row in rows]

    def remove(self, session: Session, shas: Sequence[str]) -> int:
        """Remove commits with all that is kept of them; return how many."""
        numbers = list(self.numbers(session, shas).values())
        self.database.records.remove(session, "commit", numbers)
        for part in parts(numbers):
            for table, column in (("commit_files", "commit_no"), ("commits", "no")):
                session.run(
                    self.sql(
                        f"DELETE FROM {table} WHERE project_no = :project"
                        f" AND {column} IN ({marks(len(part))})"
                    ),
                    part,
                )
        return len(numbers)


def commit_terms(commit: Commit) -> RecordTerms:
    """Return the terms of a commit, its subject and functions as head."""
    head = " ".join((commit.subject, *commit.functions[:40]))
    return terms_of(head, "\n".join((commit.body, " ".join(commit.files[:40]))))


def indexed_commits(session: Session, after: int = 0) -> Iterator[tuple[int, int, Commit]]:
    """Yield every project's commits above a number, for the index."""
    statement = _SELECT.replace("c.no,", "c.no, c.project_no,", 1).replace(
        " WHERE c.project_no = :project", " WHERE c.no > ? ORDER BY c.no"
    )
    for no, project_no, *rest in session.all(statement, (after,)):
        yield int(no), int(project_no), _commit((no, *rest))


def _names(names: Sequence[str]) -> str:
    return to_storable(json.dumps(list(names), ensure_ascii=False))


def _commit(row: Row) -> Commit:
    return Commit(
        row[1],
        int(row[2]),
        from_storable(row[3]),
        from_storable(row[4]),
        from_storable(row[5]),
        reason=from_storable(row[6]),
        files=tuple(json.loads(from_storable(row[7]))),
        functions=tuple(json.loads(from_storable(row[8]))),
        renames=tuple((old, new) for old, new in json.loads(row[9])),
    )
