"""Asking a model until its reply can be used, a bounded number of times and within one deadline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from smara.core import log
from smara.core.clock import Clock, SystemClock
from smara.errors import BadReplyError, ModelRefusedError
from smara.models.chat import Abort, ChatModel, ChatReply, ChatRequest
from smara.observations.models import Draft
from smara.observations.prompting import Spoken, reminder_of

_LEAST_OUTPUT, _MOST_OUTPUT = 4_000, 16_000
_LEAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked. ``deadline_seconds`` is for all attempts together; ``None`` leaves it
    to the model.
    """

    model: ChatModel
    attempts: int = 2
    deadline_seconds: float | None = None
    temperature: float | None = None
    output_tokens: int | None = None
    """How long a reply may be; by default in proportion to what it stands for."""
    clock: Clock = field(default_factory=SystemClock)

    def ends_at(self) -> float | None:
        """When everything that is asked from now on must have ended."""
        return (
            None
            if self.deadline_seconds is None
            else self.clock.monotonic() + self.deadline_seconds
        )

    def ask(
        self,
        speak: Callable[[str], Spoken],
        read: Callable[[ChatReply, Spoken], Draft],
        ends_at: float | None,
        abort: Abort | None = None,
    ) -> Draft:
        """The first draft that can be used.

        ``speak`` makes the request, given what was wrong with the last reply; ``read`` turns a
        reply into a draft or raises ``BadReplyError``. Raises the last one when no attempt
        succeeded, and every other error of the model as it comes: repeating those is not ours.
        """
        reminder = ""
        failure: BadReplyError | None = None
        for attempt in range(max(1, self.attempts)):
            if failure is not None and self.is_over(ends_at):
                break
            spoken = speak(reminder)
            is_cut_off = failure is not None and failure.facts.get("reason") == "truncated"
            tokens = self.output_tokens or output_tokens(spoken) * (2 if is_cut_off else 1)
            reply = self.model.complete(self._request(spoken, tokens, ends_at), abort)
            try:
                return read(reply, spoken)
            except BadReplyError as error:
                failure, reminder = error, reminder_of(error)
                log.warning(
                    "reply.refused",
                    model=self.model.name,
                    reason=error.facts.get("reason"),
                    attempt=attempt + 1,
                )
        raise _final(failure, self.model.name)

    def _request(self, spoken: Spoken, tokens: int, ends_at: float | None) -> ChatRequest:
        seconds = None if ends_at is None else max(0.01, ends_at - self.clock.monotonic())
        return ChatRequest(
            spoken.prompt,
            spoken.system,
            seconds,
            max_output_tokens=tokens,
            temperature=self.temperature,
        )

    def is_over(self, ends_at: float | None) -> bool:
        """Whether there is no time left to ask once more."""
        return ends_at is not None and ends_at - self.clock.monotonic() < _LEAST_SECONDS


def output_tokens(spoken: Spoken) -> int:
    """How long a reply may be: half of what it stands for, so that a loop is cut early.

    A history of 30,000 tokens gets 15,000 (its observations have 1,000 to 6,000); a model
    that thinks before it writes needs room even for a short one, so 4,000 is the least. A
    reply that was cut off gets twice as much the next time.
    """
    return min(_MOST_OUTPUT, max(_LEAST_OUTPUT, spoken.material_tokens // 2))


def _final(failure: BadReplyError | None, name: str) -> BadReplyError | ModelRefusedError:
    if failure is None:
        raise AssertionError("there is at least one attempt")
    if failure.facts.get("reason") != "refused":
        return failure
    return ModelRefusedError(
        f"{name} refuses to take notes of these messages. Configure another model, or observe "
        "without one.",
        reason="refusal",
    )
