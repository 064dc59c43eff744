"""The files of the tree that asks, as they are on the disk at this moment.

Reading is bounded: so many files, each of so many bytes, for one question. What is over the
bound is not read and counts as not known. Nothing outside the root is read, whatever a path
or a link says. What was read of a file is kept until the file changes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from smara.codegraph.anchors.models import Place
from smara.codegraph.anchors.texts import Line, marked
from smara.codegraph.reading import NotRead, TreeReader

MOST_BYTES = 1_000_000
_MOST_KEPT = 256
_READ_FOR_A_PARSE = 8
"""To read a file and see that it is the one that was indexed costs a fraction of taking it
apart.
"""


class Disk:
    """The folder of a tree. Made anew for each question: its bound is for that question."""

    def __init__(
        self, root: str, most_files: int, kept: dict[tuple[str, int, int], tuple[Place, ...]]
    ) -> None:
        self._reader = TreeReader(root)
        self._real_root = self._reader.root
        self._reads_left = _READ_FOR_A_PARSE * most_files
        self._parses_left = most_files
        self._kept = kept
        self._texts: dict[str, bytes | None] = {}

    def stat(self, path: str) -> tuple[int, int] | None:
        """(size, mtime) of a regular file, ``None`` when there is none."""
        try:
            found = os.lstat(self._at(path))
        except (OSError, ValueError):
            return None
        return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None

    def may_read(self, path: str) -> bool:
        """Whether the bound allows to read one more file."""
        return path in self._texts or self._reads_left > 0

    def may_parse(self, path: str) -> bool:
        """Whether the bound allows to take one more file apart."""
        return self._parses_left > 0 or self._key(path) in self._kept

    def read(self, path: str) -> bytes | None:
        """What is in a file; ``None`` when it cannot be read, is too large, or lies outside of the
        root.
        """
        if path in self._texts:
            return self._texts[path]
        self._reads_left -= 1
        self._texts[path] = data = self._read(path)
        return data

    def _read(self, path: str) -> bytes | None:
        try:
            return self._reader.read(path, MOST_BYTES).data
        except NotRead:
            return None

    def _at(self, path: str) -> str:
        return os.path.join(self._real_root, path)

    def lines(self, path: str) -> list[Line] | None:
        data = self.read(path)
        return None if data is None else marked(data)

    def places(self, path: str) -> Sequence[Place]:
        """What a file defines now; nothing where its language is not known."""
        key = self._key(path)
        if key is None:
            return ()
        if key not in self._kept:
            data = self.read(path)
            self._parses_left -= 1
            if len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = places_of(path, data) if data is not None else ()
        return self._kept[key]

    def _key(self, path: str) -> tuple[str, int, int] | None:
        known = self.stat(path)
        return None if known is None else (self._at(path), *known)


def places_of(path: str, data: bytes) -> tuple[Place, ...]:
    """What a file defines, by its text."""
    from smara.codegraph.work import taken_apart

    facts = taken_apart(path, data, has_text=False).facts
    return (
        ()
        if facts is None
        else tuple(
            Place(
                path,
                each.qualname,
                each.first_line,
                last_line=each.last_line,
                hash=each.body_hash,
                sketch=each.sketch,
                name=each.name,
            )
            for each in facts.definitions
        )
    )
