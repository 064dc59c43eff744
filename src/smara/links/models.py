"""Define links between tasks, messages, memories and code as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smara.core.startup.record import dataclass

if TYPE_CHECKING:
    from smara.codegraph.models import LinkKind
    from smara.core.freshness import Verdict
    from smara.messages.models import Message
    from smara.tasks.models import Relation


@dataclass(frozen=True, slots=True)
class LinkedMessage:
    """A message of a task, and its relation to it."""

    message: Message
    relation: Relation


@dataclass(frozen=True, slots=True)
class Link:
    """A message linked to a task; ``is_new`` if it was not before."""

    task_id: str
    message_id: str
    relation: Relation
    is_new: bool


@dataclass(frozen=True, slots=True)
class CodeLink:
    """A memory that speaks of code."""

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
        """One line: ``m-k3f9 gotcha: Redis must run first``."""
        return (
            f"{self.short_id} {self.type}: "
            f"{' '.join(self.text.split())}{f' ({self.hedge})' if self.hedge else ''}"
        )
