"""Copy a SQLite store into a file, and back.

The online backup of SQLite copies pages: one moment of the store, while others read and write. A
copy counts only once SQLite has checked all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import cast
from urllib.parse import quote

import apsw

from smara.core.clock import Clock
from smara.database.database import Session, marks
from smara.database.migrate import HEAD, migrate, opened_by
from smara.database.sqlite import (
    APPLICATION_ID,
    SqliteDatabase,
    SqliteErrorTranslation,
    SqliteSession,
)
from smara.errors import CannotOpenError, ConflictError, CorruptError, SchemaTooNewError
from smara.privacy.restore_folder import restore_folder
from smara.privacy.rows import record_counts

_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


def back_up(database: SqliteDatabase, path: str, *, is_counted: bool = False) -> dict[str, int]:
    """Copy a store into a new private file, while others write.

    The file gets its name when it is whole and checked.

    Returns:
        The rows of the copy by table, if asked: the store itself may have gone on meanwhile.

    Raises:
        DatabaseError: If the copy cannot be written, or does not pass the check.
    """
    partial = f"{path}.partial"
    _remove(partial)
    os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            SqliteErrorTranslation(partial),
            _connection(database) as source,
            closing(apsw.Connection(partial)) as copy,
        ):
            _copy(source, copy)
            _require_sound(copy, path)
            counts = record_counts(SqliteSession(copy)) if is_counted else {}
        with open(partial, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        _remove(partial)
    return counts


def replace(database: SqliteDatabase, path: str, clock: Clock, saved: str | None) -> None:
    """Replace a store's content, but not its keys, by a file's.

    One transaction: processes that have the store open see the new content from then on, in the
    schema of today. Keys and browsers of its servers stay those of the store: what was revoked
    since the backup must not come back, not even until a second transaction.

    Args:
        database: The store.
        path: A file that `back_up` wrote, or a copy of a store.
        clock: The clock.
        saved: Where to back up what was there; ``None`` for a store without content.

    Raises:
        CorruptError: If the file is damaged; nothing is changed then.
        CannotOpenError: If the file is not a store of Smara.
        SchemaTooNewError: If its schema is newer, and not open to this code.
        ConflictError: If it is of another store, and this one has content.
    """
    with SqliteErrorTranslation(path), closing(_open(path)) as source:
        if source.pragma("application_id") != APPLICATION_ID:
            raise CannotOpenError(f"{path} is not a store of Smara.", path=path)
        version = int(str(source.pragma("user_version")))
        if version > HEAD and opened_by(SqliteSession(source), version) > HEAD:
            raise SchemaTooNewError(
                f"{path} was written by a newer Smara. Upgrade with `pip install --upgrade smara`;"
                " nothing was changed."
            )
        _require_sound(source, path)
        theirs = _projects(source)
        with _connection(database) as target:
            ours = _projects(target)
        # A process that has the store open knows its project by number.
        if saved is not None and any(theirs.get(no, ours[no]) != ours[no] for no in ours):
            raise ConflictError(
                f"{path} is a backup of another store. Restore it to a place of its own: `smara"
                " restore FILE --db NEW`."
            )
        with (
            restore_folder(database) as beside,
            closing(SqliteDatabase(os.path.join(beside, "store.db"))) as prepared,
        ):
            with _connection(prepared) as copy:
                _copy(source, copy)
            prepared.close_idle()
            migrate(prepared, clock)
            if saved is not None:
                back_up(database, saved)
            database.close_idle()
            with SqliteErrorTranslation(database.path):
                _put_content(database, prepared)
            database.close_idle()


def _put_content(database: SqliteDatabase, prepared: SqliteDatabase) -> None:
    """Copy a prepared store into another, and leave that its keys."""
    with ExitStack() as stack:
        copy = stack.enter_context(_connection(prepared))
        target = stack.enter_context(_connection(database))
        if database.path == ":memory:":  # it has one connection, which no other thread gets now
            put_keys(SqliteSession(target), prepared)
            _copy(copy, target)
            return
        ours = stack.enter_context(_beside_writer(database))
        with target.backup("main", copy, "main") as backup:
            # No page, but the lock of the store: a key that is revoked between the copy of the keys
            # and that of the pages would be valid again.
            backup.step(0)
            put_keys(ours, prepared)
            backup.step(-1)


@contextmanager
def _beside_writer(database: SqliteDatabase) -> Iterator[Session]:
    """Open a store to be read while this process has it locked for its own write."""
    if database.journal_mode == "wal":
        with database.read() as session:
            yield session
        return
    # Without a log a writer shuts all readers out; this one asks for no lock.
    address = f"file:{quote(os.path.abspath(database.path))}?immutable=1"
    with closing(apsw.Connection(address, flags=_READ_ONLY)) as connection:
        yield SqliteSession(connection)


def put_keys(ours: Session, prepared: SqliteDatabase) -> None:
    """Put a store's keys in the place of its backup's."""
    with prepared.write() as theirs:
        # A newer Smara may have added columns to either.
        own = {row[0] for row in ours.all("SELECT name FROM pragma_table_info('access')")}
        names = [each.name for each in prepared.tables(theirs)["access"] if each.name in own]
        columns = ", ".join(names)
        theirs.run("DELETE FROM access")
        theirs.run_many(
            f"INSERT INTO access ({columns}) VALUES ({marks(len(names))})",
            ours.all(f"SELECT {columns} FROM access"),
        )
        # A project may have another number there, or be missing: the key does not see it then.
        theirs.run_many(
            "INSERT INTO access_projects (hash, project_no)"
            " SELECT ?, no FROM projects WHERE id = ?",
            ours.all(
                "SELECT a.hash, p.id FROM access_projects a JOIN projects p ON p.no = a.project_no"
            ),
        )


@contextmanager
def _connection(database: SqliteDatabase) -> Iterator[apsw.Connection]:
    with database.read() as session:
        yield cast(SqliteSession, session).connection


def _copy(source: apsw.Connection, target: apsw.Connection) -> None:
    # All pages in one step: a commit in between would start the copy over.
    with target.backup("main", source, "main") as backup:
        backup.step(-1)


def _open(path: str) -> apsw.Connection:
    """Open a file to read it whole; no file is made beside one without a log."""
    if os.path.exists(f"{path}-wal"):
        return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    return apsw.Connection(f"file:{quote(path)}?immutable=1", flags=_READ_ONLY)


def _projects(connection: apsw.Connection) -> dict[object, object]:
    return {row[0]: row[1] for row in connection.execute("SELECT no, id FROM projects")}


def _require_sound(connection: apsw.Connection, path: str) -> None:
    problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
    if problems != ["ok"]:
        raise CorruptError(f"{path} is damaged: {'; '.join(problems)}", path=path)


def _remove(path: str) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(path + end)
