"""Index a project's trees, keep them current, and answer queries on them.

`CodeGraph` is the room's entry point. It imports the heavy parts only when they are called.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from smara.codegraph.index.files import MOST_BYTES, TreeReader, content_hash
from smara.codegraph.index.indexer import IndexTree, Progress, index
from smara.codegraph.index.update import CatchUp, differences, get_ready, update, watch
from smara.codegraph.language import language_of, languages
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.models import CodeLocation, CodePiece, IndexReport, TreeStatus
from smara.codegraph.store import CodeStore, TreeRow
from smara.core.git import find_repository
from smara.database.projects import ProjectContext
from smara.errors import NotFoundError

if TYPE_CHECKING:
    from smara.codegraph.queries import CodeQueries


_MOST_CHANGES = 10_000


class CodeGraph:
    """The code graph of a project's trees.

    Indexed by tree, asked about by path or name.

    A *tree* is one working folder. Without a root, the one that holds the current folder is meant,
    and where that was never indexed in this project, the one that was indexed last.
    """

    def __init__(
        self,
        project: ProjectContext,
        on_indexed: Callable[[str, Sequence[str] | None], None] | None = None,
    ) -> None:
        self.store = CodeStore(project.database, project.scope)
        self._project = project
        self.on_indexed = on_indexed
        """Called after each change of an index with the tree's root and the paths, ``None`` for
        all.
        """
        self.locator: Callable[[int], Any] | None = None
        """Gives, for a tree's number, what finds files by text; it lives where searching is
        done.
        """
        self._trees: dict[str, IndexTree] = {}
        self._asking: dict[str, CodeQueries] = {}
        self._catching_up: dict[str, CatchUp] = {}
        self._lock = threading.Lock()

    # keeping the index

    def index(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        full: bool = False,
        progress: Progress | None = None,
        wait_seconds: float = 600.0,
        workers: int | None = None,
        scip: str | os.PathLike[str] | None = None,
    ) -> IndexReport:
        """Bring the index of a tree up to date.

        Safe to repeat and to interrupt.

        Args:
            root: The folder; that of the current repository if not given.
            full: True to read every file again.
            progress: Called with the files done and the files to do.
            wait_seconds: How long to wait for another process that indexes the tree.
            workers: How many processes to use; decided by the number of files if not given.
            scip: A SCIP index to take edges from; the folder's ``index.scip`` if not given.

        Returns:
            What was read, left out and counted.

        Raises:
            InvalidInputError: If there is no such folder.
            BusyError: If another process indexes the tree for longer than ``wait_seconds``.
            ConfigError: If a language of the code graph is incomplete; it is named.
        """
        tree = self.tree(root if root is not None else _current_root())
        report = index(
            tree,
            is_full=full,
            progress=progress,
            wait_seconds=wait_seconds,
            workers=workers,
            scip=scip,
        )
        self._tell(tree, None)
        return report

    def update(
        self, paths: Sequence[str | os.PathLike[str]], root: str | os.PathLike[str] | None = None
    ) -> IndexReport:
        """Read some files again, as after a save.

        Args:
            paths: Paths, absolute or relative to the root; those outside of it are passed over.
            root: The folder; the tree around the current one if not given.

        Returns:
            What was read and removed. A tree that was never indexed is indexed whole.
        """
        tree = self._tree(root)
        report = update(tree, paths)
        self._tell(tree, [os.fspath(path) for path in paths])
        return report

    def get_ready(self, root: str | os.PathLike[str] | None = None) -> None:
        """Load what the first update needs; watching does so itself.

        Args:
            root: The working folder; without it, the one around the current folder, or the one
                indexed last.
        """
        tree = self._tree(root)
        get_ready(tree)
        self._tell(tree, [])

    def watch(
        self,
        stop: threading.Event | None = None,
        root: str | os.PathLike[str] | None = None,
        on_update: Callable[[IndexReport], None] | None = None,
    ) -> None:
        """Update the index with every save until stopped.

        See :mod:`smara.codegraph.index.update`.

        Args:
            stop: Set it from another thread to end the watch; without it, the watch never ends.
            root: The working folder; without it, the one around the current folder, or the one
                indexed last.
            on_update: Called with the report of each update, in the thread that watches.
        """
        tree = self._tree(root)

        def tell(report: IndexReport, paths: Sequence[str] | None) -> None:
            self._tell(tree, paths)
            if on_update is not None:
                on_update(report)

        watch(tree, stop or threading.Event(), tell)

    def count_languages(self, paths: Iterable[str]) -> list[tuple[str, int]]:
        """Count the files of each language, the most frequent first.

        Args:
            paths: Names of files; they are not read.
        """
        return Counter(filter(None, map(language_of, paths))).most_common()

    def status(self, root: str | os.PathLike[str] | None = None) -> TreeStatus:
        """Return how the index of a tree stands.

        Args:
            root: The folder; the tree around the current one if not given.

        Returns:
            Its counts; ``note`` says what a reader of answers has to know.
        """
        if (row := self._row(root)) is None:
            return TreeStatus(os.path.realpath(root or _current_root()), "none")
        return self.store.ask(self.store.status, row)

    def trees(self) -> list[TreeStatus]:
        """Return every tree of the project, the last one indexed first."""
        with self.store.database.read() as session:
            return [self.store.status(session, row) for row in self.store.trees(session)]

    def changed_paths(
        self, root: str | os.PathLike[str] | None = None
    ) -> tuple[list[str], list[str], list[str]]:
        """Compare a tree with the disk by names, sizes and times.

        Where a time tells nothing, contents are compared.

        Args:
            root: The folder; the tree around the current one if not given.

        Returns:
            The paths that changed, were added and were removed since they were indexed.
        """
        tree = self._tree(root)
        found, reader = differences(tree), TreeReader(tree.root)
        others = [
            path
            for path, digest in found.unsure.items()
            if (data := reader.find(path, MOST_BYTES)) is None or content_hash(data) != digest
        ]
        changed = sorted([*found.changed, *others])
        return changed[:_MOST_CHANGES], found.added[:_MOST_CHANGES], found.removed[:_MOST_CHANGES]

    def forget(self, root: str | os.PathLike[str]) -> bool:
        """Remove the index of a tree; the folder itself is not touched.

        Args:
            root: The folder.

        Returns:
            True if there was an index.
        """
        with self.store.database.write(is_derived=True) as session:
            if (row := self.store.tree_of(session, os.path.realpath(root))) is not None:
                self.store.remove_tree(session, row.no)
        for by_root in (self._trees, self._asking, self._catching_up):
            by_root.pop(os.path.realpath(root), None)
        return row is not None

    def forget_gone(self) -> list[str]:
        """Remove the indexes of trees whose folders are gone.

        Returns:
            The roots that were removed, such as those of deleted worktrees.
        """
        gone = [status.root for status in self.trees() if not os.path.isdir(status.root)]
        return [root for root in gone if self.forget(root)]

    # asking

    @property
    def note(self) -> str | None:
        """Return what a caller has to know of the answers, or ``None``."""
        if (row := self._row(None)) is None:
            return TreeStatus(_current_root(), "none").note
        note = self.store.ask(self.store.standing, row).note
        # Another working folder of the same repository may answer for this one.
        here, there = find_repository(os.getcwd()), find_repository(row.root)
        if (
            note is None
            and here is not None
            and there is not None
            and os.path.realpath(here.root) != row.root
            and there.common_dir == here.common_dir
        ):
            return (
                f"this folder is not indexed: answers are of {row.root}; "
                "`smara code index` reads this one"
            )
        return note

    def catch_up(self) -> str | None:
        """Update from small changes on disk; return a warning or ``None``.

        The queries themselves answer from the index as it is: in milliseconds, and right where a
        watcher runs. A door that asks for a person or an agent calls this before; see
        :mod:`smara.codegraph.index.update`.
        """
        if (row := self._row(None)) is None:
            return self.note
        tree = self.tree(row.root)
        with self._lock:
            catch_up = CatchUp(tree, lambda paths: self._tell(tree, paths))
            catch_up = self._catching_up.setdefault(row.root, catch_up)
        # Looked at first: what is read again changes the note.
        warning = catch_up.look()
        return self.note or warning

    def asking(self, root: str | os.PathLike[str] | None = None) -> CodeQueries:
        """Return all questions to one tree.

        Args:
            root: The folder; the tree around the current one if not given.

        Raises:
            NotFoundError: If it is not indexed.
        """
        if (row := self._row(root)) is None:
            raise NotFoundError(
                "The code of this project is not indexed yet. `smara code index` does it."
            )
        from smara.codegraph.queries import CodeQueries  # it loads numpy

        with self._lock:
            if (queries := self._asking.get(row.root)) is None or queries.lookup.tree_no != row.no:
                lookup = CodeLookup(self.store.database, self.store.scope, row.no)
                project = self._project
                queries = CodeQueries(lookup, row.root, project.counter, clock=project.clock)
                self._asking[row.root] = queries
        return queries

    def locate(
        self, text: str, limit: int = 10, *, tests: bool = False, graph: bool = True
    ) -> list[CodeLocation]:
        """Return the files a question or error is likely about.

        Args:
            text: Any text.
            limit: How many are returned at most.
            tests: True to return tests too.
            graph: False to rank by words alone.

        Returns:
            The best first.

        Raises:
            NotFoundError: If the code is not indexed.
        """
        if (row := self._row(None)) is None or self.locator is None:
            raise NotFoundError(
                "The code of this project is not indexed yet. `smara code index` does it."
            )
        found: list[CodeLocation] = self.locator(row.no).locate(
            text, limit, tests=tests, graph=graph
        )
        return found

    def piece(self, place: str) -> CodePiece | None:
        """Return the piece of code that a hit of a search cites.

        Args:
            place: A path and its lines: ``src/auth.py:12-40``.

        Returns:
            The piece as it was indexed, or ``None``.
        """
        path, _, lines = place.rpartition(":")
        first, _, last = lines.partition("-")
        row = self._row(None)
        if (
            row is None
            or not path
            or not (first.isdecimal() and last.isdecimal())
            or len(lines) > 20
        ):
            return None
        with self.store.database.read() as session:
            lookup = CodeLookup(self.store.database, self.store.scope, row.no)
            return lookup.piece(session, path, int(first), int(last))

    # which tree

    def tree(self, root: str | os.PathLike[str]) -> IndexTree:
        """Return what this process holds of a tree.

        Args:
            root: The working folder; links in its path are resolved.

        Raises:
            ConfigError: If a language of the code graph is incomplete; it is named.
        """
        languages()  # an incomplete one is refused before anything is read or written
        path = os.path.realpath(root)
        with self._lock:
            if path not in self._trees:
                self._trees[path] = IndexTree(self._project, path)
            return self._trees[path]

    def _row(self, root: str | os.PathLike[str] | None) -> TreeRow | None:
        with self.store.database.read() as session:
            if root is not None:
                return self.store.tree_of(session, os.path.realpath(root))
            trees = self.store.trees(session)
        here = _current_root()
        there = (
            [row for row in trees if row.root == here]
            or [row for row in trees if os.path.isdir(row.root)]
            or trees
        )
        return there[0] if there else None

    def _tree(self, root: str | os.PathLike[str] | None) -> IndexTree:
        row = self._row(None) if root is None else None
        return self.tree(root or (row.root if row is not None else _current_root()))

    def _tell(self, tree: IndexTree, paths: Sequence[str] | None) -> None:
        if self.on_indexed is not None:
            self.on_indexed(tree.root, paths)


def _current_root() -> str:
    """Return the working folder around the current one.

    That of its repository, or the folder itself.
    """
    found = find_repository(os.getcwd())
    return os.path.realpath(found.root if found is not None else os.getcwd())
