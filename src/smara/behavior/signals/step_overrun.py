"""Detect work that takes more steps than planned (signal 15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from smara.actions.paths import module_of
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    15,
    "step_overrun",
    0.70,
    relevance=0.70,
    false_positives=0.25,
    targets=("task_calibration",),
    least_sessions=3,
    quotes=(),
    learned_in=("build",),
)
OVERRUN = 1.5
_LEAST_PLANNED = 2


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect plans: first steps against all ever planned."""
    planned, actual = pad.planned()
    module = main_module(pad)
    if module is not None and planned >= _LEAST_PLANNED:
        yield SignalFinding(
            "step_overrun",
            module,
            f"{module}: {planned} steps planned, {actual} taken",
            step=0,
            data={"module": module, "planned": planned, "actual": actual},
            is_proven=True,
        )


def main_module(pad: Pad) -> str | None:
    """The module that most of the changed files belong to."""
    modules = Counter(filter(None, map(module_of, pad.edited_files())))
    del modules["tests"]
    return modules.most_common(1)[0][0] if modules else None


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    module = finding.data["module"]
    planned = [int(data["planned"]) for data in seen.history]
    actual = [int(data["actual"]) for data in seen.history]
    ratio = round(sum(actual) / sum(planned), 2)
    grown = sum(one >= OVERRUN * other for one, other in zip(actual, planned, strict=True))
    # Plans that held count as well: of those that overran alone everything overruns.
    if ratio < OVERRUN or grown < SIGNAL.least_sessions:
        return None
    sizes = ", ".join(
        f"{one}→{other}" for one, other in zip(planned[:12], actual[:12], strict=True)
    )
    return MemoryDraft(
        "task_calibration",
        f"Work on {code(module)} takes {ratio:g} times the steps that are planned "
        f"({sum(actual)} taken, {sum(planned)} planned, in {len(planned)} sessions with a plan).",
        (f"steps planned → taken: {sizes}",),
        modules=(module,),
        data={
            "module": module,
            "methodology": "native",
            "average_actual_steps": round(sum(actual) / len(actual), 1),
            "average_planned_steps": round(sum(planned) / len(planned), 1),
            "ratio": ratio,
            "sample_count": len(planned),
        },
    )
