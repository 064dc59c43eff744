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
from smara.codegraph.index.files import TreeReader

MARK_BYTES = 4
MOST_LINES = 200
_SAMPLE = 64


class LineMark(NamedTuple):
    """A line that is not blank: its number and its mark."""

    number: int
    mark: bytes


def marked(data: bytes) -> list[LineMark]:
    """Return the lines of a file that are not blank."""
    return [
        LineMark(number, hashlib.blake2b(text, digest_size=MARK_BYTES).digest())
        for number, line in enumerate(data.split(b"\n"), 1)
        if (text := line.strip())
    ]


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
    before, now = split_marks(marks), {line.mark for line in lines}
    return sum(mark not in now for mark in before) / len(before) if before else 0.0


def find_run(marks: bytes, lines: Sequence[LineMark], near: int) -> tuple[int, int] | None:
    """Find the nearest run of lines with marks in order.

    Returns first and last line; blank lines are passed over.

    >>> find_run(lines_between(marked(b"a\\nb\\nc"), 2, 3), marked(b"new\\na\\n\\nb\\nc"), 2)
    (4, 5)
    """
    run = split_marks(marks)
    now = [line.mark for line in lines]
    starts = [
        at for at, mark in enumerate(now) if run[:1] == [mark] and now[at : at + len(run)] == run
    ]
    if not starts:
        return None
    best = min(starts, key=lambda at: abs(lines[at].number - near))
    return lines[best].number, lines[best + len(run) - 1].number


MOST_BYTES = 1_000_000
_MOST_CACHED = 256
_READ_FOR_A_PARSE = 8
"""To read a file and see that it is the one that was indexed costs a fraction of taking it
apart.
"""


class Disk:
    """The folder of a tree. Made again for each question.

    Its bound is for that question.
    """

    def __init__(
        self, root: str, most_files: int, cache: dict[tuple[str, int, int], tuple[CodePlace, ...]]
    ) -> None:
        self._reader = TreeReader(root)
        self._reads_left = _READ_FOR_A_PARSE * most_files
        self._parses_left = most_files
        self._cache = cache
        self._texts: dict[str, bytes | None] = {}
        self._lines: dict[str, list[LineMark] | None] = {}

    def stat(self, path: str) -> tuple[int, int] | None:
        """(size, mtime) of a regular file, or ``None``."""
        try:
            facts = os.lstat(os.path.join(self._reader.root, path))
        except (OSError, ValueError):
            return None
        return (facts.st_size, facts.st_mtime_ns) if stat.S_ISREG(facts.st_mode) else None

    def may_read(self, path: str) -> bool:
        """Return True if the bound allows to read one more file."""
        return path in self._texts or self._reads_left > 0

    def may_parse(self, path: str) -> bool:
        """Return True if the bound allows to take one more file apart."""
        return self._parses_left > 0 or self._key(path) in self._cache

    def read(self, path: str) -> bytes | None:
        """Return what is in a file.

        ``None`` when it cannot be read, is too large, or lies outside of the root.
        """
        if path not in self._texts:
            self._reads_left -= 1
            self._texts[path] = self._reader.find(path, MOST_BYTES)
        return self._texts[path]

    def lines(self, path: str) -> list[LineMark] | None:
        """Return the marked lines of a file, made once; see ``read``."""
        if path not in self._lines:
            data = self.read(path)
            self._lines[path] = None if data is None else marked(data)
        return self._lines[path]

    def places(self, path: str) -> Sequence[CodePlace]:
        """Return what a file defines now.

        Nothing where its language is not known.
        """
        if (key := self._key(path)) is None:
            return ()
        if key not in self._cache:
            data = self.read(path)
            self._parses_left -= 1
            if len(self._cache) >= _MOST_CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = places_of(path, data) if data is not None else ()
        return self._cache[key]

    def _key(self, path: str) -> tuple[str, int, int] | None:
        facts = self.stat(path)
        return None if facts is None else (os.path.join(self._reader.root, path), *facts)


def places_of(path: str, data: bytes) -> tuple[CodePlace, ...]:
    """Return what a file defines, by its text."""
    from smara.codegraph.index.workers import taken_apart

    facts = taken_apart(path, data, has_text=False).facts
    return tuple(
        CodePlace(
            path,
            each.qualname,
            each.first_line,
            last_line=each.last_line,
            hash=each.body_hash,
            sketch=each.sketch,
            name=each.name,
        )
        for each in (facts.definitions if facts is not None else ())
    )
