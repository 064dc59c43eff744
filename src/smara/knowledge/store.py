"""Store memories, evidence, events and trust state in the database.

SQL and row mapping only; no decisions. Every statement names ``:project``, which isolates projects;
see ``core.scope``. ``m`` is always the memory that a condition is about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from smara.core.escape import from_storable
from smara.database.database import PART, Row, Session, marks, parts
from smara.database.project_store import NamedStore
from smara.knowledge.models import (
    Chunk,
    Evidence,
    MemoryEvent,
    MemoryTotals,
    Relation,
    TypedMemory,
    WorkUnit,
)

COLUMNS = (
    "id", "short_id", "type", "content", "confidence", "tags", "files", "modules", "scope",
    "source", "visibility",
    "created_at", "created_by", "updated_at", "version", "session_id", "session_ids", "commit_sha",
    "evidence",
    "work_unit", "methodology", "target_node_id", "impacted_node_ids", "half_life_days", "citation",
    "chunk_type",
    "chunk_start_line", "chunk_end_line", "context_prefix", "data", "taint", "is_pinned",
    "is_verified", "verified_at",
    "verified_by", "needs_review", "review_reasons", "verified_uses", "uses_since_wrong",
    "corrections",
    "last_verified_use_at", "stale_at", "stale_because", "deprecated_at", "deprecated_because",
)  # fmt: skip
_COLUMNS = ", ".join(f"m.{name}" for name in COLUMNS)
_FROM = "FROM memories m LEFT JOIN memories r ON r.no = m.replaced_by_no"
_SELECT = f"SELECT {_COLUMNS}, r.id, m.no, m.project_no {_FROM}"


class StoredMemory(NamedTuple):
    """A memory and its number."""

    no: int
    memory: TypedMemory


class StateRow(NamedTuple):
    """The state of a project's memories: counts, trust, last pruning."""

    total: int = 0
    active: int = 0
    to_review: int = 0
    trust_level: int = 1
    level_since: int = 0
    pruned_at: int = 0


_STATE = ", ".join(StateRow._fields)
_STATE_SET = ", ".join(f"{name} = ?" for name in StateRow._fields)


class KnowledgeStore(NamedStore):
    """The tables of memories of one project."""

    TABLE, ALIAS, WHAT = "memories m", "m", "memory"
    HINT = "`smara memories list` shows what there is."

    # reading

    def select(self, session: Session, rest: str, values: Sequence[Any] = ()) -> list[StoredMemory]:
        """Return memories by the rest of a statement."""
        rows = session.all(self.sql(f"{_SELECT} WHERE m.project_no = :project{rest}"), values)
        return self._with_relations(session, rows)

    def by_numbers(
        self, session: Session, numbers: Iterable[int], has_relations: bool = True
    ) -> dict[int, TypedMemory]:
        """Return memories by number, in the order of the numbers."""
        wanted = list(dict.fromkeys(numbers))
        found: dict[int, TypedMemory] = {}
        for part in parts(wanted):
            # The plus keeps SQLite from reading a whole project by an index that begins with it.
            statement = self.sql(
                f"{_SELECT} WHERE +m.project_no = :project AND m.no IN ({marks(len(part))})"
            )
            rows = session.all(statement, part)
            if has_relations:
                found.update(self._with_relations(session, rows))
            else:
                found.update((int(row[-2]), _memory(row, (), ())) for row in rows)
        return {no: found[no] for no in wanted if no in found}

    def by_number(self, session: Session, no: int) -> TypedMemory:
        return self.by_numbers(session, (no,))[no]

    def numbers_of_ids(self, session: Session, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of memories by their UUIDs."""
        found: dict[str, int] = {}
        for part in parts(ids):
            rows = session.all(
                self.sql(
                    "SELECT id, no FROM memories WHERE project_no = :project AND id IN "
                    f"({marks(len(part))})"
                ),
                part,
            )
            found.update((row[0], row[1]) for row in rows)
        return found

    def tombstone(self, session: Session, fingerprint: str) -> Row | None:
        """Return (short id, reason, when) of a removed memory."""
        return session.one(
            self.sql(
                "SELECT short_id, because, deleted_at FROM memory_tombstones"
                " WHERE project_no = :project AND fingerprint = ? ORDER BY no DESC LIMIT 1"
            ),
            (fingerprint,),
        )

    def count(self, session: Session, rest: str, values: Sequence[Any] = ()) -> int:
        """Count the memories for which a condition holds."""
        row = session.one(
            self.sql(f"SELECT count(*) FROM memories m WHERE m.project_no = :project{rest}"), values
        )
        return int(row[0]) if row else 0

    def _with_relations(self, session: Session, rows: Sequence[Row]) -> list[StoredMemory]:
        numbers = [int(row[-2]) for row in rows]
        relations: dict[int, list[Relation]] = {no: [] for no in numbers}
        older: dict[int, list[str]] = {no: [] for no in numbers}
        for part in parts(numbers):
            for no, type_, target, path, confidence, is_auto in session.all(
                self.sql(
                    "SELECT l.memory_no, l.type, t.id, l.path, l.confidence, l.is_auto"
                    " FROM memory_relations l LEFT JOIN memories t ON t.no = l.target_no"
                    f" WHERE l.project_no = :project AND l.memory_no IN ({marks(len(part))})"
                    " ORDER BY l.no"
                ),
                part,
            ):
                shown = None if path is None else from_storable(path)
                relations[no].append(
                    Relation(type_, target, shown, confidence=confidence, is_auto=bool(is_auto))
                )
            for no, older_id in session.all(
                self.sql(
                    "SELECT m.replaced_by_no, m.id FROM memories m WHERE m.project_no = :project"
                    " AND m.deprecated_because = 'superseded'"
                    f" AND m.replaced_by_no IN ({marks(len(part))}) ORDER BY m.no"
                ),
                part,
            ):
                older[no].append(older_id)
        return [
            StoredMemory(no, _memory(row, tuple(relations[no]), tuple(older[no])))
            for no, row in zip(numbers, rows, strict=True)
        ]

    # writing

    def insert(self, session: Session, values: Mapping[str, Any]) -> int:
        """A new row; its number."""
        names = list(values)
        columns = ", ".join(names)
        row = session.one(
            self.sql(
                f"INSERT INTO memories (project_no, {columns}) VALUES (:project, "
                f"{marks(len(names))}) RETURNING no"
            ),
            list(values.values()),
        )
        return int(row[0]) if row else 0

    def write(self, session: Session, no: int, values: Mapping[str, Any]) -> None:
        """Write columns of a memory."""
        columns = ", ".join(f"{name} = ?" for name in values)
        session.run(
            self.sql(f"UPDATE memories SET {columns} WHERE project_no = :project AND no = ?"),
            (*values.values(), no),
        )

    def write_keys(
        self, session: Session, no: int, keys: Iterable[tuple[str, str]], is_new: bool
    ) -> None:
        """Replace what a memory is looked up by: (kind, value)."""
        if not is_new:
            session.run(
                self.sql("DELETE FROM memory_keys WHERE project_no = :project AND memory_no = ?"),
                (no,),
            )
        session.run_many(
            self.sql(
                "INSERT INTO memory_keys (project_no, kind, value, memory_no) VALUES (:project, "
                "?, ?, ?)"
            ),
            [(kind, value, no) for kind, value in keys],
        )

    def add_relation(self, session: Session, values: Sequence[Any]) -> None:
        """Insert (memory, target, path, type, confidence, is auto)."""
        session.run(
            self.sql(
                "INSERT INTO memory_relations (project_no, memory_no, target_no, path, type, "
                "confidence, is_auto)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?)"
            ),
            values,
        )

    def remove_relation(
        self, session: Session, no: int, type_: str, target_no: int | None, path: str | None
    ) -> bool:
        """Take a relation away; whether there was one."""
        column = "path" if target_no is None else "target_no"
        return bool(
            session.run(
                self.sql(
                    "DELETE FROM memory_relations"
                    f" WHERE project_no = :project AND memory_no = ? AND type = ? AND {column} = ?"
                ),
                (no, type_, path if target_no is None else target_no),
            )
        )

    def delete(self, session: Session, no: int) -> None:
        """Remove a memory with everything that hangs on it."""
        for statement in (
            "DELETE FROM memory_keys WHERE project_no = :project AND memory_no = ?",
            "DELETE FROM memory_relations WHERE project_no = :project AND memory_no = ?",
            "DELETE FROM memory_relations WHERE project_no = :project AND target_no = ?",
            "DELETE FROM memory_events WHERE project_no = :project AND memory_no = ?",
            "DELETE FROM code_anchors WHERE project_no = :project AND owner = 'memory' AND "
            "owner_no = ?",
            "DELETE FROM code_anchored WHERE project_no = :project AND owner = 'memory' AND "
            "owner_no = ?",
            "UPDATE memories SET replaced_by_no = NULL WHERE project_no = :project AND "
            "replaced_by_no = ?",
            "DELETE FROM memories WHERE project_no = :project AND no = ?",
        ):
            session.run(self.sql(statement), (no,))

    def add_tombstone(self, session: Session, no: int, now_ms: int) -> None:
        """Keep what a memory was known by, before it is removed."""
        session.run(
            self.sql(
                "INSERT INTO memory_tombstones (project_no, id, short_id, type, fingerprint, "
                "because, deleted_at)"
                " SELECT project_no, id, short_id, type, fingerprint, deprecated_because, ? FROM "
                "memories"
                " WHERE project_no = :project AND no = ?"
            ),
            (now_ms, no),
        )

    # what is kept once for a project

    def lock(self, session: Session) -> StateRow:
        """Lock and return the state of this project's memories."""
        statement = self.sql(
            f"UPDATE memory_state SET total = total WHERE project_no = :project RETURNING {_STATE}"
        )
        row = session.one(statement)
        if row is None:
            session.run(
                self.sql(
                    "INSERT INTO memory_state (project_no) VALUES (:project) ON CONFLICT "
                    "(project_no) DO NOTHING"
                )
            )
            row = session.one(statement)
        return StateRow(*row) if row else StateRow()

    def state(self, session: Session) -> StateRow:
        row = session.one(
            self.sql(f"SELECT {_STATE} FROM memory_state WHERE project_no = :project")
        )
        return StateRow(*row) if row else StateRow()

    def put_state(self, session: Session, state: StateRow) -> None:
        session.run(
            self.sql(f"UPDATE memory_state SET {_STATE_SET} WHERE project_no = :project"),
            state,
        )

    def totals(self, session: Session) -> MemoryTotals:
        return MemoryTotals(*self.state(session)[:3])

    def recount(self, session: Session) -> MemoryTotals:
        """The totals, counted again."""
        row = session.one(
            self.sql(
                "SELECT count(*), coalesce(sum(CASE WHEN deprecated_at IS NULL THEN 1 ELSE 0 "
                "END), 0),"
                " coalesce(sum(CASE WHEN deprecated_at IS NULL AND needs_review = 1 THEN 1 ELSE 0 "
                "END), 0)"
                " FROM memories WHERE project_no = :project"
            )
        )
        return MemoryTotals(int(row[0]), int(row[1]), int(row[2])) if row else MemoryTotals()

    # events

    def add_event(self, session: Session, values: Sequence[Any]) -> int:
        """Insert an event and return its number.

        (memory, id, operation, kind, actor, as whom, session, at, before, after).
        """
        row = session.one(
            self.sql(
                "INSERT INTO memory_events (project_no, memory_no, id, operation, kind, actor, "
                "acted_as, session_id,"
                f" at, before, after) VALUES (:project, {marks(10)}) RETURNING no"
            ),
            values,
        )
        return int(row[0]) if row else 0

    def events(self, session: Session, no: int, memory_id: str, limit: int) -> list[MemoryEvent]:
        rows = session.all(
            self.sql(
                "SELECT id, kind, actor, acted_as, session_id, at, before, after, undone_by FROM "
                "memory_events"
                " WHERE project_no = :project AND memory_no = ? ORDER BY no DESC LIMIT ?"
            ),
            (no, limit),
        )
        return [
            MemoryEvent(
                row[0],
                memory_id,
                row[1],
                actor=from_storable(row[2]),
                by=row[3],
                session_id=row[4],
                at=row[5],
                before=json.loads(row[6]),
                after=json.loads(row[7]),
                is_undone=row[8] is not None,
            )
            for row in rows
        ]

    def newest_change(self, session: Session, no: int) -> Row | None:
        """Return the newest event that is neither undone nor an undo.

        (number, operation, kind, as whom).
        """
        return session.one(
            self.sql(
                "SELECT no, operation, kind, acted_as FROM memory_events"
                " WHERE project_no = :project AND memory_no = ? AND undone_by IS NULL AND kind <> "
                "'undone'"
                " ORDER BY no DESC LIMIT 1"
            ),
            (no,),
        )

    def operation(self, session: Session, operation: str) -> list[Row]:
        """(number, memory, kind, before, after) of the events that were one change."""
        return session.all(
            self.sql(
                "SELECT no, memory_no, kind, before, after FROM memory_events"
                " WHERE project_no = :project AND operation = ? AND undone_by IS NULL ORDER BY no"
            ),
            (operation,),
        )

    def mark_undone(self, session: Session, event_no: int, undone_by: int) -> None:
        session.run(
            self.sql(
                "UPDATE memory_events SET undone_by = ? WHERE project_no = :project AND no = ?"
            ),
            (undone_by, event_no),
        )


def indexed_memories(session: Session) -> Iterator[tuple[int, int, TypedMemory]]:
    """Yield every findable memory of every project, for the index."""
    after = 0
    while True:
        rows = session.all(
            f"{_SELECT} WHERE m.no > ? AND (m.deprecated_at IS NULL OR m.deprecated_because = "
            "'superseded')"
            f" ORDER BY m.no LIMIT {PART}",
            (after,),
        )
        if not rows:
            return
        for row in rows:
            yield row[-2], row[-1], _memory(row, (), ())
        after = rows[-1][-2]


def evidence_of(plain: Iterable[Mapping[str, Any]]) -> tuple[Evidence, ...]:
    """Evidence from the way it is stored."""
    return tuple(Evidence(**each) for each in plain)


def _memory(row: Row, relations: tuple[Relation, ...], older: tuple[str, ...]) -> TypedMemory:
    """Return the memory of a row, each column by its name; the last three are not its own."""
    fields = {
        name: value if value is None or name not in _READ else _READ[name](value)
        for name, value in zip(COLUMNS, row, strict=False)
    }
    kind, start, end, prefix = (fields.pop(name) for name in _CHUNK)
    return TypedMemory(
        commit=fields.pop("commit_sha"),
        chunk=None if kind is None else Chunk(kind, start, end, context_prefix=prefix),
        relations=(
            *relations,
            *(Relation("supersedes", each, confidence=1.0, is_auto=True) for each in older),
        ),
        superseded_by=row[len(COLUMNS)],
        supersedes=older,
        **fields,
    )


def _texts(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored)) if stored != "[]" else ()


def _unit(stored: str) -> WorkUnit:
    plain = json.loads(stored)
    return WorkUnit(plain["methodology"], tuple(plain["hierarchy"]), plain["label"])


_CHUNK = ("chunk_type", "chunk_start_line", "chunk_end_line", "context_prefix")
_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("tags", "files", "modules", "session_ids", "impacted_node_ids", "review_reasons"), _texts
    ),
    **dict.fromkeys(
        (
            "content", "created_by", "methodology", "target_node_id", "citation", "context_prefix",
            "verified_by", "stale_because",
        ),
        from_storable,
    ),
    **dict.fromkeys(("is_pinned", "is_verified", "needs_review"), bool),
    "evidence": lambda stored: evidence_of(json.loads(stored)),
    "work_unit": _unit,
    "data": json.loads,
    "taint": lambda stored: tuple(stored.split()),
}  # fmt: skip
"""How a column is read that is not stored as it is; NULL stays ``None``."""
