"""What a memory is worth today: it fades from the last time it proved right, never from being
shown.

    stored 0.80, a gotcha (half-life 60 days), last verified use 90 days ago
    0.80 × 0.5^(90/60) = 0.28

Pinned memories and those without a half-life (decisions, requirements) do not fade. Files
that changed since take up to half of the rest away, in proportion to how many changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from smara.knowledge.kinds import KINDS, half_life_of
from smara.knowledge.models import TypedMemory

DAY_MS = 86_400_000
PRUNED_AFTER_HALF_LIVES = 3
"""After three half-lives without verified use an eighth is left, and the memory is put aside."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the arithmetic: what it is, by what it multiplies, and what comes out."""

    text: str
    factor: float
    value: float


@dataclass(frozen=True, slots=True)
class ConfidenceNow:
    """What a memory is worth now, and how that was worked out."""

    value: float
    steps: tuple[Step, ...]


def used_at(memory: TypedMemory) -> int:
    """When a memory was last known to be right: its last verified use, or when it was made."""
    return (
        memory.last_verified_use_at
        if memory.last_verified_use_at is not None
        else memory.created_at
    )


def half_life_days(memory: TypedMemory) -> float | None:
    """The half-life in force; ``None`` for what does not fade."""
    return None if memory.is_pinned else half_life_of(memory.type, memory.half_life_days)


def fading(memory: TypedMemory, now_ms: int) -> float:
    """The factor by which time has faded a memory, from 1 down to 0.

    A clock that was set back does not make anything worth more than it was.
    """
    half_life = half_life_days(memory)
    days = max(0, now_ms - used_at(memory)) / DAY_MS
    return 1.0 if half_life is None else 0.5 ** min(days / half_life, 1_000)


def confidence_now(memory: TypedMemory, now_ms: int, *others: tuple[str, float]) -> ConfidenceNow:
    """What a memory is worth now; ``others`` are further factors, such as files that have
    changed.
    """
    value = memory.confidence
    steps = [Step(f"stored confidence of a {memory.type}", 1.0, round(value, 4))]
    for text, factor in ((_told(memory, now_ms), fading(memory, now_ms)), *others):
        value *= factor
        steps.append(Step(text, round(factor, 4), round(value, 4)))
    return ConfidenceNow(round(value, 4), tuple(steps))


def is_due(memory: TypedMemory, now_ms: int) -> bool:
    """Whether a memory has faded so far that it is put aside; what a person verified or pinned
    never is.
    """
    half_life = half_life_days(memory)
    if half_life is None or memory.is_verified:
        return False
    return now_ms - used_at(memory) > PRUNED_AFTER_HALF_LIVES * half_life * DAY_MS


def _told(memory: TypedMemory, now_ms: int) -> str:
    if memory.is_pinned:
        return "pinned: it does not fade"
    half_life = half_life_days(memory)
    if half_life is None:
        return f"it does not fade: {KINDS[memory.type].because}"
    days = max(0, now_ms - used_at(memory)) // DAY_MS
    since = "its last verified use" if memory.last_verified_use_at is not None else "it was made"
    return f"{days} days since {since}, half-life {half_life:g} days"
