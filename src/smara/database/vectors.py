"""Store vectors per space, project and kind; find them by row.

`TableVectors` does what both databases share. PostgreSQL uses an index of the extension
`vector` where it is installed; SQLite has one writer at a time and needs no locks. numpy is
imported only where arrays are made.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

from smara.core.startup.record import dataclass
from smara.database.fulltext import CHUNK_BITS
from smara.database.session import Session, number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Codes = NDArray[np.int8]
    Floats = NDArray[np.float32]
    Rows = NDArray[np.int64]
    Numbers = Floats | array[float]

VectorKind = Literal["message", "task", "observation", "memory", "working", "code"]
VECTOR_KINDS: tuple[VectorKind, ...] = get_args(VectorKind)
ROW_BITS = 47
LAST_ROW = (1 << ROW_BITS) - 1
_SIGNS = bytes(b"01"[0 < code < 128] for code in range(256))
BLOCK_BITS = 8
"""A block holds the signs of 256 records, whatever their number of rows."""


def vector_code(kind: VectorKind) -> int:
    """Return the number of a kind in the tables and migrations."""
    return VECTOR_KINDS.index(kind) + 1


def vector_kind(code: int) -> VectorKind:
    """The kind that a number stands for."""
    return VECTOR_KINDS[code - 1]


@dataclass(frozen=True, slots=True)
class Shelf:
    """A shelf of vectors: one space, project and kind.

    Number 0 is a shelf with nothing on it.
    """

    no: int
    space_no: int
    project_no: int
    kind: VectorKind

    @property
    def base(self) -> int:
        """The offset from a row to its vector's global number."""
        return self.no << ROW_BITS

    @property
    def index_name(self) -> str:
        """The name of a server's index of this shelf."""
        return f"vectors_near_{self.no}"

    @property
    def condition(self) -> str:
        """The shelf as a condition without values, as an index needs it."""
        return (
            f"project_no = {int(self.project_no)}"
            f" AND no BETWEEN {self.base} AND {self.base + LAST_ROW}"
        )

    @property
    def record_bits(self) -> int:
        """The bits for pieces: a long message has several rows."""
        return CHUNK_BITS if self.kind == "message" else 0

    def rows_of(self, no: int) -> tuple[int, int]:
        """The first and the last row that a record may have.

        >>> Shelf(1, 1, 1, "message").rows_of(2), Shelf(1, 1, 1, "task").rows_of(2)
        ((131072, 196607), (2, 2))
        """
        return no << self.record_bits, ((no + 1) << self.record_bits) - 1

    def rows_of_block(self, block: int) -> tuple[int, int]:
        """The first and the last row that a block may hold."""
        return self.rows_of(block << BLOCK_BITS)[0], self.rows_of(((block + 1) << BLOCK_BITS) - 1)[
            1
        ]


class Block(NamedTuple):
    """The sign bits of the vectors of 256 records.

    Its number, its stamp, rows from its first on, and 8 signs per byte.
    """

    block: int
    stamp: int
    offsets: bytes
    signs: bytes


def encode(vectors: Floats) -> list[bytes]:
    """Vectors as they are stored; no bytes for one without a direction."""
    import numpy as np

    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    codes = np.rint(scaled * 127).astype(np.int8)
    return [
        row.tobytes() if some else b"" for row, some in zip(codes, largest[:, 0] > 0, strict=True)
    ]


def decode(stored: Sequence[bytes], dims: int) -> Codes:
    """Stored vectors as one array; all must have a direction."""
    import numpy as np

    return np.frombuffer(b"".join(stored), dtype=np.int8).reshape(-1, dims)


def as_floats(values: Numbers) -> Floats:
    """Return numbers as an array; an array stays as it is."""
    import numpy as np

    return np.asarray(values, dtype=np.float32)


def cosines(codes: Codes, query: Floats) -> NDArray[np.float64]:
    """The cosine of each stored vector with a query of length 1.

    The query is rounded to whole numbers too, and whole numbers are added without an error in any
    order: the same vectors have the same cosine wherever they are compared.
    """
    import numpy as np

    whole = np.rint(query.astype(np.float64) * 2**20)
    floats = codes.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", floats, floats) * float(whole @ whole))
    found: NDArray[np.float64] = np.einsum("ij,j->i", floats, whole) / np.maximum(lengths, 1.0)
    return found


def rough_cosines(codes: Codes, query: Floats) -> Floats:
    """Return many cosines quickly, not exact in the last digits."""
    import numpy as np

    found = np.empty(len(codes), dtype=np.float32)
    # Pieces that stay in the processor's cache, and too small for BLAS to hand to other threads:
    # waiting for those costs ten times the work.
    step = max(1, 131_072 // max(1, codes.shape[1]))
    for start in range(0, len(codes), step):
        part = codes[start : start + step].astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", part, part))
        np.divide(part @ query, np.maximum(lengths, 1.0), out=found[start : start + step])
    return found


def signs_of(codes: Codes) -> NDArray[Any]:
    """Return one sign bit per dimension, padded to 64-bit words."""
    import numpy as np

    packed = np.packbits(codes > 0, axis=1)
    width = -(-codes.shape[1] // 64) * 8
    return np.pad(packed, ((0, 0), (0, width - packed.shape[1])))


def stored_signs(stored: Sequence[bytes]) -> bytes:
    """Return the signs of stored vectors, one after the other.

    A command that checks them, and has no other use for numpy, does not load it.
    """
    if not stored:
        return b""
    if "numpy" in sys.modules:
        return signs_of(decode(stored, len(stored[0]))).tobytes()
    width = -(-len(stored[0]) // 64) * 8
    bits = (each.translate(_SIGNS).ljust(8 * width, b"0") for each in stored)
    return b"".join(int(each, 2).to_bytes(width, "big") for each in bits)


def blocks_of(numbers: Iterable[int]) -> list[int]:
    """The blocks that records lie in, each once."""
    return sorted({no >> BLOCK_BITS for no in numbers})


TABLES: dict[VectorKind, str] = {
    "message": "messages", "task": "tasks", "observation": "observations", "memory": "memories",
    "working": "working_memory", "code": "code_chunks",
}  # fmt: skip
"""The table whose records a kind of vectors stands for."""


class TableVectors:
    """Vectors in tables: rows written and read, blocks made from them."""

    stamps_removals: ClassVar[bool] = False
    """Whether a block has a new stamp as soon as one of its records is removed."""
    in_project: ClassVar[str] = ""
    """A condition for rows ``v`` of a table that is divided by project."""

    def put(self, session: Session, shelf: Shelf, records: Mapping[int, Sequence[bytes]]) -> None:
        """Replace the vectors of whole records; none removes them.

        Part of the caller's transaction, which must be the only one that writes to this shelf.
        """
        if not records:
            return
        wall = self._wall(shelf)
        session.run_many(
            f"DELETE FROM vectors AS v WHERE v.no BETWEEN ? AND ?{wall}",
            [
                (shelf.base + first, shelf.base + last)
                for first, last in map(shelf.rows_of, sorted(records))
            ],
        )
        session.run_many(
            self._INSERT,
            [
                (shelf.base + row, stored, *((shelf.project_no,) if wall else ()))
                for no, pieces in sorted(records.items())
                for row, stored in enumerate(pieces, shelf.rows_of(no)[0])
            ],
        )
        self.remake(session, shelf, blocks_of(records))

    def remake(self, session: Session, shelf: Shelf, blocks: Sequence[int]) -> None:
        """Make blocks again from the vectors, and write them."""
        if not blocks:
            return
        # A stamp that no block of this space has yet; no other writer gets one until the
        # transaction ends.
        stamp = number(
            session,
            "UPDATE vector_fills SET stamp = stamp + 1 WHERE project_no = ? AND space_no = ? "
            "RETURNING stamp",
            (shelf.project_no, shelf.space_no),
        )
        for place in blocks:
            block = self.make_block(session, shelf, place, stamp=stamp)
            session.run(
                "INSERT INTO vector_blocks (shelf_no, block, stamp, size, offsets, signs)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (shelf_no, block) DO UPDATE SET stamp ="
                " excluded.stamp, size = excluded.size, offsets = excluded.offsets,"
                " signs = excluded.signs",
                (shelf.no, *block[:2], len(block.offsets) // 4, block.offsets, block.signs),
            )

    def blocks(self, session: Session, shelf: Shelf, after_stamp: int) -> list[Block]:
        """The blocks that have changed since, in the order of their stamps."""
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
        """Count the vectors on a shelf."""
        return number(
            session,
            "SELECT coalesce(sum(size), 0) FROM vector_blocks WHERE shelf_no = ?",
            (shelf.no,),
        )

    def clear(self, session: Session, shelf: Shelf, limit: int) -> int:
        """Remove up to ``limit`` vectors; return how many.

        The blocks go with the last.
        """
        first, last, wall = shelf.base, shelf.base + LAST_ROW, self._wall(shelf)
        taken = session.run(
            "DELETE FROM vectors AS v WHERE v.no BETWEEN ? AND (SELECT max(n.no) FROM"
            f" (SELECT v.no FROM vectors v WHERE v.no BETWEEN ? AND ?{wall} ORDER BY v.no LIMIT ?)"
            f" AS n){wall}",
            (first, first, last, limit),
        )
        if taken < limit:
            session.run("DELETE FROM vector_blocks WHERE shelf_no = ?", (shelf.no,))
        return taken

    def nearest(
        self, session: Session, shelf: Shelf, query: Floats, limit: int
    ) -> list[int] | None:
        """Return rows near a vector from a server index, or ``None``.

        Some more than asked for.
        """
        return None

    def make_index(self, database: Any, shelf: Shelf, dims: int) -> bool:
        """Create a server index for a large shelf; return True if made."""
        return False

    def scan(
        self, session: Session, shelf: Shelf, first: int = 0, last: int = LAST_ROW
    ) -> tuple[Rows, Codes]:
        """Return all vectors within a range of rows, in order."""
        import numpy as np

        numbers, stored = self.stored(session, shelf, first, last)
        if not numbers:
            return np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int8)
        return np.array(numbers, dtype=np.int64) - shelf.base, decode(stored, len(stored[0]))

    def stored(
        self, session: Session, shelf: Shelf, first: int = 0, last: int = LAST_ROW
    ) -> tuple[Sequence[int], Sequence[bytes]]:
        """Return the numbers and bytes of vectors, in order.

        The number of a vector is its row and the ``base`` of the shelf.
        """
        found = session.all(
            f"SELECT v.no, v.vector FROM vectors v WHERE v.no BETWEEN ? AND ?{self._wall(shelf)}"
            " AND length(v.vector) > 0 ORDER BY v.no",
            (shelf.base + first, shelf.base + last),
        )
        numbers, stored = zip(*found, strict=True) if found else ((), ())
        return numbers, stored

    def erase(self, session: Session, shelf: Shelf) -> None:
        """Remove a shelf's vectors and blocks at once."""
        session.run("DELETE FROM vector_blocks WHERE shelf_no = ?", (shelf.no,))
        session.run(
            f"DELETE FROM vectors AS v WHERE v.no BETWEEN ? AND ?{self._wall(shelf)}",
            (shelf.base, shelf.base + LAST_ROW),
        )

    def of_record(self, session: Session, shelf: Shelf, no: int) -> list[bytes]:
        """Return the vectors of one record, piece by piece."""
        first, last = shelf.rows_of(no)
        rows = session.all(
            f"SELECT v.vector FROM vectors v WHERE v.no BETWEEN ? AND ?{self._wall(shelf)}"
            " ORDER BY v.no",
            (shelf.base + first, shelf.base + last),
        )
        return [bytes(row[0]) for row in rows]

    _INSERT: ClassVar[str] = "INSERT INTO vectors (no, vector) VALUES (?, ?)"

    def _wall(self, shelf: Shelf) -> str:
        """The condition that names the project of a shelf, so that its part alone is read."""
        return self.in_project.replace(":project", str(int(shelf.project_no)))

    def make_block(self, session: Session, shelf: Shelf, block: int, stamp: int = 0) -> Block:
        """Compute a block from its vectors without writing."""
        first, last = shelf.rows_of_block(block)
        numbers, stored = self.stored(session, shelf, first, last)
        begin = shelf.base + first
        offsets = array("I", [number - begin for number in numbers]).tobytes()
        return Block(block, stamp, offsets, signs=stored_signs(stored))


class SqliteVectors(TableVectors):
    """Rows asked for by a JSON list, in one statement."""

    stamps_removals = True

    def free(
        self, session: Session, shelf: Shelf, records: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        """Return which records are locked here, and which are being removed."""
        statement = (
            f"SELECT no FROM {TABLES[shelf.kind]} WHERE project_no = ?"
            " AND no IN (SELECT value FROM json_each(?))"
        )
        rows = session.all(statement, (shelf.project_no, json.dumps(list(records))))
        return {row[0] for row in rows}, set()

    def settle(
        self, session: Session, shelf: Shelf, entries: Sequence[tuple[int, int, int]]
    ) -> set[int]:
        """Dequeue (space, record, stamp), except requeued ones; return the records."""
        return {
            no
            for space_no, no, stamp in entries
            if session.run(
                "DELETE FROM embedding_queue"
                " WHERE project_no = ? AND space_no = ? AND kind = ? AND no = ? AND stamp = ?",
                (shelf.project_no, space_no, vector_code(shelf.kind), no, stamp),
            )
        }

    def by_rows(self, session: Session, shelf: Shelf, rows: Sequence[int]) -> dict[int, bytes]:
        """The vectors of rows, of those that have one."""
        # In the order of the table, in which neighbors lie on the same page.
        found = session.all(
            "SELECT v.no, v.vector FROM json_each(?) AS place CROSS JOIN vectors v ON v.no = "
            "place.value",
            (json.dumps([shelf.base + row for row in sorted(rows)]),),
        )
        return {no - shelf.base: stored for no, stored in found if stored}


def _divide(
    session: Session, statement: str, values: Sequence[Any], lock: str
) -> tuple[set[int], set[int]]:
    """Lock the rows that no other transaction has; return these and the others."""
    ours = {row[0] for row in session.all(f"{statement} {lock} SKIP LOCKED", values)}
    return ours, {row[0] for row in session.all(statement, values)} - ours


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

    in_project = " AND v.project_no = :project"
    _INSERT = "INSERT INTO vectors (no, vector, project_no) VALUES (?, ?, ?)"

    def __init__(self, indexed_from: int = INDEXED_FROM) -> None:
        self._indexed_from = indexed_from

    def free(
        self, session: Session, shelf: Shelf, records: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        numbers = sorted(records)
        # Blocks in which another transaction removes a record are locked.
        _, locked_blocks = _divide(
            session,
            "SELECT block FROM vector_blocks WHERE shelf_no = ? AND block = ANY(?::bigint[])",
            (shelf.no, blocks_of(numbers)),
            "FOR UPDATE",
        )
        there, busy = _divide(
            session,
            f"SELECT no FROM {TABLES[shelf.kind]} WHERE project_no = ? AND no = ANY(?::bigint[])",
            (shelf.project_no, numbers),
            "FOR KEY SHARE",
        )
        busy |= {no for no in numbers if no >> BLOCK_BITS in locked_blocks}
        return there - busy, busy

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
            "SELECT v.no, v.vector FROM vectors v WHERE v.no = ANY(?::bigint[])"
            f"{self._wall(shelf)}",
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
            "SELECT set_config('hnsw.ef_search', ?, true)",
            (str(min(1_000, max(_LOOKED_AT, 2 * limit))),),
        )
        form = f"{where}.halfvec({len(query)})"
        statement = (
            f"SELECT no FROM vectors WHERE {shelf.condition}"
            f" ORDER BY (vector_of(vector)::{form}) OPERATOR({where}.<=>) ?::{form} LIMIT ?"
        )
        vector = "[" + ",".join(f"{number:.6g}" for number in query.tolist()) + "]"
        rows = session.all(statement, (vector, max(_CANDIDATES, 2 * limit)))
        return [row[0] - shelf.base for row in rows]

    def make_index(self, database: Any, shelf: Shelf, dims: int) -> bool:
        with database.read() as session:
            where = self._extension(session)
            if (
                where is None
                or self.count(session, shelf) < self._indexed_from
                or self._has_index(session, shelf)
            ):
                return False
            # Beside writers an index can be made on one part, not on all at once.
            part = session.one(
                f"SELECT tableoid::regclass::text FROM vectors WHERE {shelf.condition} LIMIT 1"
            )
            if part is None:
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
        with database.write(is_derived=True) as session:
            session.run(function)
            # What an interrupted attempt left behind.
            session.run(f"DROP INDEX IF EXISTS {shelf.index_name}")
        form = f"{database.schema}.vector_of(vector)::{where}.halfvec({int(dims)})"
        statement = (
            f"CREATE INDEX CONCURRENTLY {shelf.index_name} ON {database.schema}.{part[0]}"
            f" USING hnsw (({form}) {where}.halfvec_cosine_ops) WHERE {shelf.condition}"
        )
        with database.autocommit() as session:
            session.run(statement)
        return True

    def clear(self, session: Session, shelf: Shelf, limit: int) -> int:
        taken = super().clear(session, shelf, limit)
        if taken < limit:
            session.run(f"DROP INDEX IF EXISTS {shelf.index_name}")
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
            (shelf.index_name,),
        )
        return row is not None
