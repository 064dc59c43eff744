"""Create providers by name, also from entry points of other packages.

Packages register under the entry point `smara.providers`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from smara.errors import ConfigError, InvalidInputError
from smara.memory import Memory
from smara.providers.models import MemoryProvider

GROUP = "smara.providers"
Factory = Callable[[Memory], MemoryProvider]


def create_provider(name: str, memory: Memory) -> MemoryProvider:
    """Create the provider of a name over an open memory.

    Raises:
        InvalidInputError: If no provider has that name; the message lists all names.
        ConfigError: If a package registers something that cannot be called.
    """
    if name == "window":
        from smara.providers.builtin import WindowProvider

        return WindowProvider(memory)
    if name == "observational":
        from smara.providers.builtin import ObservationalProvider

        return ObservationalProvider(memory)
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            factory: Factory = entry.load()
            if not callable(factory):
                raise ConfigError(
                    f"The memory provider {name!r} is nothing that can be called. "
                    "Ask its package's authors."
                )
            return factory(memory)
    raise InvalidInputError(
        f"There is no memory provider {name!r}. Available: {', '.join(available_providers())}.",
        name=name,
        available=available_providers(),
    )


def available_providers() -> list[str]:
    """Return the names that can be asked for."""
    return sorted({"window", "observational", *(entry.name for entry in entry_points(group=GROUP))})
