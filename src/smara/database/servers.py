"""Reach PostgreSQL servers through psycopg 3: errors, sessions, pools and replicas."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import chain, count, islice
from typing import Any
from urllib.parse import unquote

from smara.core import log
from smara.core.startup.regex import re, regex
from smara.database.session import Row, Session
from smara.errors import (
    BusyError,
    CannotOpenError,
    ConnectionLostError,
    DatabaseError,
    DeadlineError,
    DiskFullError,
    InvalidInputError,
    ReadOnlyError,
)

_TRANSLATIONS: tuple[tuple[tuple[str, ...], type[DatabaseError], str], ...] = (
    (
        ("57014",),
        DeadlineError,
        "PostgreSQL was too slow to answer in time. Ask for less, or wait longer.",
    ),
    (("55P03", "40001", "40P01"), BusyError, "PostgreSQL was busy: {}. Try again."),
    (
        ("53300",),
        BusyError,
        "PostgreSQL has no connection left: {}. Try again; put a pooler in front, or raise "
        "max_connections.",
    ),
    (("53100", "53200"), DiskFullError, "PostgreSQL has no room left: {}. Nothing was stored."),
    (("25006",), ReadOnlyError, "PostgreSQL is read-only: {}. Connect to the primary."),
    (
        ("08", "57P", "25P03"),
        ConnectionLostError,
        "The connection to PostgreSQL is gone: {}. Check the server; try again.",
    ),
    (("closed",), CannotOpenError, "This memory is closed. Open it again with smara.open()."),
)
# An error without a state is of the connection: the pool is closed, or the server is gone.
_STATES = {"PoolClosed": "closed"}
_FULL = regex("too many (clients|connections)|connection slots|no more connections allowed")
BUSY_STATES = ("55P03", "53300")
_MOST_CONNECTIONS = 8
_PAUSE_SECONDS = 0.1
FIRST_SECONDS = 10.0
"""So long may the first connection take after the server has answered once."""
_RECONNECT_SECONDS = 5.0
"""So long the pool tries to connect by itself, with longer and longer pauses. Then it begins again
for the next caller, who does not wait out the pause of a server that is back."""
_ABSENT_SECONDS = 10.0
"""A replica that did not answer is not asked again for so long."""
_CURSORS = count()
_PLUS = regex(r"(?<=[ (])\+(?=(?:\w+\.)?project_no\b)")
_SCHEMA = regex(r"[a-z_][a-z0-9_]{0,62}")


def state_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error.

    A connection that a full server refuses has it only in words.
    """
    state: str | None = getattr(error, "sqlstate", None)
    if state or not _FULL.search(str(error)):
        return state or _STATES.get(type(error).__name__, "08")
    return "53300"


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise psycopg errors as Smara's, by their SQLSTATE."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        reason, state = reason_of(error), state_of(error)
        for states, target, advice in _TRANSLATIONS:
            if state.startswith(states):
                raise target(advice.format(reason), reason=reason) from error
        raise DatabaseError(
            f"PostgreSQL refused: {reason} ({state}). This is a bug in Smara; please report it.",
            reason=reason,
        ) from error


class PostgresSession:
    """Statements on one psycopg connection.

    A statement of a reader that fails leaves the others as they were: its transaction, which has
    nothing to lose, is begun again.
    """

    __slots__ = ("_begin", "connection")

    def __init__(self, connection: Any, begin: str = "") -> None:
        self.connection = connection
        self._begin = begin if begin.startswith("BEGIN READ ONLY") else ""

    @contextmanager
    def _statement(self) -> Iterator[None]:
        import psycopg

        with translated_errors():
            try:
                yield
            except psycopg.Error:
                if (begin := self._begin) and not self.connection.broken:
                    self.connection.rollback()
                    self.connection.execute(begin)
                raise

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        with self._statement():
            return int(self.connection.execute(with_dollar_marks(sql), values or None).rowcount)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        rest = iter(rows)
        first = list(islice(rest, 2))
        if len(first) == 1:  # the driver waits once for a statement, and three times for a list
            self.run(sql, first[0])
        elif first:
            with self._statement(), self.connection.cursor() as cursor:
                cursor.executemany(with_dollar_marks(sql), chain(first, rest))

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        # How rare its words are decides how a search is best answered: a plan for any words reads
        # the whole project.
        prepare = False if "@@" in sql or "@>" in sql else None
        with self._statement():
            rows: list[Row] = self.connection.execute(
                with_dollar_marks(sql), values or None, prepare=prepare
            ).fetchall()
            return rows

    def one(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        with self._statement():
            row: Row | None = self.connection.execute(
                with_dollar_marks(sql), values or None
            ).fetchone()
            return row

    def each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        # A cursor of the server's, so that not every row has to come over at once.
        with self._statement(), self.connection.cursor(name=f"each_{next(_CURSORS)}") as cursor:
            cursor.itersize = 1000
            yield from cursor.execute(with_dollar_marks(sql), values or None)


class ServerPool:
    """The connections of this process to one server.

    A caller waits ``timeout_seconds`` for one that others have. The first has to be made, which
    a busy machine may need longer for than a hook would wait for others: ``first_seconds``.
    """

    def __init__(self, conninfo: str, timeout_seconds: float, first_seconds: float = 0.0) -> None:
        self._conninfo = conninfo
        self._timeout_seconds = timeout_seconds
        self._first_seconds = max(first_seconds, timeout_seconds)
        self._has_first = False
        self._pid = os.getpid()
        self._pool = self._make_pool()

    def _make_pool(self) -> Any:
        from psycopg_pool import ConnectionPool

        return ConnectionPool(
            self._conninfo,
            min_size=1,
            max_size=_MOST_CONNECTIONS,
            open=True,
            configure=_prepare_nothing_behind_a_pooler,
            timeout=self._timeout_seconds,
            reconnect_timeout=_RECONNECT_SECONDS,
            kwargs={"autocommit": True},
        )

    @contextmanager
    def transaction(self, begin: str) -> Iterator[PostgresSession]:
        """Open a session on a connection that has answered this."""
        if self._pid != os.getpid():
            # After a fork both sides would speak over the same sockets; the parent's are left
            # alone.
            self._abandoned = self._pool
            self._pool = self._make_pool()
            self._pid = os.getpid()
            self._has_first = False
        pool = self._pool
        with translated_errors():
            connection = self._answering(pool, begin)
            try:
                with connection:
                    yield PostgresSession(connection, begin)
            except ReadOnlyError:
                # The server became a replica; the next connection may find the primary.
                connection.close()
                raise
            finally:
                pool.putconn(connection)

    def _answering(self, pool: Any, begin: str) -> Any:
        """Take a connection and begin on it.

        A restart or an idle timeout of the server ends those that wait in the pool. Nothing has
        been sent over them yet, so that another can be taken without a word, until the time to
        wait is over.
        """
        import psycopg
        from psycopg_pool import PoolTimeout

        seconds = self._timeout_seconds if self._has_first else self._first_seconds
        until = time.monotonic() + seconds
        for attempt in count():
            left = until - time.monotonic()
            try:
                connection = pool.getconn(max(0.01, min(left, _RECONNECT_SECONDS)))
            except PoolTimeout as error:
                if left > _RECONNECT_SECONDS:
                    continue  # the pool may have given up
                raise self._unavailable(seconds) from error
            self._has_first = True
            try:
                connection.execute(begin)
                return connection
            except BaseException as error:
                pool.putconn(connection)
                if not isinstance(error, psycopg.OperationalError) or time.monotonic() > until:
                    raise
            if attempt > _MOST_CONNECTIONS:  # not one left from before: the server is restarting
                time.sleep(_PAUSE_SECONDS)
        raise AssertionError

    def _unavailable(self, seconds: float) -> DatabaseError:
        """Return why no connection could be had: the server is gone, or all are in use."""
        import psycopg

        with translated_errors(), psycopg.connect(self._conninfo, connect_timeout=5):
            return BusyError(
                f"PostgreSQL gave this process no connection for {seconds:g} seconds"
                f" (it takes at most {_MOST_CONNECTIONS}). Try again, or use fewer threads."
            )

    def close(self) -> None:
        """Close all connections."""
        if self._pid == os.getpid():
            self._pool.close()


class Replica:
    """A copy of the server, for searches while it is recent.

    The mark is a place in the primary's log. It is asked for again after each write of this
    process, and when it is older than the setting: a replica that has replayed up to it has every
    write of this process, and misses of others at most those of the last seconds.
    """

    def __init__(self, url: str, lag_seconds: float) -> None:
        self._pool = ServerPool(split_schema(url)[0], timeout_seconds=1.0)
        self._lag_seconds = lag_seconds
        self._mark = ""
        self._marked_at = -math.inf
        self._absent_until = 0.0
        self.is_written = False
        """Set by every write of this process."""
        self.close = self._pool.close

    def find(self, stack: ExitStack, begin: str, primary: ServerPool) -> Session | None:
        """Begin on the replica; return ``None`` if it is away or behind."""
        now = time.monotonic()
        if now < self._absent_until:
            return None
        if self.is_written or now > self._marked_at + self._lag_seconds:
            # In this order: what is written meanwhile, or not answered, asks for a mark again.
            self.is_written, self._marked_at = False, -math.inf
            with primary.transaction("") as session:
                row = session.one("SELECT pg_current_wal_insert_lsn()::text")
            self._mark, self._marked_at = str(row[0]) if row else "", now
        try:
            session = stack.enter_context(self._pool.transaction(begin))
            row = session.one("SELECT pg_last_wal_replay_lsn() >= ?::pg_lsn", (self._mark,))
        except DatabaseError as error:
            log.warning("replica.absent", error=error.code)
            self._absent_until = now + _ABSENT_SECONDS
            row = None
        if row and row[0]:
            return session
        stack.pop_all().close()
        return None


def is_pooled(connection: Any) -> bool:
    """Return True if a pooler stands between this connection and its server."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return bool(row is None or row[0] != connection.info.backend_pid)


def _prepare_nothing_behind_a_pooler(connection: Any) -> None:
    """Prepare no statements where another server connection may be asked for them.

    A pooler hands out process numbers of its own, so that it can pass on a cancellation.
    """
    if is_pooled(connection):
        connection.prepare_threshold = None


def reason_of(error: BaseException) -> str:
    """Return the first line of an error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@lru_cache(maxsize=1024)
def with_dollar_marks(sql: str) -> str:
    """A statement with ``?`` as psycopg wants it, with ``%s``.

    A plus sign that keeps SQLite from reading by project would keep PostgreSQL from leaving out
    the parts of other projects.

    >>> with_dollar_marks("SELECT 1 FROM messages m WHERE +m.project_no = 7 AND m.no = ?")
    'SELECT 1 FROM messages m WHERE m.project_no = 7 AND m.no = %s'
    """
    return _PLUS.sub("", sql.replace("%", "%%").replace("?", "%s") if "?" in sql else sql)


def split_schema(url: str) -> tuple[str, str]:
    """The URL without its ``schema`` parameter, and the schema's name.

    >>> split_schema("postgresql://localhost/app?schema=agents&sslmode=require")
    ('postgresql://localhost/app?sslmode=require', 'agents')
    """
    base, _, query = url.partition("?")
    # What libpq reads stays as it was written: to libpq a plus sign is no space.
    given = [each for each in query.split("&") if each]
    named = [unquote(each[len("schema=") :]) for each in given if each.startswith("schema=")]
    schema = named[0] if named else "smara"
    if not _SCHEMA.fullmatch(schema):
        raise InvalidInputError(
            f"{schema!r} is not a schema name. Use lower-case letters, digits and underscores."
        )
    rest = "&".join(each for each in given if not each.startswith("schema="))
    return f"{base}?{rest}" if rest else base, schema


def without_password(url: str) -> str:
    """The URL as it may be shown.

    >>> without_password("postgresql://ann:p@ss@host/db?password=x&sslmode=require")
    'postgresql://ann:***@host/db?password=***&sslmode=require'
    """
    base, mark, query = url.partition("?")
    base = re.sub(r"(://[^:/@]*):[^/]*@", r"\1:***@", base)
    return base + mark + re.sub(r"(?i)((?:ssl)?password=)[^&]*", r"\1***", query)
