"""Define jobs and host contacts as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

JobKind = Literal["transcript", "finalize"]


@dataclass(frozen=True, slots=True)
class HostContact:
    """When a host last told an event of one kind, how many it told, and how many of those twice."""

    agent: str
    kind: str
    last_at: int
    event_count: int
    repeat_count: int


@dataclass(frozen=True, slots=True)
class Job:
    """Something to be done for a session when its time has come; one of each kind per session."""

    kind: JobKind
    session_id: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    due_at: int = 0
    attempts: int = 0
    error: str | None = None
