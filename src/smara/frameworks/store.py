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
    "SELECT e.no, e.id, e.seq, e.key, e.entry, e.created_at FROM framework_entries e"
    " WHERE e.project_no = :project AND e.stream_no = ?"
)
LAST_CHARACTER = "\U0010ffff"


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
                (each.id, no, each.seq, each.key and to_storable(each.key), to_json(each.body),
                 each.created_at)
                for each in entries
            ],
        )  # fmt: skip

    def entries(
        self, session: Session, no: int, *, after_seq: int = 0, limit: int | None = None
    ) -> list[tuple[int, SdkEntry]]:
        """Return entries with their numbers, oldest first."""
        rest = " AND e.seq > ? ORDER BY e.seq" + ("" if limit is None else " LIMIT ?")
        values = (no, after_seq) if limit is None else (no, after_seq, limit)
        return [(int(row[0]), _entry(row)) for row in self.rows(session, _ENTRIES + rest, *values)]

    def last_entries(self, session: Session, no: int, limit: int) -> list[tuple[int, SdkEntry]]:
        """Return the newest entries with their numbers, oldest first."""
        rows = self.rows(session, f"{_ENTRIES} ORDER BY e.seq DESC LIMIT ?", no, limit)
        return [(int(row[0]), _entry(row)) for row in reversed(rows)]

    def delete_entries(self, session: Session, numbers: Sequence[int]) -> None:
        """Delete entries."""
        self.run(
            session,
            "DELETE FROM framework_entries WHERE project_no = :project AND no IN (:some)",
            some=numbers,
        )

    def mark_read(
        self, session: Session, no: int, up_to_seq: int, messages: Mapping[int, str]
    ) -> None:
        """Write how far a stream was read, with the messages."""
        self.run_many(
            session,
            "UPDATE framework_entries SET message_no = (SELECT m.no FROM messages m"
            " WHERE m.project_no = :project AND m.id = ?) WHERE project_no = :project AND no = ?",
            [(message_id, entry_no) for entry_no, message_id in messages.items()],
        )
        self.run(
            session,
            "UPDATE framework_streams SET read_seq = ? WHERE project_no = :project AND no = ?"
            " AND read_seq < ?",
            up_to_seq,
            no,
            up_to_seq,
        )


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
        id=row[1],
        seq=row[2],
        key=None if row[3] is None else from_storable(row[3]),
        body=json.loads(row[4]),
        created_at=row[5],
    )
