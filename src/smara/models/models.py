"""Define the values of model calls: limits, reservations, usage, pauses."""

from __future__ import annotations

from typing import Literal

from smara.core.startup.record import dataclass

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
Unit = Literal["tokens", "dollars", "embedding tokens"]
EMBED, RERANK = "embed", "rerank"
READING = (EMBED, RERANK)
"""The purposes of calls that only read. Their tokens cost a hundredth of a chat model's, and are
counted apart.
"""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call, as it stands in the store.

    ``outcome`` is ``running`` until it has ended, then ``done`` or the code of its error; ``lost``
    when the process that made it is gone. ``is_measured`` when the model itself said what it used;
    otherwise the numbers are ours, and rather too high.
    """

    id: str
    model: str
    purpose: str
    outcome: str
    reason: str | None
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_dollars: float | None
    is_measured: bool
    started_at: int
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class WindowUsage:
    """The models' usage in a window.

    ``unpriced_calls`` have no known price; their money is not in it.
    """

    tokens: int = 0
    microdollars: int = 0
    calls: int = 0
    unpriced_calls: int = 0
    running_calls: int = 0
    embedding_tokens: int = 0

    @property
    def dollars(self) -> float:
        return self.microdollars / 1_000_000

    def of(self, unit: Unit) -> int:
        """The tokens, or the millionths of a dollar."""
        return {
            "tokens": self.tokens,
            "dollars": self.microdollars,
            "embedding tokens": self.embedding_tokens,
        }[unit]


@dataclass(frozen=True, slots=True)
class Limit:
    """The most of one unit within one window; dollars in millionths."""

    setting: str
    unit: Unit
    window_ms: int
    most: int

    @property
    def window(self) -> str:
        return "hour" if self.window_ms == HOUR_MS else "day"

    def render(self, amount: int) -> str:
        """An amount of this limit's unit, in words."""
        return (
            f"${amount / 1_000_000:,.2f}" if self.unit == "dollars" else f"{amount:,} {self.unit}"
        )


@dataclass(frozen=True, slots=True)
class Remaining:
    """The rest of a limit."""

    limit: Limit
    spent: int

    @property
    def left(self) -> int:
        return max(0, self.limit.most - self.spent)


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to make one call, with its upper bound."""

    id: str
    model: str
    tokens: int
    microdollars: int | None
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of the models: reason, time, and actor."""

    paused_at: int
    reason: str
    actor: str
