"""Read the tables of a Mastra store without writing a byte.

A file is opened read-only; one in write-ahead mode that no process has open is opened as
immutable, because SQLite would otherwise create two files beside it. On a server everything
is read in one read-only transaction, so that all tables agree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, urlencode

from smara.errors import DatabaseError, InvalidInputError, MissingExtraError, NotFoundError
from smara.privacy.foreign.records import Malformed, database

THREADS, MESSAGES = "mastra_threads", "mastra_messages"
RESOURCES, OBSERVATIONS = "mastra_resources", "mastra_observational_memory"
TABLES = (THREADS, MESSAGES, RESOURCES, OBSERVATIONS)
_POSTGRES = ("postgresql://", "postgres://")
_AT_ONCE = 500

Row = Mapping[str, Any]


class Damaged(Exception):
    """The store broke off while reading; earlier records are good."""


class MastraSource:
    """A store to read from, without a byte written to it.

    ``name`` is what it is called in reports: never with a password. ``tables`` are the tables
    of Mastra that it has.
    """

    tables: frozenset[str]
    _tie_break = "id"
    _reads_unsorted = False

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self.name = name

    def rows(self, table: str) -> Iterator[Row]:
        """Yield all rows of a table.

        Raises `Damaged` where it cannot go on.

        Messages of the latest threads come first, and the oldest first in each.
        """
        if table not in self.tables:
            return
        has_begun = False
        try:
            for row in self._select(
                self._ordered_messages() if table == MESSAGES else _SELECT[table], table
            ):
                has_begun = True
                yield row
        except Damaged:
            if has_begun or table != MESSAGES or not self._reads_unsorted:
                raise
            # Sorting reads everything first: a file that is damaged somewhere gives what stands
            # before, unsorted.
            yield from self._select(_SELECT[MESSAGES], MESSAGES)

    def count(self, table: str) -> int:
        """Return the number of rows; 0 if they cannot be counted."""
        try:
            statement = f"SELECT count(*) AS rows FROM {table}"
            return next(self._select(statement, table))["rows"] if table in self.tables else 0
        except (Damaged, StopIteration):
            return 0

    def json_text(self, value: bytes) -> str | None:
        """Return JSON as text from the database's own form."""
        return None

    def _ordered_messages(self) -> str:
        columns = self._columns(MESSAGES)
        thread = _first(columns, "thread_id", "threadId")
        at = _first(columns, "createdAtZ", "createdAt", "created_at")
        join, order = "", f'm."{thread}", m."{at}", m.{self._tie_break}'
        if THREADS in self.tables:
            updated = _first(
                self._columns(THREADS),
                "updatedAtZ",
                "updatedAt",
                "updated_at",
                "createdAt",
                "created_at",
            )
            join = f' LEFT JOIN mastra_threads t ON t.id = m."{thread}"'
            order = f't."{updated}" DESC NULLS LAST, {order}'
        return f"SELECT m.* FROM mastra_messages m{join} ORDER BY {order}"

    def _columns(self, table: str) -> list[str]:
        raise NotImplementedError

    def _select(self, statement: str, table: str) -> Iterator[Row]:
        raise NotImplementedError


def _first(columns: list[str], *names: str) -> str:
    """The first of some names of a column that the table has; the first one at all when it has
    none.
    """
    return next((name for name in names if name in columns), names[0])


def _message_of(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class FileSource(MastraSource):
    """A SQLite or libSQL file."""

    _tie_break = "rowid"
    _reads_unsorted = True

    def __init__(self, connection: Any, name: str) -> None:
        super().__init__(connection, name)
        statement = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
        self.tables = frozenset(TABLES).intersection(row["name"] for row in self._typed(statement))

    def json_text(self, value: bytes) -> str | None:
        try:
            text = next(self._typed("SELECT json(?) AS text", (value,)))["text"]
        except (Damaged, UnicodeDecodeError):
            return None
        return text if isinstance(text, str) else None

    def _columns(self, table: str) -> list[str]:
        return [str(row["name"]) for row in self._typed(f"PRAGMA table_info({table})")]

    def _select(self, statement: str, table: str) -> Iterator[Row]:
        rows_read = 0
        try:
            for row in self._typed(statement):
                rows_read += 1
                yield row
        except UnicodeDecodeError:
            # An invalid text stops the reading; as bytes, all of it can be had, and mended one
            # by one.
            columns = ", ".join(
                _AS_BYTES.format(name.replace('"', '""')) for name in self._columns(table)
            )
            yield from islice(self._typed(f"SELECT {columns} FROM ({statement})"), rows_read, None)

    def _typed(self, statement: str, values: tuple[Any, ...] = ()) -> Iterator[Row]:
        import apsw

        try:
            cursor = self._connection.execute(statement, values)
            names: list[str] = []
            for row in cursor:
                names = names or [column[0] for column in cursor.get_description()]
                yield dict(zip(names, row, strict=True))
        except apsw.Error as error:
            raise Damaged(_message_of(error)) from None


class ServerSource(MastraSource):
    """A schema of a PostgreSQL database."""

    def __init__(self, connection: Any) -> None:
        info = connection.info
        super().__init__(connection, f"postgresql://{info.host or 'localhost'}/{info.dbname}")
        rows = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        )
        self.tables = frozenset(TABLES).intersection(row[0] for row in rows.fetchall())

    def _columns(self, table: str) -> list[str]:
        rows = self._connection.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = %s",
            (table,),
        )
        return [row[0] for row in rows.fetchall()]

    def _select(self, statement: str, table: str) -> Iterator[Row]:
        import psycopg

        try:
            with self._connection.cursor(
                name="smara_import", row_factory=psycopg.rows.dict_row
            ) as cursor:
                cursor.itersize = _AT_ONCE
                cursor.execute(statement)
                yield from cursor
        except psycopg.Error as error:
            raise Damaged(_message_of(error)) from None


_AS_BYTES = 'CASE typeof("{0}") WHEN \'text\' THEN CAST("{0}" AS BLOB) ELSE "{0}" END AS "{0}"'
_SELECT = {table: f"SELECT * FROM {table}" for table in TABLES}


@contextmanager
def open_source(where: str | os.PathLike[str]) -> Iterator[MastraSource]:
    """Open the store at a path or URL."""
    text = os.fspath(where)
    with _postgres(text) if text.startswith(_POSTGRES) else _file(text) as source:
        if not source.tables & {THREADS, MESSAGES, RESOURCES}:
            raise InvalidInputError(
                f"{source.name} has no tables of Mastra ({THREADS}, {MESSAGES}, {RESOURCES}). Name "
                "the store of the app's "
                "memory; it is what LibSQLStore or PostgresStore was given."
            )
        yield source


@contextmanager
def _file(where: str) -> Iterator[MastraSource]:
    path = os.path.expanduser(where.removeprefix("file:").removeprefix("sqlite:///"))
    if "://" in path:
        raise InvalidInputError(
            f"{path.split('://')[0]}:// cannot be read. Give the file of a libSQL or SQLite "
            "store, or the URL of a "
            "PostgreSQL database; a database of Turso can be saved as a file with `turso db "
            "export`."
        )
    if not os.path.exists(path):
        raise NotFoundError(f"There is no file {path}. Check the path.", path=path)
    try:
        with database(path) as connection:
            yield FileSource(connection, path)
    except (Malformed, Damaged) as error:
        raise InvalidInputError(f"{error}. Give an undamaged copy.", path=path) from None


@contextmanager
def _postgres(url: str) -> Iterator[MastraSource]:
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError(
            "Reading PostgreSQL needs the psycopg package. Install it with `pip install "
            "'smara[postgres]'`.",
            package="psycopg",
        ) from None
    # A URL without ``schema=NAME``, which is ours and not PostgreSQL's, and the name.
    base, _, query = url.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    rest = urlencode([(key, value) for key, value in given if key != "schema"])
    address = f"{base}?{rest}" if rest else base
    schema = next((value for key, value in given if key == "schema"), None)
    try:
        with psycopg.connect(address, connect_timeout=10) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            schema = schema or _only_schema(connection)
            if schema is not None:
                connection.execute(
                    "SELECT set_config('search_path', quote_ident(%s), true)", (schema,)
                )
            yield ServerSource(connection)
            connection.rollback()
    except psycopg.Error as error:
        # The message of psycopg may hold the address; what it says of a password it keeps to
        # itself.
        raise DatabaseError(
            f"The PostgreSQL database cannot be read: {_message_of(error)}. Check the URL."
        ) from None


def _only_schema(connection: Any) -> str | None:
    """The schema that has the tables, when the usual one has none and exactly one other does."""
    rows = connection.execute(
        "SELECT DISTINCT table_schema::text FROM information_schema.tables WHERE table_name IN "
        "(%s, %s, %s)",
        (THREADS, MESSAGES, RESOURCES),
    ).fetchall()
    schemas = sorted(row[0] for row in rows)
    if not schemas or connection.execute("SELECT current_schema()").fetchone()[0] in schemas:
        return None
    if len(schemas) > 1:
        raise InvalidInputError(
            f"Several schemas have tables of Mastra: {', '.join(schemas)}. Say which one with "
            "?schema=NAME in the URL."
        )
    return str(schemas[0])
