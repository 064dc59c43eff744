"""Translate vendor errors into model errors, and retry the transient ones.

The caller needs to know if a retry can help. The budget needs to know if the call may have been
billed: a refused request was not, a request that was sent and never answered may have been.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from smara.core import log
from smara.core.clock import Clock
from smara.core.deadline import Abort
from smara.core.startup.record import dataclass
from smara.errors import (
    BadReplyError,
    ModelAbortedError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
)

_MOST_CHARACTERS = 300

# The reason for each HTTP status that needs a word of its own, and whether it is worth asking
# again.
_REASON_OF_STATUS = {
    401: "key", 402: "quota", 403: "key", 404: "unknown_model", 408: "timeout", 409: "overloaded",
    413: "too_long",
    429: "rate_limit", 503: "overloaded", 529: "overloaded",
}  # fmt: skip
_ADVICE = {
    "key": "Check the vendor's own variable: ANTHROPIC_API_KEY, OPENAI_API_KEY or GOOGLE_API_KEY.",
    "quota": "The account has no credit left: top it up, or choose another model.",
    "unknown_model": "Check the setting model.",
    "too_long": "Ask with less text, or choose a model with a larger window.",
    "content": "Nothing was learned from this text; it is not asked again.",
    "request": "Check the settings and provider options of the request.",
    "timeout": "Try again, or allow more with model_deadline_seconds.",
    "connection": "Check the network and the address; try again.",
    "rate_limit": "Try again later.",
    "overloaded": "Try again later.",
    "server": "Try again later.",
}
_TRY_AGAIN = frozenset({"timeout", "connection", "rate_limit", "overloaded", "server"})


def failure(
    model: str,
    reason: str,
    detail: str = "",
    *,
    may_be_billed: bool,
    advice: Mapping[str, str] | None = None,
    **facts: Any,
) -> ModelError:
    """Return the error for a reason of the table above.

    ``advice`` has other last sentences for some reasons.
    """
    kind = ModelUnavailableError if reason in _TRY_AGAIN else ModelRefusedError
    more = f", {log.redact_text(detail)[:_MOST_CHARACTERS]}" if detail else ""
    what = "did not answer" if kind is ModelUnavailableError else "will not answer"
    return kind(
        f"{model} {what}: {reason.replace('_', ' ')}{more}. "
        f"{(advice or {}).get(reason, _ADVICE[reason])}",
        model=model,
        reason=reason,
        may_be_billed=may_be_billed,
        **facts,
    )


def taken_back(model: str, may_be_billed: bool) -> ModelAbortedError:
    """Return the error of a call that its caller took back."""
    return ModelAbortedError(
        f"The call of {model} was taken back. Nothing was changed; ask again when it is wanted.",
        model=model,
        may_be_billed=may_be_billed,
    )


def timed_out(
    model: str, seconds: float, may_be_billed: bool, advice: Mapping[str, str] | None = None
) -> ModelError:
    """The deadline has passed."""
    detail = f"nothing within {seconds:.1f} seconds"
    return failure(model, "timeout", detail, may_be_billed=may_be_billed, advice=advice)


def unreadable(model: str, detail: str) -> BadReplyError:
    """A reply that is no reply."""
    return BadReplyError(
        f"{model} sent what cannot be read ({log.redact_text(detail)[:_MOST_CHARACTERS]}). Check "
        "that the address speaks the vendor's format.",
        model=model,
        reason="unreadable",
        may_be_billed=True,
    )


def translate(model: str, error: Exception, was_sent: bool) -> ModelError | None:
    """Return our error for one of pydantic-ai's; None for any other."""
    from pydantic_ai import exceptions as theirs

    match error:
        case theirs.ModelHTTPError():
            reasons = {
                theirs.ModelQuotaExceededError: "quota",  # OpenAI: a 429, Anthropic: a 400
                theirs.ModelContextWindowExceededError: "too_long",
                theirs.ModelAuthenticationError: "key",
            }
            return from_status(
                model,
                int(error.status_code),
                error.body,
                reason=next((reasons[kind] for kind in reasons if isinstance(error, kind)), None),
                retry_after_seconds=error.retry_after,
            )
        case theirs.ModelRequestTimeout() | theirs.ModelTimeoutError():
            return failure(model, "timeout", may_be_billed=was_sent)
        case theirs.ModelConnectionError():
            return failure(model, "connection", str(error), may_be_billed=was_sent)
        case theirs.ContentFilterError():
            return failure(model, "content", may_be_billed=True)
        case theirs.UserError():  # a key that is missing, a setting that cannot be
            reason = "key" if "_API_KEY" in str(error) else "request"
            return failure(model, reason, str(error), may_be_billed=was_sent)
        case theirs.AgentRunError():
            return unreadable(model, (str(error).splitlines() or [type(error).__name__])[0])
    return None


def from_status(
    model: str,
    status: int,
    body: object,
    *,
    reason: str | None = None,
    retry_after_seconds: float | None = None,
    advice: Mapping[str, str] | None = None,
) -> ModelError:
    """Return the error for an HTTP status and its body.

    Such a call cost nothing.
    """
    reason = reason or _REASON_OF_STATUS.get(status, "server" if status >= 500 else "request")
    if status == 429 and "insufficient_quota" in str(body):
        reason = "quota"
    message = body
    while isinstance(message, dict):  # bodies wrap what a vendor says in one or two layers
        message = next(
            (message[key] for key in ("message", "error", "detail", "code") if message.get(key)), ""
        )
    return failure(
        model,
        reason,
        f"status {status}: {message}",
        may_be_billed=False,
        advice=advice,
        status=status,
        retry_after_seconds=retry_after_seconds,
    )


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryRules:
    """The number of attempts and the waits between them."""

    attempts: int = 3
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 20.0

    def wait_seconds(self, attempt: int, asked_seconds: float | None, drawn: float) -> float:
        """Return how long to wait after a failed attempt.

        Doubled each time, and half of it by chance, so that many who failed together do not
        come back together; never less than the server asked for. After the second attempt, with
        a chance of 0.5: ``2 × (0.5 + 0.25)``.

        >>> RetryRules().wait_seconds(2, None, 0.5), RetryRules().wait_seconds(1, 7.0, 0.0)
        (1.5, 7.0)
        """
        doubled: float = min(
            self.longest_wait_seconds, self.first_wait_seconds * 2 ** (attempt - 1)
        )
        return max(asked_seconds or 0.0, doubled * (0.5 + drawn / 2))


THRICE = RetryRules()


def with_retries(
    call: Callable[[], T],
    ends_at: float,
    clock: Clock,
    abort: Abort | None = None,
    rules: RetryRules = THRICE,
    draw: Callable[[], float] = random.random,
) -> T:
    """Return the result of ``call``, retried while that can help before ``ends_at``.

    A wait that would pass the deadline is not begun: the error is raised at once, and its fact
    ``retry_after_seconds`` says when to come back.
    """
    attempt = 1
    while True:
        try:
            return call()
        except ModelUnavailableError as error:
            wait = rules.wait_seconds(attempt, error.facts.get("retry_after_seconds"), draw())
            if attempt >= rules.attempts or clock.monotonic() + wait >= ends_at:
                raise
            log.event(
                "model.retried",
                reason=error.facts.get("reason"),
                attempt=attempt,
                wait_seconds=round(wait, 3),
            )
        clock.wait(wait, abort)
        if abort is not None and abort.is_set():
            raise ModelAbortedError(
                "The call was taken back while it waited to ask again. Nothing was changed."
            )
        attempt += 1
