"""Turn observations of a running program into memories (``mcp_auto``).

Results of browser and similar tools are sorted into six classes by rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from smara.actions.error_quote import evidence_words, failed_words
from smara.behavior.cues import CUES
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding, non_empty
from smara.behavior.scratchpad import E2eFailure, Pad, code, quote
from smara.core.events import HostEvent

ObservationType = Literal["precondition", "timing", "ui_behavior", "test_sequence", "mcp_gotcha"]

_KINDS: tuple[ObservationType, ...] = ("precondition", "ui_behavior", "timing", "mcp_gotcha")
"""In this order: what is covered or disabled is waited for until the time is over."""


def record(pad: Pad, event: HostEvent, failed: bool) -> None:
    """Record the result of a tool that looks at a program."""
    name = event.tool.rsplit(":", 1)[-1]
    if not CUES["e2e tools"].search(name):
        return
    # An action and on what, as far as its arguments name it.
    objects = map(event.tool_input.get, ("text", "element", "selector", "name", "url", "label"))
    action = quote(f"{name} {next(filter(None, objects), '')}".strip(), 120)
    facts, waiting = pad.facts, pad.facts.e2e_failed
    if failed:
        output = event.error or event.tool_output
        kind = next((kind for kind in _KINDS if CUES[kind].search(output[:1_200])), None)
        if kind is not None:
            entry = pad.e2e.count(f"{kind}|{action}", pad.step)
            entry.kind, entry.tool, entry.action = kind, event.tool[:80], action
            entry.quote = quote(output, 300)
        facts.e2e_failed = E2eFailure(action, pad.step, "", quote(output, 200))
    elif waiting is not None:
        first = waiting.following
        if action == waiting.action and first:
            entry = pad.e2e.count(f"test_sequence|{first}|{action}", pad.step)
            entry.kind, entry.tool, entry.action = "test_sequence", event.tool[:80], action
            entry.first, entry.quote = first, waiting.quote
        # With two actions in between it cannot be told which was needed.
        is_over = action == waiting.action or (first and first != action)
        facts.e2e_failed = None if is_over else waiting._replace(following=action)


SIGNAL = Signal(
    0,
    "e2e",
    0.75,
    relevance=0.70,
    false_positives=0.30,
    targets=("e2e_observation",),
    least_sessions=1,
    quotes=("agent", "tool", "mcp"),
    learned_in=("build", "insights", "terminal"),
    is_observation=True,
)
_OFTEN = 2
_TOLD = {
    "precondition": "{action} needs something first: it {error}",
    "timing": "{action} is a matter of time: it {error}",
    "ui_behavior": "{action} meets this behavior of the interface: it {error}",
    "mcp_gotcha": "{action} fails by the way the tool works: it {error}",
}


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for key, entry in pad.e2e:
        yield SignalFinding(
            "e2e",
            key,
            f"{entry.kind}: {entry.action}"[:160],
            step=entry.first_step,
            data=non_empty(
                kind=entry.kind,
                tool=entry.tool,
                action=entry.action,
                first=entry.first,
                quote=entry.quote,
                times=entry.count,
            ),
            is_proven=entry.kind == "test_sequence" or entry.count >= 2,
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft a proven order, or what showed in two sessions."""
    data = finding.data
    times = sum(int(each.get("times", 1)) for each in seen.history)
    kind, action, error = str(data["kind"]), str(data["action"]), str(data["quote"]).rstrip(".")
    if kind == "test_sequence":
        content = (
            f"{code(action)} works only after {code(str(data['first']))}; before it, it "
            f"{failed_words(error)}."
        )
    elif times < _OFTEN or len(seen.history) < _OFTEN:
        return None  # that something fails twice in a row may be the fault of the one who tries
    else:
        content = _TOLD[kind].format(action=code(action), error=failed_words(error)) + "."
    return MemoryDraft(
        "e2e_observation",
        content,
        (evidence_words(action, error),),
        data={"observation_type": kind, "tool": str(data["tool"])},
        tags=("e2e",),
        source="mcp_auto",
    )
