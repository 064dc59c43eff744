"""Plain hybrids to compare with: FTS5 and the default embedder, put together the ways most systems
do it.

A document is a turn for both; a session is as good as its best turn. Reciprocal ranks with
k = 60, and half and half of scores divided by the best of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import smara
from evals.baselines import Ranker, fts5_scores, turns
from evals.data import Level, Question, Thread

Combine = Callable[[dict[int, float], Any], dict[int, float]]
_DEPTH = 200


@lru_cache(maxsize=1)
def _embedder() -> Any:
    return smara.open(":memory:").models.embedder


def hybrid(threads: Sequence[Thread], level: Level, combine: Combine) -> Ranker:
    """A ranker over turns, or over the sessions they stand in."""
    documents = turns(threads)
    words = fts5_scores(documents)
    vectors = _embedder().embed([text for _, text in documents])
    session_of = [thread.key for thread in threads for _ in thread.turns]

    def rank(question: Question, limit: int) -> list[str]:
        cosines = vectors @ _embedder().embed([question.text], "query")[0]
        scores = combine(words(question.text), cosines)
        best = sorted(scores, key=lambda number: (-scores[number], number))
        keys = (
            session_of[number] if level == "thread" else documents[number][0] for number in best
        )
        return list(dict.fromkeys(keys))[:limit]

    return rank


def meaning_alone(words: dict[int, float], cosines: Any) -> dict[int, float]:
    """The nearest, whatever their words."""
    return {int(number): float(cosines[number]) for number in np.argsort(-cosines)[:_DEPTH]}


def reciprocal_ranks(words: dict[int, float], cosines: Any) -> dict[int, float]:
    """One over 60 plus the rank, added up."""
    scores: dict[int, float] = {}
    by_words = sorted(words, key=lambda number: -words[number])[:_DEPTH]
    for found in (by_words, [int(number) for number in np.argsort(-cosines)[:_DEPTH]]):
        for rank, number in enumerate(found, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (60 + rank)
    return scores


def half_and_half(words: dict[int, float], cosines: Any) -> dict[int, float]:
    """Both sides scaled from 0 to 1, added up."""
    best = max(words.values(), default=1.0) or 1.0
    low, high = float(cosines.min()), float(cosines.max())
    nearest = [int(number) for number in np.argsort(-cosines)[:_DEPTH]]
    return {
        number: words.get(number, 0.0) / best
        + (float(cosines[number]) - low) / ((high - low) or 1.0)
        for number in {*words, *nearest}
    }
