"""What both databases do alike with the vector tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from smara.database.database import Session
from smara.database.vectors import LAST_ROW, Block, Shelf, as_block, blocks_of, decode

if TYPE_CHECKING:
    from smara.database.vectors import Codes, Floats, Rows, VectorKind

_TABLES: dict[str, str] = {
    "message": "messages", "task": "tasks", "observation": "observations", "memory": "memories",
    "working": "working_memory", "code": "code_chunks",
}  # fmt: skip


def table_of(kind: VectorKind) -> str:
    """The table whose records a kind of vectors stands for."""
    return _TABLES[kind]


class TableVectors:
    """Vectors in tables: rows written and read, blocks made from them."""

    stamps_removals = False

    def put(self, session: Session, shelf: Shelf, records: Mapping[int, Sequence[bytes]]) -> None:
        if not records:
            return
        session.run_many(
            "DELETE FROM vectors WHERE no BETWEEN ? AND ?",
            [
                (shelf.base + first, shelf.base + last)
                for first, last in map(shelf.rows_of, sorted(records))
            ],
        )
        self._insert(session, shelf, _rows(shelf, records))
        self.remake(session, shelf, blocks_of(records))

    def remake(self, session: Session, shelf: Shelf, blocks: Sequence[int]) -> None:
        if blocks:
            stamp = _next_stamp(session, shelf)
            for block in blocks:
                _write_block(session, shelf, self.make_block(session, shelf, block, stamp=stamp))

    def blocks(self, session: Session, shelf: Shelf, after_stamp: int) -> list[Block]:
        found = session.all(
            "SELECT block, stamp, offsets, signs FROM vector_blocks WHERE shelf_no = ? AND stamp "
            "> ? ORDER BY stamp",
            (shelf.no, after_stamp),
        )
        return [
            Block(*row)
            if row[3] is not None
            else self.make_block(session, shelf, row[0], stamp=row[1])
            for row in found
        ]

    def count(self, session: Session, shelf: Shelf) -> int:
        row = session.one(
            "SELECT coalesce(sum(size), 0) FROM vector_blocks WHERE shelf_no = ?", (shelf.no,)
        )
        return int(row[0]) if row else 0

    def clear(self, session: Session, shelf: Shelf, limit: int) -> int:
        first, last = shelf.base, shelf.base + LAST_ROW
        taken = session.run(
            "DELETE FROM vectors WHERE no BETWEEN ? AND (SELECT max(n.no) FROM"
            " (SELECT no FROM vectors WHERE no BETWEEN ? AND ? ORDER BY no LIMIT ?) AS n)",
            (first, first, last, limit),
        )
        if taken < limit:
            session.run("DELETE FROM vector_blocks WHERE shelf_no = ?", (shelf.no,))
        return taken

    def nearest(
        self, session: Session, shelf: Shelf, query: Floats, limit: int
    ) -> list[int] | None:
        return None

    def make_index(self, session: Session, shelf: Shelf, dims: int) -> bool:
        return False

    def scan(
        self, session: Session, shelf: Shelf, first: int = 0, last: int = LAST_ROW
    ) -> tuple[Rows, Codes]:
        found = session.all(
            "SELECT no, vector FROM vectors WHERE no BETWEEN ? AND ? AND length(vector) > 0 ORDER "
            "BY no",
            (shelf.base + first, shelf.base + last),
        )
        return _as_arrays([no - shelf.base for no, _ in found], [stored for _, stored in found])

    def _insert(self, session: Session, shelf: Shelf, rows: Iterator[tuple[int, bytes]]) -> None:
        session.run_many(
            "INSERT INTO vectors (no, vector) VALUES (?, ?)",
            [(shelf.base + row, stored) for row, stored in rows],
        )

    def make_block(self, session: Session, shelf: Shelf, block: int, stamp: int = 0) -> Block:
        return as_block(
            shelf, block, stamp, *self.scan(session, shelf, *shelf.rows_of_block(block))
        )


def _rows(shelf: Shelf, records: Mapping[int, Sequence[bytes]]) -> Iterator[tuple[int, bytes]]:
    for no, pieces in sorted(records.items()):
        yield from enumerate(pieces, shelf.rows_of(no)[0])


def _next_stamp(session: Session, shelf: Shelf) -> int:
    """A stamp that no block of this space has yet; nobody else gets one until the transaction
    ends.
    """
    row = session.one(
        "UPDATE vector_fills SET stamp = stamp + 1 WHERE project_no = ? AND space_no = ? "
        "RETURNING stamp",
        (shelf.project_no, shelf.space_no),
    )
    return int(row[0]) if row else 0


def _write_block(session: Session, shelf: Shelf, block: Block) -> None:
    session.run(
        "INSERT INTO vector_blocks (shelf_no, block, stamp, size, offsets, signs)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (shelf_no, block) DO UPDATE"
        " SET stamp = excluded.stamp, size = excluded.size, offsets = excluded.offsets, signs = "
        "excluded.signs",
        (shelf.no, block.block, block.stamp, len(block.offsets) // 4, block.offsets, block.signs),
    )


def _as_arrays(rows: Sequence[int], stored: Sequence[bytes]) -> tuple[Rows, Codes]:
    """Rows and their vectors as arrays, also when there are none."""
    import numpy as np

    if not rows:
        return np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int8)
    return np.array(rows, dtype=np.int64), decode(stored, len(stored[0]))
