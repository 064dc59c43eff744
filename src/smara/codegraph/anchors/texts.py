"""Files and lines as marks: what is left of them can be told without keeping their text.

A mark is four bytes of a line without its indent. Lines that an anchor names are kept as all
their marks, in order; a file as the smallest 64 marks of its lines, which are a fair sample:
of 64, 16 that are no longer in the file mean that about a quarter of it differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

MARK_BYTES = 4
MOST_LINES = 200
_SAMPLE = 64


class Line(NamedTuple):
    """A line that is not blank: its number and its mark."""

    number: int
    mark: bytes


def marked(data: bytes) -> list[Line]:
    """The lines of a file that are not blank."""
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.strip()
        if text:
            found.append(Line(number, hashlib.blake2b(text, digest_size=MARK_BYTES).digest()))
    return found


def split_marks(marks: bytes) -> list[bytes]:
    return [marks[at : at + MARK_BYTES] for at in range(0, len(marks), MARK_BYTES)]


def lines_between(lines: Sequence[Line], first: int, last: int) -> bytes:
    """The marks of some lines, as they are kept."""
    return b"".join([line.mark for line in lines if first <= line.number <= last][:MOST_LINES])


def sample_of(lines: Sequence[Line]) -> bytes:
    """A file as a sample of its lines."""
    return b"".join(sorted({line.mark for line in lines})[:_SAMPLE])


def share_gone(marks: bytes, lines: Sequence[Line]) -> float:
    """Which share of what was marked is no longer among some lines.

    >>> before, after = marked(b"a\\nb\\nc\\nd\\n"), marked(b"a\\nb\\nc\\nx\\n")
    >>> share_gone(sample_of(before), after)
    0.25
    """
    wanted = split_marks(marks)
    there = {line.mark for line in lines}
    return sum(mark not in there for mark in wanted) / len(wanted) if wanted else 0.0


def find_run(marks: bytes, lines: Sequence[Line], near: int) -> tuple[int, int] | None:
    """The first and last line where marks stand in their order, the nearest to a line; blank lines
    are passed over.

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
