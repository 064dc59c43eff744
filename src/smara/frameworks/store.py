"""Store streams and entries of frameworks: SQL and row mapping."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from smara.core.escape import from_storable, to_storable
from smara.database.database import Row, Session
from smara.database.project_store import ProjectStore
from smara.frameworks.models import SdkEntry, SdkStream

_STREAMS = (
    "SELECT s.no, s.id, s.framework, s.key, t.id, s.data, s.last_seq, s.revision, s.created_at,"
    " s.updated_at, s.read_seq FROM framework_streams s JOIN threads t ON t.no = s.thread_no"
    " WHERE s.project_no = :project AND s.framework = ?"
)
_ENTRIES = (
    "SELECT e.id, e.seq, e.key, e.entry, e.created_at FROM framework_entries e"
    " WHERE e.project_no = :project AND e.stream_no = ?"
)
LAST_CHARACTER = "\U0010ffff"
_ALL = 2**62


def to_json(value: Any) -> str:
    """Return a value as stored JSON; ASCII, so nothing needs escaping."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


class FrameworkStore(ProjectStore):
    """The tables ``framework_streams`` and ``framework_entries`` of one project."""

    def find(self, session: Session, framework: str, key: str) -> tuple[int, SdkStream, int] | None:
        """Return a stream with its number and how far it was read."""
        rows = self.rows(session, f"{_STREAMS} AND s.key = ?", framework, to_storable(key))
        return _numbered(rows[0]) if rows else None

    def hold(self, session: Session, framework: str, key: str) -> tuple[int, SdkStream, int] | None:
        """Lock and return a stream until the transaction ends."""
        is_there = session.run(
            self.sql(
                "UPDATE framework_streams SET revision = revision WHERE project_no = :project"
                " AND framework = ? AND key = ?"
            ),
            (framework, to_storable(key)),
        )
        return self.find(session, framework, key) if is_there else None

    def beginning(self, session: Session, framework: str, prefix: str) -> list[SdkStream]:
        """Return the streams whose keys begin so, by key."""
        begin = to_storable(prefix)
        rows = self.rows(
            session,
            f"{_STREAMS} AND s.key >= ? AND s.key < ? ORDER BY s.key",
            framework,
            begin,
            begin + LAST_CHARACTER,
        )
        return [_numbered(row)[1] for row in rows]

    def insert(self, session: Session, stream: SdkStream) -> None:
        """Insert a stream over its thread, unless it exists."""
        self.run(
            session,
            "INSERT INTO framework_streams (project_no, id, framework, key, thread_no, data,"
            " created_at, updated_at) SELECT :project, ?, ?, ?, t.no, ?, ?, ? FROM threads t"
            " WHERE t.project_no = :project AND t.id = ? ON CONFLICT DO NOTHING",
            stream.id,
            stream.framework,
            to_storable(stream.key),
            to_json(dict(stream.data)),
            stream.created_at,
            stream.updated_at,
            stream.thread_id,
        )

    def save(
        self, session: Session, no: int, last_seq: int, data: Mapping[str, Any], now_ms: int
    ) -> None:
        """Write a stream's end and data as its next revision."""
        self.run(
            session,
            "UPDATE framework_streams SET last_seq = ?, data = ?, revision = revision + 1,"
            " updated_at = ? WHERE project_no = :project AND no = ?",
            last_seq,
            to_json(dict(data)),
            now_ms,
            no,
        )

    def delete(self, session: Session, no: int) -> None:
        """Delete a stream with its entries."""
        self.run(
            session, "DELETE FROM framework_streams WHERE project_no = :project AND no = ?", no
        )

    def keys(self, session: Session, no: int, keys: Sequence[str]) -> set[str]:
        """Return which keys of entries a stream has."""
        rows = self.rows(
            session,
            "SELECT key FROM framework_entries WHERE project_no = :project AND stream_no = ?"
            " AND key IN (:some)",
            no,
            some=[to_storable(key) for key in keys],
        )
        return {from_storable(row[0]) for row in rows}

    def append(self, session: Session, no: int, entries: Iterable[SdkEntry]) -> None:
        """Append entries whose bodies are ready to be stored."""
        self.run_many(
            session,
            "INSERT INTO framework_entries (project_no, id, stream_no, seq, key, entry, created_at)"
            " VALUES (:project, ?, ?, ?, ?, ?, ?)",
            [
                (
                    each.id,
                    no,
                    each.seq,
                    each.key and to_storable(each.key),
                    to_json(each.body),
                    each.created_at,
                )
                for each in entries
            ],
        )

    def entries(
        self, session: Session, no: int, *, after_seq: int = 0, limit: int = _ALL
    ) -> list[SdkEntry]:
        """Return the first entries after a number, oldest first."""
        rows = self.rows(
            session, f"{_ENTRIES} AND e.seq > ? ORDER BY e.seq LIMIT ?", no, after_seq, limit
        )
        return [_entry(row) for row in rows]

    def last_entries(
        self, session: Session, no: int, limit: int, up_to_seq: int = _ALL
    ) -> list[SdkEntry]:
        """Return the newest entries up to a number, oldest first."""
        rows = self.rows(
            session, f"{_ENTRIES} AND e.seq <= ? ORDER BY e.seq DESC LIMIT ?", no, up_to_seq, limit
        )
        return [_entry(row) for row in reversed(rows)]

    def delete_entry(self, session: Session, no: int, seq: int) -> None:
        """Delete an entry."""
        self.run(
            session,
            "DELETE FROM framework_entries WHERE project_no = :project AND stream_no = ?"
            " AND seq = ?",
            no,
            seq,
        )

    def mark_read(
        self, session: Session, no: int, up_to_seq: int, places: Mapping[int, tuple[str, str]]
    ) -> None:
        """Store how far a stream was read, with the messages."""
        self.run_many(
            session,
            "UPDATE framework_entries SET message_no = (SELECT m.no FROM messages m"
            " JOIN threads t ON t.no = m.thread_no AND +m.project_no = t.project_no"
            " WHERE t.project_no = :project AND t.id = ? AND m.client_id = ?)"
            " WHERE project_no = :project AND stream_no = ? AND seq = ?",
            [(*place, no, seq) for seq, place in places.items()],
        )
        self.run(
            session,
            "UPDATE framework_streams SET read_seq = ? WHERE project_no = :project AND no = ?"
            " AND read_seq < ?",
            up_to_seq,
            no,
            up_to_seq,
        )

    def last_repeat(self, session: Session, no: int, stem: str) -> int:
        """Return the number of the last entry with this body, or 0."""
        rows = self.rows(
            session,
            "SELECT key FROM framework_entries WHERE project_no = :project AND stream_no = ?"
            " AND key >= ? AND key < ?",
            no,
            f"{stem}-",
            f"{stem}-{LAST_CHARACTER}",
        )
        return max((int(row[0].removeprefix(f"{stem}-")) for row in rows), default=0)

    def holders(self, session: Session, threads: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return thread, framework and key of the streams over some threads."""
        rows = self.rows(
            session,
            "SELECT t.id, s.framework, s.key FROM framework_streams s JOIN threads t ON"
            " t.no = s.thread_no WHERE s.project_no = :project AND t.id IN (:some)",
            some=threads,
        )
        return [(row[0], row[1], from_storable(row[2])) for row in rows]


def _numbered(row: Row) -> tuple[int, SdkStream, int]:
    return (
        int(row[0]),
        SdkStream(
            id=row[1],
            framework=row[2],
            key=from_storable(row[3]),
            thread_id=row[4],
            data=json.loads(row[5]),
            last_seq=row[6],
            revision=row[7],
            created_at=row[8],
            updated_at=row[9],
        ),
        int(row[10]),
    )


def _entry(row: Row) -> SdkEntry:
    return SdkEntry(
        id=row[0],
        seq=row[1],
        key=None if row[2] is None else from_storable(row[2]),
        body=json.loads(row[3]),
        created_at=row[4],
    )
