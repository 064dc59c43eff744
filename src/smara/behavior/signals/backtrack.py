"""Detect a change that was reverted after a failure (signal 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.error_quote import evidence_words, failed_words
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding, non_empty
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    4,
    "backtrack",
    0.74,
    relevance=0.60,
    false_positives=0.35,
    targets=("gotcha",),
    least_sessions=2,
    quotes=("agent", "tool"),
    learned_in=("build",),
    is_observation=True,
)


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for path, entry in pad.backtracks:
        yield SignalFinding(
            "backtrack",
            path,
            f"a change of {path} was taken back",
            step=entry.since_step or entry.first_step,
            data=non_empty(file=path, quote=entry.quote, command=entry.command, line=entry.line),
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft the dead end, if a failure explains the revert."""
    data = finding.data
    path, command, line = data["file"], data.get("command"), data.get("line")
    failed = [data for data in seen.history if data.get("line")]
    if not command or not line or len(failed) < SIGNAL.least_sessions:
        return None
    return MemoryDraft(
        "gotcha",
        f"Changes of {code(path)} were taken back in {len(failed)} sessions; "
        f"the last time {code(command)} had {failed_words(line)}.",
        (f"taken back: {data.get('quote', path)}", evidence_words(f"$ {command}", line)),
        files=(path,),
        data={"symptom": f"{command} {failed_words(line)}"},
    )
