"""What a process keeps in mind of a tree between two changes, so that a saved file costs
milliseconds.

Everything here can be read again from the database; the tree's revision tells whether it has to be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from smara.codegraph.asked import Notes
from smara.codegraph.partial import Partial
from smara.codegraph.resolve.outline import Outline, unpack_outline
from smara.codegraph.resolve.project import MANIFESTS, ProjectFiles
from smara.codegraph.resolve.table import Symbol
from smara.codegraph.store import CodeStore
from smara.database.database import Row, Session

_MOST_OUTLINES = 20_000


@dataclass(slots=True)
class Held:
    """A tree's paths, its notes and the outlines that were read, all as of ``revision``."""

    revision: int = -1
    paths: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The number and the revision of each indexed file."""
    notes: Notes = field(default_factory=Notes)
    outlines: dict[str, tuple[int, Outline | None]] = field(default_factory=dict)
    project: ProjectFiles | None = None
    notes_revision: int = -1
    partial: tuple[int, Partial] | None = None
    """The number of the file written last, when a part of it was taken over from before."""

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

    def up_to_date_notes(self, session: Session, store: CodeStore, tree_no: int) -> Notes:
        """The notes on all files; those that changed since the last time are read again."""
        if self.notes_revision != self.revision:
            for no, keys in store.asked(session, tree_no, self.notes_revision):
                self.notes.put(no, bytes(keys))
            numbers = {no: path for path, (no, _) in self.paths.items()}
            self.notes.keep(numbers.keys())
            self.notes.know_paths(numbers)
            self.notes_revision = self.revision
        return self.notes

    def wrote_files(self, written: dict[str, tuple[int, Outline | None]], revision: int) -> None:
        """Take over files that this process has just written, if they were all there before and
        nobody else wrote.
        """
        if self.revision != revision - 1 or not written.keys() <= self.paths.keys():
            return
        for path, (no, outline) in written.items():
            self.paths[path] = (no, revision)
            self.outlines[path] = (revision, outline)
            if path.rpartition("/")[2] in MANIFESTS:
                self.project = None
        if self.notes_revision == self.revision:
            self.notes_revision = revision
        self.revision = revision

    def wrote_edges(self, asked: dict[int, bytes], revision: int) -> None:
        """Take over what this process has just written, so that it need not be read again."""
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
        """The tree's paths, for finding modules by name."""
        if self.project is None:
            self.project = ProjectFiles(self.paths, read)
        return self.project


def _manifests(paths: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    return {path: place for path, place in paths.items() if path.rpartition("/")[2] in MANIFESTS}


class StoredTable:
    """Outlines and names from the database, read when they are asked for and kept for the next
    time.
    """

    def __init__(self, session: Session, store: CodeStore, tree_no: int, held: Held) -> None:
        self._session, self._store, self._tree_no, self._held = session, store, tree_no, held

    def load_all(self) -> None:
        """Read every outline at once, for those who will ask for most of them."""
        held = self._held
        missing = sum(
            1 for path, (_, at) in held.paths.items() if held.outlines.get(path, (-1,))[0] != at
        )
        if missing > 50:
            self._keep(self._store.outlines(self._session, self._tree_no))

    def outline(self, path: str) -> Outline | None:
        place = self._held.paths.get(path)
        if place is None:
            return None
        known = self._held.outlines.get(path)
        if known is None or known[0] != place[1]:
            self._held.outlines[path] = (place[1], None)
            self._keep(self._store.outlines(self._session, self._tree_no, [path]))
            known = self._held.outlines[path]
        return known[1]

    def _keep(self, rows: list[Row]) -> None:
        for path, _, node_no, data in rows:
            place = self._held.paths.get(path)
            if place is not None:
                self._held.outlines[path] = (place[1], unpack_outline(path, node_no, bytes(data)))

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        found: dict[str, list[Symbol]] = {}
        for row in self._store.named(self._session, self._tree_no, sorted(names), limit):
            if row[2] is not None:
                found.setdefault(row[4], []).append(Symbol(*row))
        return found
