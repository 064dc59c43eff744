"""Detect files whose reading takes very many tokens (signal 17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from smara.actions.paths import is_prose
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    17,
    "context_spike",
    0.60,
    relevance=0.70,
    false_positives=0.40,
    targets=("context_cost",),
    least_sessions=3,
    quotes=(),
    learned_in=("build",),
)
_OFTEN = 2
"""In so many sessions it must have been the same file."""
_LEAST_SHARE = 0.4
"""So much of what is read of a module must be this one reading: otherwise it is not what costs."""


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect modules with an oversized reading."""
    for module, entry in pad.outputs:
        # Plans and notes are read once and done with.
        if entry.spikes and not is_prose(entry.peak_file):
            yield SignalFinding(
                "context_spike",
                module,
                f"{module}: {entry.peak_tokens:,} tokens at once",
                step=entry.first_step,
                data={
                    "module": module,
                    "tokens": entry.tokens,
                    "peak": entry.peak_tokens,
                    "file": entry.peak_file,
                },
            )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    module, total = finding.data["module"], len(seen.history)
    average = round(sum(int(data["tokens"]) for data in seen.history) / total)
    read = Counter(str(data.get("file") or "") for data in seen.history)
    path, count = read.most_common(1)[0]
    if not path or count < _OFTEN:
        return None  # another file each time: nothing to beware of
    peak = max(int(data["peak"]) for data in seen.history if data.get("file") == path)
    if peak < _LEAST_SHARE * average:
        return None
    return MemoryDraft(
        "context_cost",
        f"Reading {code(path)} whole takes {peak:,} tokens at once;"
        f" sessions on {code(module)} read about {average:,} of that module ({total} counted).",
        (f"{path} was read at once in {count} sessions, up to {peak:,} tokens",),
        files=(path,),
        modules=(module,),
        data={
            "module": module,
            "average_tokens": average,
            "peak_tokens": peak,
            "session_count": total,
        },
    )
