"""What a process keeps in memory of one shelf of vectors, and brings up to date a block at a time.

A small shelf is kept whole, one byte per dimension, and compared with everything. Of a large one
only the signs are kept, 32 bytes for 256 dimensions: they are compared in two rounds, and the best
thousand rows are then compared exactly. Their vectors are read from the database for that; a
process that asks more than once keeps those of a shelf of medium size, too.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smara.database.vectors import Codes, Floats, Rows

    Array = NDArray[Any]

FIRST_ROUND = 16_000
"""So many rows with the most signs in common go into the second round.

Of 493,396 sentences of real conversations, they hold 99.7 of the 100 x 50 that are really nearest.
"""
SECOND_ROUND = 1_000
"""So many of those are compared exactly; 99.4 of the 50 nearest, and all of the 10 nearest, are
among them.
"""
COMPARED = 4_000
"""So many rows with the most signs in common are compared by all their numbers where these are in
memory.
"""
_QUERY_BITS = 6
_STRIP = 8_192
_GONE = -1


class Table:
    """Rows and what is known of each, in blocks that can be replaced.

    A reader takes the arrays as they are and never waits: a block that changed is written behind
    the others, and its old rows are marked as gone.
    """

    def __init__(self, width: int, dtype: Any, is_by_column: bool) -> None:
        import numpy as np

        self._width, self._dtype, self._is_by_column = width, dtype, is_by_column
        self._places: dict[int, tuple[int, int]] = {}
        self._gone = 0
        self.size = 0
        self.rows: Rows = np.full(0, _GONE, dtype=np.int64)
        self.values: Array = self._empty(0)
        self.stamp = 0
        self.lock = threading.Lock()
        self._order: Array | None = None

    def __len__(self) -> int:
        return self.size - self._gone

    @property
    def bytes(self) -> int:
        return int(self.rows.nbytes + self.values.nbytes)

    def put(self, block: int, rows: Rows, values: Array) -> None:
        """Put a block in the place of what it was."""
        self._order = None
        start, length = self._places.get(block, (self.size, 0))
        if len(rows) != length and start + length != self.size:
            self.rows[start : start + length] = _GONE
            self._gone += length
            start = self.size
        end = start + len(rows)
        self._grow(end)
        self.values[start:end] = values
        self.rows[start:end] = rows
        if start + length == self.size:
            self.rows[end : self.size] = _GONE
            self.size = end
        elif start == self.size:
            self.size = end
        self._places[block] = (start, len(rows))
        if self._gone > max(4_096, self.size // 4):
            self._compact()

    def fill(self, blocks: Sequence[int], sizes: Sequence[int], rows: Rows, values: Array) -> None:
        """Put many blocks into an empty table at once."""
        self._order = None
        self._grow(len(rows))
        self.rows[: len(rows)], self.values[: len(rows)] = rows, values
        start = 0
        for block, size in zip(blocks, sizes, strict=True):
            self._places[block] = (start, size)
            start += size
        self.size = len(rows)

    def _empty(self, capacity: int) -> Array:
        import numpy as np

        if self._is_by_column:
            return np.zeros((self._width, capacity), dtype=self._dtype).T
        return np.zeros((capacity, self._width), dtype=self._dtype)

    def _grow(self, wanted: int) -> None:
        import numpy as np

        if wanted <= len(self.rows):
            return
        capacity = max(256, wanted + wanted // 8)
        rows, values = np.full(capacity, _GONE, dtype=np.int64), self._empty(capacity)
        rows[: self.size], values[: self.size] = self.rows[: self.size], self.values[: self.size]
        self.rows, self.values = rows, values

    def _compact(self) -> None:
        """Close the gaps, in new arrays: somebody may be reading the old ones."""
        before_rows, before, places = self.rows, self.values, self._places
        fresh = Table(self._width, self._dtype, self._is_by_column)
        fresh._grow(len(self))
        for block, (start, length) in places.items():
            fresh.put(block, before_rows[start : start + length], before[start : start + length])
        self.rows, self.values, self._places = fresh.rows, fresh.values, fresh._places
        self.size, self._gone = fresh.size, 0

    def of(self, wanted: Sequence[int] | Rows) -> tuple[Rows, Array]:
        """Of the rows that are wanted those that are here, in order, and their values."""
        import numpy as np

        with self.lock:
            rows, values = self.rows[: self.size], self.values[: self.size]
            if (
                self._order is None
            ):  # nearly in order as they are, so that this costs next to nothing
                self._order = np.argsort(rows, kind="stable")
            order = self._order
        asked = np.sort(np.asarray(wanted, dtype=np.int64))
        asked = asked[np.diff(asked, prepend=-2) != 0]
        places = np.searchsorted(rows, asked, sorter=order)
        places = (
            order[np.minimum(places, len(order) - 1)] if len(order) else np.zeros(0, dtype=np.int64)
        )
        here = places[rows[places] == asked] if len(places) else places
        return rows[here], values[here]

    def snapshot(self) -> tuple[Rows, Array]:
        """The rows and their values at this moment, those that are gone among them."""
        with self.lock:
            return self.rows[: self.size], self.values[: self.size]


def best_by_codes(rows: Rows, codes: Codes, query: Floats, limit: int) -> Rows:
    """The rows whose vectors are nearest, in no order."""
    from smara.database.vectors import rough_cosines

    scores = rough_cosines(codes, query)
    scores[rows == _GONE] = float("-inf")
    return _best(rows, scores, limit)


def best_by_signs(rows: Rows, signs: Array, query: Floats, limit: int) -> Rows:
    """The rows whose signs promise to be nearest, in no order: two rounds, by signs alone and
    weighed by the query.
    """
    columns = signs.T
    first = _alike(rows, columns, query, count=max(FIRST_ROUND, limit * 16))
    scores = _weighed(columns[:, first], query)
    return _best(rows[first], scores, max(SECOND_ROUND, limit * 5))


def alike_by_signs(rows: Rows, signs: Array, query: Floats, limit: int) -> Rows:
    """The rows with the most signs in common, in no order: enough for all of the nearest to be
    among them.
    """
    return rows[_alike(rows, signs.T, query, count=max(COMPARED, limit * 16))]


def _alike(rows: Rows, columns: Array, query: Floats, count: int) -> Array:
    import numpy as np

    apart = _differences(columns, _words(query > 0))
    within = np.searchsorted(np.cumsum(np.bincount(apart)), count)
    first = np.flatnonzero(apart <= within)
    return first[rows[first] != _GONE]  # type: ignore[no-any-return]


def _differences(columns: Array, query: Array) -> Array:
    """In how many dimensions the signs differ."""
    import numpy as np

    return _counted(columns, query, np.bitwise_xor)


def _weighed(columns: Array, query: Floats) -> Array:
    """The sum of the query's numbers where a vector is positive.

    They are rounded to whole numbers of 6 bits, so that each of the bits is one more comparison of
    signs.
    """
    import numpy as np

    largest = (1 << _QUERY_BITS - 1) - 1
    whole = np.rint(query / max(float(np.abs(query).max()), 1e-9) * largest).astype(np.int64)
    scores = np.zeros(columns.shape[1], dtype=np.int32)
    for bit in range(_QUERY_BITS):
        weight = (
            -(1 << bit) if bit == _QUERY_BITS - 1 else 1 << bit
        )  # two's complement: the last bit is the sign
        scores += weight * _counted(
            columns, _words((whole >> bit & 1).astype(bool)), np.bitwise_and
        ).astype(np.int32)
    return scores


def _counted(columns: Array, query: Array, compare: Any) -> Array:
    """How many bits of each row are set after the comparison, in strips that stay in the
    processor's cache.

    The strips have their places once and for all: asking for new ones each time would cost more
    than the comparing.
    """
    import numpy as np

    counts = np.zeros(columns.shape[1], dtype=np.uint16)
    words, bits = np.empty(_STRIP, dtype=np.uint64), np.empty(_STRIP, dtype=np.uint8)
    for start in range(0, len(counts), _STRIP):
        strip = counts[start : start + _STRIP]
        some, few = words[: len(strip)], bits[: len(strip)]
        for word, column in zip(query, columns, strict=True):
            compare(column[start : start + _STRIP], word, out=some)
            np.bitwise_count(some, out=few)
            strip += few
    return counts


def _words(flags: Array) -> Array:
    import numpy as np

    packed = np.packbits(flags)
    return np.pad(packed, (0, -len(packed) % 8)).view(np.uint64)


def _best(rows: Rows, scores: Array, limit: int) -> Rows:
    """The rows with the highest scores; all that are equal to the last are in, so that the order of
    rows is nothing.
    """
    import numpy as np

    found = rows
    if len(rows) > limit:
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        found = rows[scores >= least]
    alive: Rows = found[found != _GONE]
    return alive
