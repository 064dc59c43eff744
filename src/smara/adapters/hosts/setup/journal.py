"""What files looked like before ``smara setup`` changed them, so that they can be given back byte
for byte.

One entry per file: its bytes before (or that it was not there), their hash, the hash of
what was written, and the folders that were made for it. Private, and outside the repository.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Entry:
    """One file that was changed."""

    path: str
    before: bytes | None
    """``None`` when there was no such file."""
    written_hash: str
    made_folders: tuple[str, ...] = ()


class Journal:
    """The entries of one user, in a folder of their own."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find(self, path: str) -> Entry | None:
        """The entry of a file; ``None`` when there is none, or it was damaged since."""
        try:
            with open(self._place(path), "rb") as file:
                told = json.loads(file.read())
            before = (
                None if told["before"] is None else base64.b64decode(told["before"], validate=True)
            )
            if told["path"] != path or (
                before is not None and hash_of(before) != told["beforeHash"]
            ):
                return None
            return Entry(path, before, told["writtenHash"], made_folders=tuple(told["madeFolders"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, entry: Entry) -> None:
        """Keep an entry; on the disk before the file it speaks of is touched."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        told = {
            "path": entry.path,
            "before": None if entry.before is None else base64.b64encode(entry.before).decode(),
            "beforeHash": None if entry.before is None else hash_of(entry.before),
            "writtenHash": entry.written_hash,
            "madeFolders": list(entry.made_folders),
        }
        write_whole(self._place(entry.path), json.dumps(told).encode(), 0o600)

    def forget(self, path: str) -> None:
        """Drop an entry."""
        try:
            os.unlink(self._place(path))
        except FileNotFoundError:
            return

    def _place(self, path: str) -> str:
        name = path.encode("utf-8", "surrogateescape")
        return os.path.join(self._folder, f"{crc32(name):08x}{crc32(name, 1):08x}.json")


def hash_of(content: bytes) -> str:
    """How a content is known again."""
    return hashlib.sha256(content).hexdigest()


def write_whole(path: str, content: bytes, mode: int | None = None) -> None:
    """Write a file at one stroke; a file that was there keeps its permissions, a link stays a
    link.
    """
    real = os.path.realpath(path)
    hidden = f"{real}.smara-{os.getpid()}"
    if mode is None:
        mode = os.stat(real).st_mode & 0o7777 if os.path.exists(real) else 0o644
    file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(hidden, mode)
        os.replace(hidden, real)
    except BaseException:
        if os.path.exists(hidden):
            os.unlink(hidden)
        raise
