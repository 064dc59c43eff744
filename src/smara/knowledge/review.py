"""Accept, correct or reject memories that were learned.

"Accept all" skips memories that are tainted, disputed or flagged: each needs a look of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smara.errors import ConflictError
from smara.knowledge.add import SURE
from smara.knowledge.change import refuse_deprecated, supersede, verified_fields
from smara.knowledge.journal import MemoryChange, plain
from smara.knowledge.models import AcceptResult, TypedMemory
from smara.knowledge.prepare import clean_optional
from smara.knowledge.store import StoredMemory


def accept(turn: MemoryChange, stored: StoredMemory, edits: Mapping[str, Any]) -> StoredMemory:
    """A person says that it is true, perhaps in better words; what it surely contradicts gives way
    to it.
    """
    memory = stored.memory
    turn.refuse_others("accept a memory")
    refuse_deprecated(memory)
    if memory.is_verified and not memory.needs_review:
        hint = "Nothing is left to decide; undo takes it back."
        raise ConflictError(
            f"Memory {memory.short_id} was accepted already by {memory.verified_by}. {hint}",
            memory_id=memory.short_id,
            brief="Memory was accepted already",
            hint=hint,
        )
    changed = {name: value for name, value in edits.items() if value != plain(memory, name)}
    accepted = turn.change(stored, "accepted", {**changed, **verified_fields(turn, memory)})
    for old in _disputed(turn, accepted.memory):
        accepted = supersede(turn, old, accepted, why="a person accepted the newer one")
    return accepted


def reject(turn: MemoryChange, stored: StoredMemory, why: str) -> StoredMemory:
    """A person says that it is not to be remembered; the same words are not learned again."""
    memory = stored.memory
    turn.refuse_others("reject a memory")
    if memory.deprecated_because == "rejected":
        return stored
    refuse_deprecated(memory)
    reason = clean_optional(why, "why", 500)
    fields = {
        "deprecated_at": turn.now_ms,
        "deprecated_because": "rejected",
        "is_verified": False,
        "verified_at": None,
        "verified_by": None,
    }
    return turn.change(stored, "rejected", fields, {"why": reason} if reason else {})


def accept_all(turn: MemoryChange, waiting: Sequence[StoredMemory]) -> AcceptResult:
    """Accept what waits, but for what is tainted, in dispute or flagged; each can be undone by
    itself.
    """
    accepted: list[TypedMemory] = []
    left: list[tuple[TypedMemory, str]] = []
    for stored in waiting:
        reason = reason_to_look(stored.memory)
        if reason:
            left.append((stored.memory, reason))
            continue
        turn.next_operation()
        accepted.append(accept(turn, stored, {}).memory)
    return AcceptResult(tuple(accepted), tuple(left))


def reason_to_look(memory: TypedMemory) -> str | None:
    """Why a memory must be looked at by itself, or ``None``."""
    if memory.is_tainted:
        return f"it comes from {', '.join(memory.taint)}: look at it by itself"
    if any(each.type == "conflicts_with" for each in memory.relations):
        return "it contradicts another memory: decide which one is true"
    return (
        "it was flagged as wrong" if memory.corrections and memory.uses_since_wrong == 0 else None
    )


def _disputed(turn: MemoryChange, memory: TypedMemory) -> list[StoredMemory]:
    """The active memories that it surely contradicts."""
    ids = [
        each.memory_id
        for each in memory.relations
        if each.type == "conflicts_with"
        and each.is_auto
        and each.confidence >= SURE
        and each.memory_id
    ]
    found = turn.store.by_numbers(
        turn.session, turn.store.numbers_of_ids(turn.session, ids).values()
    )
    return [StoredMemory(no, each) for no, each in found.items() if each.is_active]
