"""Rebuild derived SQLite tables, damaged ones included.

Dropping a damaged table is dangerous: broken pointers may lead to pages of another table.
Its entry is removed from the schema instead; its pages stay unused until a vacuum.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session
from smara.errors import CorruptError, DatabaseError

_SHADOWS = ("data", "idx", "content", "docsize", "config")


def are_sound(session: Session, tables: Sequence[str]) -> bool:
    """Whether the pages of tables, and of what is behind FTS5 tables, hang together.

    To be asked outside the transaction that repairs: meeting damage spoils a transaction.
    """
    wanted = set(_names(tables))
    try:
        rows = session.all("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        found = sorted(wanted & {row[0] for row in rows})
        return all(session.all(f"PRAGMA quick_check('{name}')") == [("ok",)] for name in found)
    except CorruptError:
        return False


def remake(session: Session, tables: Sequence[str], definition: str, is_damaged: bool) -> None:
    """Take tables away, FTS5 tables with what is behind them, and run their definition."""
    if is_damaged:
        _forget(session, _names(tables))
    else:
        for name in _names(tables):
            _drop(session, name)
    session.run(definition)


def _names(tables: Sequence[str]) -> list[str]:
    return [
        name for table in tables for name in (table, *(f"{table}_{suffix}" for suffix in _SHADOWS))
    ]


def _drop(session: Session, name: str) -> None:
    try:
        session.run(f"DROP TABLE IF EXISTS {name}")
    except DatabaseError:
        # An FTS5 table that has lost one of the tables behind it cannot be opened, and so not
        # dropped.
        _forget(session, [name])


def _forget(session: Session, names: Sequence[str]) -> None:
    session.run("PRAGMA writable_schema = ON")
    try:
        for name in names:
            session.run("DELETE FROM sqlite_master WHERE name = ? OR tbl_name = ?", (name, name))
    finally:
        session.run("PRAGMA writable_schema = RESET")
