"""Read a tree's files from disk now, as marks of their lines.

A mark is four bytes of a line without its indent, so that lines are recognized without storing
their text. Reading is bounded in files and bytes; beyond the bound a file counts as not known.
Nothing outside the root is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from smara.codegraph.anchors.models import CodePlace
from smara.codegraph.index.files import NotRead, TreeReader

MARK_BYTES = 4
MOST_LINES = 200
_SAMPLE = 64


class LineMark(NamedTuple):
    """A line that is not blank: its number and its mark."""

    number: int
    mark: bytes


def marked(data: bytes) -> list[LineMark]:
    """Return the lines of a file that are not blank."""
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.strip()
        if text:
            found.append(LineMark(number, hashlib.blake2b(text, digest_size=MARK_BYTES).digest()))
    return found


def split_marks(marks: bytes) -> list[bytes]:
    return [marks[at : at + MARK_BYTES] for at in range(0, len(marks), MARK_BYTES)]


def lines_between(lines: Sequence[LineMark], first: int, last: int) -> bytes:
    """Return the marks of some lines, as they are kept."""
    return b"".join([line.mark for line in lines if first <= line.number <= last][:MOST_LINES])


def sample_of(lines: Sequence[LineMark]) -> bytes:
    """Return a file as a sample of its lines."""
    return b"".join(sorted({line.mark for line in lines})[:_SAMPLE])


def share_gone(marks: bytes, lines: Sequence[LineMark]) -> float:
    """Return the share of marked lines that is gone.

    >>> before, after = marked(b"a\\nb\\nc\\nd\\n"), marked(b"a\\nb\\nc\\nx\\n")
    >>> share_gone(sample_of(before), after)
    0.25
    """
    wanted = split_marks(marks)
    there = {line.mark for line in lines}
    return sum(mark not in there for mark in wanted) / len(wanted) if wanted else 0.0


def find_run(marks: bytes, lines: Sequence[LineMark], near: int) -> tuple[int, int] | None:
    """Find the nearest run of lines with marks in order.

    Returns first and last line; blank lines are passed over.

    >>> find_run(lines_between(marked(b"a\\nb\\nc"), 2, 3), marked(b"new\\na\\n\\nb\\nc"), 2)
    (4, 5)
    """
    wanted = split_marks(marks)
    if not wanted:
        return None
    have = [line.mark for line in lines]
    starts = [
        at
        for at, mark in enumerate(have)
        if mark == wanted[0] and have[at : at + len(wanted)] == wanted
    ]
    if not starts:
        return None
    best = min(starts, key=lambda at: abs(lines[at].number - near))
    return lines[best].number, lines[best + len(wanted) - 1].number


MOST_BYTES = 1_000_000
_MOST_KEPT = 256
_READ_FOR_A_PARSE = 8
"""To read a file and see that it is the one that was indexed costs a fraction of taking it
apart.
"""


class Disk:
    """The folder of a tree. Made again for each question.

    Its bound is for that question.
    """

    def __init__(
        self, root: str, most_files: int, kept: dict[tuple[str, int, int], tuple[CodePlace, ...]]
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
        """Return True if the bound allows to read one more file."""
        return path in self._texts or self._reads_left > 0

    def may_parse(self, path: str) -> bool:
        """Return True if the bound allows to take one more file apart."""
        return self._parses_left > 0 or self._key(path) in self._kept

    def read(self, path: str) -> bytes | None:
        """Return what is in a file.

        ``None`` when it cannot be read, is too large, or lies outside of the root.
        """
        if path in self._texts:
            return self._texts[path]
        self._reads_left -= 1
        try:
            self._texts[path] = self._reader.read(path, MOST_BYTES).data
        except NotRead:
            self._texts[path] = None
        return self._texts[path]

    def _at(self, path: str) -> str:
        return os.path.join(self._real_root, path)

    def lines(self, path: str) -> list[LineMark] | None:
        data = self.read(path)
        return None if data is None else marked(data)

    def places(self, path: str) -> Sequence[CodePlace]:
        """Return what a file defines now.

        Nothing where its language is not known.
        """
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


def places_of(path: str, data: bytes) -> tuple[CodePlace, ...]:
    """Return what a file defines, by its text."""
    from smara.codegraph.index.index_file import taken_apart

    facts = taken_apart(path, data, has_text=False).facts
    return (
        ()
        if facts is None
        else tuple(
            CodePlace(
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
