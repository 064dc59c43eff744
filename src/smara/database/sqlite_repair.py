"""Making derived tables again, also when they are damaged.

Dropping a damaged table is dangerous: its pages go where their broken pointers lead, and
may be those of another table. The entry of such a table is taken out of the schema instead;
its pages stay behind, unused, until the file is written anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session
from smara.errors import DatabaseError

_SHADOWS = ("data", "idx", "content", "docsize", "config")


def remake(session: Session, tables: Sequence[str], definition: str) -> bool:
    """Take tables away, FTS5 tables with what is behind them, and run their definition.

    Whether pages were left behind, so that the file should be written anew.
    """
    names = [name for table in tables for name in (table, *(f"{table}_{suffix}" for suffix in _SHADOWS))]
    there = {row[0] for row in session.all("SELECT name FROM sqlite_master WHERE type = 'table'")}
    damaged = [name for name in names if name in there and not _is_sound(session, name)]
    if damaged:
        _forget(session, [name for name in names if name in there])
    else:
        for name in names:
            _drop(session, name)
    session.run(definition)
    return bool(damaged)


def _is_sound(session: Session, name: str) -> bool:
    """Whether the pages of an ordinary table hang together; an FTS5 table has none of its own."""
    kind = session.one("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,))
    if kind is None or not kind[0]:
        return True
    try:
        return session.all(f"PRAGMA quick_check('{name}')") == [("ok",)]
    except DatabaseError:
        return False


def _drop(session: Session, name: str) -> None:
    try:
        session.run(f"DROP TABLE IF EXISTS {name}")
    except DatabaseError:
        # An FTS5 table that has lost one of the tables behind it cannot be opened, and so not dropped.
        _forget(session, [name])


def _forget(session: Session, names: Sequence[str]) -> None:
    session.run("PRAGMA writable_schema = ON")
    try:
        for name in names:
            session.run("DELETE FROM sqlite_master WHERE name = ? OR tbl_name = ?", (name, name))
    finally:
        session.run("PRAGMA writable_schema = RESET")
