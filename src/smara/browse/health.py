"""Score the health of a memory, with the parts of the score."""

from __future__ import annotations

from collections.abc import Mapping

from smara.core.startup.record import dataclass


@dataclass(frozen=True, slots=True)
class HealthPart:
    """One part of the score: ``reviewed``, ``fresh`` or ``working``."""

    name: str
    points: int
    of: int


@dataclass(frozen=True, slots=True)
class MemoryHealth:
    """A score from 0 to 100, with what takes points away."""

    score: int
    parts: tuple[HealthPart, ...]
    to_review: int
    stale: int
    failures: Mapping[str, int]


def score_health(
    *, active: int, to_review: int, stale: int, failures: Mapping[str, int]
) -> MemoryHealth:
    """Score a memory from 0 to 100.

    Of 40 memories 10 wait for a review (40 × 30 / 40 = 30 points), 4 are contradicted by the code
    (40 × 36 / 40 = 36 points), and 2 pieces of work failed (20 − 2 × 5 = 10 points).

    >>> score_health(active=40, to_review=10, stale=4, failures={"observations": 2}).score
    76
    """
    share = max(active, 1)
    parts = (
        HealthPart("reviewed", round(40 * (1 - min(to_review, share) / share)), 40),
        HealthPart("fresh", round(40 * (1 - min(stale, share) / share)), 40),
        HealthPart("working", max(0, 20 - 5 * sum(failures.values())), 20),
    )
    return MemoryHealth(sum(each.points for each in parts), parts, to_review, stale, failures)
