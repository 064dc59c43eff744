"""Define the chat model protocol: request, reply, usage, abort.

The protocol is synchronous. An implementation of :class:`ChatModel` must return within
``deadline_seconds``, with a reply or with a ``ModelError``, even if the server hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from smara.core.deadline import Abort
from smara.core.startup.record import dataclass, field
from smara.errors import InvalidInputError

Finish = Literal["stop", "length", "refusal", "other"]

# What the request says itself. A second word on it, hidden in the settings, could make a call
# larger than what the budget was asked for.
_OURS = frozenset(
    {
        "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "stream",
        "timeout",
        "request_timeout", "max_retries", "temperature", "extra_body", "model", "messages",
        "system",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one call.

    ``is_estimated`` when the model did not say and we counted ourselves.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input, what was read from the vendor's cache."""
    cache_write_tokens: int = 0
    """Of the input, what was written to the vendor's cache."""
    is_estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a model."""

    prompt: str
    system: str = ""
    deadline_seconds: float | None = None
    """How long the whole may take; the setting ``model_deadline_seconds`` by default."""
    max_output_tokens: int = 4_096
    temperature: float | None = None
    """``None`` leaves it to the model; several newer ones take no other."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that pydantic-ai knows: ``top_p``, ``seed``, ``thinking``, ``anthropic_…``,
    ``google_…``.
    """
    provider_options: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are put into the body of the request as they are."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the reply. A model with structured output is held to it; the others have
    the prompt alone, which must ask for the same.
    """

    def __post_init__(self) -> None:
        if self.max_output_tokens < 1:
            raise InvalidInputError(
                f"max_output_tokens must be at least 1; got {self.max_output_tokens}."
            )
        if self.deadline_seconds is not None and self.deadline_seconds <= 0:
            raise InvalidInputError(
                f"deadline_seconds must be above 0; got {self.deadline_seconds}."
            )
        if hidden := _OURS & {*self.settings, *self.provider_options}:
            raise InvalidInputError(
                f"{', '.join(sorted(hidden))} cannot be among the settings or provider options of "
                "a request. "
                "Use the request's own fields: the budget relies on them."
            )


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply of a model."""

    text: str
    usage: Usage = Usage()
    finish: Finish = "stop"
    model: str = ""
    name: str = ""
    """The model as it is configured, such as ``ollama:qwen3``; tiers have several."""


def list_schema(fields: Mapping[str, Any], name: str = "items") -> Mapping[str, Any]:
    """Return the schema of an object with one list of items.

    >>> list_schema({"number": {"type": "integer"}})["properties"]["items"]["items"]["required"]
    ['number']
    """
    item = {"type": "object", "properties": dict(fields), "required": list(fields)}
    listed = {"type": "array", "items": {**item, "additionalProperties": False}}
    whole = {"type": "object", "properties": {name: listed}, "required": [name]}
    return {**whole, "additionalProperties": False}


def sendable(text: str, redact: Callable[[str], str]) -> str:
    """Return a text without secrets that can be encoded."""
    return redact(text).encode("utf-8", "replace").decode("utf-8")


class ChatModel(Protocol):
    """Something that answers."""

    @property
    def name(self) -> str:
        """The name in calls and prices, such as ``openai:gpt-5-mini``."""

    def complete(self, request: ChatRequest, abort: Abort | None = None) -> ChatReply:
        """Answer within the request's deadline, or raise a ``ModelError``.

        A reply that is empty, cut off or a refusal is returned as such, with its usage; the
        caller decides. An error whose fact ``may_be_billed`` is ``False`` cost nothing.
        """
