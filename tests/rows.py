"""Rows put into tables directly, for tests below the rooms."""

from __future__ import annotations

from typing import Any

from smara.database.database import Database, Session, marks


def insert(database: Database, session: Session, table: str, **values: Any) -> None:
    """Insert a row; columns that must have a value and were not given one get 0 or an empty
    text.
    """
    row = {
        **{name: "" if is_text else 0 for name, is_text in _required(database, session, table)},
        **values,
    }
    session.run(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks(len(row))})", tuple(row.values())
    )


def _required(database: Database, session: Session, table: str) -> list[tuple[str, bool]]:
    if database.kind == "sqlite":
        columns = session.all(f"PRAGMA table_info({table})")
        return [
            (name, kind == "TEXT")
            for _, name, kind, is_required, default, _ in columns
            if is_required and default is None
        ]
    columns = session.all(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = "
        "current_schema()"
        " AND table_name = ? AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = "
        "'NO'",
        (table,),
    )
    return [(name, kind == "text") for name, kind in columns]
