"""A changed file, of which only what changed is read: definitions that are as they were are taken
over unread.

When a file is read, the digests of its functions, classes and methods are noted (``Unit``), each
over the bytes of the definition and up to the first character of the code below it. When the file
has changed, those that are found again are cut out of the text: an empty assertion of the same
length, ``assert[   ]``, stands where each was. It can only be a statement and says nothing, so what
is left is parsed in a fraction of the time, at the same offsets, and the definitions are put back
where they stood. A text that is not code any more, without them or with them, is read as a whole;
so is one in which a definition would mean something else at its new place.

The result is that of reading the whole file. Only Python is read so: elsewhere a definition's
parent or name may depend on what stands in other parts of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from smara.codegraph.bodies import BLANKED
from smara.codegraph.definitions import DefinitionReader
from smara.codegraph.kept import Kept, moved
from smara.codegraph.models import (
    Binding,
    Definition,
    FileFacts,
    Import,
    Reference,
    ReferenceKind,
    Unit,
)
from smara.codegraph.routes import MOST_ROUTES
from smara.codegraph.units import STAND_IN, digest_of, next_code

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_TRIES = 2_000
_REFERENCE_KINDS: tuple[ReferenceKind, ...] = ("inherits", "calls", "references")
_STARTS = re.compile(rb"^(?:@|def\b|class\b|async\b)", re.M)


def found_again(before: FileFacts, data: bytes, refused: Collection[int] = ()) -> list[Kept]:
    """Return the definitions that stand in a new text as they stood in the old one, in order, none
    inside another.

    Those at places that are ``refused`` are left out; what lies in them may be found instead.
    """
    found: list[Kept] = []
    search = _Search(before, data)
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
            kept = Kept(
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


class _Search:
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


def without_kept(data: bytes, kept: Sequence[Kept]) -> bytes:
    """Return a text with empty assertions in place of definitions; its lines begin where they
    began.
    """
    text = bytearray(data)
    for each in kept:
        inside = data[each.first + len(STAND_IN) : each.end - 1]
        text[each.first : each.end] = STAND_IN + inside.translate(BLANKED) + b"]"
    return bytes(text)


def stand_alone(root: Node, kept: Sequence[Kept]) -> bool:
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
    kept: Sequence[Kept], data: bytes, before: FileFacts, pattern: re.Pattern[bytes]
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


def in_doubt(kept: Sequence[Kept], data: bytes, names: set[str]) -> list[Kept]:
    """Return the kept definitions that say one of the names: what they mention may mean something
    else.
    """
    written = [name.encode("utf-8", "replace") for name in names if name]
    return [each for each in kept if any(name in data[each.first : each.end] for name in written)]
