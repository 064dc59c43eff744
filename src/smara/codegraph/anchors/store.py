"""Store anchors: SQL and row mapping, no decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from smara.codegraph.anchors.models import Anchor, CodePlace, NewAnchor, Owner
from smara.core.escape import from_storable, to_storable
from smara.database.database import PART, Row, Session, marks, parts
from smara.database.project_store import ProjectStore

_COLUMNS = (
    "kind, path, symbol, first_line, last_line, hash, sketch, twins, namesakes, commit_sha, "
    "named_by, no, owner,"
    " owner_no, repository, anchored_at, replaced_at"
)
_PLACE = "f.path, n.qualname, n.first_line, n.last_line, n.body_hash, n.sketch, n.name"
T = TypeVar("T")


class AnchorStore(ProjectStore):
    """The anchors of one project, and the index they are held against."""

    # anchors

    def of(self, session: Session, owner: Owner, numbers: Sequence[int]) -> dict[int, list[Anchor]]:
        """Return the anchors in force of some memories or observations, by number."""
        found: dict[int, list[Anchor]] = {}
        for part in parts(list(dict.fromkeys(numbers))):
            rows = session.all(
                self.sql(
                    f"SELECT {_COLUMNS} FROM code_anchors WHERE project_no = :project AND owner = ?"
                    f" AND owner_no IN ({marks(len(part))}) AND replaced_at IS NULL ORDER BY no"
                ),
                (owner, *part),
            )
            for row in rows:
                found.setdefault(row[13], []).append(_anchor(row))
        return found

    def history(self, session: Session, owner: Owner, owner_no: int) -> list[Anchor]:
        """Return every anchor it ever had, the newest first."""
        rows = session.all(
            self.sql(
                f"SELECT {_COLUMNS} FROM code_anchors WHERE project_no = :project AND owner = ? "
                "AND owner_no = ?"
                " ORDER BY no DESC"
            ),
            (owner, owner_no),
        )
        return [_anchor(row) for row in rows]

    def owners_at(self, session: Session, owner: Owner, paths: Sequence[str] | None) -> list[int]:
        """Return who has an anchor in one of some files, or anywhere.

        Memories that were put aside are left out.
        """
        statement = (
            "SELECT DISTINCT a.owner_no FROM code_anchors a WHERE a.project_no = :project AND "
            "a.owner = ?"
            " AND a.replaced_at IS NULL"
        )
        if owner == "memory":
            statement += (
                " AND EXISTS (SELECT 1 FROM memories m WHERE m.no = a.owner_no AND "
                "m.deprecated_at IS NULL)"
            )
        if paths is None:
            return sorted(row[0] for row in session.all(self.sql(statement), (owner,)))
        found: set[int] = set()
        for part in parts(list(dict.fromkeys([to_storable(path) for path in paths]))):
            rows = session.all(
                self.sql(f"{statement} AND a.path IN ({marks(len(part))})"), (owner, *part)
            )
            found.update(row[0] for row in rows)
        return sorted(found)

    def replace(
        self,
        session: Session,
        owner: Owner,
        owner_no: int,
        anchors: Iterable[NewAnchor],
        kept: Sequence[int],
        repository: str,
        has_index: bool,
        now_ms: int,
    ) -> None:
        """Replace anchors, except those kept; old ones stay as history."""
        rest = f" AND no NOT IN ({marks(len(kept))})" if kept else ""
        session.run(
            self.sql(
                "UPDATE code_anchors SET replaced_at = ? WHERE project_no = :project AND owner = "
                "? AND owner_no = ?"
                f" AND replaced_at IS NULL{rest}"
            ),
            (now_ms, owner, owner_no, *kept),
        )
        session.run_many(
            self.sql(
                "INSERT INTO code_anchors (project_no, owner, owner_no, kind, path, symbol, "
                "first_line, last_line,"
                " hash, sketch, twins, namesakes, commit_sha, repository, named_by, anchored_at)"
                f" VALUES (:project, {marks(15)})"
            ),
            [
                (
                    owner,
                    owner_no,
                    each.kind,
                    to_storable(each.path),
                    to_storable(each.symbol),
                    each.first_line,
                    each.last_line,
                    each.hash,
                    each.sketch,
                    each.twins,
                    each.namesakes,
                    each.commit,
                    to_storable(repository),
                    each.named_by,
                    now_ms,
                )
                for each in anchors
            ],
        )
        session.run(
            self.sql(
                "INSERT INTO code_anchored (project_no, owner, owner_no, has_index, anchored_at)"
                " VALUES (:project, ?, ?, ?, ?) ON CONFLICT (project_no, owner, owner_no) DO UPDATE"
                " SET has_index = excluded.has_index, anchored_at = excluded.anchored_at"
            ),
            (owner, owner_no, int(has_index), now_ms),
        )

    def take_back(self, session: Session, owner: Owner, owner_no: int, since_ms: int) -> None:
        """Undo the anchors that replaced others since a moment."""
        wanted = (owner, owner_no, since_ms)
        replaced = session.one(
            self.sql(
                "SELECT 1 FROM code_anchors WHERE project_no = :project AND owner = ? AND "
                "owner_no = ?"
                " AND replaced_at >= ? LIMIT 1"
            ),
            wanted,
        )
        if replaced is None:
            return
        session.run(
            self.sql(
                "DELETE FROM code_anchors WHERE project_no = :project AND owner = ? AND owner_no "
                "= ?"
                " AND replaced_at IS NULL AND anchored_at >= ?"
            ),
            wanted,
        )
        session.run(
            self.sql(
                "UPDATE code_anchors SET replaced_at = NULL WHERE project_no = :project AND owner "
                "= ? AND owner_no = ?"
                " AND replaced_at >= ?"
            ),
            wanted,
        )

    def newest(self, session: Session, owner: Owner) -> int:
        """Return the highest number of a memory or an observation."""
        name = "memories" if owner == "memory" else "observations"
        row = session.one(self.sql(f"SELECT max(no) FROM {name} WHERE project_no = :project"))
        return int(row[0] or 0) if row else 0

    def pending(
        self, session: Session, owner: Owner, has_index: bool, above: int, below: int, limit: int
    ) -> list[int]:
        """Return pending records between two numbers, newest first.

        Pending is what was never anchored, or only while there was no index. The numbers spare
        looking again at those that were anchored before.
        """
        condition = "a.owner_no IS NULL OR a.has_index = 0" if has_index else "a.owner_no IS NULL"
        if owner == "memory":
            statement = (
                "SELECT m.no FROM memories m LEFT JOIN code_anchored a ON a.project_no = "
                "m.project_no"
                " AND a.owner = 'memory' AND a.owner_no = m.no"
                " WHERE m.project_no = :project AND m.no > ? AND m.no < ? AND m.deprecated_at IS "
                "NULL"
                f" AND ({condition}) ORDER BY m.no DESC LIMIT ?"
            )
        else:
            statement = (
                "SELECT o.no FROM observations o LEFT JOIN code_anchored a ON a.project_no = "
                "o.project_no"
                " AND a.owner = 'observation' AND a.owner_no = o.no"
                " WHERE o.project_no = :project AND o.no > ? AND o.no < ?"
                " AND NOT (o.kind = 'reflection' AND o.state = 'buffered')"
                f" AND ({condition}) ORDER BY o.no DESC LIMIT ?"
            )
        return [row[0] for row in session.all(self.sql(statement), (above, below, limit))]

    # the index

    def files(self, session: Session, tree_no: int, paths: Sequence[str]) -> dict[str, Row]:
        """(number, hash, size, mtime, is stale, language) of indexed files, by path."""
        found: dict[str, Row] = {}
        for part in parts(list(dict.fromkeys([to_storable(path) for path in paths]))):
            for row in session.all(
                self.sql(
                    "SELECT path, no, hash, size, mtime_ns, stale_at, language FROM code_files"
                    " WHERE project_no = :project AND tree_no = ? AND path IN "
                    f"({marks(len(part))}) AND skip IS NULL"
                ),
                (tree_no, *part),
            ):
                found[from_storable(row[0])] = row[1:]
        return found

    def ending(self, session: Session, tree_no: int, end: str) -> list[str]:
        """Return the indexed files whose path ends like this, two at most."""
        pattern = to_storable(end).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        rows = session.all(
            self.sql(
                "SELECT path FROM code_files WHERE project_no = :project AND tree_no = ? AND skip "
                "IS NULL"
                " AND path LIKE ? ESCAPE ? LIMIT 2"
            ),
            (tree_no, f"%/{pattern}", "\\"),
        )
        return [from_storable(row[0]) for row in rows]

    def repository(self, session: Session) -> str | None:
        """Return the repository that the project is, when it is one."""
        row = session.one(self.sql("SELECT git_common_dir FROM projects WHERE no = :project"))
        return row[0] if row else None

    def trees(self, session: Session) -> dict[str, tuple[int, bool]]:
        """Return each index's number and completeness by folder, newest first."""
        rows = session.all(
            self.sql(
                "SELECT root, no, finished_at FROM code_trees WHERE project_no = :project"
                " ORDER BY coalesce(finished_at, 0) DESC, no"
            )
        )
        return {from_storable(row[0]): (row[1], row[2] is not None) for row in rows}

    def files_with_hash(
        self, session: Session, tree_no: int, hashes: Sequence[bytes]
    ) -> list[tuple[str, bytes]]:
        """(path, hash) of indexed files by what is in them."""
        rows: list[Row] = []
        for part in parts(list(dict.fromkeys(hashes))):
            rows += session.all(
                self.sql(
                    "SELECT path, hash FROM code_files WHERE project_no = :project AND tree_no = ?"
                    f" AND hash IN ({marks(len(part))}) AND skip IS NULL"
                ),
                (tree_no, *part),
            )
        return [(from_storable(row[0]), bytes(row[1])) for row in rows]

    def in_files(
        self, session: Session, files: Sequence[int], symbols: Sequence[str] | None = None
    ) -> list[CodePlace]:
        """Definitions in files, of some qualified names or of all."""
        wanted = (
            None if symbols is None else list(dict.fromkeys(to_storable(each) for each in symbols))
        )
        names = (
            wanted if wanted is not None and len(wanted) <= PART else None
        )  # so many: the files whole
        rest = "" if names is None else f" AND n.qualname IN ({marks(len(names))})"
        found: list[CodePlace] = []
        for part in parts(list(dict.fromkeys(files))):
            found += self._places(
                session,
                f"n.file_no IN ({marks(len(part))}) AND n.kind <> 'file'{rest}",
                (*part, *(names or ())),
            )
        return found

    def with_bodies(
        self, session: Session, tree_no: int, hashes: Sequence[bytes]
    ) -> list[CodePlace]:
        """Definitions with one of some bodies."""
        found: list[CodePlace] = []
        for part in parts(list(dict.fromkeys(hashes))):
            rest = f"n.tree_no = ? AND n.body_hash IN ({marks(len(part))}) AND n.kind <> 'file'"
            found += self._places(session, rest, (tree_no, *part))
        return found

    def called(self, session: Session, tree_no: int, names: Sequence[str]) -> list[CodePlace]:
        """Definitions with one of some last names."""
        found: list[CodePlace] = []
        for part in parts(list(dict.fromkeys([to_storable(name) for name in names]))):
            rest = f"n.tree_no = ? AND n.name IN ({marks(len(part))}) AND n.kind <> 'file'"
            found += self._places(session, rest, (tree_no, *part))
        return found

    def _places(self, session: Session, rest: str, values: Sequence[Any]) -> list[CodePlace]:
        rows = session.all(
            self.sql(
                f"SELECT {_PLACE} FROM code_nodes n JOIN code_files f ON f.no = n.file_no"
                f" WHERE +n.project_no = :project AND {rest} ORDER BY f.path, n.first_line, n.no "
                "LIMIT 50000"
            ),
            values,
        )
        return [
            CodePlace(
                from_storable(row[0]),
                from_storable(row[1]),
                row[2],
                last_line=row[3],
                hash=bytes(row[4]),
                sketch=bytes(row[5]),
                name=from_storable(row[6]),
            )
            for row in rows
        ]


def _anchor(row: Row) -> Anchor:
    (
        kind,
        path,
        symbol,
        first,
        last,
        hash_,
        sketch,
        twins,
        namesakes,
        commit,
        named_by,
        no,
        owner,
        owner_no,
        repository,
        anchored_at,
        replaced_at,
    ) = row
    return Anchor(
        kind,
        from_storable(path),
        from_storable(symbol),
        first_line=first,
        last_line=last,
        hash=bytes(hash_),
        sketch=bytes(sketch),
        twins=bytes(twins),
        namesakes=bytes(namesakes),
        commit=commit,
        named_by=named_by,
        no=no,
        owner=owner,
        owner_no=owner_no,
        repository=from_storable(repository),
        anchored_at=anchored_at,
        replaced_at=replaced_at,
    )
