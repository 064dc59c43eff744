"""The indexed code as a search reads it: which tree is meant, its chunks, the files they stand in.

Worktrees of one repository are trees of their own with much the same text. A search looks through
one: the one that holds the folder we are in, or else the one that was indexed last.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from smara.codegraph.store import CodeStore
from smara.core.scope import Scope
from smara.core.storable import from_storable
from smara.database.database import Database, Session, marks, parts

NOT_INDEXED = "The code is not indexed yet; `smara graph index` does it."
INCOMPLETE = "The code is being indexed: answers may be incomplete."


class CodeFileRow(NamedTuple):
    """What ranking has to know of a file."""

    no: int
    path: str
    kind: str
    is_test: bool


class DefinedRow(NamedTuple):
    """Where a name is defined, and as what."""

    name: str
    kind: str
    file_no: int
    first_line: int


class MeantTree(NamedTuple):
    """The tree that is searched: whether it is the only one of its project, and whether all of it
    is indexed.
    """

    no: int
    is_only: bool
    is_ready: bool
    root: str


class FileStanding(NamedTuple):
    """What a hit says of its file."""

    tree_no: int
    path: str
    language: str | None
    is_test: bool
    is_stale: bool
    indexed_at: int
    size: int
    mtime_ns: int
    """0 where it was saved so shortly before it was read that its time tells nothing."""

    def is_as_read(self, root: str) -> bool:
        """Whether the file on the disk looks as it did when it was read; so does one whose tree is
        not here.
        """
        try:
            found = os.lstat(os.path.join(root, *self.path.split("/")))
        except (OSError, ValueError):
            return not os.path.isdir(root)
        return found.st_size == self.size and self.mtime_ns in (0, found.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class TreeChunks:
    """Which chunks a tree has and in which file each stands, as of one revision."""

    tree_no: int
    revision: int
    files: Mapping[int, CodeFileRow]
    file_of: Mapping[int, int]
    """The number of a chunk → that of its file."""


class CodeTrees:
    """Reads the tables of code for a search. Keeps which chunk stands where, until the tree
    changes.
    """

    def __init__(
        self, database: Database, scope: Scope, root: Callable[[], str | None] = lambda: None
    ) -> None:
        self.store = CodeStore(database, scope)
        self._root = root
        self._lock = threading.Lock()
        self._known: dict[int, TreeChunks] = {}

    def current(self, session: Session) -> MeantTree | None:
        """The tree that is meant, or ``None`` when no code is indexed."""
        rows = session.all(
            self.store.sql(
                "SELECT no, root, state FROM code_trees WHERE project_no = :project"
                " ORDER BY coalesce(finished_at, 0) DESC, no"
            )
        )
        if not rows:
            return None
        here = self._root() if len(rows) > 1 else None
        no, root, state = next((row for row in rows if row[1] == here), rows[0])
        return MeantTree(int(no), len(rows) == 1, state == "ready", root=from_storable(root))

    def note(self, session: Session, is_asked_for: bool) -> str | None:
        """What has to be known of hits in code; that there is no index only to those who asked for
        code.
        """
        tree = self.current(session)
        if tree is None:
            return NOT_INDEXED if is_asked_for else None
        return None if tree.is_ready else INCOMPLETE

    def chunks(self, session: Session, tree_no: int) -> TreeChunks:
        """Where the chunks of a tree stand; read again only when the tree has changed."""
        row = session.one(
            self.store.sql(
                "SELECT revision FROM code_trees WHERE project_no = :project AND no = ?"
            ),
            (tree_no,),
        )
        revision = int(row[0]) if row else -1
        known = self._known.get(tree_no)
        if known is not None and known.revision == revision:
            return known
        found = self._read(session, tree_no, revision)
        with self._lock:
            self._known[tree_no] = found
        return found

    def _read(self, session: Session, tree_no: int, revision: int) -> TreeChunks:
        files = {
            int(no): CodeFileRow(int(no), from_storable(path), kind, is_test=bool(is_test))
            for no, path, kind, is_test in session.all(
                self.store.sql(
                    "SELECT no, path, kind, is_test FROM code_files"
                    " WHERE project_no = :project AND tree_no = ? AND skip IS NULL"
                ),
                (tree_no,),
            )
        }
        rows = session.all(
            self.store.sql(
                "SELECT c.no, c.file_no FROM code_files f JOIN code_chunks c ON c.file_no = f.no"
                " WHERE f.project_no = :project AND f.tree_no = ? AND f.skip IS NULL"
            ),
            (tree_no,),
        )
        return TreeChunks(
            tree_no, revision, files, file_of={int(no): int(file_no) for no, file_no in rows}
        )

    def standing(self, session: Session, file_nos: Sequence[int]) -> dict[int, FileStanding]:
        """How files stand now, by number; a file is marked as behind without a new revision of its
        tree.
        """
        found: dict[int, FileStanding] = {}
        for part in parts(sorted(set(file_nos))):
            rows = session.all(
                self.store.sql(
                    "SELECT no, tree_no, path, language, is_test, stale_at, indexed_at, size, "
                    "mtime_ns FROM code_files"
                    f" WHERE project_no = :project AND no IN ({marks(len(part))})"
                ),
                part,
            )
            for no, tree_no, path, language, is_test, stale_at, indexed_at, size, mtime_ns in rows:
                found[int(no)] = FileStanding(
                    int(tree_no),
                    from_storable(path),
                    language,
                    is_test=bool(is_test),
                    is_stale=stale_at is not None,
                    indexed_at=int(indexed_at),
                    size=int(size),
                    mtime_ns=int(mtime_ns),
                )
        return found

    def count(self, session: Session, tree_no: int) -> int:
        """How many chunks a tree has; known without counting while the tree stays as it is."""
        known = self._known.get(tree_no)
        if known is not None:
            return len(known.file_of)  # what is behind by a revision is as good for weighing words
        row = session.one(
            self.store.sql(
                "SELECT count(*) FROM code_files f JOIN code_chunks c ON c.file_no = f.no"
                " WHERE f.project_no = :project AND f.tree_no = ?"
            ),
            (tree_no,),
        )
        return int(row[0]) if row else 0

    def defined(
        self, session: Session, tree_no: int, names: Sequence[str], limit: int
    ) -> list[DefinedRow]:
        """What is defined by some names; in all about ``limit`` for each."""
        found: list[DefinedRow] = []
        for part in parts(names):
            rows = session.all(
                self.store.sql(
                    "SELECT name, kind, file_no, first_line FROM code_nodes"
                    f" WHERE project_no = :project AND tree_no = ? AND name IN ({marks(len(part))})"
                    f" AND kind <> 'file' ORDER BY name, file_no, no LIMIT {int(limit * len(part))}"
                ),
                (tree_no, *part),
            )
            found += [
                DefinedRow(from_storable(row[0]), row[1], int(row[2]), first_line=int(row[3]))
                for row in rows
            ]
        return found
