"""Asking again: a few times, only when it can help, and never past the deadline.

Worth asking again is what ``ModelUnavailableError`` says: a timeout, a lost connection, a rate
limit, an overloaded or failing server. An empty account, a wrong key and a refusal are not.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from smara.core import log
from smara.core.clock import Clock
from smara.errors import ModelAbortedError, ModelUnavailableError
from smara.models.chat import Abort

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How often is asked, and how long is waited in between."""

    attempts: int = 3
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 20.0

    def wait_seconds(self, attempt: int, asked_seconds: float | None, drawn: float) -> float:
        """How long to wait after a failed attempt.

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


def with_retries(
    call: Callable[[], T],
    ends_at: float,
    clock: Clock,
    abort: Abort | None = None,
    rules: RetryRules = RetryRules(),  # noqa: B008
    draw: Callable[[], float] = random.random,  # noqa: B008, RUF100
) -> T:
    """The result of ``call``, asked again while that can help and the clock has not reached
    ``ends_at``.

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
