"""Store trees, files, nodes, chunks and facts: SQL only, no decisions.

Every statement names ``:project``; see ``core.scope``. A tree's revision grows with every
transaction that changes it, and each file keeps the revision of its last change. A reader that
holds the tree in memory compares revisions to see which files to read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from smara.codegraph.models import TreeStatus
from smara.core.escape import from_storable
from smara.core.items import grouped
from smara.core.startup.record import dataclass, field, replace
from smara.database.database import PART, Row, Session, marks
from smara.database.project_store import ProjectStore
from smara.database.session import number


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


@dataclass(slots=True)
class WriteBatch:
    """The parts of files that a transaction is going to write."""

    added_nodes: list[NodeRow] = field(default_factory=list)
    changed_nodes: list[NodeRow] = field(default_factory=list)
    removed_nodes: list[int] = field(default_factory=list)
    added_chunks: list[ChunkRow] = field(default_factory=list)
    moved_chunks: list[ChunkRow] = field(default_factory=list)
    removed_chunks: list[int] = field(default_factory=list)
    facts: list[tuple[int, bytes, bytes, bytes]] = field(default_factory=list)
    """(file, outline, uses, keys)"""
    without_facts: list[int] = field(default_factory=list)
    touched: list[tuple[int, int, int]] = field(default_factory=list)
    """(size, time, file) of files with the same content"""


VERSION = 4
"""Of what is read from files. An index of another version is made again."""

_TREE = ", ".join(TreeRow._fields)
_NODE = ", ".join(NodeRow._fields)
_CHUNK = ", ".join(ChunkRow._fields)
_FILES = (
    "SELECT no, path, hash, size, mtime_ns, stale_at IS NOT NULL, revision, skip FROM code_files"
    " WHERE project_no = :project AND tree_no = ?"
)
_OUTLINES = (
    "SELECT f.path, f.no, n.no, x.outline FROM code_files f JOIN code_facts x ON x.file_no = f.no"
    " JOIN code_nodes n ON n.file_no = f.no AND n.kind = 'file'"
    " WHERE f.project_no = :project AND f.tree_no = ? AND f.skip IS NULL"
)


class CodeStore(ProjectStore):
    """All tables of the code of one project."""

    # trees

    def tree_of(self, session: Session, root: str) -> TreeRow | None:
        rows = self.rows(
            session,
            f"SELECT {_TREE} FROM code_trees WHERE project_no = :project AND root = ?",
            root,
        )
        return TreeRow(*rows[0]) if rows else None

    def trees(self, session: Session) -> list[TreeRow]:
        """Return every tree of the project, the last one indexed first."""
        rows = self.rows(
            session,
            f"SELECT {_TREE} FROM code_trees WHERE project_no = :project"
            " ORDER BY coalesce(finished_at, 0) DESC, no",
        )
        return [TreeRow(*row) for row in rows]

    def begin_tree(self, session: Session, root: str, now_ms: int) -> TreeRow:
        """Return the tree of a root, made when it is new.

        One of an older version is being built again.
        """
        rows = self.rows(
            session,
            "INSERT INTO code_trees (project_no, root, state, version, started_at)"
            " VALUES (:project, ?, 'building', ?, ?) ON CONFLICT (project_no, root) DO UPDATE"
            " SET started_at = excluded.started_at, version = excluded.version,"
            " state = CASE WHEN code_trees.version = excluded.version THEN code_trees.state"
            f" ELSE 'building' END RETURNING {_TREE}",
            root,
            VERSION,
            now_ms,
        )
        return TreeRow(*rows[0])

    def finish_tree(
        self,
        session: Session,
        tree_no: int,
        branch: str | None,
        head: str | None,
        counts: dict[str, Any],
        now_ms: int,
    ) -> None:
        self.run(
            session,
            "UPDATE code_trees SET state = 'ready', branch = ?, head = ?, counts = ?,"
            " finished_at = ? WHERE project_no = :project AND no = ?",
            *(branch, head, json.dumps(counts), now_ms, tree_no),
        )

    def next_revision(self, session: Session, tree_no: int) -> int:
        """Return the revision of what is about to be written.

        No other transaction writes to this tree until this one ends.
        """
        return self.number(
            session,
            "UPDATE code_trees SET revision = revision + 1 WHERE project_no = :project AND no = ?"
            " RETURNING revision",
            tree_no,
        )

    def revision(self, session: Session, tree_no: int) -> int:
        return self.number(
            session,
            "SELECT revision FROM code_trees WHERE project_no = :project AND no = ?",
            tree_no,
        )

    def reserve(self, kind: str, count: int) -> int:
        """Reserve ``count`` unique numbers and return the first.

        A transaction of its own.
        """
        with self.database.write(is_derived=True) as session:
            return number(
                session,
                "UPDATE code_numbers SET next_no = next_no + ? WHERE kind = ?"
                " RETURNING next_no - ?",
                (count, kind, count),
            )

    # files

    def files(
        self, session: Session, tree_no: int, paths: Sequence[str] | None = None
    ) -> dict[str, FileRow]:
        """Return the files of a tree, or some of them, by path."""
        condition = "" if paths is None else " AND path IN (:some)"
        rows = self.rows(session, f"{_FILES}{condition}", tree_no, some=paths)
        return {row[1]: _file_row(row) for row in rows}

    def below(self, session: Session, tree_no: int, folder: str) -> list[FileRow]:
        """Return the files in a folder and in those below it."""
        statement = f"{_FILES} AND substr(path, 1, ?) = ?"
        rows = self.rows(session, statement, tree_no, len(folder) + 1, f"{folder}/")
        return list(map(_file_row, rows))

    def one_of_each_language(self, session: Session, tree_no: int) -> list[str]:
        """Return the path of some file of each language in a tree."""
        rows = self.rows(
            session,
            "SELECT min(path) FROM code_files WHERE project_no = :project AND tree_no = ?"
            " AND language IS NOT NULL GROUP BY language",
            tree_no,
        )
        return [row[0] for row in rows]

    def paths(self, session: Session, tree_no: int) -> list[Row]:
        """(path, number, revision) of the indexed files of a tree."""
        return self.rows(
            session,
            "SELECT path, no, revision FROM code_files WHERE project_no = :project"
            " AND tree_no = ? AND skip IS NULL",
            tree_no,
        )

    def put_file(self, session: Session, tree_no: int, values: Sequence[Any]) -> None:
        """Write a file's row.

        (no, path, language, kind, hash, size, mtime, lines, is test, stale at, indexed at,
        revision, skip).
        """
        self.run(
            session,
            "INSERT INTO code_files (project_no, tree_no, no, path, language, kind, hash,"
            " size, mtime_ns, lines, is_test, stale_at, indexed_at, revision, skip)"
            f" VALUES (:project, ?, {marks(13)}) ON CONFLICT (tree_no, path) DO UPDATE"
            " SET language = excluded.language, kind = excluded.kind, hash = excluded.hash,"
            " size = excluded.size, mtime_ns = excluded.mtime_ns, lines = excluded.lines,"
            " is_test = excluded.is_test, stale_at = excluded.stale_at,"
            " indexed_at = excluded.indexed_at, revision = excluded.revision,"
            " skip = excluded.skip,"
            " edges = CASE WHEN excluded.skip IS NULL THEN code_files.edges END",
            tree_no,
            *values,
        )

    def mark_stale(self, session: Session, numbers: Sequence[int], now_ms: int) -> None:
        """Note that what is known of files is behind.

        Those that are marked already keep their time.
        """
        self.run(
            session,
            "UPDATE code_files SET stale_at = ? WHERE project_no = :project AND stale_at IS NULL"
            " AND skip IS NULL AND no IN (:some)",
            now_ms,
            some=numbers,
        )

    def mark_all_stale(self, session: Session, tree_no: int, now_ms: int) -> None:
        self.run(
            session,
            "UPDATE code_files SET stale_at = ? WHERE project_no = :project AND tree_no = ?"
            " AND stale_at IS NULL AND skip IS NULL AND language IS NOT NULL",
            now_ms,
            tree_no,
        )

    def stale(self, session: Session, tree_no: int, limit: int) -> list[tuple[int, str]]:
        """Return files with stale edges as (number, path), by path."""
        # Not in order of their paths: SQLite would walk the index of all paths for it.
        rows = self.rows(
            session,
            "SELECT no, path FROM code_files WHERE project_no = :project AND tree_no = ?"
            f" AND stale_at IS NOT NULL LIMIT {int(limit)}",
            tree_no,
        )
        return sorted([(row[0], row[1]) for row in rows], key=lambda row: row[1])

    # what there is

    def skips(self, session: Session, tree_no: int) -> dict[str, int]:
        """Return how many files were looked at and not indexed, by reason."""
        rows = self.rows(
            session,
            "SELECT skip, count(*) FROM code_files WHERE project_no = :project AND tree_no = ?"
            " AND skip IS NOT NULL GROUP BY skip",
            tree_no,
        )
        return {reason: int(count) for reason, count in rows}

    def count(self, session: Session, table: str, tree_no: int, condition: str = "") -> int:
        """Count a tree's rows in a table."""
        where = f"WHERE project_no = :project AND tree_no = ?{condition}"
        return self.number(session, f"SELECT count(*) FROM {table} {where}", tree_no)

    def standing(self, session: Session, tree: TreeRow) -> TreeStatus:
        """Return how a tree stands, with nothing counted but what has changed.

        What is asked before every answer.
        """
        condition = " AND stale_at IS NOT NULL AND skip IS NULL"
        return TreeStatus(
            tree.root,
            "ready" if tree.state == "ready" else "building",
            tree.branch,
            commit=tree.head,
            stale_files=self.count(session, "code_files", tree.no, condition),
            indexed_at=tree.finished_at,
            revision=tree.revision,
        )

    def status(self, session: Session, tree: TreeRow) -> TreeStatus:
        """Return how a tree stands, counted now."""
        rows = self.rows(
            session,
            "SELECT coalesce(language, kind), count(*), coalesce(sum(length(edges)), 0)"
            " FROM code_files WHERE project_no = :project AND tree_no = ? AND skip IS NULL"
            " GROUP BY 1 ORDER BY 2 DESC, 1",
            tree.no,
        )
        return replace(
            self.standing(session, tree),
            files=sum(int(count) for _, count, _ in rows),
            nodes=self.count(session, "code_nodes", tree.no),
            edges=sum(int(size) for *_, size in rows) // 16,
            chunks=self.count(session, "code_chunks", tree.no),
            skipped=json.loads(tree.counts).get("skipped", {}),
            languages={language: int(count) for language, count, _ in rows},
        )

    # nodes

    def write(self, session: Session, tree_no: int, batch: WriteBatch) -> None:
        """Write the parts of files."""
        self.remove_rows(session, "code_chunks", "no", numbers=batch.removed_chunks)
        self.remove_rows(session, "code_nodes", "no", numbers=batch.removed_nodes)
        self.remove_rows(session, "code_facts", "file_no", numbers=batch.without_facts)
        tree = (tree_no,)
        for statement, rows in (
            (
                f"INSERT INTO code_nodes (project_no, tree_no, {_NODE})"
                f" VALUES (:project, ?, {marks(13)})",
                [tree + row for row in batch.added_nodes],
            ),
            (
                "UPDATE code_nodes SET parent_no = ?, first_line = ?, last_line = ?, body_hash = ?,"
                " sketch = ?, signature = ?, doc = ? WHERE project_no = :project AND no = ?",
                [(*row[6:], row.no) for row in batch.changed_nodes],
            ),
            (
                f"INSERT INTO code_chunks (project_no, tree_no, {_CHUNK})"
                f" VALUES (:project, ?, {marks(9)})",
                [tree + row for row in batch.added_chunks],
            ),
            (
                "UPDATE code_chunks SET node_no = ?, first_line = ?, last_line = ?"
                " WHERE project_no = :project AND no = ?",
                [(each.node_no, *each[5:7], each.no) for each in batch.moved_chunks],
            ),
            (
                "INSERT INTO code_facts (project_no, tree_no, file_no, outline, uses, asked)"
                " VALUES (:project, ?, ?, ?, ?, ?) ON CONFLICT (file_no) DO UPDATE"
                " SET outline = excluded.outline, uses = excluded.uses",
                [tree + row for row in batch.facts],
            ),
            (
                "UPDATE code_files SET size = ?, mtime_ns = ?"
                " WHERE project_no = :project AND no = ?",
                batch.touched,
            ),
        ):
            self.run_many(session, statement, rows)

    def nodes(self, session: Session, file_nos: Sequence[int]) -> dict[int, list[NodeRow]]:
        """Return the nodes of files, by file, in order of their lines."""
        statement = (
            f"SELECT {_NODE} FROM code_nodes WHERE project_no = :project"
            " AND file_no IN (:some) ORDER BY file_no, first_line, no"
        )
        nodes = map(NodeRow._make, self.rows(session, statement, some=file_nos))
        # Bytes are the same on both databases only when made so.
        return grouped(
            (
                node.file_no,
                node._replace(body_hash=bytes(node.body_hash), sketch=bytes(node.sketch)),
            )
            for node in nodes
        )

    def named(self, session: Session, tree_no: int, names: Sequence[str], limit: int) -> list[Row]:
        """Return definitions by name, some per name.

        (number, path, language, kind, name, qualname), by path and line.
        """
        return self.rows(
            session,
            "SELECT no, path, language, kind, name, qualname FROM ("
            "SELECT n.no AS no, f.path AS path, f.language AS language, n.kind AS kind,"
            " n.name AS name, n.qualname AS qualname, n.first_line AS first_line,"
            " n.ordinal AS ordinal, row_number() OVER (PARTITION BY n.name"
            " ORDER BY f.path, n.first_line, n.qualname, n.ordinal) AS place"
            " FROM code_nodes n JOIN code_files f ON f.no = n.file_no"
            " WHERE n.project_no = :project AND n.tree_no = ? AND n.name IN (:some)"
            f" AND n.kind <> 'file') AS found WHERE place <= {int(limit)}"
            " ORDER BY name, path, first_line, qualname, ordinal",
            tree_no,
            some=names,
        )

    # chunks

    def chunks(self, session: Session, file_nos: Sequence[int]) -> dict[int, list[ChunkRow]]:
        """Return the chunks of files, by file."""
        statement = (
            f"SELECT {_CHUNK} FROM code_chunks WHERE project_no = :project"
            " AND file_no IN (:some) ORDER BY no"
        )
        rows = self.rows(session, statement, some=file_nos)
        return grouped((row[1], ChunkRow(*row)) for row in rows)

    def chunks_by_number(self, session: Session, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """Chunks by number, for reading; those that are gone are left out."""
        statement = (
            f"SELECT {_CHUNK} FROM code_chunks WHERE project_no = :project AND no IN (:some)"
        )
        return {
            chunk.no: chunk._replace(
                name=from_storable(chunk.name),
                prefix=from_storable(chunk.prefix),
                text=from_storable(chunk.text),
            )
            for chunk in map(ChunkRow._make, self.rows(session, statement, some=numbers))
        }

    # facts and edges

    def facts(self, session: Session, column: str, file_nos: Sequence[int]) -> dict[int, bytes]:
        """Return one column of the facts of files, by file."""
        rows = self.rows(
            session,
            f"SELECT file_no, {column} FROM code_facts WHERE project_no = :project"
            " AND file_no IN (:some)",
            some=file_nos,
        )
        return {no: bytes(data) for no, data in rows}

    def outlines(
        self, session: Session, tree_no: int, paths: Sequence[str] | None = None
    ) -> list[Row]:
        """Return (path, file number, node number, outline) of files."""
        rest = " ORDER BY f.path" if paths is None else " AND f.path IN (:some)"
        return self.rows(session, f"{_OUTLINES}{rest}", tree_no, some=paths)

    def dependency_keys(self, session: Session, tree_no: int, after_revision: int) -> list[Row]:
        """(file, keys) of files that changed since a revision."""
        return self.rows(
            session,
            "SELECT f.no, x.asked FROM code_files f JOIN code_facts x ON x.file_no = f.no"
            " WHERE f.project_no = :project AND f.tree_no = ? AND f.revision > ?",
            tree_no,
            after_revision,
        )

    def put_edges(
        self,
        session: Session,
        rows: Sequence[tuple[int, bytes, bytes]],
        without_edges: Sequence[int],
        revision: int,
    ) -> None:
        """Write (file, edges, keys).

        These files, and those without edges, are then current.
        """
        self.run_many(
            session,
            "UPDATE code_files SET edges = ?, revision = ?, stale_at = NULL"
            " WHERE project_no = :project AND no = ?",
            [(edges, revision, no) for no, edges, _ in rows],
        )
        self.run_many(
            session,
            "UPDATE code_facts SET asked = ? WHERE project_no = :project AND file_no = ?",
            [(keys, no) for no, _, keys in rows],
        )
        self.run(
            session,
            "UPDATE code_files SET stale_at = NULL WHERE project_no = :project AND no IN (:some)",
            some=without_edges,
        )

    def edges(self, session: Session, file_nos: Sequence[int]) -> dict[int, bytes]:
        """Return the packed edges of files."""
        statement = "SELECT no, edges FROM code_files WHERE project_no = :project AND no IN (:some)"
        rows = self.rows(session, statement, some=file_nos)
        return {no: bytes(data or b"") for no, data in rows}

    # removing

    def remove_rows(
        self, session: Session, table: str, column: str, numbers: Sequence[int]
    ) -> None:
        """Remove rows by number; chunks from the text index too."""
        if table == "code_chunks":
            self.database.records.remove(session, "code", numbers)
        self.run(
            session,
            f"DELETE FROM {table} WHERE project_no = :project AND {column} IN (:some)",
            some=numbers,
        )

    def remove_files(self, session: Session, numbers: Sequence[int]) -> None:
        """Remove files with all that belongs to them."""
        chunks = self.chunks(session, numbers).values()
        chunk_nos = [chunk.no for inside in chunks for chunk in inside]
        self.remove_rows(session, "code_chunks", "no", numbers=chunk_nos)
        self.remove_rows(session, "code_nodes", "file_no", numbers=numbers)
        self.remove_rows(session, "code_facts", "file_no", numbers=numbers)
        self.remove_rows(session, "code_files", "no", numbers=numbers)

    def remove_tree(self, session: Session, tree_no: int) -> None:
        """Remove a tree with everything in it."""
        self.remove_files(session, [row.no for row in self.files(session, tree_no).values()])
        for table in ("code_modules", "code_churn", "code_cochange"):
            self.run(
                session, f"DELETE FROM {table} WHERE project_no = :project AND tree_no = ?", tree_no
            )
        self.run(session, "DELETE FROM code_trees WHERE project_no = :project AND no = ?", tree_no)


def _file_row(row: Row) -> FileRow:
    found = FileRow(*row)
    return found._replace(hash=bytes(found.hash), is_stale=bool(found.is_stale))


def indexed_chunks(session: Session) -> Iterator[tuple[int, int, str, ChunkRow]]:
    """Yield every project's chunks for the shared index.

    As (number, project, path, chunk).
    """
    after = 0
    while True:
        rows = session.all(
            "SELECT c.no, c.project_no, f.path, c.file_no, c.node_no, c.kind, c.name, "
            "c.first_line, c.last_line,"
            " c.prefix, c.text FROM code_chunks c JOIN code_files f ON f.no = c.file_no"
            f" WHERE c.no > ? ORDER BY c.no LIMIT {PART}",
            (after,),
        )
        if not rows:
            return
        for row in rows:
            yield row[0], row[1], row[2], ChunkRow(row[0], *row[3:])
        after = rows[-1][0]
