"""17, context spike: reading a module takes very many tokens at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.quoting import code

SIGNAL = Signal(17, "context_spike", 0.60, 0.70, 0.40, ("context_cost",), 3, has_text=False)


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    """Modules of which one reading was larger than anything an agent should read at once."""
    for pad in pads:
        for module, entry in pad["outputs"]:
            if entry.get("k"):
                data = {"module": module, "tokens": int(entry["t"]), "peak": int(entry["p"])}
                yield Finding("context_spike", module, f"{module}: {entry['p']:,} tokens at once", entry["f"], data)


def draft(finding: Finding, seen: Seen) -> Draft | None:
    module, total = finding.data["module"], len(seen.history)
    average = round(sum(int(data["tokens"]) for data in seen.history) / total)
    peak = max(int(data["peak"]) for data in seen.history)
    content = (
        f"Reading {code(module)} takes about {average:,} tokens a session, {peak:,} at once at most ({total} sessions)."
    )
    data = {"module": module, "average_tokens": average, "peak_tokens": peak, "session_count": total}
    return Draft(
        "context_cost", content, (f"tokens read in {total} sessions, {peak:,} at once at most",), (), (module,), data
    )
