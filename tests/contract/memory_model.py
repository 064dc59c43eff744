"""What memories promise, as plain Python: no database, no index, one list. The state machine
compares both.

A statement here is a thing and a port: the same thing on another port is a contradiction,
the same thing on the same port the same words, and two things have nothing to do with each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from smara.errors import ConflictError, InvalidInputError

DAY_MS = 86_400_000
HALF_LIFE_DAYS = 60
TIERS = ("quarantined", "observed", "unconfirmed", "confirmed")


@dataclass(frozen=True)
class State:
    """What can change of a memory."""

    confidence: float
    taint: tuple[str, ...]
    is_verified: bool
    needs_review: bool
    is_pinned: bool = False
    because: str | None = None
    deprecated_at: int | None = None
    replaced_by: int | None = None
    sessions: tuple[str, ...] = ()
    uses: int = 0
    in_a_row: int = 0
    corrections: int = 0
    used_at: int | None = None

    @property
    def tier(self) -> str:
        if self.is_verified:
            return "confirmed"
        if not self.taint:
            return "unconfirmed"
        return "observed" if set(self.taint) <= {"tool", "file"} else "quarantined"

    @property
    def rank(self) -> int:
        return TIERS.index(self.tier)

    @property
    def is_tainted(self) -> bool:
        return bool(self.taint) and not self.is_verified


@dataclass
class Event:
    kind: str
    before: State
    operation: int
    by: str
    session: str | None = None
    counted: bool = False
    is_undone: bool = False


@dataclass
class Kept:
    statement: tuple[str, int]
    created_at: int
    now: State
    disputes: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    is_deleted: bool = False

    @property
    def is_active(self) -> bool:
        return self.now.because is None and not self.is_deleted


class MemoryModel:
    """The memories of one project, by number."""

    def __init__(self) -> None:
        self.memories: list[Kept] = []
        self.tombstones: set[tuple[str, int]] = set()
        self.now_ms = 0
        self._operation = 0

    # asking

    def there(self) -> list[int]:
        return [number for number, kept in enumerate(self.memories) if not kept.is_deleted]

    def active(self) -> list[int]:
        return [number for number in self.there() if self.memories[number].is_active]

    def kinds(self, number: int) -> list[str]:
        return [event.kind for event in self.memories[number].events]

    # changing

    def operation(self) -> int:
        self._operation += 1
        return self._operation

    def change(self, number: int, kind: str, by: str, operation: int, **fields: Any) -> None:
        kept = self.memories[number]
        kept.events.append(Event(kind, kept.now, operation, by=by))
        kept.now = replace(kept.now, **fields)

    def add(
        self, statement: tuple[str, int], taint: tuple[str, ...], by: str, session: str
    ) -> tuple[str, int | None]:
        """What becomes of a new statement: (outcome, number)."""
        is_taught = by == "person"
        if not is_taught and self.is_unwanted(statement):
            return "refused", None
        if not is_taught and self.too_many(session):
            return "refused", None
        taint = () if is_taught else taint
        new = State(
            0.95 if is_taught else 0.8, taint, is_taught, needs_review=False, sessions=(session,)
        )
        known = next((n for n in self.active() if self.memories[n].statement == statement), None)
        if known is not None and new.rank <= self.memories[known].now.rank:
            self.see_again(known, new, by)
            return "duplicate", known
        against = [n for n in self.active() if n != known and self.contradicts(statement, n)]
        retired = [n for n in against if not self.is_outranked(new, n)]
        disputed = [n for n in against if self.is_outranked(new, n)]
        number = len(self.memories)
        new = replace(new, needs_review=bool(disputed) or not is_taught)
        self.memories.append(Kept(statement, self.now_ms, new, disputes=disputed))
        self.memories[number].events.append(
            Event("created", new, self.operation(), by=by, session=session)
        )
        operation = self.operation()
        for old in retired:
            self.supersede_now(old, number, by, operation=operation)
        if known is not None:
            self.absorb(number, known, by, operation=operation)
        return "added", number

    def is_unwanted(self, statement: tuple[str, int]) -> bool:
        for kept in self.memories:
            if kept.is_deleted or kept.statement != statement or kept.now.because is None:
                continue
            if kept.now.because in ("rejected", "forgotten"):
                return True
            successor = kept.now.replaced_by
            if (
                kept.now.because == "superseded"
                and successor is not None
                and self.memories[successor].is_active
            ):
                return True
        return statement in self.tombstones

    def too_many(self, session: str) -> bool:
        made = [
            kept
            for kept in self.memories
            if not kept.is_deleted
            and kept.events[0].by != "person"
            and kept.events[0].session == session
        ]
        return len(made) >= 20

    def contradicts(self, statement: tuple[str, int], number: int) -> bool:
        other = self.memories[number].statement
        return other[0] == statement[0] and other[1] != statement[1]

    def is_outranked(self, new: State, number: int) -> bool:
        old = self.memories[number].now
        return new.rank < old.rank or (old.is_pinned and new.tier != "confirmed")

    def see_again(self, number: int, new: State, by: str) -> None:
        old = self.memories[number].now
        sessions = tuple(dict.fromkeys((*old.sessions, *new.sessions)))
        is_taken_over = (
            new.rank >= old.rank and not old.is_verified
        )  # its evidence, and so its taint
        taint = tuple(sorted({*old.taint, *new.taint})) if is_taken_over else old.taint
        if (sessions, taint) != (old.sessions, old.taint):
            self.change(number, "seen_again", by, self.operation(), sessions=sessions, taint=taint)

    def supersede_now(self, old: int, new: int, by: str, operation: int) -> None:
        self.change(
            old,
            "superseded",
            by,
            operation,
            because="superseded",
            deprecated_at=self.now_ms,
            replaced_by=new,
        )
        self.change(new, "supersedes", by, operation)

    def absorb(self, keep: int, other: int, by: str, operation: int) -> None:
        mine, theirs = self.memories[keep].now, self.memories[other].now
        fields: dict[str, Any] = {
            "sessions": tuple(dict.fromkeys((*mine.sessions, *theirs.sessions)))
        }
        if theirs.rank >= mine.rank and not mine.is_verified:
            fields["taint"] = tuple(sorted({*mine.taint, *theirs.taint}))
        self.change(keep, "absorbed", by, operation, **fields)
        self.change(
            other,
            "merged",
            by,
            operation,
            because="merged",
            deprecated_at=self.now_ms,
            replaced_by=keep,
        )

    def person_only(self, by: str) -> None:
        if by != "person":
            raise InvalidInputError("only a person")

    def active_only(self, *numbers: int) -> None:
        if any(not self.memories[number].is_active for number in numbers):
            raise ConflictError("put aside")

    def not_theirs(self, number: int, by: str) -> None:
        now = self.memories[number].now
        if by != "person" and (now.tier == "confirmed" or now.is_pinned):
            raise ConflictError("a person's")

    def update(self, number: int, confidence: float, by: str) -> None:
        self.active_only(number)
        self.not_theirs(number, by)
        if confidence != self.memories[number].now.confidence:
            self.change(number, "updated", by, self.operation(), confidence=confidence)

    def pin(self, number: int, is_pinned: bool, by: str) -> None:
        self.person_only(by)
        self.active_only(number)
        if self.memories[number].now.is_pinned != is_pinned:
            self.change(
                number,
                "pinned" if is_pinned else "unpinned",
                by,
                self.operation(),
                is_pinned=is_pinned,
            )

    def verified(self, number: int) -> dict[str, Any]:
        worth = max(self.memories[number].now.confidence, 0.9)
        return {
            "is_verified": True,
            "needs_review": False,
            "used_at": self.now_ms,
            "confidence": worth,
        }

    def verify(self, number: int, by: str) -> None:
        self.person_only(by)
        self.active_only(number)
        self.change(number, "verified", by, self.operation(), **self.verified(number))

    def accept(self, number: int, by: str) -> None:
        self.person_only(by)
        self.active_only(number)
        now = self.memories[number].now
        if now.is_verified and not now.needs_review:
            raise ConflictError("accepted already")
        operation = self.operation()
        self.change(number, "accepted", by, operation, **self.verified(number))
        for old in self.memories[number].disputes:
            if self.memories[old].is_active:
                self.supersede_now(old, number, by, operation=operation)

    def reject(self, number: int, by: str) -> None:
        self.person_only(by)
        if self.memories[number].now.because == "rejected":
            return
        self.active_only(number)
        gone = {"because": "rejected", "deprecated_at": self.now_ms, "is_verified": False}
        self.change(number, "rejected", by, self.operation(), **gone)

    def forget(self, number: int, by: str) -> None:
        if self.memories[number].now.because == "forgotten":
            return
        self.active_only(number)
        self.not_theirs(number, by)
        self.change(
            number,
            "forgotten",
            by,
            self.operation(),
            because="forgotten",
            deprecated_at=self.now_ms,
        )

    def restore(self, number: int, by: str) -> None:
        kept = self.memories[number]
        if kept.is_active:
            return
        forgotten = [event.by for event in kept.events if event.kind == "forgotten"]
        is_decided = bool(forgotten) and forgotten[-1] == "person"
        if kept.now.because not in ("pruned", "forgotten") or is_decided:
            self.person_only(by)
        fields: dict[str, Any] = {"because": None, "deprecated_at": None, "replaced_by": None}
        if by == "person" or not kept.now.is_tainted:
            fields["used_at"] = self.now_ms
        self.change(number, "restored", by, self.operation(), **fields)

    def supersede(self, old: int, new: int, by: str) -> None:
        if old == new:
            raise InvalidInputError("the same")
        self.active_only(old, new)
        if by != "person" and self.is_outranked(self.memories[new].now, old):
            raise ConflictError("outranked")
        self.supersede_now(old, new, by, operation=self.operation())

    def merge(self, keep: int, other: int, by: str) -> None:
        if keep == other:
            raise InvalidInputError("the same")
        self.active_only(keep, other)
        if by != "person" and self.is_outranked(self.memories[keep].now, other):
            raise ConflictError("outranked")
        self.absorb(keep, other, by, operation=self.operation())

    def used(self, number: int, outcome: str, by: str, session: str) -> None:
        kept = self.memories[number]
        now = kept.now
        if outcome == "wrong":
            fields: dict[str, Any] = {
                "corrections": now.corrections + 1,
                "in_a_row": 0,
                "needs_review": True,
            }
            if by == "person" or now.tier != "confirmed":
                fields["confidence"] = round(now.confidence * 0.5, 4)
            if by == "person":
                fields["is_verified"] = False
            self.change(number, "flagged", by, self.operation(), **fields)
            return
        if not self.counts(kept, by, session):
            self.change(number, "used", by, self.operation())
            kept.events[-1].session = session
            return
        fields = {"uses": now.uses + 1, "in_a_row": now.in_a_row + 1, "used_at": self.now_ms}
        if fields["in_a_row"] % 5 == 0:
            fields["confidence"] = max(now.confidence, round(min(0.95, now.confidence + 0.05), 4))
        if fields["in_a_row"] >= 10 and not now.is_tainted and not self.disputes(number):
            fields["needs_review"] = False
        self.change(number, "used", by, self.operation(), **fields)
        kept.events[-1].session, kept.events[-1].counted = session, True

    def disputes(self, number: int) -> list[int]:
        return [old for old in self.memories[number].disputes if not self.memories[old].is_deleted]

    def counts(self, kept: Kept, by: str, session: str) -> bool:
        if by == "person":
            return True
        counted = [
            e
            for e in kept.events
            if e.kind == "used" and e.counted and e.session == session and not e.is_undone
        ]
        return not kept.now.is_tainted and not counted

    def undo(self, number: int, by: str) -> None:
        event = self.newest(number)
        if event is None or event.kind == "created":
            raise ConflictError("nothing to undo")
        if event.by == "person":
            self.person_only(by)
        touched = [
            n
            for n in self.there()
            if any(self.is_part(e, event.operation) for e in self.memories[n].events)
        ]
        if any(
            newest.operation != event.operation
            for n in touched
            if (newest := self.newest(n)) is not None
        ):
            raise ConflictError("changed since")
        operation = self.operation()
        for each in touched:
            kept = self.memories[each]
            parts = [e for e in kept.events if self.is_part(e, event.operation)]
            back = parts[0].before
            if back.replaced_by is not None and self.memories[back.replaced_by].is_deleted:
                back = replace(back, replaced_by=None)
            for part in parts:
                part.is_undone = True
                kept.events.append(Event("undone", kept.now, operation, by=by))
            kept.now = back

    def newest(self, number: int) -> Event | None:
        events = [e for e in self.memories[number].events if not e.is_undone and e.kind != "undone"]
        return events[-1] if events else None

    def is_part(self, event: Event, operation: int) -> bool:
        return event.operation == operation and not event.is_undone and event.kind != "undone"

    def prune(self) -> tuple[list[int], list[int]]:
        """Numbers of those put aside, and of those removed."""
        deleted = [n for n in self.there() if self.is_out_of_grace(self.memories[n].now)]
        for number in deleted:
            kept = self.memories[number]
            kept.is_deleted = True
            if kept.now.because in ("rejected", "forgotten"):
                self.tombstones.add(kept.statement)
            for other in self.memories:
                if other.now.replaced_by == number:
                    other.now = replace(other.now, replaced_by=None)
        old = [n for n in self.active() if self.is_old(self.memories[n])]
        faded = [n for n in old if self.is_faded(self.memories[n])]
        aged = [n for n in old if n not in faded and not self.memories[n].now.needs_review]
        for number in faded:
            self.change(
                number,
                "pruned",
                "system",
                self.operation(),
                because="pruned",
                deprecated_at=self.now_ms,
            )
        for number in aged:
            self.change(number, "updated", "system", self.operation(), needs_review=True)
        return faded, deleted

    def is_out_of_grace(self, now: State) -> bool:
        if (
            now.deprecated_at is None
            or now.is_pinned
            or now.is_verified
            or now.because == "superseded"
        ):
            return False
        return now.deprecated_at < self.now_ms - 30 * DAY_MS

    def is_faded(self, kept: Kept) -> bool:
        return self.is_old(kept) and not kept.now.is_verified

    def is_old(self, kept: Kept) -> bool:
        used = kept.now.used_at if kept.now.used_at is not None else kept.created_at
        return not kept.now.is_pinned and self.now_ms - used > 3 * HALF_LIFE_DAYS * DAY_MS
