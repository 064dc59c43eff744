"""Detect files opened by mistake for a similar name (signal 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.paths import is_test, module_of, stem_of
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
    has_text=False,
)
_STEPS = 6
"""The right file is opened at most so many steps after the wrong one."""


def detect(pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect a misread file soon followed by its namesake."""
    for pad in pads:
        changed = [
            (path, entry) for path, entry in pad["files"] if entry.get("e") and entry.get("r")
        ]
        for wrong, entry in pad["files"]:
            if entry["n"] != 1 or entry.get("e") or not entry.get("r"):
                continue
            for right, other in changed:
                if entry["s"] < other["f"] <= entry["s"] + _STEPS and _is_alike(wrong, right):
                    key = f"{wrong}|{right}"
                    data = {"wrong": wrong, "right": right}
                    yield SignalFinding(
                        "read_abandon",
                        key,
                        f"{wrong} read for {right}",
                        step=entry["f"],
                        data=data,
                        is_proven=True,
                    )


def _is_alike(one: str, other: str) -> bool:
    first, second = stem_of(one).lower(), stem_of(other).lower()
    if is_test(one) != is_test(other) or one == other or min(len(first), len(second)) < 4:
        return False
    return first == second or first.startswith(second) or second.startswith(first)


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    wrong, right = finding.data["wrong"], finding.data["right"]
    content = (
        f"{code(wrong)} is opened by mistake: in {len(seen.history)} sessions the change "
        f"belonged into {code(right)}."
    )
    modules = tuple(dict.fromkeys(filter(None, map(module_of, (wrong, right)))))
    data = {"symptom": f"{wrong} is read and left", "workaround": f"go to {right}"}
    quotes = (f"read and left: {wrong}; then changed: {right}",)
    return MemoryDraft("gotcha", content, quotes, files=(wrong, right), modules=modules, data=data)
