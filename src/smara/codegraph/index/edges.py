"""Make the edges of stale files from stored facts and SCIP.

`TreeCache` holds outlines, paths and dependency keys between two changes, so that a saved file
costs milliseconds. All of it can be read again from the database; the tree's revision tells when.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from smara.codegraph.index.dependents import DependencyKeys, FileEdges, Joiner
from smara.codegraph.index.files import TreeReader
from smara.codegraph.index.workers import Pool
from smara.codegraph.language import tables
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.resolve.scip import INDEX_NAME, NamedLines, Precise, ScipIndex, read_scip
from smara.codegraph.resolve.symbols import FileOutline, ProjectFiles, Symbol, unpack_outline
from smara.codegraph.store import CodeStore, TreeRow
from smara.core import log
from smara.core.items import grouped
from smara.core.startup.record import dataclass, field
from smara.database.database import Session
from smara.errors import InvalidInputError

_MOST_OUTLINES = 20_000


@dataclass(slots=True)
class TreeCache:
    """A tree's paths, keys and outlines as of ``revision``."""

    revision: int = -1
    paths: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The number and the revision of each indexed file."""
    notes: DependencyKeys = field(default_factory=DependencyKeys)
    outlines: dict[str, tuple[int, FileOutline | None]] = field(default_factory=dict)
    project: ProjectFiles | None = None
    notes_revision: int = -1

    def refresh(self, session: Session, store: CodeStore, tree_no: int) -> None:
        """Bring everything up to what is stored now."""
        revision = store.revision(session, tree_no)
        if revision == self.revision:
            return
        paths = {row[0]: (row[1], row[2]) for row in store.paths(session, tree_no)}
        if self.project is not None and (
            self.paths.keys() != paths.keys() or _manifests(self.paths) != _manifests(paths)
        ):
            self.project = None
        self.paths = paths
        self.revision = revision
        if len(self.outlines) > _MOST_OUTLINES:
            self.outlines.clear()

    def current_notes(self, session: Session, store: CodeStore, tree_no: int) -> DependencyKeys:
        """Return the notes on all files.

        Those that changed since the last time are read again.
        """
        self.refresh(session, store, tree_no)
        if self.notes_revision != self.revision:
            for no, keys in store.dependency_keys(session, tree_no, self.notes_revision):
                self.notes.put(no, bytes(keys))
            self.notes.keep({no: path for path, (no, _) in self.paths.items()})
            self.notes_revision = self.revision
        return self.notes

    def wrote_files(
        self, written: dict[str, tuple[int, FileOutline | None]], revision: int
    ) -> None:
        """Take over files this process wrote, if it was alone."""
        if self.revision != revision - 1 or not written.keys() <= self.paths.keys():
            return
        self.paths |= {path: (no, revision) for path, (no, _) in written.items()}
        self.outlines |= {path: (revision, outline) for path, (_, outline) in written.items()}
        if _manifests(written):
            self.project = None
        if self.notes_revision == self.revision:
            self.notes_revision = revision
        self.revision = revision

    def wrote_edges(self, by_file: dict[int, bytes], revision: int) -> None:
        """Take over edges that this process has just written."""
        if self.revision != revision - 1:
            return
        for no, keys in by_file.items():
            self.notes.put(no, keys)
        paths = [path for path, (no, _) in self.paths.items() if no in by_file]
        self.paths |= {path: (self.paths[path][0], revision) for path in paths}
        outlines = self.outlines
        outlines |= {path: (revision, outlines[path][1]) for path in paths if path in outlines}
        if self.notes_revision == self.revision:
            self.notes_revision = revision
        self.revision = revision


def _manifests(paths: Mapping[str, Any]) -> dict[str, Any]:
    names = tables().manifests
    return {path: place for path, place in paths.items() if path.rpartition("/")[2] in names}


class StoredTable:
    """The outlines and names of the database, read once each."""

    def __init__(self, session: Session, store: CodeStore, tree_no: int, cache: TreeCache) -> None:
        self._session, self._store, self._tree_no, self._cache = session, store, tree_no, cache

    def outline(self, path: str) -> FileOutline | None:
        if (place := self._cache.paths.get(path)) is None:
            return None
        if (cached := self._cache.outlines.get(path)) is None or cached[0] != place[1]:
            self._cache.outlines[path] = (place[1], None)
            self.load([path])
        return self._cache.outlines[path][1]

    def load(self, paths: Sequence[str] | None = None) -> None:
        """Read some outlines, or all of the tree, at once."""
        for path, _, no, data in self._store.outlines(self._session, self._tree_no, paths):
            if (place := self._cache.paths.get(path)) is not None:
                self._cache.outlines[path] = (place[1], unpack_outline(path, no, bytes(data)))

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        rows = self._store.named(self._session, self._tree_no, sorted(names), limit)
        symbols = map(Symbol._make, rows)
        return grouped((each.name, each) for each in symbols if each.language is not None)


_MANY = 40
_MANY_MISSING = 50
_PATIENCE = 3
_RESOLVED_AT_ONCE = 400
_WRITTEN_AT_ONCE = 400

Guard = Callable[[Session], None]


class EdgeBuilder:
    """Makes the edges of the stale files of one tree."""

    def __init__(self, store: CodeStore, tree_no: int, root: str, cache: TreeCache) -> None:
        self._store, self._tree_no, self._cache = store, tree_no, cache
        self._reader = TreeReader(root)

    def build(self, guard: Guard | None = None, pool: Pool | None = None) -> None:
        """Update every stale file."""
        if pool is not None:
            self._build_in(pool, guard)
        while self._build_some(guard):
            pass

    def _build_some(self, guard: Guard | None) -> int:
        """Update some stale files and return their number.

        The work is done outside of any transaction. When another process has changed the tree
        meanwhile it is repeated, and at last done inside the transaction that writes, where no
        other process can.
        """
        for _ in range(_PATIENCE):
            with self._store.database.read() as session:
                stale = self._store.stale(session, self._tree_no, _RESOLVED_AT_ONCE)
                revision, joined = self._join(session, stale) if stale else (0, [])
            numbers = [no for no, _ in stale]
            if not stale or self._write_if(joined, revision, guard, numbers=numbers):
                return len(stale)
        with self._store.database.write(is_derived=True) as session:
            if guard is not None:
                guard(session)
            stale = self._store.stale(session, self._tree_no, _RESOLVED_AT_ONCE)
            revision, joined = self._join(session, stale)
            self._write(session, joined, [no for no, _ in stale])
            return len(stale)

    def _build_in(self, pool: Pool, guard: Guard | None) -> None:
        """Update every stale file by a pool; later changes stay stale."""
        store = self._store
        with store.database.snapshot() as session:
            revision = store.revision(session, self._tree_no)
            stale = dict(store.stale(session, self._tree_no, 1 << 30))
            outlines = [
                (row[0], row[2], bytes(row[3])) for row in store.outlines(session, self._tree_no)
            ]
            paths = [row[0] for row in store.paths(session, self._tree_no)]
            uses = store.facts(session, "uses", list(stale))
            files = [(no, stale[no], data) for no, data in uses.items()]
        joined = iter(pool.join(outlines, paths, files))
        while revision and (some := list(islice(joined, _WRITTEN_AT_ONCE))):
            revision = self._write_if(some, revision, guard)

    def build_precise(self, index: ScipIndex, guard: Guard) -> int:
        """Rebuild the edges of files that a compiler's index knows.

        Returns their number.
        """
        store, cache = self._store, self._cache
        with store.database.read() as session:
            cache.refresh(session, store, self._tree_no)
            lookup = CodeLookup(store.database, store.scope, self._tree_no)
            index.bind(
                lambda path: [
                    NamedLines(node.no, node.name, node.first_line, last_line=node.last_line)
                    for node in lookup.in_file(session, path)
                    if node.kind != "file"
                ]
            )
            files = [(no, path) for path, (no, _) in cache.paths.items() if index.precise(path)]
            revision, joined = self._join(session, files, index.precise) if files else (0, [])
        # A process that has written meanwhile has made the edges again; they are left as syntax
        # tells until the next time.
        return len(files) if files and self._write_if(joined, revision, guard) else 0

    def _write_if(
        self,
        joined: Sequence[FileEdges],
        revision: int,
        guard: Guard | None,
        numbers: Sequence[int] | None = None,
    ) -> int:
        """Write edges if no other process has written since.

        The revision then, or 0.
        """
        with self._store.database.write(is_derived=True) as session:
            if guard is not None:
                guard(session)
            is_current = self._store.revision(session, self._tree_no) == revision
            nos = numbers or [each.file_no for each in joined]
            return self._write(session, joined, nos) if is_current else 0

    def _write(self, session: Session, joined: Sequence[FileEdges], numbers: Sequence[int]) -> int:
        revision = self._store.next_revision(session, self._tree_no)
        made = {each.file_no: each for each in joined if each.edges is not None}
        rows = [(no, each.edges or b"", each.keys) for no, each in made.items()]
        others = [no for no in numbers if no not in made]
        self._store.put_edges(session, rows, others, revision=revision)
        self._cache.wrote_edges({no: each.keys for no, each in made.items()}, revision)
        return revision

    def _join(
        self,
        session: Session,
        stale: Sequence[tuple[int, str]],
        precise: Callable[[str], Precise] | None = None,
    ) -> tuple[int, list[FileEdges]]:
        cache = self._cache
        cache.refresh(session, self._store, self._tree_no)
        table = StoredTable(session, self._store, self._tree_no, cache=cache)
        outlines = cache.outlines
        if (
            len(stale) > _MANY
            and sum(outlines.get(path, (-1,))[0] != at for path, (_, at) in cache.paths.items())
            > _MANY_MISSING
        ):
            table.load()
        if cache.project is None:
            cache.project = ProjectFiles(cache.paths, self._reader.find)
        joiner = Joiner(table, cache.project, precise)
        paths = dict(stale)
        uses = self._store.facts(session, "uses", list(paths))
        return cache.revision, [joiner.join(no, paths[no], data) for no, data in uses.items()]


class PreciseIndex:
    """A compiler's index of a tree, if there is one.

    An index that was named must be readable; one that lies there and cannot be read is passed over.
    """

    def __init__(self, root: str, given: str | os.PathLike[str] | None = None) -> None:
        self._path = Path(given) if given is not None else Path(root) / INDEX_NAME
        self._index: ScipIndex | None = read_scip(self._path) if given is not None else None
        # A link in the tree may lead out of it; a pipe would be waited for.
        is_usable = self._path.is_file() and (given is not None or not self._path.is_symlink())
        # A new index is told from the one that was read by its size and time.
        facts = self._path.stat() if is_usable else None
        self.stamp = [facts.st_size, facts.st_mtime_ns] if facts else None

    def has_news(self, before: TreeRow | None, *, has_changed: bool) -> bool:
        """Return True if an index exists with news for the tree."""
        stored = json.loads(before.counts).get("scip") if before and before.counts else None
        return self.stamp is not None and (has_changed or stored != self.stamp)

    def apply(self, builder: EdgeBuilder, guard: Guard) -> None:
        """Make the edges of the files that the index knows again."""
        try:
            index = self._index or read_scip(self._path)
        except InvalidInputError as error:
            log.warning("code.scip_not_read", path=str(self._path), error=str(error))
            return
        files = builder.build_precise(index, guard)
        log.event("code.scip_read", path=str(self._path), files=files)
