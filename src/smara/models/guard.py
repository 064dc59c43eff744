"""Guard embedders and rerankers with switch, redaction, budget and deadline.

Only :class:`smara.models.caller.Models` opens a server's embedder or a reranker, and it returns
guarded ones only. A model inside this process skips switch, redaction and budget: no text leaves
the machine and no call is billed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from smara.core import log
from smara.core.clock import Clock
from smara.core.deadline import CLOSE_SECONDS, run_within
from smara.core.tokens import TokenCounter, counter_for, estimate_o200k
from smara.errors import (
    ConfigError,
    DatabaseError,
    InvalidInputError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.models import failures
from smara.models.budget import Meter, bound
from smara.models.chat import Usage
from smara.models.embedder import EMBEDDER_ADVICE, Embedder, EmbeddingServer, Kind, check_rows
from smara.models.failures import RetryRules, with_retries
from smara.models.models import EMBED, RERANK
from smara.models.reranker import RERANKER_ADVICE, Reranker, check_scores

if TYPE_CHECKING:
    from smara.models.embedder import EmbeddingReply, Vectors


_TOKENS_OF_A_REQUEST = 100_000
# How often a text is halved for a server whose window is smaller than we know.
_HALVINGS = 4


class GuardedEmbedder:
    """A guarded embedder, safe for threads and processes."""

    is_local = False

    def __init__(
        self,
        server: EmbeddingServer,
        meter: Meter,
        redact: Callable[[str], str],
        clock: Clock,
        deadline_seconds: float,
    ) -> None:
        self._server = server
        self._meter = meter
        self._redact = redact
        self._clock = clock
        self._deadline_seconds = deadline_seconds

    @property
    def model_id(self) -> str:
        return self._server.model_id

    @property
    def dims(self) -> int:
        return self._server.dims

    @property
    def first_dims(self) -> int:
        return self._server.first_dims

    def embed(
        self,
        texts: Sequence[str],
        kind: Kind = "document",
        *,
        deadline_seconds: float | None = None,
    ) -> Vectors:
        """Return one row for each text.

        A blank text is zeros and is not sent.

        A request that fails in a way that can pass is made again within the deadline, after which,
        and half a second for closing connections, the caller is back. ``BudgetSpentError``,
        ``ModelRefusedError`` as for a chat model.
        """
        self._meter.require_on()
        seconds = self._deadline_seconds if deadline_seconds is None else deadline_seconds
        ends_at = self._clock.monotonic() + seconds
        try:
            return run_within(
                lambda _: self._embedded(texts, kind, ends_at),
                seconds + CLOSE_SECONDS,
                self._clock,
                thread_name="smara-embed",
            )
        except TimeoutError:
            log.warning("embedder.left", model=self._server.name)
            raise failures.timed_out(
                self._server.name, seconds, may_be_billed=True, advice=EMBEDDER_ADVICE
            ) from None

    def _embedded(self, texts: Sequence[str], kind: Kind, ends_at: float) -> Vectors:
        import numpy as np

        rows = np.zeros((len(texts), self.dims), dtype=np.float32)
        sendable = [self._sendable(text) for text in texts]
        for places in self._batches(sendable):
            rows[places] = self._asked([sendable[place] for place in places], kind, ends_at)
        return rows

    def _sendable(self, text: str) -> str:
        """Return a text without secrets, encodable, and no longer than is read."""
        clean = self._redact(text).encode("utf-8", "replace").decode("utf-8").strip()
        return self._shortened(clean, self._server.most_tokens)

    def _shortened(self, text: str, most_tokens: int) -> str:
        # No tokenizer makes more tokens than there are bytes, so a short text need not be counted.
        while len(text) > 1 and len(text.encode()) > most_tokens:
            tokens = self._counter.count(text).tokens
            if tokens <= most_tokens:
                break
            text = text[: max(1, int(len(text) * most_tokens / tokens * 0.95))]
        return text

    @cached_property
    def _counter(self) -> TokenCounter:
        return counter_for(self._server.name.partition(":")[2])

    def _batches(self, texts: list[str]) -> Iterator[list[int]]:
        """Yield the places of the texts of each request."""
        batch: list[int] = []
        tokens = 0
        for place, text in enumerate(texts):
            if not text:
                continue
            size = min(self._server.most_tokens, len(text.encode()))
            if batch and (
                len(batch) >= self._server.most_texts or tokens + size > _TOKENS_OF_A_REQUEST
            ):
                yield batch
                batch, tokens = [], 0
            batch.append(place)
            tokens += size
        if batch:
            yield batch

    def _asked(self, texts: list[str], kind: Kind, ends_at: float) -> Vectors:
        for halving in range(_HALVINGS + 1):
            try:
                reply = with_retries(
                    partial(self._attempt, texts, kind, ends_at), ends_at, self._clock
                )
                return reply.vectors
            except DatabaseError as error:
                raise _not_counted(self._server.name, error) from error
            except ModelRefusedError as error:
                longest = max(self._counter.count(text).tokens for text in texts)
                if not _is_too_long(error) or halving == _HALVINGS or longest < 2:
                    raise
            texts = [self._shortened(text, longest // 2) for text in texts]
        raise AssertionError("the last halving returns or raises")

    def _attempt(self, texts: list[str], kind: Kind, ends_at: float) -> EmbeddingReply:
        counts = [self._counter.count(text).tokens for text in texts]
        most = Usage(sum(bound(text, count) for text, count in zip(texts, counts, strict=True)))
        with self._meter.call(self._server.name, EMBED, most, ends_at) as call:
            found = self._server.ask(texts, kind, call.seconds_left)
            call.usage = (
                Usage(found.tokens) if found.tokens else Usage(sum(counts), is_estimated=True)
            )
        return found


class GivenEmbedder:
    """The caller's own embedder, checked and shown no secret."""

    def __init__(self, embedder: Embedder, redact: Callable[[str], str]) -> None:
        self._embedder = embedder
        self._redact = redact

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dims(self) -> int:
        return self._embedder.dims

    @property
    def first_dims(self) -> int:
        return self._embedder.first_dims

    @property
    def is_local(self) -> bool:
        return bool(getattr(self._embedder, "is_local", False))

    def embed(
        self,
        texts: Sequence[str],
        kind: Kind = "document",
        *,
        deadline_seconds: float | None = None,
    ) -> Vectors:
        shown = [self._redact(text) for text in texts]
        found = self._embedder.embed(shown, kind, deadline_seconds=deadline_seconds)
        return check_rows(found, len(texts), self.dims, name=self.model_id, may_be_zero=True)


def _not_counted(model: str, error: DatabaseError) -> ModelUnavailableError:
    """Return the error of a call that was not made, because it could not be counted."""
    return ModelUnavailableError(
        f"{model} was not asked: the call could not be noted in the store. {error.message}",
        model=model,
        reason="store",
        may_be_billed=False,
    )


def _is_too_long(error: ModelRefusedError) -> bool:
    """Return True if a server says that a text is longer than its window, often by a 400."""
    message = error.message.lower()
    return (
        error.facts.get("reason") == "too_long"
        or "context length" in message
        or "maximum context" in message
    )


MOST_TEXTS = 100
_TEXT_CHARACTERS = 8_000
_QUERY_CHARACTERS = 2_000
_AROUND_A_PAIR = 100  # tokens of the question that goes with a text
_RETRIES = RetryRules(attempts=2, first_wait_seconds=0.25)  # a search has seconds


class GuardedReranker:
    """A guarded reranker, safe for threads and processes."""

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
        """Return one score from 0 to 1 per text.

        Of long texts the beginning is read.

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
        except DatabaseError as error:
            raise _not_counted(self.name, error) from error

    def _attempt(self, query: str, texts: list[str], ends_at: float) -> list[float]:
        used, most = _size(query, texts)
        with self._meter.call(self.name, RERANK, most, ends_at) as call:
            scores = self._scores(query, texts, call.seconds_left)
            call.usage = used
        return scores

    def _scores(self, query: str, texts: list[str], seconds: float) -> list[float]:
        try:
            return check_scores(
                self._reranker.rerank(query, texts, deadline_seconds=seconds), len(texts), self.name
            )
        except ConfigError as error:  # a file that is no model shows only when it is loaded
            raise ModelRefusedError(
                error.message, model=self.name, reason="config", may_be_billed=False
            ) from error

    def _sendable(self, text: str) -> str:
        """Return a text without secrets that can be encoded."""
        return self._redact(text).encode("utf-8", "replace").decode("utf-8")

    def _within(self, work: Callable[[], list[float]], seconds: float) -> list[float]:
        """Return what ``work`` gives within the deadline; late work is left behind."""
        try:
            return run_within(
                lambda _: work(), seconds + CLOSE_SECONDS, self._clock, thread_name="smara-rerank"
            )
        except TimeoutError:
            log.warning("reranker.left", model=self.name)
            raise failures.timed_out(
                self.name, seconds, may_be_billed=True, advice=RERANKER_ADVICE
            ) from None


def _size(query: str, texts: list[str]) -> tuple[Usage, Usage]:
    """Return the estimated usage of reading each text with the query, and the most."""
    pairs = [f"{query}\n{text}" for text in texts]
    tokens = [round(estimate_o200k(pair)) for pair in pairs]
    around = _AROUND_A_PAIR * len(pairs)
    most = sum(bound(pair, count) for pair, count in zip(pairs, tokens, strict=True)) + around
    return Usage(sum(tokens) + around, len(texts), is_estimated=True), Usage(most, len(texts))
