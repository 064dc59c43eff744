"""Define a tool, its caller and its result as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The caller of a tool; settings fill what is ``None``."""

    session_id: str | None = None
    """The run of the agent; claims belong to it."""
    thread_id: str | None = None
    """The conversation it has; messages said there while a task is claimed belong to that task."""
    resource_id: str | None = None
    """Whose working memory is meant."""
    actor: str | None = None
    """Who stands in a task's history."""
    is_shared: bool = False
    """Whether several agents call through the same door, so that a claim must say whose it is."""

    def over(self, other: ToolContext) -> ToolContext:
        """This context, and where it says nothing, the other."""
        names = [each.name for each in fields(self)]
        return ToolContext(**{name: getattr(self, name) or getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a call, as JSON and as text.

    ``structured`` always has ``action`` and ``success``; a refusal has ``error`` and ``code``
    too, mostly with a ``hint``, and ``retryable`` when the same call may succeed later.
    """

    is_error: bool
    structured: Json
    text: str


@dataclass(frozen=True, slots=True)
class CatalogueAction:
    """One thing a tool does, and the arguments it takes."""

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Every argument it takes, the needed ones first."""
        return (*self.required, *self.optional)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its actions, and one schema per argument."""

    name: str
    title: str
    is_read_only: bool
    arguments: Mapping[str, Json]
    actions: Mapping[str, CatalogueAction]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other names under which an argument is understood, where the action does not take them
    itself.
    """
    default_action: str | None = None
    """What is meant when no action is named."""
