"""Probe a SQLite store with one read-only query.

A hook has a few milliseconds. Nothing is migrated and nothing is written, and any trouble
means no answer. Hooks load this module: it imports apsw only when it connects.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Protocol

    import apsw

    from smara.core.scope import Scope
    from smara.database.database import Session
else:
    Protocol = object

_BUSY_MS = 50


class Probe(Protocol):
    """Something that answers a question about one project with a number."""

    def number(self, sql: str, **values: Any) -> int: ...


class SqliteProbe:
    """A short look into one project of a store; a context manager."""

    def __init__(self, connection: apsw.Connection, project_no: int) -> None:
        self._connection = connection
        self._project_no = project_no

    def number(self, sql: str, **values: Any) -> int:
        """The one number that a statement gives; every statement names its ``:project``."""
        if ":project" not in sql:
            raise AssertionError(f"statement without a wall: {sql}")
        row = self._connection.execute(sql, {"project": self._project_no, **values}).fetchone()
        return int(row[0]) if row else 0

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

    def __init__(self, session: Session, scope: Scope) -> None:
        self.project_no = scope.project_no
        self._session = session
        self._scope = scope

    def number(self, sql: str, **values: Any) -> int:
        """The one number that a statement gives; every statement names its ``:project``."""
        import re

        from smara.core.scope import scoped_sql

        names = [name for name in re.findall(r":(\w+)", sql) if name != "project"]
        row = self._session.one(
            scoped_sql(self._scope, re.sub(r":(?!project)\w+", "?", sql)),
            tuple(values[name] for name in names),
        )
        return int(row[0]) if row else 0


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
