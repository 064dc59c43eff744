"""Make the edges of stale files from stored facts and SCIP.

`TreeCache` holds outlines, paths and dependency keys between two changes, so that a saved file
costs milliseconds. All of it can be read again from the database; the tree's revision tells when.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from smara.codegraph.index.dependents import DependencyKeys, FileEdges, Joiner, manifest_reader
from smara.codegraph.index.files import TreeReader
from smara.codegraph.index.pool import Pool
from smara.codegraph.language import tables
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.resolve.scip import INDEX_NAME, NamedLines, Precise, ScipIndex, read_scip
from smara.codegraph.resolve.symbols import FileOutline, ProjectFiles, Symbol, unpack_outline
from smara.codegraph.store import CodeStore
from smara.core import log
from smara.database.database import Row, Session
from smara.errors import InvalidInputError

if TYPE_CHECKING:
    from smara.codegraph.file_store import TreeRow


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

    def up_to_date_notes(self, session: Session, store: CodeStore, tree_no: int) -> DependencyKeys:
        """Return the notes on all files.

        Those that changed since the last time are read again.
        """
        if self.notes_revision != self.revision:
            for no, keys in store.asked(session, tree_no, self.notes_revision):
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
        for path, (no, outline) in written.items():
            self.paths[path] = (no, revision)
            self.outlines[path] = (revision, outline)
            if path.rpartition("/")[2] in tables().manifests:
                self.project = None
        if self.notes_revision == self.revision:
            self.notes_revision = revision
        self.revision = revision

    def wrote_edges(self, asked: dict[int, bytes], revision: int) -> None:
        """Take over edges that this process has just written."""
        if self.revision != revision - 1:
            return
        for no, keys in asked.items():
            self.notes.put(no, keys)
        for path, (no, _) in self.paths.items():
            if no in asked:
                self.paths[path] = (no, revision)
                if path in self.outlines:
                    self.outlines[path] = (revision, self.outlines[path][1])
        if self.notes_revision == self.revision:
            self.notes_revision = revision
        self.revision = revision

    def files(self, read: Callable[[str], bytes | None]) -> ProjectFiles:
        """Return the tree's paths, for finding modules by name."""
        if self.project is None:
            self.project = ProjectFiles(self.paths, read)
        return self.project


def _manifests(paths: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    names = tables().manifests
    return {path: place for path, place in paths.items() if path.rpartition("/")[2] in names}


class StoredTable:
    """The outlines and names of the database, read once each."""

    def __init__(self, session: Session, store: CodeStore, tree_no: int, cache: TreeCache) -> None:
        self._session, self._store, self._tree_no, self._cache = session, store, tree_no, cache

    def load_all(self) -> None:
        """Read every outline at once, for callers that need most."""
        cache = self._cache
        missing = sum(
            1 for path, (_, at) in cache.paths.items() if cache.outlines.get(path, (-1,))[0] != at
        )
        if missing > 50:
            self._keep(self._store.outlines(self._session, self._tree_no))

    def outline(self, path: str) -> FileOutline | None:
        place = self._cache.paths.get(path)
        if place is None:
            return None
        known = self._cache.outlines.get(path)
        if known is None or known[0] != place[1]:
            self._cache.outlines[path] = (place[1], None)
            self._keep(self._store.outlines(self._session, self._tree_no, [path]))
            known = self._cache.outlines[path]
        return known[1]

    def _keep(self, rows: list[Row]) -> None:
        for path, _, node_no, data in rows:
            place = self._cache.paths.get(path)
            if place is not None:
                self._cache.outlines[path] = (place[1], unpack_outline(path, node_no, bytes(data)))

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        found: dict[str, list[Symbol]] = {}
        for row in self._store.named(self._session, self._tree_no, sorted(names), limit):
            if row[2] is not None:
                found.setdefault(row[4], []).append(Symbol(*row))
        return found


_MANY = 40
_PATIENCE = 3
_WRITTEN_AT_ONCE = 400

Guard = Callable[[Session], None]


class EdgeBuilder:
    """Makes the edges of the stale files of one tree."""

    def __init__(self, store: CodeStore, tree_no: int, root: str, cache: TreeCache) -> None:
        self._store, self._tree_no, self._cache = store, tree_no, cache
        self._reader = TreeReader(root)

    def some(self, limit: int, guard: Guard | None = None) -> int:
        """Update up to ``limit`` stale files and return their number.

        The work is done outside of any transaction. When another process has changed the tree
        meanwhile it is repeated, and at last done inside the transaction that writes, where no
        other process can.
        """
        for attempt in range(_PATIENCE + 1):
            if attempt < _PATIENCE:
                with self._store.database.read() as session:
                    stale = self._store.stale(session, self._tree_no, limit)
                    revision, joined = self._join(session, stale) if stale else (0, [])
                if not stale:
                    return 0
            with self._store.database.write(is_derived=True) as session:
                if guard is not None:
                    guard(session)
                if attempt == _PATIENCE:
                    stale = self._store.stale(session, self._tree_no, limit)
                    revision, joined = self._join(session, stale)
                elif self._store.revision(session, self._tree_no) != revision:
                    continue
                self._write(session, joined, [no for no, _ in stale])
                return len(stale)
        return 0

    def all_in(self, pool: Pool, guard: Guard) -> None:
        """Update every stale file by a pool; later changes stay stale."""
        store = self._store
        with store.database.snapshot() as session:
            revision = store.revision(session, self._tree_no)
            stale = dict(store.stale(session, self._tree_no, 1 << 30))
            outlines = [
                (row[0], row[2], bytes(row[3])) for row in store.outlines(session, self._tree_no)
            ]
            paths = [row[0] for row in store.paths(session, self._tree_no)]
            files = [
                (no, stale[no], bytes(uses))
                for no, uses in store.facts(session, "uses", list(stale))
            ]
        waiting: list[FileEdges] = []
        for joined in pool.join(outlines, paths, files):
            waiting.append(joined)
            if len(waiting) >= _WRITTEN_AT_ONCE:
                revision = self._write_if(waiting, revision, guard)
                waiting = []
                if not revision:
                    return
        if waiting:
            self._write_if(waiting, revision, guard)

    def precisely(self, index: ScipIndex, guard: Guard) -> int:
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
            known = [(no, path) for path, (no, _) in cache.paths.items() if index.precise(path)]
            revision, joined = self._join(session, known, index.precise) if known else (0, [])
        # Whoever has written meanwhile has made the edges anew; they are left as syntax tells until
        # the next time.
        return len(known) if known and self._write_if(joined, revision, guard) else 0

    def _write_if(self, joined: Sequence[FileEdges], revision: int, guard: Guard) -> int:
        """Write edges if no other process has written since.

        The revision then, or 0.
        """
        with self._store.database.write(is_derived=True) as session:
            guard(session)
            if self._store.revision(session, self._tree_no) != revision:
                return 0
            return self._write(session, joined, [each.file_no for each in joined])

    def _write(self, session: Session, joined: Sequence[FileEdges], numbers: Sequence[int]) -> int:
        revision = self._store.next_revision(session, self._tree_no)
        made = {each.file_no: each for each in joined if each.edges is not None}
        self._store.put_edges(
            session, [(no, each.edges or b"", each.asked, revision) for no, each in made.items()]
        )
        self._store.unmark(session, [no for no in numbers if no not in made])
        self._cache.wrote_edges({no: each.asked for no, each in made.items()}, revision)
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
        if len(stale) > _MANY:
            table.load_all()
        joiner = Joiner(table, cache.files(manifest_reader(self._reader)), precise)
        paths = dict(stale)
        rows = self._store.facts(session, "uses", list(paths))
        return cache.revision, [joiner.join(no, paths[no], bytes(uses)) for no, uses in rows]


class PreciseIndex:
    """A compiler's index of a tree, if there is one.

    An index that was named must be readable; one that lies there and cannot be read is passed over.
    """

    def __init__(self, root: str, given: str | os.PathLike[str] | None = None) -> None:
        self._path = Path(given) if given is not None else Path(root) / INDEX_NAME
        self._index: ScipIndex | None = read_scip(self._path) if given is not None else None
        # A link in the tree may lead out of it; a pipe would be waited for.
        is_usable = self._path.is_file() and (given is not None or not self._path.is_symlink())
        self.stamp = _stamp(self._path) if is_usable else None

    def is_wanted(self, before: TreeRow | None, *, has_changed: bool) -> bool:
        """Return True if an index exists with news for the tree."""
        if self.stamp is None:
            return False
        known = (
            json.loads(before.counts).get("scip") if before is not None and before.counts else None
        )
        return has_changed or known != self.stamp

    def apply(self, resolving: EdgeBuilder, guard: Guard) -> None:
        """Make the edges of the files that the index knows again."""
        try:
            index = self._index or read_scip(self._path)
        except InvalidInputError as error:
            log.warning("code.scip_not_read", path=str(self._path), error=str(error))
            return
        files = resolving.precisely(index, guard)
        log.event("code.scip_read", path=str(self._path), files=files)


def _stamp(path: Path) -> list[int]:
    """Return what tells a new index from the one that was read.

    Size and time.
    """
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]
