"""Compare stored vectors with a question in whole numbers, without numpy.

A command asks once and ends, and loading numpy takes it longer than all that it would compute. The
products of one dimension are computed for all rows at once: as the digits of one large integer
that is multiplied by the question's number. The cosines are those of ``database.vectors.cosines``
to the last bit, so it makes no difference which of the two a process uses.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smara.database.database import Database, Session
    from smara.database.vectors import Numbers, Shelf

EXACT_UP_TO = 4_194_304
"""A shelf of so many numbers (16,384 vectors of 256) is compared with everything: in 5 ms with
numpy, in 30 without.
"""
SCALE = 2**20
_OFFSET = bytes((code + 128) % 256 for code in range(256))
_SQUARES = [((code + 128) % 256 - 128) ** 2 for code in range(256)]
_LOW, _HIGH = bytes(each % 256 for each in _SQUARES), bytes(each // 256 for each in _SQUARES)
_MOST_DIMS = 256
_AT_ONCE = 4_096


class PlainNearest:
    """A finder of nearest rows that keeps nothing in memory."""

    def __init__(self, database: Database) -> None:
        self._vectors = database.vectors

    def can_compare(self, session: Session, shelf: Shelf, dims: int) -> bool:
        """Return True if a shelf is small enough to be compared here."""
        return dims <= _MOST_DIMS and self._vectors.count(session, shelf) * dims <= EXACT_UP_TO

    def find(
        self,
        session: Session,
        shelf: Shelf,
        query: Numbers,
        limit: int,
        among: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        """Return (row, cosine) of the nearest rows, best first.

        Of equals the newer comes first. ``among`` restricts them to some.
        """
        if among is None:
            numbers, stored = self._vectors.stored(session, shelf)
            base = shelf.base
            rows: Sequence[int] = [number - base for number in numbers]
        else:
            rows, stored = self.vectors(session, shelf, among, dims=len(query))
        scores = plain_cosines(stored, query)
        least = sorted(scores, reverse=True)[: max(limit, 0)][-1:]
        best = [each for each in zip(rows, scores, strict=True) if least and each[1] >= least[0]]
        return sorted(best, key=lambda each: (-each[1], -each[0]))[:limit]

    def vectors(
        self, session: Session, shelf: Shelf, rows: Sequence[int], dims: int
    ) -> tuple[list[int], list[bytes]]:
        """Return which rows have vectors, and the vectors."""
        found = self._vectors.by_rows(session, shelf, rows) if rows else {}
        found = {row: stored for row, stored in found.items() if len(stored) == dims}
        return list(found), list(found.values())


def plain_cosines(stored: Sequence[bytes], query: Numbers) -> list[float]:
    """Return the cosine of each vector with a unit query."""
    whole = [round(float(number) * SCALE) for number in query]
    length = float(sum(number * number for number in whole))
    scores: list[float] = []
    for start in range(0, len(stored), _AT_ONCE):
        data = b"".join(stored[start : start + _AT_ONCE])
        pairs = zip(_products(data, whole), _squares(data, len(whole)), strict=True)
        scores += [product / max(math.sqrt(square * length), 1.0) for product, square in pairs]
    return scores


def _products(data: bytes, whole: Sequence[int]) -> list[int]:
    """The scalar product of each vector with a question.

    A byte stands for -128 to 127 and is made positive by 128, so that no digit borrows from its
    neighbor; the positive and the negative numbers of the question are added up apart. A digit has
    ``width`` bytes, so that every width-th vector is taken at a time. Two vectors (1, -2) and
    (3, 4) with the question (5, 6): 5 x [129, 131] + 6 x [126, 132] = [1401, 1447], less
    128 x (5 + 6) is [-7, 39].
    """
    dims, count = len(whole), len(data) // len(whole)
    above = sum(each for each in whole if each > 0)
    width = -(-(255 * max(above, above - sum(whole), 1)).bit_length() // 8)
    digits = -(-count // width)
    mask = int.from_bytes((b"\xff" + bytes(width - 1)) * digits, "little")
    shifted = data.translate(_OFFSET)
    halves = [[0] * width, [0] * width]
    for place, factor in enumerate(whole):
        if factor:
            column = int.from_bytes(shifted[place::dims], "little")
            totals = halves[factor < 0]
            for turn in range(width):
                totals[turn] += abs(factor) * (column >> 8 * turn & mask)
    positive, negative = (_digits(totals, digits) for totals in halves)
    offset = 128 * sum(whole)
    return [
        more - less - offset for more, less in zip(positive[:count], negative[:count], strict=True)
    ]


def _digits(totals: Sequence[int], digits: int) -> list[int]:
    """The digits of interleaved integers, in the order of the vectors."""
    width = len(totals)
    found = bytearray(8 * width * digits)
    for turn, total in enumerate(totals):
        parts = total.to_bytes(width * digits, "little")
        for place in range(width):
            found[8 * turn + place :: 8 * width] = parts[place::width]
    return memoryview(found).cast("Q").tolist()


def _squares(data: bytes, dims: int) -> list[int]:
    """The sum of the squares of each vector.

    Adler-32 begins with 1 and adds bytes, modulo 65,521: more than 256 bytes can have. Nothing
    else in the standard library adds bytes as fast.
    """
    low, high, added = data.translate(_LOW), data.translate(_HIGH), zlib.adler32
    return [
        (added(low[start : start + dims]) & 0xFFFF)
        - 1
        + 256 * ((added(high[start : start + dims]) & 0xFFFF) - 1)
        for start in range(0, len(data), dims)
    ]
