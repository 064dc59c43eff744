"""Store threads and messages: SQL and row mapping, no decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from smara.core.escape import from_storable, to_storable
from smara.core.scope import is_id
from smara.database.database import Row, Session, marks, parts
from smara.database.fulltext import Matching
from smara.database.project_store import ProjectStore
from smara.messages.models import Compaction, Message, Thread
from smara.messages.parts import pointer_in, unpack

THREAD_COLUMNS = (
    "id, resource_id, kind, parent_id, title, metadata, created_at, updated_at, last_seq, tokens"
)
_MESSAGE_COLUMNS = (
    "m.no, m.id, t.id, t.resource_id, m.seq, m.role, m.raw_content, m.parts, m.token_count, "
    "m.token_method,"
    " m.created_at, m.client_id, m.task_id, m.sealed_at, m.metadata,"
    " c.id, c.level, c.start_seq, c.end_seq, c.message_count, c.summary, c.code, c.method, "
    "c.created_at"
)
_JOINS = (
    "JOIN threads t ON t.no = m.thread_no"
    # The newest compaction in force that begins at or before the message; it counts if it reaches
    # that far.
    " LEFT JOIN compactions c ON c.no = (SELECT r.no FROM compactions r WHERE r.thread_no = "
    "m.thread_no"
    " AND r.start_seq <= m.seq AND r.parent_no IS NULL AND r.undone_at IS NULL ORDER BY "
    "r.start_seq DESC LIMIT 1)"
    " AND c.end_seq >= m.seq"
)
_MESSAGES = f"SELECT {_MESSAGE_COLUMNS} FROM messages m {_JOINS} WHERE m.project_no = :project"


class MessageStore(ProjectStore):
    """The tables ``threads`` and ``messages`` of one project."""

    def search_warnings(self) -> list[str]:
        """Return what a search by words cannot find here."""
        return []

    # threads

    def thread_no(self, session: Session, thread_id: str) -> int | None:
        row = session.one(
            self.sql("SELECT no FROM threads WHERE project_no = :project AND id = ?"), (thread_id,)
        )
        return int(row[0]) if row else None

    def lock_thread(self, session: Session, thread_id: str, said_at: int) -> Row | None:
        """The thread's number, resource, last sequence number and metadata, locked for this
        transaction.

        A thread was last used when the newest thing in it was said, which for an imported one is
        long ago.
        """
        return session.one(
            self.sql(
                "UPDATE threads SET updated_at = CASE WHEN updated_at < ? THEN ? ELSE updated_at "
                "END"
                " WHERE project_no = :project AND id = ?"
                " RETURNING no, resource_id, last_seq, metadata"
            ),
            (said_at, said_at, thread_id),
        )

    def hold_thread(self, session: Session, thread_id: str) -> None:
        """Lock the thread until the transaction ends.

        SQLite has done so already.
        """
        session.run(
            self.sql(
                "UPDATE threads SET last_seq = last_seq WHERE project_no = :project AND id = ?"
            ),
            (thread_id,),
        )

    def insert_thread(self, session: Session, values: Sequence[Any]) -> bool:
        """Insert (id, resource, kind, parent, title, metadata, created, updated); whether it was
        new.
        """
        return bool(
            session.run(
                self.sql(
                    "INSERT INTO threads"
                    " (project_no, id, resource_id, kind, parent_id, title, metadata, created_at, "
                    "updated_at)"
                    " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project_no, id) DO "
                    "NOTHING"
                ),
                values,
            )
        )

    def grow_thread(self, session: Session, thread_no: int, added: Sequence[int]) -> None:
        """Add (messages, tokens, index rows, index terms) to a thread's counters."""
        session.run(
            self.sql(
                "UPDATE threads SET last_seq = last_seq + ?, tokens = tokens + ?, index_rows = "
                "index_rows + ?,"
                " index_terms = index_terms + ? WHERE project_no = :project AND no = ?"
            ),
            (*added, thread_no),
        )

    def update_thread(
        self, session: Session, thread_id: str, title: str | None, metadata: str, now_ms: int
    ) -> None:
        session.run(
            self.sql(
                "UPDATE threads SET title = ?, metadata = ?, updated_at = ? WHERE project_no = "
                ":project AND id = ?"
            ),
            (title, metadata, now_ms, thread_id),
        )

    def put_outlook(self, session: Session, thread_id: str, **values: Any) -> None:
        """Put what observing notes on a thread; None takes a value out.

        ``rawAfter`` is the message behind which all are shown raw, observed or not.
        """
        self.hold_thread(session, thread_id)
        thread = self.find_thread(session, thread_id)
        before = dict(thread.metadata.get("observations") or {}) if thread else {}
        outlook = {name: each for name, each in {**before, **values}.items() if each is not None}
        if thread is None or outlook == before:
            return
        metadata = {**thread.metadata, "observations": outlook}
        title = thread.title and to_storable(thread.title)
        self.update_thread(session, thread_id, title, json.dumps(metadata), thread.updated_at)

    def find_thread(self, session: Session, thread_id: str) -> Thread | None:
        row = session.one(
            self.sql(
                f"SELECT {THREAD_COLUMNS} FROM threads WHERE project_no = :project AND id = ?"
            ),
            (thread_id,),
        )
        return thread_of(row) if row else None

    def threads_by_numbers(self, session: Session, numbers: Sequence[int]) -> dict[int, Thread]:
        statement = f"SELECT {THREAD_COLUMNS}, no FROM threads WHERE project_no = :project"
        rows = self.rows(session, f"{statement} AND no IN (:some)", some=numbers)
        return {row[10]: thread_of(row) for row in rows}

    # messages

    def next_numbers(self, session: Session, count: int) -> Sequence[int]:
        """Numbers for new messages, reserved for this transaction."""
        if self.database.kind == "sqlite":
            row = session.one("SELECT max(no) FROM messages")
            first = ((row[0] if row else None) or 0) + 1
            return range(first, first + count)
        rows = session.all(
            "SELECT nextval(pg_get_serial_sequence('messages', 'no')) FROM generate_series(1, ?)",
            (count,),
        )
        return [int(row[0]) for row in rows]

    def select(
        self, session: Session, rest: str, values: Sequence[Any]
    ) -> list[tuple[int, Message]]:
        """Return messages with their numbers, by the rest of a statement."""
        return [
            (row[0], _message(row)) for row in session.all(self.sql(f"{_MESSAGES}{rest}"), values)
        ]

    def find_message(self, session: Session, message_id: str) -> tuple[int, Message] | None:
        """Return a message with its number, or ``None``."""
        found = self.select(session, " AND m.id = ?", (message_id,)) if is_id(message_id) else []
        return found[0] if found else None

    def by_numbers(self, session: Session, numbers: Sequence[int]) -> dict[int, Message]:
        found: dict[int, Message] = {}
        for part in parts(numbers):
            found.update(self.select(session, f" AND m.no IN ({marks(len(part))})", part))
        return found

    def found_by(
        self, session: Session, matching: Matching, limit: int
    ) -> list[tuple[Row, Message]]:
        """Return messages by an index term, newest first.

        Each with (row, prose, code, thread).
        """
        sql = (
            f"SELECT {_MESSAGE_COLUMNS}, {matching.row}, f.prose, f.code, m.thread_no FROM "
            f"{matching.source} {_JOINS}"
            f" WHERE {matching.where} AND m.project_no = :project ORDER BY {matching.order} LIMIT "
            f"{int(limit)}"
        )
        return [(row[24:], _message(row)) for row in session.all(self.sql(sql), matching.values)]

    def between(
        self,
        session: Session,
        thread_no: int,
        after: int,
        before: int,
        limit: int,
        newest_first: bool = False,
    ) -> list[Message]:
        """Return messages of a thread with ``after < seq < before``."""
        order = "DESC" if newest_first else "ASC"
        rest = f" AND m.thread_no = ? AND m.seq > ? AND m.seq < ? ORDER BY m.seq {order} LIMIT ?"
        rows = self.select(session, rest, (thread_no, after, before, limit))
        return [message for _, message in rows]

    def last_of_role(
        self, session: Session, thread_no: int, role: str, after: int, limit: int
    ) -> list[Message]:
        """Return the newest messages of a role, back to a number."""
        rest = " AND m.thread_no = ? AND m.seq > ? AND m.role = ? ORDER BY m.seq DESC LIMIT ?"
        rows = self.select(session, rest, (thread_no, after, role, limit))
        return [message for _, message in rows]

    def seal(self, session: Session, thread_no: int, up_to_seq: int, now_ms: int) -> int:
        return session.run(
            self.sql(
                "UPDATE messages SET sealed_at = ?"
                " WHERE project_no = :project AND thread_no = ? AND seq <= ? AND sealed_at IS NULL"
            ),
            (now_ms, thread_no, up_to_seq),
        )

    def is_alone(self, session: Session) -> bool:
        """Return True if the only project need not be named.

        On PostgreSQL a look for words is quicker where it is named: it reads one partition.
        """
        if self.database.kind == "postgres":
            return False
        return session.one(self.sql("SELECT 1 FROM projects WHERE no <> :project LIMIT 1")) is None

    def index_size(self, session: Session) -> tuple[int, int, int]:
        """Count this project's index rows, terms, and threads."""
        row = session.one(
            self.sql(
                "SELECT coalesce(sum(index_rows), 0), coalesce(sum(index_terms), 0), count(*)"
                " FROM threads WHERE project_no = :project"
            )
        )
        return (int(row[0]), int(row[1]), int(row[2])) if row else (0, 0, 0)


def thread_of(row: Row) -> Thread:
    """Return the thread of a row of ``THREAD_COLUMNS``."""
    values = list(row[:10])
    values[4] = None if row[4] is None else from_storable(row[4])
    values[5] = json.loads(row[5])
    return Thread(*values)


def compaction_of(row: Row) -> Compaction:
    """Return the compaction of a row of its columns."""
    values = list(row)
    values[5:7] = map(from_storable, row[5:7])
    return Compaction(*values)


def _message(row: Row) -> Message:
    pointer = pointer_in(row[7])
    raw = from_storable(row[6]) if pointer is None else ""
    return Message(
        id=row[1],
        thread_id=row[2],
        resource_id=row[3],
        seq=row[4],
        role=row[5],
        raw_content=raw,
        parts=unpack(raw, row[7]) if pointer is None else (),
        token_count=row[8],
        token_method=row[9],
        created_at=row[10],
        client_id=row[11],
        task_id=row[12],
        sealed_at=row[13],
        metadata=json.loads(row[14]) if row[14] else {},
        compaction=compaction_of(row[15:24]) if row[15] is not None else None,
        pointer=pointer,
    )
