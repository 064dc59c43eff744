"""Stores in PostgreSQL for tests: made once, emptied and used again.

A copy of a database takes a fifth of a second to make and to drop, which thousands of tests pay
for; emptying one over a connection that is kept takes a thirtieth of that. A store is not used
again when somebody else is still connected to it, or when a test has changed more than its rows.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "smara"
_MOST_USES = 60
"""Nothing is vacuumed here, so what was deleted is in the way after a while."""
_LOOKS = 100
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
    "pg_backend_pid()"
)
_END_POOLED = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND state = 'idle'"
)
"""A pooler keeps its connections for the next client."""
_SHAPE = """
SELECT sum(hashtextextended(told, 0)) FROM (
  SELECT concat_ws(' ', c.oid, c.relname, c.relkind, c.relfilenode) AS told FROM pg_class c
    WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind <> 'S'
  UNION ALL SELECT concat_ws(' ', t.tgrelid, t.tgname, t.tgenabled)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = %(schema)s::regnamespace
  UNION ALL SELECT p.oid::text FROM pg_proc p WHERE p.pronamespace = %(schema)s::regnamespace
  UNION ALL SELECT concat_ws(' ', a.attrelid, a.attname) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = %(schema)s::regnamespace AND NOT a.attisdropped
) AS everything
"""  # noqa: E501


@dataclass
class _Store:
    """One database, a connection to it that is kept, and how it looked when it was new."""

    name: str
    connection: Any
    shape: str
    seeds: dict[str, list[tuple[Any, ...]]]
    sequences: list[tuple[str, int | None]]
    uses: int = 0


@dataclass
class Stores:
    """The databases of one test process."""

    template: str
    free: list[_Store] = field(default_factory=list)

    def take(self, url: str) -> _Store:
        """An empty store."""
        import psycopg

        if self.free:
            return self.free.pop()
        name = f"s_{secrets.token_hex(6)}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {self.template}")
        return _described(psycopg.connect(database_of(url, name)), name)

    def give_back(self, url: str, store: _Store, is_pooled: bool = False) -> None:
        """Empty a store for the next test, or drop it."""
        import psycopg

        if is_pooled:
            with store.connection.transaction():
                store.connection.execute(_END_POOLED)

        store.uses += 1
        if store.uses < _MOST_USES and self._emptied(store):
            self.free.append(store)
            return
        store.connection.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET client_min_messages TO warning")
            connection.execute(f"DROP DATABASE IF EXISTS {store.name} WITH (FORCE)")

    def close(self) -> None:
        """End the connections; the databases go with their server."""
        while self.free:
            self.free.pop().connection.close()

    @staticmethod
    def _emptied(store: _Store) -> bool:
        import psycopg

        try:
            with store.connection.transaction():
                if not _is_alone(store.connection) or _shape(store.connection) != store.shape:
                    return False
                _empty(store.connection, store)
                return True
        except psycopg.Error:
            return False


def database_of(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return url.replace("/postgres?", f"/{name}?", 1)


def _described(connection: Any, name: str) -> _Store:
    tables = [
        row[0]
        for row in connection.execute(
            f"SELECT tablename FROM pg_tables WHERE schemaname = '{SCHEMA}'"
        )
    ]
    seeds = {
        table: connection.execute(f'SELECT * FROM {SCHEMA}."{table}"').fetchall()
        for table in tables
    }
    sequences = connection.execute(
        f"SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = '{SCHEMA}'"
    ).fetchall()
    shape = _shape(connection)
    connection.commit()
    return _Store(
        name,
        connection,
        shape,
        seeds={table: rows for table, rows in seeds.items() if rows},
        sequences=sequences,
    )


def _shape(connection: Any) -> str:
    return str(_one(connection, _SHAPE, {"schema": SCHEMA}))


def _is_alone(connection: Any) -> bool:
    """Whether nobody else is connected; who has just closed a connection is there for a moment
    more.
    """
    for _ in range(_LOOKS):
        connection.execute("SELECT pg_stat_clear_snapshot()")
        if not _one(connection, _OTHERS):
            return True
        connection.execute("SELECT pg_sleep(0.002)")
    return False


def _empty(connection: Any, store: _Store) -> None:
    connection.execute(
        "SET session_replication_role = replica"
    )  # neither foreign keys nor triggers
    written = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
        " AND pg_relation_size(oid) > 0",
        (SCHEMA,),
    ).fetchall()
    connection.execute(";".join(f'DELETE FROM {SCHEMA}."{table}"' for (table,) in written))
    for table, rows in store.seeds.items():
        marks = ", ".join([f"({', '.join(['%s'] * len(rows[0]))})"] * len(rows))
        values = [value for row in rows for value in row]
        connection.execute(
            f'INSERT INTO {SCHEMA}."{table}" OVERRIDING SYSTEM VALUE VALUES {marks}', values
        )
    starts = [
        (each, 1, "false") if last is None else (each, last, "true")
        for each, last in store.sequences
    ]
    connection.execute(
        "SELECT "
        + ", ".join(f"setval('{SCHEMA}.\"{each}\"', {at}, {is_on})" for each, at, is_on in starts)
    )


def _one(connection: Any, sql: str, values: Any = None) -> Any:
    row = connection.execute(sql, values).fetchone()
    return row[0] if row else None
