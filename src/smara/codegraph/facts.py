"""A file's facts as bytes, so that its edges can be made again without reading the file.

Kept are the columns that resolving asks for; what nodes hold anyway (signatures, hashes, lines) is not kept twice.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, cast

from smara.codegraph.models import NODE_KINDS, Binding, Definition, FileFacts, Import, Reference, ReferenceKind

VERSION = 1
_KIND_NO = {kind: number for number, kind in enumerate(NODE_KINDS)}
_REFERENCE_KINDS: tuple[ReferenceKind, ...] = ("calls", "inherits", "references")
_REFERENCE_NO = {kind: number for number, kind in enumerate(_REFERENCE_KINDS)}


class _Strings:
    """Each text once, by number: a file uses the same few hundred names again and again."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, texts: Iterable[str]) -> list[int]:
        numbers = self.numbers
        return [numbers.setdefault(text, len(numbers)) for text in texts]


def pack_facts(facts: FileFacts) -> bytes:
    """The facts as bytes."""
    strings = _Strings()
    kinds, names, receivers, lines, scopes = zip(*facts.references, strict=True) if facts.references else ((),) * 5
    columns = [
        VERSION, facts.path, facts.language, facts.lines, facts.package,
        [
            [_KIND_NO[each.kind], each.name, each.qualname, each.first_line, each.last_line, each.parent]
            for each in facts.definitions
        ],
        [list(each) for each in facts.imports],
        bytes(_REFERENCE_NO[kind] for kind in kinds).decode("latin-1"),
        strings.of(names), strings.of(receivers), _steps(lines), list(scopes),
        [list(each) for each in facts.bindings],
        list(strings.numbers),
    ]  # fmt: skip
    return zlib.compress(json.dumps(columns, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace"), 1)


def unpack_facts(data: bytes) -> FileFacts | None:
    """What was packed; ``None`` for another version's bytes or broken ones."""
    try:
        columns: list[Any] = json.loads(zlib.decompress(data))
        if columns[0] != VERSION:
            return None
        (
            _, path, language, lines, package, definitions, imports, kinds, names, receivers, at, scopes, bindings,
            strings,
        ) = columns  # fmt: skip
        references = map(
            Reference,
            [_REFERENCE_KINDS[ord(kind)] for kind in kinds],
            [strings[number] for number in names],
            [strings[number] for number in receivers],
            _sums(at),
            scopes,
        )
        return FileFacts(
            path, cast(Any, language), lines,
            tuple(
                Definition(NODE_KINDS[kind], name, qualname, first, last, 0, 0, parent, "", "", b"")
                for kind, name, qualname, first, last, parent in definitions
            ),
            tuple(Import(*each) for each in imports),
            tuple(references),
            tuple(Binding(*each) for each in bindings),
            package,
        )  # fmt: skip
    except (ValueError, TypeError, IndexError, zlib.error):
        return None


def _steps(numbers: Sequence[int]) -> list[int]:
    """Numbers as steps from one to the next: small ones, which pack well."""
    return [after - before for before, after in zip((0, *numbers[:-1]), numbers, strict=True)] if numbers else []


def _sums(steps: Sequence[int]) -> list[int]:
    from itertools import accumulate

    return list(accumulate(steps))
