"""Detect a change that was reverted after a failure (signal 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.error_quote import evidence_words, failed_words
from smara.actions.paths import modules_of
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
    is_observation=True,
)


def detect(pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for pad in pads:
        for path, entry in pad.backtracks:
            data = non_empty(file=path, q=entry.quote, cmd=entry.command, line=entry.line)
            yield SignalFinding(
                "backtrack",
                path,
                f"a change of {path} was taken back",
                step=entry.since_step or entry.first_step,
                data=data,
            )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft the dead end, if a failure explains the revert."""
    path, command, line = finding.data["file"], finding.data.get("cmd"), finding.data.get("line")
    failed = [data for data in seen.history if data.get("line")]
    if not command or not line or len(failed) < SIGNAL.least_sessions:
        return None
    content = (
        f"Changes of {code(path)} were taken back in {len(failed)} sessions; "
        f"the last time {code(command)} had {failed_words(line)}."
    )
    data = {"symptom": f"{command} {failed_words(line)}"}
    quotes = (f"taken back: {finding.data.get('q', path)}", evidence_words(f"$ {command}", line))
    return MemoryDraft(
        "gotcha", content, quotes, files=(path,), modules=modules_of((path,)), data=data
    )
