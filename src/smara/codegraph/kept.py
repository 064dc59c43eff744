"""Definitions that are taken over from what was read before, without being read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smara.codegraph.models import Definition


class Kept(NamedTuple):
    """Definitions taken over from what was read before: the first with all that lie in it, at their
    new offset.

    ``first`` is where the first begins now and ``end`` where its code ends. The places of the
    definitions and their lines are still those of before; ``place`` was the place of the first.
    """

    first: int
    end: int
    place: int
    blocks: int
    definitions: Sequence[Definition]
    owner: str
    """The qualified name of what it stands in."""
    is_in_class: bool


class Misplaced(Exception):
    """Definitions that were to be taken over stand in something else now."""

    def __init__(self, kept: Kept) -> None:
        super().__init__(kept.first)
        self.kept = kept


def moved(each: Definition, down: int, right: int, on: int) -> Definition:
    """Return a definition so many lines further down, bytes to the right and places on."""
    (
        kind,
        name,
        qualname,
        first_line,
        last_line,
        first,
        last,
        parent,
        signature,
        doc,
        body_hash,
        drawn,
    ) = each
    return Definition(
        kind,
        name,
        qualname,
        first_line=first_line + down,
        last_line=last_line + down,
        first_byte=first + right,
        last_byte=last + right,
        parent=parent + on if parent >= 0 else parent,
        signature=signature,
        doc=doc,
        body_hash=body_hash,
        sketch=drawn,
    )
