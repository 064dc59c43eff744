"""Detect repeated searches that end in the same file (signal 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from smara.actions.paths import module_of
from smara.behavior.cues import CUES
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    6,
    "repeated_grep",
    0.78,
    relevance=0.80,
    false_positives=0.35,
    targets=("module_insight", "gotcha"),
    least_sessions=2,
    quotes=(),
    learned_in=("build", "insights", "spec"),
    is_observation=True,
)
_LEAST_LETTERS = 4
_TIMES = 2
_LEAST_SEARCHES = 3


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect patterns searched repeatedly, or once with an answer."""
    for pattern, entry in pad.searches:
        letters = sum(character.isalnum() for character in pattern)
        if letters < _LEAST_LETTERS or (entry.count < _TIMES and not entry.answers):
            continue
        yield SignalFinding(
            "repeated_grep",
            pattern,
            f"searched for {pattern}"[:160],
            step=entry.first_step,
            data={"pattern": pattern, "times": entry.count, "answers": entry.answers},
            is_proven=bool(entry.answers),
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft if most sessions' searches ended in one file."""
    pattern = finding.data["pattern"]
    counted = Counter(path for data in seen.history for path in data.get("answers", {}))
    times = sum(int(data.get("times", 1)) for data in seen.history)
    answered = [data for data in seen.history if data.get("answers")]
    if (
        not counted
        or len(answered) < SIGNAL.least_sessions
        or times < max(_LEAST_SEARCHES, len(seen.history) + 1)
        or not CUES["searched name"].search(pattern)
    ):
        return None
    (path, count), *others = counted.most_common(2)
    if count < len(answered) or (others and others[0][1] == count):
        return None
    module = module_of(path)
    # A search may have been told where to look, and another one have had hits in other files.
    return MemoryDraft(
        "module_insight",
        f"{code(pattern)} is in {code(path)}: it was searched for {times} times in "
        f"{len(seen.history)} sessions, and that file read where it was the only hit.",
        (f"searched: {pattern}; then read: {path}",),
        files=(path,),
        modules=(module,) if module else (),
        data={"module": module} if module else {},
    )
