"""The trust gate: what came from outside before a finding may speak through it.

Taint goes by where something comes from, not by how it sounds: an agent that has read a web page
may say what the page wanted it to say, and run what the page wanted it to run. What only counts
files and steps has no words that could carry that. Output of tools on this machine is ``tool``.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.behavior.models import Draft, Finding
from smara.behavior.pad import Pad
from smara.behavior.table import signal_of
from smara.knowledge.models import LOCAL_TAINT

OUTSIDE_FACTOR = 0.7
_TOOL_TEXT = frozenset({"error_retry", "backtrack", "dead_end", "qa_report", "e2e"})


def taint_of(finding: Finding, draft: Draft | None, pads: Sequence[Pad]) -> tuple[str, ...]:
    """What a finding is tainted with: all that came into any of the session's agents before it
    began to show.
    """
    found = set(draft.taint if draft is not None else ())
    if finding.kind in _TOOL_TEXT:
        found.add("tool")
    if signal_of(finding.kind).has_text:
        for pad in pads:
            # Agents that work side by side tell each other what they read, at steps that cannot be
            # compared.
            is_before = [
                kind
                for kind, step in pad.facts["outside"].items()
                if len(pads) > 1 or _last_step(finding) > step
            ]
            found.update(is_before)
    return tuple(sorted(found))


def _last_step(finding: Finding) -> int:
    """What was said of a fix may come later than the failure, from a page read in between."""
    return max(finding.step, int(finding.data.get("last_step", finding.step)))


def is_from_outside(taint: Sequence[str]) -> bool:
    return not LOCAL_TAINT.issuperset(taint)


def trusted(confidence: float, taint: Sequence[str]) -> float:
    """The confidence that is left."""
    return round(confidence * OUTSIDE_FACTOR, 3) if is_from_outside(taint) else confidence
