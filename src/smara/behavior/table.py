"""The table of signals: every signal with its row, in the order of what they are worth.

What is learned besides them (dead ends, test reports, commits, what a browser showed) has rows
here, too: it passes the same pipeline, and one session is enough for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from smara.behavior import commits, dead_ends, qa, seen_running
from smara.behavior.models import Draft, Finding, Kind, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.signals import (
    backtrack,
    co_access,
    config_touch,
    context_spike,
    error_retry,
    external_reference,
    file_access,
    glob_ignore,
    import_chase,
    parallel_conflict,
    read_abandon,
    repeated_grep,
    self_correction,
    step_overrun,
    test_order,
    time_anomaly,
    tool_sequence,
)

LEAST_VALUE = 0.4
"""Signals that are worth less are discarded before anything else looks at them."""

_SIGNALS: tuple[ModuleType, ...] = (
    co_access, self_correction, error_retry, parallel_conflict, read_abandon, repeated_grep,
    test_order, tool_sequence,
    file_access, step_overrun, backtrack, config_touch, glob_ignore, context_spike,
    external_reference, import_chase,
    time_anomaly,
)  # fmt: skip
_OTHERS: tuple[ModuleType, ...] = (dead_ends, qa, commits, seen_running)
_BY_KIND: Mapping[str, ModuleType] = {
    module.SIGNAL.kind: module for module in (*_SIGNALS, *_OTHERS)
}

SIGNALS: tuple[Signal, ...] = tuple(module.SIGNAL for module in _SIGNALS)


def signal_of(kind: Kind) -> Signal:
    found: Signal = _BY_KIND[kind].SIGNAL
    return found


def detect_all(pads: Sequence[Pad]) -> Iterator[Finding]:
    """Everything that the scratchpads of one session show, the most valuable signals first."""
    for module in (*_SIGNALS, *_OTHERS):
        if module.SIGNAL.value >= LEAST_VALUE:
            yield from module.detect(pads)


def draft_of(finding: Finding, seen: Seen) -> Draft | None:
    """The memory that a finding would make; ``None`` when the evidence says too little."""
    made: Draft | None = _BY_KIND[finding.kind].draft(finding, seen)
    return made
