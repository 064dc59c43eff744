"""Read SCIP indexes: what a compiler knows of a tree's names.

Tools such as scip-typescript, scip-python and rust-analyzer write them as protobuf. The few fields
that are needed are decoded here without a protobuf runtime. A SCIP index takes precedence over
syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from smara.core.files import read_regular
from smara.core.items import grouped
from smara.core.startup.regex import regex
from smara.errors import InvalidInputError

INDEX_NAME = "index.scip"
LARGEST_INDEX = 1 << 30
AGREEMENT = 0.8
"""The part of a document's definitions that must still be about where the index says."""
EXACT_AGREEMENT = 0.25
"""The part that must be on the very line: a file that has moved by a line has none."""
MOST_DECORATORS = 10
FAR_APART = 1 << 31

_DEFINITION = 1
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_LAST_NAME = regex(r"(?:`((?:[^`]|``)+)`|([\w+\-$]+))(?:\([^()]*\)\.|[#.:!/]|\))$")


class Occurrence(NamedTuple):
    """A name in a document: line, symbol, and whether it is defined."""

    line: int
    symbol: str
    is_definition: bool


class NamedLines(NamedTuple):
    """A definition as the tree has it.

    Its node, its name and its lines.
    """

    no: int
    name: str
    first_line: int
    last_line: int


class Meant(NamedTuple):
    """The node that a name means, and the path of its file."""

    no: int
    path: str


OUTSIDE = Meant(0, "")
"""What the index knows and the tree does not hold: the name means something of another library."""
Precise = Mapping[tuple[int, str], Meant]
"""What the names of a file mean, by line and name."""


class ScipIndex:
    """An index that was read.

    The occurrences of each document, by its path in the tree.
    """

    def __init__(self, documents: dict[str, list[Occurrence]]) -> None:
        self.documents = documents
        self._nodes: dict[str, Meant] = {}
        self._current: set[str] = set()

    def bind(self, definitions: Callable[[str], Sequence[NamedLines]]) -> None:
        """Bind every symbol the index defines to its node."""
        for path, occurrences in self.documents.items():
            nodes = definitions(path)
            named = [each for each in occurrences if each.is_definition and name_of(each.symbol)]
            if nodes and named and not _agrees(named, nodes):
                continue
            self._current.add(path)
            # Parameters and variables have no node of ours, so that even a fresh index places only
            # a part of them.
            for each in named:
                # The innermost node that holds the line and is named so.
                fitting = [
                    node
                    for node in nodes
                    if node.name == name_of(each.symbol)
                    and node.first_line <= each.line <= node.last_line
                ]
                if fitting:
                    innermost = max(fitting, key=lambda node: node.first_line)
                    self._nodes.setdefault(each.symbol, Meant(innermost.no, path))

    def precise(self, path: str) -> Precise:
        """Return what the names of a file mean.

        Empty for a file that the index does not know or that has changed.
        """
        if path not in self._current:
            return {}
        found: dict[tuple[int, str], Meant] = {}
        unsure: set[tuple[int, str]] = set()
        for line, symbol, is_definition in self.documents[path]:
            name = name_of(symbol)
            if is_definition or not name:
                continue
            meant = self._nodes.get(symbol, OUTSIDE)
            if found.setdefault((line, name), meant) != meant:
                unsure.add((line, name))
        for place in unsure:
            del found[place]
        return found


def read_scip(path: Path) -> ScipIndex:
    """Read an index.

    One that cannot be read raises :class:`InvalidInputError` with what to do.
    """
    try:
        if path.stat().st_size > LARGEST_INDEX:
            raise InvalidInputError(
                f"{path} is larger than 1 GiB; index parts of the tree on their own"
            )
        data = read_regular(path)
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read ({error.strerror}); give the path of a SCIP index"
        ) from error
    return parse_scip(data, str(path))


def parse_scip(data: bytes, name: str = "the index") -> ScipIndex:
    """Return an index from its bytes."""
    documents: dict[str, list[Occurrence]] = {}
    try:
        for field, value in _fields(memoryview(data)):
            if field == 2 and isinstance(value, memoryview):
                path, occurrences = "", []
                for inner, part in _fields(value):
                    if inner == 1 and isinstance(part, memoryview):
                        path = bytes(part).decode("utf-8").replace("\\", "/")
                    elif inner == 2 and isinstance(part, memoryview):
                        occurrences.append(_occurrence(part))
                documents.setdefault(path, []).extend(each for each in occurrences if each)
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{name} is no SCIP index ({error}); make it again with the language's indexer"
        ) from error
    return ScipIndex(documents)


def name_of(symbol: str) -> str:
    """Return the last name of a symbol: ``… src/`client.ts`/Client#send().`` is ``send``.

    Empty for locals and files.
    """
    if symbol.startswith("local "):
        return ""
    found = _LAST_NAME.search(symbol)
    return "" if found is None else (found.group(1) or found.group(2)).replace("``", "`")


def _occurrence(data: memoryview) -> Occurrence | None:
    line, symbol, roles = -1, "", 0
    for field, value in _fields(data):
        if field == 1:
            # The first number of a range is its line; packed or not, it comes first.
            if line < 0:
                line = value if isinstance(value, int) else _varint(value, 0)[0]
        elif field == 2 and isinstance(value, memoryview):
            symbol = bytes(value).decode("utf-8")
        elif field == 3 and isinstance(value, int):
            roles = value
    return Occurrence(line + 1, symbol, bool(roles & _DEFINITION)) if symbol and line >= 0 else None


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the fields of a message.

    A number, or the bytes of a text, a list or another message.
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        field, wire = tag >> 3, tag & 7
        if wire == _NUMBER:
            value, at = _varint(data, at)
            yield field, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if wire == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if at + size > end:
            raise ValueError(f"a field ends after the file, at byte {at}")
        yield field, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError(f"a number without an end at byte {at}")


def _agrees(defined: Sequence[Occurrence], nodes: Sequence[NamedLines]) -> bool:
    """Return True if the tree's definitions are where the index has them.

    Names that only one of them has say nothing.
    """
    firsts = grouped((node.name, node.first_line) for node in nodes)
    shared = [each for each in defined if name_of(each.symbol) in firsts]
    # A name stands on the first line of its definition, or a few decorators later.
    apart = [
        min((each.line - first) % FAR_APART for first in firsts[name_of(each.symbol)])
        for each in shared
    ]
    return (
        bool(shared)
        and sum(lines <= MOST_DECORATORS for lines in apart) >= AGREEMENT * len(shared)
        and apart.count(0) >= EXACT_AGREEMENT * len(shared)
    )
