"""A file's facts as bytes, so that its edges can be made again without reading the file.

Kept are the columns that resolving asks for, and those by which unchanged definitions are known
again; what nodes hold anyway (signatures, hashes) is not kept twice.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, cast

from smara.codegraph.models import (
    NODE_KINDS,
    Binding,
    Definition,
    FileFacts,
    Import,
    Reference,
    ReferenceKind,
    Unit,
)

VERSION = 3
_KIND_NO = {kind: number for number, kind in enumerate(NODE_KINDS)}
_REFERENCE_KINDS: dict[str, ReferenceKind] = {"c": "calls", "i": "inherits", "r": "references"}
_REFERENCE_LETTERS = {kind: letter for letter, kind in _REFERENCE_KINDS.items()}


def pack_facts(facts: FileFacts) -> bytes:
    """The facts as bytes."""
    kinds, names, receivers, lines, scopes = (
        zip(*facts.references, strict=True) if facts.references else ((),) * 5
    )
    defined, *called = (
        list(zip(*facts.definitions, strict=True))[:8] if facts.definitions else ((),) * 8
    )
    columns = [
        VERSION,
        facts.path,
        facts.language,
        facts.lines,
        facts.package,
        [[_KIND_NO[kind] for kind in defined], *called[:4], called[6]],
        facts.imports,
        "".join([_REFERENCE_LETTERS[kind] for kind in kinds]),
        names,
        receivers,
        _steps(lines),
        scopes,
        facts.bindings,
        facts.size,
        *_pack_units(facts),
    ]
    return zlib.compress(
        json.dumps(columns, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace"), 1
    )


def unpack_facts(data: bytes) -> FileFacts | None:
    """What was packed; ``None`` for another version's bytes or broken ones."""
    try:
        columns: list[Any] = json.loads(zlib.decompress(data))
        if columns[0] != VERSION:
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
            size,
            offsets,
            units,
        ) = columns
        firsts, lasts = _unpack_offsets(offsets, len(definitions[0]))
        references = map(
            Reference,
            [_REFERENCE_KINDS[letter] for letter in kinds],
            names,
            receivers,
            _sums(at),
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
                    first_byte=start,
                    last_byte=end,
                    parent=parent,
                    signature="",
                    doc="",
                    body_hash=b"",
                )
                for kind, name, qualname, first, last, parent, start, end in zip(
                    *definitions, firsts, lasts, strict=True
                )
            ),
            imports=tuple(Import(*each) for each in imports),
            references=tuple(references),
            bindings=tuple(Binding(*each) for each in bindings),
            package=package,
            has_errors=False,
            doc="",
            size=size,
            units=_unpack_units(units, firsts, lasts),
        )
    except (ValueError, TypeError, IndexError, zlib.error):
        return None


def _pack_units(facts: FileFacts) -> tuple[list[list[int]], list[list[int]]]:
    """Where definitions stand, and the units by how far they are from that; nothing where there are
    no units.
    """
    if not facts.units:
        return [], []
    definitions = facts.definitions
    offsets = [
        _steps([each.first_byte for each in definitions]),
        [each.last_byte - each.first_byte for each in definitions],
    ]
    places, starts, ends, untils, blocks, digests = zip(*facts.units, strict=True)
    return offsets, [
        _steps(places),
        [
            definitions[place].first_byte - start
            for place, start in zip(places, starts, strict=True)
        ],
        [definitions[place].last_byte - end for place, end in zip(places, ends, strict=True)],
        [until - end for until, end in zip(untils, ends, strict=True)],
        list(blocks),
        list(digests),
    ]


def _unpack_offsets(offsets: list[list[int]], count: int) -> tuple[list[int], list[int]]:
    if not offsets:
        return [0] * count, [0] * count
    firsts = _sums(offsets[0])
    return firsts, [first + length for first, length in zip(firsts, offsets[1], strict=True)]


def _unpack_units(units: list[list[int]], firsts: list[int], lasts: list[int]) -> tuple[Unit, ...]:
    if not units:
        return ()
    steps, columns, after, down, blocks, digests = units
    found = []
    for place, column, behind, below, ending, digest in zip(
        _sums(steps), columns, after, down, blocks, digests, strict=True
    ):
        end = lasts[place] - behind
        found.append(
            Unit(
                place, firsts[place] - column, end, until=end + below, blocks=ending, digest=digest
            )
        )
    return tuple(found)


def _steps(numbers: Sequence[int]) -> list[int]:
    """Numbers as steps from one to the next: small ones, which pack well."""
    return (
        [after - before for before, after in zip((0, *numbers[:-1]), numbers, strict=True)]
        if numbers
        else []
    )


def _sums(steps: Sequence[int]) -> list[int]:
    from itertools import accumulate

    return list(accumulate(steps))
