"""Verified use: what keeps a memory alive and what makes it worth more. Being shown is not
evidence.

Somebody says what came of it: it helped, it was right, it was wrong, or the work failed and
nobody knows why. One use per session counts. For what is tainted only a person's word counts:
otherwise a text could ask to be called helpful until it is believed.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from smara.core.checks import one_of
from smara.knowledge.changing import verified_fields
from smara.knowledge.decay import DAY_MS
from smara.knowledge.models import USE_OUTCOMES, TypedMemory, UseOutcome
from smara.knowledge.prepare import clean_optional
from smara.knowledge.store import Stored
from smara.knowledge.turn import Turn

USES_PER_RAISE = 5
RAISED_BY, RAISED_TO = 0.05, 0.95
USES_WITHOUT_REVIEW = 10
WRONG_FACTOR = 0.5


def use(turn: Turn, stored: Stored, outcome: UseOutcome, note: str) -> Stored:
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


def _helped(turn: Turn, memory: TypedMemory) -> dict[str, Any]:
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


def _flag(turn: Turn, stored: Stored, told: dict[str, Any]) -> Stored:
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


def session_of(turn: Turn) -> str:
    """The session something belongs to; for a person at a terminal, the day."""
    return turn.session_id or f"{datetime.fromtimestamp(turn.now_ms / 1000, UTC):%Y-%m-%d}"


def _counts(turn: Turn, stored: Stored) -> bool:
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
