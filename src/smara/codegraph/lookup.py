"""What is asked of a tree's tables: its nodes by number, name and place, and its graph file by
file.

Every statement names ``:project``, the wall; see ``core.scope``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from smara.codegraph.edges import edges_of
from smara.codegraph.models import Edge, Node
from smara.core.scope import Scope
from smara.core.storable import from_storable, to_storable
from smara.database.database import Database, Row, Session, marks, parts
from smara.database.stores import ProjectStore

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

    def revision(self, session: Session) -> int:
        """How often the tree was written to."""
        row = session.one(
            self.sql("SELECT revision FROM code_trees WHERE project_no = :project AND no = ?"),
            (self.tree_no,),
        )
        return int(row[0]) if row else 0

    def is_building(self, session: Session) -> bool:
        """Whether the first index of the tree is not finished yet."""
        row = session.one(
            self.sql("SELECT state FROM code_trees WHERE project_no = :project AND no = ?"),
            (self.tree_no,),
        )
        return row is not None and row[0] != "ready"

    def files(self, session: Session) -> list[tuple[int, int]]:
        """The number and revision of each file."""
        rows = session.all(
            self.sql(
                "SELECT no, revision FROM code_files WHERE project_no = :project AND tree_no = ? "
                "AND skip IS NULL"
            ),
            (self.tree_no,),
        )
        return [(int(no), int(revision)) for no, revision in rows]

    def file_rows(self, session: Session, nos: Sequence[int] | None) -> Iterator[Row]:
        """``no, path, is_test, stale_at, edges`` of some files, or of all."""
        columns = "SELECT no, path, is_test, stale_at, edges FROM code_files"
        yield from self._some(session, columns, "no", nos=nos, condition=" AND skip IS NULL")

    def node_rows(self, session: Session, file_nos: Sequence[int] | None) -> Iterator[Row]:
        """``file_no, no, parent_no, kind, first_line, last_line`` of the nodes of some files, or of
        all.
        """
        columns = "SELECT file_no, no, parent_no, kind, first_line, last_line FROM code_nodes"
        yield from self._some(session, columns, "file_no", nos=file_nos)

    def _some(
        self,
        session: Session,
        columns: str,
        column: str,
        nos: Sequence[int] | None,
        condition: str = "",
    ) -> Iterator[Row]:
        where = self.sql("WHERE project_no = :project AND tree_no = ?")
        if nos is None:
            yield from session.all(f"{columns} {where}{condition}", (self.tree_no,))
            return
        for some in parts(nos):
            yield from session.all(
                f"{columns} {where}{condition} AND {column} IN ({marks(len(some))})",
                (self.tree_no, *some),
            )

    def names(self, session: Session) -> Iterator[tuple[int, str]]:
        """The number and name of every node."""
        rows = session.all(
            self.sql("SELECT no, name FROM code_nodes WHERE project_no = :project AND tree_no = ?"),
            (self.tree_no,),
        )
        return ((int(no), from_storable(name)) for no, name in rows)

    def nodes(self, session: Session, nos: Collection[int]) -> dict[int, Node]:
        """Some nodes by their numbers; those that are gone are left out."""
        wanted = sorted(set(nos))
        found: dict[int, Node] = {}
        for some in parts(wanted):
            rows = session.all(
                self.sql(f"{_NUMBERED} AND n.no IN ({marks(len(some))})"), (self.tree_no, *some)
            )
            found.update((int(row[0]), _node(row)) for row in rows)
        return found

    def named(self, session: Session, names: Iterable[str], limit: int = 1_000) -> list[Node]:
        """The nodes with one of some names, by path and line."""
        some = list(names)
        rows = session.all(
            self.sql(
                f"{_NAMED} AND n.name IN ({marks(len(some))}) ORDER BY f.path, n.first_line, n.no "
                "LIMIT ?"
            ),
            (self.tree_no, *some, limit),
        )
        return [_node(row) for row in rows]

    def members(self, session: Session, classes: Sequence[int], name: str) -> list[Node]:
        """What some classes have by this name."""
        found: list[Node] = []
        for some in parts(classes):
            rows = session.all(
                self.sql(f"{_NAMED} AND n.name = ? AND n.parent_no IN ({marks(len(some))})"),
                (self.tree_no, to_storable(name), *some),
            )
            found += [_node(row) for row in rows]
        return found

    def in_file(self, session: Session, path: str, name: str | None = None) -> list[Node]:
        """The nodes of a file, by line, the file's own first; with a name, only those called so."""
        condition, values = ("", ()) if name is None else (" AND n.name = ?", (to_storable(name),))
        rows = session.all(
            self.sql(
                f"{_NUMBERED} AND f.path = ? AND f.tree_no = ?{condition} ORDER BY n.first_line, "
                "n.no"
            ),
            (self.tree_no, to_storable(path), self.tree_no, *values),
        )
        found = [_node(row) for row in rows]
        return sorted(found, key=lambda node: node.kind != "file")

    def file_nodes(self, session: Session, paths: Sequence[str]) -> list[Node]:
        """The nodes of files themselves, by path."""
        found: list[Node] = []
        for some in parts([to_storable(path) for path in paths]):
            rows = session.all(
                self.sql(
                    f"{_NUMBERED} AND n.kind = 'file' AND f.tree_no = ? AND f.path IN "
                    f"({marks(len(some))})"
                ),
                (self.tree_no, self.tree_no, *some),
            )
            found += [_node(row) for row in rows]
        return sorted(found, key=lambda node: node.path)

    def edges_in(self, session: Session, path: str) -> list[Edge]:
        """The edges that start in a file."""
        row = session.one(
            self.sql(
                "SELECT edges FROM code_files WHERE project_no = :project AND tree_no = ? AND "
                "path = ?"
            ),
            (self.tree_no, path),
        )
        return edges_of(row[0]) if row else []

    def paths(self, session: Session) -> list[str]:
        """The path of every file, in order."""
        rows = session.all(
            self.sql(
                "SELECT path FROM code_files WHERE project_no = :project AND tree_no = ? AND skip "
                "IS NULL ORDER BY path"
            ),
            (self.tree_no,),
        )
        return [from_storable(row[0]) for row in rows]

    def file_facts(self, session: Session) -> dict[str, tuple[str | None, int]]:
        """The language and the number of lines of each file, by path."""
        rows = session.all(
            self.sql(
                "SELECT path, language, lines FROM code_files"
                " WHERE project_no = :project AND tree_no = ? AND skip IS NULL"
            ),
            (self.tree_no,),
        )
        return {from_storable(path): (language, int(lines)) for path, language, lines in rows}

    def distinct_names(self, session: Session) -> list[str]:
        """Every name there is, once."""
        rows = session.all(
            self.sql(
                "SELECT DISTINCT name FROM code_nodes WHERE project_no = :project AND tree_no = ? "
                "AND kind <> 'file'"
            ),
            (self.tree_no,),
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
