"""Which definitions of a file may be taken over unread when the file has changed; see
``splicing``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from smara.codegraph.definitions import DefinitionReader
from smara.codegraph.kept import Kept
from smara.codegraph.models import Definition, Unit

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


def _moved_units(kept: Kept, place: int, before: dict[int, Unit]) -> Iterator[tuple[int, Unit]]:
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
