"""What the rooms above the intake are asked for, each by a small protocol: a room that is not there is not asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from smara.core.events import HostEvent
from smara.memory import Memory


class Behavior(Protocol):
    """What is learned from events."""

    def observe_batch(self, events: Sequence[HostEvent]) -> Any:
        """Take in events of sessions; one whose key was seen is ignored."""
        ...

    def finalize(self, session_id: str) -> Any:
        """A session has ended: keep what it taught."""
        ...

    def run_due(self) -> Any:
        """Do what is due across sessions: end those that went silent, look for what repeats, prune."""
        ...


class Told(Protocol):
    """What is said to an agent."""

    @property
    def text(self) -> str: ...
    @property
    def receipt_id(self) -> str: ...


class Moments(Protocol):
    """What is said, and when."""

    def start(
        self, session_id: str, *, source: str = "startup", agent: str = "", cwd: str = "", files: Sequence[str] = (),
        known_texts: Sequence[str] = (),
    ) -> Told | None: ...  # fmt: skip
    def first_message(self, session_id: str, text: str) -> Told | None: ...
    def before_tool(self, session_id: str, tool: str, tool_input: dict[str, Any]) -> Told | None: ...
    def after_tool(
        self, session_id: str, tool: str, tool_input: dict[str, Any], output: str = "", error: str | None = None
    ) -> Told | None: ...


class PreparedTool(Protocol):
    """One thing that would be said about a call, and about which: every condition that is not empty must hold."""

    @property
    def point(self) -> str: ...
    @property
    def told(self) -> Told: ...
    @property
    def tools(self) -> Sequence[str]: ...
    @property
    def file(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def pattern(self) -> str: ...
    @property
    def words(self) -> Sequence[str]: ...


class PreparedFirst(Protocol):
    """What is said to a first prompt that holds one of these words."""

    @property
    def words(self) -> Sequence[str]: ...
    @property
    def told(self) -> Told: ...


class Prepared(Protocol):
    """What would be said now, to a session that was told nothing yet."""

    @property
    def start(self) -> Told | None: ...
    @property
    def firsts(self) -> Sequence[PreparedFirst]: ...
    @property
    def first_words(self) -> Sequence[str]:
        """Words of a first prompt that only the store can answer, in lower case."""
        ...

    @property
    def tools(self) -> Sequence[PreparedTool]: ...
    @property
    def asked(self) -> Sequence[str]:
        """Coarse triggers of what cannot be said ahead."""
        ...

    @property
    def most_said(self) -> int: ...


@runtime_checkable
class Preparing(Protocol):
    """What a room that speaks may offer besides, so that a hook speaks without the store being opened."""

    def prepared(self, *, agent: str, cwd: str, known_texts: Sequence[str]) -> Prepared | None:
        """What would be said now; nothing is written. ``None`` when only the store can tell."""
        ...

    def deliver(self, told: Mapping[str, Any], *, session_id: str, source: str, at_ms: int) -> Any:
        """Write the receipt of what was prepared and said; safe to repeat for one session and time."""
        ...


def behavior_of(memory: Memory) -> Behavior | None:
    """The room that learns, where there is one."""
    return cast("Behavior | None", getattr(memory, "behavior", None))


def moments_of(memory: Memory) -> Moments | None:
    """The room that speaks, where there is one."""
    return cast("Moments | None", getattr(memory, "moments", None))


def observe(memory: Memory, events: Sequence[HostEvent]) -> None:
    """Let the room that learns see events, and the one that speaks see whether it was heard."""
    behavior = behavior_of(memory)
    if behavior is not None and events:
        behavior.observe_batch(list(events))
    heed = getattr(moments_of(memory), "heed", None)
    if heed is not None and events:
        heed(list(events))


def finalize(memory: Memory, session_id: str) -> None:
    """Let the room that learns end a session."""
    behavior = behavior_of(memory)
    if behavior is not None:
        behavior.finalize(session_id)


def look_across(memory: Memory) -> None:
    """Let the room that learns do what is due across sessions."""
    behavior = behavior_of(memory)
    if behavior is not None:
        behavior.run_due()
