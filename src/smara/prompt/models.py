"""Define a context: sections of memory, messages, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from smara.core.startup.record import dataclass, field
from smara.messages.models import Part
from smara.prompt.compose import ChatEntry
from smara.prompt.shapes import Shape, requested, shaped

SectionName = Literal[
    "instructions",
    "reflections",
    "observations",
    "summaries",
    "working_memory",
    "current_task",
    "other_conversations",
    "recalled",
    "time",
]


LATE: frozenset[SectionName] = frozenset(
    ("current_task", "other_conversations", "recalled", "time")
)
"""Sections that change from turn to turn: they stand behind the messages, where they leave the
vendor's cache of all that comes before them intact.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of memory's text; the steadiest comes first."""

    name: SectionName
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message as a model is shown it.

    ``content`` is its text without the reasoning; ``parts`` are all of it. What ``memory`` wrote is
    for the model alone and is never stored as said.
    """

    role: str
    content: str
    message_id: str | None = None
    seq: int | None = None
    parts: tuple[Part, ...] = ()
    source: Literal["stored", "incoming", "memory"] = "stored"


@dataclass(frozen=True, slots=True)
class ContextReceipt:
    """The contents of a context, and their cost."""

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
    """The context of one step."""

    sections: tuple[Section, ...]
    messages: tuple[ContextMessage, ...]
    receipt: ContextReceipt

    @property
    def system(self) -> str:
        """The steady sections as one text, behind the agent's own prompt."""
        return self._text(is_late=False)

    @property
    def reminder(self) -> str:
        """The sections that change from turn to turn, behind the messages."""
        text = self._text(is_late=True)
        return f"<system-reminder>\n{text}\n</system-reminder>" if text else ""

    def _text(self, is_late: bool) -> str:
        found = (each.text for each in self.sections if (each.name in LATE) == is_late)
        return "\n\n".join(filter(None, found))

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections) + self.receipt.message_tokens

    def as_messages(self, shape: Shape = "openai") -> list[dict[str, Any]]:
        """Return system text, messages and reminder as a vendor takes them.

        Every tool call has its result behind it, with the same id. Reasoning is left out; images
        and files are placeholders.

        Args:
            shape: ``openai``, ``openai-responses``, ``anthropic``, ``google``, or ``plain`` for
                text alone. Anthropic and Google take ``system`` apart.

        Returns:
            The messages as dicts.

        Raises:
            InvalidInputError: There is no such shape.
        """
        return shaped(self.entries(), shape, self.system)

    def as_request(
        self, shape: Shape = "openai", *, instructions: str = "", is_cached: bool = True
    ) -> dict[str, Any]:
        """Return what memory fills of a request, by the vendor's own names.

        For example ``client.messages.create(model=…, **context.as_request("anthropic"))``.

        Args:
            shape: The vendor's name, as for ``as_messages``.
            instructions: The agent's own system prompt; memory follows it.
            is_cached: True to put Anthropic's ``cache_control`` where the prompt stays the same.

        Returns:
            The arguments: messages, and the system text where it is apart.

        Raises:
            InvalidInputError: There is no such shape.
        """
        system = "\n\n".join(filter(None, (instructions, self.system)))
        return requested(self.entries(), shape, system, is_cached=is_cached)

    def entries(self) -> list[ChatEntry]:
        """Return the messages and the reminder, to be written in a shape."""
        found = [
            ChatEntry(
                each.role,
                each.parts or (Part("text", each.content),),
                each.message_id or "",
                is_note=each.source == "memory",
            )
            for each in self.messages
        ]
        if self.reminder:
            found.append(ChatEntry("user", (Part("text", self.reminder),), is_note=True))
        return found
