"""Name what a room may use of either database.

`Database` is SQLite or PostgreSQL: a type checker holds every call against both engines, and
the docstrings are those of SQLite. Both open sessions and offer the text and vector indexes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from smara.database.session import PART, Row, Session, marks, parts

if TYPE_CHECKING:
    from smara.database.fulltext_postgres import (
        PostgresFullText,
        PostgresRecordIndex,
        PostgresWords,
    )
    from smara.database.fulltext_sqlite import SqliteFullText, SqliteRecordIndex, SqliteWords
    from smara.database.postgres import PostgresDatabase
    from smara.database.sqlite import SqliteDatabase

__all__ = [
    "PART",
    "Database",
    "DatabaseKind",
    "FullText",
    "RecordIndex",
    "Row",
    "Session",
    "Words",
    "marks",
    "parts",
]

DatabaseKind = Literal["sqlite", "postgres"]
Database: TypeAlias = "SqliteDatabase | PostgresDatabase"
FullText: TypeAlias = "SqliteFullText | PostgresFullText"
RecordIndex: TypeAlias = "SqliteRecordIndex | PostgresRecordIndex"
Words: TypeAlias = "SqliteWords | PostgresWords"
