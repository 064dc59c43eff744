"""Pruning: what has faded is put aside, and after a month of grace removed. What a person verified
or pinned never is.

Superseded memories are history and stay; the rest leaves its fingerprint behind, so that
what a person did not want is not learned again.
"""

from __future__ import annotations

from smara.database.database import Session
from smara.knowledge.decay import DAY_MS, PRUNED_AFTER_HALF_LIVES, half_life_days, used_at
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import Pruned
from smara.knowledge.store import KnowledgeStore, Stored
from smara.knowledge.turn import Turn

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
    f" > {_LIMIT_MS} * coalesce(m.half_life_days, CASE m.type {_HALF_LIFE} ELSE 60 END)"
)
_GONE = (
    " AND m.deprecated_at IS NOT NULL AND m.deprecated_at < ? AND m.is_pinned = 0 AND "
    "m.is_verified = 0"
    " AND m.deprecated_because <> 'superseded'"
)


def faded(session: Session, store: KnowledgeStore, now_ms: int) -> list[Stored]:
    """The active memories that have not been used for three half-lives."""
    return store.select(session, f"{_FADED} ORDER BY m.no LIMIT {_MOST_AT_ONCE}", (now_ms,))


def out_of_grace(session: Session, store: KnowledgeStore, now_ms: int) -> list[Stored]:
    """The memories that were put aside more than a month ago."""
    before = now_ms - GRACE_DAYS * DAY_MS
    return store.select(
        session, f"{_GONE} ORDER BY m.deprecated_at, m.no LIMIT {_MOST_AT_ONCE}", (before,)
    )


def prune(turn: Turn) -> Pruned:
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


def preview(session: Session, store: KnowledgeStore, now_ms: int) -> Pruned:
    """What pruning would do now."""
    return _named(faded(session, store, now_ms), out_of_grace(session, store, now_ms))


def _named(put_aside: list[Stored], deleted: list[Stored]) -> Pruned:
    return Pruned(
        tuple(stored.memory.short_id for stored in put_aside),
        tuple(stored.memory.short_id for stored in deleted),
    )
