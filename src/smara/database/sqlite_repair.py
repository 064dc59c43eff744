"""Making derived tables again, also when they are damaged.

Dropping a damaged table is dangerous: its pages go where their broken pointers lead, and
may be those of another table. Its entry is taken out of the schema instead; its pages stay
behind, unused, until the file is written anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session

_SHADOWS = ("data", "idx", "content", "docsize", "config")


def remake(session: Session, tables: Sequence[str], definition: str, is_damaged: bool) -> None:
    """Take tables away, FTS5 tables with what is behind them, and run their definition."""
    names = [name for table in tables for name in (table, *(f"{table}_{suffix}" for suffix in _SHADOWS))]
    if is_damaged:
        _forget(session, names)
    else:
        for name in names:
            session.run(f"DROP TABLE IF EXISTS {name}")
    session.run(definition)


def _forget(session: Session, names: Sequence[str]) -> None:
    session.run("PRAGMA writable_schema = ON")
    try:
        for name in names:
            session.run("DELETE FROM sqlite_master WHERE name = ? OR tbl_name = ?", (name, name))
    finally:
        session.run("PRAGMA writable_schema = RESET")
