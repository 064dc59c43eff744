"""Store anchors: SQL and row mapping, no decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from smara.codegraph.anchors.models import Anchor, CodePlace, NewAnchor, Owner
from smara.core.escape import from_storable, to_storable
from smara.core.items import grouped
from smara.database.database import PART, Row, Session, marks
from smara.database.project_store import ProjectStore

_COLUMNS = (
    "kind, path, symbol, first_line, last_line, hash, sketch, twins, namesakes, commit_sha,"
    " named_by, no, owner, repository"
)


class AnchorStore(ProjectStore):
    """The anchors of one project, and the index they are held against."""

    # anchors

    def of(self, session: Session, owner: Owner, numbers: Sequence[int]) -> dict[int, list[Anchor]]:
        """Return the anchors in force of some memories or observations, by number."""
        rows = self.rows(
            session,
            f"SELECT owner_no, {_COLUMNS} FROM code_anchors WHERE project_no = :project"
            " AND owner = ? AND replaced_at IS NULL AND owner_no IN (:some) ORDER BY no",
            owner,
            some=list(dict.fromkeys(numbers)),
        )
        return grouped((owner_no, _anchor(row)) for owner_no, *row in rows)

    def owners_at(self, session: Session, owner: Owner, paths: Sequence[str] | None) -> list[int]:
        """Return who has an anchor in one of some files, or anywhere.

        Memories that were put aside are left out.
        """
        statement = (
            "SELECT DISTINCT a.owner_no FROM code_anchors a WHERE a.project_no = :project"
            " AND a.owner = ? AND a.replaced_at IS NULL"
        )
        if owner == "memory":
            statement += (
                " AND EXISTS (SELECT 1 FROM memories m WHERE m.no = a.owner_no"
                " AND m.project_no = a.project_no AND m.deprecated_at IS NULL)"
            )
        condition = "" if paths is None else " AND a.path IN (:some)"
        rows = self.rows(session, f"{statement}{condition}", owner, some=_distinct(paths))
        return sorted({row[0] for row in rows})

    def replace(
        self,
        session: Session,
        owner: Owner,
        owner_no: int,
        anchors: Iterable[NewAnchor],
        staying: Sequence[int],
        repository: str,
        has_index: bool,
        now_ms: int,
    ) -> None:
        """Replace anchors, except those staying; old ones remain as history."""
        rest = f" AND no NOT IN ({marks(len(staying))})" if staying else ""
        self.run(
            session,
            "UPDATE code_anchors SET replaced_at = ? WHERE project_no = :project AND owner = ?"
            f" AND owner_no = ? AND replaced_at IS NULL{rest}",
            *(now_ms, owner, owner_no, *staying),
        )
        self.run_many(
            session,
            "INSERT INTO code_anchors (project_no, owner, owner_no, kind, path, symbol, first_line,"
            " last_line, hash, sketch, twins, namesakes, commit_sha, repository, named_by,"
            f" anchored_at) VALUES (:project, {marks(15)})",
            [
                (
                    *(owner, owner_no, each.kind, to_storable(each.path), to_storable(each.symbol)),
                    *(each.first_line, each.last_line, each.hash, each.sketch, each.twins),
                    *(each.namesakes, each.commit, to_storable(repository), each.named_by, now_ms),
                )
                for each in anchors
            ],
        )
        self.run(
            session,
            "INSERT INTO code_anchored (project_no, owner, owner_no, has_index, anchored_at)"
            " VALUES (:project, ?, ?, ?, ?) ON CONFLICT (project_no, owner, owner_no) DO UPDATE"
            " SET has_index = excluded.has_index, anchored_at = excluded.anchored_at",
            *(owner, owner_no, int(has_index), now_ms),
        )

    def take_back(self, session: Session, owner: Owner, owner_no: int, since_ms: int) -> None:
        """Undo the anchors that replaced others since a moment."""
        values = (owner, owner_no, since_ms)
        where = "WHERE project_no = :project AND owner = ? AND owner_no = ?"
        replaced = f"SELECT 1 FROM code_anchors {where} AND replaced_at >= ? LIMIT 1"
        if not self.rows(session, replaced, *values):
            return
        for statement in (
            f"DELETE FROM code_anchors {where} AND replaced_at IS NULL AND anchored_at >= ?",
            f"UPDATE code_anchors SET replaced_at = NULL {where} AND replaced_at >= ?",
        ):
            self.run(session, statement, *values)

    def newest(self, session: Session, owner: Owner) -> int:
        """Return the highest number of a memory or an observation."""
        name = "memories" if owner == "memory" else "observations"
        return self.number(
            session, f"SELECT coalesce(max(no), 0) FROM {name} WHERE project_no = :project"
        )

    def pending(
        self, session: Session, owner: Owner, above: int, below: int, limit: int
    ) -> list[int]:
        """Return pending records between two numbers, newest first.

        Pending is what was never anchored, or only while there was no index. The numbers spare
        looking again at those that were anchored before.
        """
        table, condition = "observations", "NOT (o.kind = 'reflection' AND o.state = 'buffered')"
        if owner == "memory":
            table, condition = "memories", "o.deprecated_at IS NULL"
        rows = self.rows(
            session,
            f"SELECT o.no FROM {table} o LEFT JOIN code_anchored a ON a.project_no = o.project_no"
            " AND a.owner = ? AND a.owner_no = o.no WHERE o.project_no = :project AND o.no > ?"
            f" AND o.no < ? AND {condition} AND (a.owner_no IS NULL OR a.has_index = 0)"
            " ORDER BY o.no DESC LIMIT ?",
            *(owner, above, below, limit),
        )
        return [row[0] for row in rows]

    # the index

    def files(self, session: Session, tree_no: int, paths: Collection[str]) -> dict[str, Row]:
        """(number, hash, size, mtime, is stale, language) of indexed files, by path."""
        rows = self.rows(
            session,
            "SELECT path, no, hash, size, mtime_ns, stale_at, language FROM code_files"
            " WHERE project_no = :project AND tree_no = ? AND skip IS NULL AND path IN (:some)",
            tree_no,
            some=_distinct(paths),
        )
        return {from_storable(row[0]): row[1:] for row in rows}

    def ending(self, session: Session, tree_no: int, end: str) -> list[str]:
        """Return the indexed files whose path ends like this, two at most."""
        pattern = to_storable(end).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        rows = self.rows(
            session,
            "SELECT path FROM code_files WHERE project_no = :project AND tree_no = ?"
            " AND skip IS NULL AND path LIKE ? ESCAPE ? LIMIT 2",
            *(tree_no, f"%/{pattern}", "\\"),
        )
        return [from_storable(row[0]) for row in rows]

    def repositories(self, session: Session) -> set[str]:
        """Return the git directories that were seen as this project."""
        statement = (
            "SELECT path FROM project_places WHERE project_no = :project AND kind = 'git'"
            " AND path IS NOT NULL"
        )
        return {row[0] for row in self.rows(session, statement)}

    def trees(self, session: Session) -> dict[str, tuple[int, bool]]:
        """Return each index's number and completeness by folder, newest first."""
        rows = self.rows(
            session,
            "SELECT root, no, finished_at FROM code_trees WHERE project_no = :project"
            " ORDER BY coalesce(finished_at, 0) DESC, no",
        )
        return {from_storable(row[0]): (row[1], row[2] is not None) for row in rows}

    def paths_with_hash(self, session: Session, tree_no: int, digest: bytes) -> list[str]:
        """Return the indexed files with some content."""
        statement = (
            "SELECT path FROM code_files WHERE project_no = :project AND tree_no = ?"
            " AND hash = ? AND skip IS NULL"
        )
        return [from_storable(row[0]) for row in self.rows(session, statement, tree_no, digest)]

    def in_files(
        self, session: Session, files: Sequence[int], symbols: Sequence[str]
    ) -> list[CodePlace]:
        """Definitions in files, of some qualified names."""
        names = _distinct(symbols)
        if len(names) > PART:
            names = []  # so many: the files whole
        condition = f"n.qualname IN ({marks(len(names))}) AND " if names else ""
        some = list(dict.fromkeys(files))
        return self._places(session, f"{condition}n.file_no IN (:some)", *names, some=some)

    def with_bodies(
        self, session: Session, tree_no: int, hashes: Sequence[bytes]
    ) -> list[CodePlace]:
        """Definitions with one of some bodies."""
        some = list(dict.fromkeys(hashes))
        return self._places(session, "n.tree_no = ? AND n.body_hash IN (:some)", tree_no, some=some)

    def called(self, session: Session, tree_no: int, names: Sequence[str]) -> list[CodePlace]:
        """Definitions with one of some last names."""
        condition = "n.tree_no = ? AND n.name IN (:some)"
        return self._places(session, condition, tree_no, some=_distinct(names))

    def _places(
        self, session: Session, condition: str, *values: Any, some: Sequence[Any]
    ) -> list[CodePlace]:
        rows = self.rows(
            session,
            "SELECT f.path, n.qualname, n.first_line, n.last_line, n.body_hash, n.sketch, n.name"
            " FROM code_nodes n JOIN code_files f ON f.no = n.file_no"
            f" WHERE +n.project_no = :project AND {condition} AND n.kind <> 'file'"
            " ORDER BY f.path, n.first_line, n.no LIMIT 50000",
            *values,
            some=some,
        )
        return [
            CodePlace(
                from_storable(path),
                from_storable(qualname),
                first,
                last_line=last,
                hash=bytes(digest),
                sketch=bytes(sketch),
                name=from_storable(name),
            )
            for path, qualname, first, last, digest, sketch, name in rows
        ]


def _distinct(texts: Collection[str] | None) -> Any:
    """Return texts as they are stored, each once; ``None`` stays."""
    return None if texts is None else list(dict.fromkeys(map(to_storable, texts)))


def _anchor(row: Sequence[Any]) -> Anchor:
    anchor = Anchor(*row)
    return replace(
        anchor,
        path=from_storable(anchor.path),
        symbol=from_storable(anchor.symbol),
        hash=bytes(anchor.hash),
        sketch=bytes(anchor.sketch),
        twins=bytes(anchor.twins),
        namesakes=bytes(anchor.namesakes),
        repository=from_storable(anchor.repository),
    )
