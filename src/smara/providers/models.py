"""Define the provider interface: turns in, chat messages out.

An agent has one thread for each time it wakes up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from smara.core.startup.record import dataclass, field


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call of a turn, and what came back."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: str = ""
    is_error: bool = False
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of an agent: input, actions and output."""

    id: str
    input: str = ""
    output: str = ""
    input_source: str | None = None
    tool_uses: Sequence[ToolUse] = ()
    thinking: str = ""
    timestamp: int | None = None
    """Milliseconds since 1970."""


ChatMessage = dict[str, Any]
"""``{"role": …, "content": …}``, as chat models take it."""


@runtime_checkable
class MemoryProvider(Protocol):
    """The memory of an agent loop."""

    name: str

    def init(self) -> None:
        """Open what is needed; safe to call twice."""

    def save_turn(self, turn: Turn) -> None:
        """Keep a turn; the same turn twice is kept once."""

    def recall(self, hint: str | None = None) -> list[ChatMessage]:
        """Return the messages to begin the next model call with."""

    def get_turn_count(self) -> int:
        """Return the number of stored turns."""

    def get_recent_turns(self, limit: int) -> list[Turn]:
        """The newest turns, oldest first."""

    def on_wake(self, identity: Mapping[str, Any]) -> None:
        """The agent begins to work: a new thread."""

    def on_sleep(self) -> None:
        """The agent stops for now."""

    def close(self) -> None:
        """Give everything back; safe to call twice."""


@runtime_checkable
class WorkingMemoryProvider(Protocol):
    """A provider that also holds a short page in mind."""

    def get_working_memory(self) -> str | None:
        """Return the page for a system prompt, or None."""


@runtime_checkable
class ResumableProvider(Protocol):
    """A provider that can continue in an existing thread."""

    def resume(self, thread_id: str) -> None:
        """Go on in this thread instead of beginning one."""


def has_working_memory(provider: object) -> bool:
    """Return True if a provider has a page to show."""
    return isinstance(provider, WorkingMemoryProvider)
