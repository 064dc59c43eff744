"""What a user would write without Smara: one table with a full-text index, on either database.

No text analysis of ours, no tables of ours; the engine's own tokenizer, one transaction for each
call, and the same durability.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import apsw

Rows = Sequence[dict[str, str]]
_WORD = re.compile(r"\w+")


class Plain(Protocol):
    """A table of messages, searched by any of the words of a question."""

    def add_many(self, thread: str, rows: Rows) -> None: ...

    def search(self, question: str) -> list[tuple[object, ...]]: ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class PlainSqlite:
    """An FTS5 table, written with apsw: write-ahead log, every commit synced to the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = apsw.Connection(str(path))
        self._connection.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "CREATE VIRTUAL TABLE IF NOT EXISTS messages USING fts5"
            " (content, thread UNINDEXED, role UNINDEXED)"
        ).fetchall()

    def add_many(self, thread: str, rows: Rows) -> None:
        with self._connection:
            self._connection.executemany(
                "INSERT INTO messages (content, thread, role) VALUES (?, ?, ?)",
                [(row["content"], thread, row["role"]) for row in rows],
            )

    def search(self, question: str) -> list[tuple[object, ...]]:
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(question)))
        return self._connection.execute(
            "SELECT rowid, content, thread, role, rank FROM messages WHERE messages MATCH ?"
            " ORDER BY rank LIMIT 10",
            (query,),
        ).fetchall()

    def size(self) -> int:
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return os.stat(self._path).st_size

    def close(self) -> None:
        self._connection.close()


class PlainPostgres:
    """A table with a generated ``tsvector`` and a GIN index, written with psycopg."""

    def __init__(self, url: str) -> None:
        import psycopg

        address, _, name = url.partition("schema=")
        self._schema = name or "bench_plain"
        self._connection = psycopg.connect(address.rstrip("?&"), autocommit=True)
        self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}".encode())
        self._connection.execute(f"SET search_path = {self._schema}".encode())
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS messages (no bigserial PRIMARY KEY, thread text NOT NULL,"
            " role text NOT NULL, content text NOT NULL, terms tsvector"
            " GENERATED ALWAYS AS (to_tsvector('english', content)) STORED)"
        )
        self._connection.execute(
            "CREATE INDEX IF NOT EXISTS messages_by_terms ON messages USING gin (terms)"
        )

    def add_many(self, thread: str, rows: Rows) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO messages (content, thread, role) VALUES (%s, %s, %s)",
                [(row["content"], thread, row["role"]) for row in rows],
            )

    def search(self, question: str) -> list[tuple[object, ...]]:
        query = " | ".join(f"'{word}'" for word in dict.fromkeys(_WORD.findall(question)))
        return self._connection.execute(
            "SELECT no, content, thread, role, ts_rank_cd(terms, query) AS score"
            " FROM messages, to_tsquery('english', %s) query WHERE terms @@ query"
            " ORDER BY score DESC LIMIT 10",
            (query,),
        ).fetchall()

    def size(self) -> int:
        row = self._connection.execute("SELECT pg_total_relation_size('messages')").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        self._connection.close()
