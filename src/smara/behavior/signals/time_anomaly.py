"""Detect commands that always run long or time out (signal 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from smara.actions.commands import is_of_the_moment
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    8,
    "time_anomaly",
    0.40,
    relevance=0.60,
    false_positives=0.50,
    targets=("gotcha",),
    least_sessions=3,
    quotes=(),
    learned_in=("build",),
)
_LEAST_SECONDS = 30.0
_TIMES_MEDIAN = 4.0
_ALWAYS_SLOW = 60.0
"""Half of what agents allow a command by default."""


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect slow commands, and their fast sessions."""
    usual = median(pad.facts.run_seconds or [0.0])
    for command, entry in pad.durations:
        seconds = entry.most_seconds
        is_slow = seconds >= max(_LEAST_SECONDS, _TIMES_MEDIAN * usual)
        if is_slow or (entry.is_work and not is_of_the_moment(command)):
            data = {"command": command, "seconds": seconds, "timed_out": entry.timeouts}
            if entry.is_work:
                data["least"] = entry.least_seconds
            yield SignalFinding(
                "time_anomaly",
                command,
                f"{command} took {seconds:.0f} s"[:160],
                step=entry.first_step,
                data=data,
            )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft a command that times out or is always slow.

    One slow run is no trap.
    """
    command, total = finding.data["command"], len(seen.history)
    if any(int(data.get("timed_out", 0)) for data in seen.history):
        slowest = max(float(data["seconds"]) for data in seen.history)
        content = (
            f"{code(command)} takes long here (up to {slowest:.0f} s in {total} sessions) "
            "and has run out of time."
        )
        symptom, least, evidence = "it times out", slowest, f"{slowest:.0f} s, timed out"
    else:
        fastest = [float(data["least"]) for data in seen.history if "least" in data]
        usual = median(fastest or [0.0])
        is_rare = len(fastest) < SIGNAL.least_sessions
        if is_rare or usual < _ALWAYS_SLOW or is_of_the_moment(command):
            return None
        content = (
            f"{code(command)} takes about {usual:.0f} s here, by its fastest runs in "
            f"{len(fastest)} sessions."
        )
        seconds = ", ".join(f"{each:.0f}" for each in fastest[:12])
        symptom, least = "it takes long", 2 * usual
        evidence = f"fastest runs, in seconds: {seconds}"
    return MemoryDraft(
        "gotcha",
        content,
        (f"$ {command}\n({evidence})",),
        data={
            "symptom": symptom,
            "workaround": f"allow more than {least:.0f} s, or run it in the background",
        },
    )
