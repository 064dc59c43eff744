"""Limit the tokens and dollars that models use per hour and day.

Before a call its upper bound is reserved: a bound of the input and all of the allowed output.
Reservations run one after the other in a transaction, so that many processes together stay within
the limits. Afterwards the reservation becomes the actual usage, priced from ``genai-prices`` or
from the setting ``model_prices``. `ModelBudget.call` puts these two steps around a call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal

from smara.config import Settings
from smara.core import log
from smara.core.clock import Clock
from smara.core.ids import IdMaker
from smara.core.startup.record import dataclass
from smara.core.startup.regex import regex
from smara.core.tokens import TokenCounter
from smara.database.database import Session
from smara.errors import BudgetSpentError, ConfigError, DatabaseError, ModelError, ModelRefusedError
from smara.models import failures
from smara.models.chat import ChatRequest, Usage
from smara.models.models import (
    DAY_MS,
    HOUR_MS,
    READING,
    Limit,
    Remaining,
    Reservation,
    Unit,
    WindowUsage,
)
from smara.models.store import CallStore

# Vendors put a few tokens around every message.
_AROUND = 64
# Public comparisons put other vendors' counts of English and code at up to 1.3 of o200k's.
_SAFETY = 1.5
# Numbers, white space and ruled lines, which o200k takes several at a time and others one by one.
_NO_LETTERS = regex(r"[\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Size:
    """An input's tokens, and a bound for any vendor's tokenizer."""

    tokens: int
    bound_tokens: int


def size_of(request: ChatRequest, counter: TokenCounter) -> Size:
    """The size of a request's input."""
    text = request.system + "\n" + request.prompt
    tokens = counter.count(text).tokens
    return Size(tokens, bound(text, tokens))


def bound(text: str, tokens: int) -> int:
    """Return a bound on any tokenizer's count, from o200k's.

    One and a half times the count, and one more for each further character of a run without
    letters, and for letters outside of ASCII all of their bytes but the first, since a tokenizer
    that does not know a script spells it byte by byte. No tokenizer needs more than one token for a
    byte, so that is the most in any case. The published tokenizers at hand use at most 0.6 of it on
    code and prose; a text made for the purpose could pass it, and then counts with what the vendor
    says. For 1,000 tokens of plain words in 4,200 bytes: ``min(1000 × 1.5, 4200) + 64``.

    >>> bound("x" * 4200, 1000)
    1564
    """
    size = len(text.encode("utf-8", "replace"))
    runs = sum(found.end() - found.start() - 1 for found in _NO_LETTERS.finditer(text))
    return min(math.ceil(tokens * _SAFETY) + runs + size - len(text), size) + _AROUND


MICRO = 1_000_000
"""Millionths of a dollar in a dollar; also the tokens that a price is given for."""

_LISTED = ("anthropic", "openai", "google")
# Cohere's list price is 2 dollars for 1,000 searches, each of up to 100 pieces of 500 tokens.
_SEARCH_MICRODOLLARS = 2_000
_SEARCH_TOKENS = 50_000
_OWN = regex(r"(?P<model>\S+?)\s*=\s*(?P<read>\d+(?:\.\d+)?)\s*/\s*(?P<written>\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens read and written."""

    read: Decimal
    written: Decimal

    def cost(self, usage: Usage) -> int:
        """Rounded up: many small calls must not be free.

        >>> Price(Decimal("1"), Decimal("5")).cost(Usage(10_000, 200))
        11000
        """
        return math.ceil(self.read * usage.input_tokens + self.written * usage.output_tokens)


# OpenAI's embedders are asked without the extra that brings the table, so what they cost must be
# known without it.
_EMBEDDERS = {
    f"openai:text-embedding-{name}": Price(Decimal(dollars), Decimal(0))
    for name, dollars in (("3-small", "0.02"), ("3-large", "0.13"), ("ada-002", "0.10"))
}


class Prices:
    """Knows the price of models by their names, such as ``openai:gpt-5-mini``."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = own or {}

    def cost(self, model: str, usage: Usage) -> int | None:
        """Return the cost of a usage; None if the price is unknown."""
        if usage.tokens == 0:
            return 0
        if model in self._own:
            return self._own[model].cost(usage)
        vendor, _, name = model.partition(":")
        if vendor == "ollama":
            return 0
        if vendor == "cohere":
            return _SEARCH_MICRODOLLARS * math.ceil(usage.input_tokens / _SEARCH_TOKENS)
        # A compatible server may serve anybody's model, at a price of its own: nothing is guessed
        # there.
        if vendor in _LISTED:
            with suppress(ImportError, LookupError):
                import genai_prices

                price = genai_prices.calc_price(
                    genai_prices.Usage(
                        input_tokens=usage.input_tokens,
                        output_tokens=usage.output_tokens,
                        cache_read_tokens=usage.cached_tokens,
                        cache_write_tokens=usage.cache_write_tokens,
                    ),
                    model_ref=name,
                    provider_id=vendor,
                )
                return math.ceil(price.total_price * MICRO)
        return _EMBEDDERS[model].cost(usage) if model in _EMBEDDERS else None


def parse_prices(setting: str | None) -> dict[str, Price]:
    """The prices of the setting ``model_prices``.

    >>> parse_prices("openai:gpt-x=0.5/2; ollama:qwen3=0/0")["openai:gpt-x"]
    Price(read=Decimal('0.5'), written=Decimal('2'))
    """
    found = {}
    for part in filter(None, (each.strip() for each in (setting or "").split(";"))):
        match = _OWN.fullmatch(part)
        if match is None:
            raise ConfigError(
                f"{part!r} of the setting model_prices cannot be read. Write "
                "VENDOR:MODEL=READ/WRITTEN in dollars per "
                "million tokens, such as openai-compatible:qwen3=0.5/2, with ; between two models."
            )
        found[match["model"]] = Price(Decimal(match["read"]), Decimal(match["written"]))
    return found


# A call that is still running so long after its deadline belongs to a process that is gone.
_GRACE_MS = 60_000


def limits_of(settings: Settings) -> tuple[Limit, ...]:
    """The limits that the settings name; 0 is nothing, never everything."""
    units: tuple[tuple[str, Unit, int], ...] = (
        ("model_tokens", "tokens", 1),
        ("model_dollars", "dollars", MICRO),
        ("embedding_tokens", "embedding tokens", 1),
    )
    return tuple(
        Limit(name, unit, window_ms, most=round(getattr(settings, name) * scale))
        for prefix, unit, scale in units
        for window, window_ms in (("hour", HOUR_MS), ("day", DAY_MS))
        for name in (f"{prefix}_per_{window}",)
    )


@dataclass(slots=True)
class MeteredCall:
    """A running call; its maker records the usage."""

    seconds_left: float
    usage: Usage | None = None


class ModelBudget:
    """Admits calls, and notes what they used.

    Safe to use from several threads and processes.
    """

    def __init__(
        self,
        store: CallStore,
        clock: Clock,
        new_id: IdMaker,
        limits: Sequence[Limit],
        prices: Prices,
        is_enabled: bool = True,
    ) -> None:
        self._is_enabled = is_enabled
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._limits = limits
        self._prices = prices

    def require_on(self) -> None:
        """``ModelRefusedError`` when the settings turn models off."""
        if not self._is_enabled:
            raise ModelRefusedError(
                "Models are turned off. Set models_enabled (SMARA_MODELS_ENABLED=1) to use them.",
                reason="disabled",
                may_be_billed=False,
            )

    @contextmanager
    def call(self, model: str, purpose: str, most: Usage, ends_at: float) -> Iterator[MeteredCall]:
        """Meter one call that uses at most ``most``, as a block.

        Raises ``BudgetSpentError`` and ``ModelRefusedError`` (a pause) before the block is entered.
        An error that says ``may_be_billed=False`` counts nothing; where the usage is not known, the
        reservation stays.
        """
        reservation = self.reserve(
            model, purpose, most, max(0.0, ends_at - self._clock.monotonic())
        )
        began = self._clock.monotonic()
        call = MeteredCall(ends_at - began)
        outcome, reason = "failed", None
        try:
            if began >= ends_at:  # the store was busy for so long
                raise failures.timed_out(model, 0, may_be_billed=False)
            yield call
            outcome = "done"
        except ModelError as error:
            outcome, reason = error.code, error.facts.get("reason")
            is_free = not error.facts.get("may_be_billed", True)
            call.usage = Usage() if is_free else error.facts.get("usage", call.usage)
            raise
        finally:
            self.settle(reservation, outcome, call.usage, reason)
            log.event(
                "model.called",
                call=reservation.id,
                model=model,
                purpose=purpose,
                outcome=outcome,
                reason=reason,
                tokens=call.usage.tokens if call.usage else None,
                seconds=round(self._clock.monotonic() - began, 3),
            )

    def reserve(
        self, model: str, purpose: str, most: Usage, deadline_seconds: float
    ) -> Reservation:
        """The right to make one call that uses at most ``most``.

        ``BudgetSpentError`` when a limit would be passed, ``ModelRefusedError`` while models are
        paused. Nothing is stored then.
        """
        cost = self._prices.cost(model, most)
        reservation = Reservation(
            self._new_id(), model, most.tokens, microdollars=cost, purpose=purpose
        )
        with self._store.database.write() as session:
            pause = self._store.hold_switch(session)
            if pause is not None:
                raise ModelRefusedError(
                    f"Models were paused by {pause.actor} at {_time(pause.paused_at)}: "
                    f"{pause.reason} Resume them with `smara models resume`.",
                    reason="paused",
                    paused_at=pause.paused_at,
                    may_be_billed=False,
                )
            # After the wait for the lock: an older time would open the window wider.
            now = self._clock.now_ms()
            self._check(session, reservation, now)
            expires_at = now + int(deadline_seconds * 1000) + _GRACE_MS
            self._store.insert(session, reservation, purpose, most, now, expires_at)
        return reservation

    def settle(
        self, reservation: Reservation, outcome: str, usage: Usage | None, reason: str | None = None
    ) -> None:
        """Record how a call ended and what it used.

        ``None`` when that is not known, which leaves it as reserved. A store that cannot be written
        does not undo a call that was made: the reservation goes on counting, and a warning is
        logged.
        """
        cost = self._prices.cost(reservation.model, usage) if usage is not None else None
        try:
            with self._store.database.write() as session:
                self._store.end(
                    session,
                    reservation.id,
                    outcome,
                    reason=reason,
                    now_ms=self._clock.now_ms(),
                    usage=usage,
                    microdollars=cost,
                )
        except DatabaseError as error:
            log.warning("model.unsettled", call=reservation.id, error=error.code)
        if usage is not None and usage.tokens > reservation.tokens:
            log.warning(
                "model.overspent",
                call=reservation.id,
                reserved=reservation.tokens,
                used=usage.tokens,
            )

    def spent(self, window_ms: int) -> WindowUsage:
        """Return the usage of a window.

        A call under way counts at its most.
        """
        return self._store.ask(self._store.spent, self._clock.now_ms() - window_ms)

    def remaining(self) -> list[Remaining]:
        """Return what is left of each limit."""
        windows = {limit.window_ms: self.spent(limit.window_ms) for limit in self._limits}
        return [Remaining(limit, windows[limit.window_ms].of(limit.unit)) for limit in self._limits]

    def _check(self, session: Session, call: Reservation, now: int) -> None:
        refused = []
        for window_ms in {limit.window_ms for limit in self._limits}:
            spent = self._store.spent(session, now - window_ms)
            for limit in self._limits:
                if limit.window_ms != window_ms:
                    continue
                needed = _needed(limit, call)
                # A call that needs nothing of a limit is not held up by it: a free model, when the
                # money is spent.
                if needed is None or (needed and spent.of(limit.unit) + needed > limit.most):
                    refused.append((self._opens_at(session, limit, call, now=now), limit, spent))
        if refused:
            never = [each for each in refused if each[0] is None]
            raise _spent(call, *(never or [max(refused, key=lambda each: each[0] or 0)])[0])

    def _opens_at(self, session: Session, limit: Limit, call: Reservation, now: int) -> int | None:
        """Return when the call fits into the window; None if it never does."""
        needed = _needed(limit, call)
        if needed is None or needed > limit.most:
            return None
        uses = self._store.uses(session, now - limit.window_ms)
        excess = sum(used.of(limit.unit) for _, used in uses) + needed - limit.most
        for at, used in uses:
            excess -= used.of(limit.unit)
            if excess <= 0:
                return at + limit.window_ms
        return now


def _needed(limit: Limit, call: Reservation) -> int | None:
    """Return how much of a limit a call can use; None if its price is unknown."""
    if limit.unit != "dollars":
        is_counted_here = (call.purpose in READING) == (limit.unit == "embedding tokens")
        return call.tokens if is_counted_here else 0
    # A price that is not known is held against a limit of nothing alone.
    return 0 if call.microdollars is None and limit.most else call.microdollars


def _spent(
    call: Reservation, opens_at: int | None, limit: Limit, spent: WindowUsage
) -> BudgetSpentError:
    needed = _needed(limit, call)
    budget = f"the budget of {limit.render(limit.most)} per {limit.window}"
    if needed is None:
        message = (
            f"The price of {call.model} is not known, and {budget} allows only what is free. "
            "Set model_prices."
        )
    elif opens_at is None:
        message = (
            f"A call of {call.model} that may use {limit.render(needed)} is larger than {budget}. "
            f"Raise {limit.setting}, or ask for less."
        )
    else:
        message = (
            f"Of {budget}, {limit.render(spent.of(limit.unit))} are spent or reserved, and this "
            f"call may use {limit.render(needed)}. It opens again at {_time(opens_at)}; raise "
            f"{limit.setting} to go on before."
        )
    return BudgetSpentError(
        message,
        model=call.model,
        limit=limit.setting,
        most=limit.most,
        spent=spent.of(limit.unit),
        needed=needed,
        opens_at=opens_at,
        may_be_billed=False,
    )


def _time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M} UTC"
