"""Detect test-first or code-first order and runs until green (signal 13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code
from smara.behavior.signals.step_overrun import main_module

SIGNAL = Signal(
    13,
    "test_order",
    0.70,
    relevance=0.80,
    false_positives=0.25,
    targets=("task_calibration",),
    least_sessions=3,
    quotes=(),
    learned_in=("build",),
)
_WORTH_PLANNING = 2.5


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    facts = pad.facts
    if not facts.test_runs or not facts.first_source_edit:
        return
    is_first = 0 < facts.first_test_edit < facts.first_source_edit
    module = main_module(pad)
    if module is None or not facts.green_after:
        return
    order = "tests_first" if is_first else "tests_after"
    yield SignalFinding(
        "test_order",
        f"{module}|{order}",
        f"{module}: {order}",
        step=facts.first_source_edit,
        data={"module": module, "order": order, "runs": list(facts.green_after)},
        is_proven=True,
    )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft the test runs until green, against the hoped one."""
    module, order = finding.data["module"], finding.data["order"]
    runs = [int(each) for data in seen.history for each in data.get("runs", ())]
    if len(runs) < SIGNAL.least_sessions:
        return None
    average = round(sum(runs) / len(runs), 1)
    if average < _WORTH_PLANNING:
        return None  # nearly as hoped for: nothing to plan for
    when = "tests written first" if order == "tests_first" else "tests run afterwards"
    return MemoryDraft(
        "task_calibration",
        f"Changes of {code(module)} take {average:g} test runs until they are green "
        f"({when}, {len(runs)} changes counted).",
        (f"test runs until green: {', '.join(map(str, runs[:12]))}",),
        modules=(module,),
        data={
            "module": module,
            "methodology": order,
            "average_actual_steps": average,
            "average_planned_steps": 1.0,
            "ratio": average,
            "sample_count": len(runs),
        },
    )
