"""Write each change of memories in one transaction, with its event.

Writers of a project take turns on both databases: a change holds the project's state row until it
ends, so a memory cannot be learned twice and two reviewers cannot both decide. All changes go
through :meth:`MemoryChange.change`, which writes the row, updates counts and index, and records the
event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from smara.core.escape import to_storable
from smara.core.ids import IdMaker, bare_key_of, key_of
from smara.database.database import Session
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import plain_value
from smara.database.projects import ProjectContext
from smara.errors import ConflictError, InvalidInputError
from smara.knowledge.kinds import subject_key
from smara.knowledge.models import By, EventKind, Relation, TypedMemory
from smara.knowledge.prepare import clean_by, plain_evidence
from smara.knowledge.statements import parse_statement
from smara.knowledge.store import KnowledgeStore, StoredMemory
from smara.secrets.redact import clean_name


def memory_terms(memory: TypedMemory) -> RecordTerms:
    """Return a memory's index terms; none removes it."""
    if not is_findable(memory):
        return RecordTerms("", ())
    return terms_of(memory.citation or "", searched_text(memory))


def is_findable(memory: TypedMemory) -> bool:
    """Return True if a memory is in the index.

    What is active, and what was superseded, for questions about the past.
    """
    return memory.is_active or memory.deprecated_because == "superseded"


def searched_text(memory: TypedMemory) -> str:
    """Everything that was written into a memory."""
    kind = memory.type.replace("_", " ")
    around = " ".join((*memory.tags, *memory.modules, *memory.files, kind))
    return "\n".join(filter(None, (memory.content, *_texts(memory.data), around)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def require(session: Session, store: KnowledgeStore, memory_id: object) -> StoredMemory:
    """The memory, or ``NotFoundError``."""
    no = store.require_no(session, memory_id)
    return StoredMemory(no, store.by_number(session, no))


PREFIX = "m"
_JSON = frozenset(
    {
        "tags",
        "files",
        "modules",
        "session_ids",
        "evidence",
        "work_unit",
        "impacted_node_ids",
        "data",
        "review_reasons",
    }
)
_FLAGS = frozenset({"is_pinned", "is_verified", "needs_review"})
_KEYED = frozenset({"tags", "files", "modules", "session_ids", "evidence", "work_unit"})
_INDEXED = frozenset(
    {"content", "citation", "tags", "files", "modules", "data", "type", "deprecated_at"}
)


class MemoryChange:
    """One transaction that changes memories: who, as whom, when."""

    def __init__(
        self,
        store: KnowledgeStore,
        session: Session,
        new_id: IdMaker,
        now_ms: int,
        actor: str,
        by: By,
        session_id: str | None,
    ) -> None:
        self.store = store
        self.session = session
        self.now_ms = now_ms
        self.actor = actor
        self.by = by
        self.session_id = session_id
        self.new_id = new_id
        self._before = store.lock(session)
        self.state = self._before
        self.operation = new_id()
        self.last_event_no = 0

    def end(self) -> None:
        """Write the state of the project, if it has changed."""
        if self.state != self._before:
            self.store.put_state(self.session, self.state)

    def next_operation(self) -> None:
        """Begin an operation that is undone by itself."""
        self.operation = self.new_id()

    def insert(self, fields: Mapping[str, Any], relations: Iterable[Relation] = ()) -> StoredMemory:
        """A new memory with its event."""
        memory_id = self.new_id()
        short_id = self.store.new_short_id(self.session, memory_id, PREFIX, self.state.total + 1)
        times = {"created_at": self.now_ms, "created_by": self.actor, "updated_at": self.now_ms}
        row = {
            "id": memory_id,
            "short_id": short_id,
            "key": key_of(short_id),
            "bare_key": bare_key_of(short_id),
            **fields,
            **times,
            **_derived(fields),
        }
        no = self.store.insert(
            self.session, {name: _stored(name, value) for name, value in row.items()}
        )
        for relation in relations:
            self.put_relation(no, relation)
        memory = self.store.by_number(self.session, no)
        self.store.write_keys(self.session, no, _keys_of(memory), is_new=True)
        self._index(no, memory)
        self._count(memory, 1, is_new=True)
        after = {
            name: plain(memory, name)
            for name in ("type", "content", "source", "taint", "review_reasons")
        }
        self.event(no, "created", {}, after)
        return StoredMemory(no, memory)

    def change(
        self,
        stored: StoredMemory,
        kind: EventKind,
        fields: Mapping[str, Any],
        note: Mapping[str, Any] | None = None,
        where: str | None = None,
    ) -> StoredMemory:
        """Update columns of a memory and record the event.

        ``note`` says more of what happened; ``where`` is the session it belongs to, if not that of
        the turn.
        """
        no, memory = stored
        before = {name: plain(memory, name) for name in fields}
        after = {name: plain_value(value) for name, value in fields.items()}
        self._count(memory, -1)
        self._write(
            no, memory, {**fields, "version": memory.version + 1, "updated_at": self.now_ms}
        )
        changed = self.store.by_number(self.session, no)
        if not _KEYED.isdisjoint(fields):
            self.store.write_keys(self.session, no, _keys_of(changed), is_new=False)
        if not _INDEXED.isdisjoint(fields):
            self._index(no, changed)
        self._count(changed, 1)
        self.event(no, kind, before, {**after, **(note or {})}, where)
        return StoredMemory(no, changed)

    def touch(self, stored: StoredMemory) -> None:
        """Raise the version after a change beside the row.

        Such as a relation.
        """
        values = {"version": stored.memory.version + 1, "updated_at": self.now_ms}
        self.store.write(self.session, stored.no, values)

    def event(
        self,
        no: int,
        kind: EventKind,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        where: str | None = None,
    ) -> int:
        """Record what happened; the event's number."""
        values = (
            no,
            self.new_id(),
            self.operation,
            kind,
            to_storable(self.actor),
            self.by,
            where or self.session_id,
            self.now_ms,
            json.dumps(before),
            json.dumps(after),
        )
        self.last_event_no = self.store.add_event(self.session, values)
        return self.last_event_no

    def put_relation(self, no: int, relation: Relation) -> None:
        """Write a relation; the other memory is named by its UUID."""
        target = None
        if relation.memory_id is not None:
            target = self.store.numbers_of_ids(self.session, [relation.memory_id])[
                relation.memory_id
            ]
        path = None if relation.path is None else to_storable(relation.path)
        values = (no, target, path, relation.type, relation.confidence, int(relation.is_auto))
        self.store.add_relation(self.session, values)

    def delete(self, stored: StoredMemory) -> None:
        """Remove a memory for good; only what it was known by stays."""
        self._count(stored.memory, -1, is_new=True)
        self.store.add_tombstone(self.session, stored.no, self.now_ms)
        self.store.database.records.remove(self.session, "memory", [stored.no])
        self.store.delete(self.session, stored.no)

    def refuse_others(self, what: str) -> None:
        """Raise ``InvalidInputError`` unless a person acts.

        An agent must not raise the trust in what it was told.
        """
        if self.by != "person":
            hint = "Ask the person, who can do it with `smara memories`."
            raise InvalidInputError(
                f"Only a person can {what}. {hint}",
                field="by",
                brief=f"Only a person can {what}",
                hint=hint,
            )

    def refuse_other_version(self, memory: TypedMemory, version: int | None) -> None:
        """Raise ``ConflictError`` if the memory changed since it was read."""
        if version is not None and version != memory.version:
            hint = f"It is at version {memory.version}; look at it again, then decide."
            raise ConflictError(
                f"Memory {memory.short_id} was changed since version {version}. {hint}",
                memory_id=memory.short_id,
                version=memory.version,
                brief="Memory was changed meanwhile",
                hint=hint,
            )

    def _write(self, no: int, memory: TypedMemory, fields: Mapping[str, Any]) -> None:
        values = {
            name: _stored(name, value) for name, value in fields.items() if name != "superseded_by"
        }
        if "superseded_by" in fields:
            target = fields["superseded_by"]
            known = self.store.numbers_of_ids(self.session, [target]) if target else {}
            values["replaced_by_no"] = known.get(target)  # None when it was removed meanwhile
        if {"content", "type", "data"} & set(fields):
            now = {
                name: fields.get(name, getattr(memory, name))
                for name in ("content", "type", "data")
            }
            values.update(_derived(now))
        self.store.write(self.session, no, values)

    def _index(self, no: int, memory: TypedMemory) -> None:
        project = self.store.scope.project_no
        self.store.database.records.put(
            self.session, "memory", project, [(no, memory_terms(memory))]
        )

    def _count(self, memory: TypedMemory, by: int, is_new: bool = False) -> None:
        have = self.state
        self.state = have._replace(
            total=have.total + (by if is_new else 0),
            active=have.active + (by if memory.is_active else 0),
            to_review=have.to_review + (by if memory.is_active and memory.needs_review else 0),
        )


class MemoryJournal:
    """The transactions of one project's memories, with a default actor and session."""

    def __init__(self, project: ProjectContext) -> None:
        self.store = KnowledgeStore(project.database, project.scope)
        self.clock = project.clock
        self.new_id = project.new_id
        self.default_session = project.settings.session
        self._default_actor = project.actor

    @contextmanager
    def begin(self, actor: str | None, session_id: str | None, by: By) -> Iterator[MemoryChange]:
        """A transaction in which the memories of this project may be changed."""
        clean_by(by)
        who = clean_name(actor, "actor") if actor is not None else self._default_actor
        where = (
            clean_name(session_id, "session_id") if session_id is not None else self.default_session
        )
        with self.store.database.write() as session:
            turn = MemoryChange(
                self.store,
                session,
                self.new_id,
                now_ms=self.clock.now_ms(),
                actor=who,
                by=by,
                session_id=where,
            )
            yield turn
            turn.end()


def plain(memory: TypedMemory, name: str) -> Any:
    """A column of a memory as JSON holds it."""
    if name == "evidence":
        return [plain_evidence(each) for each in memory.evidence]
    if name == "work_unit":
        unit = memory.work_unit
        return unit and {
            "methodology": unit.methodology,
            "hierarchy": list(unit.hierarchy),
            "label": unit.label,
        }
    if name in _CHUNK:
        return getattr(memory.chunk, _CHUNK[name]) if memory.chunk else None
    return plain_value(getattr(memory, "commit" if name == "commit_sha" else name))


_CHUNK = {
    "chunk_type": "type", "chunk_start_line": "first_line", "chunk_end_line": "last_line",
    "context_prefix": "context_prefix",
}  # fmt: skip


def _stored(name: str, value: Any) -> Any:
    if name == "taint":
        return " ".join(sorted(value))
    if name in _JSON:
        return None if value is None else json.dumps(plain_value(value), separators=(",", ":"))
    if name in _FLAGS:
        return int(value)
    return to_storable(value) if isinstance(value, str) else value


def _derived(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is looked up and follows from the words of a memory."""
    fingerprint = parse_statement(fields["content"]).fingerprint
    return {"fingerprint": fingerprint, "subject_key": subject_key(fields["type"], fields["data"])}


def _keys_of(memory: TypedMemory) -> list[tuple[str, str]]:
    """What a memory is looked up by, as (kind, value)."""
    found: dict[tuple[str, str], None] = {}
    for kind, values in (
        ("file", memory.files),
        ("module", memory.modules),
        ("tag", memory.tags),
        ("session", memory.session_ids),
        ("message", (each.message_id for each in memory.evidence)),
        ("observation", (each.observation_id for each in memory.evidence)),
        ("evidence", (each.path for each in memory.evidence)),
        ("unit", memory.work_unit.hierarchy if memory.work_unit else ()),
    ):
        found.update(((kind, to_storable(value)), None) for value in values if value)
    return list(found)
