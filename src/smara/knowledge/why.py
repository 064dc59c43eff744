"""Why a memory is there and what it is worth: a value that a terminal, a panel or a test can
show.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from smara.core.freshness import Freshness
from smara.knowledge.decay import ConfidenceNow
from smara.knowledge.models import MemoryEvent, TypedMemory
from smara.knowledge.sources import SourceShown
from smara.knowledge.staleness import Staleness
from smara.knowledge.trust import TrustTold, Verdict

_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Why:
    """Where a memory came from, how far it is trusted, what it is worth today, and what happened to
    it.
    """

    memory: TypedMemory
    sources: tuple[SourceShown, ...]
    trust: TrustTold
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
