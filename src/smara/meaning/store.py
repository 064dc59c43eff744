"""Store vector spaces, walks, the queue, failures and the cache.

SQL and row mapping only; no decisions. Every statement names ``:project``, which isolates projects;
see ``core.scope``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smara.database.database import Session
from smara.database.project_store import ProjectStore
from smara.database.session import number
from smara.database.vectors import VECTOR_KINDS, Shelf, VectorKind, vector_code, vector_kind
from smara.meaning.models import EmbeddingFailure, Space

_SPACES = (
    "SELECT s.no, s.model_id, s.dims, s.embedder, f.state, f.created_at, f.ready_at, f.chosen_at,"
    " f.used_at"
    " FROM vector_fills f JOIN vector_spaces s ON s.no = f.space_no"
    " WHERE f.project_no = :project AND f.state <> 'dropped'"
)
_NOT_BEGUN = 2**62
EVERY_SPACE = 0
"""The number that stands in the queue for all spaces."""


class QueueEntry(NamedTuple):
    """A queued record, for one or all spaces, with its stamp."""

    space_no: int
    kind: VectorKind
    no: int
    stamp: int


class SpaceWalk(NamedTuple):
    """The progress of a walk over one kind's records."""

    kind: VectorKind
    walked_no: int
    is_done: bool


class VectorStore(ProjectStore):
    """The tables of this room, in one project."""

    def shelf(self, session: Session, space_no: int, kind: VectorKind) -> Shelf:
        """Return the shelf of a kind; number 0 if it is missing."""
        no = number(
            session,
            self.sql(
                "SELECT no FROM vector_shelves WHERE project_no = :project AND kind = ? AND "
                "space_no = ?"
            ),
            (vector_code(kind), space_no),
        )
        return Shelf(no, space_no, self.scope.project_no, kind=kind)

    def make_shelves(self, session: Session, space_no: int) -> None:
        """A shelf for each kind; those that are there stay."""
        session.run_many(
            self.sql(
                "INSERT INTO vector_shelves (project_no, kind, space_no) VALUES (:project, ?, ?) "
                "ON CONFLICT DO NOTHING"
            ),
            [(vector_code(kind), space_no) for kind in VECTOR_KINDS],
        )

    # spaces

    def spaces(self, session: Session) -> list[Space]:
        """The spaces of this project, newest first."""
        rows = session.all(self.sql(f"{_SPACES} ORDER BY f.created_at DESC, s.no DESC"))
        return [Space(*row) for row in rows]

    def find_space(self, session: Session, model_id: str) -> Space | None:
        row = session.one(self.sql(f"{_SPACES} AND s.model_id = ?"), (model_id,))
        return Space(*row) if row else None

    def add_space(
        self, session: Session, model_id: str, dims: int, embedder: str, now_ms: int
    ) -> int:
        """Return a model's space number, created on first use."""
        session.run(
            "INSERT INTO vector_spaces (model_id, dims, embedder, created_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (model_id) DO UPDATE SET embedder = excluded.embedder",
            (model_id, dims, embedder, now_ms),
        )
        return number(session, "SELECT no FROM vector_spaces WHERE model_id = ?", (model_id,))

    def begin(self, session: Session, space_no: int, now_ms: int) -> None:
        """Begin or resume filling a space in this project."""
        session.run(
            self.sql(
                "INSERT INTO vector_fills (project_no, space_no, state, created_at, used_at)"
                " VALUES (:project, ?, 'filling', ?, ?)"
                " ON CONFLICT (project_no, space_no) DO UPDATE SET state = 'filling', created_at "
                "= excluded.created_at,"
                " used_at = excluded.used_at, ready_at = NULL WHERE vector_fills.state IN "
                "('retired', 'dropped')"
            ),
            (space_no, now_ms, now_ms),
        )
        self.make_shelves(session, space_no)
        self._clear(session, "vector_walks", space_no)

    def update_fill(
        self,
        session: Session,
        space_no: int,
        state: str | None = None,
        ready_at: int | None = None,
        used_at: int | None = None,
    ) -> None:
        """Change a space in this project; None changes nothing."""
        session.run(
            self.sql(
                "UPDATE vector_fills SET state = coalesce(?, state),"
                " ready_at = coalesce(?, ready_at), used_at = coalesce(?, used_at)"
                " WHERE project_no = :project AND space_no = ?"
            ),
            (state, ready_at, used_at, space_no),
        )

    def choose(self, session: Session, space_no: int, now_ms: int) -> None:
        """Record a switch to a space by name, and to no other."""
        session.run(
            self.sql(
                "UPDATE vector_fills SET chosen_at = CASE WHEN space_no = ? THEN ? END WHERE "
                "project_no = :project"
            ),
            (space_no, now_ms),
        )

    def empty(self, session: Session, space_no: int, state: str) -> None:
        """Drop a space's queue and retire it.

        The row stays, and with it the stamp: a process that remembers the space must not take a new
        one for it.
        """
        for table in ("vector_walks", "embedding_queue", "embedding_failures", "embedding_cache"):
            self._clear(session, table, space_no)
        self.update_fill(session, space_no, state=state)

    def _clear(self, session: Session, table: str, space_no: int) -> None:
        statement = self.sql(f"DELETE FROM {table} WHERE project_no = :project AND space_no = ?")
        session.run(statement, (space_no,))

    # walks

    def walks(self, session: Session, space_no: int) -> list[SpaceWalk]:
        """Return each kind's progress, in order, unstarted included."""
        rows = session.all(
            self.sql(
                "SELECT kind, walked_no, is_done FROM vector_walks WHERE project_no = :project "
                "AND space_no = ?"
            ),
            (space_no,),
        )
        begun = {code: (walked_no, bool(is_done)) for code, walked_no, is_done in rows}
        return [
            SpaceWalk(kind, *begun.get(vector_code(kind), (_NOT_BEGUN, False)))
            for kind in VECTOR_KINDS
        ]

    def put_walk(self, session: Session, space_no: int, walk: SpaceWalk) -> None:
        session.run(
            self.sql(
                "INSERT INTO vector_walks (project_no, space_no, kind, walked_no, is_done)"
                " VALUES (:project, ?, ?, ?, ?) ON CONFLICT (project_no, space_no, kind)"
                " DO UPDATE SET walked_no = excluded.walked_no, is_done = excluded.is_done"
            ),
            (space_no, vector_code(walk.kind), walk.walked_no, int(walk.is_done)),
        )

    # the queue

    def entries(
        self, session: Session, space_no: int, limit: int, own: bool = False
    ) -> list[QueueEntry]:
        """Return the records that wait for a space.

        Those written for all spaces first and the newest of them first.

        Code comes last: the first index of a repository is fifty thousand pieces, and what was just
        said should not wait for them. With ``own`` only those that wait for this space alone.
        """
        found: list[QueueEntry] = []
        spaces, code = (space_no,) if own else (EVERY_SPACE, space_no), vector_code("code")
        for first, last in ((0, code - 1), (code, code)):
            for waiting_for in spaces:
                if len(found) >= limit:
                    return found
                rows = session.all(
                    self.sql(
                        "SELECT space_no, kind, no, stamp FROM embedding_queue WHERE project_no = "
                        ":project"
                        " AND space_no = ? AND kind BETWEEN ? AND ? ORDER BY kind DESC, no DESC "
                        "LIMIT ?"
                    ),
                    (waiting_for, first, last, limit - len(found)),
                )
                found += [
                    QueueEntry(in_space, vector_kind(kind), no, stamp=stamp)
                    for in_space, kind, no, stamp in rows
                ]
        return found

    def is_waiting(self, session: Session, space_no: int) -> bool:
        row = session.one(
            self.sql(
                "SELECT 1 FROM embedding_queue WHERE project_no = :project AND space_no IN (0, ?) "
                "LIMIT 1"
            ),
            (space_no,),
        )
        return row is not None

    def enqueue(
        self, session: Session, space_no: int, kind: VectorKind, numbers: Sequence[int]
    ) -> None:
        session.run_many(
            self.sql(
                "INSERT INTO embedding_queue (project_no, space_no, kind, no) VALUES (:project, "
                "?, ?, ?)"
                " ON CONFLICT (project_no, space_no, kind, no) DO UPDATE SET stamp = "
                "embedding_queue.stamp + 1"
            ),
            [(space_no, vector_code(kind), no) for no in sorted(numbers)],
        )

    def count_waiting(self, session: Session, space_no: int) -> int:
        return number(
            session,
            self.sql(
                "SELECT count(*) FROM embedding_queue WHERE project_no = :project AND space_no IN "
                "(0, ?)"
            ),
            (space_no,),
        )

    # failures

    def fail(self, session: Session, space_no: int, failures: Sequence[EmbeddingFailure]) -> None:
        session.run_many(
            self.sql(
                "INSERT INTO embedding_failures (project_no, space_no, kind, no, code, message, "
                "failed_at)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?) ON CONFLICT (project_no, space_no, kind, no)"
                " DO UPDATE SET code = excluded.code, message = excluded.message, failed_at = "
                "excluded.failed_at"
            ),
            [
                (space_no, vector_code(each.kind), each.no, each.code, each.message, each.failed_at)
                for each in failures
            ],
        )

    def recover(
        self, session: Session, space_no: int, kind: VectorKind, numbers: Sequence[int]
    ) -> None:
        """Forget the failures of records that have their vectors now."""
        self.run(
            session,
            "DELETE FROM embedding_failures WHERE project_no = :project AND space_no = ?"
            " AND kind = ? AND no IN (:some)",
            *(space_no, vector_code(kind)),
            some=numbers,
        )

    def failures(self, session: Session, space_no: int, limit: int = 100) -> list[EmbeddingFailure]:
        rows = session.all(
            self.sql(
                "SELECT kind, no, code, message, failed_at FROM embedding_failures"
                " WHERE project_no = :project AND space_no = ? ORDER BY failed_at DESC, kind, no "
                "LIMIT ?"
            ),
            (space_no, limit),
        )
        return [EmbeddingFailure(vector_kind(kind), *rest) for kind, *rest in rows]

    # the cache

    def cached(self, session: Session, keys: Sequence[bytes], now_ms: int) -> dict[bytes, bytes]:
        return {
            bytes(key): bytes(vector)
            for key, vector in self.rows(
                session,
                "SELECT key, vector FROM embedding_cache WHERE project_no = :project"
                " AND expires_at > ? AND key IN (:some)",
                now_ms,
                some=keys,
            )
        }

    def put_cached(
        self,
        session: Session,
        space_no: int,
        vectors: Sequence[tuple[bytes, bytes]],
        now_ms: int,
        expires_at: int,
    ) -> None:
        session.run_many(
            self.sql(
                "INSERT INTO embedding_cache (project_no, key, space_no, vector, expires_at)"
                " VALUES (:project, ?, ?, ?, ?) ON CONFLICT (project_no, key)"
                " DO UPDATE SET vector = excluded.vector, expires_at = excluded.expires_at"
            ),
            [(key, space_no, vector, expires_at) for key, vector in vectors],
        )
        self.evict_cached(session, now_ms)

    def evict_cached(self, session: Session, now_ms: int) -> int:
        """Drop what has expired; how many vectors."""
        statement = "DELETE FROM embedding_cache WHERE project_no = :project AND expires_at <= ?"
        return session.run(self.sql(statement), (now_ms,))
