"""Detect import chains followed to understand a file (signal 12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    12,
    "import_chase",
    0.44,
    relevance=0.60,
    false_positives=0.40,
    targets=("causal_dependency",),
    least_sessions=4,
    quotes=(),
    learned_in=("build",),
)

REASON = "imports"
"""Why the files belong together: they are read with the first, not changed with it."""


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for path, entry in pad.chases:
        if len(entry.chain) >= 3:
            yield SignalFinding(
                "import_chase",
                path,
                " → ".join(entry.chain)[:160],
                step=entry.first_step,
                data={"chain": entry.chain},
            )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    first = finding.data["chain"][0]
    counted = Counter(path for data in seen.history for path in data.get("chain", ())[1:])
    always = [path for path in finding.data["chain"][1:] if counted[path] >= SIGNAL.least_sessions]
    if len(always) < 2:
        return None
    total = len(seen.history)
    return MemoryDraft(
        "causal_dependency",
        f"To follow {code(first)} one reads {', '.join(map(code, always))}, along its "
        f"imports ({total} sessions).",
        (" → ".join([first, *always]),),
        files=(first, *always),
        data={
            "trigger_file": first,
            "dependent_files": always,
            "reason": REASON,
            "session_count": total,
            "strength": round(min(counted[path] for path in always) / total, 2),
        },
    )
