"""What stands around every reranker: the switch, redaction, the budget, the deadline, and a look at
its scores.

Nobody but :class:`smara.models.caller.Models` opens a reranker, and it gives out guarded ones
alone. A model inside of this process is exempt from all but the last two: nothing leaves, and
nothing is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smara.core import log
from smara.core.clock import Clock
from smara.core.tokens import estimate_o200k
from smara.errors import (
    ConfigError,
    DatabaseError,
    InvalidInputError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.models import failures
from smara.models.beside import wait_for
from smara.models.chat import Usage
from smara.models.metering import Meter
from smara.models.models import RERANK
from smara.models.rerank import ADVICE, Reranker, checked
from smara.models.retry import RetryRules, with_retries
from smara.models.size import bound

MOST_TEXTS = 100
_TEXT_CHARACTERS = 8_000
_QUERY_CHARACTERS = 2_000
_AROUND_A_PAIR = 100  # tokens of the question that goes with a text
_RETRIES = RetryRules(attempts=2, first_wait_seconds=0.25)  # a search has seconds
_TO_CLOSE_SECONDS = 0.5


class GuardedReranker:
    """A reranker that may be asked. Safe to use from several threads and processes."""

    def __init__(
        self, reranker: Reranker, meter: Meter, redact: Callable[[str], str], clock: Clock
    ) -> None:
        self._reranker = reranker
        self._meter = meter
        self._redact = redact
        self._clock = clock

    @property
    def name(self) -> str:
        return self._reranker.name

    @property
    def is_local(self) -> bool:
        return self._reranker.is_local

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """One score from 0 to 1 for each text, in order; of long texts the beginning is read.

        A ``ModelError`` when that cannot be had within the deadline (and half a second for closing
        connections), whatever the other side, or a store that is busy, does. One more attempt is
        made where that can help. At most 100 texts.
        """
        if not texts:
            return []
        if len(texts) > MOST_TEXTS:
            raise InvalidInputError(
                f"A reranker takes at most {MOST_TEXTS} texts; got {len(texts)}. Give the best."
            )
        ends_at = self._clock.monotonic() + deadline_seconds
        asked, read = query[:_QUERY_CHARACTERS], [text[:_TEXT_CHARACTERS] for text in texts]
        if self.is_local:
            return self._within(
                lambda: self._scores(asked, read, deadline_seconds), deadline_seconds
            )
        self._meter.require_on()
        return self._within(lambda: self._sent(asked, read, ends_at), deadline_seconds)

    def _sent(self, query: str, texts: list[str], ends_at: float) -> list[float]:
        asked, read = self._sendable(query), [self._sendable(text) for text in texts]
        try:
            return with_retries(
                lambda: self._attempt(asked, read, ends_at), ends_at, self._clock, rules=_RETRIES
            )
        except DatabaseError as error:  # a call that cannot be counted is not made
            raise ModelUnavailableError(
                f"{self.name} was not asked: the call could not be noted in the store. "
                f"{error.message}",
                model=self.name,
                reason="store",
                may_be_billed=False,
            ) from error

    def _attempt(self, query: str, texts: list[str], ends_at: float) -> list[float]:
        used, most = _size(query, texts)
        with self._meter.call(self.name, RERANK, most, ends_at) as call:
            scores = self._scores(query, texts, call.seconds_left)
            call.usage = used
        return scores

    def _scores(self, query: str, texts: list[str], seconds: float) -> list[float]:
        try:
            return checked(
                self._reranker.rerank(query, texts, deadline_seconds=seconds), len(texts), self.name
            )
        except ConfigError as error:  # a file that is no model shows only when it is loaded
            raise ModelRefusedError(
                error.message, model=self.name, reason="config", may_be_billed=False
            ) from error

    def _sendable(self, text: str) -> str:
        """A text as it may leave the house: without secrets, and in letters that can be sent."""
        return self._redact(text).encode("utf-8", "replace").decode("utf-8")

    def _within(self, work: Callable[[], list[float]], seconds: float) -> list[float]:
        """What ``work`` gives, or the end of waiting; it is left behind then, and ends at its own
        deadline.
        """
        try:
            return wait_for(
                work, seconds + _TO_CLOSE_SECONDS, self._clock, thread_name="smara-rerank"
            )
        except TimeoutError:
            log.warning("reranker.left", model=self.name)
            raise failures.timed_out(
                self.name, seconds, may_be_billed=True, advice=ADVICE
            ) from None


def _size(query: str, texts: list[str]) -> tuple[Usage, Usage]:
    """What reading each text with the query uses by our own estimate, since few servers say, and at
    the most.
    """
    pairs = [f"{query}\n{text}" for text in texts]
    tokens = [round(estimate_o200k(pair)) for pair in pairs]
    around = _AROUND_A_PAIR * len(pairs)
    most = sum(bound(pair, count) for pair, count in zip(pairs, tokens, strict=True)) + around
    return Usage(sum(tokens) + around, len(texts), is_estimated=True), Usage(most, len(texts))
