"""Explain a memory by its sources, its code and its trust.

Messages, observations and code live in other rooms; they answer through the protocols
:class:`Sources` and :class:`NamedCode`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from smara.core.freshness import Freshness
from smara.database.database import Session
from smara.knowledge.decay import ConfidenceNow, Staleness
from smara.knowledge.models import Evidence, MemoryEvent, TypedMemory
from smara.knowledge.store import StoredMemory
from smara.knowledge.trust import TrustReport, Verdict


@dataclass(frozen=True, slots=True)
class SourceExcerpt:
    """A piece of evidence as it can be looked at: whether it is there, what it says, and its
    taint.
    """

    evidence: Evidence
    is_there: bool | None
    """``None`` when nobody here can tell, as for a file."""
    text: str = ""
    told_by: str | None = None
    """Who said it: the role of a message."""
    at: int | None = None
    taint: tuple[str, ...] = ()


class Sources(Protocol):
    """Answers for messages and observations."""

    def shown(self, session: Session, evidence: Sequence[Evidence]) -> list[SourceExcerpt]:
        """Pieces of evidence with what they say, in their order."""
        ...

    def ambient_taint(self, session: Session, thread_id: str) -> tuple[str, ...]:
        """What came into a conversation from outside, up to now."""
        ...


class NoSources:
    """Nobody answers: evidence is taken as it is given."""

    def shown(self, session: Session, evidence: Sequence[Evidence]) -> list[SourceExcerpt]:
        return [SourceExcerpt(each, None, each.quote or "") for each in evidence]

    def ambient_taint(self, session: Session, thread_id: str) -> tuple[str, ...]:
        return ()


_NAMING = ("content", "files", "evidence", "commit", "data")
"""The fields by which a memory names code."""


class NamedCode(Protocol):
    """Knows the code that memories name. Nothing it does may keep a memory from being written or
    read.
    """

    def written(self, memories: Sequence[StoredMemory]) -> None:
        """Memories were made or changed: find the code they name. What they named before stays as
        it was.
        """
        ...

    def verified(self, memories: Sequence[StoredMemory]) -> None:
        """A person said that they are true today: the code of today is what they speak of."""
        ...

    def taken_back(self, memories: Sequence[StoredMemory], since_ms: int) -> None:
        """What a person said at some moment was taken back: what they spoke of before is what they
        speak of.
        """
        ...

    def freshness(self, session: Session, numbers: Sequence[int]) -> Mapping[int, Freshness]:
        """How memories stand to the code they name, by number; those that name none are left
        out.
        """
        ...

    def named_in(self, session: Session, paths: Sequence[str] | None) -> Sequence[int]:
        """The numbers of the memories that name code in some files, or any."""
        ...


class NoCode:
    """Nobody reads code here."""

    def written(self, memories: Sequence[StoredMemory]) -> None:
        return None

    def verified(self, memories: Sequence[StoredMemory]) -> None:
        return None

    def taken_back(self, memories: Sequence[StoredMemory], since_ms: int) -> None:
        return None

    def freshness(self, session: Session, numbers: Sequence[int]) -> Mapping[int, Freshness]:
        return {}

    def named_in(self, session: Session, paths: Sequence[str] | None) -> Sequence[int]:
        return ()


def notify_code(code: NamedCode, before: TypedMemory | None, after: StoredMemory) -> None:
    """Tell who reads code what a change of a memory means for it: nothing, mostly."""
    if before is None:
        code.written([after])
        return
    memory, was_at = after.memory, before.verified_at
    if (
        memory.verified_at is not None
        and memory.verified_at != was_at
        and memory.verified_at >= (was_at or 0)
    ):
        code.verified([after])
        return
    if was_at is not None and memory.verified_at != was_at:
        code.taken_back([after], was_at)
    if any(getattr(before, name) != getattr(memory, name) for name in _NAMING):
        code.written([after])


_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Why:
    """Where a memory came from, how far it is trusted, what it is worth today, and what happened to
    it.
    """

    memory: TypedMemory
    sources: tuple[SourceExcerpt, ...]
    trust: TrustReport
    confidence: ConfidenceNow
    staleness: Staleness
    injection: Verdict
    chain: tuple[TypedMemory, ...]
    """Those that took the place of one another, the oldest first; empty when there was only ever
    this one.
    """
    origins: tuple[TypedMemory, ...]
    """The memories it was derived from."""
    events: tuple[MemoryEvent, ...]
    """What happened to it, newest first."""
    code: Freshness | None = None
    """How it stands to the code it names; ``None`` when it names none that is known here."""

    def lines(self) -> list[str]:
        """The whole of it as text, for a terminal."""
        memory = self.memory
        found = [f"{memory.short_id}  {memory.type}  {_short(memory.content)}", ""]
        found += ["Where it came from", *self._sources()]
        found += [
            "",
            f"Trust: {self.trust.tier}",
            *(f"  {reason}" for reason in self.trust.reasons),
        ]
        told = "as an instruction" if self.injection.as_instruction else "as something known"
        found.append(
            f"  told unasked: {told if self.injection.allowed else 'no'}: {self.injection.why}"
        )
        found += ["", f"Confidence now: {self.confidence.value:.2f}"]
        found += [
            f"  × {step.factor:.2f} = {step.value:.2f}  {step.text}"
            for step in self.confidence.steps
        ]
        found += ["", f"Stale: {'yes' if self.staleness.is_stale else 'no'}"]
        found += [f"  layer {reason.layer}: {reason.text}" for reason in self.staleness.reasons]
        if self.code is not None:
            found += ["", f"Code: {self.code.verdict}", *(f"  {line}" for line in self.code.lines)]
        if self.chain:
            found += [
                "",
                "What took the place of what",
                *(f"  {_mark(each, memory)}" for each in self.chain),
            ]
        found += ["", "What happened", *(f"  {_event(event)}" for event in self.events)]
        return found

    def _sources(self) -> list[str]:
        memory = self.memory
        made = f"  {memory.source} by {memory.created_by}, {_day(memory.created_at)}"
        if memory.session_id:
            made += f", session {memory.session_id}"
        lines = [made + (f", commit {memory.commit}" if memory.commit else "")]
        for each in self.sources:
            gone = "  (no longer there)" if each.is_there is False else ""
            who = f" {each.told_by}" if each.told_by else ""
            said = f": {_short(each.text)}" if each.text else ""
            lines.append(f"  {each.evidence}{who}{said}{gone}")
        return lines + [
            f"  derived from {each.short_id}: {_short(each.content)}" for each in self.origins
        ]


def _mark(memory: TypedMemory, shown: TypedMemory) -> str:
    here = "→ " if memory.id == shown.id else "  "
    state = memory.deprecated_because or "active"
    return f"{here}{memory.short_id} {_day(memory.created_at)} ({state}) {_short(memory.content)}"


def _event(event: MemoryEvent) -> str:
    more = event.after.get("why") or event.after.get("outcome") or ""
    undone = " (undone)" if event.is_undone else ""
    return (
        f"{_day(event.at)} {event.kind.replace('_', ' ')} by {event.actor} "
        f"({event.by}){undone} {more}"
    ).rstrip()


def _day(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
