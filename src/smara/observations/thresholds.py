"""Compute when to observe, activate, wait and reflect.

Pure arithmetic over token counts, explained by worked numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smara.core.startup.record import dataclass, replace
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
# So large a part of the threshold of reflections is never condensed: the newest observations.
_KEPT_SHARE = 0.4


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
    reflect_ahead_fraction: float = 0.8

    @property
    def buffer_after(self) -> int:
        """Tokens behind the last chunk after which the next one begins."""
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
    def show_most(self) -> int:
        """So many tokens of raw messages are shown at most."""
        return 2 * self.observe_after

    @property
    def block_after(self) -> int:
        """So many pending tokens, and the turn waits."""
        return max(1, int(self.observe_after * self.block_fraction))

    @property
    def reflect_ahead(self) -> int:
        """So many tokens of active observations, and a reflection is made ahead."""
        return max(1, int(self.reflect_after * self.reflect_ahead_fraction))

    @property
    def reflect_keeps(self) -> int:
        """Tokens of the newest observations that a reflection leaves alone."""
        return int(self.reflect_after * _KEPT_SHARE)

    @property
    def reflect_ahead_keeps(self) -> int:
        """Tokens of the newest observations left out of a reflection made ahead.

        Fewer by those that will come until it is needed.

        At least half as many, so that one that comes into force early leaves the newest as they are
        too.

        >>> Thresholds().reflect_keeps, Thresholds().reflect_ahead_keeps
        (16000, 8000)
        >>> Thresholds(reflect_ahead_fraction=0.5).reflect_ahead_keeps
        8000
        """
        expected = max(0, self.reflect_after - self.reflect_ahead)
        return max(self.reflect_keeps - expected, self.reflect_keeps // 2)


def for_mode(base: Thresholds, mode: AgentMode, is_default: bool) -> Thresholds:
    """Return a mode's limits, scaled to the user's own.

    >>> for_mode(Thresholds(), "explore", True).observe_after
    60000
    >>> for_mode(Thresholds(observe_after=3_000), "explore", False).observe_after
    6000
    """
    if mode == "default":
        return base
    observe_after = MODE_THRESHOLDS[mode]
    if not is_default:
        observe_after = base.observe_after * observe_after // MODE_THRESHOLDS["default"]
    return replace(base, observe_after=observe_after)


class PendingTokens(NamedTuple):
    """The tokens behind the cursor, and behind the last buffered chunk."""

    tokens: int
    unbuffered: int

    @property
    def buffered(self) -> int:
        return self.tokens - self.unbuffered


class ObservationPlan(NamedTuple):
    """The plan for now.

    If it ``blocks``, the turn waits up to its deadline.
    """

    buffers: bool
    activates: bool
    blocks: bool


def plan(pending: PendingTokens, limits: Thresholds) -> ObservationPlan:
    """Return what the pending tokens call for.

    >>> plan(PendingTokens(6_000, 6_000), Thresholds())
    ObservationPlan(buffers=True, activates=False, blocks=False)
    >>> plan(PendingTokens(24_500, 500), Thresholds())
    ObservationPlan(buffers=False, activates=True, blocks=False)
    >>> plan(PendingTokens(37_000, 37_000), Thresholds())
    ObservationPlan(buffers=True, activates=False, blocks=True)
    >>> plan(PendingTokens(37_000, 1_000), Thresholds())  # activating brings it down again
    ObservationPlan(buffers=False, activates=True, blocks=False)
    """
    activates = pending.buffered > 0 and pending.tokens >= limits.activate_after
    left = pending.unbuffered if activates else pending.tokens
    return ObservationPlan(
        pending.unbuffered >= limits.buffer_after, activates, left >= limits.block_after
    )


class ReflectionPlan(NamedTuple):
    """The one thing that is due for reflections, if any.

    ``buffers``: one is made ahead, in the background. ``activates``: the one that was made ahead
    comes into force. ``reflects``: none was made ahead, and one is needed; it is in force as soon
    as it is made.
    """

    buffers: bool
    activates: bool
    reflects: bool


def plan_reflection(active_tokens: int, is_buffered: bool, limits: Thresholds) -> ReflectionPlan:
    """Return what the tokens of active observations call for.

    >>> plan_reflection(31_999, False, Thresholds())
    ReflectionPlan(buffers=False, activates=False, reflects=False)
    >>> plan_reflection(32_000, False, Thresholds())
    ReflectionPlan(buffers=True, activates=False, reflects=False)
    >>> plan_reflection(39_999, True, Thresholds())
    ReflectionPlan(buffers=False, activates=False, reflects=False)
    >>> plan_reflection(40_000, True, Thresholds())
    ReflectionPlan(buffers=False, activates=True, reflects=False)
    >>> plan_reflection(40_000, False, Thresholds())
    ReflectionPlan(buffers=False, activates=False, reflects=True)
    """
    is_needed = active_tokens >= limits.reflect_after
    is_ahead = active_tokens >= limits.reflect_ahead and not is_needed
    return ReflectionPlan(
        is_ahead and not is_buffered, is_needed and is_buffered, is_needed and not is_buffered
    )


def chunks_to_activate(
    chunk_tokens: Sequence[int], pending: PendingTokens, limits: Thresholds
) -> int:
    """Return how many of the buffered chunks, oldest first, become active.

    Chunks go as long as ``retain`` tokens of raw messages stay behind them, whatever called for it.
    More than ``show_most`` cannot be shown raw, so there a chunk goes all the same.

    >>> chunks_to_activate([6_000, 6_000, 6_000, 6_000], PendingTokens(24_000, 0), Thresholds())
    3
    >>> chunks_to_activate([6_000] * 4, PendingTokens(26_000, 2_000), Thresholds())
    3
    >>> chunks_to_activate([6_200], PendingTokens(6_400, 200), Thresholds())
    0
    >>> chunks_to_activate([70_000], PendingTokens(70_000, 0), Thresholds())
    1
    """
    left = pending.tokens
    for count, tokens in enumerate(chunk_tokens):
        if left - tokens < limits.retain and left <= limits.show_most:
            return count
        left -= tokens
    return len(chunk_tokens)


def chunk_size(waiting_tokens: int, limits: Thresholds) -> int:
    """Return the size of the next chunk, short of the newest messages.

    >>> chunk_size(6_200, Thresholds()), chunk_size(13_000, Thresholds())
    (6200, 7000)
    >>> chunk_size(100_000, Thresholds())
    30000
    """
    newest = limits.retain if waiting_tokens > limits.buffer_after + limits.retain else 0
    return min(limits.observe_after, waiting_tokens - newest)
