"""Edges as bytes: sixteen each, all edges out of one file together.

A whole graph is then read by joining a few thousand values into one array, and walked in memory in
both directions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from smara.codegraph.models import EDGE_KINDS, EDGE_SOURCES, Edge, EdgeKind, EdgeSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

EDGE_BYTES = 16
EDGE_DTYPE = [
    ("from_no", "<u4"), ("to_no", "<u4"), ("line", "<u4"), ("kind", "u1"), ("source", "u1"),
    ("confidence", "u1"),
    ("spare", "u1"),
]  # fmt: skip
"""The fields of an edge, as numpy names them; the same bytes on every machine."""

CONFIDENCE_STEPS = 200
KIND_CODES = {kind: number for number, kind in enumerate(EDGE_KINDS)}
SOURCE_CODES = {source: number for number, source in enumerate(EDGE_SOURCES)}


def pack(edges: Iterable[tuple[int, int, EdgeKind, int, float, EdgeSource]]) -> bytes:
    """Edges as they are stored, from the fields of ``Edge``; the same edges always give the same
    bytes.

    >>> len(pack([(1, 2, "calls", 7, 1.0, "ast"), (1, 2, "calls", 7, 1.0, "ast")]))
    16
    """
    rows = {
        (
            from_no,
            to_no,
            line,
            KIND_CODES[kind],
            SOURCE_CODES[source],
            round(confidence * CONFIDENCE_STEPS),
            0,
        )
        for from_no, to_no, kind, line, confidence, source in edges
    }
    packed = struct.Struct("<IIIBBBB").pack
    return b"".join([packed(*row) for row in sorted(rows)])


def joined(one: bytes, other: bytes) -> bytes:
    """Two lots of stored edges as one; the same edges always give the same bytes."""
    rows = [
        data[place : place + EDGE_BYTES]
        for data in (one, other)
        for place in range(0, len(data), EDGE_BYTES)
    ]
    order = struct.Struct("<IIIBBBB").unpack
    return b"".join(sorted(set(rows), key=order))


def unpack(data: bytes | None) -> NDArray[Any]:
    """Stored edges as an array; it cannot be written to."""
    import numpy as np

    return np.frombuffer(data or b"", dtype=np.dtype(EDGE_DTYPE))


def edges_of(data: bytes | None) -> list[Edge]:
    """Stored edges as values."""
    return [
        Edge(
            row[0],
            row[1],
            EDGE_KINDS[row[3]],
            line=row[2],
            confidence=row[5] / CONFIDENCE_STEPS,
            source=EDGE_SOURCES[row[4]],
        )
        for row in unpack(data).tolist()
    ]


def without(data: bytes, removed: Iterable[int]) -> bytes:
    """Stored edges but those into nodes that are gone."""
    edges = unpack(data)
    kept: bytes = edges[~are_among(edges["to_no"], removed)].tobytes()
    return kept


def are_among(values: Any, numbers: Iterable[int]) -> Any:
    """Which of some numbers are among others; as ``numpy.isin``, which at its first call loads what
    takes 35 ms.
    """
    import numpy as np

    known = np.array(sorted(numbers), dtype=np.int64)
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return known[places] == values
