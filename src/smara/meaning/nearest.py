"""The rows nearest to a question, out of what a process keeps in memory of each shelf.

How a shelf is searched follows from its size alone; see ``tables``. A server with an index of its
own is asked instead. The last word is always an exact comparison of whole numbers, so that the same
vectors come in the same order on every machine and database; of equals the newer first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from smara.database.database import Database, Session
from smara.database.vectors import Shelf, cosines, decode
from smara.meaning.tables import Table, alike_by_signs, best_by_codes, best_by_signs

if TYPE_CHECKING:
    from smara.database.vectors import Block, Codes, Floats, Rows
    from smara.meaning.tables import Array

EXACT_UP_TO = 4_194_304
"""A shelf of so many numbers (16,384 vectors of 256) is kept whole and compared with everything:
under 5 ms.
"""
KEPT_UP_TO = 33_554_432
"""So many numbers (131,072 vectors of 256) a process keeps of a shelf that is asked for more than
once, for comparing some of them exactly; reading a thousand from the database takes 5 ms.
"""
_SPARE = 32


class Nearest:
    """Finds the nearest rows of shelves; keeps a table for each that was asked for."""

    def __init__(
        self, database: Database, exact_up_to: int = EXACT_UP_TO, kept_up_to: int = KEPT_UP_TO
    ) -> None:
        self._database = database
        self._exact_up_to = exact_up_to
        # Where a removal changes no stamp, what is in memory may be gone already: the database is
        # read then.
        self._kept_up_to = kept_up_to if database.vectors.stamps_removals else 0
        self._tables: dict[tuple[Shelf, bool], Table] = {}
        self._asked: set[Shelf] = set()
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def find(
        self,
        session: Session,
        shelf: Shelf,
        query: Floats,
        limit: int,
        among: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        """(row, cosine) of the nearest rows, best first; ``among`` restricts them to some."""
        if limit < 1:
            return []
        if among is not None:
            return self._ranked(self.scores(session, shelf, among, query), limit)
        return self._ranked(self._rescored(session, shelf, query, limit=limit), limit)

    def scores(
        self, session: Session, shelf: Shelf, rows: Sequence[int], query: Floats
    ) -> dict[int, float]:
        """The cosines of given rows, of those that have a vector."""
        found, codes = self.vectors(session, shelf, rows, dims=len(query))
        return dict(zip(found, cosines(codes, query).tolist(), strict=True)) if found else {}

    def vectors(
        self, session: Session, shelf: Shelf, rows: Sequence[int], dims: int
    ) -> tuple[list[int], Codes]:
        """The rows, of those given, that have a vector, and the vectors: from memory where they are
        kept.
        """
        if rows and self._database.vectors.stamps_removals and (shelf, True) in self._tables:
            numbers, kept = self._table(session, shelf, dims, is_whole=True).of(rows)
            return numbers.tolist(), kept
        found = self._database.vectors.by_rows(session, shelf, rows) if rows else {}
        found = {row: stored for row, stored in found.items() if len(stored) == dims}
        return list(found), decode(list(found.values()), dims)

    def bytes(self) -> int:
        """How much memory the tables take."""
        return sum(table.bytes for table in self._tables.values())

    def forget(self, space_no: int | None = None) -> None:
        """Drop the tables, of one space or of all."""
        with self._lock:
            self._tables = {
                key: table
                for key, table in self._tables.items()
                if space_no not in (None, key[0].space_no)
            }

    def _rescored(
        self, session: Session, shelf: Shelf, query: Floats, limit: int
    ) -> dict[int, float]:
        size = self._database.vectors.count(session, shelf)
        if not size:
            return {}
        numbers = size * len(query)
        if numbers <= self._exact_up_to:
            rows, codes = self._table(session, shelf, len(query), is_whole=True).snapshot()
            found: Sequence[int] = best_by_codes(rows, codes, query, limit=limit + _SPARE).tolist()
        else:
            found = self._of_many(session, shelf, query, limit=limit, numbers=numbers)
        return self.scores(session, shelf, found, query)

    def _of_many(
        self, session: Session, shelf: Shelf, query: Floats, limit: int, numbers: int
    ) -> Sequence[int]:
        """Rows of a large shelf among which the nearest are."""
        asked = self._database.vectors.nearest(session, shelf, query, limit)
        if asked is not None:
            return asked
        rows, signs = self._table(session, shelf, len(query), is_whole=False).snapshot()
        kept = self._kept(session, shelf, len(query), numbers)
        if kept is None:
            best = best_by_signs(rows, signs, query, limit=limit)
        else:
            best = best_by_codes(
                *kept.of(alike_by_signs(rows, signs, query, limit=limit)), query, limit + _SPARE
            )
        found: list[int] = best.tolist()
        return found

    def _kept(self, session: Session, shelf: Shelf, dims: int, numbers: int) -> Table | None:
        """The vectors of a shelf, in memory from the second question on; no longer when there are
        too many.
        """
        others = sum(
            table.bytes
            for (other, is_whole), table in self._tables.items()
            if is_whole and other != shelf
        )
        if numbers + others > self._kept_up_to:
            with self._lock:
                self._tables.pop((shelf, True), None)
            return None
        is_first = shelf not in self._asked
        self._asked.add(shelf)
        return None if is_first else self._table(session, shelf, dims, is_whole=True)

    def _table(self, session: Session, shelf: Shelf, dims: int, is_whole: bool) -> Table:
        """The table of a shelf as the database has it now."""
        import numpy as np

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
        import numpy as np

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

    @staticmethod
    def _ranked(scores: dict[int, float], limit: int) -> list[tuple[int, float]]:
        return sorted(scores.items(), key=lambda each: (-each[1], -each[0]))[:limit]
