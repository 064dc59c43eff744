"""Detect files opened by mistake for a similar name (signal 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.paths import is_test, stem_of
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    5,
    "read_abandon",
    0.80,
    relevance=0.85,
    false_positives=0.325,
    targets=("gotcha",),
    least_sessions=3,
    quotes=(),
    learned_in=("build",),
    is_observation=True,
)
_STEPS = 6
"""The right file is opened at most so many steps after the wrong one."""


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect a misread file soon followed by its namesake."""
    changed = [(path, entry) for path, entry in pad.files if entry.edits and entry.reads]
    for wrong, entry in pad.files:
        if entry.count != 1 or entry.edits or not entry.reads:
            continue
        for right, other in changed:
            steps = other.first_step - entry.last_step
            if 0 < steps <= _STEPS and _is_alike(wrong, right):
                yield SignalFinding(
                    "read_abandon",
                    f"{wrong}|{right}",
                    f"{wrong} read for {right}",
                    step=entry.first_step,
                    data={"wrong": wrong, "right": right},
                    is_proven=True,
                )


def _is_alike(one: str, other: str) -> bool:
    first, second = stem_of(one).lower(), stem_of(other).lower()
    if is_test(one) != is_test(other) or one == other or min(len(first), len(second)) < 4:
        return False
    return first.startswith(second) or second.startswith(first)


def symptom_of(path: str) -> str:
    """Return what is noticed of a file that is opened by mistake."""
    return f"{path} is read and left"


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    wrong, right = finding.data["wrong"], finding.data["right"]
    return MemoryDraft(
        "gotcha",
        f"{code(wrong)} is opened by mistake: in {len(seen.history)} sessions the change "
        f"belonged into {code(right)}.",
        (f"read and left: {wrong}; then changed: {right}",),
        files=(wrong, right),
        data={"symptom": symptom_of(wrong), "workaround": f"go to {right}"},
    )
