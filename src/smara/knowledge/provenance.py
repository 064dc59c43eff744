"""Explain a memory by its sources, its code and its trust.

Messages, observations and code live in other rooms; they answer through
:class:`Sources` and :class:`NamedCode`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from smara.core.extract import one_line
from smara.core.freshness import Freshness
from smara.core.startup.record import dataclass
from smara.database.database import Session
from smara.knowledge.decay import ConfidenceNow, Staleness
from smara.knowledge.models import (
    LOCAL_TAINT,
    MADE_BY,
    Evidence,
    MemoryEvent,
    MemorySource,
    TypedMemory,
)
from smara.knowledge.store import StoredMemory
from smara.knowledge.trust import TrustReport, Verdict


@dataclass(frozen=True, slots=True)
class SourceExcerpt:
    """A piece of evidence with its text and taint."""

    evidence: Evidence
    is_there: bool | None
    """``None`` if it is not known here, as for a file."""
    text: str = ""
    told_by: str | None = None
    """Who said it: the role of a message."""
    at: int | None = None
    taint: tuple[str, ...] = ()

    def taint_for(self, source: MemorySource) -> set[str]:
        """Return the taint that a memory of a source takes from it.

        A person's answer in a form of the host arrives as the result of a tool on this machine.
        """
        return set(self.taint) - LOCAL_TAINT if source == "said" else set(self.taint)


class Sources:
    """The sources of memories; here, evidence as it is given."""

    def shown(self, session: Session, evidence: Sequence[Evidence]) -> list[SourceExcerpt]:
        """Return pieces of evidence with what they say, in their order."""
        return [SourceExcerpt(each, None, each.quote or "") for each in evidence]

    def ambient_taint(self, session: Session, thread_id: str) -> tuple[str, ...]:
        """Return what came into a conversation from outside, up to now."""
        return ()


_NAMING = ("content", "files", "evidence", "commit", "data")
"""The fields by which a memory names code."""


class NamedCode:
    """The code that memories name; here, a project without code."""

    def written(self, memories: Sequence[StoredMemory]) -> None:
        """Find the code that new or changed memories name."""

    def verified(self, stored: StoredMemory) -> None:
        """Anchor a memory that a person confirmed to the code of today."""

    def reverted(self, stored: StoredMemory, since_ms: int) -> None:
        """Anchor a memory whose confirmation was reverted to the code of before."""

    def freshness(self, session: Session, numbers: Sequence[int]) -> Mapping[int, Freshness]:
        """Return how memories stand to the code they name, by number."""
        return {}

    def named_in(self, session: Session, paths: Sequence[str] | None) -> Sequence[int]:
        """Return the memories that name code in some files."""
        return ()


def notify_code(code: NamedCode, before: TypedMemory, after: StoredMemory) -> None:
    """Tell the code what a change of a memory means."""
    verified_at, was_at = after.memory.verified_at, before.verified_at
    if verified_at is not None and verified_at != was_at and verified_at >= (was_at or 0):
        code.verified(after)
        return
    if was_at is not None and verified_at != was_at:
        code.reverted(after, was_at)
    if any(getattr(before, name) != getattr(after.memory, name) for name in _NAMING):
        code.written([after])


_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of a memory: sources, trust, worth today, history."""

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
        """Return the whole of it as text, for a terminal."""
        memory, verdict = self.memory, self.injection
        origin = f"  {MADE_BY[memory.source]} ({memory.created_by}), {_day(memory.created_at)}"
        origin += f", seen {_day(memory.seen_at)}" if memory.seen_at is not None else ""
        origin += f", session {memory.session_id}" if memory.session_id else ""
        origin += f", commit {memory.commit}" if memory.commit else ""
        found = [f"{memory.short_id}  {memory.type}  {one_line(memory.content, _WIDTH)}", ""]
        found += ["Where it came from", origin]
        for each in self.sources:
            gone = "  (no longer there)" if each.is_there is False else ""
            who = f" {each.told_by}" if each.told_by else ""
            text = f": {one_line(each.text, _WIDTH)}" if each.text else ""
            found.append(f"  {each.evidence}{who}{text}{gone}")
        found += [
            f"  derived from {each.short_id}: {one_line(each.content, _WIDTH)}"
            for each in self.origins
        ]
        found += ["", f"Trust: {self.trust.tier}"]
        found += [f"  {reason}" for reason in self.trust.reasons]
        form = "as an instruction" if verdict.as_instruction else "as something known"
        found.append(f"  told to agents: {form if verdict.allowed else 'no'}: {verdict.why}")
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
            found += ["", "What took the place of what"]
        found += [
            f"  {'→ ' if each.id == memory.id else '  '}{each.short_id} "
            f"{_day(each.created_at)} ({each.deprecated_because or 'active'}) "
            f"{one_line(each.content, _WIDTH)}"
            for each in self.chain
        ]
        found += ["", "What happened"]
        for event in self.events:
            more = event.after.get("why") or event.after.get("outcome") or ""
            undone = " (undone)" if event.is_undone else ""
            what = f"{event.kind.replace('_', ' ')} by {event.actor} ({event.by}){undone}"
            found.append(f"  {_day(event.at)} {what} {more}".rstrip())
        return found


def _day(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M}"
