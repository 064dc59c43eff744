"""Store a memory in one schema of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from typing import Any, Literal

from smara.database.fulltext_postgres import PostgresFullText, PostgresRecordIndex, PostgresWords
from smara.database.servers import (
    BUSY_STATES,
    FIRST_SECONDS,
    Replica,
    ServerPool,
    reason_of,
    split_schema,
    state_of,
    translated_errors,
    without_password,
)
from smara.database.session import Column, ColumnType, Session
from smara.database.vacuum import clear_statistics, find_places, with_pages, write_files
from smara.database.vectors import PostgresVectors
from smara.errors import CannotOpenError, MissingExtraError

_TYPES: dict[str, ColumnType] = {
    "bigint": "integer",
    "integer": "integer",
    "double precision": "number",
    "real": "number",
    "bytea": "bytes",
    "text": "string",
}
_LOCK = 1397571922


class PostgresDatabase:
    """One schema of one PostgreSQL database."""

    kind: Literal["postgres"] = "postgres"

    def __init__(
        self,
        url: str,
        durability: Literal["full", "normal"] = "full",
        busy_timeout_seconds: float = 30.0,
        replica: tuple[str, float] = ("", 0.0),
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
        # Behind a pooler the next transaction may be on another connection of the server, and what
        # this one was set to is met by another client: everything is set for one transaction.
        self._busy_ms = int(busy_timeout_seconds * 1000)
        self._begin = (
            f"SET LOCAL search_path TO {self.schema}; SET LOCAL lock_timeout TO {self._busy_ms}"
        )
        try:
            with psycopg.connect(self.conninfo, autocommit=True, prepare_threshold=None) as first:
                statement = "SELECT FROM pg_namespace WHERE nspname = %s"
                if first.execute(statement, (self.schema,)).fetchone() is None:
                    # Creating a schema twice at once fails for one of the two.
                    statement = (
                        f"BEGIN; {self._begin}; {self.lock_statement};"
                        f" CREATE SCHEMA IF NOT EXISTS {self.schema}; COMMIT"
                    )
                    first.execute(statement)
        except psycopg.Error as error:
            with translated_errors():
                if state_of(error).startswith(BUSY_STATES):
                    raise
            raise CannotOpenError(
                f"Cannot connect to PostgreSQL: {reason_of(error)}. Check the server and the URL.",
                url=without_password(url),
            ) from error
        self._pool = ServerPool(self.conninfo, busy_timeout_seconds, FIRST_SECONDS)
        self._replica = Replica(*replica) if replica[0] else None

    @property
    def lock_statement(self) -> str:
        """The statement that locks this schema's tables against other migrations."""
        return f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext('{self.schema}'))"

    @contextmanager
    def read(self, deadline_seconds: float | None = None) -> Iterator[Session]:
        begin = f"BEGIN READ ONLY; {self._begin}"
        if deadline_seconds is not None:
            begin += f"; SET LOCAL statement_timeout TO {max(1, int(deadline_seconds * 1000))}"
        with ExitStack() as stack:
            session: Session | None = None
            if self._replica is not None and deadline_seconds is not None:  # a search
                session = self._replica.find(stack, begin, self._pool)
            yield session or stack.enter_context(self._pool.transaction(begin))

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {self._begin}"
        with self._pool.transaction(begin) as session:
            yield session

    @contextmanager
    def write(self, is_derived: bool = False) -> Iterator[Session]:
        is_durable = self.durability == "full" and not is_derived
        begin = f"SET LOCAL synchronous_commit TO {'on' if is_durable else 'off'}"
        with self._pool.transaction(f"BEGIN; {self._begin}; {begin}") as session:
            yield session
        if self._replica is not None:
            self._replica.is_written = True
        if self.on_write is not None and not is_derived:
            self.on_write()

    @contextmanager
    def autocommit(self) -> Iterator[Session]:
        """Open a session without a transaction, for statements that refuse one.

        No schema is set: they must name it. Locks are waited for as long as elsewhere, but behind
        a pooler: there the next client would meet the setting.
        """
        with self._pool.transaction("") as session:
            is_own = session.connection.prepare_threshold is not None
            if is_own:
                session.run(f"SET lock_timeout TO {self._busy_ms}")
            try:
                yield session
            finally:
                if is_own and not session.connection.closed:
                    session.run("RESET lock_timeout")

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
            " AND NOT c.relispartition"
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

    def places(
        self, session: Session, projects: Collection[int] | None = None
    ) -> dict[str, list[str]]:
        """Return the tables, or parts of them, in which projects lie."""
        if projects is None:
            return find_places(session, None)
        return find_places(session, {self.fulltext.part(session, no) for no in projects})

    def vacuum(self, projects: Collection[int] | None = None) -> None:
        """Rewrite the tables and indexes in which projects lie, without deleted rows.

        Raises:
            BusyError: If others use some of them; the rest is rewritten.
        """
        with self.write() as session:
            found = self.places(session, projects)
            places = with_pages(session, [*chain(*found.values())])
            clear_statistics(session, {*found, *chain(*found.values())} - {*places})
        with self.autocommit() as session:
            # Outside a transaction no timeout can be set without other clients of a pooler meeting
            # it, and a reader that stays would be waited for without end: the lock is waited for
            # in a transaction, and a table that was locked again since is tried later.
            try:
                write_files(
                    partial(self.write, True),
                    session,
                    self.schema,
                    tables=places,
                    busy_ms=self._busy_ms,
                )
            finally:
                session.run("DO $$ BEGIN CHECKPOINT; EXCEPTION WHEN OTHERS THEN NULL; END $$")

    def close(self) -> None:
        self._pool.close()
        if self._replica is not None:
            self._replica.close()
