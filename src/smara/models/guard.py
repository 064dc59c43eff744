"""Guard embedders and rerankers with switch, redaction, budget and deadline.

Only :class:`smara.models.caller.Models` opens a server's embedder or a reranker, and it returns
guarded ones only. A model inside this process skips switch, redaction and budget: no text leaves
the machine and no call is billed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

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
from smara.models.budget import ModelBudget, bound
from smara.models.chat import Usage, sendable
from smara.models.embedder import EMBEDDER_ADVICE, Embedder, Kind, check_rows
from smara.models.failures import THRICE, RetryRules, with_retries
from smara.models.models import EMBED, RERANK
from smara.models.reranker import RERANKER_ADVICE, Reranker, check_scores

if TYPE_CHECKING:
    from smara.models.embedder import EmbeddingReply, Vectors
    from smara.models.embedders.servers import ServerEmbedder


T = TypeVar("T")
_TOKENS_OF_A_REQUEST = 100_000
# How often a text is halved for a server whose window is smaller than we know.
_HALVINGS = 4


class _Guard:
    """What stands around every call: redaction, deadline, retries and budget."""

    thread_name: str
    advice: Mapping[str, str]

    def __init__(
        self, name: str, budget: ModelBudget, redact: Callable[[str], str], clock: Clock
    ) -> None:
        self.name = name
        self._budget = budget
        self._redact = redact
        self._clock = clock

    def _within(self, work: Callable[[], T], seconds: float) -> T:
        """Return what ``work`` gives within the deadline; late work is left behind."""
        try:
            return run_within(
                lambda _: work(), seconds + CLOSE_SECONDS, self._clock, thread_name=self.thread_name
            )
        except TimeoutError:
            log.warning("model.left", model=self.name)
            raise failures.timed_out(
                self.name, seconds, may_be_billed=True, advice=self.advice
            ) from None

    def _retried(
        self,
        attempt: Callable[[], T],
        ends_at: float,
        rules: RetryRules = THRICE,
    ) -> T:
        """Return what an attempt gives; a call that cannot be counted is not made."""
        try:
            return with_retries(attempt, ends_at, self._clock, rules=rules)
        except DatabaseError as error:
            raise ModelUnavailableError(
                f"{self.name} was not asked: the call could not be noted in the store. "
                f"{error.message}",
                model=self.name,
                reason="store",
                may_be_billed=False,
            ) from error


class GuardedEmbedder(_Guard):
    """A guarded embedder, safe for threads and processes."""

    is_local = False
    thread_name = "smara-embed"
    advice = EMBEDDER_ADVICE

    def __init__(
        self,
        server: ServerEmbedder,
        budget: ModelBudget,
        redact: Callable[[str], str],
        clock: Clock,
        deadline_seconds: float,
    ) -> None:
        super().__init__(server.name, budget, redact, clock)
        self.model_id, self.dims, self.first_dims = server.model_id, server.dims, server.first_dims
        self._server = server
        self._deadline_seconds = deadline_seconds

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
        self._budget.require_on()
        seconds = self._deadline_seconds if deadline_seconds is None else deadline_seconds
        ends_at = self._clock.monotonic() + seconds

        def embed_all() -> Vectors:
            import numpy as np

            rows = np.zeros((len(texts), self.dims), dtype=np.float32)
            inputs = [
                self._shortened(sendable(text, self._redact).strip(), self._server.most_tokens)
                for text in texts
            ]
            for places in self._batches(inputs):
                rows[places] = self._ask([inputs[place] for place in places], kind, ends_at)
            return rows

        return self._within(embed_all, seconds)

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
        return counter_for(self.name.partition(":")[2])

    def _batches(self, texts: list[str]) -> Iterator[list[int]]:
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

    def _ask(self, texts: list[str], kind: Kind, ends_at: float) -> Vectors:
        """Return the vectors of texts, halved for a server that finds them too long."""
        for halving in range(_HALVINGS + 1):
            try:
                return self._retried(partial(self._attempt, texts, kind, ends_at), ends_at).vectors
            except ModelRefusedError as error:
                # Often a server says by a 400 that a text is longer than its window.
                message = error.message.lower()
                is_too_long = (
                    error.facts.get("reason") == "too_long"
                    or "context length" in message
                    or "maximum context" in message
                )
                longest = max(self._counter.count(text).tokens for text in texts)
                if not is_too_long or halving == _HALVINGS or longest < 2:
                    raise
            texts = [self._shortened(text, longest // 2) for text in texts]
        raise AssertionError("the last halving returns or raises")

    def _attempt(self, texts: list[str], kind: Kind, ends_at: float) -> EmbeddingReply:
        counts = [self._counter.count(text).tokens for text in texts]
        most = Usage(sum(bound(text, count) for text, count in zip(texts, counts, strict=True)))
        with self._budget.call(self.name, EMBED, most, ends_at) as call:
            reply = self._server.ask(texts, kind, call.seconds_left)
            call.usage = (
                Usage(reply.tokens) if reply.tokens else Usage(sum(counts), is_estimated=True)
            )
        return reply


class GivenEmbedder:
    """The caller's own embedder, checked and shown no secret."""

    def __init__(self, embedder: Embedder, redact: Callable[[str], str]) -> None:
        self._embedder = embedder
        self._redact = redact
        self.model_id, self.dims = embedder.model_id, embedder.dims
        self.first_dims = embedder.first_dims
        self.is_local = bool(getattr(embedder, "is_local", False))

    def embed(
        self,
        texts: Sequence[str],
        kind: Kind = "document",
        *,
        deadline_seconds: float | None = None,
    ) -> Vectors:
        vectors = self._embedder.embed(
            [self._redact(text) for text in texts], kind, deadline_seconds=deadline_seconds
        )
        return check_rows(vectors, len(texts), self.dims, name=self.model_id, may_be_zero=True)


MOST_TEXTS = 100
_TEXT_CHARACTERS = 8_000
_QUERY_CHARACTERS = 2_000
_AROUND_A_PAIR = 100  # tokens of the question that goes with a text
_RETRIES = RetryRules(attempts=2, first_wait_seconds=0.25)  # a search has seconds


class GuardedReranker(_Guard):
    """A guarded reranker, safe for threads and processes."""

    thread_name = "smara-rerank"
    advice = RERANKER_ADVICE

    def __init__(
        self, reranker: Reranker, budget: ModelBudget, redact: Callable[[str], str], clock: Clock
    ) -> None:
        super().__init__(reranker.name, budget, redact, clock)
        self.is_local = reranker.is_local
        self._reranker = reranker

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
        question, heads = query[:_QUERY_CHARACTERS], [text[:_TEXT_CHARACTERS] for text in texts]
        if self.is_local:
            return self._within(
                lambda: self._scores(question, heads, deadline_seconds), deadline_seconds
            )
        self._budget.require_on()

        def send() -> list[float]:
            safe_query, *safe_texts = (sendable(text, self._redact) for text in (question, *heads))
            return self._retried(
                lambda: self._attempt(safe_query, safe_texts, ends_at), ends_at, _RETRIES
            )

        return self._within(send, deadline_seconds)

    def _attempt(self, query: str, texts: list[str], ends_at: float) -> list[float]:
        # Each text is read with the query.
        pairs = [f"{query}\n{text}" for text in texts]
        tokens = [round(estimate_o200k(pair)) for pair in pairs]
        around = _AROUND_A_PAIR * len(pairs)
        most = sum(bound(pair, count) for pair, count in zip(pairs, tokens, strict=True)) + around
        with self._budget.call(self.name, RERANK, Usage(most, len(texts)), ends_at) as call:
            scores = self._scores(query, texts, call.seconds_left)
            call.usage = Usage(sum(tokens) + around, len(texts), is_estimated=True)
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
