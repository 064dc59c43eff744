"""Define the reranker protocol: query and texts in, scores out.

A reranker reads query and text together, which is slow and precise; search gives it the best few
hits. It returns one score from 0 to 1 for each text, in order, or raises a ``ModelError`` within
the deadline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from smara.core import log
from smara.errors import BadReplyError

RERANKER_ADVICE = {
    "key": "Check the setting reranker_api_key.",
    "unknown_model": "Check the setting reranker.",
    "request": "Check the setting reranker.",
    "too_long": "Choose a model with a larger window with the setting reranker.",
    "quota": "The account has no credit left: top it up, or choose another reranker.",
    "timeout": "Try again, allow more with search_deadline_seconds, or choose a faster reranker.",
}
"""What to do about a failure, where that is not what one does about a chat model."""


class Reranker(Protocol):
    """Says how well texts answer a query."""

    @property
    def name(self) -> str:
        """The name in calls and prices, such as ``cohere:rerank-v3.5``."""

    @property
    def is_local(self) -> bool:
        """True if it works inside this process: no text leaves it."""

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """Return one score from 0 to 1 per text, or raise.

        Raises ``ModelError``; never returns a part of them.
        """


def check_scores(scores: Sequence[object], count: int, name: str) -> list[float]:
    """Return the scores from 0 to 1, or raise."""
    if len(scores) != count:
        raise bad_scores(name, f"{len(scores)} scores for {count} texts")
    numbers = [finite(score, name) for score in scores]
    for number in numbers:
        if not 0 <= number <= 1:
            raise bad_scores(name, f"the score {number:g}, which is not from 0 to 1")
    return numbers


def finite(score: object, name: str) -> float:
    """Return a finite number; some servers send ``null`` or words."""
    try:
        number = (
            float(score)
            if isinstance(score, int | float) and not isinstance(score, bool)
            else math.nan
        )
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise bad_scores(name, f"the score {str(score)[:40]}")
    return number


def sigmoid(value: float) -> float:
    """Return a relevance from 0 to 1; 0 becomes 0.5.

    >>> [round(sigmoid(value), 3) for value in (-1000, -2, 0, 2, 1000)]
    [0.0, 0.119, 0.5, 0.881, 1.0]
    """
    small = math.exp(-min(abs(value), 700.0))
    return 1 / (1 + small) if value >= 0 else small / (1 + small)


def bad_scores(name: str, what: str) -> BadReplyError:
    """Return the error of unusable scores."""
    return BadReplyError(
        f"{name} gave scores that cannot be used ({log.redact_text(what)[:200]}). Check that the "
        "setting reranker names a model that reranks.",
        model=name,
        reason="unreadable",
        may_be_billed=True,
    )
