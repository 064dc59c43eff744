"""What a resolver asks of the tree, and the answer when the whole tree is at hand."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol

from smara.codegraph.models import Language, NodeKind
from smara.codegraph.resolve.outline import Outline


class Symbol(NamedTuple):
    """A definition somewhere in the tree, as a search by name finds it."""

    no: int
    path: str
    language: Language
    kind: NodeKind
    name: str
    qualname: str


class SymbolTable(Protocol):
    """The tree's definitions, by file and by name. Both answers may be asked for often:
    implementations keep them.
    """

    def outline(self, path: str) -> Outline | None:
        """What the file offers; ``None`` if it is not indexed or not code."""
        ...

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        """The definitions of each name, at most ``limit`` of each; a name without any is missing.

        Asked once per file with all the names that need it, so that a database answers in one
        statement.
        """
        ...


class MemoryTable:
    """The table of a whole tree held in memory, as a full index has it."""

    def __init__(self, outlines: Iterable[Outline] = ()) -> None:
        self._outlines: dict[str, Outline] = {}
        self._by_name: dict[str, list[tuple[Outline, int]]] | None = None
        for outline in outlines:
            self._outlines[outline.path] = outline

    def add(self, outline: Outline) -> None:
        """Put a file's outline in; the one that was there before is replaced."""
        self._outlines[outline.path] = outline
        self._by_name = None

    def outline(self, path: str) -> Outline | None:
        return self._outlines.get(path)

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        by_name = self._by_name if self._by_name is not None else self._index()
        found: dict[str, list[Symbol]] = {}
        for name in names:
            places = by_name.get(name)
            if places:
                found[name] = [_symbol(outline, place) for outline, place in places[:limit]]
        return found

    def _index(self) -> dict[str, list[tuple[Outline, int]]]:
        by_name: dict[str, list[tuple[Outline, int]]] = {}
        for outline in self._outlines.values():
            for place, name in enumerate(outline.names):
                places = by_name.get(name)
                if places is None:
                    by_name[name] = [(outline, place)]
                else:
                    places.append((outline, place))
        self._by_name = by_name
        return by_name


def _symbol(outline: Outline, place: int) -> Symbol:
    return Symbol(
        outline.nos[place],
        outline.path,
        outline.language,
        kind=outline.kinds[place],
        name=outline.names[place],
        qualname=outline.qualnames[place],
    )
