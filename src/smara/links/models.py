"""Define links between tasks, messages, memories and code as values."""

from __future__ import annotations

from dataclasses import dataclass

from smara.codegraph.models import LinkKind
from smara.core.freshness import Verdict
from smara.messages.models import Message
from smara.tasks.models import Relation


@dataclass(frozen=True, slots=True)
class LinkedMessage:
    """A message of a task, and what it has to do with it."""

    message: Message
    relation: Relation


@dataclass(frozen=True, slots=True)
class Link:
    """A message linked to a task; ``is_new`` is false when it was linked so already."""

    task_id: str
    message_id: str
    relation: Relation
    is_new: bool


@dataclass(frozen=True, slots=True)
class CodeLink:
    """A memory that speaks of code: a decision documents it, a pattern is applied there."""

    kind: LinkKind
    memory_id: str
    short_id: str
    type: str
    text: str
    path: str
    symbol: str
    verdict: Verdict
    hedge: str | None = None

    @property
    def line(self) -> str:
        """In one line: ``m-k3f9 gotcha: Redis must run first (the code has changed since)``."""
        return (
            f"{self.short_id} {self.type}: "
            f"{' '.join(self.text.split())}{f' ({self.hedge})' if self.hedge else ''}"
        )
