"""The meter: what stands around every call of a model that leaves this process, whatever kind of
model it is.

Before it the switch and a reservation in the budget, afterwards what it used, and a line in the
log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from smara.core import log
from smara.core.clock import Clock
from smara.errors import ModelError, ModelRefusedError
from smara.models import failures
from smara.models.budget import Budget
from smara.models.chat import Usage


@dataclass(slots=True)
class Metered:
    """A call under way. Whoever makes it puts in what it used, as soon as that is known."""

    seconds_left: float
    usage: Usage | None = None


class Meter:
    """Admits calls and notes what they used. Safe to use from several threads and processes."""

    def __init__(self, budget: Budget, clock: Clock, is_enabled: bool) -> None:
        self.budget = budget
        self._clock = clock
        self._is_enabled = is_enabled

    def require_on(self) -> None:
        """``ModelRefusedError`` when the settings turn models off."""
        if not self._is_enabled:
            raise ModelRefusedError(
                "Models are turned off. Set models_enabled (SMARA_MODELS_ENABLED=1) to use them.",
                reason="disabled",
                may_be_billed=False,
            )

    @contextmanager
    def call(self, model: str, purpose: str, most: Usage, ends_at: float) -> Iterator[Metered]:
        """A block that makes one call, which uses at most ``most`` and ends at a moment of the
        clock.

        ``BudgetSpentError`` and ``ModelRefusedError`` (a pause) before the block is entered. An
        error that says ``may_be_billed=False`` counts nothing; where nobody says what was used, the
        reservation stays.
        """
        reservation = self.budget.reserve(
            model, purpose, most, max(0.0, ends_at - self._clock.monotonic())
        )
        began = self._clock.monotonic()
        call = Metered(ends_at - began)
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
            self.budget.settle(reservation, outcome, call.usage, reason)
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
