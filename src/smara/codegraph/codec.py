"""Encode edges, file facts and lists of numbers as bytes.

An edge takes sixteen bytes, and all edges out of one file are one value. A whole graph is read by
joining a few thousand such values into one array. Stored facts allow a file's edges to be made
again without reading the file.
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from collections.abc import Iterable
from itertools import accumulate
from sys import byteorder
from typing import TYPE_CHECKING, Any, cast

from smara.codegraph.models import (
    EDGE_KINDS,
    EDGE_SOURCES,
    NODE_KINDS,
    Binding,
    Definition,
    Edge,
    EdgeKind,
    EdgeSource,
    FileFacts,
    Import,
    Reference,
    ReferenceKind,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def bytes_of(numbers: Iterable[int]) -> bytes:
    """Numbers from 0 to 2³²-1 as bytes.

    >>> bytes_of([1, 258])
    b'\\x01\\x00\\x00\\x00\\x02\\x01\\x00\\x00'
    """
    packed = array("I", numbers)
    if byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def numbers_in(data: bytes) -> array[int]:
    """Return what was made bytes.

    An incomplete number at the end is left out.
    """
    numbers = array("I")
    numbers.frombytes(data[: len(data) // numbers.itemsize * numbers.itemsize])
    if byteorder == "big":
        numbers.byteswap()
    return numbers


EDGE_DTYPE = [
    ("from_no", "<u4"), ("to_no", "<u4"), ("line", "<u4"), ("kind", "u1"), ("source", "u1"),
    ("confidence", "u1"),
    ("spare", "u1"),
]  # fmt: skip
"""The fields of an edge, as numpy names them; the same bytes on every machine."""

CONFIDENCE_STEPS = 200
KIND_NO = {kind: number for number, kind in enumerate(EDGE_KINDS)}
NODE_KIND_NO = {kind: number for number, kind in enumerate(NODE_KINDS)}
SOURCE_CODES = {source: number for number, source in enumerate(EDGE_SOURCES)}


def pack_edges(edges: Iterable[tuple[int, int, EdgeKind, int, float, EdgeSource]]) -> bytes:
    """Return edges as they are stored, from the fields of ``Edge``.

    The same edges always give the same bytes.

    >>> len(pack_edges([(1, 2, "calls", 7, 1.0, "ast"), (1, 2, "calls", 7, 1.0, "ast")]))
    16
    """
    rows = {
        (
            from_no,
            to_no,
            line,
            KIND_NO[kind],
            SOURCE_CODES[source],
            round(confidence * CONFIDENCE_STEPS),
            0,
        )
        for from_no, to_no, kind, line, confidence, source in edges
    }
    packed = struct.Struct("<IIIBBBB").pack
    return b"".join([packed(*row) for row in sorted(rows)])


def unpack_edges(data: bytes | None) -> NDArray[Any]:
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
        for row in unpack_edges(data).tolist()
    ]


FACTS_VERSION = 4
_REFERENCE_KINDS: dict[str, ReferenceKind] = {"c": "calls", "i": "inherits", "r": "references"}
_REFERENCE_LETTERS = {kind: letter for letter, kind in _REFERENCE_KINDS.items()}


def pack_facts(facts: FileFacts) -> bytes:
    """Return the facts as bytes."""
    kinds, names, receivers, lines, scopes = (
        zip(*facts.references, strict=True) if facts.references else ((),) * 5
    )
    defined, *called = (
        list(zip(*facts.definitions, strict=True))[:8] if facts.definitions else ((),) * 8
    )
    columns = [
        FACTS_VERSION,
        facts.path,
        facts.language,
        facts.lines,
        facts.package,
        [[NODE_KIND_NO[kind] for kind in defined], *called[:4], called[6]],
        facts.imports,
        "".join([_REFERENCE_LETTERS[kind] for kind in kinds]),
        names,
        receivers,
        # As steps from one to the next: small ones, which pack well.
        [after - before for before, after in zip((0, *lines), lines, strict=False)],
        scopes,
        facts.bindings,
    ]
    return zlib.compress(
        json.dumps(columns, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace"), 1
    )


def unpack_facts(data: bytes) -> FileFacts | None:
    """Return what was packed; ``None`` for another version's bytes or broken ones."""
    try:
        columns: list[Any] = json.loads(zlib.decompress(data))
        if columns[0] != FACTS_VERSION:
            return None
        (
            _,
            path,
            language,
            lines,
            package,
            definitions,
            imports,
            kinds,
            names,
            receivers,
            at,
            scopes,
            bindings,
        ) = columns
        references = map(
            Reference,
            [_REFERENCE_KINDS[letter] for letter in kinds],
            names,
            receivers,
            accumulate(at),
            scopes,
        )
        return FileFacts(
            path,
            cast(Any, language),
            lines,
            definitions=tuple(
                Definition(
                    NODE_KINDS[kind],
                    name,
                    qualname,
                    first_line=first,
                    last_line=last,
                    first_byte=0,
                    last_byte=0,
                    parent=parent,
                    signature="",
                    doc="",
                    body_hash=b"",
                )
                for kind, name, qualname, first, last, parent in zip(*definitions, strict=True)
            ),
            imports=tuple(Import(*each) for each in imports),
            references=tuple(references),
            bindings=tuple(Binding(*each) for each in bindings),
            package=package,
            has_errors=False,
        )
    except (ValueError, TypeError, IndexError, zlib.error):
        return None
