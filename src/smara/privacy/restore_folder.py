"""Keep the copy that a restore prepares, and remove lost ones.

The copy lies beside the store: a restore that is killed leaves all of it. It filled the folder
under a lock that ends with its process: a folder that holds something and can be locked is of a
dead one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape, glob
from shutil import rmtree

from smara.database.database import Database

_NAME = ".restore-"


def clear_restores(database: Database) -> list[str]:
    """Remove the copies that killed restores left beside a store.

    Returns:
        The folders that stay: of a restore that is under way, or not to be removed.
    """
    for folder in dead_restores(database):
        # No other process makes it again under this name.
        rmtree(folder, ignore_errors=True)
    return _restores(database)


def dead_restores(database: Database) -> list[str]:
    """Return the folders whose restore has ended."""
    dead = []
    for folder in _restores(database):
        with suppress(OSError), _lock(folder) as is_ours:
            dead += [folder] if is_ours else []
    return dead


@contextmanager
def restore_folder(database: Database) -> Iterator[str]:
    """Make a folder for the copy, and remove it afterwards."""
    from tempfile import TemporaryDirectory

    clear_restores(database)
    place, name = os.path.split(_file_of(database))
    folder = TemporaryDirectory(prefix=f"{name or 'memory'}{_NAME}", dir=place or None)
    with _lock(folder.name, is_waiting=True), folder:
        yield folder.name


def _restores(database: Database) -> list[str]:
    """Return the folders that hold something, also of restores under way."""
    path, found = _file_of(database), []
    for folder in sorted(glob(f"{escape(path)}{_NAME}*")) if path else ():
        try:
            is_filled = bool(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            is_filled = False
        except OSError:
            is_filled = True  # of another user
        found += [folder] if is_filled else []
    return found


def _file_of(database: Database) -> str:
    """Return the file of a store; nothing for one in memory or on a server."""
    path = database.path if database.kind == "sqlite" else ""
    return "" if path in ("", ":memory:") else os.path.abspath(path)


@contextmanager
def _lock(folder: str, *, is_waiting: bool = False) -> Iterator[bool]:
    """Lock a folder; yield False if that cannot be."""
    if sys.platform == "win32":
        yield True  # a file that is open there cannot be removed
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if is_waiting else fcntl.LOCK_NB))
            is_ours = True
        except OSError:  # another has it, or the file system has no locks
            is_ours = False
        yield is_ours
    finally:
        os.close(descriptor)
