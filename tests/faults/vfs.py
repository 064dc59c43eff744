"""Virtual file systems that fail, kill or forget, to be opened with ``smara.open(path,
vfs=name)``.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512
Before = Callable[[str, str], None]
"""Called with the operation (write, sync, truncate) and the file's name, before each of them."""


class Watched(apsw.VFS):
    """The normal file system, with a look at every write, sync and truncate before it happens."""

    def __init__(self, name: str, before: Before) -> None:
        self.before = before
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _WatchedFile:
        return _WatchedFile(self, name, flags)


class _WatchedFile(apsw.VFSFile):
    def __init__(self, vfs: Watched, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        self._name = plain_name(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._vfs.before("write", self._name)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._vfs.before("sync", self._name)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._vfs.before("truncate", self._name)
        super().xTruncate(size)


def plain_name(name: Any) -> str:
    """The file's name; temporary files have none."""
    return name.filename() if isinstance(name, apsw.URIFilename) else name or ""


class Faults:
    """Fails the n-th operation, once or from then on; counts when nothing is planned."""

    def __init__(self) -> None:
        self.calls = 0
        self.injected = 0
        self._at: int | None = None
        self._error: type[apsw.Error] = apsw.IOError
        self._is_persistent = False

    def plan(self, at: int, error: type[apsw.Error], is_persistent: bool) -> None:
        """Fail the ``at``-th operation from now (1 is the next)."""
        self.calls = self.injected = 0
        self._at, self._error, self._is_persistent = at, error, is_persistent

    def clear(self) -> None:
        """The disk is well again."""
        self.calls = self.injected = 0
        self._at = None

    def before(self, operation: str, name: str) -> None:
        self.calls += 1
        if (
            self._at is None
            or self.calls < self._at
            or (self.calls > self._at and not self._is_persistent)
        ):
            return
        self.injected += 1
        raise self._error(f"injected into {operation} of {os.path.basename(name)}")


@contextmanager
def failing(name: str) -> Iterator[Faults]:
    """A file system of this name whose operations can be made to fail."""
    faults = Faults()
    vfs = Watched(name, faults.before)
    try:
        yield faults
    finally:
        vfs.unregister()


class Killing(Watched):
    """A file system that kills this very process before its ``at``-th operation."""

    def __init__(self, name: str, at: int) -> None:
        self.calls = 0
        self._at = at
        super().__init__(name, self._count)

    def _count(self, operation: str, file: str) -> None:
        self.calls += 1
        if self.calls == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


class PowerLoss(apsw.VFS):
    """A disk with a cache that forgets: what was not synced may be there after a crash, in part, or
    not.

    The files behave normally while they are used. Beside each the durable picture of it is
    kept, brought up to date at every sync; :meth:`crash` writes what a machine would find.
    """

    def __init__(self, name: str) -> None:
        self.disks: dict[str, Disk] = {}
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _ForgettingFile:
        return _ForgettingFile(self, name, flags)

    def xDelete(self, name: str, sync_folder: bool) -> None:
        super().xDelete(name, sync_folder)
        self.disks.pop(name, None)

    def crash(self, folder: Path, rng: random.Random) -> None:
        """Write into ``folder`` what is left of every file after the power went out now."""
        for name, disk in self.disks.items():
            (folder / Path(name).name).write_bytes(disk.after_crash(rng))


class Disk:
    """What is certain of one file, and the writes since the last sync in their order."""

    def __init__(self, content: bytes = b"") -> None:
        self.durable = bytearray(content)
        self.pending: list[tuple[int, bytes] | int] = []

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, change)
        self.pending = []

    def after_crash(self, rng: random.Random) -> bytes:
        """The durable bytes with a random part of what was pending, in any order, one sector
        torn.
        """
        image = bytearray(self.durable)
        kept = [
            change for change in self.pending if rng.random() < rng.choice((0.1, 0.5, 0.9, 1.0))
        ]
        if rng.random() < 0.5:
            rng.shuffle(kept)
        torn = rng.randrange(len(kept)) if kept and rng.random() < 0.5 else -1
        for position, change in enumerate(kept):
            _apply(image, _torn(change, rng) if position == torn else change)
        return bytes(image)


def _torn(change: tuple[int, bytes] | int, rng: random.Random) -> tuple[int, bytes] | int:
    if isinstance(change, int):
        return change
    offset, data = change
    keep = rng.randrange(0, len(data) + 1)
    return offset, data[: keep - keep % SECTOR] if rng.random() < 0.5 else data[:keep]


def _apply(image: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        del image[change:]
        return
    offset, data = change
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


class _ForgettingFile(apsw.VFSFile):
    def __init__(self, vfs: PowerLoss, name: Any, flags: list[int]) -> None:
        path = plain_name(name)
        if path not in vfs.disks:
            # Reading a file that SQLite has open would drop its locks; this one is not open yet.
            vfs.disks[path] = Disk(Path(path).read_bytes() if os.path.exists(path) else b"")
        self._disk = vfs.disks[path]
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.pending.append((offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self._disk.pending.append(size)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._disk.sync()
