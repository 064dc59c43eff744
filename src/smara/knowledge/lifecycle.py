"""Reinforce memories by verified use, review learned ones and prune faded ones.

Being shown is no evidence: a session reports that a memory helped, was right or was wrong, and one
use per session counts. For tainted memories only a person's report counts. Faded memories are
deprecated and removed after a month; what a person verified or pinned never is. "Accept all" skips
memories that are tainted, disputed or flagged: each needs a look of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from smara.core.validate import one_of
from smara.database.database import Session
from smara.errors import ConflictError
from smara.knowledge.change import refuse_deprecated, supersede, verified_fields
from smara.knowledge.decay import DAY_MS, PRUNED_AFTER_HALF_LIVES, half_life_days, used_at
from smara.knowledge.journal import MemoryChange, plain
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import (
    SURE,
    USE_OUTCOMES,
    AcceptResult,
    PruneResult,
    TypedMemory,
    UseOutcome,
)
from smara.knowledge.prepare import clean_optional
from smara.knowledge.store import KnowledgeStore, StoredMemory

USES_PER_RAISE = 5
RAISED_BY, RAISED_TO = 0.05, 0.95
USES_WITHOUT_REVIEW = 10
WRONG_FACTOR = 0.5


def use(turn: MemoryChange, stored: StoredMemory, outcome: UseOutcome, note: str) -> StoredMemory:
    """Record what came of using a memory."""
    one_of(outcome, USE_OUTCOMES, "outcome")
    told: dict[str, Any] = {"outcome": outcome}
    if reason := clean_optional(note, "note", 500):
        told["note"] = reason
    if outcome == "wrong":
        return _flag(turn, stored, told)
    if outcome == "failed" or not _counts(turn, stored):
        turn.event(stored.no, "used", {}, {**told, "counted": False})
        return stored
    fields = _helped(turn, stored.memory)
    if outcome == "confirmed" and turn.by == "person":
        fields |= verified_fields(turn, stored.memory)
    return turn.change(stored, "used", fields, {**told, "counted": True})


def _helped(turn: MemoryChange, memory: TypedMemory) -> dict[str, Any]:
    """Every fifth use in a row raises the confidence a little; ten make the review of what is
    untainted unnecessary.
    """
    in_a_row = memory.uses_since_wrong + 1
    fields: dict[str, Any] = {
        "verified_uses": memory.verified_uses + 1,
        "uses_since_wrong": in_a_row,
        "last_verified_use_at": turn.now_ms,
    }
    if in_a_row % USES_PER_RAISE == 0:
        fields["confidence"] = max(
            memory.confidence, round(min(RAISED_TO, memory.confidence + RAISED_BY), 4)
        )
    is_disputed = any(each.type == "conflicts_with" for each in memory.relations)
    if (
        in_a_row >= USES_WITHOUT_REVIEW
        and memory.needs_review
        and not memory.is_tainted
        and not is_disputed
    ):
        fields |= {"needs_review": False, "review_reasons": []}
    return fields


def _flag(turn: MemoryChange, stored: StoredMemory, told: dict[str, Any]) -> StoredMemory:
    """It was wrong: worth half, and to be looked at; what a person confirmed keeps its worth until
    a person agrees.
    """
    memory = stored.memory
    reason = f"flagged as wrong by {turn.actor}" + (f": {told['note']}" if "note" in told else "")
    fields: dict[str, Any] = {
        "corrections": memory.corrections + 1,
        "uses_since_wrong": 0,
        "needs_review": True,
        "review_reasons": [*memory.review_reasons[-9:], reason],
    }
    if turn.by == "person" or memory.tier != "confirmed":
        fields["confidence"] = round(memory.confidence * WRONG_FACTOR, 4)
    if turn.by == "person" and memory.is_verified:
        fields |= {"is_verified": False, "verified_at": None, "verified_by": None}
    return turn.change(stored, "flagged", fields, told, where=session_of(turn))


def session_of(turn: MemoryChange) -> str:
    """Return the session of a change; at a terminal, the day."""
    return turn.session_id or f"{datetime.fromtimestamp(turn.now_ms / 1000, UTC):%Y-%m-%d}"


def _counts(turn: MemoryChange, stored: StoredMemory) -> bool:
    """Whether a use counts: a person's always, an agent's once per session and never for what is
    tainted.
    """
    if turn.by == "person":
        return True
    if stored.memory.is_tainted:
        return False
    where = (
        "session_id = ?"
        if turn.session_id is not None
        else "actor = ? AND session_id IS NULL AND at > ?"
    )
    values = (
        (turn.session_id,) if turn.session_id is not None else (turn.actor, turn.now_ms - DAY_MS)
    )
    rows = turn.session.all(
        turn.store.sql(
            "SELECT after FROM memory_events WHERE project_no = :project AND memory_no = ? AND "
            "kind = 'used'"
            f" AND undone_by IS NULL AND {where}"
        ),
        (stored.no, *values),
    )
    return not any(json.loads(row[0]).get("counted") for row in rows)


GRACE_DAYS = 30
_MOST_AT_ONCE = 1_000
_LIMIT_MS = PRUNED_AFTER_HALF_LIVES * DAY_MS
_HALF_LIFE = " ".join(
    f"WHEN '{kind.type}' THEN {kind.half_life_days}"
    for kind in KINDS.values()
    if kind.half_life_days
)
_LASTING = ", ".join(f"'{kind.type}'" for kind in KINDS.values() if kind.half_life_days is None)
_FADED = (
    " AND m.deprecated_at IS NULL AND m.is_pinned = 0 AND m.is_verified = 0"
    f" AND m.type NOT IN ({_LASTING})"
    " AND ? - coalesce(m.last_verified_use_at, m.created_at)"
    f" > {_LIMIT_MS} * coalesce(m.half_life_days, CASE m.type {_HALF_LIFE} END)"
)
_GONE = (
    " AND m.deprecated_at IS NOT NULL AND m.deprecated_at < ? AND m.is_pinned = 0 AND "
    "m.is_verified = 0"
    " AND m.deprecated_because <> 'superseded'"
)


def faded(session: Session, store: KnowledgeStore, now_ms: int) -> list[StoredMemory]:
    """The active memories that have not been used for three half-lives."""
    return store.select(session, f"{_FADED} ORDER BY m.no LIMIT {_MOST_AT_ONCE}", (now_ms,))


def out_of_grace(session: Session, store: KnowledgeStore, now_ms: int) -> list[StoredMemory]:
    """The memories that were put aside more than a month ago."""
    before = now_ms - GRACE_DAYS * DAY_MS
    return store.select(
        session, f"{_GONE} ORDER BY m.deprecated_at, m.no LIMIT {_MOST_AT_ONCE}", (before,)
    )


def prune(turn: MemoryChange) -> PruneResult:
    """Remove what is out of its grace, then deprecate what faded."""
    deleted = out_of_grace(turn.session, turn.store, turn.now_ms)
    for stored in deleted:
        turn.delete(stored)
    put_aside = faded(turn.session, turn.store, turn.now_ms)
    for stored in put_aside:
        turn.next_operation()
        days = (turn.now_ms - used_at(stored.memory)) // DAY_MS
        fields = {"deprecated_at": turn.now_ms, "deprecated_because": "pruned"}
        half_life = half_life_days(stored.memory)
        turn.change(
            stored, "pruned", fields, {"why": f"not used for {days} days, half-life {half_life:g}"}
        )
    turn.state = turn.state._replace(pruned_at=turn.now_ms)
    return _named(put_aside, deleted)


def preview(session: Session, store: KnowledgeStore, now_ms: int) -> PruneResult:
    """Return what pruning would do now."""
    return _named(faded(session, store, now_ms), out_of_grace(session, store, now_ms))


def _named(put_aside: list[StoredMemory], deleted: list[StoredMemory]) -> PruneResult:
    return PruneResult(
        tuple(stored.memory.short_id for stored in put_aside),
        tuple(stored.memory.short_id for stored in deleted),
    )


def accept(turn: MemoryChange, stored: StoredMemory, edits: Mapping[str, Any]) -> StoredMemory:
    """Confirm a memory; what it surely contradicts gives way."""
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
    contradicted = [
        each.memory_id
        for each in accepted.memory.relations
        if each.type == "conflicts_with"
        and each.is_auto
        and each.confidence >= SURE
        and each.memory_id
    ]
    numbers = turn.store.numbers_of_ids(turn.session, contradicted).values()
    for no, old in turn.store.by_numbers(turn.session, numbers).items():
        if old.is_active:
            why = "a person accepted the newer one"
            accepted = supersede(turn, StoredMemory(no, old), accepted, why=why)
    return accepted


def reject(turn: MemoryChange, stored: StoredMemory, why: str) -> StoredMemory:
    """Reject a memory; the same words are not learned again."""
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
    """Accept what needs no look of its own."""
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
    """Return why a memory needs a look of its own, or None."""
    if memory.is_tainted:
        return f"it comes from {', '.join(memory.taint)}: look at it by itself"
    if any(each.type == "conflicts_with" for each in memory.relations):
        return "it contradicts another memory: decide which one is true"
    return (
        "it was flagged as wrong" if memory.corrections and memory.uses_since_wrong == 0 else None
    )
