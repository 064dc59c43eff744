"""Translate apsw exceptions into Smara's errors, with advice."""

from __future__ import annotations

import apsw

from smara.errors import (
    BusyError,
    CannotOpenError,
    CorruptError,
    DatabaseError,
    DeadlineError,
    DiskFullError,
    ReadOnlyError,
)

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
    (
        apsw.CorruptError,
        CorruptError,
        "The database is damaged. Run `smara doctor`, which says what can be saved.",
    ),
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

_DAMAGED = "The database is damaged. Run `smara doctor`, which says what can be saved."
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
            raise translate_sqlite_error(error, self.path) from error
        if isinstance(error, UnicodeDecodeError):
            raise CorruptError(
                f"{_DAMAGED} (a text is not UTF-8)", path=self.path, reason=str(error)
            ) from error


def translate_sqlite_error(error: apsw.Error, path: str | None = None) -> DatabaseError:
    """The Smara error for an apsw error."""
    for source, target, advice in _TRANSLATIONS:
        if isinstance(error, source):
            return target(f"{advice} ({explain(error)})", path=path, reason=explain(error))
    if any(sign in str(error) for sign in _SIGNS_OF_DAMAGE):
        return CorruptError(f"{_DAMAGED} ({explain(error)})", path=path, reason=explain(error))
    return DatabaseError(
        f"SQLite refused: {explain(error)}. This is a bug in Smara; please report it.", path=path
    )


def explain(error: apsw.Error) -> str:
    """The error as SQLite words it, with its name."""
    return f"{type(error).__name__}: {error}"
