"""Change the memories of a project in one transaction of the journal.

A memory cannot be learned twice and two reviewers cannot both decide, because writers take turns.
An agent may change what agents made; what a person confirmed or pinned only a person changes. A
less trusted memory never replaces a more trusted one by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from smara.core.escape import to_storable
from smara.core.validate import one_of
from smara.database.project_store import Event, plain_value
from smara.errors import ConflictError, InvalidInputError
from smara.journal import Change, ChangeJournal
from smara.knowledge.kinds import subject_key
from smara.knowledge.models import WHO, EventKind, Relation, TypedMemory, rank_of
from smara.knowledge.prepare import MAX_EVIDENCE, MAX_ITEMS, clean_optional
from smara.knowledge.statements import parse_statement
from smara.knowledge.store import (
    NO_TERMS,
    KnowledgeStore,
    StateRow,
    StoredMemory,
    memory_terms,
    plain_evidence,
)

PREFIX = "m"
VERIFIED_CONFIDENCE = 0.9
"""What a person called true is worth at least so much."""
_JSON = frozenset(
    {
        "tags",
        "files",
        "modules",
        "session_ids",
        "evidence",
        "work_unit",
        "data",
        "review_reasons",
    }
)
_FLAGS = frozenset({"is_pinned", "is_verified", "needs_review"})
_KEYED = frozenset({"tags", "files", "modules", "session_ids", "evidence", "work_unit"})
_INDEXED = frozenset(
    {"content", "citation", "tags", "files", "modules", "data", "type", "deprecated_at"}
)
_WORDS = ("content", "type", "data")


class MemoryChange(Change[StoredMemory]):
    """One transaction that changes memories: who, as whom, when."""

    store: KnowledgeStore
    state: StateRow

    def __init__(self, *args: Any, by: str, **facts: Any) -> None:
        one_of(by, WHO, "by")
        super().__init__(*args, by=by, **facts)

    def insert(self, fields: Mapping[str, Any], relations: Iterable[Relation] = ()) -> StoredMemory:
        """Insert a memory with its event."""
        row = {
            **self.identify(PREFIX, self.state.total + 1),
            **fields,
            "created_at": self.now_ms,
            "created_by": self.actor,
            "updated_at": self.now_ms,
            **_derived(fields),
        }
        no = self.store.insert(
            self.session, {name: _stored(name, value) for name, value in row.items()}
        )
        for relation in relations:
            self._write_relation(no, relation)
        stored = self.store.stored(self.session, no)
        self.store.write_keys(self.session, no, _keys_of(stored.memory), is_new=True)
        self.index("memory", no, memory_terms(stored.memory))
        self._count(stored.memory, 1, is_new=True)
        names = ("type", "content", "source", "taint", "review_reasons")
        self.event(
            no, "created", {}, {name: self.store.plain(stored.memory, name) for name in names}
        )
        return stored

    def put(
        self, stored: StoredMemory, fields: Mapping[str, Any], is_touched: bool
    ) -> StoredMemory:
        """Write columns of a memory with its keys, index and counts."""
        no, memory = stored
        self._count(memory, -1)
        values = {
            name: _stored(name, value) for name, value in fields.items() if name != "superseded_by"
        }
        if "superseded_by" in fields:
            target = fields["superseded_by"]
            numbers = self.store.numbers_of_ids(self.session, [target]) if target else {}
            values["replaced_by_no"] = numbers.get(target)  # None when it was removed meanwhile
        if not fields.keys().isdisjoint(_WORDS):
            values |= _derived({name: fields.get(name, getattr(memory, name)) for name in _WORDS})
        values |= {"version": memory.version + 1, "updated_at": self.now_ms}
        self.store.write(self.session, no, values)
        changed = self.store.stored(self.session, no)
        if not _KEYED.isdisjoint(fields):
            self.store.write_keys(self.session, no, _keys_of(changed.memory), is_new=False)
        if not _INDEXED.isdisjoint(fields):
            self.index("memory", no, memory_terms(changed.memory))
        self._count(changed.memory, 1)
        return changed

    def delete(self, stored: StoredMemory) -> None:
        """Remove a memory for good; only a tombstone with its fingerprint stays."""
        self._count(stored.memory, -1, is_new=True)
        self.session.run(
            self.store.sql(
                "INSERT INTO memory_tombstones (project_no, id, short_id, type, fingerprint, "
                "because, deleted_at)"
                " SELECT project_no, id, short_id, type, fingerprint, deprecated_because, ? FROM "
                "memories"
                " WHERE project_no = :project AND no = ?"
            ),
            (self.now_ms, stored.no),
        )
        self.index("memory", stored.no, NO_TERMS)
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
            self.session.run(self.store.sql(statement), (stored.no,))

    def _count(self, memory: TypedMemory, by: int, is_new: bool = False) -> None:
        have = self.state
        self.state = have._replace(
            total=have.total + (by if is_new else 0),
            active=have.active + (by if memory.is_active else 0),
            to_review=have.to_review + (by if memory.is_active and memory.needs_review else 0),
        )

    # relations

    def put_relation(
        self,
        stored: StoredMemory,
        relation: Relation,
        kind: EventKind,
        *,
        is_there: bool,
        **note: str,
    ) -> StoredMemory:
        """Add a relation to a memory, or remove it, and record that."""
        self._write_relation(stored.no, relation, is_there)
        values = {"version": stored.memory.version + 1, "updated_at": self.now_ms}
        self.store.write(self.session, stored.no, values)
        facts = {"relation": asdict(relation)}
        before, after = ({}, facts) if is_there else (facts, {})
        self.event(stored.no, kind, before, {**after, **note})
        return self.store.stored(self.session, stored.no)

    def _write_relation(self, no: int, relation: Relation, is_there: bool = True) -> None:
        target = path = None
        if relation.memory_id is not None:
            numbers = self.store.numbers_of_ids(self.session, [relation.memory_id])
            target = numbers.get(relation.memory_id)
            if target is None:  # it was removed meanwhile
                return
        if relation.path is not None:
            path = to_storable(relation.path)
        if is_there:
            self.session.run(
                self.store.sql(
                    "INSERT INTO memory_relations (project_no, memory_no, target_no, path, type, "
                    "confidence, is_auto)"
                    " VALUES (:project, ?, ?, ?, ?, ?, ?)"
                ),
                (no, target, path, relation.type, relation.confidence, int(relation.is_auto)),
            )
            return
        column = "path" if target is None else "target_no"
        self.session.run(
            self.store.sql(
                "DELETE FROM memory_relations"
                f" WHERE project_no = :project AND memory_no = ? AND type = ? AND {column} = ?"
            ),
            (no, relation.type, path if target is None else target),
        )

    def resolve_relation(self, relation: Relation) -> Relation:
        """Return a relation with the UUID of its memory."""
        if relation.type == "supersedes":
            raise InvalidInputError(
                "Use supersede() or `supersedes` to put one memory in the place of another."
            )
        other = relation.memory_id
        if other:
            other = self.store.require(self.session, other).memory.id
        return Relation(
            relation.type,
            other,
            relation.path,
            confidence=relation.confidence,
            # An agent's word is no finding of ours: accepting it must not retire what it merely
            # claims to contradict.
            is_auto=relation.is_auto and self.by != "agent",
        )

    # what may not be

    def refuse_agents(self, memory: TypedMemory, what: str, is_upkeep: bool = False) -> None:
        """Raise ``ConflictError`` if a person owns the memory and an agent acts.

        What a person confirmed or pinned is theirs; the upkeep may flag it or follow a file's
        lines, and no more.
        """
        is_theirs = memory.tier == "confirmed" or memory.is_pinned
        if self.by == "person" or not is_theirs or (is_upkeep and self.by == "system"):
            return
        state = "pinned" if memory.is_pinned else "confirmed"
        raise ConflictError.with_hint(
            f"Memory {memory.short_id} was {state} by a person; an agent cannot {what} it.",
            "Add a new memory that supersedes it; a person can accept that in review.",
            memory_id=memory.short_id,
            brief=f"Memory was {state} by a person",
        )

    def _refuse_outranked(self, old: StoredMemory, new: StoredMemory) -> None:
        """Raise unless the newer memory may take the place of the older."""
        if old.no == new.no:
            raise InvalidInputError(
                f"{old.memory.short_id} was named twice. Name two different memories."
            )
        for stored in (old, new):
            refuse_deprecated(stored.memory)
        if self.by == "person" or not is_outranked(new.memory, old.memory):
            return
        state = "pinned" if old.memory.is_pinned else old.memory.tier
        raise ConflictError.with_hint(
            f"{old.memory.short_id} is {state} and {new.memory.short_id} only {new.memory.tier}.",
            "A person can decide: accept the newer one in review.",
            memory_id=old.memory.short_id,
            brief="A more trusted memory is not replaced by a less trusted one",
        )

    # steps that several verbs share

    def retire(
        self, stored: StoredMemory, because: EventKind, note: Mapping[str, Any], **fields: Any
    ) -> StoredMemory:
        """Deprecate a memory; the event has the name of the reason."""
        reasons = {"deprecated_at": self.now_ms, "deprecated_because": because}
        return self.change(stored, because, {**reasons, **fields}, note)

    def forget(self, stored: StoredMemory, why: str) -> StoredMemory:
        """Retire a memory; forgetting it again changes nothing."""
        if stored.memory.deprecated_because == "forgotten":
            return stored
        refuse_deprecated(stored.memory)
        self.refuse_agents(stored.memory, "forget")
        reason = clean_optional(why, "why", 500)
        return self.retire(stored, "forgotten", {"why": reason} if reason else {})

    def mark_stale(self, stored: StoredMemory, why: str) -> StoredMemory:
        """Mark a memory as no longer true; it is never injected."""
        refuse_deprecated(stored.memory)
        self.refuse_agents(stored.memory, "mark as stale", is_upkeep=True)
        if stored.memory.is_stale:
            return stored
        reason = clean_optional(why, "why", 500) or "no reason given"
        fields = {"stale_at": self.now_ms, "stale_because": reason}
        return self.change(stored, "marked_stale", fields)

    def verified_fields(self, memory: TypedMemory) -> dict[str, Any]:
        """Return the columns of a memory that a person confirms."""
        return {
            "is_verified": True,
            "verified_at": self.now_ms,
            "verified_by": self.actor,
            "last_verified_use_at": self.now_ms,
            "confidence": max(memory.confidence, VERIFIED_CONFIDENCE),
            "needs_review": False,
            "review_reasons": [],
            "stale_at": None,
            "stale_because": None,
        }

    def supersede(self, old: StoredMemory, new: StoredMemory, why: str) -> StoredMemory:
        """Replace the older memory by the newer; return the newer."""
        self._refuse_outranked(old, new)
        note = {"why": why, "by": new.memory.short_id}
        self.retire(old, "superseded", note, superseded_by=new.memory.id)
        return self.change(new, "supersedes", {}, {"why": why, "supersedes": old.memory.short_id})

    def merge(self, keep: StoredMemory, other: StoredMemory) -> StoredMemory:
        """Merge a memory into one that says the same; return the latter."""
        self._refuse_outranked(other, keep)
        return self.absorb(keep, other)

    def absorb(self, keep: StoredMemory, other: StoredMemory) -> StoredMemory:
        """Deprecate one memory in favor of another that says the same."""
        fields = inherited_fields(keep.memory, other.memory)
        keep = self.change(keep, "absorbed", fields, {"absorbed": other.memory.short_id})
        self.retire(other, "merged", {"into": keep.memory.short_id}, superseded_by=keep.memory.id)
        return keep

    def revert(self, event: Event) -> None:
        """Revert one event: a relation, or columns."""
        stored = self.store.stored(self.session, event.row_no)
        if event.kind in ("related", "unrelated"):
            relation = Relation(**(event.after or event.before)["relation"])
            is_there = event.kind == "unrelated"
            self.put_relation(stored, relation, "undone", is_there=is_there, undoes=event.kind)
        else:
            self.change(stored, "undone", event.before, {"undoes": event.kind})


MemoryJournal = ChangeJournal[KnowledgeStore, MemoryChange]


def refuse_deprecated(memory: TypedMemory) -> None:
    """Raise ``ConflictError`` for a deprecated memory."""
    if not memory.is_active:
        raise ConflictError.with_hint(
            f"Memory {memory.short_id} was {memory.deprecated_because}.",
            "Restore it first.",
            memory_id=memory.short_id,
            brief=f"Memory was {memory.deprecated_because}",
        )


def is_outranked(new: TypedMemory, old: TypedMemory) -> bool:
    """Return True if a newer memory is less trusted than the older."""
    return rank_of(new.tier) < rank_of(old.tier) or (old.is_pinned and new.tier != "confirmed")


def inherited_fields(keep: TypedMemory, other: TypedMemory) -> dict[str, Any]:
    """Return what a memory gains from one that says the same."""

    def joined(name: str) -> list[str]:
        return list(dict.fromkeys((*getattr(keep, name), *getattr(other, name))))[:MAX_ITEMS]

    fields: dict[str, Any] = {"session_ids": joined("session_ids")}
    if rank_of(other.tier) >= rank_of(keep.tier):
        fields |= {name: joined(name) for name in ("files", "modules")}
        fields["tags"] = sorted(joined("tags"))
        evidence = dict.fromkeys((*keep.evidence, *other.evidence))
        fields["evidence"] = [plain_evidence(each) for each in evidence][:MAX_EVIDENCE]
        if not keep.is_verified:
            fields["taint"] = sorted({*keep.taint, *other.taint})
    return {
        name: value for name, value in fields.items() if value != KnowledgeStore.plain(keep, name)
    }


def _stored(name: str, value: Any) -> Any:
    if name == "taint":
        return " ".join(sorted(value))
    if name in _JSON:
        return None if value is None else json.dumps(plain_value(value), separators=(",", ":"))
    if name in _FLAGS:
        return int(value)
    return to_storable(value) if isinstance(value, str) else value


def _derived(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that follow from the words of a memory."""
    fingerprint = parse_statement(fields["content"]).fingerprint
    return {"fingerprint": fingerprint, "subject_key": subject_key(fields["type"], fields["data"])}


def _keys_of(memory: TypedMemory) -> list[tuple[str, str]]:
    """Return the keys of a memory for look-ups, as (kind, value)."""
    evidence = memory.evidence
    keys: dict[str, Iterable[str | None]] = {
        "file": memory.files,
        "module": memory.modules,
        "tag": memory.tags,
        "session": memory.session_ids,
        "message": (each.message_id for each in evidence),
        "observation": (each.observation_id for each in evidence),
        "evidence": (each.path for each in evidence),
        "unit": memory.work_unit.hierarchy if memory.work_unit else (),
    }
    pairs = ((kind, to_storable(value)) for kind in keys for value in keys[kind] if value)
    return list(dict.fromkeys(pairs))
