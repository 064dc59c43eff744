"""Store memories, evidence, events and trust state in the database.

SQL and row mapping only; no decisions. Every statement names ``:project``, which isolates projects;
see ``core.scope``. ``m`` is always the memory that a condition is about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any, NamedTuple

from smara.core.escape import from_storable, to_storable
from smara.database.database import PART, Row, Session
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import JournalStore, plain_value
from smara.database.projects import ProjectContext
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import (
    Chunk,
    Evidence,
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
    "work_unit", "methodology", "half_life_days", "citation",
    "chunk_type",
    "chunk_start_line", "chunk_end_line", "context_prefix", "data", "taint", "is_pinned",
    "is_verified", "verified_at",
    "verified_by", "needs_review", "review_reasons", "verified_uses", "uses_since_wrong",
    "corrections",
    "last_verified_use_at", "stale_at", "stale_because", "deprecated_at", "deprecated_because",
    "seen_at",
)  # fmt: skip
CHUNK = {
    "chunk_type": "type", "chunk_start_line": "first_line", "chunk_end_line": "last_line",
    "context_prefix": "context_prefix",
}  # fmt: skip
"""The columns of a chunk, each with the field it stores."""
NO_TERMS = RecordTerms("", ())
_COLUMNS = ", ".join(f"m.{name}" for name in COLUMNS)
_ABOUT_UNITS = ", ".join(f"'{kind}'" for kind in KINDS if KINDS[kind].scope == "work_unit")
_UNIT = (
    "SELECT 1 FROM memory_keys k WHERE k.memory_no = m.no AND k.project_no = m.project_no"
    " AND k.kind = 'unit'"
)
_SESSION: ContextVar[str | None] = ContextVar("session", default=None)
_FROM = (
    "FROM memories m LEFT JOIN memories r ON r.no = m.replaced_by_no"
    " AND r.project_no = m.project_no"
)


@contextmanager
def seen_in(session_id: str | None) -> Iterator[None]:
    """See memories as a session does, whatever the settings say."""
    before = _SESSION.set(session_id or _SESSION.get())
    try:
        yield
    finally:
        _SESSION.reset(before)


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


class KnowledgeStore(JournalStore[TypedMemory, StoredMemory, StateRow]):
    """The tables of memories of one project."""

    TABLE, ALIAS, WHAT = "memories m", "m", "memory"
    HINT = "`smara memories list` shows what there is."
    SELECT = f"SELECT {_COLUMNS}, r.id, m.no, m.project_no {_FROM}"
    STATE, State = "memory_state", StateRow
    OPERATION, ACTED_AS = "operation", "acted_as"
    UNDO_COMMAND = "smara memories review undo"
    UNMADE_HINT = "Forget it if it should not be there."
    WALL = (
        " AND (m.visibility <> 'personal' OR m.created_by = ?)"
        " AND (m.scope NOT IN ('session', 'work_unit') OR m.session_id = ?"
        " OR (m.session_id IS NULL AND (m.scope = 'session' OR m.work_unit IS NULL))"
        f" OR (m.scope = 'work_unit' AND (m.type IN ({_ABOUT_UNITS}) OR EXISTS ({_UNIT}"
        " AND k.value IN (SELECT t.id FROM tasks t WHERE t.project_no = m.project_no"
        " AND t.session_id = ? AND t.status = 'in_progress' UNION ALL SELECT t.short_id"
        " FROM tasks t WHERE t.project_no = m.project_no AND t.session_id = ?"
        " AND t.status = 'in_progress')) OR EXISTS (SELECT 1 FROM behavior_sessions s"
        " WHERE s.project_no = m.project_no AND s.session_id = ? AND s.work_unit IS NOT NULL"
        f" AND EXISTS ({_UNIT}) AND NOT EXISTS ({_UNIT}"
        # Read to the letter: % and _ are letters of a name.
        """ AND replace(s.work_unit, '"' || k.value || '"', '') = s.work_unit)))))"""
    )
    actor: str | None = None
    session_id = ""

    @classmethod
    def seen_by(cls, project: ProjectContext) -> KnowledgeStore:
        """Return the memories that the actor of a project may see.

        A personal one is its author's. One of a session is that session's. One of a unit of work is
        that of its session and of each that holds a task of the unit or was last seen at work on
        it; but outcomes and unfinished work are about units, for the next session to know.
        """
        store = cls(project.database, project.scope)
        store.actor, store.session_id = to_storable(project.actor), project.settings.session or ""
        return store

    @property
    def viewer(self) -> tuple[str, ...]:  # type: ignore[override]  # who looks may change
        """The values of the wall."""
        session = to_storable(_SESSION.get() or self.session_id)
        return () if self.actor is None else (self.actor, *[session] * 4)

    def tasks_of(self, session: Session, session_id: str) -> list[str]:
        """Return the short ids of the tasks that a session holds."""
        statement = (
            "SELECT t.short_id FROM tasks t WHERE t.project_no = :project AND t.session_id = ?"
            " AND t.status = 'in_progress'"
        )
        return [str(row[0]) for row in self.rows(session, statement, to_storable(session_id))]

    def module_keys(self, session: Session, limit: int) -> list[tuple[int, str]]:
        """Return the newest memories of modules, each with the name of one."""
        statement = (
            "SELECT k.memory_no, k.value FROM memory_keys k WHERE k.project_no = :project"
            " AND k.kind = 'module' ORDER BY k.memory_no DESC LIMIT ?"
        )
        return [(row[0], row[1]) for row in self.rows(session, statement, limit)]

    def apart(self, session: Session) -> list[str]:
        """Return the sessions that are told what others are not.

        ``*`` for any that works on some unit, and ``/`` for any that begins in a module's folder.
        """
        statement = (
            "SELECT DISTINCT CASE WHEN m.scope = 'module' THEN '/' WHEN m.work_unit IS NOT NULL"
            " THEN '*' ELSE m.session_id END FROM memories m WHERE m.project_no = :project"
            " AND m.deprecated_at IS NULL AND ((m.scope = 'module' AND m.modules <> '[]') OR"
            f" (m.scope IN ('session', 'work_unit') AND m.type NOT IN ({_ABOUT_UNITS})))"
        )
        return [str(row[0]) for row in self.rows(session, statement) if row[0]]

    @staticmethod
    def plain(record: TypedMemory, name: str) -> Any:
        """Return a column of a memory as events hold it."""
        match name:
            case "evidence":
                return [plain_evidence(each) for each in record.evidence]
            case "work_unit":
                unit = record.work_unit
                return unit and {**asdict(unit), "hierarchy": list(unit.hierarchy)}
            case "commit_sha":
                return record.commit
            case _ if name in CHUNK:
                return getattr(record.chunk, CHUNK[name]) if record.chunk else None
            case _:
                return plain_value(getattr(record, name))

    def numbers_of_ids(self, session: Session, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of memories by their UUIDs."""
        statement = "SELECT id, no FROM memories WHERE project_no = :project AND id IN (:some)"
        return {row[0]: row[1] for row in self.rows(session, statement, some=ids)}

    def records(
        self, session: Session, rows: Sequence[Row], has_relations: bool = True
    ) -> list[StoredMemory]:
        """Return memories, with their relations or without."""
        numbers = [int(row[-2]) for row in rows]
        relations: dict[int, list[Relation]] = {no: [] for no in numbers}
        older: dict[int, list[str]] = {no: [] for no in numbers}
        related = numbers if has_relations else []
        for no, type_, target, path, confidence, is_auto in self.rows(
            session,
            "SELECT l.memory_no, l.type, t.id, l.path, l.confidence, l.is_auto"
            " FROM memory_relations l LEFT JOIN memories t ON t.no = l.target_no"
            " AND t.project_no = l.project_no WHERE l.project_no = :project"
            " AND l.memory_no IN (:some) ORDER BY l.no",
            some=related,
        ):
            shown = None if path is None else from_storable(path)
            relations[no].append(
                Relation(type_, target, shown, confidence=confidence, is_auto=bool(is_auto))
            )
        for no, older_id in self.rows(
            session,
            # The sign keeps SQLite from reading all memories of the project for it.
            "SELECT m.replaced_by_no, m.id FROM memories m WHERE +m.project_no = :project"
            " AND m.deprecated_because = 'superseded' AND m.replaced_by_no IN (:some)"
            " ORDER BY m.no",
            some=related,
        ):
            older[no].append(older_id)
        return [
            StoredMemory(no, _memory(row, tuple(relations[no]), tuple(older[no])))
            for no, row in zip(numbers, rows, strict=True)
        ]

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

    @property
    def whole(self) -> KnowledgeStore:
        """The memories of all, for upkeep."""
        return KnowledgeStore(self.database, self.scope)

    def totals(self, session: Session) -> MemoryTotals:
        """Return the totals of what the viewer may see."""
        every = MemoryTotals(*self.state(session)[:3])
        if not self.viewer:
            return every
        hidden = self.recount(
            session,
            " AND (m.visibility = 'personal' OR m.scope IN ('session', 'work_unit'))"
            f" AND NOT (1 = 1{self.WALL})",
        )
        return MemoryTotals(
            every.total - hidden.total,
            every.active - hidden.active,
            every.to_review - hidden.to_review,
        )

    def recount(self, session: Session, rest: str = "") -> MemoryTotals:
        """The totals, counted again."""
        row = session.one(
            self.sql(
                "SELECT count(*), coalesce(sum(CASE WHEN deprecated_at IS NULL THEN 1 ELSE 0 "
                "END), 0),"
                " coalesce(sum(CASE WHEN deprecated_at IS NULL AND needs_review = 1 THEN 1 ELSE 0 "
                "END), 0)"
                f" FROM memories m WHERE m.project_no = :project{rest}"
            ),
            self.viewer if rest else (),
        )
        return MemoryTotals(int(row[0]), int(row[1]), int(row[2])) if row else MemoryTotals()


def indexed_memories(session: Session, after: int = 0) -> Iterator[tuple[int, int, TypedMemory]]:
    """Yield every project's findable memories above a number, for the index."""
    while rows := session.all(
        f"{KnowledgeStore.SELECT} WHERE m.no > ?"
        " AND (m.deprecated_at IS NULL OR m.deprecated_because = 'superseded')"
        f" ORDER BY m.no LIMIT {PART}",
        (after,),
    ):
        for row in rows:
            yield row[-2], row[-1], _memory(row, (), ())
        after = rows[-1][-2]


def evidence_of(plain: Iterable[Mapping[str, Any]]) -> tuple[Evidence, ...]:
    """Evidence from the way it is stored."""
    return tuple(Evidence(**each) for each in plain)


def plain_evidence(evidence: Evidence) -> dict[str, Any]:
    """Return a piece of evidence as JSON holds it."""
    return {name: value for name, value in asdict(evidence).items() if value is not None}


def memory_terms(memory: TypedMemory) -> RecordTerms:
    """Return a memory's index terms; none for what is not found.

    Found is what is active, and what was superseded, for questions about the past.
    """
    if not memory.is_active and memory.deprecated_because != "superseded":
        return NO_TERMS
    return terms_of(memory.citation or "", searched_text(memory))


def searched_text(memory: TypedMemory) -> str:
    """Return everything that was written into a memory."""
    texts, values = [memory.content], [memory.data]
    while values:
        value = values.pop(0)
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, Mapping | list | tuple):
            values[:0] = value.values() if isinstance(value, Mapping) else value
    around = " ".join((*memory.tags, *memory.modules, *memory.files, memory.type.replace("_", " ")))
    return "\n".join(filter(None, (*texts, around)))


def _memory(row: Row, relations: tuple[Relation, ...], older: tuple[str, ...]) -> TypedMemory:
    """Return the memory of a row, each column by its name; the last three are not its own."""
    fields = {
        name: value if value is None or name not in _READ else _READ[name](value)
        for name, value in zip(COLUMNS, row, strict=False)
    }
    kind, start, end, prefix = (fields.pop(name) for name in CHUNK)
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


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("tags", "files", "modules", "session_ids", "review_reasons"),
        lambda stored: tuple(json.loads(stored)) if stored != "[]" else (),
    ),
    **dict.fromkeys(
        (
            "content", "created_by", "methodology", "citation", "context_prefix",
            "verified_by", "stale_because",
        ),
        from_storable,
    ),
    **dict.fromkeys(("is_pinned", "is_verified", "needs_review"), bool),
    "evidence": lambda stored: evidence_of(json.loads(stored)) if stored != "[]" else (),
    "work_unit": lambda stored: WorkUnit(
        (unit := json.loads(stored))["methodology"], tuple(unit["hierarchy"]), unit["label"]
    ),
    "data": lambda stored: json.loads(stored) if stored != "{}" else {},
    "taint": lambda stored: tuple(stored.split()),
}  # fmt: skip
"""How a column is read that is not stored as it is; NULL stays ``None``."""
