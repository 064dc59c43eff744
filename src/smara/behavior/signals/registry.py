"""Find every signal of a folder and order them by value.

Each module of this folder is one signal: SIGNAL is its specification, detect() finds it in the
scratchpad of an agent, draft() composes the memory. Adding a module adds a signal. Dead ends, test
reports, commits and end-to-end observations follow the same protocol, with the number 0; they are
no habits, so one session may be enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, get_args

from smara.behavior.models import MemoryDraft, Quoted, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad
from smara.errors import ConfigError
from smara.knowledge.gate import SESSION_TYPES

LEAST_VALUE = 0.4
"""Signals that are worth less are discarded before anything else looks at them."""
_NEEDED = ("SIGNAL", "detect", "draft")
_HOW_TO = "See docs/howto/add-a-signal.md."


def read_signals(package: str) -> dict[str, ModuleType]:
    """Import a package's signals by kind, most valuable first.

    Habits come before the others.

    Raises:
        ConfigError: A module lacks a part of a signal or a fact of its specification, names an
            unknown one, or two have one kind.
    """
    modules = [
        _read(f"{package}.{found.name}")
        for found in iter_modules(import_module(package).__path__)
        if found.name != "registry"
    ]
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


def _read(name: str) -> ModuleType:
    """Import a signal's module and check that it has all its parts."""
    try:
        module = import_module(name)
    except TypeError as error:  # its specification lacks a fact that has no default
        raise ConfigError(f"The signal {name} is incomplete: {error}. {_HOW_TO}") from error
    missing = [part for part in _NEEDED if not hasattr(module, part)]
    if missing:
        raise ConfigError(f"The signal {name} has no {', '.join(missing)}. {_HOW_TO}")
    unknown = {*module.SIGNAL.quotes} - {*get_args(Quoted)} | (
        {*module.SIGNAL.learned_in} - {*SESSION_TYPES}
    )
    if unknown:
        words = ", ".join(sorted(unknown))
        raise ConfigError(f"The signal {name} names what is unknown: {words}. {_HOW_TO}")
    return module


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


IsRepeated = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], bool]
"""Whether the data of memories of the same kind say what a finding's data do."""


def repeat_checks() -> dict[str, IsRepeated]:
    """Return by kind the checks for memories in other words."""
    return {
        kind: module.is_repeated
        for kind, module in _BY_KIND.items()
        if hasattr(module, "is_repeated")
    }


def signal_saying(draft: MemoryDraft) -> tuple[str, str]:
    """Return kind and key of the signal that says a draft."""
    for kind, module in _BY_KIND.items():
        name = module.SIGNAL.key_field
        if name in draft.data and draft.type in module.SIGNAL.targets:
            return kind, str(draft.data[name])
    return "", ""
