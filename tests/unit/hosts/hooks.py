"""What the tests of hooks share: payloads, a spool with something in it, and a room that speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smara.adapters.hosts.spool import put
from smara.context.models import (
    Injection,
    InjectionItem,
    ItemKind,
    Point,
    PrecomputedInjections,
    ToolTrigger,
)
from smara.core.events import HostEvent
from smara.errors import DeadlineError


def claude(event: str, **fields: Any) -> tuple[str, str, dict[str, Any]]:
    """An event of Claude Code in the session s1."""
    return "claude", event, {"session_id": "s1", "hook_event_name": event, **fields}


def spooled(
    folder: str, *events: tuple[str, str, dict[str, Any]], project: str = "", cwd: str = ""
) -> list[str]:
    """Put events into a spool; their files."""
    return [
        put(folder, agent, event, payload=json.dumps(payload).encode(), project=project, cwd=cwd)
        for agent, event, payload in events
    ]


def cited(id: str, text: str = "", kind: ItemKind = "failure") -> InjectionItem:
    """One thing that is said."""
    return InjectionItem(kind, id, "a test wants it", text=text, tokens=3)


def words(text: str, *items: InjectionItem, point: Point = "start") -> Injection:
    """Words of a moment."""
    return Injection(text, 20, point, items=items)


def around(told: Injection, **conditions: Any) -> ToolTrigger:
    """Words about a call, and about which."""
    return ToolTrigger(told.point, told, **conditions)  # type: ignore[arg-type]


def ready(start: Injection | None = None, **more: Any) -> PrecomputedInjections:
    """All that could be said."""
    return PrecomputedInjections(start, **{"most_said": 20, **more})


@dataclass(slots=True)
class Speaking:
    """A room of moments that says what it was asked, and what was prepared where something was."""

    ready: PrecomputedInjections | None = None
    fact: str = "A fact."
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    delivered: list[tuple[Any, ...]] = field(default_factory=list)
    known: list[str] = field(default_factory=list)

    def start(self, session_id: str, **more: Any) -> Injection:
        self.asked.append(("start", session_id, more["source"], more["agent"]))
        return words(self.fact)

    def first_message(self, session_id: str, text: str, is_first: bool = True) -> Injection:
        self.asked.append(("first", session_id, text))
        return words(self.fact)

    def before_tool(
        self,
        session_id: str,
        tool: str,
        tool_input: Mapping[str, Any],
        known_texts: Sequence[str] = (),
    ) -> Injection:
        self.asked.append(("before", session_id, tool))
        return words(self.fact)

    def after_tool(
        self,
        session_id: str,
        tool: str,
        tool_input: Mapping[str, Any],
        output: str = "",
        error: str | None = None,
        known_texts: Sequence[str] = (),
    ) -> Injection:
        self.asked.append(("after", session_id, tool, error))
        return words(self.fact)

    def prepared(
        self, *, agent: str, cwd: str, known_texts: Sequence[str]
    ) -> PrecomputedInjections:
        self.known = list(known_texts)
        if self.ready is None:
            raise DeadlineError("Nothing is prepared in this test.")
        return self.ready

    def deliver(
        self, told: Mapping[str, Any], *, session_id: str, source: str, at_ms: int, is_said: bool
    ) -> bool:
        self.delivered.append((told["text"], told["point"], session_id, source))
        return True

    def mark_delivered(self, receipt_id: str) -> bool:
        return True

    def heed(self, events: Sequence[HostEvent]) -> int:
        return 0
