"""Store the places and lines of decisions: SQL and row mapping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from smara.core.escape import from_storable, to_storable
from smara.database.database import Session
from smara.database.fulltext import RecordTerms
from smara.database.probe import SessionProbe
from smara.database.project_store import ProjectStore, Tombstones


class DecisionRow(NamedTuple):
    """A decision's place, its terms and its line."""

    memory_no: int
    thread_no: int
    origin: str
    version: int
    about: str
    line: str


class WaitingThread(NamedTuple):
    """A session with messages that were not read for decisions yet."""

    no: int
    id: str
    last_seq: int
    resource_id: str
    """Whose session it is."""
    read_seq: int
    """How far it was read before."""


class DecisionStore(ProjectStore):
    """The tables ``decisions`` and ``decision_cursors`` of one project."""

    def waiting(self, session: Session, before_ms: int, limit: int) -> list[WaitingThread]:
        """Return silent sessions with new messages, oldest first."""
        rest = " AND t.updated_at <= ? ORDER BY t.updated_at, t.no LIMIT ?"
        return self._waiting(session, rest, before_ms, limit)

    def waiting_thread(self, session: Session, thread_id: str) -> list[WaitingThread]:
        """Return a session if it has new messages."""
        return self._waiting(session, " AND t.id = ?", thread_id)

    def _waiting(self, session: Session, rest: str, *values: object) -> list[WaitingThread]:
        rows = self.rows(
            session,
            "SELECT t.no, t.id, t.last_seq, t.resource_id, coalesce(c.seq, 0) FROM threads t"
            " LEFT JOIN decision_cursors c ON c.thread_no = t.no"
            " WHERE t.project_no = :project AND t.kind <> 'subagent'"
            f" AND t.last_seq > coalesce(c.seq, 0){rest}",
            *values,
        )
        return [
            WaitingThread(int(row[0]), row[1], int(row[2]), row[3], read_seq=int(row[4]))
            for row in rows
        ]

    def advance(self, session: Session, thread_no: int, seq: int) -> None:
        """Note how far a session was read."""
        session.run(
            self.sql(
                "INSERT INTO decision_cursors (thread_no, project_no, seq) VALUES (?, :project, ?)"
                " ON CONFLICT (thread_no) DO UPDATE SET seq = excluded.seq"
            ),
            (thread_no, seq),
        )

    def erased(self, session: Session, origins: Sequence[str]) -> dict[str, int]:
        """Return the messages whose decision was erased by itself."""
        return Tombstones(self.database, self.scope).erased(session, "decision", origins)

    def put(self, session: Session, row: DecisionRow) -> None:
        """Write a decision's place, terms and line, and index it."""
        session.run(
            self.sql(
                "INSERT INTO decisions (memory_no, project_no, thread_no, origin, version, about,"
                " line) VALUES (?, :project, ?, ?, ?, ?, ?)"
                " ON CONFLICT (memory_no) DO UPDATE SET version = excluded.version,"
                " about = excluded.about, line = excluded.line"
            ),
            (
                row.memory_no,
                row.thread_no,
                row.origin,
                row.version,
                to_storable(row.about),
                to_storable(row.line),
            ),
        )
        terms = RecordTerms("", (to_storable(row.about),))
        self.database.records.put(
            session, "decision", self.scope.project_no, [(row.memory_no, terms)]
        )

    def remove(self, session: Session, numbers: Sequence[int]) -> None:
        """Remove decisions from the index; their places stay."""
        self.database.records.remove(session, "decision", numbers)

    def of_thread(self, session: Session, thread_no: int) -> dict[str, int]:
        """Return the memories of a session's decisions in force, by origin."""
        rows = session.all(
            self.sql(
                "SELECT d.origin, d.memory_no FROM decisions d"
                " WHERE d.project_no = :project AND d.thread_no = ? ORDER BY d.memory_no"
            ),
            (thread_no,),
        )
        return {row[0]: int(row[1]) for row in rows}

    def by_numbers(self, session: Session, numbers: Sequence[int]) -> dict[int, DecisionRow]:
        """Return decisions by the numbers of their memories."""
        rows = (
            self.rows(
                session,
                "SELECT memory_no, thread_no, origin, version, about, line FROM decisions"
                " WHERE +project_no = :project AND memory_no IN (:some)",
                some=list(numbers),
            )
            if numbers
            else []
        )
        return {
            int(row[0]): DecisionRow(
                int(row[0]),
                int(row[1]),
                row[2],
                int(row[3]),
                from_storable(row[4]),
                from_storable(row[5]),
            )
            for row in rows
        }

    def resources(self, session: Session, numbers: Sequence[int]) -> dict[int, str]:
        """Return whose sessions decisions come from, by memory."""
        rows = self.rows(
            session,
            "SELECT d.memory_no, t.resource_id FROM decisions d JOIN threads t"
            " ON t.no = d.thread_no WHERE +d.project_no = :project AND d.memory_no IN (:some)",
            some=list(numbers),
        )
        return {int(row[0]): row[1] for row in rows}

    def newest(self, session: Session, limit: int) -> list[tuple[str, str]]:
        """Return the keys of the newest decisions in force, with their terms."""
        rows = self.rows(
            session,
            "SELECT m.id, d.about FROM decisions d JOIN memories m ON m.no = d.memory_no"
            " AND +m.project_no = d.project_no WHERE d.project_no = :project"
            " AND m.deprecated_at IS NULL ORDER BY d.memory_no DESC LIMIT ?",
            limit,
        )
        return [(f"memory:{row[0]}", from_storable(row[1])) for row in rows]

    def probe(self, session: Session) -> SessionProbe:
        """Return the questions of a message about an open session."""
        return SessionProbe(session, self.scope, self.database)


def indexed_decisions(session: Session, newest: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield every project's decisions above a number, for the index."""
    for no, project_no, about in session.all(
        "SELECT d.memory_no, d.project_no, d.about FROM decisions d JOIN memories m"
        " ON m.no = d.memory_no AND +m.project_no = d.project_no WHERE m.deprecated_at IS NULL"
        " AND d.memory_no > ? ORDER BY d.memory_no",
        (newest,),
    ):
        yield int(no), int(project_no), about


def decision_terms(about: str) -> RecordTerms:
    """Return the terms of a decision's exchange as the index holds them."""
    return RecordTerms("", (about,))
