"""Reuse unchanged definitions and edges when a Python file changes.

Each parse stores digests of functions, classes and methods (``Unit``). When the file changes, units
with the same digest are cut out: ``assert[   ]`` of the same length replaces each, and only the
rest is parsed, at the same offsets. The result equals a full parse; in doubt a full parse is made.
Edges of reused definitions stay, unless they use a name that now means something else.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from smara.codegraph.codec import KIND_CODES, SOURCE_CODES, are_among, unpack_edges, unpack_facts
from smara.codegraph.file_store import ChunkRow, FileRow, NodeRow
from smara.codegraph.models import (
    Binding,
    Definition,
    FileFacts,
    Import,
    Reference,
    ReferenceKind,
    Reuse,
    Unit,
)
from smara.codegraph.parse.definitions import DefinitionReader, ReusedDefinitions, moved
from smara.codegraph.parse.routes import MOST_ROUTES
from smara.codegraph.parse.source import BLANKED
from smara.codegraph.store import CodeStore
from smara.core.escape import from_storable, to_storable
from smara.database.database import Session

if TYPE_CHECKING:
    from tree_sitter import Node


STAND_IN = b"assert["
"""What stands for a definition that is left out, with a bracket at its end."""
_BODIES = frozenset({"class", "function", "method", "test"})
_MOST_BLOCKS = 7
_TO_NEXT_CODE = re.compile(rb"(?:[ \t\f\r\n]++|#[^\n]*+)*+[^ \t\f\r\n#]?")
_CLOSED = re.compile(rb"(?:(?:[ \t\f\r\n]++|#[^\n]*+)*+\))*")
"""Parentheses that say nothing do not count as code; the statement ends behind them."""


def units_of(
    reader: DefinitionReader, data: bytes, lending: set[int], before: Sequence[Unit] = ()
) -> tuple[Unit, ...]:
    """Return the definitions of a file that may be taken over the next time.

    A method is one only if it stands right in its class and binds nothing of it: which of two
    methods gives a field its type depends on both. ``before`` are the units of the definitions that
    were kept.
    """
    found: dict[int, Unit] = {}
    definitions, starts, columns = reader.definitions, reader.source.line_starts, reader.columns
    closed = _closed(definitions, lending) if lending else lending
    kept = {place: each for each, place, _ in reader.moved}
    by_place = {each.place: each for each in before}
    behind = 0
    for place, each in enumerate(definitions):
        parent = each.parent
        if (
            place < behind
            or each.kind not in _BODIES
            or (parent >= 0 and parent not in found)
            or place in closed
        ):
            continue
        start = starts[each.first_line - 1]
        is_right_inside = each.first_byte - start == (columns.get(parent) if parent >= 0 else 0)
        if place in kept:
            behind = place + len(kept[place].definitions)
            if is_right_inside:
                found.update(_moved_units(kept[place], place, by_place))
        elif is_right_inside:
            unit = _unit(reader, data, place, each=each, start=start)
            if unit is not None:
                found[place] = unit
    return tuple(found.values())


def _moved_units(
    kept: ReusedDefinitions, place: int, before: dict[int, Unit]
) -> Iterator[tuple[int, Unit]]:
    """Yield the units of what was kept by their places now."""
    on, right = place - kept.place, kept.first - kept.definitions[0].first_byte
    for earlier in range(kept.place, kept.place + len(kept.definitions)):
        unit = before.get(earlier)
        if unit is not None:
            yield earlier + on, _moved_unit(unit, on, right)


def _moved_unit(unit: Unit, on: int, right: int) -> Unit:
    place, start, end, until, blocks, digest = unit
    return (
        Unit(
            place + on,
            start + right,
            end + right,
            until=until + right,
            blocks=blocks,
            digest=digest,
        )
        if on or right
        else unit
    )


def _closed(definitions: Sequence[Definition], lending: set[int]) -> set[int]:
    """Return the places of functions that say something of the class around them, with those they
    stand in.
    """
    closed: set[int] = set()
    for place in lending:
        while place >= 0 and definitions[place].kind != "class":
            closed.add(place)
            place = definitions[place].parent
    return closed


def _unit(
    reader: DefinitionReader, data: bytes, place: int, each: Definition, start: int
) -> Unit | None:
    first, end = each.first_byte, reader.ends[place]
    marked = reader.source.bared[end]
    blocks = marked - _around(reader, place) if each.parent >= 0 else marked
    # The lines of what stands for it must be as many, and more blocks than can be counted are not
    # known.
    if not 0 < blocks <= marked <= _MOST_BLOCKS or b"\n" in data[first : first + len(STAND_IN) + 1]:
        return None
    if first > start and data[start:first].strip():
        return None
    if end < each.last_byte:
        closed = _CLOSED.match(data, end, each.last_byte)
        end = closed.end() if closed else end
    until = next_code(data, end)
    return Unit(place, start, end, until=until, blocks=blocks, digest=digest_of(data[start:until]))


def _around(reader: DefinitionReader, place: int) -> int:
    """Return how many classes end with a definition."""
    definitions, count = reader.definitions, 0
    while (above := definitions[place].parent) >= 0 and reader.ends[above] == reader.ends[place]:
        count, place = count + 1, above
    return count


def next_code(data: bytes, offset: int) -> int:
    """Return the offset behind the first character after an offset that is neither a blank nor in a
    comment.
    """
    found = _TO_NEXT_CODE.match(data, offset)
    return found.end() if found else offset


def digest_of(data: bytes) -> int:
    """Return a number that tells one text from another."""
    return int.from_bytes(blake2b(data, digest_size=6).digest(), "big")


_MOST_TRIES = 2_000
_REFERENCE_KINDS: tuple[ReferenceKind, ...] = ("inherits", "calls", "references")
_STARTS = re.compile(rb"^(?:@|def\b|class\b|async\b)", re.M)


def found_again(
    before: FileFacts, data: bytes, refused: Collection[int] = ()
) -> list[ReusedDefinitions]:
    """Return the definitions that stand in a new text as they stood in the old one, in order, none
    inside another.

    Those at places that are ``refused`` are left out; what lies in them may be found instead.
    """
    found: list[ReusedDefinitions] = []
    search = _UnitSearch(before, data)
    definitions, behind = before.plain, 0
    for unit in before.units:
        if unit.start < behind or unit.place in refused:
            continue
        root = definitions[unit.place]
        start = search.find(unit, root.first_byte - unit.start)
        if start is not None:
            behind = unit.end
            last = unit.place + 1
            while last < len(definitions) and definitions[last].first_byte < root.last_byte:
                last += 1
            above = definitions[root.parent] if root.parent >= 0 else None
            right = start - unit.start
            kept = ReusedDefinitions(
                root.first_byte + right,
                unit.end + right,
                unit.place,
                blocks=unit.blocks,
                definitions=definitions[unit.place : last],
                owner=above.qualname if above else "",
                is_in_class=above is not None and above.kind == "class",
            )
            found.append(kept)
    return found


class _UnitSearch:
    """Looks for units where they stand if the last shift holds, or that of the file's end; else
    among all beginnings.

    Only what stands at the left edge is looked for everywhere: classes repeat each other's methods
    word for word.
    """

    def __init__(self, before: FileFacts, data: bytes) -> None:
        self._data = data
        self._shift, self._last_shift = 0, len(data) - before.size
        self._position = 0
        self._tries = _MOST_TRIES
        self._starts: list[int] | None = None

    def find(self, unit: Unit, column: int) -> int | None:
        """Return where the line of a unit begins now, ``None`` if it is nowhere after those found
        before.
        """
        for start in self._likely(unit, column):
            if start >= self._position and self._is_at(unit, start):
                self._shift = start - unit.start
                self._position = start + unit.end - unit.start
                return start
        return None

    def _likely(self, unit: Unit, column: int) -> Iterator[int]:
        yield unit.start + self._shift
        if self._last_shift != self._shift:
            yield unit.start + self._last_shift
        if self._starts is None:
            self._starts = [each.start() for each in _STARTS.finditer(self._data)]
        for start in (
            self._starts[bisect_left(self._starts, self._position) :] if not column else ()
        ):
            self._tries -= 1
            if self._tries < 0:
                return
            yield start

    def _is_at(self, unit: Unit, start: int) -> bool:
        data = self._data
        if start and (data[start - 1 : start] != b"\n" or data[start - 2 : start - 1] == b"\\"):
            return False
        until = start + unit.until - unit.start
        if until > len(data) or next_code(data, start + unit.end - unit.start) != until:
            return False
        return digest_of(data[start:until]) == unit.digest


def without_kept(data: bytes, kept: Sequence[ReusedDefinitions]) -> bytes:
    """Return a text with empty assertions in place of definitions; its lines begin where they
    began.
    """
    text = bytearray(data)
    for each in kept:
        inside = data[each.first + len(STAND_IN) : each.end - 1]
        text[each.first : each.end] = STAND_IN + inside.translate(BLANKED) + b"]"
    return bytes(text)


def stand_alone(root: Node, kept: Sequence[ReusedDefinitions]) -> bool:
    """Say whether each of the assertions has been read as a statement of its own."""
    for each in kept:
        node = root.descendant_for_byte_range(each.first, each.end)
        if (
            node is None
            or node.type != "assert_statement"
            or (node.start_byte, node.end_byte) != (each.first, each.end)
        ):
            return False
    return True


def has_doubtful_routes(
    kept: Sequence[ReusedDefinitions], data: bytes, before: FileFacts, pattern: re.Pattern[bytes]
) -> bool:
    """Say whether what is kept may hold other routes than before: those there were are of another
    kind, or none.
    """
    routes = before.definitions[len(before.plain) :]
    if len(routes) >= MOST_ROUTES or not all(
        pattern.search(each.signature.encode()) for each in routes
    ):
        return True
    return not routes and any(pattern.search(data, each.first, each.end) for each in kept)


class Moves:
    """Where what stood in kept definitions is now: by its place before, how many lines down and how
    many places on.
    """

    def __init__(self, reader: DefinitionReader, before: FileFacts) -> None:
        self._before, self._reader = before, reader
        self._steps: list[tuple[int, int] | None] = [None] * (len(before.definitions) + 1)
        for kept, place, down in reader.moved:
            step = (down, place - kept.place)
            self._steps[kept.place : kept.place + len(kept.definitions)] = [step] * len(
                kept.definitions
            )

    def imports(self, read: list[Import]) -> list[Import]:
        """Return imports with those inside the kept definitions, in order."""
        kept = [
            each._replace(line=each.line + step[0], scope=each.scope + step[1])
            for each in self._before.imports
            if (step := self._steps[each.scope]) is not None
        ]
        return sorted([*read, *kept], key=_line) if kept else read

    def references(self, read: list[Reference]) -> list[Reference]:
        """Return references with those of the kept definitions, in the order in which they would be
        read.
        """
        steps, make = self._steps, tuple.__new__
        by_kind: dict[str, list[Reference]] = {kind: [] for kind in _REFERENCE_KINDS}
        for each in read:
            by_kind[each.kind].append(each)
        for each in self._before.references:
            kind, name, receiver, line, scope = each
            step = steps[scope]
            if step is not None:
                down, on = step
                by_kind[kind].append(
                    make(Reference, (kind, name, receiver, line + down, scope + on))
                    if down or on
                    else each
                )
        return [each for found in by_kind.values() for each in sorted(found, key=_line)]

    def bindings(self, read: list[Binding]) -> list[Binding]:
        """Return bindings with those of the kept definitions, but for names that are only
        hidden.
        """
        kept = [
            each._replace(scope=each.scope + step[1]) if step[1] else each
            for each in self._before.bindings
            if each.type and (step := self._steps[each.scope]) is not None
        ]
        return [*read, *kept]

    def routes(
        self, read: list[Definition], answers: list[Reference]
    ) -> tuple[list[Definition], list[Reference]]:
        """Return routes and what answers them with those inside the kept definitions, in order."""
        count, plain = len(self._reader.definitions), len(self._before.plain)
        new, old = _by_scope(answers, count), _by_scope(self._before.references, plain)
        all_of = [(each, new.get(count + no, [])) for no, each in enumerate(read)]
        for place, each in enumerate(self._before.definitions[plain:], plain):
            step = self._step_of(each)
            if step is not None:
                said = [other._replace(line=other.line + step[0]) for other in old.get(place, ())]
                all_of.append((moved(each, *step, 0), said))
        all_of.sort(key=lambda found: found[0].first_byte)
        return [each for each, _ in all_of], [
            other._replace(scope=count + no)
            for no, (_, said) in enumerate(all_of)
            for other in said
        ]

    def _step_of(self, route: Definition) -> tuple[int, int] | None:
        """Return how many lines down and bytes to the right a route is now, ``None`` if it was not
        kept.
        """
        for kept, _, down in self._reader.moved:
            root = kept.definitions[0]
            if root.first_byte <= route.first_byte < root.last_byte:
                return down, kept.first - root.first_byte
        return None


_line = attrgetter("line")


def _by_scope(references: Sequence[Reference], first: int) -> dict[int, list[Reference]]:
    """Return references by their scopes, from some scope on."""
    found: dict[int, list[Reference]] = {}
    for each in references:
        if each.scope >= first:
            found.setdefault(each.scope, []).append(each)
    return found


def in_doubt(
    kept: Sequence[ReusedDefinitions], data: bytes, names: set[str]
) -> list[ReusedDefinitions]:
    """Return the kept definitions that say one of the names: what they mention may mean something
    else.
    """
    written = [name.encode("utf-8", "replace") for name in names if name]
    return [each for each in kept if any(name in data[each.first : each.end] for name in written)]


_WORD = re.compile(r"\w+")


class Partial(NamedTuple):
    """A file as it was just written, with what it takes to know whose edges stay."""

    revision: int
    """Of the tree when it was written; whoever has written since may have changed what the names
    lead to.
    """
    facts: FileFacts
    numbers: Sequence[int]
    earlier: Sequence[int]
    """The numbers of the definitions by their places, now and before."""
    names: frozenset[str]
    """The names of the file that mean something else now."""


class Stayed(NamedTuple):
    """The edges that stay, as they are stored, and the facts of which edges have to be made."""

    edges: bytes
    rest: FileFacts
    tested: frozenset[int]
    """The nodes that are tested by what stays."""


def divide(partial: Partial, stored: bytes) -> Stayed | None:
    """Divide a file into what stays and what does not; ``None`` when all of it has to be
    resolved.
    """
    import numpy as np

    facts, edges = partial.facts, unpack_edges(stored)
    if not len(edges) or (edges["source"] == SOURCE_CODES["scip"]).any():
        # What a compiler told of an older text holds for none of the new one.
        return None
    taken = _unmoved(facts, partial.names)
    inside = bytearray(len(facts.definitions) + 1)
    numbers: dict[int, tuple[int, int]] = {}
    for each in taken:
        inside[each.place : each.place + each.length] = b"\1" * each.length
        for step in range(each.length):
            numbers[partial.earlier[each.before + step]] = (
                partial.numbers[each.place + step],
                each.down,
            )
    stays = edges[are_among(edges["from_no"], numbers)].copy()
    moved = [numbers[no] for no in stays["from_no"].tolist()]
    stays["from_no"] = [no for no, _ in moved]
    stays["line"] += np.array([down for _, down in moved], dtype=np.int64).astype(np.uint32)
    rest = facts._replace(
        imports=tuple(each for each in facts.imports if not inside[each.scope]),
        references=tuple(each for each in facts.references if not inside[each.scope]),
    )
    tested = frozenset(stays["to_no"][stays["kind"] == KIND_CODES["tests"]].tolist())
    return Stayed(stays.tobytes(), rest, tested)


def _unmoved(facts: FileFacts, names: frozenset[str]) -> list[Reuse]:
    """What was taken over and uses none of the names."""
    if not names:
        return list(facts.taken)
    touched = bytearray(len(facts.definitions) + 1)
    for _, name, receiver, _, scope in facts.references:
        if name in names or (receiver and not names.isdisjoint(_WORD.findall(receiver))):
            touched[scope] = 1
    for name, type_, scope in facts.bindings:
        if name in names or not names.isdisjoint(_WORD.findall(type_)):
            touched[scope] = 1
    for each in facts.imports:
        if not names.isdisjoint((each.name, each.alias, *_WORD.findall(each.module))):
            touched[each.scope] = 1
    for place, definition in enumerate(facts.definitions):
        if definition.name in names:
            touched[place] = 1
    return [each for each in facts.taken if not any(touched[each.place : each.place + each.length])]


@dataclass(slots=True)
class Earlier:
    """The nodes, chunks and facts of some files, each as of the revision of its row."""

    rows: dict[str, FileRow] = field(default_factory=dict)
    nodes: dict[int, list[NodeRow]] = field(default_factory=dict)
    chunks: dict[int, list[ChunkRow]] = field(default_factory=dict)
    outlines: dict[int, bytes] = field(default_factory=dict)
    uses: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, session: Session, store: CodeStore, rows: Iterable[FileRow]) -> Earlier:
        """All there is of some files."""
        found = {row.path: row for row in rows}
        numbers = [row.no for row in found.values()]
        facts = store.facts(session, "outline, uses", numbers)
        return cls(
            found,
            store.nodes(session, numbers),
            store.chunks(session, numbers),
            {no: bytes(outline) for no, outline, _ in facts},
            {no: bytes(uses) for no, _, uses in facts},
        )

    def is_current(self, row: FileRow) -> bool:
        """Whether a file is stored as it was when this was read."""
        known = self.rows.get(row.path)
        return known is not None and (known.no, known.revision) == (row.no, row.revision)

    def facts(self, path: str) -> FileFacts | None:
        """What a file said the last time, where some of it may be taken over."""
        row = self.rows.get(path)
        if row is None or row.no not in self.uses:
            return None
        facts = unpack_facts(self.uses[row.no])
        if facts is None or not facts.units:
            return None
        definitions = _whole(facts.definitions, self.nodes.get(row.no, ()))
        return facts._replace(definitions=definitions) if definitions is not None else None


def _whole(
    definitions: Iterable[Definition], nodes: Iterable[NodeRow]
) -> tuple[Definition, ...] | None:
    """Definitions with what is kept of them in their nodes; ``None`` when one has no node."""
    known = {(node.kind, node.qualname, node.ordinal): node for node in nodes}
    met: dict[tuple[str, str], int] = {}
    found = []
    for each in definitions:
        ordinal = met.get((each.kind, each.qualname), 0)
        met[each.kind, each.qualname] = ordinal + 1
        node = known.get((each.kind, to_storable(each.qualname), ordinal))
        if node is None:
            return None
        found.append(
            Definition(
                *each[:8],
                from_storable(node.signature),
                from_storable(node.doc),
                node.body_hash,
                node.sketch,
            )
        )
    return tuple(found)
