"""Store the nodes, chunks and facts of files: SQL only, no decisions.

Every statement names ``:project``; see ``core.scope``. A tree's revision grows with every
transaction that changes it, and each file keeps the revision of its last change. A reader that
holds the tree in memory compares revisions to see which files to read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from smara.codegraph.file_store import ChunkRow, FileStore, NodeRow, node_row
from smara.codegraph.models import CodePiece
from smara.core.escape import from_storable
from smara.database.database import PART, Row, Session, marks, parts

_OUTLINES = (
    "SELECT f.path, f.no, n.no, x.outline FROM code_files f JOIN code_facts x ON x.file_no = f.no"
    " JOIN code_nodes n ON n.file_no = f.no AND n.kind = 'file'"
    " WHERE f.project_no = :project AND f.tree_no = ? AND f.skip IS NULL"
)


class CodeStore(FileStore):
    """All tables of the code of one project."""

    # nodes

    def nodes(self, session: Session, file_nos: Sequence[int]) -> dict[int, list[NodeRow]]:
        """Return the nodes of files, by file, in order of their lines."""
        found: dict[int, list[NodeRow]] = {}
        for part in parts(file_nos):
            rows = session.all(
                self.sql(
                    "SELECT no, file_no, kind, name, qualname, ordinal, parent_no, first_line, "
                    "last_line, body_hash,"
                    f" sketch, signature, doc FROM code_nodes WHERE project_no = :project"
                    f" AND file_no IN ({marks(len(part))}) ORDER BY file_no, first_line, no"
                ),
                part,
            )
            for row in rows:
                found.setdefault(row[1], []).append(node_row(row))
        return found

    def add_nodes(self, session: Session, tree_no: int, rows: Iterable[NodeRow]) -> None:
        session.run_many(
            self.sql(
                "INSERT INTO code_nodes (project_no, tree_no, no, file_no, kind, name, qualname, "
                "ordinal, parent_no,"
                " first_line, last_line, body_hash, sketch, signature, doc) VALUES (:project, ?, "
                f"{marks(13)})"
            ),
            [(tree_no, *row) for row in rows],
        )

    def write_nodes(self, session: Session, rows: Iterable[NodeRow]) -> None:
        """Write what may change of nodes that stay."""
        session.run_many(
            self.sql(
                "UPDATE code_nodes SET parent_no = ?, first_line = ?, last_line = ?, body_hash = "
                "?, sketch = ?,"
                " signature = ?, doc = ? WHERE project_no = :project AND no = ?"
            ),
            [(*row[6:], row.no) for row in rows],
        )

    def named(self, session: Session, tree_no: int, names: Sequence[str], limit: int) -> list[Row]:
        """Return definitions by name, some per name.

        (number, path, language, kind, name, qualname), by path and line.
        """
        found: list[Row] = []
        for part in parts(names):
            found += session.all(
                self.sql(
                    "SELECT no, path, language, kind, name, qualname FROM ("
                    "SELECT n.no AS no, f.path AS path, f.language AS language, n.kind AS kind, "
                    "n.name AS name,"
                    " n.qualname AS qualname, n.first_line AS first_line, n.ordinal AS ordinal,"
                    " row_number() OVER (PARTITION BY n.name ORDER BY f.path, n.first_line, "
                    "n.qualname, n.ordinal)"
                    " AS place FROM code_nodes n JOIN code_files f ON f.no = n.file_no"
                    " WHERE n.project_no = :project AND n.tree_no = ? AND n.name IN "
                    f"({marks(len(part))})"
                    f" AND n.kind <> 'file') AS found WHERE place <= {int(limit)}"
                    " ORDER BY name, path, first_line, qualname, ordinal"
                ),
                (tree_no, *part),
            )
        return found

    # chunks

    def chunks(self, session: Session, file_nos: Sequence[int]) -> dict[int, list[ChunkRow]]:
        """Return the chunks of files, by file."""
        found: dict[int, list[ChunkRow]] = {}
        for part in parts(file_nos):
            rows = session.all(
                self.sql(
                    "SELECT no, file_no, node_no, kind, name, first_line, last_line, prefix, text "
                    "FROM code_chunks"
                    f" WHERE project_no = :project AND file_no IN ({marks(len(part))}) ORDER BY no"
                ),
                part,
            )
            for row in rows:
                found.setdefault(row[1], []).append(ChunkRow(*row))
        return found

    def chunks_by_number(self, session: Session, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """Chunks by number, for reading; those that are gone are left out."""
        found: dict[int, ChunkRow] = {}
        for part in parts(numbers):
            rows = session.all(
                self.sql(
                    "SELECT no, file_no, node_no, kind, name, first_line, last_line, prefix, text "
                    "FROM code_chunks"
                    f" WHERE project_no = :project AND no IN ({marks(len(part))})"
                ),
                part,
            )
            for row in rows:
                chunk = ChunkRow(*row)
                found[chunk.no] = chunk._replace(
                    name=from_storable(chunk.name),
                    prefix=from_storable(chunk.prefix),
                    text=from_storable(chunk.text),
                )
        return found

    def piece(
        self, session: Session, tree_no: int, path: str, first_line: int, last_line: int
    ) -> CodePiece | None:
        """Return the chunk of a file with these lines."""
        row = session.one(
            self.sql(
                "SELECT c.kind, c.name, c.text, f.stale_at FROM code_files f JOIN code_chunks c "
                "ON c.file_no = f.no"
                " WHERE f.project_no = :project AND f.tree_no = ? AND f.path = ? AND c.first_line "
                "= ?"
                " AND c.last_line = ? ORDER BY c.no LIMIT 1"
            ),
            (tree_no, path, first_line, last_line),
        )
        if row is None:
            return None
        name, text = from_storable(row[1]), from_storable(row[2])
        return CodePiece(
            path,
            row[0],
            name,
            first_line=first_line,
            last_line=last_line,
            text=text,
            is_stale=row[3] is not None,
        )

    def add_chunks(self, session: Session, tree_no: int, rows: Iterable[ChunkRow]) -> None:
        session.run_many(
            self.sql(
                "INSERT INTO code_chunks (project_no, tree_no, no, file_no, node_no, kind, name, "
                "first_line, last_line,"
                f" prefix, text) VALUES (:project, ?, {marks(9)})"
            ),
            [(tree_no, *row) for row in rows],
        )

    def move_chunks(self, session: Session, rows: Iterable[ChunkRow]) -> None:
        """Write the places of chunks whose text is the same."""
        session.run_many(
            self.sql(
                "UPDATE code_chunks SET node_no = ?, first_line = ?, last_line = ?"
                " WHERE project_no = :project AND no = ?"
            ),
            [(row.node_no, row.first_line, row.last_line, row.no) for row in rows],
        )

    def remove_chunks(self, session: Session, numbers: Sequence[int]) -> None:
        """Remove chunks, from the text index too."""
        self.database.records.remove(session, "code", numbers)
        self.remove_rows(session, "code_chunks", "no", numbers=numbers)

    # facts and edges

    def put_facts(
        self, session: Session, tree_no: int, rows: Iterable[tuple[int, bytes, bytes, bytes]]
    ) -> None:
        """Write (file, outline, uses, asked)."""
        session.run_many(
            self.sql(
                "INSERT INTO code_facts (project_no, tree_no, file_no, outline, uses, asked)"
                " VALUES (:project, ?, ?, ?, ?, ?) ON CONFLICT (file_no) DO UPDATE"
                " SET outline = excluded.outline, uses = excluded.uses"
            ),
            [(tree_no, *row) for row in rows],
        )

    def facts(self, session: Session, columns: str, file_nos: Sequence[int]) -> list[Row]:
        """Columns of the facts of files, the file's number first."""
        found: list[Row] = []
        for part in parts(file_nos):
            found += session.all(
                self.sql(
                    f"SELECT file_no, {columns} FROM code_facts WHERE project_no = :project"
                    f" AND file_no IN ({marks(len(part))})"
                ),
                part,
            )
        return found

    def outlines(
        self, session: Session, tree_no: int, paths: Sequence[str] | None = None
    ) -> list[Row]:
        """Return (path, file number, node number, outline) of files."""
        if paths is None:
            return session.all(self.sql(f"{_OUTLINES} ORDER BY f.path"), (tree_no,))
        return [
            row
            for part in parts(paths)
            for row in session.all(
                self.sql(f"{_OUTLINES} AND f.path IN ({marks(len(part))})"), (tree_no, *part)
            )
        ]

    def asked(self, session: Session, tree_no: int, after_revision: int) -> list[Row]:
        """(file, asked) of files that changed since a revision."""
        return session.all(
            self.sql(
                "SELECT f.no, x.asked FROM code_files f JOIN code_facts x ON x.file_no = f.no"
                " WHERE f.project_no = :project AND f.tree_no = ? AND f.revision > ?"
            ),
            (tree_no, after_revision),
        )

    def put_edges(self, session: Session, rows: Iterable[tuple[int, bytes, bytes, int]]) -> None:
        """Write (file, edges, asked, revision); the files are then current."""
        listed = list(rows)
        session.run_many(
            self.sql(
                "UPDATE code_files SET edges = ?, revision = ?, stale_at = NULL WHERE project_no "
                "= :project AND no = ?"
            ),
            [(edges, revision, no) for no, edges, _, revision in listed],
        )
        session.run_many(
            self.sql("UPDATE code_facts SET asked = ? WHERE project_no = :project AND file_no = ?"),
            [(asked, no) for no, _, asked, _ in listed],
        )

    def edges(self, session: Session, file_nos: Sequence[int]) -> dict[int, bytes]:
        """Return the packed edges of files."""
        found: dict[int, bytes] = {}
        for part in parts(file_nos):
            rows = session.all(
                self.sql(
                    "SELECT no, edges FROM code_files WHERE project_no = :project AND no IN "
                    f"({marks(len(part))})"
                ),
                part,
            )
            found.update((row[0], bytes(row[1] or b"")) for row in rows)
        return found

    # removing

    def remove_rows(
        self, session: Session, table: str, column: str, numbers: Sequence[int]
    ) -> None:
        """Remove a table's rows with these numbers in a column."""
        for part in parts(numbers):
            session.run(
                self.sql(
                    f"DELETE FROM {table} WHERE project_no = :project AND {column} IN "
                    f"({marks(len(part))})"
                ),
                part,
            )

    def remove_files(self, session: Session, numbers: Sequence[int]) -> None:
        """Remove files with all that belongs to them."""
        chunks = self.chunks(session, numbers).values()
        self.remove_chunks(session, [chunk.no for found in chunks for chunk in found])
        self.remove_rows(session, "code_nodes", "file_no", numbers=numbers)
        self.remove_rows(session, "code_facts", "file_no", numbers=numbers)
        self.remove_rows(session, "code_files", "no", numbers=numbers)

    def remove_tree(self, session: Session, tree_no: int) -> None:
        """Remove a tree with everything in it."""
        rows = session.all(
            self.sql("SELECT no FROM code_files WHERE project_no = :project AND tree_no = ?"),
            (tree_no,),
        )
        self.remove_files(session, [row[0] for row in rows])
        for table in ("code_modules", "code_churn", "code_cochange"):
            session.run(
                self.sql(f"DELETE FROM {table} WHERE project_no = :project AND tree_no = ?"),
                (tree_no,),
            )
        session.run(
            self.sql("DELETE FROM code_trees WHERE project_no = :project AND no = ?"), (tree_no,)
        )


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
