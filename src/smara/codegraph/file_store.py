"""Store trees and their files, and map the rows of code tables.

A row class mirrors one table. `CodeStore` builds on `FileStore` and adds what is inside the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from smara.codegraph.models import TreeStatus
from smara.database.database import Row, Session, marks, parts
from smara.database.project_store import ProjectStore


class TreeRow(NamedTuple):
    """A tree as its row says it is. ``counts`` is JSON."""

    no: int
    root: str
    branch: str | None
    head: str | None
    state: str
    revision: int
    version: int
    started_at: int
    finished_at: int | None
    counts: str


class FileRow(NamedTuple):
    """The facts of a file that show whether it changed."""

    no: int
    path: str
    hash: bytes
    size: int
    mtime_ns: int
    is_stale: bool
    revision: int
    skip: str | None


class NodeRow(NamedTuple):
    """A node as it is written.

    ``ordinal`` tells nodes of one kind and name in a file apart.
    """

    no: int
    file_no: int
    kind: str
    name: str
    qualname: str
    ordinal: int
    parent_no: int | None
    first_line: int
    last_line: int
    body_hash: bytes
    sketch: bytes
    signature: str
    doc: str


class ChunkRow(NamedTuple):
    """A chunk as it is written, its texts redacted and storable."""

    no: int
    file_no: int
    node_no: int | None
    kind: str
    name: str
    first_line: int
    last_line: int
    prefix: str
    text: str


def node_row(row: Row) -> NodeRow:
    """Return a row of ``code_nodes``, its bytes the same on both databases."""
    found = NodeRow(*row)
    return found._replace(body_hash=bytes(found.body_hash), sketch=bytes(found.sketch))


VERSION = 4
"""Of what is read from files. An index of another version is made again."""

_TREE = "no, root, branch, head, state, revision, version, started_at, finished_at, counts"
_FILES = (
    "SELECT no, path, hash, size, mtime_ns, stale_at IS NOT NULL, revision, skip FROM code_files"
    " WHERE project_no = :project AND tree_no = ?"
)


def _file_row(row: Row) -> FileRow:
    found = FileRow(*row)
    return found._replace(hash=bytes(found.hash), is_stale=bool(found.is_stale))


class FileStore(ProjectStore):
    """The tables of a project's trees and of the files in them."""

    # trees

    def tree_of(self, session: Session, root: str) -> TreeRow | None:
        row = session.one(
            self.sql(f"SELECT {_TREE} FROM code_trees WHERE project_no = :project AND root = ?"),
            (root,),
        )
        return TreeRow(*row) if row else None

    def trees(self, session: Session) -> list[TreeRow]:
        """Return every tree of the project, the last one indexed first."""
        rows = session.all(
            self.sql(
                f"SELECT {_TREE} FROM code_trees WHERE project_no = :project ORDER BY "
                "coalesce(finished_at, 0) DESC, no"
            )
        )
        return [TreeRow(*row) for row in rows]

    def begin_tree(self, session: Session, root: str, now_ms: int) -> TreeRow:
        """Return the tree of a root, made when there is none.

        One of an older version is being built again.
        """
        session.run(
            self.sql(
                "INSERT INTO code_trees (project_no, root, state, version, started_at)"
                " VALUES (:project, ?, 'building', ?, ?) ON CONFLICT (project_no, root) DO UPDATE"
                " SET started_at = excluded.started_at, version = excluded.version,"
                " state = CASE WHEN code_trees.version = excluded.version THEN code_trees.state "
                "ELSE 'building' END"
            ),
            (root, VERSION, now_ms),
        )
        return self.tree_of(session, root) or TreeRow(
            0,
            root,
            None,
            head=None,
            state="building",
            revision=0,
            version=VERSION,
            started_at=now_ms,
            finished_at=None,
            counts="{}",
        )

    def finish_tree(
        self,
        session: Session,
        tree_no: int,
        branch: str | None,
        head: str | None,
        counts: dict[str, Any],
        now_ms: int,
    ) -> None:
        session.run(
            self.sql(
                "UPDATE code_trees SET state = 'ready', branch = ?, head = ?, counts = ?, "
                "finished_at = ?"
                " WHERE project_no = :project AND no = ?"
            ),
            (branch, head, json.dumps(counts), now_ms, tree_no),
        )

    def next_revision(self, session: Session, tree_no: int) -> int:
        """Return the revision of what is about to be written.

        No other transaction writes to this tree until this one ends.
        """
        row = session.one(
            self.sql(
                "UPDATE code_trees SET revision = revision + 1 WHERE project_no = :project AND no "
                "= ?"
                " RETURNING revision"
            ),
            (tree_no,),
        )
        return int(row[0]) if row else 0

    def revision(self, session: Session, tree_no: int) -> int:
        row = session.one(
            self.sql("SELECT revision FROM code_trees WHERE project_no = :project AND no = ?"),
            (tree_no,),
        )
        return int(row[0]) if row else 0

    def reserve(self, kind: str, count: int) -> int:
        """Reserve ``count`` unique numbers and return the first.

        A transaction of its own.
        """
        with self.database.write(is_derived=True) as session:
            row = session.one(
                "UPDATE code_numbers SET next_no = next_no + ? WHERE kind = ? RETURNING next_no - "
                "?",
                (count, kind, count),
            )
        return int(row[0]) if row else 0

    # files

    def files(
        self, session: Session, tree_no: int, paths: Sequence[str] | None = None
    ) -> dict[str, FileRow]:
        """Return the files of a tree, or some of them, by path."""
        if paths is None:
            rows = session.all(self.sql(_FILES), (tree_no,))
        else:
            rows = []
            for part in parts(paths):
                rows += session.all(
                    self.sql(f"{_FILES} AND path IN ({marks(len(part))})"), (tree_no, *part)
                )
        return {row[1]: _file_row(row) for row in rows}

    def one_of_each_language(self, session: Session, tree_no: int) -> list[str]:
        """Return the path of some file of each language in a tree."""
        rows = session.all(
            self.sql(
                "SELECT min(path) FROM code_files WHERE project_no = :project AND tree_no = ? AND "
                "language IS NOT NULL"
                " GROUP BY language"
            ),
            (tree_no,),
        )
        return [row[0] for row in rows]

    def below(self, session: Session, tree_no: int, folder: str) -> list[FileRow]:
        """Return the files in a folder and in those below it."""
        rows = session.all(
            self.sql(f"{_FILES} AND substr(path, 1, ?) = ?"),
            (tree_no, len(folder) + 1, f"{folder}/"),
        )
        return list(map(_file_row, rows))

    def paths(self, session: Session, tree_no: int) -> list[Row]:
        """(path, number, revision) of the indexed files of a tree."""
        return session.all(
            self.sql(
                "SELECT path, no, revision FROM code_files WHERE project_no = :project AND "
                "tree_no = ? AND skip IS NULL"
            ),
            (tree_no,),
        )

    def put_file(self, session: Session, tree_no: int, values: Sequence[Any]) -> None:
        """Write a file's row.

        (no, path, language, kind, hash, size, mtime, lines, is test, stale at, indexed at,
        revision, skip).
        """
        session.run(
            self.sql(
                "INSERT INTO code_files (project_no, tree_no, no, path, language, kind, hash, "
                "size, mtime_ns, lines,"
                f" is_test, stale_at, indexed_at, revision, skip) VALUES (:project, ?, {marks(13)})"
                " ON CONFLICT (tree_no, path) DO UPDATE SET language = excluded.language, kind = "
                "excluded.kind,"
                " hash = excluded.hash, size = excluded.size, mtime_ns = excluded.mtime_ns, lines "
                "= excluded.lines,"
                " is_test = excluded.is_test, stale_at = excluded.stale_at, indexed_at = "
                "excluded.indexed_at,"
                " revision = excluded.revision, skip = excluded.skip,"
                " edges = CASE WHEN excluded.skip IS NULL THEN code_files.edges END"
            ),
            (tree_no, *values),
        )

    def touch_files(self, session: Session, rows: Iterable[tuple[int, int, int]]) -> None:
        """Update size and time of files with the same content."""
        session.run_many(
            self.sql(
                "UPDATE code_files SET size = ?, mtime_ns = ? WHERE project_no = :project AND no "
                "= ?"
            ),
            list(rows),
        )

    def mark_stale(self, session: Session, numbers: Sequence[int], now_ms: int) -> None:
        """Note that what is known of files is behind.

        Those that are marked already keep their time.
        """
        for part in parts(numbers):
            session.run(
                self.sql(
                    "UPDATE code_files SET stale_at = ? WHERE project_no = :project AND stale_at "
                    "IS NULL"
                    f" AND skip IS NULL AND no IN ({marks(len(part))})"
                ),
                (now_ms, *part),
            )

    def mark_all_stale(self, session: Session, tree_no: int, now_ms: int) -> None:
        session.run(
            self.sql(
                "UPDATE code_files SET stale_at = ? WHERE project_no = :project AND tree_no = ? "
                "AND stale_at IS NULL"
                " AND skip IS NULL AND language IS NOT NULL"
            ),
            (now_ms, tree_no),
        )

    def unmark(self, session: Session, numbers: Sequence[int]) -> None:
        """Note that files are up to date."""
        for part in parts(numbers):
            session.run(
                self.sql(
                    "UPDATE code_files SET stale_at = NULL WHERE project_no = :project AND no IN "
                    f"({marks(len(part))})"
                ),
                part,
            )

    def stale(self, session: Session, tree_no: int, limit: int) -> list[tuple[int, str]]:
        """Return files with stale edges as (number, path), by path."""
        rows = session.all(
            self.sql(
                # Not in order of their paths: SQLite would walk the index of all paths for it.
                "SELECT no, path FROM code_files WHERE project_no = :project AND tree_no = ? AND "
                "stale_at IS NOT NULL"
                f" LIMIT {int(limit)}"
            ),
            (tree_no,),
        )
        return sorted([(row[0], row[1]) for row in rows], key=lambda row: row[1])

    # what there is

    def skips(self, session: Session, tree_no: int) -> list[tuple[str, int]]:
        """Return how many files were looked at and not indexed, by reason."""
        rows = session.all(
            self.sql(
                "SELECT skip, count(*) FROM code_files WHERE project_no = :project AND tree_no = ?"
                " AND skip IS NOT NULL GROUP BY skip"
            ),
            (tree_no,),
        )
        return [(row[0], int(row[1])) for row in rows]

    def count_files(self, session: Session, tree_no: int) -> int:
        """Count a tree's files, with those left out after opening."""
        row = session.one(
            self.sql("SELECT count(*) FROM code_files WHERE project_no = :project AND tree_no = ?"),
            (tree_no,),
        )
        return int(row[0]) if row else 0

    def standing(self, session: Session, tree: TreeRow) -> TreeStatus:
        """Return how a tree stands, with nothing counted but what has changed.

        What is asked before every answer.
        """
        row = session.one(
            self.sql(
                "SELECT count(*) FROM code_files WHERE project_no = :project AND tree_no = ? AND "
                "stale_at IS NOT NULL"
                " AND skip IS NULL"
            ),
            (tree.no,),
        )
        state: Literal["building", "ready"] = "ready" if tree.state == "ready" else "building"
        return TreeStatus(
            tree.root,
            state,
            tree.branch,
            commit=tree.head,
            stale_files=int(row[0]) if row else 0,
            indexed_at=tree.finished_at,
            revision=tree.revision,
        )

    def status(self, session: Session, tree: TreeRow) -> TreeStatus:
        """Return how a tree stands, counted now."""
        values = (tree.no,)
        languages: dict[str, int] = {}
        files = stale = size = 0
        for language, count, late, edges in session.all(
            self.sql(
                "SELECT coalesce(language, kind), count(*), sum(CASE WHEN stale_at IS NULL THEN 0 "
                "ELSE 1 END),"
                " coalesce(sum(length(edges)), 0) FROM code_files"
                " WHERE project_no = :project AND tree_no = ? AND skip IS NULL GROUP BY 1 ORDER "
                "BY 2 DESC, 1"
            ),
            values,
        ):
            languages[language] = int(count)
            files, stale, size = files + int(count), stale + int(late), size + int(edges)
        nodes = session.one(
            self.sql("SELECT count(*) FROM code_nodes WHERE project_no = :project AND tree_no = ?"),
            values,
        )
        chunks = session.one(
            self.sql(
                "SELECT count(*) FROM code_chunks WHERE project_no = :project AND tree_no = ?"
            ),
            values,
        )
        return TreeStatus(
            tree.root,
            "ready" if tree.state == "ready" else "building",
            tree.branch,
            commit=tree.head,
            files=files,
            nodes=int(nodes[0]) if nodes else 0,
            edges=size // 16,
            chunks=int(chunks[0]) if chunks else 0,
            stale_files=stale,
            skipped=json.loads(tree.counts).get("skipped", {}),
            languages=languages,
            indexed_at=tree.finished_at,
            revision=tree.revision,
        )
