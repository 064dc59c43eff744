"""Vectors on PostgreSQL, with an index of the server where the extension ``vector`` is installed.

Who makes vectors never waits for who writes records: what somebody holds is passed over, and comes again. That
is also what keeps the two from waiting for each other for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from smara.database.database import Session
from smara.database.vectors import BLOCK_BITS, LAST_ROW, Shelf, blocks_of, sign_bits, vector_code
from smara.database.vectors_tables import TableVectors, table_of

INDEXED_FROM = 50_000
"""A shelf of so many vectors gets an index of the server; a smaller one is as quickly compared with everything."""
_CANDIDATES = 1_000


class PostgresVectors(TableVectors):
    """Rows that are locked are skipped; lists go as arrays."""

    def __init__(self, indexed_from: int = INDEXED_FROM) -> None:
        self._indexed_from = indexed_from

    def free(self, session: Session, shelf: Shelf, records: Iterable[int]) -> tuple[set[int], set[int]]:
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
        statement = "SELECT block FROM vector_blocks WHERE shelf_no = ? AND block = ANY(?::bigint[])"
        values = (shelf.no, list(blocks))
        ours = {row[0] for row in session.all(f"{statement} FOR UPDATE SKIP LOCKED", values)}
        return {row[0] for row in session.all(statement, values)} - ours

    def settle(self, session: Session, shelf: Shelf, entries: Sequence[tuple[int, int, int]]) -> set[int]:
        if not entries:
            return set()
        spaces, numbers, stamps = (list(column) for column in zip(*entries, strict=True))
        rows = session.all(
            "WITH done AS (SELECT q.space_no, q.no FROM embedding_queue q"
            " JOIN unnest(?::bigint[], ?::bigint[], ?::bigint[]) AS w (space_no, no, stamp)"
            " ON q.space_no = w.space_no AND q.no = w.no AND q.stamp = w.stamp"
            " WHERE q.project_no = ? AND q.kind = ? FOR UPDATE OF q SKIP LOCKED)"
            " DELETE FROM embedding_queue e USING done"
            " WHERE e.project_no = ? AND e.kind = ? AND e.space_no = done.space_no AND e.no = done.no RETURNING e.no",
            (spaces, numbers, stamps, *(shelf.project_no, vector_code(shelf.kind)) * 2),
        )
        return {row[0] for row in rows}

    def by_rows(self, session: Session, shelf: Shelf, rows: Sequence[int]) -> dict[int, bytes]:
        found = session.all(
            "SELECT no, vector FROM vectors WHERE no = ANY(?::bigint[])", ([shelf.base + row for row in rows],)
        )
        return {no - shelf.base: bytes(stored) for no, stored in found if stored}

    def nearest(self, session: Session, shelf: Shelf, signs: bytes, dims: int, limit: int) -> list[int] | None:
        where = self._extension(session)
        if where is None or not self._has_index(session, shelf):
            return None
        wanted = max(_CANDIDATES, limit)
        session.all("SELECT set_config('hnsw.ef_search', ?, false)", (str(min(1_000, wanted)),))
        statement = (
            f"SELECT no FROM vectors WHERE {_on_shelf(shelf)} AND signs IS NOT NULL"
            f" ORDER BY (signs::bit({int(dims)})) OPERATOR({where}.<~>) ?::bit({int(dims)}) LIMIT ?"
        )
        return [row[0] - shelf.base for row in session.all(statement, (sign_bits(signs, dims), wanted))]

    def make_index(self, session: Session, shelf: Shelf, dims: int) -> bool:
        where = self._extension(session)
        if where is None or self.count(session, shelf) < self._indexed_from or self._has_index(session, shelf):
            return False
        name = _index_name(shelf)
        session.run(f"DROP INDEX IF EXISTS {name}")  # what an interrupted attempt left behind
        statement = (
            f"CREATE INDEX CONCURRENTLY {name} ON vectors USING hnsw"
            f" ((signs::bit({int(dims)})) {where}.bit_hamming_ops) WHERE {_on_shelf(shelf)} AND signs IS NOT NULL"
        )
        session.run(statement)
        return True

    def clear(self, session: Session, shelf: Shelf, limit: int) -> int:
        taken = super().clear(session, shelf, limit)
        if taken < limit:
            name = _index_name(shelf)
            session.run(f"DROP INDEX IF EXISTS {name}")
        return taken

    def _insert(self, session: Session, shelf: Shelf, rows: Iterator[tuple[int, bytes]]) -> None:
        is_indexed = self._extension(session) is not None
        session.run_many(
            "INSERT INTO vectors (no, vector, signs) VALUES (?, ?, ?::varbit)",
            [
                (shelf.base + row, stored, sign_bits_of(stored) if is_indexed and stored else None)
                for row, stored in rows
            ],
        )

    def _extension(self, session: Session) -> str | None:
        """The schema in which the extension is installed, quoted; ``None`` where it is not."""
        row = session.one(
            "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
            " WHERE e.extname = 'vector'"
        )
        return str(row[0]) if row else None

    def _has_index(self, session: Session, shelf: Shelf) -> bool:
        row = session.one(
            "SELECT 1 FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_namespace n"
            " ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = ? AND i.indisvalid",
            (_index_name(shelf),),
        )
        return row is not None


def _index_name(shelf: Shelf) -> str:
    return f"vectors_near_{shelf.no}"


def _on_shelf(shelf: Shelf) -> str:
    """The shelf as a condition without values, which is what an index can be made and found for."""
    return f"no BETWEEN {shelf.base} AND {shelf.base + LAST_ROW}"


def sign_bits_of(stored: bytes) -> str:
    """The signs of a stored vector as PostgreSQL reads bits.

    >>> sign_bits_of(bytes([1, 255, 0, 127]))
    '1001'
    """
    return "".join(["1" if 0 < byte < 128 else "0" for byte in stored])
