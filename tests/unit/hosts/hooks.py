"""What the tests of hooks share: payloads, a spool with something in it, and a room that speaks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from smara.adapters.hosts.spool import put


def claude(event: str, **fields: Any) -> tuple[str, str, dict[str, Any]]:
    """An event of Claude Code in the session s1."""
    return "claude", event, {"session_id": "s1", "hook_event_name": event, **fields}


def spooled(folder: str, *events: tuple[str, str, dict[str, Any]], project: str = "", cwd: str = "") -> list[str]:
    """Put events into a spool; their files."""
    return [put(folder, agent, event, json.dumps(payload).encode(), project, cwd) for agent, event, payload in events]


@dataclass(frozen=True, slots=True)
class Cited:
    """One thing that is said."""

    id: str
    text: str = ""
    kind: str = "failure"
    key: str = ""
    tokens: int = 3


@dataclass(frozen=True, slots=True)
class Said:
    """Words of a moment."""

    text: str
    receipt_id: str = ""
    point: str = "start"
    items: tuple[Cited, ...] = ()
    is_kept: bool = True
    tokens: int = 20


@dataclass(frozen=True, slots=True)
class Tool:
    """Words about a call, and about which."""

    told: Said
    point: str = "after_tool"
    tools: tuple[str, ...] = ()
    file: str = ""
    command: str = ""
    pattern: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class First:
    """Words to a first prompt, and to which."""

    words: tuple[str, ...]
    told: Said


@dataclass(frozen=True, slots=True)
class Ready:
    """All that could be said."""

    start: Said | None = None
    firsts: tuple[First, ...] = ()
    first_words: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    asked: tuple[str, ...] = ()
    most_said: int = 20


@dataclass(slots=True)
class Speaking:
    """A room of moments that says what it was asked."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    words: str = "A fact."

    def start(self, session_id: str, **more: Any) -> Said:
        self.asked.append(("start", session_id, more["source"], more["agent"]))
        return Said(self.words)

    def first_message(self, session_id: str, text: str) -> Said:
        self.asked.append(("first", session_id, text))
        return Said(self.words)

    def before_tool(self, session_id: str, tool: str, tool_input: dict[str, Any]) -> Said:
        self.asked.append(("before", session_id, tool))
        return Said(self.words)

    def after_tool(
        self, session_id: str, tool: str, tool_input: dict[str, Any], output: str = "", error: str | None = None
    ) -> Said:
        self.asked.append(("after", session_id, tool, error))
        return Said(self.words)


@dataclass(slots=True)
class Preparing(Speaking):
    """A room that can say ahead what it will say."""

    ready: Ready | None = field(default_factory=Ready)
    delivered: list[tuple[Any, ...]] = field(default_factory=list)
    known: list[str] = field(default_factory=list)

    def prepared(self, *, agent: str, cwd: str, known_texts: list[str]) -> Ready | None:
        self.known = list(known_texts)
        return self.ready

    def deliver(self, told: dict[str, Any], *, session_id: str, source: str, at_ms: int) -> None:
        self.delivered.append((told["text"], told["point"], session_id, source))
