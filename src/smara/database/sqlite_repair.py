"""Making derived tables again when they are too damaged to be dropped.

What is derived can be thrown away, but SQLite refuses to drop a table it cannot read. Such
a table's entry is taken out of the schema instead; its pages stay behind, unused, until the
file is compacted.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session
from smara.errors import DatabaseError

_SHADOWS = ("data", "idx", "content", "docsize", "config")


def remake(session: Session, tables: Sequence[str], definition: str) -> bool:
    """Drop tables, FTS5 tables with what is behind them, and run their definition; whether pages were left behind."""
    left_behind = False
    for table in tables:
        for name in (table, *(f"{table}_{suffix}" for suffix in _SHADOWS)):
            left_behind |= not _drop(session, name)
    session.run(definition)
    return left_behind


def _drop(session: Session, name: str) -> bool:
    try:
        session.run(f"DROP TABLE IF EXISTS {name}")
    except DatabaseError:
        session.run("PRAGMA writable_schema = ON")
        try:
            session.run("DELETE FROM sqlite_master WHERE name = ? OR tbl_name = ?", (name, name))
        finally:
            session.run("PRAGMA writable_schema = RESET")
        return False
    return True
