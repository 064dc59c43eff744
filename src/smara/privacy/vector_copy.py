"""Copy the vectors of records from one store to another.

Only for models that both know; for others the target makes its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from smara.core.scope import Scope
from smara.database.database import Database, Session, marks, parts
from smara.database.vectors import Shelf, VectorKind, vector_code
from smara.meaning.store import VectorStore


class VectorCopy:
    """Copies the vectors of records, for models that both stores know."""

    def __init__(
        self,
        database: Database,
        session: Session,
        target: Database,
        scopes: tuple[Scope, Scope],
    ) -> None:
        self._session = session
        self._target = target
        self._source = VectorStore(database, scopes[0])
        self._store = VectorStore(target, scopes[1])
        with target.write() as other:
            self._pairs = self._spaces(other)
            self._is_every_space = len(self._pairs) == len(self._store.spaces(other))

    def _spaces(self, other: Session) -> list[tuple[int, int]]:
        """Return the spaces of both projects; one without any gets the source's."""
        there = {space.model_id: space.no for space in self._store.spaces(other)}
        spaces = self._source.spaces(self._session)
        if not there:
            columns = "state, created_at, ready_at, chosen_at, used_at"
            for space in spaces:
                no = self._store.add_space(
                    other, space.model_id, space.dims, space.embedder, space.created_at
                )
                there[space.model_id] = no
                values = self._session.one(
                    f"SELECT {columns} FROM vector_fills WHERE project_no = ? AND space_no = ?",
                    (self._source.scope.project_no, space.no),
                )
                other.run(
                    f"INSERT INTO vector_fills (project_no, space_no, {columns})"
                    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (self._store.scope.project_no, no, *(values or ())),
                )
                self._store.make_shelves(other, no)
                for walk in self._source.walks(self._session, space.no):
                    self._store.put_walk(other, no, walk)
        return [(space.no, there[space.model_id]) for space in spaces if space.model_id in there]

    def copy(self, other: Session, kind: VectorKind, pairs: Mapping[int, int]) -> None:
        """Copy the vectors of records, given as numbers in both stores."""
        if not pairs:
            return
        done: Counter[int] = Counter()
        for mine, theirs in self._pairs:
            source = self._source.shelf(self._session, mine, kind)
            target = self._store.shelf(other, theirs, kind)
            found = self._read(source, pairs)
            self._target.vectors.put(other, target, {pairs[no]: each for no, each in found.items()})
            done.update(pairs[no] for no in found)
        every = len(self._pairs) if self._is_every_space else 0
        whole = sorted(no for no, count in done.items() if count == every)
        waiting = (int(self._store.scope.project_no), vector_code(kind))
        for part in parts(whole):
            other.run(
                "DELETE FROM embedding_queue WHERE project_no = ? AND space_no = 0 AND kind = ?"
                f" AND no IN ({marks(len(part))})",
                (*waiting, *part),
            )

    def _read(self, shelf: Shelf, pairs: Mapping[int, int]) -> dict[int, list[bytes]]:
        found: dict[int, list[bytes]] = {}
        for no in sorted(pairs):
            if pieces := self._source.database.vectors.of_record(self._session, shelf, no):
                found[no] = pieces
        return found
