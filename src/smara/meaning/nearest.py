"""Find the rows nearest to a query vector in memory.

A small shelf of vectors is kept whole, one byte per dimension. Of a large one only the signs are
kept, 32 bytes for 256 dimensions: they are compared in two rounds, then the best thousand rows are
compared exactly. The last comparison is in whole numbers, so that every machine and database gives
the same order; of equals the newer comes first. It loads numpy: a question with a vector imports
this module.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smara.database.database import Database, Session
from smara.database.vectors import Shelf, as_floats, cosines, decode, rough_cosines
from smara.meaning.arithmetic import EXACT_UP_TO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smara.database.vectors import Block, Codes, Floats, Numbers, Rows

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
    """Rows with values, in blocks that can be replaced.

    A reader takes the arrays as they are and never waits: a block that changed is written behind
    the others, and its old rows are marked as gone.
    """

    def __init__(self, width: int, dtype: Any, is_by_column: bool) -> None:
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
            # The gaps are closed in new arrays: the old ones may be in use.
            fresh = Table(self._width, self._dtype, self._is_by_column)
            fresh._grow(len(self))
            for number, (first, count) in self._places.items():
                of_block = slice(first, first + count)
                fresh.put(number, self.rows[of_block], self.values[of_block])
            self.rows, self.values, self._places = fresh.rows, fresh.values, fresh._places
            self.size, self._gone = fresh.size, 0

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
        if self._is_by_column:
            return np.zeros((self._width, capacity), dtype=self._dtype).T
        return np.zeros((capacity, self._width), dtype=self._dtype)

    def _grow(self, size: int) -> None:
        if size <= len(self.rows):
            return
        capacity = max(256, size + size // 8)
        rows, values = np.full(capacity, _GONE, dtype=np.int64), self._empty(capacity)
        rows[: self.size], values[: self.size] = self.rows[: self.size], self.values[: self.size]
        self.rows, self.values = rows, values

    def of(self, numbers: Sequence[int] | Rows) -> tuple[Rows, Array]:
        """Return which of some rows are here, in order, with values."""
        with self.lock:
            rows, values = self.rows[: self.size], self.values[: self.size]
            if self._order is None:
                # Nearly in order as they are, so that this costs next to nothing.
                self._order = np.argsort(rows, kind="stable")
            order = self._order
        # Not by np.unique, which loads the module of masked arrays: 20 ms of a first answer.
        distinct = np.sort(np.asarray(numbers, dtype=np.int64))
        distinct = distinct[np.append(True, distinct[1:] != distinct[:-1])[: len(distinct)]]
        places = np.searchsorted(rows, distinct, sorter=order)
        places = (
            order[np.minimum(places, len(order) - 1)] if len(order) else np.zeros(0, dtype=np.int64)
        )
        here = places[rows[places] == distinct] if len(places) else places
        return rows[here], values[here]

    def snapshot(self) -> tuple[Rows, Array]:
        """Return all rows and values now, removed ones included."""
        with self.lock:
            return self.rows[: self.size], self.values[: self.size]


def best_by_codes(rows: Rows, codes: Codes, query: Floats, limit: int) -> Rows:
    """The rows whose vectors are nearest, in no order."""
    scores = rough_cosines(codes, query)
    scores[rows == _GONE] = float("-inf")
    return _best(rows, scores, limit)


def best_by_signs(rows: Rows, signs: Array, query: Floats, limit: int) -> Rows:
    """Return rows likely nearest by signs, unordered.

    Two rounds: by signs alone, then by the sum of the query's numbers where a vector is positive.
    Those are rounded to whole numbers of 6 bits, so that each of the bits is one more comparison
    of signs.
    """
    first = _alike(rows, signs.T, query, count=max(FIRST_ROUND, limit * 16))
    columns = signs.T[:, first]
    largest = (1 << _QUERY_BITS - 1) - 1
    whole = np.rint(query / max(float(np.abs(query).max()), 1e-9) * largest).astype(np.int64)
    scores = np.zeros(columns.shape[1], dtype=np.int32)
    for bit in range(_QUERY_BITS):
        # Two's complement: the last bit is the sign.
        weight = -(1 << bit) if bit == _QUERY_BITS - 1 else 1 << bit
        words = _words((whole >> bit & 1).astype(bool))
        scores += weight * _counted(columns, words, np.bitwise_and).astype(np.int32)
    return _best(rows[first], scores, max(SECOND_ROUND, limit * 5))


def _alike(rows: Rows, columns: Array, query: Floats, count: int) -> Array:
    apart = _counted(columns, _words(query > 0), np.bitwise_xor)  # how many signs differ
    within = np.searchsorted(np.cumsum(np.bincount(apart)), count)
    first = np.flatnonzero(apart <= within)
    return first[rows[first] != _GONE]  # type: ignore[no-any-return]


def _counted(columns: Array, query: Array, compare: Any) -> Array:
    """How many bits of each row are set after the comparison, in strips that stay in the
    processor's cache.

    The strips have their places once and for all: asking for new ones each time would cost more
    than the comparing.
    """
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
    packed = np.packbits(flags)
    return np.pad(packed, (0, -len(packed) % 8)).view(np.uint64)


def _best(rows: Rows, scores: Array, limit: int) -> Rows:
    """The rows with the highest scores; all that are equal to the last are in, so that the order of
    rows is nothing.
    """
    found = rows
    if len(rows) > limit:
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        found = rows[scores >= least]
    alive: Rows = found[found != _GONE]
    return alive


KEPT_UP_TO = 33_554_432
"""So many numbers (131,072 vectors of 256) a process keeps of a shelf that is asked for more than
once, for comparing some of them exactly; reading a thousand from the database takes 5 ms.
"""
_SPARE = 32


class Nearest:
    """A finder of nearest rows, with a table per shelf."""

    def __init__(
        self, database: Database, exact_up_to: int = EXACT_UP_TO, kept_up_to: int = KEPT_UP_TO
    ) -> None:
        self._database = database
        self._exact_up_to = exact_up_to
        # Where a removal changes no stamp, what is in memory may be gone already: the database is
        # read then.
        self._kept_up_to = kept_up_to if database.vectors.stamps_removals else 0
        self._tables: dict[tuple[Shelf, bool], Table] = {}
        self._queried: set[Shelf] = set()
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def find(
        self,
        session: Session,
        shelf: Shelf,
        query: Numbers,
        limit: int,
        among: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        """Return (row, cosine) of the nearest rows, best first.

        ``among`` restricts them to some.
        """
        if limit < 1:
            return []
        query = as_floats(query)
        if among is None:
            among = self._candidates(session, shelf, query, limit)
        scores = self.scores(session, shelf, among, query)
        return sorted(scores.items(), key=lambda each: (-each[1], -each[0]))[:limit]

    def _candidates(
        self, session: Session, shelf: Shelf, query: Floats, limit: int
    ) -> Sequence[int]:
        dims = len(query)
        numbers = self._database.vectors.count(session, shelf) * dims
        if not numbers:
            return []
        if numbers <= self._exact_up_to:
            rows, codes = self._table(session, shelf, dims, is_whole=True).snapshot()
            return best_by_codes(rows, codes, query, limit=limit + _SPARE).tolist()  # type: ignore[no-any-return]
        near = self._database.vectors.nearest(session, shelf, query, limit)
        if near is not None:
            return near
        # The vectors of a shelf are in memory from the second question on; no longer when there
        # are too many.
        others = sum(
            table.rows.nbytes + table.values.nbytes
            for (other, is_whole), table in self._tables.items()
            if is_whole and other != shelf
        )
        is_whole_in_memory = shelf in self._queried
        if numbers + others > self._kept_up_to:
            is_whole_in_memory = False
            with self._lock:
                self._tables.pop((shelf, True), None)
        else:
            self._queried.add(shelf)
        rows, signs = self._table(session, shelf, dims, is_whole=False).snapshot()
        if not is_whole_in_memory:
            return best_by_signs(rows, signs, query, limit=limit).tolist()  # type: ignore[no-any-return]
        alike = rows[_alike(rows, signs.T, query, count=max(COMPARED, limit * 16))]
        whole = self._table(session, shelf, dims, is_whole=True)
        return best_by_codes(*whole.of(alike), query, limit + _SPARE).tolist()  # type: ignore[no-any-return]

    def scores(
        self, session: Session, shelf: Shelf, rows: Sequence[int], query: Floats
    ) -> dict[int, float]:
        """The cosines of given rows, of those that have a vector."""
        found, codes = self.vectors(session, shelf, rows, dims=len(query))
        return dict(zip(found, cosines(codes, query).tolist(), strict=True)) if found else {}

    def vectors(
        self, session: Session, shelf: Shelf, rows: Sequence[int], dims: int
    ) -> tuple[list[int], Codes]:
        """Return which rows have vectors, and the vectors."""
        if rows and self._database.vectors.stamps_removals and (shelf, True) in self._tables:
            numbers, codes = self._table(session, shelf, dims, is_whole=True).of(rows)
            return numbers.tolist(), codes
        found = self._database.vectors.by_rows(session, shelf, rows) if rows else {}
        found = {row: stored for row, stored in found.items() if len(stored) == dims}
        return list(found), decode(list(found.values()), dims)

    def bytes(self) -> int:
        """Return the memory that tables take."""
        return sum(each.rows.nbytes + each.values.nbytes for each in self._tables.values())

    def forget(self, space_no: int | None = None) -> None:
        """Drop the tables, of one space or of all."""
        with self._lock:
            self._tables = {
                key: table
                for key, table in self._tables.items()
                if space_no not in (None, key[0].space_no)
            }

    def _table(self, session: Session, shelf: Shelf, dims: int, is_whole: bool) -> Table:
        """The table of a shelf as the database has it now."""
        if (
            self._pid != os.getpid()
        ):  # a lock that another thread held at the fork would never be given back
            self._tables, self._pid, self._lock = {}, os.getpid(), threading.Lock()
        with self._lock:
            table = self._tables.get((shelf, is_whole))
            if table is None:
                table = (
                    Table(dims, np.int8, False)
                    if is_whole
                    else Table(-(-dims // 64), np.uint64, True)
                )
                self._tables[shelf, is_whole] = table
        with table.lock:
            blocks = self._database.vectors.blocks(session, shelf, table.stamp)
            if not blocks:
                return table
            if table.size == 0:
                table.fill(
                    [each.block for each in blocks],
                    *self._read(session, shelf, blocks, dims, is_whole),
                )
            else:
                for each in blocks:
                    _, rows, values = self._read(session, shelf, [each], dims, is_whole)
                    table.put(each.block, rows, values)
            table.stamp = max(table.stamp, blocks[-1].stamp)
        return table

    def _read(
        self, session: Session, shelf: Shelf, blocks: Sequence[Block], dims: int, is_whole: bool
    ) -> tuple[Sequence[int], Rows, Array]:
        """The sizes of blocks, their rows, and of each row its vector or its signs."""
        if not is_whole:
            sizes = [len(each.offsets) // 4 for each in blocks]
            firsts = np.repeat([shelf.rows_of_block(each.block)[0] for each in blocks], sizes)
            offsets = np.frombuffer(b"".join(each.offsets for each in blocks), dtype=np.uint32)
            signs = np.frombuffer(b"".join(each.signs for each in blocks), dtype=np.uint64)
            return sizes, (firsts + offsets).astype(np.int64), signs.reshape(-1, -(-dims // 64))
        found = [
            self._database.vectors.scan(session, shelf, *shelf.rows_of_block(each.block))
            for each in blocks
        ]
        rows = np.concatenate([rows for rows, _ in found])
        return (
            [len(rows) for rows, _ in found],
            rows,
            np.concatenate([codes.reshape(-1, dims) for _, codes in found]),
        )
