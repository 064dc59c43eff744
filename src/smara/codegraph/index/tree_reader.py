"""Open files inside a tree's folder, and none outside it.

A tree may be hostile, and it may change while it is read: a folder becomes a link, a file a pipe.
So a path is opened step by step without following links, and the opened file is checked again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from smara.codegraph.models import SkipReason

_HAS_STEPS = (
    os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
)
_HAS_LISTED_STEPS = _HAS_STEPS and os.scandir in os.supports_fd
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
    # A pipe without a writer would keep the opener waiting for ever.
    | getattr(os, "O_NONBLOCK", 0)
)
_FOLDER = _FLAGS | getattr(os, "O_DIRECTORY", 0)
_PIECE = 1 << 18
_ATTEMPTS = 3


class Opened(NamedTuple):
    """What was read, with the size and the time of change that belong to it."""

    data: bytes
    size: int
    mtime_ns: int


class NotRead(Exception):
    """Something was not read; ``reason`` says why."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason)
        self.reason = reason


class TreeReader:
    """Reads files below a root by paths relative to it, with slashes between their parts."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def read(self, path: str, most_bytes: int) -> Opened:
        """The content of a regular file inside the root; ``NotRead`` when it is none, too big or
        keeps changing.
        """
        for _ in range(_ATTEMPTS):
            found = self._read_once(path, most_bytes)
            if found is not None:
                return found
        raise NotRead("changing")

    def _read_once(self, path: str, most_bytes: int) -> Opened | None:
        with self._opened(path) as number:
            before = os.fstat(number)
            if not stat.S_ISREG(before.st_mode):
                raise NotRead("not_a_file")
            if before.st_size > most_bytes:
                raise NotRead("too_big")
            most = most_bytes + 1
            pieces: list[bytes] = []
            size = 0
            while size < most:
                piece = os.read(number, min(_PIECE, most - size))
                if not piece:
                    break
                pieces.append(piece)
                size += len(piece)
            data = b"".join(pieces)
            after = os.fstat(number)
        if len(data) > most_bytes:
            raise NotRead("too_big")
        # Half of an old and half of a new version would be indexed as a file that never was.
        is_same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        return (
            Opened(data, after.st_size, after.st_mtime_ns)
            if is_same and len(data) == after.st_size
            else None
        )

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        folder, _, name = path.rpartition("/")
        try:
            if _HAS_STEPS:
                with self._folder(folder) as above:
                    # Looked at before it is opened: opening a device may already do something.
                    if not stat.S_ISREG(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
                        raise NotRead("not_a_file")
                    number = os.open(name, _FLAGS, dir_fd=above)
            else:
                number = os.open(self._inside(path, stat.S_ISREG), _FLAGS)
        except (OSError, ValueError) as error:
            raise NotRead("unreadable") from error
        try:
            yield number
        except OSError as error:
            raise NotRead("unreadable") from error
        finally:
            os.close(number)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        number = os.open(self.root, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
        try:
            for step in path.split("/") if path else ():
                if step in ("", ".", ".."):
                    raise NotRead("outside")
                below = os.open(step, _FOLDER, dir_fd=number)
                os.close(number)
                number = below
            yield number
        finally:
            os.close(number)

    @contextmanager
    def listing(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of a folder inside the root; ``NotRead`` when it cannot be listed."""
        try:
            if _HAS_LISTED_STEPS:
                with self._folder(path) as number, os.scandir(number) as entries:
                    yield entries
            else:
                with os.scandir(self._inside(path, stat.S_ISDIR)) as entries:
                    yield entries
        except (OSError, ValueError) as error:
            raise NotRead("unreadable") from error

    def _inside(self, path: str, is_wanted: object) -> str:
        """Where a path really leads, when that is inside the root: for systems that cannot open
        step by step.
        """
        full = os.path.join(self.root, *path.split("/")) if path else self.root
        if os.path.realpath(full) != os.path.normpath(full):
            raise NotRead("outside")
        if callable(is_wanted) and not is_wanted(os.lstat(full).st_mode):
            raise NotRead("not_a_file")
        return full

    def leads_outside(self, path: str) -> bool:
        """Whether a link leads out of the root, or nowhere."""
        try:
            target = os.path.realpath(os.path.join(self.root, *path.split("/")), strict=True)
        except (OSError, ValueError):
            return True
        return os.path.commonpath([self.root, target]) != self.root
