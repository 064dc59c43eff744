"""Probe a SQLite store with one read-only query.

A hook has a few milliseconds. Nothing is migrated and nothing is written, and any trouble
means no answer. Hooks load this module: it imports apsw only when it connects.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any, Protocol

    import apsw

    from smara.core.scope import Scope
    from smara.database.session import Session
else:
    Protocol = object

_BUSY_MS = 50
_NEWEST = 3_000
"""So many messages say how people talk in a project."""
TASKS = ("task_events",)
MEMORIES = ("memory_events", "memory_tombstones", "memory_trust_events")
"""The tables that get a row with every change of a room: an event, or what is left of a memory."""
_UNCHANGED = (
    "SELECT count(*) FROM memories m WHERE m.project_no = :project AND m.id IN (SELECT value FROM "
    "json_each(:ids))"
    " AND m.deprecated_at IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM memory_events e WHERE e.memory_no = m.no AND e.no > :mark)"
    " AND NOT EXISTS (SELECT 1 FROM memory_trust_events WHERE no > :trust AND +project_no = "
    ":project)"
)


class Probe(Protocol):
    """Something that answers a question about one project with a number."""

    def number(self, sql: str, **values: Any) -> int: ...


class SqliteProbe:
    """A short look into one project of a store; a context manager."""

    def __init__(self, connection: apsw.Connection, project_no: int) -> None:
        self._connection = connection
        self._project_no = project_no
        self._rows: dict[str, list[int]] = {}
        self._wall = ""

    def number(self, sql: str, **values: Any) -> int:
        """The one number that a statement gives; every statement names its ``:project``."""
        return int(self.text(sql, **values) or 0)

    def text(self, sql: str, **values: Any) -> str:
        """The one text that a statement gives, or an empty one."""
        return next((str(row[0]) for row in self.rows(sql, **values)), "")

    def rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, which names its ``:project``."""
        if ":project" not in sql:
            raise AssertionError(f"statement without a wall: {sql}")
        return list(self._connection.execute(sql, {"project": self._project_no, **values}))

    def records(self, term: str, kind: int, limit: int) -> list[int]:
        """Return commits (6) or decisions (7) that hold a term, newest first."""
        if term not in self._rows:
            self._rows[term] = self._records(term, limit)
        if len(self._rows[term]) < limit:
            return [row >> 8 for row in self._rows[term] if row & 255 == kind]
        return [row >> 8 for row in self._records(term, limit, (kind, kind))]

    def _records(self, term: str, limit: int, kinds: tuple[int, int] = (6, 7)) -> list[int]:
        escaped = term.replace('"', '""')
        # Hundreds of numbers come as one text: that takes a third of the time.
        ((found,),) = self._connection.execute(
            "SELECT group_concat(no, ' ') FROM (SELECT rowid >> 8 AS no FROM record_index WHERE"
            " record_index MATCH ? AND (rowid >> 8 & 255) IN (?, ?)"
            f" ORDER BY rowid DESC LIMIT {int(limit)})",
            (f'"{escaped}"{self._scope()}', *kinds),
        )
        return list(dict.fromkeys(map(int, (found or "").split())))

    def _scope(self) -> str:
        """Return what keeps other projects out of a match.

        Where there is no other, it would make each look several times as long.
        """
        if not self._wall:
            other = self.number("SELECT EXISTS (SELECT 1 FROM projects WHERE no <> :project)")
            self._wall = f' AND "^p{self._project_no}"' if other else " "
        return self._wall

    def spread(self, terms: Sequence[str], thread_no: int) -> tuple[list[int], int]:
        """Count the newest messages outside a session, by term and all."""
        newest = self.number("SELECT coalesce(max(no), 0) FROM messages WHERE :project > 0")
        scope = self._scope()
        quoted = ['"' + term.replace('"', '""') + f'"{scope}' for term in terms]
        # The end of the index alone is read, whatever its size; a row begins with its message.
        sql = "SELECT count(*) FROM message_index WHERE message_index MATCH ? AND rowid > ?"
        found = [
            int(row[0])
            for matched in (*quoted, f'"^p{self._project_no}"')
            for row in self._connection.execute(
                sql, (f'({matched}) NOT "^t{thread_no}"', newest - _NEWEST << 16)
            )
        ]
        return found[:-1], found[-1]

    def __enter__(self) -> SqliteProbe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()


class SessionProbe:
    """The same questions over an open session of either database."""

    def __init__(self, session: Session, scope: Scope, indexes: Any) -> None:
        self.project_no = scope.project_no
        self._session = session
        self._scope = scope
        self._indexes = indexes

    def number(self, sql: str, **values: Any) -> int:
        """The one number that a statement gives; every statement names its ``:project``."""
        return next((int(row[0]) for row in self.rows(sql, **values)), 0)

    def rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, which names its ``:project``."""
        import re

        from smara.core.scope import scoped_sql

        names = [name for name in re.findall(r":(\w+)", sql) if name != "project"]
        statement = scoped_sql(self._scope, re.sub(r":(?!project)\w+", "?", sql))
        return self._session.all(statement, tuple(values[name] for name in names))

    def records(self, term: str, kind: int, limit: int) -> list[int]:
        """Return records of a kind that hold a term, newest first."""
        from smara.database.fulltext import KINDS, record_no

        index = self._indexes.records
        rows = index.match(self._session, term, self.project_no, KINDS[kind], limit)
        return list(dict.fromkeys(map(record_no, rows)))

    def spread(self, terms: Sequence[str], thread_no: int) -> tuple[list[int], int]:
        """Count the newest messages outside a session, by term and all."""
        from smara.database.fulltext import Within, no_of

        where = "FROM messages WHERE project_no = :project"
        since = self.number(f"SELECT coalesce(max(no), 0) {where}") - _NEWEST

        def count(term: str, thread_no: int | None = None) -> int:
            within = Within(self.project_no, thread_no)
            rows = self._indexes.fulltext.match(self._session, [term], within, _NEWEST)
            return sum(no_of(row) > since for row in rows)

        total = f"SELECT count(*) {where} AND thread_no <> :thread AND no > :no"
        counts = [count(term) - count(term, thread_no) for term in terms]
        return counts, self.number(total, thread=thread_no, no=since)


def open_probe(path: str, project_no: int, schema: int) -> SqliteProbe | None:
    """Open a probe of a store; ``None`` if foreign, busy or unreadable."""
    import apsw

    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    except (apsw.Error, OSError):
        return None
    try:
        connection.set_busy_timeout(_BUSY_MS)
        if connection.pragma("user_version") == schema:
            return SqliteProbe(connection, project_no)
    except apsw.Error:
        pass
    connection.close()
    return None


def last_rows(look: Probe, tables: Sequence[str]) -> list[int]:
    """Return the number of the project's newest row in each table."""
    # A plus keeps the planner at the end of the table, where the newest stand, away from sorting
    # a whole history.
    statement = "SELECT no FROM {} WHERE +project_no = :project ORDER BY no DESC LIMIT 1"
    return [look.number(statement.format(table)) for table in tables]


def has_changed(look: Probe, tables: Sequence[str], since: Sequence[int]) -> bool:
    """Return True if a table has a newer row of the project."""
    newer = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE no > :{table} AND +project_no = :project)"
        for table in tables
    )
    return bool(look.number(f"SELECT {newer}", **dict(zip(tables, since, strict=True))))


def are_memories_unchanged(look: Probe, ids: Sequence[str], since: Sequence[int]) -> bool:
    """Return True if these memories are in force and untouched."""
    if not ids:
        return True
    from json import dumps

    return look.number(_UNCHANGED, ids=dumps(ids), mark=since[0], trust=since[2]) == len(set(ids))
