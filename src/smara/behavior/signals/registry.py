"""Register every signal, ordered by value.

Each module of this folder is one signal: SIGNAL is its row, detect() finds it in
scratchpads, draft() composes the memory. Dead ends, test reports, commits and end-to-end
observations follow the same protocol; for them one session is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from smara.behavior.models import Kind, MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad
from smara.behavior.signals import (
    backtrack,
    co_access,
    commits,
    config_touch,
    context_spike,
    dead_ends,
    e2e,
    error_retry,
    external_reference,
    file_access,
    glob_ignore,
    import_chase,
    parallel_conflict,
    qa,
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
_OTHERS: tuple[ModuleType, ...] = (dead_ends, qa, commits, e2e)
_BY_KIND: Mapping[str, ModuleType] = {
    module.SIGNAL.kind: module for module in (*_SIGNALS, *_OTHERS)
}

SIGNALS: tuple[Signal, ...] = tuple(module.SIGNAL for module in _SIGNALS)


def signal_of(kind: Kind) -> Signal:
    found: Signal = _BY_KIND[kind].SIGNAL
    return found


def detect_all(pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Everything that the scratchpads of one session show, the most valuable signals first."""
    for module in (*_SIGNALS, *_OTHERS):
        if module.SIGNAL.value >= LEAST_VALUE:
            yield from module.detect(pads)


def draft_of(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """The memory that a finding would make; ``None`` when the evidence says too little."""
    made: MemoryDraft | None = _BY_KIND[finding.kind].draft(finding, seen)
    return made
