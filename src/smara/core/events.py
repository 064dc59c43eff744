"""Represent one agent action as a `HostEvent`, whatever its host.

Hooks and transcripts report the same action under the same key, so that it counts once.
Hooks load this module: keep its imports few.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

from smara.core.startup.record import dataclass, field

Agent = str
"""The name of a host: one of `AGENTS`."""
Kind = Literal[
    "session_start",
    "prompt",
    "tool_pre",
    "tool_post",
    "tool_fail",
    "tool_batch",
    "step",
    "reasoning",
    "compact_pre",
    "compact_post",
    "subagent_start",
    "subagent_stop",
    "turn_end",
    "turn_fail",
    "session_end",
    "file_changed",
    "task",
    "instructions",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One event in a session of an agent; unknown facts are empty."""

    agent: Agent
    kind: Kind
    session_id: str
    at_ms: int
    cwd: str = ""
    source: str = ""
    """Why: ``startup``, ``resume``, ``clear`` or ``compact`` of a session, ``manual`` or ``auto``,
    a reason.
    """
    prompt: str = ""
    """What the person said."""
    tool: str = ""
    """``Bash``, ``Read``, ``Edit``, ``Write``, ``Grep``, ``Glob``, ``WebFetch``, ``WebSearch``,
    ``Task``, ``mcp:<server>:<tool>``; other names as the host gives them.
    """
    tool_input: Mapping[str, Any] = field(default_factory=dict)
    """Its arguments, under one name each: ``file_path``, ``command``, ``pattern``; others as the
    host gives them.
    """
    tool_output: str = ""
    error: str | None = None
    tool_use_id: str = ""
    subagent_id: str = ""
    transcript_path: str = ""
    text: str = ""
    """What the agent said or thought, or the summary of a compaction."""
    model: str = ""
    tokens: int | None = None
    duration_ms: int | None = None
    """How long a tool call took."""
    key: str = ""
    """The same for every telling of one event; made of the event itself by default."""

    def __post_init__(self) -> None:
        if self.key:
            return
        what: str | bytes = self.tool_use_id
        if not what:
            facts = (
                self.source,
                self.prompt,
                self.tool,
                dict(self.tool_input),
                self.tool_output,
                self.error,
                self.subagent_id,
                self.text,
                self.at_ms,
            )
            text = json.dumps(facts, sort_keys=True, default=str)
            what = text.encode("utf-8", "surrogatepass")
        object.__setattr__(self, "key", event_key(self.session_id, self.kind, what))

    @property
    def hearer(self) -> str:
        """The session that hears an answer: a sub-agent has its own."""
        helper = self.subagent_id
        return f"{self.session_id}/agent-{helper}"[:200] if helper else self.session_id


def event_key(session_id: str, kind: str, what: str | bytes) -> str:
    """Return the key of an event by its id or bytes."""
    if isinstance(what, bytes):
        try:
            # hashlib would load a whole library of cryptography for this.
            from _blake2 import blake2b
        except ImportError:
            from hashlib import blake2b
        what = str(blake2b(what, digest_size=16).hexdigest())
    return f"{session_id}:{kind}:{what}"


DUPLICATE_WITHIN_MS = 5_000


def is_duplicate_key(key: str, other: str) -> bool:
    """Return True if two keys name one event.

    A tilde and a time end the keys of events that nothing else tells apart.

    The same words may be said twice in a session; two tellings of them are one only at nearly the
    same time.

    >>> is_duplicate_key("s:prompt:ab~1000", "s:prompt:ab~1400"), is_duplicate_key("s:prompt:ab~1000", "s:prompt:ab~9000")
    (True, False)
    """  # noqa: E501
    if key == other:
        return True
    stem, at_ms = stem_of(key)
    other_stem, other_at_ms = stem_of(other)
    return at_ms > 0 and stem == other_stem and abs(at_ms - other_at_ms) < DUPLICATE_WITHIN_MS


def stem_of(key: str) -> tuple[str, int]:
    """Return a key without its time, and that time or 0."""
    stem, mark, at = key.rpartition("~")
    return (stem, int(at)) if mark and at.isdigit() else (key, 0)
