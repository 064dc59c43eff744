"""Route every model call through switch, redaction, budget and retries.

:class:`Models` is the only caller of a model in Smara, so no other code can forget one of these
steps. For each attempt it reserves budget, calls the model, and settles what the call used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from smara.core import log
from smara.core.deadline import Abort
from smara.core.scope import require_id
from smara.core.tokens import counter_for, estimate_o200k
from smara.database.projects import ProjectContext
from smara.errors import BadReplyError, InvalidInputError, MissingSettingError, SmaraError
from smara.models import failures
from smara.models.budget import (
    ModelBudget,
    Prices,
    Size,
    limits_of,
    parse_prices,
    size_of,
)
from smara.models.chat import ChatModel, ChatReply, ChatRequest, Usage, sendable
from smara.models.embedder import Embedder
from smara.models.failures import with_retries
from smara.models.models import DAY_MS, HOUR_MS, ModelCall, Pause, Remaining, WindowUsage
from smara.models.registry import Tiers, is_offline, model_for, parse_tiers
from smara.models.reranker import Reranker
from smara.models.store import CallStore

# A reply of so many times the allowed tokens shows that the server does not heed the limit.
_MOST_OVER = 4
_ADVICE = {
    "truncated": "Ask for less at once, or allow a longer answer.",
    "empty": "Ask again, or ask another model.",
    "too_long": "Nothing of it is used; check the server.",
}


class Models:
    """The models of a project, within their budget; safe to share."""

    def __init__(
        self,
        project: ProjectContext,
        redact: Callable[[str], str],
        model: ChatModel | None = None,
        reranker: Reranker | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        settings = project.settings
        self._store = CallStore(project.database, project.scope)
        self.budget = ModelBudget(
            self._store,
            project.clock,
            project.new_id,
            limits=limits_of(settings),
            prices=Prices(parse_prices(settings.model_prices)),
            is_enabled=settings.models_enabled,
        )
        self._project = project
        self._settings = settings
        self._counter = counter_for()
        self._redact = redact
        self._given = model
        self._loaded: dict[str, Tiers] = {}
        self._given_reranker = reranker
        self._given_embedder = embedder

    @property
    def is_offline(self) -> bool:
        """True if no model is configured: rules do everything then."""
        return self._given is None and is_offline(self._settings.model)

    @property
    def names(self) -> list[str]:
        """The names of the models in force; none when offline."""
        return self.names_for("")

    def names_for(self, purpose: str) -> list[str]:
        """Return the names of the models for a purpose.

        Args:
            purpose: What they are asked for: ``observe`` and ``reflect`` may have their own.

        Returns:
            The names; none when offline.
        """
        if self._given is not None:
            return [self._given.name]
        setting = self._setting(purpose)
        return [] if is_offline(setting) else [spec.name for _, spec in parse_tiers(setting or "")]

    def _setting(self, purpose: str) -> str | None:
        settings = self._settings
        own = {"observe": settings.observe_model, "reflect": settings.reflect_model}
        return own.get(purpose) or settings.model

    def complete(
        self, request: ChatRequest, purpose: str = "observe", abort: Abort | None = None
    ) -> ChatReply:
        """Ask the model within the request's deadline; return its answer.

        The answer has text, and is whole. Secrets in the request are redacted before it is sent.

        Args:
            request: The prompt and its limits; without ``deadline_seconds``, the setting
                ``model_deadline_seconds``.
            purpose: What the call is for, in the list of calls and the costs.
            abort: Ends the call early when it is set.

        Raises:
            BadReplyError: If the answer is empty, cut off or far too long.
            ModelRefusedError: If the model refuses.
            ModelUnavailableError: After the last attempt.
            BudgetSpentError: Before a call that would cost too much.
            MissingSettingError: If no model is configured.
        """
        self.budget.require_on()
        if not self.names_for(purpose):
            raise MissingSettingError(
                "No model is configured. Set model (SMARA_MODEL), for example to "
                "anthropic:claude-haiku-4-5.",
                setting="model",
            )
        require_id(purpose, "purpose")
        ends_at = self._project.clock.monotonic() + (
            request.deadline_seconds or self._settings.model_deadline_seconds
        )
        system, prompt = (sendable(each, self._redact) for each in (request.system, request.prompt))
        redacted = replace(request, system=system, prompt=prompt)
        size = size_of(redacted, self._counter)
        model = model_for(self._tiers(self._setting(purpose) or ""), size.tokens)
        return with_retries(
            lambda: self._attempt(model, redacted, size, purpose, ends_at, abort),
            ends_at,
            self._project.clock,
            abort=abort,
        )

    @cached_property
    def reranker(self) -> Reranker | None:
        """The model that ranks the best hits again, or None.

        What is sent to it passes the switch, the redaction and the budget, and its calls are noted
        with the purpose ``rerank``. ``ConfigError`` when the setting ``reranker`` cannot be used.
        """
        from smara.models.choice import open_reranker
        from smara.models.guard import GuardedReranker

        if self._settings.reranker.strip() == "off":
            return None
        reranker = self._given_reranker or open_reranker(self._settings)
        return reranker and GuardedReranker(
            reranker, self.budget, self._redact, clock=self._project.clock
        )

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder; see :meth:`open_embedder`."""
        return self.open_embedder()

    def open_embedder(self, setting: str | None = None) -> Embedder | None:
        """Open the embedder the setting names.

        Nothing is loaded yet. What is sent to a server passes the switch, the redaction and the
        budget, and its calls are noted with the purpose ``embed``.

        Args:
            setting: An embedder, such as ``offline`` or ``off``; without it, that of the settings.

        Returns:
            The embedder; ``None`` for ``off``.

        Raises:
            ConfigError: If the setting cannot be used.
            ModelError: If Ollama has to be asked for its models and does not answer.
        """
        from smara.models.choice import choose
        from smara.models.embedders.servers import ServerEmbedder
        from smara.models.guard import GivenEmbedder, GuardedEmbedder

        settings = self._settings if setting is None else replace(self._settings, embedder=setting)
        if (
            self._given_embedder is not None
            and settings.embedder == self._settings.embedder != "off"
        ):
            return GivenEmbedder(self._given_embedder, self._redact)
        embedder = choose(settings).embedder
        if isinstance(embedder, ServerEmbedder):
            return GuardedEmbedder(
                embedder,
                self.budget,
                self._redact,
                clock=self._project.clock,
                deadline_seconds=settings.model_deadline_seconds,
            )
        return embedder

    def embedder_status(self) -> dict[str, Any]:
        """Report the embedder in force and why, failures included.

        For ``smara models show``.

        Returns:
            The setting, the model's id and sizes, and the reason; ``modelId`` is ``None`` without
            one.
        """
        from smara.models.choice import Choice, choose

        setting = self._settings.embedder
        try:
            embedder, why = (
                Choice(self._given_embedder, "it was given by the program")
                if self._given_embedder is not None
                else choose(self._settings)
            )
            if embedder is None:
                return {"setting": setting, "modelId": None, "why": why}
            return {
                "setting": setting,
                "modelId": embedder.model_id,
                "dims": embedder.dims,
                "firstDims": embedder.first_dims,
                "isLocal": bool(getattr(embedder, "is_local", False)),
                "why": why,
            }
        except SmaraError as error:
            return {"setting": setting, "modelId": None, "why": error.message, "error": error.code}

    def pause(self, reason: str = "No reason was given.") -> Pause:
        """Stop every call in all processes until ``resume``.

        Safe to repeat.

        Args:
            reason: Why, for those who meet the pause; secrets are redacted.

        Returns:
            The pause: its time, reason and actor.

        Raises:
            InvalidInputError: If the reason is empty.
        """
        if not reason.strip():
            raise InvalidInputError(
                "The reason of a pause must not be empty. Say why, for those who find it paused."
            )
        pause = Pause(self._project.clock.now_ms(), self._redact(reason), self._project.actor)
        with self._store.database.write() as session:
            self._store.put_pause(session, pause)
        log.event("models.paused", actor=pause.actor)
        return pause

    def resume(self) -> bool:
        """Allow calls again; return True if they were paused."""
        with self._store.database.write() as session:
            was_paused = self._store.hold_switch(session) is not None
            self._store.put_pause(session, None)
        if was_paused:
            log.event("models.resumed", actor=self._project.actor)
        return was_paused

    def find_pause(self) -> Pause | None:
        """Return why models are paused, or ``None``."""
        return self._store.ask(self._store.find_pause)

    def spent(self, window_ms: int = HOUR_MS) -> WindowUsage:
        """Return what models used recently, in all projects of this store.

        A call under way counts at its most.

        Args:
            window_ms: How far to look back, in milliseconds; an hour by default.
        """
        return self.budget.spent(window_ms)

    def remaining(self) -> list[Remaining]:
        """Return what is left of each limit."""
        return self.budget.remaining()

    def calls(self, limit: int = 20) -> list[ModelCall]:
        """Return the newest calls of this project, newest first.

        Args:
            limit: The most calls to return.
        """
        return self._store.ask(self._store.list, limit, self._project.clock.now_ms())

    def status(self) -> dict[str, Any]:
        """Return the models, their switch and their usage, for ``smara status``."""
        pause, settings = self.find_pause(), self._settings
        status: dict[str, Any] = {
            "models": self.names,
            "enabled": settings.models_enabled,
            "paused": {"at": pause.paused_at, "reason": pause.reason, "actor": pause.actor}
            if pause
            else None,
        }
        for window, window_ms in (("hour", HOUR_MS), ("day", DAY_MS)):
            spent = self.spent(window_ms)
            status[window] = {
                "calls": spent.calls,
                "tokens": spent.tokens,
                "tokensLimit": getattr(settings, f"model_tokens_per_{window}"),
                "embeddingTokens": spent.embedding_tokens,
                "embeddingTokensLimit": getattr(settings, f"embedding_tokens_per_{window}"),
                "dollars": round(spent.dollars, 6),
                "dollarsLimit": getattr(settings, f"model_dollars_per_{window}"),
                "unpricedCalls": spent.unpriced_calls,
            }
        return status

    def _tiers(self, setting: str) -> Tiers:
        if self._given is not None:
            return [(None, self._given)]
        if setting not in self._loaded:
            from smara.models.vendor import load_tiers

            self._loaded[setting] = load_tiers(setting, self._settings.model_api_key)
        return self._loaded[setting]

    def _attempt(
        self,
        model: ChatModel,
        request: ChatRequest,
        size: Size,
        purpose: str,
        ends_at: float,
        abort: Abort | None,
    ) -> ChatReply:
        # What may be written to the vendor's cache costs more than reading it plainly.
        cached = size.bound_tokens if any("cache" in name for name in request.settings) else 0
        most = Usage(size.bound_tokens, request.max_output_tokens, cache_write_tokens=cached)
        with self.budget.call(model.name, purpose, most, ends_at) as call:
            reply = model.complete(replace(request, deadline_seconds=call.seconds_left), abort)
            call.usage = reply.usage
            if reply.finish == "refusal":
                raise failures.failure(model.name, "content", may_be_billed=True)
            written = max(reply.usage.output_tokens, round(estimate_o200k(reply.text)))
            most_tokens = request.max_output_tokens
            reason = problem = ""
            if reply.finish == "length":
                reason = "truncated"
                problem = f"stopped in the middle, at its limit of {most_tokens:,} tokens"
            elif not reply.text.strip():
                reason, problem = "empty", "answered nothing"
            elif written > _MOST_OVER * most_tokens:
                reason = "too_long"
                problem = f"wrote about {written:,} tokens where {most_tokens:,} were allowed"
            if reason:
                raise BadReplyError(
                    f"{model.name} {problem}. {_ADVICE[reason]}", model=model.name, reason=reason
                )
        return replace(reply, name=model.name)
