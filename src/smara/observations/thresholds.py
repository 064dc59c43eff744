"""When to observe, activate, wait and reflect: pure arithmetic.

*Pending* are the tokens of messages that no active observation covers yet, each counted
once, and nothing else. Worked numbers for the default of 30,000 tokens:

- every 6,000 new tokens (0.2) a chunk is observed in the background and *buffered*;
- at 24,000 pending (0.8) buffered chunks become *active*, oldest first, as long as 6,000
  tokens (0.2) of raw messages stay behind them;
- at 36,000 pending (1.2) the turn waits for an observation, up to a deadline.

The numbers follow the threshold in force, which the mode of the agent decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from smara.observations.models import AgentMode

MODE_THRESHOLDS: dict[AgentMode, int] = {
    "default": 30_000,
    "explore": 60_000,
    "bug_fixing": 40_000,
    "refactoring": 50_000,
    "testing": 40_000,
    "debugging": 40_000,
    "research": 60_000,
}
"""How many pending tokens each mode lets come together, when no setting says otherwise."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits in force, in tokens."""

    observe_after: int = 30_000
    reflect_after: int = 40_000
    buffer_fraction: float = 0.2
    activate_fraction: float = 0.8
    retain_fraction: float = 0.2
    block_fraction: float = 1.2
    reflections_limit: int = 80_000

    @property
    def buffer_after(self) -> int:
        """So many tokens behind the last chunk, and the next one is begun."""
        return max(1, int(self.observe_after * self.buffer_fraction))

    @property
    def activate_after(self) -> int:
        """So many pending tokens, and buffered chunks become active."""
        return max(1, int(self.observe_after * self.activate_fraction))

    @property
    def retain(self) -> int:
        """So many tokens of the newest messages stay raw."""
        return int(self.observe_after * self.retain_fraction)

    @property
    def block_after(self) -> int:
        """So many pending tokens, and the turn waits."""
        return max(1, int(self.observe_after * self.block_fraction))

    @property
    def reflect_ahead(self) -> int:
        """So many tokens of observations, and a reflection is prepared in the background."""
        return max(1, int(self.reflect_after * self.activate_fraction))


def for_mode(base: Thresholds, mode: AgentMode, is_default: bool) -> Thresholds:
    """The limits of a mode: the mode's own while the user has not set any, else scaled alike.

    >>> for_mode(Thresholds(), "explore", True).observe_after
    60000
    >>> for_mode(Thresholds(observe_after=3_000), "explore", False).observe_after
    6000
    """
    if mode == "default":
        return base
    wanted = MODE_THRESHOLDS[mode]
    if not is_default:
        wanted = base.observe_after * wanted // MODE_THRESHOLDS["default"]
    return Thresholds(
        wanted, base.reflect_after, base.buffer_fraction, base.activate_fraction, base.retain_fraction,
        base.block_fraction, base.reflections_limit,
    )  # fmt: skip


class Pending(NamedTuple):
    """What is waiting: tokens behind the cursor, and of these the tokens behind the last buffered chunk."""

    tokens: int
    unbuffered: int

    @property
    def buffered(self) -> int:
        return self.tokens - self.unbuffered


class Plan(NamedTuple):
    """What is to be done now. ``blocks``: the turn waits for an observation, up to its deadline."""

    buffers: bool
    activates: bool
    blocks: bool


def plan(pending: Pending, limits: Thresholds) -> Plan:
    """What the pending tokens ask for.

    >>> plan(Pending(6_000, 6_000), Thresholds())
    Plan(buffers=True, activates=False, blocks=False)
    >>> plan(Pending(24_500, 500), Thresholds())
    Plan(buffers=False, activates=True, blocks=False)
    >>> plan(Pending(37_000, 37_000), Thresholds())
    Plan(buffers=True, activates=False, blocks=True)
    >>> plan(Pending(37_000, 1_000), Thresholds())  # activating brings it down again
    Plan(buffers=False, activates=True, blocks=False)
    """
    activates = pending.buffered > 0 and pending.tokens >= limits.activate_after
    left = pending.unbuffered if activates else pending.tokens
    return Plan(pending.unbuffered >= limits.buffer_after, activates, left >= limits.block_after)


def chunks_to_activate(
    chunk_tokens: Sequence[int], pending: Pending, limits: Thresholds, is_forced: bool = False
) -> int:
    """How many of the buffered chunks, oldest first, become active.

    Chunks go as long as ``retain`` tokens of raw messages stay behind them; one always goes
    when the threshold was reached, however large it is, or nothing would ever shrink.

    >>> chunks_to_activate([6_000, 6_000, 6_000, 6_000], Pending(24_000, 0), Thresholds())
    3
    >>> chunks_to_activate([6_000] * 4, Pending(26_000, 2_000), Thresholds())
    3
    >>> chunks_to_activate([24_000], Pending(24_000, 0), Thresholds())
    1
    >>> chunks_to_activate([6_000, 6_000], Pending(12_000, 0), Thresholds(), is_forced=True)
    2
    """
    if is_forced:
        return len(chunk_tokens)
    left = pending.tokens
    count = 0
    for tokens in chunk_tokens:
        if left - tokens < limits.retain and count:
            break
        left -= tokens
        count += 1
        if left <= limits.retain:
            break
    return count
