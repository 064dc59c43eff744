"""Connect to PostgreSQL through psycopg 3 and its connection pool."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

from smara.database.fulltext_postgres import PostgresFullText, PostgresRecordIndex, PostgresWords
from smara.database.session import Column, ColumnType, Row, Session, number
from smara.database.vectors import PostgresVectors
from smara.errors import (
    BusyError,
    CannotOpenError,
    ConnectionLostError,
    DatabaseError,
    DeadlineError,
    DiskFullError,
    InvalidInputError,
    MissingExtraError,
    ReadOnlyError,
)

_TRANSLATIONS: tuple[tuple[tuple[str, ...], type[DatabaseError], str], ...] = (
    (
        ("57014",),
        DeadlineError,
        "PostgreSQL was too slow to answer in time. Ask for less, or wait longer.",
    ),
    (("55P03", "40001", "40P01"), BusyError, "PostgreSQL was busy: {}. Try again."),
    (("53100", "53200"), DiskFullError, "PostgreSQL has no room left: {}. Nothing was stored."),
    (("25006",), ReadOnlyError, "PostgreSQL is read-only: {}. Connect to the primary."),
    (
        ("08", "57P"),
        ConnectionLostError,
        "The connection to PostgreSQL is gone: {}. Check the server; try again.",
    ),
    (("closed",), CannotOpenError, "This memory is closed. Open it again with smara.open()."),
)
# An error without a state is of the connection: the pool is busy or closed, or the server is gone.
_STATES = {"PoolTimeout": "55P03", "TooManyRequests": "55P03", "PoolClosed": "closed"}
_MOST_CONNECTIONS = 8
_CURSORS = count()
_TYPES: dict[str, ColumnType] = {
    "bigint": "integer",
    "integer": "integer",
    "double precision": "number",
    "real": "number",
    "bytea": "bytes",
    "text": "string",
}
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise psycopg errors as Smara's, by their SQLSTATE."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        reason = _reason(error)
        state = error.sqlstate or _STATES.get(type(error).__name__, "08")
        for states, target, advice in _TRANSLATIONS:
            if state.startswith(states):
                raise target(advice.format(reason), reason=reason) from error
        raise DatabaseError(
            f"PostgreSQL refused: {reason} ({state}). This is a bug in Smara; please report it.",
            reason=reason,
        ) from error


class PostgresSession:
    """Statements on one psycopg connection."""

    __slots__ = ("connection",)

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        with translated_errors():
            return int(self.connection.execute(with_dollar_marks(sql), values or None).rowcount)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with translated_errors(), self.connection.cursor() as cursor:
            cursor.executemany(with_dollar_marks(sql), rows)

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with translated_errors():
            rows: list[Row] = self.connection.execute(
                with_dollar_marks(sql), values or None
            ).fetchall()
            return rows

    def one(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        with translated_errors():
            row: Row | None = self.connection.execute(
                with_dollar_marks(sql), values or None
            ).fetchone()
            return row

    def each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        # A cursor of the server's, so that not every row has to come over at once.
        with translated_errors(), self.connection.cursor(name=f"each_{next(_CURSORS)}") as cursor:
            cursor.itersize = 1000
            yield from cursor.execute(with_dollar_marks(sql), values or None)


class PostgresDatabase:
    """One schema of one PostgreSQL database."""

    kind: Literal["postgres"] = "postgres"

    def __init__(
        self,
        url: str,
        durability: Literal["full", "normal"] = "full",
        busy_timeout_seconds: float = 30.0,
    ) -> None:
        try:
            import psycopg
            import psycopg_pool  # noqa: F401 - both are needed; said here rather than at first use
        except ImportError as error:
            raise MissingExtraError(
                "PostgreSQL needs the psycopg package. Install it with `pip install "
                "'smara[postgres]'`."
            ) from error
        self.conninfo, self.schema = split_schema(url)
        self.durability = durability
        self.fulltext = PostgresFullText()
        self.words = PostgresWords()
        self.records = PostgresRecordIndex()
        self.vectors = PostgresVectors()
        self.warnings: list[str] = []
        self.on_write: Callable[[], object] | None = None
        self._busy_timeout_ms = int(busy_timeout_seconds * 1000)
        try:
            # Creating a schema twice at once fails for one of the two; asking first
            # keeps that race to the very first moment of a database's life.
            with psycopg.connect(self.conninfo, autocommit=True) as connection:
                connection.execute("SELECT pg_advisory_lock(1397571922)")
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
        except psycopg.Error as error:
            raise CannotOpenError(
                f"Cannot connect to PostgreSQL: {_reason(error)}. Check the server and the URL.",
                url=without_password(url),
            ) from error
        self._pid = os.getpid()
        self._pool = self._make_pool()

    def _make_pool(self) -> Any:
        from psycopg_pool import ConnectionPool

        def configure(connection: Any) -> None:
            connection.execute(
                f"SET search_path TO {self.schema}; SET lock_timeout TO {self._busy_timeout_ms};"
                f" SET synchronous_commit TO {'on' if self.durability == 'full' else 'off'}"
            )

        return ConnectionPool(
            self.conninfo,
            min_size=1,
            max_size=_MOST_CONNECTIONS,
            open=True,
            configure=configure,
            timeout=self._busy_timeout_ms / 1000,
            kwargs={"autocommit": True},
        )

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        if self._pid != os.getpid():
            # After a fork both sides would speak over the same sockets; the parent's are left
            # alone.
            self._abandoned = self._pool
            self._pool = self._make_pool()
            self._pid = os.getpid()
        pool = self._pool
        connection = self._answering(pool)
        try:
            with connection:
                yield connection
        finally:
            pool.putconn(connection)

    def _answering(self, pool: Any) -> Any:
        """Take a connection that answers.

        A restart or an idle timeout of the server ends those that wait in the pool. Nothing has
        been sent over them yet, so that another can be taken without a word.
        """
        import psycopg

        for _ in range(_MOST_CONNECTIONS):
            connection = pool.getconn()
            try:
                pool.check_connection(connection)
                return connection
            except psycopg.OperationalError:
                pool.putconn(connection)
        return pool.getconn()

    @contextmanager
    def read(self, deadline_seconds: float | None = None) -> Iterator[Session]:
        with translated_errors(), self._connection() as connection:
            if deadline_seconds is None:
                yield PostgresSession(connection)
                return
            connection.execute(f"SET statement_timeout TO {max(1, int(deadline_seconds * 1000))}")
            try:
                yield PostgresSession(connection)
            finally:
                if not connection.closed:
                    connection.execute("SET statement_timeout TO 0")

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        with translated_errors(), self._connection() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield PostgresSession(connection)

    @contextmanager
    def write(self, is_derived: bool = False) -> Iterator[Session]:
        with translated_errors(), self._connection() as connection, connection.transaction():
            if is_derived:
                connection.execute("SET LOCAL synchronous_commit TO off")
            yield PostgresSession(connection)
        if self.on_write is not None and not is_derived:
            self.on_write()

    def integrity(self) -> list[str]:
        """PostgreSQL looks after its own files; nothing to report."""
        return []

    def shrink_log(self) -> bool:
        return True

    def tables(self, session: Session) -> dict[str, tuple[Column, ...]]:
        """Return every table with its columns."""
        found: dict[str, tuple[Column, ...]] = {}
        # The views of information_schema take twenty times as long.
        for table, column, kind, is_required in session.all(
            "SELECT c.relname, a.attname, format_type(a.atttypid, NULL), a.attnotnull"
            " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')"
            " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum"
        ):
            described = Column(column, _TYPES.get(kind, "other"), bool(is_required))
            found[table] = (*found.get(table, ()), described)
        return found

    def facts(self) -> dict[str, Any]:
        with self.read() as session:
            row = session.one(
                "SELECT current_setting('server_version'), pg_database_size(current_database())"
            )
        version, size = row if row else ("?", 0)
        return {
            "engine": "postgres",
            "version": version,
            "path": without_password(self.conninfo),
            "schema": self.schema,
            "durability": self.durability,
            "fileBytes": size,
        }

    def close_idle(self) -> None:
        """The pool looks after its connections itself."""

    def vacuum(self) -> None:
        """Rewrite every table and index without deleted rows."""
        with self.read() as session:
            session.run(_CLEAR_STATISTICS)
            # Rows that an older snapshot may see would be copied into the new files. A transaction
            # that writes holds back the snapshots of all databases of the server; those that begin
            # later do no harm, so a busy server is not waited for.
            mark = number(session, "SELECT txid_snapshot_xmax(txid_current_snapshot())")
            for _ in range(_MOST_WAITS):
                if session.one(_OLDER, (mark, mark)) is None:
                    break
                session.one("SELECT pg_sleep(0.1)")
            rows = session.all(_TABLES_WITH_PAGES)
            for name in (*(row[0] for row in rows), "pg_catalog.pg_statistic"):
                session.run(f"VACUUM (FULL, ANALYZE) {name}")
            session.run("DO $$ BEGIN CHECKPOINT; EXCEPTION WHEN OTHERS THEN NULL; END $$")

    def close(self) -> None:
        if self._pid == os.getpid():
            self._pool.close()


_MOST_WAITS = 300
_OLDER = """
WITH now AS (SELECT txid_current_snapshot() AS snapshot)
SELECT 1 FROM now WHERE txid_snapshot_xmin(snapshot) < ? OR EXISTS (
  SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND age(backend_xmin) > txid_snapshot_xmax(snapshot) - ?)
"""
"""Whether a transaction or a snapshot is older than a mark, the number of the next transaction."""
_TABLES_WITH_PAGES = (
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
    " AND relkind = 'r' AND pg_relation_size(oid) > 0 ORDER BY relname"
)
_CLEAR_STATISTICS = """
DO $$ DECLARE each record; BEGIN
  FOR each IN SELECT schemaname AS home, tablename, attname, inherited FROM pg_stats
    WHERE schemaname = current_schema()
  LOOP
    BEGIN
      IF current_setting('server_version_num')::int >= 180000 THEN
        PERFORM pg_clear_attribute_stats(
          each.home, each.tablename, each.attname, each.inherited);
      ELSE
        DELETE FROM pg_statistic s USING pg_attribute a WHERE a.attrelid = s.starelid
          AND a.attnum = s.staattnum AND a.attname = each.attname
          AND s.starelid = each.tablename::regclass;
      END IF;
    EXCEPTION WHEN insufficient_privilege THEN NULL;
    END;
  END LOOP;
END $$
"""
"""Statistics hold values of rows, and ANALYZE leaves those of a table that is empty now."""


def _reason(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@lru_cache(maxsize=1024)
def with_dollar_marks(sql: str) -> str:
    """A statement with ``?`` as psycopg wants it, with ``%s``."""
    return sql.replace("%", "%%").replace("?", "%s") if "?" in sql else sql


def split_schema(url: str) -> tuple[str, str]:
    """The URL without its ``schema`` parameter, and the schema's name.

    >>> split_schema("postgresql://localhost/app?schema=agents&sslmode=require")
    ('postgresql://localhost/app?sslmode=require', 'agents')
    """
    base, _, query = url.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    schema = next((value for key, value in given if key == "schema"), "smara")
    if not _SCHEMA.fullmatch(schema):
        raise InvalidInputError(
            f"{schema!r} is not a schema name. Use lower-case letters, digits and underscores."
        )
    rest = urlencode([(key, value) for key, value in given if key != "schema"])
    return f"{base}?{rest}" if rest else base, schema


def without_password(url: str) -> str:
    """The URL as it may be shown.

    >>> without_password("postgresql://ann:p@ss@host/db?password=x&sslmode=require")
    'postgresql://ann:***@host/db?password=***&sslmode=require'
    """
    base, mark, query = url.partition("?")
    base = re.sub(r"(://[^:/@]*):[^/]*@", r"\1:***@", base)
    return base + mark + re.sub(r"(?i)((?:ssl)?password=)[^&]*", r"\1***", query)
