"""What a browser or another tool showed of the running program, as memories (``mcp_auto``); see
``e2e``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.quoting import code

SIGNAL = Signal(
    0,
    "e2e",
    0.75,
    relevance=0.70,
    false_positives=0.30,
    targets=("e2e_observation",),
    least_sessions=1,
)
_OFTEN = 2
_TOLD = {
    "precondition": "{action} needs something first: {said}",
    "timing": "{action} is a matter of time: {said}",
    "ui_behavior": "{action} meets this behavior of the interface: {said}",
    "mcp_gotcha": "{action} fails by the way the tool works: {said}",
}


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    for pad in pads:
        for key, entry in pad["e2e"]:
            data = {
                name: entry[name]
                for name in ("kind", "tool", "action", "first", "q")
                if entry.get(name)
            }
            data["times"] = entry["n"]
            is_proven = entry["kind"] == "test_sequence" or entry["n"] >= 2
            yield Finding(
                "e2e",
                key,
                f"{entry['kind']}: {entry['action']}"[:160],
                step=entry["f"],
                data=data,
                is_proven=is_proven,
            )


def draft(finding: Finding, seen: Seen) -> Draft | None:
    """An order is proven by what worked; everything else must have shown in two sessions at
    least.
    """
    data = finding.data
    times = sum(int(each.get("times", 1)) for each in seen.history)
    kind, action, said = str(data["kind"]), str(data["action"]), str(data["q"]).rstrip(".")
    if kind == "test_sequence":
        content = (
            f"{code(action)} works only after {code(str(data['first']))}; before it, it "
            f"failed with {code(said)}."
        )
    elif times < _OFTEN or len(seen.history) < _OFTEN:
        return None  # that something fails twice in a row may be the fault of the one who tries
    else:
        content = _TOLD[kind].format(action=code(action), said=code(said)) + "."
    fields = {"observation_type": kind, "tool": str(data["tool"])}
    return Draft(
        "e2e_observation",
        content,
        (f"{action}: {said}",),
        files=(),
        modules=(),
        data=fields,
        tags=("e2e",),
        source="mcp_auto",
        commit=None,
        taint=("mcp",),
    )
