"""The rules of tasks in Python: dicts and loops, obvious and slow.

Tasks are numbers here, in the order they were added. The state machine tells the same to
this model and to a database, and compares what both answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from smara.errors import (
    ConflictError,
    DependencyCycleError,
    InvalidInputError,
    TaskBlockedError,
    TaskClaimedError,
)

Edge = tuple[int, str]
"""What a task depends on, and how."""


@dataclass(frozen=True)
class Who:
    """Somebody who acts: a session of an agent, or a person without one."""

    actor: str
    session: str | None = None

    @property
    def name(self) -> str:
        return self.session or self.actor


@dataclass(frozen=True)
class Fields:
    """What an event changes and an undo brings back."""

    title: str
    priority: int
    status: str = "open"
    holder: Who | None = None
    summary: str | None = None
    reason: str | None = None
    edges: frozenset[Edge] = frozenset()


@dataclass
class Event:
    kind: str
    before: Fields | None
    is_undone: bool = False


@dataclass
class Kept:
    now: Fields
    events: list[Event] = field(default_factory=list)


class TaskModel:
    """The tasks of one project."""

    def __init__(self) -> None:
        self.tasks: list[Kept] = []
        self.alive: set[str] = set()
        """Sessions that have shown a sign of life since the last long silence, and did not end."""

    # What is computed.

    def waits_for(self, number: int) -> set[int]:
        """The blockers of a task, and its children."""
        own = {other for other, kind in self.tasks[number].now.edges if kind == "blocks"}
        children = {
            other
            for other, kept in enumerate(self.tasks)
            if (number, "parent-child") in kept.now.edges
        }
        return own | children

    def is_unfinished(self, number: int) -> bool:
        return self.tasks[number].now.status != "closed"

    def is_blocked(self, number: int) -> bool:
        return any(self.is_unfinished(other) for other in self.waits_for(number))

    def ready(self) -> list[int]:
        found = [
            number
            for number, kept in enumerate(self.tasks)
            if kept.now.status == "open" and not self.is_blocked(number)
        ]
        return sorted(found, key=self.order)

    def order(self, number: int) -> tuple[int, int]:
        return self.tasks[number].now.priority, number

    def blocked(self) -> list[int]:
        return [
            number
            for number in range(len(self.tasks))
            if self.is_unfinished(number) and self.is_blocked(number)
        ]

    def count(self, status: str) -> int:
        return sum(kept.now.status == status for kept in self.tasks)

    def reaches(self, start: int, goal: int) -> bool:
        """Whether one task waits, through any others, for another."""
        seen, to_see = set(), [start]
        while to_see:
            number = to_see.pop()
            if number == goal:
                return True
            if number not in seen:
                seen.add(number)
                to_see += self.waits_for(number)
        return False

    # What is done.

    def change(self, number: int, kind: str, **fields: object) -> int:
        kept = self.tasks[number]
        after = replace(kept.now, **fields)  # type: ignore[arg-type]
        if after != kept.now:
            kept.events.append(Event(kind, kept.now))
            kept.now = after
        return number

    def add(self, title: str, priority: int, parent: int | None, depends_on: Iterable[int]) -> int:
        number = len(self.tasks)
        self.tasks.append(Kept(Fields(title, priority)))
        edges = [(other, "blocks") for other in depends_on] + (
            [] if parent is None else [(parent, "parent-child")]
        )
        for edge in edges:
            try:
                self.depend(number, *edge)
            except DependencyCycleError:
                self.tasks.pop()
                raise
        self.tasks[number].events = [Event("created", None)]
        return number

    def depend(self, number: int, other: int, kind: str) -> int:
        edges = self.tasks[number].now.edges
        if (other, kind) not in edges:
            self.refuse_circle(number, other, kind)
        return self.change(number, "dependency_added", edges=edges | {(other, kind)})

    def refuse_circle(self, number: int, other: int, kind: str) -> None:
        later, earlier = (other, number) if kind == "parent-child" else (number, other)
        if number == other or (kind != "related" and self.reaches(earlier, later)):
            raise DependencyCycleError("a circle")

    def undepend(self, number: int, other: int, kind: str | None) -> int:
        edges = self.tasks[number].now.edges
        left = {edge for edge in edges if edge[0] != other or kind not in (None, edge[1])}
        return self.change(number, "dependency_removed", edges=frozenset(left))

    def claim(self, number: int, who: Who) -> int:
        self.expire()
        now = self.tasks[number].now
        if now.status == "closed":
            raise ConflictError("closed")
        if now.status == "open" and self.is_blocked(number):
            raise TaskBlockedError("blocked")
        self.refuse_others(number, who)
        self.see(who.session)
        return self.change(number, "claimed", status="in_progress", holder=who)

    def claim_next(self, who: Who) -> int | None:
        self.expire()
        ready = self.ready()
        return self.claim(ready[0], who) if ready else None

    def refuse_others(self, number: int, who: Who) -> None:
        holder = self.tasks[number].now.holder
        if holder is not None and not self.is_same(holder, who):
            raise TaskClaimedError("held by another")

    def is_same(self, holder: Who, who: Who) -> bool:
        return (
            holder.name == who.name if holder.session or who.session else holder.actor == who.actor
        )

    def release(self, number: int, who: Who, force: bool) -> int:
        if self.tasks[number].now.status != "in_progress":
            return number
        if not force:
            self.refuse_others(number, who)
        return self.change(number, "released", status="open", holder=None)

    def hand_over(self, number: int, to: Who, who: Who, force: bool) -> int:
        """Only what is in work and goes to somebody else."""
        if not force:
            self.refuse_others(number, who)
        self.see(to.session)
        return self.change(number, "handed_over", holder=to)

    def close(self, number: int, summary: str, reason: str, who: Who, force: bool) -> int:
        if not summary.strip():
            raise InvalidInputError("summary")
        now = self.tasks[number].now
        if now.status == "closed":
            if (now.summary, now.reason) != (summary, reason):
                raise ConflictError("closed already")
            return number
        if not force:
            self.refuse_others(number, who)
        return self.change(
            number, "closed", status="closed", holder=None, summary=summary, reason=reason
        )

    def reopen(self, number: int) -> int:
        if self.tasks[number].now.status != "closed":
            return number
        return self.change(number, "reopened", status="open", holder=None)

    def update(self, number: int, title: str | None, priority: int | None) -> int:
        given = {"title": title, "priority": priority}
        return self.change(
            number, "updated", **{name: value for name, value in given.items() if value is not None}
        )

    def undo(self, number: int) -> int:
        kept = self.tasks[number]
        event = self.last_change(number)
        if event is None or event.before is None:
            raise ConflictError("nothing to take back")
        for other, kind in event.before.edges - kept.now.edges:
            self.refuse_circle(number, other, kind)
        event.is_undone = True
        kept.events.append(Event("undone", None))
        kept.now = event.before
        return number

    def last_change(self, number: int) -> Event | None:
        """What an undo would take back."""
        changes = [
            each
            for each in self.tasks[number].events
            if each.kind != "undone" and not each.is_undone
        ]
        return changes[-1] if changes else None

    # Sessions.

    def see(self, session: str | None) -> None:
        if session is not None:
            self.alive.add(session)

    def expire(self) -> list[int]:
        return [
            self.change(number, "expired", status="open", holder=None)
            for number, kept in enumerate(self.tasks)
            if kept.now.holder is not None and self.is_gone(kept.now.holder)
        ]

    def is_gone(self, holder: Who) -> bool:
        return holder.session is not None and holder.session not in self.alive

    def end_session(self, session: str) -> list[int]:
        self.alive.discard(session)
        return self.expire()

    def fall_silent(self) -> None:
        self.alive.clear()

    def kinds(self, number: int) -> Iterator[str]:
        return (event.kind for event in self.tasks[number].events)
