"""From what words say and what meaning says to one score.

The root of the words' score against the best one, plus what its cosine is worth, counted
in standard deviations of the cosines of all candidates: how close is close depends on the
question, so a plain cosine would weigh differently every time. Words lead and meaning
decides among what they leave alike. Chosen out of fold on four sets; see
``docs/reference/evaluation.md`` for what each part brought.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smara.search.found import Found

if TYPE_CHECKING:
    from smara.database.vectors import Floats


@dataclass(frozen=True, slots=True)
class FuseSettings:
    """Every weight of the fusion; the words of the best hit count 1."""

    # One standard deviation of cosine, for prose and for code, where names hide what meaning shows.
    message_meaning: float = 0.03
    code_meaning: float = 0.17
    # The same of the closer of the messages before and after.
    neighbor_meaning: float = 0.04
    # The same of the closest message of a user in a thread.
    thread_meaning: float = 0.08
    # What is of the days that "two weeks ago" means.
    days_bonus: float = 0.6
    # How much of the best messages goes into the vector that is asked for a second time, and how
    # many they are.
    feedback: float = 0.5
    feedback_rows: int = 10
    # Without a word in common, a cosine at or below it is no answer: in any store something is
    # nearest.
    floor: float = 0.25


DEFAULT = FuseSettings()


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean and the standard deviation of the candidates' cosines."""

    mean: float = 0.0
    deviation: float = 0.0

    @classmethod
    def of(cls, cosines: Collection[float]) -> Spread:
        """
        >>> Spread.of([0.1, 0.3]).standard(0.4)
        2.0
        """
        count = len(cosines)
        if count < 2:
            return cls()
        mean = math.fsum(cosines) / count
        return cls(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in cosines) / count))

    def standard(self, cosine: float | None) -> float:
        """How many deviations a cosine lies above the mean; 0 where nothing is known or all are
        alike.
        """
        if cosine is None or self.deviation < 1e-6:
            return 0.0
        return round((cosine - self.mean) / self.deviation, 9)

    def standards(self, cosines: Floats) -> Floats:
        """The same of many; -inf stands for nothing known."""
        import numpy as np

        if self.deviation < 1e-6:
            return np.zeros_like(cosines)
        standard = np.round((cosines - self.mean) / self.deviation, 9)
        return np.where(np.isneginf(cosines), 0.0, standard)


def root_share(score: float, best: float) -> float:
    """The root of a share of the best: it lifts the middle, where meaning is to decide.

    >>> root_share(2.0, 8.0)
    0.5
    """
    return math.sqrt(max(score, 0.0) / best) if best > 0 else 0.0


class Fusion:
    """The scale of one answer over everything that was found for it, whatever the source."""

    def __init__(
        self,
        found: Iterable[Found],
        cosines: Collection[float],
        code_share: float = 0.0,
        settings: FuseSettings = DEFAULT,
    ) -> None:
        self._settings = settings
        self._best = max((each.words for each in found), default=0.0)
        self._spread = Spread.of(cosines)
        self._has_meaning = bool(cosines)
        self._weight = settings.message_meaning + code_share * (
            settings.code_meaning - settings.message_meaning
        )

    def rate(self, each: Found) -> float:
        """The fused score. Where nothing is known of meaning, words alone decide."""
        settings = self._settings
        if each.words <= 0 and (each.meaning is None or each.meaning <= settings.floor):
            return 0.0
        score = root_share(each.words, self._best)
        if self._has_meaning:
            weight = settings.code_meaning if each.kind == "code" else self._weight
            score += weight * self._spread.standard(each.meaning)
            score += settings.neighbor_meaning * self._spread.standard(each.near)
        if each.is_in_days:
            score += settings.days_bonus
        # However far its meaning: what holds a word of the query stays in the answer, at its end.
        return max(score, 1e-6)

    def render(self) -> str:
        """One line for a person."""
        if not self._has_meaning:
            return "words alone"
        mean, deviation = self._spread.mean, self._spread.deviation
        return f"words, and {self._weight:.2f} for each {deviation:.2f} of cosine above {mean:.2f}"


def fuse_threads(
    words: Mapping[int, float],
    cosines: Mapping[int, float],
    in_days: Collection[int],
    settings: FuseSettings = DEFAULT,
) -> dict[int, float]:
    """The score of every thread, by number; ``cosines`` holds the closest message of a user in
    each.
    """
    best, spread = max(words.values(), default=0.0), Spread.of(cosines.values())
    low = min(cosines.values(), default=0.0)
    scores = {}
    for thread in words.keys() | cosines.keys():
        if thread not in words and cosines[thread] <= settings.floor:
            continue
        score = root_share(words.get(thread, 0.0), best)
        if cosines:
            score += settings.thread_meaning * spread.standard(cosines.get(thread, low))
        if thread in in_days:
            score += settings.days_bonus
        scores[thread] = max(score, 1e-6)
    return scores
