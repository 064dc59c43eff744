"""Changes to one memory: edit, pin, verify, forget, restore, relate, mark as stale. Each takes an
open turn.

An agent may mend what agents made. What a person confirmed or pinned is changed by persons
alone: a text from a web page must not be able to rewrite it through an agent's hands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smara.core.freshness import CODE_CHANGED, Freshness
from smara.errors import ConflictError, InvalidInputError
from smara.knowledge.lookup import require
from smara.knowledge.models import Relation, TypedMemory
from smara.knowledge.prepare import clean_optional, clean_relation
from smara.knowledge.staleness import Staleness
from smara.knowledge.store import Stored
from smara.knowledge.turn import Turn, plain

VERIFIED_CONFIDENCE = 0.9
"""What a person called true is worth at least so much."""
_PLACES = frozenset(
    {"evidence", "commit_sha", "chunk_type", "chunk_start_line", "chunk_end_line", "context_prefix"}
)  # fmt: skip
"""Where a memory is written down: it moves with its file, whoever confirmed it."""


def update(turn: Turn, stored: Stored, fields: Mapping[str, Any], taint: set[str]) -> Stored:
    """Give fields new values; unchanged ones are no change. What an agent brings in adds its
    taint.
    """
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


def pin(turn: Turn, stored: Stored, is_pinned: bool) -> Stored:
    """Keep a memory from fading and from being pruned, or no longer."""
    turn.refuse_others("pin a memory")
    refuse_deprecated(stored.memory)
    if stored.memory.is_pinned == is_pinned:
        return stored
    return turn.change(stored, "pinned" if is_pinned else "unpinned", {"is_pinned": is_pinned})


def verified_fields(turn: Turn, memory: TypedMemory) -> dict[str, Any]:
    """What becomes of a memory that a person calls true."""
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


def verify(turn: Turn, stored: Stored) -> Stored:
    """A person says that it is true, now: its taint is cleared, and it fades from here."""
    turn.refuse_others("verify a memory")
    refuse_deprecated(stored.memory)
    return turn.change(stored, "verified", verified_fields(turn, stored.memory))


def forget(turn: Turn, stored: Stored, why: str) -> Stored:
    """Put a memory aside; forgetting it again changes nothing."""
    memory = stored.memory
    if memory.deprecated_because == "forgotten":
        return stored
    refuse_deprecated(memory)
    _refuse_agents(turn, memory, "forget")
    fields = {"deprecated_at": turn.now_ms, "deprecated_because": "forgotten"}
    return turn.change(stored, "forgotten", fields, _told(why))


def put_aside(turn: Turn, reasons: Mapping[str, str]) -> list[tuple[Stored, Stored]]:
    """Forget memories by their ids, those that are there and active; each as it was and as it
    is.
    """
    numbers = turn.store.numbers_of_ids(turn.session, list(reasons))
    there = turn.store.by_numbers(turn.session, numbers.values())
    found = [
        Stored(no, there[no]) for no in numbers.values() if no in there and there[no].is_active
    ]
    return [(each, forget(turn, each, reasons[each.memory.id])) for each in found]


def restore(turn: Turn, stored: Stored) -> Stored:
    """Bring back a memory that was put aside; what a person put aside, only a person brings
    back.
    """
    memory = stored.memory
    if memory.is_active:
        return stored
    if memory.deprecated_because not in ("pruned", "forgotten") or _was_put_aside_by_person(
        turn, stored
    ):
        turn.refuse_others(f"restore a memory that was {memory.deprecated_because}")
    fields: dict[str, Any] = {
        "deprecated_at": None,
        "deprecated_because": None,
        "superseded_by": None,
    }
    if turn.by == "person" or not memory.is_tainted:
        fields["last_verified_use_at"] = turn.now_ms  # or it would be pruned again at once
    return turn.change(stored, "restored", fields)


def _was_put_aside_by_person(turn: Turn, stored: Stored) -> bool:
    events = turn.store.events(turn.session, stored.no, stored.memory.id, 1_000)
    return next((event.by == "person" for event in events if event.kind == "forgotten"), False)


def mark_stale(turn: Turn, stored: Stored, why: str) -> Stored:
    """Say that a memory no longer holds; it is kept and found, and told to nobody unasked."""
    refuse_deprecated(stored.memory)
    _refuse_agents(turn, stored.memory, "mark as stale", is_upkeep=True)
    if stored.memory.is_stale:
        return stored
    reason = clean_optional(why, "why", 500) or "no reason given"
    return turn.change(stored, "marked_stale", {"stale_at": turn.now_ms, "stale_because": reason})


def mark_fresh(turn: Turn, stored: Stored) -> Stored:
    """Take the mark away."""
    refuse_deprecated(stored.memory)
    _refuse_agents(turn, stored.memory, "mark as fresh", is_upkeep=True)
    if not stored.memory.is_stale:
        return stored
    return turn.change(stored, "marked_fresh", {"stale_at": None, "stale_because": None})


def note_staleness(turn: Turn, stored: Stored, found: Staleness) -> Stored:
    """What became of the files of a memory: gone, so it is stale; rewritten, so it is looked at
    again.
    """
    if found.is_gone:
        return mark_stale(turn, stored, found.reasons[0].text)
    if not found.needs_review or stored.memory.needs_review:
        return stored
    reasons = [reason.text for reason in found.reasons if reason.layer == 4]
    return turn.change(stored, "updated", {"needs_review": True, "review_reasons": reasons})


def note_code(turn: Turn, stored: Stored, found: Freshness) -> Stored:
    """Ask for a review of a memory whose code has changed, and no longer when the code is as it
    was.
    """
    memory = stored.memory
    others = [reason for reason in memory.review_reasons if not reason.startswith(CODE_CHANGED)]
    reasons = [*others, (found.hedge or CODE_CHANGED)[:500]] if found.needs_review else others
    if found.verdict == "unknown" or tuple(reasons) == memory.review_reasons:
        return stored
    return turn.change(
        stored, "updated", {"needs_review": bool(reasons), "review_reasons": reasons}
    )


def relate(turn: Turn, stored: Stored, relation: Relation) -> None:
    """Say what a memory has to do with another, or with a file; twice is the same as once."""
    resolved = _resolved(turn, clean_relation(relation))
    if resolved.memory_id == stored.memory.id:
        raise InvalidInputError("A memory has no relation to itself. Name another memory.")
    if _has(stored.memory, resolved):
        return
    if resolved.type == "derived_from":
        raise InvalidInputError(
            "What a memory was derived from is said when it is made, for its trust depends on it."
        )
    turn.put_relation(stored.no, resolved)
    turn.touch(stored)
    turn.event(stored.no, "related", {}, {"relation": plain_relation(resolved)})


def unrelate(turn: Turn, stored: Stored, relation: Relation) -> None:
    """Take a relation away."""
    resolved = _resolved(turn, clean_relation(relation))
    there = [each for each in stored.memory.relations if _is_same(each, resolved)]
    if not there:
        return
    if resolved.type in ("derived_from", "supersedes"):
        raise InvalidInputError(
            f"The relation {resolved.type} is history and stays. Undo or restore instead."
        )
    remove_relation(turn, stored, there[0])
    turn.touch(stored)
    turn.event(stored.no, "unrelated", {"relation": plain_relation(there[0])}, {})


def remove_relation(turn: Turn, stored: Stored, relation: Relation) -> None:
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
    """``ConflictError`` for what was put aside."""
    if not memory.is_active:
        hint = "Restore it first."
        raise ConflictError(
            f"Memory {memory.short_id} was {memory.deprecated_because}. {hint}",
            memory_id=memory.short_id,
            brief=f"Memory was {memory.deprecated_because}",
            hint=hint,
        )


def _refuse_agents(turn: Turn, memory: TypedMemory, what: str, is_upkeep: bool = False) -> None:
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


def _told(why: str) -> dict[str, Any]:
    reason = clean_optional(why, "why", 500)
    return {"why": reason} if reason else {}


def _resolved(turn: Turn, relation: Relation) -> Relation:
    if relation.type == "supersedes":
        raise InvalidInputError("Use supersede() to put one memory in the place of another.")
    is_auto = relation.is_auto and turn.by != "agent"  # an agent's word is no finding of ours
    other = relation.memory_id and require(turn.session, turn.store, relation.memory_id).memory.id
    return Relation(
        relation.type, other, relation.path, confidence=relation.confidence, is_auto=is_auto
    )


def _has(memory: TypedMemory, relation: Relation) -> bool:
    return any(_is_same(each, relation) for each in memory.relations)


def _is_same(one: Relation, other: Relation) -> bool:
    return (one.type, one.memory_id, one.path) == (other.type, other.memory_id, other.path)
