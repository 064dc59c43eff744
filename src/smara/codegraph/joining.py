"""Joining one file to the others: its edges, and the notes on what was asked to make them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from smara.codegraph.asked import Recorder, keys_of, with_keys
from smara.codegraph.edges import joined, pack
from smara.codegraph.facts import unpack_facts
from smara.codegraph.models import FileFacts
from smara.codegraph.partial import Stayed
from smara.codegraph.reading import NotRead, TreeReader
from smara.codegraph.resolve.outline import Outline, unpack_outline
from smara.codegraph.resolve.project import ProjectFiles
from smara.codegraph.resolve.resolver import Resolver
from smara.codegraph.resolve.table import MemoryTable, SymbolTable
from smara.codegraph.scip import Precise

_LARGEST_MANIFEST = 1 << 20


class Joined(NamedTuple):
    """The edges of one file, packed, and the notes; no edges where its facts could not be read."""

    file_no: int
    edges: bytes | None
    asked: bytes


class Joiner:
    """Makes the edges of files, one after the other."""

    def __init__(
        self,
        table: SymbolTable,
        project: ProjectFiles,
        precise: Callable[[str], Precise] | None = None,
    ) -> None:
        self._table = Recorder(table)
        self._resolver = Resolver(self._table, project, precise)

    @classmethod
    def of_all(
        cls, reader: TreeReader, outlines: Iterable[tuple[str, int, bytes]], paths: Sequence[str]
    ) -> Joiner:
        """A joiner that has every outline of a tree at hand."""
        unpacked = (unpack_outline(path, no, data) for path, no, data in outlines)
        table = MemoryTable(outline for outline in unpacked if outline is not None)
        return cls(table, ProjectFiles(paths, manifest_reader(reader)))

    def join(self, file_no: int, path: str, uses: bytes | FileFacts) -> Joined:
        """The edges out of a file whose facts are ``uses``, packed or not."""
        facts = unpack_facts(uses) if isinstance(uses, bytes) else uses
        outline = self._table.outline(path)
        if facts is None or outline is None:
            return Joined(file_no, None, b"")
        edges = self._edges(outline, facts)
        return Joined(file_no, edges, keys_of(facts, self._table.paths, self._table.names))

    def join_rest(
        self, file_no: int, facts: FileFacts, stayed: Stayed, asked: bytes
    ) -> Joined | None:
        """The edges out of a file of which some stay; what it ``asked`` for those is noted further
        on.
        """
        outline = self._table.outline(facts.path)
        if outline is None:
            return None
        edges = joined(self._edges(outline, stayed.rest, stayed.tested), stayed.edges)
        keys = keys_of(facts, self._table.paths, self._table.names)
        return Joined(file_no, edges, with_keys(keys, asked))

    def _edges(self, outline: Outline, facts: FileFacts, tested: Collection[int] = ()) -> bytes:
        # What an earlier file asked must not be taken for known: this one's notes would miss it.
        self._table.forget()
        self._resolver.forget()
        nos = (*outline.nos, outline.file_no)  # the file itself stands at -1
        found = self._resolver.resolve(facts, tested)
        return pack(
            [
                (nos[scope], to, kind, line, sure, source)
                for scope, to, kind, line, sure, source in found
            ]
        )


class manifest_reader:
    """Reads the files that say how modules are called."""

    def __init__(self, reader: TreeReader) -> None:
        self._reader = reader

    def __call__(self, path: str) -> bytes | None:
        try:
            return self._reader.read(path, _LARGEST_MANIFEST).data
        except NotRead:
            return None
