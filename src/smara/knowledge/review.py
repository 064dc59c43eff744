"""Review memories: count uses, accept or reject, prune what has faded.

Being shown is no evidence: a session reports that a memory helped, was right or was wrong, and one
use per session counts. For tainted memories only a person's report counts. Faded memories are
deprecated and removed after a month. What a person verified never is: a review is asked for.
"Accept all" skips memories that are tainted, disputed or flagged: each needs a look of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from smara.core.validate import one_of
from smara.database.database import Session, marks
from smara.errors import ConflictError
from smara.knowledge import prepare
from smara.knowledge import trust as levels
from smara.knowledge.change import MemoryChange, refuse_deprecated
from smara.knowledge.decay import DAY_MS, PRUNED_AFTER_HALF_LIVES, half_life_days, used_at
from smara.knowledge.edit import MemoryEditor
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import (
    SURE,
    USE_OUTCOMES,
    AcceptResult,
    By,
    MemoryTotals,
    PruneResult,
    TypedMemory,
    UseOutcome,
    origins,
)
from smara.knowledge.store import KnowledgeStore, StoredMemory
from smara.knowledge.trust import TrustStatus, level_of
from smara.secrets.redact import clean_name

USES_PER_RAISE = 5
RAISED_BY, RAISED_TO = 0.05, 0.95
USES_WITHOUT_REVIEW = 10
WRONG_FACTOR = 0.5
GRACE_DAYS = 30
_REVIEWED_AT_ONCE = 1_000
_MOST_AT_ONCE = 1_000
_LIMIT_MS = PRUNED_AFTER_HALF_LIVES * DAY_MS
_HALF_LIFE = " ".join(
    f"WHEN '{kind.type}' THEN {kind.half_life_days}"
    for kind in KINDS.values()
    if kind.half_life_days
)
_LASTING = ", ".join(f"'{kind.type}'" for kind in KINDS.values() if kind.half_life_days is None)
_OLD = (
    " AND m.deprecated_at IS NULL AND m.is_pinned = 0"
    f" AND m.type NOT IN ({_LASTING})"
    " AND ? - coalesce(m.last_verified_use_at, m.created_at)"
    f" > {_LIMIT_MS} * coalesce(m.half_life_days, CASE m.type {_HALF_LIFE} END)"
    f" ORDER BY m.no LIMIT {_MOST_AT_ONCE}"
)
_FADED, _AGED = (f" AND m.is_verified = {each}{_OLD}" for each in ("0", "1 AND m.needs_review = 0"))
_GONE = (
    " AND m.deprecated_at IS NOT NULL AND m.deprecated_at < ? AND m.is_pinned = 0 AND "
    "m.is_verified = 0"
    " AND m.deprecated_because <> 'superseded'"
    f" ORDER BY m.deprecated_at, m.no LIMIT {_MOST_AT_ONCE}"
)


class MemoryReview(MemoryEditor):
    """The reviews of memories, their uses, and the level of trust."""

    def used(
        self, memory_id: str, outcome: UseOutcome, *, note: str = "", by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Record what came of using a memory; being shown is no use.

        One use a session counts.

        Args:
            outcome: ``helped``, ``confirmed``, ``wrong`` or ``failed``.
            note: What happened, in a few words.

        Returns:
            The memory as it is now.

        Raises:
            InvalidInputError: If there is no such outcome.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            if turn.session_id is not None:
                levels.see_session(turn, turn.session_id)
            one_of(outcome, USE_OUTCOMES, "outcome")
            facts: dict[str, Any] = {"outcome": outcome}
            if reason := prepare.clean_optional(note, "note", 500):
                facts["note"] = reason
            if outcome == "wrong":
                return _flag(turn, stored, facts).memory
            if outcome == "failed" or not _counts(turn, stored):
                turn.event(stored.no, "used", {}, {**facts, "counted": False})
                return stored.memory
            fields = _helped(stored.memory, turn.now_ms)
            if outcome == "confirmed" and by == "person":
                fields |= turn.verified_fields(stored.memory)
            return turn.change(stored, "used", fields, {**facts, "counted": True}).memory

    def accept(
        self,
        memory_id: str,
        *,
        version: int | None = None,
        by: By = "person",
        actor: str | None = None,
        session_id: str | None = None,
        **changes: Any,
    ) -> TypedMemory:
        """Confirm a memory in review; what it surely contradicts gives way.

        Args:
            **changes: Corrections, as for :meth:`update`.

        Returns:
            The memory, confirmed.

        Raises:
            ConflictError: If it was accepted already, or the version is another one.
            InvalidInputError: If an agent acts.
        """
        changing = self._changing(
            memory_id, by, version=version, actor=actor, session_id=session_id
        )
        with changing as (turn, stored):
            return _accept(turn, stored, prepare.edited_fields(stored.memory, changes)).memory

    def accept_all(
        self,
        *,
        session_id: str | None = None,
        memory_ids: Sequence[str] | None = None,
        dry_run: bool = False,
        limit: int = _REVIEWED_AT_ONCE,
        by: By = "person",
        actor: str | None = None,
    ) -> AcceptResult:
        """Confirm all that waits for review, of one session or of all.

        Args:
            session_id: Only what this session noted.
            memory_ids: Only these, by their long ids.
            dry_run: True to only report what would happen.
            limit: The most that are looked at, up to 1,000; the oldest first.

        Returns:
            What was accepted; and what is tainted, disputed or flagged and was left, with the
            reason.

        Raises:
            InvalidInputError: If an agent acts.
        """
        where, values = self._filter(needs_review=True, session_id=session_id)
        only = "" if memory_ids is None else f" AND m.id IN ({marks(len(memory_ids)) or 'NULL'})"
        rest = f" AND m.deprecated_at IS NULL{where}{only} ORDER BY m.no"
        rest += f" LIMIT {min(max(0, limit), _REVIEWED_AT_ONCE)}"
        accepted: list[TypedMemory] = []
        left: list[tuple[TypedMemory, str]] = []
        with self._journal.begin(actor, by=by) as turn:
            for stored in self._store.select(turn.session, rest, (*values, *(memory_ids or ()))):
                memory = stored.memory
                if memory.is_tainted:
                    why = f"it comes from {origins(memory.taint)}: look at it by itself"
                    left.append((memory, why))
                elif any(each.type == "conflicts_with" for each in memory.relations):
                    left.append((memory, "it contradicts another memory: decide which one is true"))
                elif memory.corrections and memory.uses_since_wrong == 0:
                    left.append((memory, "it was flagged as wrong"))
                else:
                    turn.next_operation()
                    accepted.append(memory if dry_run else _accept(turn, stored, {}).memory)
        return AcceptResult(tuple(accepted), tuple(left))

    def reject(
        self, memory_id: str, why: str = "", *, by: By = "person", **who: Any
    ) -> TypedMemory:
        """Reject a memory in review; the same words are not learned again.

        Args:
            why: The reason, for the history.

        Returns:
            The memory, deprecated as rejected.

        Raises:
            InvalidInputError: If an agent acts.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            turn.require_person("reject a memory")
            if stored.memory.deprecated_because == "rejected":
                return stored.memory
            refuse_deprecated(stored.memory)
            reason = prepare.clean_optional(why, "why", 500)
            return turn.retire(
                stored,
                "rejected",
                {"why": reason} if reason else {},
                is_verified=False,
                verified_at=None,
                verified_by=None,
            ).memory

    def recount(self) -> MemoryTotals:
        """Count the totals again and store them."""
        with self._journal.begin(by="system") as turn:
            counted = self._store.recount(turn.session)
            turn.state = turn.state._replace(
                total=counted.total, active=counted.active, to_review=counted.to_review
            )
            return counted

    def set_trust_level(
        self, level: int, *, by: By = "person", actor: str | None = None
    ) -> TrustStatus:
        """Set the level of trust.

        Args:
            level: From 1 (cautious) to 4 (autonomous).

        Returns:
            The level in force, and its reasons.

        Raises:
            InvalidInputError: If there is no such level, or an agent acts.
        """
        with self._journal.begin(actor, by=by) as turn:
            level_of(level)
            turn.require_person("choose the level of trust")
            if level != turn.state.trust_level:
                levels.record_level(turn, level, "chosen")
            return levels.status(turn.session, self._store, turn.state)

    def decline_offer(self, *, by: By = "person", actor: str | None = None) -> TrustStatus:
        """Keep the level of trust although a more careful one is offered.

        Returns:
            The level in force, and its reasons.

        Raises:
            InvalidInputError: If an agent acts.
        """
        with self._journal.begin(actor, by=by) as turn:
            turn.require_person("decline the offer of another level")
            offer = levels.find_offer(turn.session, self._store, turn.state)
            if offer is not None:
                levels.see_session(turn, offer.session_id)
                turn.session.run(
                    self._store.sql(
                        "UPDATE memory_sessions SET is_declined = 1"
                        " WHERE project_no = :project AND session_id = ?"
                    ),
                    (offer.session_id,),
                )
                levels.record_level(turn, turn.state.trust_level, f"declined: {offer.why}")
            return levels.status(turn.session, self._store, turn.state)

    def end_session(self, session_id: str) -> TrustStatus:
        """Count a finished session for the trust, and prune once a day.

        Everything that ends a session calls it: finalizing at every door, and providers. A session
        counts once, however often it ends.

        Args:
            session_id: The session.

        Returns:
            The level of trust, which may have risen.
        """
        name = clean_name(session_id, "session_id")
        with self._journal.begin(None, name, "system") as turn:
            levels.end_session(turn, name)
            if turn.now_ms - turn.state.pruned_at >= DAY_MS:
                _prune(turn)
            return levels.status(turn.session, self._store, turn.state)

    def prune(self, *, dry_run: bool = False) -> PruneResult:
        """Deprecate what has faded, and remove what was deprecated a month ago.

        What a person confirmed is not deprecated by its age; it is put up for a review.

        Args:
            dry_run: True to only report what would happen.

        Returns:
            The short ids of the deprecated memories, of the removed ones and of those to review.
        """
        if not dry_run:
            with self._journal.begin(by="system") as turn:
                return _prune(turn)
        with self._store.database.snapshot() as session:
            now = self._journal.project.clock.now_ms()
            return _pruned(*_prunable(session, self._store.whole, now))


def _helped(memory: TypedMemory, now_ms: int) -> dict[str, Any]:
    """Return the columns of a memory that helped.

    Every fifth use in a row raises the confidence a little; ten make the review of what is
    untainted unnecessary.
    """
    in_a_row = memory.uses_since_wrong + 1
    fields: dict[str, Any] = {
        "verified_uses": memory.verified_uses + 1,
        "uses_since_wrong": in_a_row,
        "last_verified_use_at": now_ms,
    }
    if in_a_row % USES_PER_RAISE == 0:
        raised = round(min(RAISED_TO, memory.confidence + RAISED_BY), 4)
        fields["confidence"] = max(memory.confidence, raised)
    is_clear = not memory.is_tainted and not any(
        each.type == "conflicts_with" for each in memory.relations
    )
    if in_a_row >= USES_WITHOUT_REVIEW and memory.needs_review and is_clear:
        fields |= {"needs_review": False, "review_reasons": []}
    return fields


def _flag(turn: MemoryChange, stored: StoredMemory, facts: dict[str, Any]) -> StoredMemory:
    """Halve the worth of a wrong memory and ask for a review.

    What a person confirmed keeps its worth until a person agrees.
    """
    memory = stored.memory
    reason = f"flagged as wrong by {turn.actor}" + (f": {facts['note']}" if "note" in facts else "")
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
    # At a terminal, the day is the session.
    where = turn.session_id or f"{datetime.fromtimestamp(turn.now_ms / 1000, UTC):%Y-%m-%d}"
    return turn.change(stored, "flagged", fields, facts, where=where)


def _counts(turn: MemoryChange, stored: StoredMemory) -> bool:
    """Return True if a use counts.

    A person's always does, an agent's once per session and never for what is tainted.
    """
    if turn.by == "person":
        return True
    if stored.memory.is_tainted:
        return False
    where, values = (
        ("session_id = ?", (turn.session_id,))
        if turn.session_id is not None
        else ("actor = ? AND session_id IS NULL AND at > ?", (turn.actor, turn.now_ms - DAY_MS))
    )
    rest = f" AND kind = 'used' AND undone_by IS NULL AND {where}"
    events = turn.store.events_of(turn.session, stored.no, rest, values)
    return not any(event.after.get("counted") for event in events)


def _accept(turn: MemoryChange, stored: StoredMemory, edits: dict[str, Any]) -> StoredMemory:
    """Confirm a memory; what it surely contradicts gives way."""
    memory = stored.memory
    turn.require_person("accept a memory")
    refuse_deprecated(memory)
    if memory.is_verified and not memory.needs_review:
        raise ConflictError.with_hint(
            f"Memory {memory.short_id} was accepted already by {memory.verified_by}.",
            "Nothing is left to decide; undo takes it back.",
            memory_id=memory.short_id,
            brief="Memory was accepted already",
        )
    changed = {
        name: value for name, value in edits.items() if value != turn.store.plain(memory, name)
    }
    accepted = turn.change(stored, "accepted", {**changed, **turn.verified_fields(memory)})
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
            accepted = turn.supersede(StoredMemory(no, old), accepted, why=why)
    levels.raise_level(turn)
    return accepted


def _prunable(session: Session, store: KnowledgeStore, now_ms: int) -> Iterator[list[StoredMemory]]:
    """Yield what has faded, what was deprecated a month ago, and what is to be reviewed."""
    grace_ms = GRACE_DAYS * DAY_MS
    for rest, at in ((_FADED, now_ms), (_GONE, now_ms - grace_ms), (_AGED, now_ms)):
        yield store.select(session, rest, (at,))


def _prune(turn: MemoryChange) -> PruneResult:
    """Remove what is out of its grace, then deprecate what faded."""
    faded, deleted, aged = _prunable(turn.session, turn.store.whole, turn.now_ms)
    for stored in deleted:
        turn.delete(stored)
    for stored in (*faded, *aged):
        turn.next_operation()
        days = (turn.now_ms - used_at(stored.memory)) // DAY_MS
        why = f"not used for {days} days, half-life {half_life_days(stored.memory):g}"
        if not stored.memory.is_verified:
            turn.retire(stored, "pruned", {"why": why})
        else:
            fields = {"needs_review": True, "review_reasons": [f"is it still true? {why}"]}
            turn.change(stored, "updated", fields)
    turn.state = turn.state._replace(pruned_at=turn.now_ms)
    return _pruned(faded, deleted, aged)


def _pruned(*groups: Sequence[StoredMemory]) -> PruneResult:
    return PruneResult(*(tuple(stored.memory.short_id for stored in group) for group in groups))
