"""Vectors on PostgreSQL, with an index of the server where the extension ``vector`` is installed.

Who makes vectors never waits for who writes records: what somebody holds is passed over, and comes
again. That is also what keeps the two from waiting for each other for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from smara.database.database import Session
from smara.database.vectors import BLOCK_BITS, LAST_ROW, Shelf, blocks_of, vector_code
from smara.database.vectors_tables import TableVectors, table_of

if TYPE_CHECKING:
    from smara.database.vectors import Floats

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
        """Blocks in which somebody is removing a record at this moment; the others are ours."""
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
