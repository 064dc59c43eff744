"""Change memories: edit, pin, verify, forget, supersede, merge, undo.

Every function takes an open change of the journal. An agent may change what agents made; what a
person confirmed or pinned only a person changes. A less trusted memory never replaces a more
trusted one by itself. Undo reverts the newest change with all it did to other memories.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from smara.core.freshness import CODE_CHANGED, Freshness
from smara.core.validate import one_of
from smara.errors import ConflictError, InvalidInputError
from smara.knowledge import prepare
from smara.knowledge.decay import Staleness
from smara.knowledge.journal import MemoryChange, plain, require
from smara.knowledge.models import (
    MAX_CITATION_LENGTH,
    SCOPES,
    VISIBILITIES,
    Relation,
    TypedMemory,
    rank_of,
)
from smara.knowledge.prepare import (
    MAX_EVIDENCE,
    MAX_ITEMS,
    clean_optional,
    clean_relation,
    plain_evidence,
)
from smara.knowledge.store import StoredMemory

EDITABLE = (
    "content", "type", "confidence", "tags", "files", "modules", "scope", "visibility", "citation",
    "half_life_days",
    "data", "commit", "evidence", "work_unit", "methodology", "target_node_id", "impacted_node_ids",
    "chunk",
)  # fmt: skip


def edited_fields(memory: TypedMemory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes as columns.

    ``None`` leaves a field as it is, and an empty text clears one that may be empty.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    unknown = sorted(set(given) - set(EDITABLE))
    if unknown:
        raise InvalidInputError(
            f"{', '.join(unknown)} cannot be edited. Edit one of {', '.join(EDITABLE)}."
        )
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name == "chunk":
            fields |= prepare.clean_chunk(value or None)
        elif name != "data":  # which depends on the type
            column, clean = _CLEANED[name]
            fields[column] = clean(value)
    kind = fields.get("type", memory.type)
    if "data" in given or kind != memory.type:
        merged = {**(memory.data if kind == memory.type else {}), **(given.get("data") or {})}
        fields["data"] = prepare.clean_data(kind, merged, is_strict=False)
    return fields


_CLEANED: dict[str, tuple[str, Any]] = {
    "content": ("content", prepare.clean_content),
    "type": ("type", prepare.clean_type),
    "confidence": ("confidence", lambda value: prepare.clean_fraction(value, "confidence")),
    "tags": ("tags", lambda value: sorted(prepare.clean_list(value, "tags"))),
    "files": ("files", lambda value: list(prepare.clean_list(value, "files", of_paths=True))),
    "methodology": (
        "methodology", lambda value: prepare.clean_optional(value, "methodology", 500),
    ),
    "target_node_id": (
        "target_node_id", lambda value: prepare.clean_optional(value, "target_node_id", 500),
    ),
    "modules": ("modules", lambda value: list(prepare.clean_list(value, "modules"))),
    "scope": ("scope", lambda value: one_of(value, SCOPES, "scope")),
    "visibility": ("visibility", lambda value: one_of(value, VISIBILITIES, "visibility")),
    "citation": ("citation",
     lambda value: prepare.clean_optional(value, "citation", MAX_CITATION_LENGTH)),
    "half_life_days": ("half_life_days", lambda value: prepare.clean_half_life(value or None)),
    "commit": ("commit_sha", prepare.clean_commit),
    "evidence": ("evidence",
    lambda value: [prepare.plain_evidence(each) for each in prepare.clean_evidence(value)]),
    "work_unit": ("work_unit", lambda value: prepare.clean_work_unit(value or None)),
    "impacted_node_ids": (
        "impacted_node_ids", lambda value: list(prepare.clean_list(value, "impacted_node_ids",
        500)),
    ),
}  # fmt: skip


VERIFIED_CONFIDENCE = 0.9
"""What a person called true is worth at least so much."""
_PLACES = frozenset(
    {"evidence", "commit_sha", "chunk_type", "chunk_start_line", "chunk_end_line", "context_prefix"}
)  # fmt: skip
"""Where a memory is written down: it moves with its file, whoever confirmed it."""


def update(
    turn: MemoryChange, stored: StoredMemory, fields: Mapping[str, Any], taint: set[str]
) -> StoredMemory:
    """Set fields to new values, with the taint they bring in."""
    memory = stored.memory
    refuse_deprecated(memory)
    _refuse_agents(turn, memory, "edit", is_upkeep=_PLACES.issuperset(fields))
    changed = {name: value for name, value in fields.items() if value != plain(memory, name)}
    if taint - set(memory.taint):
        changed["taint"] = sorted({*memory.taint, *taint})
    if not changed:
        return stored
    if "taint" in changed and not memory.is_verified and not memory.needs_review:
        changed |= {
            "needs_review": True,
            "review_reasons": [f"it comes from {', '.join(changed['taint'])}"],
        }
    return turn.change(stored, "updated", changed)


def pin(turn: MemoryChange, stored: StoredMemory, is_pinned: bool) -> StoredMemory:
    """Pin a memory, or unpin it."""
    turn.refuse_others("pin a memory")
    refuse_deprecated(stored.memory)
    if stored.memory.is_pinned == is_pinned:
        return stored
    return turn.change(stored, "pinned" if is_pinned else "unpinned", {"is_pinned": is_pinned})


def verified_fields(turn: MemoryChange, memory: TypedMemory) -> dict[str, Any]:
    """Return the columns of a memory that a person confirms."""
    return {
        "is_verified": True,
        "verified_at": turn.now_ms,
        "verified_by": turn.actor,
        "last_verified_use_at": turn.now_ms,
        "confidence": max(memory.confidence, VERIFIED_CONFIDENCE),
        "needs_review": False,
        "review_reasons": [],
        "stale_at": None,
        "stale_because": None,
    }


def verify(turn: MemoryChange, stored: StoredMemory) -> StoredMemory:
    """Confirm a memory: its taint is cleared, and it fades from now."""
    turn.refuse_others("verify a memory")
    refuse_deprecated(stored.memory)
    return turn.change(stored, "verified", verified_fields(turn, stored.memory))


def forget(turn: MemoryChange, stored: StoredMemory, why: str) -> StoredMemory:
    """Put a memory aside; forgetting it again changes nothing."""
    memory = stored.memory
    if memory.deprecated_because == "forgotten":
        return stored
    refuse_deprecated(memory)
    _refuse_agents(turn, memory, "forget")
    fields = {"deprecated_at": turn.now_ms, "deprecated_because": "forgotten"}
    reason = clean_optional(why, "why", 500)
    return turn.change(stored, "forgotten", fields, {"why": reason} if reason else {})


def put_aside(
    turn: MemoryChange, reasons: Mapping[str, str]
) -> list[tuple[StoredMemory, StoredMemory]]:
    """Forget active memories by their ids; return each before and after."""
    numbers = turn.store.numbers_of_ids(turn.session, list(reasons))
    there = turn.store.by_numbers(turn.session, numbers.values())
    found = [
        StoredMemory(no, there[no])
        for no in numbers.values()
        if no in there and there[no].is_active
    ]
    return [(each, forget(turn, each, reasons[each.memory.id])) for each in found]


def restore(turn: MemoryChange, stored: StoredMemory) -> StoredMemory:
    """Restore a deprecated memory; only a person restores what a person deprecated."""
    memory = stored.memory
    if memory.is_active:
        return stored
    events = turn.store.events(turn.session, stored.no, memory.id, 1_000)
    forgotten_by = next((event.by for event in events if event.kind == "forgotten"), None)
    if memory.deprecated_because not in ("pruned", "forgotten") or forgotten_by == "person":
        turn.refuse_others(f"restore a memory that was {memory.deprecated_because}")
    fields: dict[str, Any] = {
        "deprecated_at": None,
        "deprecated_because": None,
        "superseded_by": None,
    }
    if turn.by == "person" or not memory.is_tainted:
        fields["last_verified_use_at"] = turn.now_ms  # or it would be pruned again at once
    return turn.change(stored, "restored", fields)


def mark_stale(turn: MemoryChange, stored: StoredMemory, why: str) -> StoredMemory:
    """Mark a memory as no longer true; it is never injected."""
    refuse_deprecated(stored.memory)
    _refuse_agents(turn, stored.memory, "mark as stale", is_upkeep=True)
    if stored.memory.is_stale:
        return stored
    reason = clean_optional(why, "why", 500) or "no reason given"
    return turn.change(stored, "marked_stale", {"stale_at": turn.now_ms, "stale_because": reason})


def mark_fresh(turn: MemoryChange, stored: StoredMemory) -> StoredMemory:
    """Remove the mark of a stale memory."""
    refuse_deprecated(stored.memory)
    _refuse_agents(turn, stored.memory, "mark as fresh", is_upkeep=True)
    if not stored.memory.is_stale:
        return stored
    return turn.change(stored, "marked_fresh", {"stale_at": None, "stale_because": None})


def note_staleness(turn: MemoryChange, stored: StoredMemory, found: Staleness) -> StoredMemory:
    """Mark a memory whose files are gone, or ask for review."""
    if found.is_gone:
        return mark_stale(turn, stored, found.reasons[0].text)
    if not found.needs_review or stored.memory.needs_review:
        return stored
    reasons = [reason.text for reason in found.reasons if reason.layer == 4]
    return turn.change(stored, "updated", {"needs_review": True, "review_reasons": reasons})


def note_code(turn: MemoryChange, stored: StoredMemory, found: Freshness) -> StoredMemory:
    """Ask for a review of a memory whose code changed."""
    memory = stored.memory
    others = [reason for reason in memory.review_reasons if not reason.startswith(CODE_CHANGED)]
    reasons = [*others, (found.hedge or CODE_CHANGED)[:500]] if found.needs_review else others
    if found.verdict == "unknown" or tuple(reasons) == memory.review_reasons:
        return stored
    return turn.change(
        stored, "updated", {"needs_review": bool(reasons), "review_reasons": reasons}
    )


def relate(turn: MemoryChange, stored: StoredMemory, relation: Relation) -> StoredMemory:
    """Relate a memory to another or to a file; safe to repeat."""
    resolved = resolve_relation(turn, clean_relation(relation))
    if resolved.memory_id == stored.memory.id:
        raise InvalidInputError("A memory has no relation to itself. Name another memory.")
    if any(_is_same(each, resolved) for each in stored.memory.relations):
        return stored
    if resolved.type == "derived_from":
        raise InvalidInputError(
            "What a memory was derived from is said when it is made, for its trust depends on it."
        )
    turn.put_relation(stored.no, resolved)
    turn.touch(stored)
    turn.event(stored.no, "related", {}, {"relation": plain_relation(resolved)})
    return stored


def unrelate(turn: MemoryChange, stored: StoredMemory, relation: Relation) -> StoredMemory:
    """Remove a relation."""
    resolved = resolve_relation(turn, clean_relation(relation))
    there = [each for each in stored.memory.relations if _is_same(each, resolved)]
    if not there:
        return stored
    if resolved.type in ("derived_from", "supersedes"):
        raise InvalidInputError(
            f"The relation {resolved.type} is history and stays. Undo or restore instead."
        )
    remove_relation(turn, stored, there[0])
    turn.touch(stored)
    turn.event(stored.no, "unrelated", {"relation": plain_relation(there[0])}, {})
    return stored


def remove_relation(turn: MemoryChange, stored: StoredMemory, relation: Relation) -> None:
    target = None
    if relation.memory_id is not None:
        target = turn.store.numbers_of_ids(turn.session, [relation.memory_id]).get(
            relation.memory_id
        )
        if target is None:
            return
    turn.store.remove_relation(
        turn.session, stored.no, relation.type, target_no=target, path=relation.path
    )


def plain_relation(relation: Relation) -> dict[str, Any]:
    return {
        "type": relation.type,
        "memory_id": relation.memory_id,
        "path": relation.path,
        "confidence": relation.confidence,
        "is_auto": relation.is_auto,
    }


def refuse_deprecated(memory: TypedMemory) -> None:
    """Raise ``ConflictError`` for a deprecated memory."""
    if not memory.is_active:
        hint = "Restore it first."
        raise ConflictError(
            f"Memory {memory.short_id} was {memory.deprecated_because}. {hint}",
            memory_id=memory.short_id,
            brief=f"Memory was {memory.deprecated_because}",
            hint=hint,
        )


def _refuse_agents(
    turn: MemoryChange, memory: TypedMemory, what: str, is_upkeep: bool = False
) -> None:
    """What a person confirmed or pinned is theirs; the upkeep may flag it or follow a file's lines,
    and no more.
    """
    is_theirs = memory.tier == "confirmed" or memory.is_pinned
    if turn.by == "person" or not is_theirs or (is_upkeep and turn.by == "system"):
        return
    hint = "Add a new memory that supersedes it; a person can accept that in review."
    state = "pinned" if memory.is_pinned else "confirmed"
    raise ConflictError(
        f"Memory {memory.short_id} was {state} by a person; an agent cannot {what} it. {hint}",
        memory_id=memory.short_id,
        brief=f"Memory was {state} by a person",
        hint=hint,
    )


def resolve_relation(turn: MemoryChange, relation: Relation) -> Relation:
    """Return a relation with the UUID of its memory."""
    if relation.type == "supersedes":
        raise InvalidInputError(
            "Use supersede() or `supersedes` to put one memory in the place of another."
        )
    # An agent's word is no finding of ours: accepting it must not retire what it merely claims to
    # contradict.
    is_auto = relation.is_auto and turn.by != "agent"
    other = relation.memory_id and require(turn.session, turn.store, relation.memory_id).memory.id
    return Relation(
        relation.type, other, relation.path, confidence=relation.confidence, is_auto=is_auto
    )


def _is_same(one: Relation, other: Relation) -> bool:
    return (one.type, one.memory_id, one.path) == (other.type, other.memory_id, other.path)


def is_outranked(new: TypedMemory, old: TypedMemory) -> bool:
    """Return True if a newer memory is less trusted than the older."""
    return rank_of(new.tier) < rank_of(old.tier) or (old.is_pinned and new.tier != "confirmed")


def supersede(turn: MemoryChange, old: StoredMemory, new: StoredMemory, why: str) -> StoredMemory:
    """Replace the older memory by the newer; return the newer."""
    _refuse_same(old, new)
    for stored in (old, new):
        refuse_deprecated(stored.memory)
    if turn.by != "person" and is_outranked(new.memory, old.memory):
        raise _outranked(old.memory, new.memory)
    fields = {
        "deprecated_at": turn.now_ms,
        "deprecated_because": "superseded",
        "superseded_by": new.memory.id,
    }
    turn.change(old, "superseded", fields, {"why": why, "by": new.memory.short_id})
    return turn.change(new, "supersedes", {}, {"why": why, "supersedes": old.memory.short_id})


def merge(turn: MemoryChange, keep: StoredMemory, others: Iterable[StoredMemory]) -> StoredMemory:
    """Merge memories that say the same; return the one that is kept."""
    for other in others:
        _refuse_same(keep, other)
        for stored in (keep, other):
            refuse_deprecated(stored.memory)
        if turn.by != "person" and is_outranked(keep.memory, other.memory):
            raise _outranked(other.memory, keep.memory)
        keep = absorb(turn, keep, other)
    return keep


def absorb(turn: MemoryChange, keep: StoredMemory, other: StoredMemory) -> StoredMemory:
    """Deprecate one memory in favor of another that says the same."""
    keep = turn.change(
        keep,
        "absorbed",
        inherited_fields(keep.memory, other.memory),
        {"absorbed": other.memory.short_id},
    )
    fields = {
        "deprecated_at": turn.now_ms,
        "deprecated_because": "merged",
        "superseded_by": keep.memory.id,
    }
    turn.change(other, "merged", fields, {"into": keep.memory.short_id})
    return keep


def inherited_fields(keep: TypedMemory, other: TypedMemory) -> dict[str, Any]:
    """Return what a memory gains from one that says the same."""
    fields: dict[str, Any] = {"session_ids": _joined(keep.session_ids, other.session_ids)}
    if rank_of(other.tier) >= rank_of(keep.tier):
        fields["tags"] = sorted(_joined(keep.tags, other.tags))
        fields["files"] = _joined(keep.files, other.files)
        fields["modules"] = _joined(keep.modules, other.modules)
        evidence = dict.fromkeys((*keep.evidence, *other.evidence))
        fields["evidence"] = [plain_evidence(each) for each in evidence][:MAX_EVIDENCE]
        if not keep.is_verified:
            fields["taint"] = sorted({*keep.taint, *other.taint})
    return {name: value for name, value in fields.items() if value != plain(keep, name)}


def _joined(one: Iterable[str], other: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*one, *other)))[:MAX_ITEMS]


def _refuse_same(one: StoredMemory, other: StoredMemory) -> None:
    if one.no == other.no:
        raise InvalidInputError(
            f"{one.memory.short_id} was named twice. Name two different memories."
        )


def _outranked(old: TypedMemory, new: TypedMemory) -> ConflictError:
    hint = "A person can decide: accept the newer one in review."
    return ConflictError(
        f"{old.short_id} is {'pinned' if old.is_pinned else old.tier} and {new.short_id} only "
        f"{new.tier}. {hint}",
        memory_id=old.short_id,
        brief="A more trusted memory is not replaced by a less trusted one",
        hint=hint,
    )


def undo(turn: MemoryChange, stored: StoredMemory) -> StoredMemory:
    """Undo the newest change that was not undone yet.

    An agent cannot undo what a person did.
    """
    newest = turn.store.newest_change(turn.session, stored.no)
    if newest is None or newest[2] == "created":
        hint = "Forget it if it should not be there."
        raise ConflictError(
            f"There is nothing to undo on memory {stored.memory.short_id}: it is as it was made. "
            f"{hint}",
            memory_id=stored.memory.short_id,
            brief="Nothing to undo",
            hint=hint,
        )
    if newest[3] == "person":
        turn.refuse_others("undo what a person did")
    operation = newest[1]
    events = turn.store.operation(turn.session, operation)
    _refuse_newer(turn, operation, {int(event[1]) for event in events})
    turn.next_operation()
    for event_no, no, kind, before, after in reversed(events):
        _take_back(turn, int(no), kind, before=json.loads(before), after=json.loads(after))
        turn.store.mark_undone(turn.session, int(event_no), turn.last_event_no)
    return StoredMemory(stored.no, turn.store.by_number(turn.session, stored.no))


def _refuse_newer(turn: MemoryChange, operation: str, numbers: set[int]) -> None:
    """What one change did to several memories is taken back only while none of them was changed
    since.
    """
    for no in sorted(numbers):
        newest = turn.store.newest_change(turn.session, no)
        if newest is not None and newest[1] != operation:
            short_id = turn.store.by_number(turn.session, no).short_id
            hint = f"Undo that first: `smara memories review undo {short_id}`."
            raise ConflictError(
                f"Memory {short_id}, which the same change touched, was changed since. {hint}",
                memory_id=short_id,
                brief="A part of the change was changed since",
                hint=hint,
            )


def _take_back(
    turn: MemoryChange, no: int, kind: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    stored = StoredMemory(no, turn.store.by_number(turn.session, no))
    if kind == "related":
        remove_relation(turn, stored, Relation(**after["relation"]))
    elif kind == "unrelated":
        relation = Relation(**before["relation"])
        known = relation.memory_id is None or turn.store.numbers_of_ids(
            turn.session, [relation.memory_id]
        )
        if known:
            turn.put_relation(no, relation)
    else:
        turn.change(stored, "undone", before, {"undoes": kind})
        return
    turn.touch(stored)
    turn.event(no, "undone", after, {**before, "undoes": kind})
