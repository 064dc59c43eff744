"""7, tool sequence: the same commands in the same order, all of which worked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.quoting import code

SIGNAL = Signal(7, "tool_sequence", 0.70, 0.80, 0.30, ("workflow_recipe",), 3)
_MOST = 60


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    """Every sequence of three to five steps: which of them is a habit, only other sessions can show."""
    for pad in pads:
        found = sorted(pad["sequences"], key=lambda item: (-item[1]["n"], -len(item[1]["steps"]), item[0]))
        for key, entry in found[:_MOST]:
            data = {"steps": entry["steps"], "times": entry["n"]}
            yield Finding("tool_sequence", key, key[:160], entry["f"], data, is_proven=True)


def draft(finding: Finding, seen: Seen) -> Draft | None:
    steps = [str(step) for step in finding.data["steps"]]
    runs = [step for step in steps if not step.startswith("edit ")]
    if len(runs) < 2:
        return None
    first = steps[0]
    pattern = f"changing {first.removeprefix('edit ')}" if first.startswith("edit ") else f"after {first}"
    told = [
        f"edit {code(step.removeprefix('edit '))}" if step.startswith("edit ") else f"run {code(step)}"
        for step in steps
    ]
    total = len(seen.history)
    content = f"How it is done here, in {total} sessions: {', then '.join(told)}."
    data = {
        "task_pattern": pattern,
        "steps": [{"order": number, "description": each} for number, each in enumerate(told, 1)],
        "success_count": total,
    }  # fmt: skip
    return Draft("workflow_recipe", content, (" → ".join(steps),), (), (), data)
