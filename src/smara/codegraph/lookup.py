"""Look up files, nodes and edges of one tree."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from smara.codegraph.codec import edges_of
from smara.codegraph.models import CodePiece, Edge, Node
from smara.core.escape import from_storable, to_storable
from smara.core.scope import Scope
from smara.database.database import Database, Row, Session
from smara.database.project_store import ProjectStore

_NODES = (
    "SELECT n.no, n.kind, n.name, n.qualname, f.path, n.first_line, n.last_line, n.parent_no, "
    "n.signature, n.doc,"
    " n.body_hash, f.stale_at FROM code_nodes n JOIN code_files f ON f.no = n.file_no"
)
_NAMED = f"{_NODES} WHERE n.project_no = :project AND n.tree_no = ?"
# The plus keeps SQLite from reading a whole tree by an index that begins with it.
_NUMBERED = f"{_NODES} WHERE +n.project_no = :project AND +n.tree_no = ?"


class CodeLookup(ProjectStore):
    """One tree of a project, for reading."""

    def __init__(self, database: Database, scope: Scope, tree_no: int) -> None:
        super().__init__(database, scope)
        self.tree_no = tree_no

    def tree_state(self, session: Session) -> tuple[int, bool]:
        """Return the tree's revision, and whether its index is complete."""
        rows = self.rows(
            session,
            "SELECT revision, state FROM code_trees WHERE project_no = :project AND no = ?",
            self.tree_no,
        )
        return (int(rows[0][0]), rows[0][1] == "ready") if rows else (0, True)

    def files(self, session: Session, columns: str, nos: Sequence[int] | None = None) -> list[Row]:
        """Read columns of some indexed files, or of all."""
        return self._select(session, f"{columns} FROM code_files", " AND skip IS NULL", "no", nos)

    def node_rows(
        self, session: Session, columns: str, file_nos: Sequence[int] | None = None
    ) -> list[Row]:
        """Read columns of the nodes of some files, or of all."""
        return self._select(session, f"{columns} FROM code_nodes", "", "file_no", file_nos)

    def _select(
        self, session: Session, what: str, condition: str, column: str, nos: Sequence[int] | None
    ) -> list[Row]:
        where = f"WHERE project_no = :project AND tree_no = ?{condition}"
        rest = "" if nos is None else f" AND {column} IN (:some)"
        return self.rows(session, f"SELECT {what} {where}{rest}", self.tree_no, some=nos)

    def nodes(self, session: Session, nos: Collection[int]) -> dict[int, Node]:
        """Return some nodes by their numbers.

        Those that are gone are left out.
        """
        statement = f"{_NUMBERED} AND n.no IN (:some)"
        rows = self.rows(session, statement, self.tree_no, some=sorted(set(nos)))
        return {int(row[0]): _node(row) for row in rows}

    def named(self, session: Session, name: str, limit: int = 1_000) -> list[Node]:
        """Return the nodes of a name, by path and line."""
        statement = f"{_NAMED} AND n.name = ? ORDER BY f.path, n.first_line, n.no LIMIT ?"
        return list(map(_node, self.rows(session, statement, self.tree_no, name, limit)))

    def members(self, session: Session, classes: Sequence[int], name: str) -> list[Node]:
        """Return what some classes have by this name."""
        statement = f"{_NAMED} AND n.name = ? AND n.parent_no IN (:some)"
        rows = self.rows(session, statement, self.tree_no, to_storable(name), some=classes)
        return list(map(_node, rows))

    def in_file(self, session: Session, path: str, name: str | None = None) -> list[Node]:
        """Return the nodes of a file, by line, the file's own first.

        With a name, only those called so.
        """
        condition, values = ("", ()) if name is None else (" AND n.name = ?", (to_storable(name),))
        rows = self.rows(
            session,
            f"{_NUMBERED} AND f.path = ? AND f.tree_no = ?{condition} ORDER BY n.first_line, n.no",
            self.tree_no,
            to_storable(path),
            self.tree_no,
            *values,
        )
        return sorted(map(_node, rows), key=lambda node: node.kind != "file")

    def file_nodes(self, session: Session, paths: Sequence[str]) -> list[Node]:
        """Return the nodes of files themselves, by path."""
        statement = f"{_NUMBERED} AND n.kind = 'file' AND f.tree_no = ? AND f.path IN (:some)"
        some = [to_storable(path) for path in paths]
        rows = self.rows(session, statement, self.tree_no, self.tree_no, some=some)
        return sorted(map(_node, rows), key=lambda node: node.path)

    def edges_in(self, session: Session, path: str) -> list[Edge]:
        """Return the edges that start in a file."""
        rows = self.rows(
            session,
            "SELECT edges FROM code_files WHERE project_no = :project AND tree_no = ? AND path = ?",
            self.tree_no,
            path,
        )
        return edges_of(rows[0][0]) if rows else []

    def piece(
        self, session: Session, path: str, first_line: int, last_line: int
    ) -> CodePiece | None:
        """Return the chunk of a file with these lines."""
        rows = self.rows(
            session,
            "SELECT c.kind, c.name, c.text, f.stale_at FROM code_files f JOIN code_chunks c"
            " ON c.file_no = f.no AND c.project_no = f.project_no"
            " WHERE f.project_no = :project AND f.tree_no = ? AND f.path = ?"
            " AND c.first_line = ? AND c.last_line = ? ORDER BY c.no LIMIT 1",
            self.tree_no,
            path,
            first_line,
            last_line,
        )
        for kind, name, text, stale_at in rows:
            return CodePiece(
                path,
                kind,
                from_storable(name),
                first_line=first_line,
                last_line=last_line,
                text=from_storable(text),
                is_stale=stale_at is not None,
            )
        return None

    def distinct_names(self, session: Session) -> list[str]:
        """Return every name there is, once."""
        rows = self.rows(
            session,
            "SELECT DISTINCT name FROM code_nodes WHERE project_no = :project AND tree_no = ?"
            " AND kind <> 'file'",
            self.tree_no,
        )
        return [from_storable(row[0]) for row in rows]


def _node(row: Row) -> Node:
    no, kind, name, qualname, path, first, last, parent, signature, doc, body_hash, stale_at = row
    return Node(
        int(no),
        kind,
        from_storable(name),
        qualname=from_storable(qualname),
        path=from_storable(path),
        first_line=int(first),
        last_line=int(last),
        parent_no=None if parent is None else int(parent),
        signature=from_storable(signature),
        doc=from_storable(doc),
        body_hash=bytes(body_hash),
        is_stale=stale_at is not None,
    )
