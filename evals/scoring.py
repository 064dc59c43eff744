"""How good a ranked list is, given the keys that answer the question.

All figures are averages over questions, in percent. Two gold keys found at ranks 1 and
12: R@10 = 50, any@10 = 100, all@10 = 0, MRR = 100.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """The share of the gold keys among the first ``k``."""
    return len(set(ranked[:k]) & set(gold)) / len(gold)


def ndcg(ranked: Sequence[str], gold: Collection[str], k: int = 10) -> float:
    """Gain 1 / log2(rank + 1) of each gold key among the first ``k``, over that of the ideal
    order.
    """
    gain = sum(1 / math.log2(rank + 1) for rank, key in enumerate(ranked[:k], 1) if key in gold)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(gold), k) + 1))
    return gain / ideal


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """One over the rank of the first gold key; 0 when none was found."""
    return next((1 / rank for rank, key in enumerate(ranked, 1) if key in gold), 0.0)


def score(ranked: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """All figures of one question, from 0 to 1."""
    figures = {"NDCG@10": ndcg(ranked, gold), "MRR": reciprocal_rank(ranked, gold)}
    for k in (5, 10):
        found = recall(ranked, gold, k)
        figures |= {f"R@{k}": found, f"any@{k}": float(found > 0), f"all@{k}": float(found == 1)}
    return figures


def interval(values: Sequence[float], draws: int = 1_000) -> tuple[float, float]:
    """The middle 95 % of the mean when the questions are drawn again and again, in percent."""
    chosen = random.Random(0)
    count = len(values)
    means = sorted(sum(chosen.choices(values, k=count)) / count for _ in range(draws))
    return 100 * means[int(0.025 * draws)], 100 * means[int(0.975 * draws) - 1]


def paired(
    ours: Sequence[float], theirs: Sequence[float], draws: int = 1_000
) -> tuple[float, float, float]:
    """The mean difference on the same questions, in percent, and the middle 95 % of it when they
    are drawn again and again.
    """
    gaps = [one - other for one, other in zip(ours, theirs, strict=True)]
    return 100 * sum(gaps) / len(gaps), *interval(gaps, draws)


def average(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure over all questions, in percent."""
    if not figures:
        return {}
    return {name: 100 * sum(each[name] for each in figures) / len(figures) for name in figures[0]}


def wilson(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share, in percent: 9 of 10 is 60 to 98."""
    z, share = 1.96, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    half /= 1 + z * z / count
    return 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)
