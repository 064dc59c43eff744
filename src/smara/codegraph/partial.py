"""Joining a file again of which a part is as it was: the edges of that part stay, and only the rest
is resolved.

What a definition's names lead to depends on the definition itself, on what its own file shows of
itself, and on other files. The first is as it was. For the last the file would have been marked
stale. So its edges are what they were, unless it uses one of the names that mean something else
now.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from smara.codegraph.edges import KIND_CODES, SOURCE_CODES, are_among, unpack
from smara.codegraph.models import FileFacts, Taken

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

    facts, edges = partial.facts, unpack(stored)
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


def _unmoved(facts: FileFacts, names: frozenset[str]) -> list[Taken]:
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
