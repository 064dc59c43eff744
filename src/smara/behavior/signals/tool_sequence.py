"""Detect command sequences repeated in the same order (signal 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from smara.actions.commands import split_variables
from smara.behavior.cues import CUES
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    7,
    "tool_sequence",
    0.70,
    relevance=0.80,
    false_positives=0.30,
    targets=("workflow_recipe",),
    least_sessions=3,
    quotes=("agent",),
    learned_in=("build", "terminal"),
)
_MOST = 60
_SAME_ORDER = 0.6
"""In so many of the sessions the commands must have come in the order that is told."""
_LEAST_SHARE = 0.1
"""In so many of all sessions that changed something it must have shown, to be how things are done
here.
"""


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect the commands of every sequence."""
    orders: dict[str, Counter[tuple[str, ...]]] = {}
    first: dict[str, int] = {}
    for _, entry in pad.sequences:
        runs = runs_of(entry.steps)
        if len(set(runs)) >= 2:
            key = " + ".join(sorted(set(runs)))
            orders.setdefault(key, Counter())[tuple(entry.steps)] += entry.count
            first[key] = min(first.get(key, entry.first_step), entry.first_step)
    found = sorted(orders.items(), key=lambda item: (-item[1].total(), -len(item[0]), item[0]))
    for key, counted in found[:_MOST]:
        steps = list(counted.most_common(1)[0][0])
        yield SignalFinding(
            "tool_sequence",
            key,
            " → ".join(steps)[:160],
            step=first[key],
            data={"steps": steps, "times": counted.total()},
            is_proven=True,
            size=len(steps),
        )


def runs_of(steps: Sequence[str]) -> list[str]:
    return [step for step in steps if not step.startswith("edit ")]


def own_runs(steps: Sequence[str]) -> set[str]:
    """Return the project's own commands of a sequence."""
    return {
        step for step in runs_of(steps) if not CUES["of everybody"].match(split_variables(step)[1])
    }


def is_repeated(data: Mapping[str, Any], memories: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if a memory has half of the sequence's own commands."""
    runs, others = own_runs(data["steps"]), [own_runs(each.get("steps", ())) for each in memories]
    return any(2 * len(runs & each) >= min(len(runs), len(each)) for each in others if each)


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft the order of most sessions, of lasting commands."""
    orders = Counter(tuple(runs_of(data["steps"])) for data in seen.history if data.get("steps"))
    (runs, count), total = orders.most_common(1)[0], orders.total()
    own = own_runs(runs)
    if (
        all(map(CUES["by default"].match, own))
        or seen.sessions < _LEAST_SHARE * seen.all_sessions
        or len(own) < 2
        or count < SIGNAL.least_sessions
        or count / total < _SAME_ORDER
        or any(map(CUES["one time"].search, runs))
    ):
        return None
    # The file that most of the sessions edited first; without one, the order begins with a run.
    changed = Counter(
        data["steps"][0] for data in seen.history if str(data["steps"][0]).startswith("edit ")
    )
    begin, times = changed.most_common(1)[0] if changed else ("", 0)
    begin = begin if times * 2 > total and not begin.startswith("edit *") else ""
    steps = [*([begin] if begin else []), *runs]
    descriptions = [
        f"edit {code(step.removeprefix('edit '))}"
        if step.startswith("edit ")
        else f"run {code(step)}"
        for step in steps
    ]
    return MemoryDraft(
        "workflow_recipe",
        f"How it is done here, in {count} of {total} sessions: {', then '.join(descriptions)}.",
        (" → ".join(steps),),
        files=(begin.removeprefix("edit "),) if begin else (),
        data={
            "task_pattern": f"changing {begin.removeprefix('edit ')}"
            if begin
            else f"after {steps[0]}",
            "steps": [
                {"order": number, "description": each}
                | ({"canonical_file": begin.removeprefix("edit ")} if begin and number == 1 else {})
                for number, each in enumerate(descriptions, 1)
            ],
            "success_count": count,
        },
    )
