"""A context as values: sections in order, messages, and the receipt of what was put in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SectionName = Literal[
    "instructions",
    "reflections",
    "observations",
    "working_memory",
    "current_task",
    "other_conversations",
    "time",
]


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the system text; sections stand in the order of how rarely they change."""

    name: SectionName
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message as a model is shown it; ``message_id`` is ``None`` for what memory itself says."""

    role: str
    content: str
    message_id: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was put into a context, and what it cost."""

    thread_id: str
    observation_ids: tuple[str, ...] = ()
    section_tokens: Mapping[str, int] = field(default_factory=dict)
    message_tokens: int = 0
    left_out_messages: int = 0
    waited_seconds: float = 0.0
    notes: tuple[str, ...] = ()
    """What went wrong and was done without, for the log and for people."""


@dataclass(frozen=True, slots=True)
class Context:
    """What an agent is given for one step."""

    sections: tuple[Section, ...]
    messages: tuple[ContextMessage, ...]
    receipt: Receipt

    @property
    def system(self) -> str:
        """The sections as one text, to stand behind the agent's own system prompt."""
        return "\n\n".join(section.text for section in self.sections if section.text)

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections) + self.receipt.message_tokens

    def as_messages(self) -> list[dict[str, Any]]:
        """System text and messages in the shape that chat models take."""
        said = [{"role": message.role, "content": message.content} for message in self.messages]
        return [{"role": "system", "content": self.system}, *said] if self.system else said
