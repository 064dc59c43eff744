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
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode

from smara.errors import DatabaseError, InvalidInputError, MissingExtraError, NotFoundError

THREADS, MESSAGES = "mastra_threads", "mastra_messages"
RESOURCES, OBSERVATIONS = "mastra_resources", "mastra_observational_memory"
TABLES = (THREADS, MESSAGES, RESOURCES, OBSERVATIONS)
_POSTGRES = ("postgresql://", "postgres://")
_SQLITE_MAGIC = b"SQLite format 3\x00"
_WAL_VERSION = 2
_AT_ONCE = 500
_BUSY_SECONDS = 5

Row = Mapping[str, Any]


class Damaged(Exception):
    """The store broke off while reading; earlier records are good."""


class MastraSource(Protocol):
    """A store to read from."""

    name: str
    """What it is called in reports: never with a password."""
    tables: frozenset[str]
    """Which of the tables of Mastra it has."""

    def rows(self, table: str) -> Iterator[Row]:
        """All rows of a table; raises `Damaged` where it cannot go on."""
        ...

    def messages(self) -> Iterator[Row]:
        """Yield all messages: latest threads first, oldest message first in each."""
        ...

    def count(self, table: str) -> int: ...

    def json_text(self, value: bytes) -> str | None:
        """Return JSON as text from the database's own form."""
        ...


@contextmanager
def open_source(where: str | os.PathLike[str]) -> Iterator[MastraSource]:
    """Open the store at a path or URL."""
    text = os.fspath(where)
    if text.startswith(_POSTGRES):
        with _postgres(text) as source:
            yield source
        return
    path = (
        text.removeprefix("file:").removeprefix("sqlite:///")
        if text.startswith(("file:", "sqlite:///"))
        else text
    )
    if "://" in path:
        raise InvalidInputError(
            f"{path.split('://')[0]}:// cannot be read. Give the file of a libSQL or SQLite "
            "store, or the URL of a "
            "PostgreSQL database; a database of Turso can be saved as a file with `turso db "
            "export`."
        )
    with _file(os.path.expanduser(path)) as source:
        yield source


def _checked(source: MastraSource) -> MastraSource:
    if not source.tables & {THREADS, MESSAGES, RESOURCES}:
        raise InvalidInputError(
            f"{source.name} has no tables of Mastra ({THREADS}, {MESSAGES}, {RESOURCES}). Name "
            "the store of the app's "
            "memory; it is what LibSQLStore or PostgresStore was given."
        )
    return source


def _first(there: frozenset[str], *names: str) -> str:
    """The first of some names of a column that the table has; the first one at all when it has
    none.
    """
    return next((name for name in names if name in there), names[0])


class FileSource:
    """A SQLite or libSQL file."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self.name = name
        found = (
            row[0]
            for row in self._all("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
        )
        self.tables = frozenset(TABLES) & frozenset(found)

    def rows(self, table: str) -> Iterator[Row]:
        if table in self.tables:
            yield from self._dicts(_SELECT[table], table)

    def messages(self) -> Iterator[Row]:
        if MESSAGES not in self.tables:
            return
        given = False
        try:
            for row in self._dicts(self._in_order(), MESSAGES):
                given = True
                yield row
        except Damaged:
            if given:
                raise
            # Sorting reads everything first: a file that is damaged somewhere gives what stands
            # before, unsorted.
            yield from self._dicts(_SELECT[MESSAGES], MESSAGES)

    def count(self, table: str) -> int:
        try:
            return int(next(self._all(_COUNT[table]))[0]) if table in self.tables else 0
        except (Damaged, StopIteration):
            return 0

    def json_text(self, value: bytes) -> str | None:
        try:
            row = next(self._all("SELECT json(?)", (value,)), None)
        except Damaged:
            return None
        return row[0] if row and isinstance(row[0], str) else None

    def _in_order(self) -> str:
        columns = self._columns(MESSAGES)
        column, order = (
            _first(columns, "thread_id", "threadId"),
            _first(columns, "createdAt", "created_at"),
        )
        if THREADS not in self.tables:
            return f'SELECT m.* FROM mastra_messages m ORDER BY m."{column}", m."{order}", m.rowid'
        name = _first(self._columns(THREADS), "updatedAt", "updated_at", "createdAt", "created_at")
        return (
            f'SELECT m.* FROM mastra_messages m LEFT JOIN mastra_threads t ON t.id = m."{column}"'
            f' ORDER BY t."{name}" DESC, m."{column}", m."{order}", m.rowid'
        )

    def _columns(self, table: str) -> frozenset[str]:
        return frozenset(self._names(table))

    def _names(self, table: str) -> list[str]:
        return [str(row[1]) for row in self._all(_COLUMNS[table])]

    def _dicts(self, statement: str, table: str) -> Iterator[Row]:
        given = 0
        try:
            for row in self._typed(statement):
                given += 1
                yield row
        except UnicodeDecodeError:
            # A text that is none stops the reading; as bytes, all of it can be had, and mended one
            # by one.
            columns = ", ".join(
                _AS_BYTES.format(name.replace('"', '""')) for name in self._names(table)
            )
            yield from islice(self._typed(f"SELECT {columns} FROM ({statement})"), given, None)

    def _typed(self, statement: str) -> Iterator[Row]:
        import apsw

        try:
            cursor = self._connection.execute(statement)
            names: list[str] | None = None
            for row in cursor:
                if names is None:
                    names = [each[0] for each in cursor.get_description()]
                yield dict(zip(names, row, strict=True))
        except apsw.Error as error:
            raise Damaged(_told(error)) from None

    def _all(self, statement: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        import apsw

        try:
            yield from self._connection.execute(statement, values)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise Damaged(_told(error)) from None


_AS_BYTES = 'CASE typeof("{0}") WHEN \'text\' THEN CAST("{0}" AS BLOB) ELSE "{0}" END AS "{0}"'
_SELECT = {table: f"SELECT * FROM {table}" for table in TABLES}
_COUNT = {table: f"SELECT count(*) FROM {table}" for table in TABLES}
_COLUMNS = {table: f"PRAGMA table_info({table})" for table in TABLES}


@contextmanager
def _file(path: str) -> Iterator[MastraSource]:
    import apsw

    place = os.path.realpath(path)
    head = _head(place)
    if not head.startswith(_SQLITE_MAGIC):
        raise InvalidInputError(
            f"{path} is no SQLite or libSQL database. Give the file of the store.", path=path
        )
    is_log_gone = not os.path.exists(f"{place}-wal") or os.path.getsize(f"{place}-wal") == 0
    is_at_rest = len(head) > 18 and head[18] == _WAL_VERSION and is_log_gone
    url = f"file:{quote(place)}?mode=ro{'&immutable=1' if is_at_rest else ''}"
    connection = None
    try:
        connection = apsw.Connection(url, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        connection.set_busy_timeout(_BUSY_SECONDS * 1000)
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA trusted_schema = 0")
        yield _checked(FileSource(connection, path))
    except (apsw.Error, Damaged) as error:
        told = _told(error) if isinstance(error, apsw.Error) else str(error)
        raise InvalidInputError(
            f"{path} cannot be read: {told}. Give an undamaged copy.", path=path
        ) from None
    finally:
        if connection is not None:
            connection.close()


def _head(place: str) -> bytes:
    try:
        with open(place, "rb") as stream:
            return stream.read(100)
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {place}. Check the path.", path=place) from None
    except OSError as error:
        raise InvalidInputError(f"{place} cannot be read: {error.strerror}.", path=place) from None


def _told(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class ServerSource:
    """A schema of a PostgreSQL database."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self.name = name
        found = self._connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        ).fetchall()
        self.tables = frozenset(TABLES) & frozenset(row[0] for row in found)

    def rows(self, table: str) -> Iterator[Row]:
        if table in self.tables:
            yield from self._dicts(_SELECT[table])

    def messages(self) -> Iterator[Row]:
        if MESSAGES not in self.tables:
            return
        columns = self._columns(MESSAGES)
        column = _first(columns, "thread_id", "threadId")
        order = _first(columns, "createdAtZ", "createdAt", "created_at")
        if THREADS not in self.tables:
            yield from self._dicts(
                f'SELECT m.* FROM mastra_messages m ORDER BY m."{column}", m."{order}", m.id'
            )
            return
        name = _first(
            self._columns(THREADS),
            "updatedAtZ",
            "updatedAt",
            "updated_at",
            "createdAt",
            "created_at",
        )
        yield from self._dicts(
            f'SELECT m.* FROM mastra_messages m LEFT JOIN mastra_threads t ON t.id = m."{column}"'
            f' ORDER BY t."{name}" DESC NULLS LAST, m."{column}", m."{order}", m.id'
        )

    def count(self, table: str) -> int:
        if table not in self.tables:
            return 0
        return int(self._connection.execute(_COUNT[table]).fetchone()[0])

    def json_text(self, value: bytes) -> str | None:
        return None

    def _columns(self, table: str) -> frozenset[str]:
        found = self._connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = "
            "current_schema()"
            " AND table_name = %s",
            (table,),
        )
        return frozenset(row[0] for row in found.fetchall())

    def _dicts(self, statement: str) -> Iterator[Row]:
        import psycopg

        try:
            with self._connection.cursor(name="smara_import") as cursor:
                cursor.itersize = _AT_ONCE
                cursor.execute(statement)
                names: list[str] | None = None
                for row in cursor:
                    if names is None:
                        names = [each.name for each in cursor.description]
                    yield dict(zip(names, row, strict=True))
        except psycopg.Error as error:
            raise Damaged(_told(error)) from None


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
            _enter(connection, schema or _found_schema(connection))
            yield _checked(ServerSource(connection, _name_of(connection)))
            connection.rollback()
    except psycopg.Error as error:
        # The message of psycopg may hold the address; what it says of a password it keeps to
        # itself.
        raise DatabaseError(
            f"The PostgreSQL database cannot be read: {_told(error)}. Check the URL."
        ) from None


def _enter(connection: Any, schema: str | None) -> None:
    if schema is not None:
        connection.execute("SELECT set_config('search_path', quote_ident(%s), true)", (schema,))


def _found_schema(connection: Any) -> str | None:
    """The schema that has the tables, when the usual one has none and exactly one other does."""
    found = connection.execute(
        "SELECT DISTINCT table_schema::text FROM information_schema.tables WHERE table_name IN "
        "(%s, %s, %s)",
        (THREADS, MESSAGES, RESOURCES),
    ).fetchall()
    schemas = sorted(row[0] for row in found)
    if not schemas or connection.execute("SELECT current_schema()").fetchone()[0] in schemas:
        return None
    if len(schemas) > 1:
        raise InvalidInputError(
            f"Several schemas have tables of Mastra: {', '.join(schemas)}. Say which one with "
            "?schema=NAME in the URL."
        )
    return str(schemas[0])


def _name_of(connection: Any) -> str:
    info = connection.info
    return f"postgresql://{info.host or 'localhost'}/{info.dbname}"
