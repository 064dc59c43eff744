"""Reinforce memories by verified use and prune faded ones.

Being shown is no evidence: a session reports that a memory helped, was right or was wrong, and one
use per session counts. For tainted memories only a person's report counts. Faded memories are
deprecated and removed after a month; what a person verified or pinned never is.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from smara.core.validate import one_of
from smara.database.database import Session
from smara.knowledge.change import verified_fields
from smara.knowledge.decay import DAY_MS, PRUNED_AFTER_HALF_LIVES, half_life_days, used_at
from smara.knowledge.journal import MemoryChange
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import USE_OUTCOMES, PruneResult, TypedMemory, UseOutcome
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
    """The session something belongs to; for a person at a terminal, the day."""
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
    """Remove what is out of its grace, then put aside what has faded; so everything has its
    grace.
    """
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
    """What pruning would do now."""
    return _named(faded(session, store, now_ms), out_of_grace(session, store, now_ms))


def _named(put_aside: list[StoredMemory], deleted: list[StoredMemory]) -> PruneResult:
    return PruneResult(
        tuple(stored.memory.short_id for stored in put_aside),
        tuple(stored.memory.short_id for stored in deleted),
    )
