"""Stores as Mastra makes them, of both databases, from the rows in ``fixtures/mastra``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw

FOLDER = Path(__file__).parent / "fixtures" / "mastra"
ROWS: dict[str, list[dict[str, Any]]] = json.loads(
    (FOLDER / "rows.json").read_text(encoding="utf-8")
)


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def put_rows(connection: Any, mark: str, rows: dict[str, list[dict[str, Any]]] = ROWS) -> None:
    """Put rows into the tables of a connection of either database."""
    for table, some in rows.items():
        for row in some:
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join(mark for _ in row)
            values = [_flat(value) for value in row.values()]
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)


def new_file(path: Path, *, mode: str = "delete") -> Path:
    """A file as the libSQL store leaves it."""
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute((FOLDER / "libsql.sql").read_text())
    put_rows(connection, "?")
    connection.close()
    return path


def change(path: Path, statement: str, values: tuple[Any, ...] = ()) -> None:
    """Do to a file what the app would do between two imports."""
    connection = apsw.Connection(str(path))
    connection.execute(statement, values)
    connection.close()


def new_schema(url: str) -> None:
    """The tables in the schema that a URL of the tests names."""
    import psycopg

    address, _, schema = url.partition("&schema=")
    with psycopg.connect(address) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"SET search_path TO {schema}")
        connection.execute((FOLDER / "postgres.sql").read_text())
        put_rows(connection, "%s")
