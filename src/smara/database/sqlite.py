"""Open SQLite through apsw: sessions, write-ahead log, deadlines and errors."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal
from weakref import WeakSet

import apsw

from smara.core import log
from smara.core.files import make_private
from smara.database.filesystem import network_filesystem
from smara.database.fulltext_sqlite import SqliteFullText, SqliteRecordIndex, SqliteWords
from smara.database.session import Column, ColumnType, Row, Session
from smara.database.vectors import SqliteVectors
from smara.errors import (
    BusyError,
    CannotOpenError,
    CorruptError,
    DatabaseError,
    DeadlineError,
    DiskFullError,
    ReadOnlyError,
)

Durability = Literal["full", "normal"]

APPLICATION_ID = 0x534D4152  # "SMAR", written into the file's header
WAL_LIMIT_BYTES = 64 * 1024 * 1024
_CHECK_WAL_EVERY = 64
_OPEN_ATTEMPTS = 50
_STEPS_BETWEEN_CHECKS = 20_000
_TYPES: dict[str, ColumnType] = {"INTEGER": "integer", "REAL": "number", "BLOB": "bytes"}


def wal_is_safe(version: str) -> bool:
    """Return True if a SQLite version has no WAL-reset bug.

    The bug silently loses commits.

    Fixed in 3.51.3, and in the maintenance releases 3.50.7 and 3.44.6 of their branches.

    >>> [wal_is_safe(v) for v in ("3.40.1", "3.44.6", "3.50.6", "3.50.7", "3.51.2", "3.51.3", "3.54.1")]
    [False, True, False, True, False, True, True]
    """  # noqa: E501
    parts = tuple(int(part) for part in version.split(".")[:3])
    if parts >= (3, 51, 3):
        return True
    branch, patch = parts[:2], parts[2] if len(parts) > 2 else 0
    return (branch == (3, 50) and patch >= 7) or (branch == (3, 44) and patch >= 6)


_DAMAGED = "The database is damaged. Run `smara doctor`, which says what can be saved."
_TRANSLATIONS: tuple[tuple[type[apsw.Error], type[DatabaseError], str], ...] = (
    (
        apsw.BusyError,
        BusyError,
        "Another process held the database too long. Try again, or see `smara doctor`.",
    ),
    (apsw.LockedError, BusyError, "Another connection holds the table. Try again."),
    (
        apsw.FullError,
        DiskFullError,
        "The disk is full; nothing was stored. Free some room and try again.",
    ),
    (
        apsw.ReadOnlyError,
        ReadOnlyError,
        "The database cannot be written. Check the permissions of the file and folder.",
    ),
    (apsw.CorruptError, CorruptError, _DAMAGED),
    (
        apsw.NotADBError,
        CorruptError,
        "This file is not a SQLite database. Choose another path with --db.",
    ),
    (
        apsw.CantOpenError,
        CannotOpenError,
        "The database cannot be opened. Check that the folder exists and is yours.",
    ),
    (
        apsw.PermissionsError,
        CannotOpenError,
        "No permission to open the database. Check its owner and mode.",
    ),
    (
        apsw.InterruptError,
        DeadlineError,
        "The database was too slow to answer in time. Ask for less, or wait longer.",
    ),
    (
        apsw.IOError,
        DatabaseError,
        "The disk reported an error; nothing was stored. Check the disk and try again.",
    ),
)

# Damage that SQLite reports as an ordinary error in the statement.
_SIGNS_OF_DAMAGE = (
    "vtable constructor failed",
    "invalid fts5 file format",
    "no such table",
    "malformed",
)


class SqliteErrorTranslation:
    """A block that translates apsw errors to Smara's.

    A class, because a generator costs four times as much.
    """

    __slots__ = ("path",)

    def __init__(self, path: str | None = None) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if isinstance(error, apsw.Error):
            reason = explain(error)
            for source, target, advice in _TRANSLATIONS:
                if isinstance(error, source):
                    raise target(f"{advice} ({reason})", path=self.path, reason=reason) from error
            if any(sign in str(error) for sign in _SIGNS_OF_DAMAGE):
                raise CorruptError(
                    f"{_DAMAGED} ({reason})", path=self.path, reason=reason
                ) from error
            raise DatabaseError(
                f"SQLite refused: {reason}. This is a bug in Smara; please report it.",
                path=self.path,
            ) from error
        if isinstance(error, UnicodeDecodeError):
            raise CorruptError(
                f"{_DAMAGED} (a text is not UTF-8)", path=self.path, reason=str(error)
            ) from error


def explain(error: apsw.Error) -> str:
    """The error as SQLite words it, with its name."""
    return f"{type(error).__name__}: {error}"


class SqliteSession:
    """Statements on one apsw connection."""

    __slots__ = ("connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        with SqliteErrorTranslation():
            self.connection.execute(sql, values).fetchall()
            return self.connection.changes()

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with SqliteErrorTranslation():
            self.connection.executemany(sql, rows).fetchall()

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with SqliteErrorTranslation():
            return self.connection.execute(sql, values).fetchall()

    def one(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        with SqliteErrorTranslation():
            return self.connection.execute(sql, values).fetchone()

    def each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        with SqliteErrorTranslation():
            yield from self.connection.execute(sql, values)


class SqliteDatabase:
    """One SQLite file, created with mode 0600 when it does not exist.

    ``path`` may be ``":memory:"``. ``vfs`` names an apsw VFS; the fault tests use it.
    """

    kind: Literal["sqlite"] = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = "full",
        busy_timeout_seconds: float = 30.0,
        vfs: str | None = None,
    ) -> None:
        self.path = str(path)
        self.durability = durability
        self.fulltext = SqliteFullText()
        self.words = SqliteWords()
        self.records = SqliteRecordIndex()
        self.vectors = SqliteVectors()
        self.warnings: list[str] = []
        self.on_write: Callable[[], object] | None = None
        """Called after each committed write, but those of what can be made again. Must be quick
        and never raise.
        """
        self._busy_timeout_ms = int(busy_timeout_seconds * 1000)
        self._vfs = vfs
        self._idle: list[apsw.Connection] = []
        self._pool_lock = threading.Lock()
        # Reentrant: a store in memory has one connection, and a read within a read uses it too.
        self._write_lock = threading.RLock()
        self._pid = os.getpid()
        self._is_closed = False
        self._writes = 0
        self._is_memory = self.path == ":memory:"
        self._only_connection = self._write_lock if self._is_memory else nullcontext()
        self.journal_mode = self._choose_journal_mode()
        if not self._is_memory:
            _create_private_file(self.path)
        self._is_ours = False
        self.is_read_only = False
        self._give_back(self._connect())
        self._is_ours = True
        _open_databases.add(self)

    def _choose_journal_mode(self) -> str:
        if self._is_memory:
            return "memory"
        version = apsw.sqlite_lib_version()
        if not wal_is_safe(version):
            self._warn(
                f"SQLite {version} has the WAL-reset bug, so the slower rollback journal is used. "
                "Upgrade the apsw package to 3.51.3 or newer."
            )
            return "delete"
        network = network_filesystem(self.path)
        if network:
            self._warn(
                f"{self.path} is on a network file system ({network}), where locks cannot be "
                "trusted. "
                "The rollback journal is used; keep the store on a local disk, or use PostgreSQL."
            )
            return "delete"
        return "wal"

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        log.warning("database.warning", text=text)

    def _connect(self) -> apsw.Connection:
        if self.is_read_only:
            return self._connect_read_only()
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        last: Exception | None = None
        for _ in range(_OPEN_ATTEMPTS):
            try:
                with SqliteErrorTranslation(self.path):
                    connection = apsw.Connection(self.path, flags=flags, vfs=self._vfs)
                    try:
                        self._configure(connection)
                    except BaseException:
                        connection.close(True)
                        raise
                return connection
            except (ReadOnlyError, CannotOpenError):
                # The file is there, whole without a log, and its folder takes no file beside it.
                folder, log_path = os.path.dirname(os.path.abspath(self.path)), self.path + "-wal"
                if (
                    self._is_memory
                    or not os.access(self.path, os.R_OK)
                    or os.access(folder, os.W_OK)
                    or file_size(log_path) > 0
                ):
                    raise
                return self._connect_read_only()
            except BusyError as error:
                # Changing the journal mode ignores the busy timeout, so two processes
                # that create the same file at once meet here.
                last = error
                threading.Event().wait(0.02)
        raise last or CannotOpenError(f"Cannot open {self.path}.")

    def _connect_read_only(self) -> apsw.Connection:
        """Connect read-only to a store without making files beside it.

        Only possible while no process writes to it.
        """
        if not self.is_read_only:
            self.is_read_only = True
            self._warn(
                f"{self.path} can only be read; nothing can be stored. Check the permissions of "
                "its folder."
            )
        from urllib.parse import quote

        address = f"file:{quote(os.path.abspath(self.path))}?immutable=1"
        with SqliteErrorTranslation(self.path):
            return apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)

    def _configure(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(self._busy_timeout_ms)
        application_id = connection.pragma("application_id")
        is_foreign = application_id not in (0, APPLICATION_ID)
        if application_id == 0 and not self._is_ours:
            # Either nobody's yet, or of a program that does not sign its files.
            has_tables = bool(connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall())
            # Asked again: another process may have made the store between the two questions.
            is_foreign = has_tables and connection.pragma("application_id") == 0
        if is_foreign:
            raise CannotOpenError(
                f"{self.path} is a SQLite database of another program. Choose another path with "
                "--db or SMARA_DB.",
                path=self.path,
            )
        mode = connection.pragma("journal_mode")
        if mode != self.journal_mode and not self._is_memory:
            connection.pragma("journal_mode", self.journal_mode)
        full = self.durability == "full" or self.journal_mode != "wal"
        connection.execute(
            f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'};"
            "PRAGMA foreign_keys = ON;"
            "PRAGMA cache_size = -16384;"
            "PRAGMA temp_store = MEMORY;"
        ).fetchall()
        connection.pragma("journal_size_limit", WAL_LIMIT_BYTES)
        if full:
            # On macOS a plain fsync does not reach the disk.
            connection.pragma("fullfsync", 1)

    @contextmanager
    def _borrow(self) -> Iterator[apsw.Connection]:
        if self._is_closed:
            raise CannotOpenError("This memory is closed. Open it again with smara.open().")
        if self._pid != os.getpid() and not self._is_memory:
            # A connection used on both sides of a fork corrupts the file, and so does
            # closing the parent's connection in the child: they are left alone.
            self._abandoned = self._idle
            self._idle = []
            self._pid = os.getpid()
            self._pool_lock = threading.Lock()
            self._write_lock = threading.RLock()
        if self._is_memory:
            # A second connection would open a second, empty store.
            yield self._idle[0]
            return
        with self._pool_lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._pool_lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        _close(connection)

    @contextmanager
    def read(self, deadline_seconds: float | None = None) -> Iterator[Session]:
        """Open a connection for reading; it sees everything committed.

        A statement that runs past the deadline is stopped with ``DeadlineError``.
        """
        with self._only_connection, self._borrow() as connection:
            if deadline_seconds is None:
                yield SqliteSession(connection)
                return
            stop_at = time.monotonic() + deadline_seconds

            def is_over() -> bool:
                nonlocal stop_at
                if time.monotonic() <= stop_at:
                    return False
                # What runs after the statement that is stopped has as much time again.
                stop_at = time.monotonic() + deadline_seconds
                return True

            connection.set_progress_handler(is_over, _STEPS_BETWEEN_CHECKS, id=is_over)
            try:
                yield SqliteSession(connection)
            finally:
                connection.set_progress_handler(None, id=is_over)

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """Open a read connection that sees one moment."""
        if self._is_memory:
            # Its only connection is held, so that no other thread can write.
            with self.read() as session:
                yield session
            return
        with self._borrow() as connection:
            session = SqliteSession(connection)
            session.run("BEGIN")
            try:
                yield session
            finally:
                # Not COMMIT: on a damaged text index it fails, though nothing was written.
                _roll_back(connection)

    @contextmanager
    def write(self, is_derived: bool = False) -> Iterator[Session]:
        """One transaction; leaving the block commits, an exception undoes everything.

        ``is_derived`` says that what is written can be made again: it is as atomic as any
        other write, but the disk is not waited for.
        """
        is_relaxed = is_derived and self.durability == "full" and self.journal_mode == "wal"
        with self._write_lock, self._borrow() as connection:
            try:
                with SqliteErrorTranslation(self.path):
                    if is_relaxed:
                        connection.execute("PRAGMA synchronous = NORMAL")
                    connection.execute("BEGIN IMMEDIATE")
                try:
                    yield SqliteSession(connection)
                    with SqliteErrorTranslation(self.path):
                        connection.execute("COMMIT")
                except BaseException:
                    _roll_back(connection)
                    raise
                self._writes += 1
                if (
                    self._writes % _CHECK_WAL_EVERY == 0
                    and self.journal_mode == "wal"
                    and file_size(self.path + "-wal") > WAL_LIMIT_BYTES
                ):
                    # A reader that holds it is not waited for; the next time will do.
                    self._checkpoint(connection, busy_timeout_ms=0)
            finally:
                if is_relaxed:
                    connection.execute("PRAGMA synchronous = FULL")
        if self.on_write is not None and not is_derived:
            self.on_write()

    def _checkpoint(self, connection: apsw.Connection, busy_timeout_ms: int) -> bool:
        connection.set_busy_timeout(busy_timeout_ms)
        try:
            pages, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            if busy_timeout_ms and not isinstance(error, apsw.BusyError):
                raise
            return False
        finally:
            connection.set_busy_timeout(self._busy_timeout_ms)
        return pages == moved

    def shrink_log(self) -> bool:
        """Checkpoint a write-ahead log; ``False`` while it is in use."""
        if self.journal_mode != "wal":
            return True
        with self._write_lock, self._borrow() as connection, SqliteErrorTranslation(self.path):
            # A reader that holds it may do so for hours.
            return self._checkpoint(connection, busy_timeout_ms=1_000)

    def integrity(self) -> list[str]:
        """Return what SQLite's own check of the whole file finds wrong."""
        with self.read() as session:
            rows = [str(row[0]) for row in session.all("PRAGMA integrity_check(200)")]
        lines = [line for row in rows for line in row.splitlines()]
        # Pages that nothing uses are left by a repair that was cut short; they harm nobody.
        harmless = ("ok", "*** in database main ***")
        return [
            line for line in lines if line not in harmless and not line.endswith(": never used")
        ]

    def tables(self, session: Session) -> dict[str, tuple[Column, ...]]:
        """Return every table with its columns.

        Those behind an index of FTS5 are left out.
        """
        rows = session.all(
            'SELECT l.name, c.name, c.type, c."notnull" FROM pragma_table_list l'
            " JOIN pragma_table_info(l.name) c WHERE l.type IN ('table', 'virtual')"
            " AND l.name NOT LIKE 'sqlite_%' ORDER BY l.name, c.cid"
        )
        found: dict[str, tuple[Column, ...]] = {}
        for table, name, kind, is_required in rows:
            column = Column(name, _TYPES.get(kind, "string"), bool(is_required))
            found[table] = (*found.get(table, ()), column)
        return found

    def facts(self) -> dict[str, Any]:
        """Return engine, version, size and settings of this database."""
        return {
            "engine": "sqlite",
            "version": apsw.sqlite_lib_version(),
            "path": self.path,
            "journalMode": self.journal_mode,
            "durability": self.durability,
            "fileBytes": file_size(self.path),
            "walBytes": file_size(self.path + "-wal"),
            "networkFileSystem": None if self._is_memory else network_filesystem(self.path),
        }

    def close(self) -> None:
        """Close every connection; safe to call twice."""
        with self._only_connection, self._pool_lock:
            idle, self._idle, self._is_closed = self._idle, [], True
        for connection in idle if self._pid == os.getpid() else ():
            _close(connection)

    def vacuum(self, projects: Collection[int] | None = None) -> None:
        """Rewrite the file without unused pages: that of all projects."""
        with self._write_lock, self._borrow() as connection, SqliteErrorTranslation(self.path):
            connection.execute("VACUUM").fetchall()

    def close_idle(self) -> None:
        """Close unused connections."""
        if self._is_memory:
            return
        with self._pool_lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            _close(connection)


_open_databases: WeakSet[SqliteDatabase] = WeakSet()


def _before_fork() -> None:
    # SQLite forgets whose locks are whose when both sides of a fork use a connection.
    for database in list(_open_databases):
        database.close_idle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def _close(connection: apsw.Connection) -> None:
    try:
        connection.close(True)
    except apsw.Error as error:
        # Everything acknowledged is committed already; a disk that fails now changes nothing.
        log.warning("database.close_failed", error=explain(error))


def _roll_back(connection: apsw.Connection) -> None:
    if connection.in_transaction:
        try:
            connection.execute("ROLLBACK")
        except apsw.Error as error:
            # The error that brought us here matters more; the next BEGIN recovers.
            log.warning("database.rollback_failed", error=explain(error))


def _create_private_file(path: str) -> None:
    """Make the file readable by its owner alone before SQLite writes the first byte."""
    folder = Path(path).parent
    try:
        if not folder.exists():
            make_private(str(folder))
        if os.path.isdir(path):
            raise IsADirectoryError
        # Only a new file is opened here: closing an existing one would drop the locks
        # that this process holds on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except IsADirectoryError:
        raise CannotOpenError(f"{path} is a folder. Give the path of a file.", path=path) from None
    except (FileExistsError, PermissionError):
        if not os.access(path, os.R_OK):
            raise CannotOpenError(
                f"No permission to open {path}. Check its owner and mode, or choose another path "
                "with --db.",
                path=path,
            ) from None
    except OSError as error:
        if not os.path.exists(path):
            raise CannotOpenError(
                f"Cannot create {path}: {error.strerror}. Choose another path.", path=path
            ) from None


def file_size(path: str) -> int:
    """Return the bytes of a file; 0 if there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
