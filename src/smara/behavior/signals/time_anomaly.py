"""8, time anomaly: a command that takes much longer than the others, and is given up for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.quoting import code

SIGNAL = Signal(8, "time_anomaly", 0.40, 0.60, 0.50, ("gotcha",), 3, has_text=False)
_LEAST_SECONDS = 30.0
_TIMES_MEDIAN = 4.0


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    for pad in pads:
        usual = median(pad.facts["run_seconds"] or [0.0])
        for command, entry in pad["durations"]:
            seconds = float(entry.get("t", 0.0))
            if seconds >= max(_LEAST_SECONDS, _TIMES_MEDIAN * usual):
                data = {"cmd": command, "seconds": seconds, "timed_out": int(entry.get("x", 0))}
                yield Finding("time_anomaly", command, f"{command} took {seconds:.0f} s"[:160], entry["f"], data)


def draft(finding: Finding, seen: Seen) -> Draft | None:
    """Slowness alone is no trap: it must go along with running out of time at least once."""
    if not any(int(data.get("timed_out", 0)) for data in seen.history):
        return None
    command = finding.data["cmd"]
    slowest = max(float(data["seconds"]) for data in seen.history)
    content = (
        f"{code(command)} takes long here (up to {slowest:.0f} s in {len(seen.history)} sessions) and has run"
        " out of time."
    )
    data = {"symptom": "it times out", "workaround": f"allow more than {slowest:.0f} s, or run it in the background"}
    return Draft("gotcha", content, (f"$ {command}\n({slowest:.0f} s, timed out)",), (), (), data)
