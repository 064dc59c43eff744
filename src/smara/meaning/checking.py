"""Looking after the vectors: do they belong to records, has every record its own, do the blocks
agree.
"""

from __future__ import annotations

from smara.database.database import Session
from smara.database.vectors import BLOCK_BITS, LAST_ROW, VECTOR_KINDS, VectorKind, vector_code
from smara.database.vectors_tables import table_of
from smara.meaning.models import Space
from smara.meaning.store import VectorStore


class Checking:
    """Compares the vectors of a project with its records."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    def problems(self, session: Session) -> list[str]:
        """What is wrong, a sentence each."""
        found: list[str] = []
        for space in self._store.spaces(session):
            for kind in VECTOR_KINDS:
                found += self._of_shelf(session, space, kind)
        return found

    def mend(self, session: Session) -> int:
        """Take away vectors of nothing, put what lacks its vector into the queue, make wrong blocks
        again.
        """
        mended = 0
        for space in self._store.spaces(session):
            for kind in VECTOR_KINDS:
                orphans = self.orphans(session, space, kind)
                missing = self.missing(session, space, kind)
                self._store.enqueue(session, space.no, kind, numbers=missing)
                blocks = self.wrong_blocks(session, space, kind)
                shelf = self._store.shelf(session, space.no, kind)
                self._store.database.vectors.put(session, shelf, dict.fromkeys(orphans, ()))
                self._store.database.vectors.remake(session, shelf, blocks)
                mended += len(orphans) + len(missing) + len(blocks)
        return mended

    def _of_shelf(self, session: Session, space: Space, kind: VectorKind) -> list[str]:
        found = []
        orphans = len(self.orphans(session, space, kind))
        if orphans:
            found.append(f"{orphans} vectors of {space.model_id} belong to no {kind} any more.")
        missing = len(self.missing(session, space, kind))
        if missing:
            found.append(
                f"{missing} records ({kind}) have no vector of {space.model_id}, and none is on "
                "its way."
            )
        wrong = len(self.wrong_blocks(session, space, kind))
        if wrong:
            found.append(
                f"{wrong} blocks of signs of {space.model_id} ({kind}) do not agree with their "
                "vectors."
            )
        return found

    def orphans(self, session: Session, space: Space, kind: VectorKind) -> list[int]:
        """Numbers of records that are gone and still have vectors."""
        shelf, table = self._store.shelf(session, space.no, kind), table_of(kind)
        statement = (
            f"SELECT DISTINCT (v.no - ?) >> {int(shelf.record_bits)} FROM vectors v WHERE v.no "
            "BETWEEN ? AND ?"
            f" AND NOT EXISTS (SELECT 1 FROM {table} r WHERE r.project_no = :project"
            f" AND r.no = (v.no - ?) >> {int(shelf.record_bits)})"
        )
        values = (shelf.base, shelf.base, shelf.base + LAST_ROW, shelf.base)
        return [int(row[0]) for row in session.all(self._store.sql(statement), values)]

    def missing(self, session: Session, space: Space, kind: VectorKind) -> list[int]:
        """Numbers of records without a vector that nothing will come by: not the walk, not the
        queue, no failure.
        """
        if space.state != "ready":
            return []
        shelf, table, code = (
            self._store.shelf(session, space.no, kind),
            table_of(kind),
            vector_code(kind),
        )
        statement = (
            f"SELECT r.no FROM {table} r WHERE r.project_no = :project"
            " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.no = ? + (r.no << "
            f"{int(shelf.record_bits)}))"
            " AND NOT EXISTS (SELECT 1 FROM embedding_queue q WHERE q.project_no = r.project_no"
            " AND q.space_no IN (0, ?) AND q.kind = ? AND q.no = r.no)"
            " AND NOT EXISTS (SELECT 1 FROM embedding_failures f WHERE f.project_no = r.project_no"
            " AND f.space_no = ? AND f.kind = ? AND f.no = r.no)"
            " AND NOT EXISTS (SELECT 1 FROM vector_walks w WHERE w.project_no = r.project_no"
            " AND w.space_no = ? AND w.kind = ? AND w.is_done = 0 AND w.walked_no > r.no)"
        )
        rows = session.all(self._store.sql(statement), (shelf.base, *(space.no, code) * 3))
        return [int(row[0]) for row in rows]

    def wrong_blocks(self, session: Session, space: Space, kind: VectorKind) -> list[int]:
        """Blocks that do not hold the signs of exactly the vectors that lie in them."""
        shelf, vectors = self._store.shelf(session, space.no, kind), self._store.database.vectors
        kept = {block.block: block for block in vectors.blocks(session, shelf, -1)}
        needed = {
            row >> shelf.record_bits >> BLOCK_BITS
            for row in vectors.scan(session, shelf)[0].tolist()
        }
        wrong = [block for block in needed if block not in kept]
        for block in kept.values():
            made = vectors.make_block(session, shelf, block.block)
            if (made.offsets, made.signs) != (block.offsets, block.signs):
                wrong.append(block.block)
        return sorted(wrong)
