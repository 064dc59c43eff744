"""Stores in PostgreSQL for tests: made once, emptied and used again.

A copy of a database takes a fifth of a second to make and to drop, which thousands of tests pay for; emptying one takes
a tenth of that. A store is not used again when somebody is still connected to it, or when a test has changed more
than its rows.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "smara"
_MOST_USES = 60
"""Nothing is vacuumed here, so what was deleted is in the way after a while."""
_SHAPE = """
SELECT md5(string_agg(told, '|' ORDER BY told)) FROM (
  SELECT concat_ws(' ', c.oid, c.relname, c.relkind, c.relfilenode) AS told FROM pg_class c
    WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind <> 'S'
  UNION ALL SELECT concat_ws(' ', t.tgrelid, t.tgname, t.tgenabled)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = %(schema)s::regnamespace
  UNION ALL SELECT p.oid::text FROM pg_proc p WHERE p.pronamespace = %(schema)s::regnamespace
  UNION ALL SELECT concat_ws(' ', a.attrelid, a.attname) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = %(schema)s::regnamespace AND NOT a.attisdropped
) AS everything
"""


@dataclass
class _Store:
    """One database, and how it looked when it was new."""

    name: str
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
        with psycopg.connect(database_of(url, name), autocommit=True) as connection:
            return _described(connection, name)

    def give_back(self, url: str, store: _Store) -> None:
        """Empty a store for the next test, or drop it."""
        import psycopg

        store.uses += 1
        if store.uses < _MOST_USES and self._emptied(url, store):
            self.free.append(store)
            return
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET client_min_messages TO warning")
            connection.execute(f"DROP DATABASE IF EXISTS {store.name} WITH (FORCE)")

    @staticmethod
    def _emptied(url: str, store: _Store) -> bool:
        import psycopg

        try:
            with psycopg.connect(database_of(url, store.name)) as connection:
                others = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
                if _one(connection, others, (store.name,)) or _shape(connection) != store.shape:
                    return False
                _empty(connection, store)
                return True
        except psycopg.Error:
            return False


def database_of(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return url.replace("/postgres?", f"/{name}?", 1)


def _described(connection: Any, name: str) -> _Store:
    tables = [row[0] for row in connection.execute(f"SELECT tablename FROM pg_tables WHERE schemaname = '{SCHEMA}'")]
    seeds = {table: connection.execute(f'SELECT * FROM {SCHEMA}."{table}"').fetchall() for table in tables}
    sequences = connection.execute(
        f"SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = '{SCHEMA}'"
    ).fetchall()
    return _Store(name, _shape(connection), {table: rows for table, rows in seeds.items() if rows}, sequences)


def _shape(connection: Any) -> str:
    return str(_one(connection, _SHAPE, {"schema": SCHEMA}))


def _empty(connection: Any, store: _Store) -> None:
    connection.execute("SET session_replication_role = replica")  # neither foreign keys nor triggers
    written = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
        " AND pg_relation_size(oid) > 0",
        (SCHEMA,),
    ).fetchall()
    connection.execute(";".join(f'DELETE FROM {SCHEMA}."{table}"' for (table,) in written))
    for table, rows in store.seeds.items():
        marks = ", ".join(["%s"] * len(rows[0]))
        for row in rows:
            connection.execute(f'INSERT INTO {SCHEMA}."{table}" OVERRIDING SYSTEM VALUE VALUES ({marks})', row)
    values = [(each, 1, "false") if last is None else (each, last, "true") for each, last in store.sequences]
    connection.execute(
        "SELECT " + ", ".join(f"setval('{SCHEMA}.\"{each}\"', {at}, {is_on})" for each, at, is_on in values)
    )


def _one(connection: Any, sql: str, values: Any = None) -> Any:
    row = connection.execute(sql, values).fetchone()
    return row[0] if row else None
