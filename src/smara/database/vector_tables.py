"""Store and read vectors in the tables of either database.

`TableVectors` does what both share. PostgreSQL uses an index of the extension `vector`
where it is installed; SQLite has one writer at a time and needs no locks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from smara.database.database import Session
from smara.database.vectors import (
    BLOCK_BITS,
    LAST_ROW,
    Block,
    Shelf,
    as_block,
    blocks_of,
    decode,
    vector_code,
)

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
            # A stamp that no block of this space has yet; no other writer gets one until the
            # transaction ends.
            row = session.one(
                "UPDATE vector_fills SET stamp = stamp + 1 WHERE project_no = ? AND space_no = ? "
                "RETURNING stamp",
                (shelf.project_no, shelf.space_no),
            )
            stamp = int(row[0]) if row else 0
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


class SqliteVectors(TableVectors):
    """Rows asked for by a JSON list, in one statement."""

    stamps_removals = True

    def free(
        self, session: Session, shelf: Shelf, records: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        table = table_of(shelf.kind)
        statement = (
            f"SELECT no FROM {table} WHERE project_no = ? AND no IN (SELECT value FROM "
            "json_each(?))"
        )
        rows = session.all(statement, (shelf.project_no, json.dumps(list(records))))
        return {row[0] for row in rows}, set()

    def settle(
        self, session: Session, shelf: Shelf, entries: Sequence[tuple[int, int, int]]
    ) -> set[int]:
        taken = set()
        for space_no, no, stamp in entries:
            if session.run(
                "DELETE FROM embedding_queue"
                " WHERE project_no = ? AND space_no = ? AND kind = ? AND no = ? AND stamp = ?",
                (shelf.project_no, space_no, vector_code(shelf.kind), no, stamp),
            ):
                taken.add(no)
        return taken

    def by_rows(self, session: Session, shelf: Shelf, rows: Sequence[int]) -> dict[int, bytes]:
        # In the order of the table, in which neighbors lie on the same page.
        wanted = json.dumps([shelf.base + row for row in sorted(rows)])
        found = session.all(
            "SELECT v.no, v.vector FROM json_each(?) AS wanted CROSS JOIN vectors v ON v.no = "
            "wanted.value",
            (wanted,),
        )
        return {no - shelf.base: stored for no, stored in found if stored}


INDEXED_FROM = 200_000
"""A shelf of so many vectors gets an index of the server; by signs a smaller one is searched as
fast, missing less.
"""
_LOOKED_AT = 400
"""How many vectors the index looks at closely: of 100,000 real sentences it then finds 99.3 of the
100 x 10 nearest.
"""
_CANDIDATES = 200


class PostgresVectors(TableVectors):
    """Rows that are locked are skipped; lists go as arrays."""

    def __init__(self, indexed_from: int = INDEXED_FROM) -> None:
        self._indexed_from = indexed_from

    def free(
        self, session: Session, shelf: Shelf, records: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        wanted = sorted(records)
        held = self._held_blocks(session, shelf, blocks_of(wanted))
        table = table_of(shelf.kind)
        statement = f"SELECT no FROM {table} WHERE project_no = ? AND no = ANY(?::bigint[])"
        values = (shelf.project_no, wanted)
        there = {row[0] for row in session.all(f"{statement} FOR KEY SHARE SKIP LOCKED", values)}
        busy = {row[0] for row in session.all(statement, values)} - there
        busy |= {no for no in wanted if no >> BLOCK_BITS in held}
        return there - busy, busy

    def _held_blocks(self, session: Session, shelf: Shelf, blocks: Sequence[int]) -> set[int]:
        """Return blocks in which another transaction removes a record."""
        statement = (
            "SELECT block FROM vector_blocks WHERE shelf_no = ? AND block = ANY(?::bigint[])"
        )
        values = (shelf.no, list(blocks))
        ours = {row[0] for row in session.all(f"{statement} FOR UPDATE SKIP LOCKED", values)}
        return {row[0] for row in session.all(statement, values)} - ours

    def settle(
        self, session: Session, shelf: Shelf, entries: Sequence[tuple[int, int, int]]
    ) -> set[int]:
        if not entries:
            return set()
        spaces, numbers, stamps = (list(column) for column in zip(*entries, strict=True))
        rows = session.all(
            "WITH done AS (SELECT q.space_no, q.no FROM embedding_queue q"
            " JOIN unnest(?::bigint[], ?::bigint[], ?::bigint[]) AS w (space_no, no, stamp)"
            " ON q.space_no = w.space_no AND q.no = w.no AND q.stamp = w.stamp"
            " WHERE q.project_no = ? AND q.kind = ? FOR UPDATE OF q SKIP LOCKED)"
            " DELETE FROM embedding_queue e USING done"
            " WHERE e.project_no = ? AND e.kind = ? AND e.space_no = done.space_no AND e.no = "
            "done.no RETURNING e.no",
            (spaces, numbers, stamps, *(shelf.project_no, vector_code(shelf.kind)) * 2),
        )
        return {row[0] for row in rows}

    def by_rows(self, session: Session, shelf: Shelf, rows: Sequence[int]) -> dict[int, bytes]:
        found = session.all(
            "SELECT no, vector FROM vectors WHERE no = ANY(?::bigint[])",
            ([shelf.base + row for row in rows],),
        )
        return {no - shelf.base: bytes(stored) for no, stored in found if stored}

    def nearest(
        self, session: Session, shelf: Shelf, query: Floats, limit: int
    ) -> list[int] | None:
        where = self._extension(session)
        if where is None or not self._has_index(session, shelf):
            return None
        session.all(
            "SELECT set_config('hnsw.ef_search', ?, false)",
            (str(min(1_000, max(_LOOKED_AT, 2 * limit))),),
        )
        form = f"{where}.halfvec({len(query)})"
        statement = (
            f"SELECT no FROM vectors WHERE {_on_shelf(shelf)}"
            f" ORDER BY (vector_of(vector)::{form}) OPERATOR({where}.<=>) ?::{form} LIMIT ?"
        )
        asked = "[" + ",".join(f"{number:.6g}" for number in query.tolist()) + "]"
        return [
            row[0] - shelf.base
            for row in session.all(statement, (asked, max(_CANDIDATES, 2 * limit)))
        ]

    def make_index(self, session: Session, shelf: Shelf, dims: int) -> bool:
        where = self._extension(session)
        if (
            where is None
            or self.count(session, shelf) < self._indexed_from
            or self._has_index(session, shelf)
        ):
            return False
        # The index keeps its own copy of the vectors in the form it needs; the table has no column
        # of it, so that it is the same with and without the extension.
        function = (
            f"CREATE OR REPLACE FUNCTION vector_of(stored BYTEA) RETURNS {where}.halfvec"
            " LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$"
            " SELECT array_agg(((get_byte(stored, i) + 128) % 256 - 128)::real ORDER BY "
            f"i)::{where}.halfvec"
            " FROM generate_series(0, length(stored) - 1) AS i $$"
        )
        session.run(function)
        name = _index_name(shelf)
        session.run(f"DROP INDEX IF EXISTS {name}")  # what an interrupted attempt left behind
        statement = (
            f"CREATE INDEX CONCURRENTLY {name} ON vectors USING hnsw"
            f" ((vector_of(vector)::{where}.halfvec({int(dims)})) {where}.halfvec_cosine_ops) "
            f"WHERE {_on_shelf(shelf)}"
        )
        session.run(statement)
        return True

    def clear(self, session: Session, shelf: Shelf, limit: int) -> int:
        taken = super().clear(session, shelf, limit)
        if taken < limit:
            name = _index_name(shelf)
            session.run(f"DROP INDEX IF EXISTS {name}")
        return taken

    def _extension(self, session: Session) -> str | None:
        """The schema in which the extension is installed, quoted; ``None`` where it is not."""
        row = session.one(
            "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = "
            "e.extnamespace"
            " WHERE e.extname = 'vector'"
        )
        return str(row[0]) if row else None

    def _has_index(self, session: Session, shelf: Shelf) -> bool:
        row = session.one(
            "SELECT 1 FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_namespace n"
            " ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = ? AND "
            "i.indisvalid",
            (_index_name(shelf),),
        )
        return row is not None


def _index_name(shelf: Shelf) -> str:
    return f"vectors_near_{shelf.no}"


def _on_shelf(shelf: Shelf) -> str:
    """The shelf as a condition without values, which is what an index can be made and found for."""
    return f"no BETWEEN {shelf.base} AND {shelf.base + LAST_ROW}"
