"""The budget: what models may use in any hour and in any day, in tokens and in money.

Before a call, the most that it can use is reserved: a bound of its input and the whole of its
allowed output. All reservations of a store are made one after the other, in a transaction that sums
up what the calls of the last hour and day used, so that any number of processes together stay
within the limits. Afterwards the reservation becomes what was really used. Where that cannot be
known, because the server hung or the process was killed, it stays what it was until it leaves the
window: the vendor may well charge for it, and a worker that dies in every call must not call for
ever.

The windows slide. With 1,000,000 tokens per hour of which 900,000 were used at 10:40, a call of up
to 150,000 is refused until 11:40.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from smara.config import Settings
from smara.core import log
from smara.core.clock import Clock
from smara.core.ids import IdMaker
from smara.database.database import Session
from smara.errors import BudgetSpentError, DatabaseError, ModelRefusedError
from smara.models.chat import Usage
from smara.models.models import (
    DAY_MS,
    HOUR_MS,
    READING,
    Limit,
    Pause,
    Remaining,
    Reservation,
    Spent,
)
from smara.models.prices import MICRO, Prices
from smara.models.store import CallStore

# A call that is still running so long after its deadline belongs to a process that is gone.
_GRACE_MS = 60_000


def limits_of(settings: Settings) -> tuple[Limit, ...]:
    """The limits that the settings name; 0 is nothing, never everything."""
    per_hour, per_day = settings.embedding_tokens_per_hour, settings.embedding_tokens_per_day
    return (
        Limit("model_tokens_per_hour", "tokens", HOUR_MS, most=settings.model_tokens_per_hour),
        Limit("model_tokens_per_day", "tokens", DAY_MS, most=settings.model_tokens_per_day),
        Limit(
            "model_dollars_per_hour",
            "dollars",
            HOUR_MS,
            most=round(settings.model_dollars_per_hour * MICRO),
        ),
        Limit(
            "model_dollars_per_day",
            "dollars",
            DAY_MS,
            most=round(settings.model_dollars_per_day * MICRO),
        ),
        Limit("embedding_tokens_per_hour", "embedding tokens", HOUR_MS, most=per_hour),
        Limit("embedding_tokens_per_day", "embedding tokens", DAY_MS, most=per_day),
    )


class Budget:
    """Admits calls, and notes what they used."""

    def __init__(
        self,
        store: CallStore,
        clock: Clock,
        new_id: IdMaker,
        limits: Sequence[Limit],
        prices: Prices,
    ) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._limits = limits
        self._prices = prices

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
                raise _paused(pause)
            now = (
                self._clock.now_ms()
            )  # after the wait for the lock: an older time would open the window wider
            self._check(session, reservation, now)
            expires_at = now + int(deadline_seconds * 1000) + _GRACE_MS
            self._store.insert(session, reservation, purpose, most, now, expires_at)
        return reservation

    def settle(
        self, reservation: Reservation, outcome: str, usage: Usage | None, reason: str | None = None
    ) -> None:
        """Note how a call ended and what it used; ``None`` when nobody knows, which leaves it as
        reserved.

        A store that cannot be written does not undo a call that was made: the reservation goes on
        counting, and a warning is logged.
        """
        cost = self._prices.cost(reservation.model, usage) if usage is not None else None
        try:
            with self._store.database.write() as session:
                if usage is not None:
                    self._store.measure(session, reservation.id, usage, cost)
                self._store.end(session, reservation.id, outcome, reason, self._clock.now_ms())
        except DatabaseError as error:
            log.warning("model.unsettled", call=reservation.id, error=error.code)
        if usage is not None and usage.tokens > reservation.tokens:
            log.warning(
                "model.overspent",
                call=reservation.id,
                reserved=reservation.tokens,
                used=usage.tokens,
            )

    def spent(self, window_ms: int) -> Spent:
        """What models used in the last ``window_ms``, calls under way included at their most."""
        with self._store.database.read() as session:
            return self._store.spent(session, self._clock.now_ms() - window_ms)

    def remaining(self) -> list[Remaining]:
        """What is left of each limit."""
        windows = {limit.window_ms: self.spent(limit.window_ms) for limit in self._limits}
        return [Remaining(limit, windows[limit.window_ms].of(limit.unit)) for limit in self._limits]

    def _check(self, session: Session, wanted: Reservation, now: int) -> None:
        refused = []
        for window_ms in {limit.window_ms for limit in self._limits}:
            spent = self._store.spent(session, now - window_ms)
            for limit in self._limits:
                if limit.window_ms == window_ms and not _fits(limit, spent, wanted):
                    refused.append((self._opens_at(session, limit, wanted, now=now), limit, spent))
        if refused:
            never = [each for each in refused if each[0] is None]
            raise _spent(wanted, *(never or [max(refused, key=lambda each: each[0] or 0)])[0])

    def _opens_at(
        self, session: Session, limit: Limit, wanted: Reservation, now: int
    ) -> int | None:
        """When enough of the oldest calls have left the window; ``None`` when the call alone is too
        large.
        """
        needed = _needed(limit, wanted)
        if needed is None or needed > limit.most:
            return None
        uses = self._store.uses(session, now - limit.window_ms)
        excess = sum(used.of(limit.unit) for _, used in uses) + needed - limit.most
        for at, used in uses:
            excess -= used.of(limit.unit)
            if excess <= 0:
                return at + limit.window_ms
        return now


def _needed(limit: Limit, wanted: Reservation) -> int | None:
    """How much of a limit a call can use; ``None`` when that cannot be known and nothing may be
    spent.
    """
    if limit.unit != "dollars":
        is_counted_here = (wanted.purpose in READING) == (limit.unit == "embedding tokens")
        return wanted.tokens if is_counted_here else 0
    if wanted.microdollars is None:
        return None if limit.most == 0 else 0
    return wanted.microdollars


def _fits(limit: Limit, spent: Spent, wanted: Reservation) -> bool:
    needed = _needed(limit, wanted)
    # A call that needs nothing of a limit is not held up by it: a free model, when the money is
    # spent.
    return needed is not None and (needed == 0 or spent.of(limit.unit) + needed <= limit.most)


def _spent(
    wanted: Reservation, opens_at: int | None, limit: Limit, spent: Spent
) -> BudgetSpentError:
    needed = _needed(limit, wanted)
    budget = f"the budget of {limit.told(limit.most)} per {limit.window}"
    if needed is None:
        told = (
            f"The price of {wanted.model} is not known, and {budget} allows only what is free. "
            "Set model_prices."
        )
    elif opens_at is None:
        told = (
            f"A call of {wanted.model} that may use {limit.told(needed)} is larger than {budget}. "
            f"Raise {limit.setting}, or ask for less."
        )
    else:
        told = (
            f"Of {budget}, {limit.told(spent.of(limit.unit))} are spent or reserved, and this "
            "call may use "
            f"{limit.told(needed)}. It opens again at {_time(opens_at)}; raise {limit.setting} to "
            "go on before."
        )
    return BudgetSpentError(
        told,
        model=wanted.model,
        limit=limit.setting,
        most=limit.most,
        spent=spent.of(limit.unit),
        needed=needed,
        opens_at=opens_at,
        may_be_billed=False,
    )


def _paused(pause: Pause) -> ModelRefusedError:
    return ModelRefusedError(
        f"Models were paused by {pause.actor} at {_time(pause.paused_at)}: {pause.reason} "
        "Resume them with `smara models resume`.",
        reason="paused",
        paused_at=pause.paused_at,
        may_be_billed=False,
    )


def _time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M} UTC"
