"""Methodologies by name: ours, and those that other packages bring by the entry point ``smara.methodologies``."""

from __future__ import annotations

from importlib.metadata import entry_points

from smara.behavior.methodology.bmad import BMAD
from smara.behavior.methodology.native import NATIVE
from smara.behavior.methodology.plugin import Methodology
from smara.behavior.methodology.tdd import TDD
from smara.errors import ConfigError, InvalidInputError

GROUP = "smara.methodologies"
_OURS: dict[str, Methodology] = {each.id: each for each in (NATIVE, TDD, BMAD)}
_NEEDED = ("id", "name", "relays", "custom_types", "phase_of", "work_unit_of", "work_state_of")


def find_methodology(name: str) -> Methodology:
    """The methodology of that name; an unknown name is answered with the list."""
    if name in _OURS:
        return _OURS[name]
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return _loaded(entry.load(), name)
    known = available_methodologies()
    raise InvalidInputError(
        f"There is no methodology {name!r}. Available: {', '.join(known)}.", name=name, available=known
    )


def available_methodologies() -> list[str]:
    """The names that can be asked for."""
    return sorted({*_OURS, *(entry.name for entry in entry_points(group=GROUP))})


def _loaded(found: object, name: str) -> Methodology:
    made = found() if isinstance(found, type) else found
    missing = [each for each in _NEEDED if not hasattr(made, each)]
    if missing:
        raise ConfigError(f"The methodology {name!r} has no {', '.join(missing)}. Ask its package's authors.")
    return made  # type: ignore[return-value]  # it has everything that is asked of one
