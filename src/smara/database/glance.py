"""A glance into a SQLite store: one question, read-only, without opening the store as a memory.

A hook has a few milliseconds. It may ask here whether what it was given to say still
holds; nothing is migrated, nothing is written, and any trouble is no answer.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    import apsw

_BUSY_MS = 50


class Glance:
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

    def __enter__(self) -> Glance:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()


def glance(path: str, project_no: int, schema: int) -> Glance | None:
    """A look into a store of this schema; ``None`` when it has another, is busy, or cannot be read."""
    import apsw

    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    except (apsw.Error, OSError):
        return None
    try:
        connection.set_busy_timeout(_BUSY_MS)
        if connection.pragma("user_version") == schema:
            return Glance(connection, project_no)
    except apsw.Error:
        pass
    connection.close()
    return None
