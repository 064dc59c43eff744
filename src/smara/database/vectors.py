"""Define vector storage: spaces, kinds, blocks and their byte format.

Vectors are stored per space, project and kind, and found again by row. numpy is imported
only where arrays are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from smara.database.fulltext import CHUNK_BITS
from smara.database.session import Session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Codes = NDArray[np.int8]
    Floats = NDArray[np.float32]
    Rows = NDArray[np.int64]

VectorKind = Literal["message", "task", "observation", "memory", "working", "code"]
VECTOR_KINDS: tuple[VectorKind, ...] = get_args(VectorKind)
_CODES: dict[VectorKind, int] = {kind: number for number, kind in enumerate(VECTOR_KINDS, 1)}
ROW_BITS = 47
LAST_ROW = (1 << ROW_BITS) - 1
BLOCK_BITS = 8
"""A block holds the signs of 256 records, whatever their number of rows."""


def vector_code(kind: VectorKind) -> int:
    """Return the number of a kind in the tables and migrations."""
    return _CODES[kind]


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


class Vectors(Protocol):
    """The vector tables of one database."""

    stamps_removals: bool
    """Whether a block has a new stamp as soon as one of its records is removed."""

    def put(self, session: Session, shelf: Shelf, records: Mapping[int, Sequence[bytes]]) -> None:
        """Replace the vectors of whole records; none removes them.

        Part of the caller's transaction, which must be the only one that writes to this shelf.
        """
        ...

    def free(
        self, session: Session, shelf: Shelf, records: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        """Return which records are locked here, and which are being removed."""
        ...

    def settle(
        self, session: Session, shelf: Shelf, entries: Sequence[tuple[int, int, int]]
    ) -> set[int]:
        """Dequeue (space, record, stamp), except requeued ones; return the records."""
        ...

    def by_rows(self, session: Session, shelf: Shelf, rows: Sequence[int]) -> dict[int, bytes]:
        """The vectors of rows, of those that have one."""
        ...

    def scan(
        self, session: Session, shelf: Shelf, first: int = 0, last: int = LAST_ROW
    ) -> tuple[Rows, Codes]:
        """Return all vectors within a range of rows, in order."""
        ...

    def blocks(self, session: Session, shelf: Shelf, after_stamp: int) -> list[Block]:
        """The blocks that have changed since, in the order of their stamps."""
        ...

    def make_block(self, session: Session, shelf: Shelf, block: int, stamp: int = 0) -> Block:
        """Compute a block from its vectors without writing."""
        ...

    def remake(self, session: Session, shelf: Shelf, blocks: Sequence[int]) -> None:
        """Make blocks again from the vectors, and write them."""
        ...

    def count(self, session: Session, shelf: Shelf) -> int:
        """Count the vectors on a shelf."""
        ...

    def clear(self, session: Session, shelf: Shelf, limit: int) -> int:
        """Remove up to ``limit`` vectors; return how many.

        The blocks go with the last.
        """
        ...

    def nearest(
        self, session: Session, shelf: Shelf, query: Floats, limit: int
    ) -> list[int] | None:
        """Return rows near a vector from a server index, or ``None``.

        Some more than asked for.
        """
        ...

    def make_index(self, session: Session, shelf: Shelf, dims: int) -> bool:
        """Create a server index for a large shelf; return True if made.

        Outside any transaction.
        """
        ...


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


def as_block(shelf: Shelf, block: int, stamp: int, rows: Rows, codes: Codes) -> Block:
    """The block of the vectors that lie in it."""
    import numpy as np

    offsets = (rows - shelf.rows_of_block(block)[0]).astype(np.uint32)
    return Block(
        block, stamp, offsets.tobytes(), signs=signs_of(codes).tobytes() if len(codes) else b""
    )


def blocks_of(numbers: Iterable[int]) -> list[int]:
    """The blocks that records lie in, each once."""
    return sorted({no >> BLOCK_BITS for no in numbers})
