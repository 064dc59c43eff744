"""Find every signal of a folder and order them by value.

Each module of this folder is one signal: SIGNAL is its specification, detect() finds it in the
scratchpad of an agent, draft() composes the memory. Adding a module adds a signal. Dead ends, test
reports, commits and end-to-end observations follow the same protocol, with the number 0; they are
no habits, so one session may be enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad
from smara.errors import ConfigError

LEAST_VALUE = 0.4
"""Signals that are worth less are discarded before anything else looks at them."""
_NEEDED = ("SIGNAL", "detect", "draft")


def read_signals(package: str) -> dict[str, ModuleType]:
    """Import a package's signals by kind, most valuable first.

    Habits come before the others.

    Raises:
        ConfigError: A module lacks a part of a signal, or two have one kind.
    """
    modules = [
        import_module(f"{package}.{found.name}")
        for found in iter_modules(import_module(package).__path__)
        if found.name != "registry"
    ]
    for module in modules:
        missing = [name for name in _NEEDED if not hasattr(module, name)]
        if missing:
            raise ConfigError(
                f"The signal {module.__name__} has no {', '.join(missing)}. See "
                "docs/howto/add-a-signal.md."
            )
    modules.sort(key=lambda module: (module.SIGNAL.number == 0, -module.SIGNAL.value))
    by_kind: dict[str, ModuleType] = {}
    for module in modules:
        other = by_kind.setdefault(module.SIGNAL.kind, module)
        if other is not module:
            raise ConfigError(
                f"{module.__name__} and {other.__name__} are both the signal "
                f"{module.SIGNAL.kind!r}. Give one of them another kind."
            )
    return by_kind


_BY_KIND = read_signals(__package__)
SIGNALS: tuple[Signal, ...] = tuple(
    module.SIGNAL for module in _BY_KIND.values() if module.SIGNAL.number
)


def signal_of(kind: str) -> Signal:
    """Return the specification of a signal by its kind."""
    signal: Signal = _BY_KIND[kind].SIGNAL
    return signal


def detect_all(pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Yield what the scratchpads of one session show, most valuable first."""
    for module in list(_BY_KIND.values()):
        if module.SIGNAL.value >= LEAST_VALUE:
            for pad in pads:
                yield from module.detect(pad, pads)


def draft_of(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft a finding's memory, or ``None`` for weak evidence."""
    draft: MemoryDraft | None = _BY_KIND[finding.kind].draft(finding, seen)
    return draft
