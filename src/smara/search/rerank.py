"""Rerank the best hits with a cross-encoder, if one is set.

Without one the order of the search features stands. A model that fails or is late adds a note and
changes nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smara.core import log
from smara.errors import SmaraError
from smara.search.models import SearchCandidate
from smara.search.weights import WEIGHTS

if TYPE_CHECKING:
    from smara.models.reranker import Reranker


# So many of the best are read again.
RERANKED = 20
_LONGEST = 4_000


def rerank(
    query: str,
    best: Sequence[SearchCandidate],
    reranker: Reranker | None,
    deadline_seconds: float,
    share: float = WEIGHTS.fusion.reranker,
) -> tuple[list[SearchCandidate], str]:
    """Return the candidates in their new order, and one line about it."""
    if reranker is None:
        return list(best), "by search's own features"
    head, rest = list(best[:RERANKED]), list(best[RERANKED:])
    if not head or deadline_seconds <= 0:
        return list(
            best
        ), f"not by {reranker.name}: no time was left" if head else "nothing to rank"
    try:
        judged = reranker.rerank(
            query, [_text(each) for each in head], deadline_seconds=deadline_seconds
        )
    except SmaraError as error:
        log.warning("rerank.failed", error=error.code, reranker=reranker.name)
        return list(best), f"not by {reranker.name}: {error}"
    for each, relevance in zip(head, judged, strict=True):
        # In the place of most of the fused score; trust and phase still count.
        trust = each.score / each.fused if each.fused else 1.0
        each.factors.append(("reranker", relevance))
        each.score = (share * relevance + (1 - share) * each.fused) * trust
        each.relevance = share * relevance + (1 - share) * each.relevance
    # What was not read again cannot rank above what was.
    head.sort(key=lambda each: (-each.score, -each.hit.created_at, each.kind, -each.no))
    lowest = head[-1].score
    for each in rest:
        each.score = min(each.score, lowest)
    return [*head, *rest], f"the best {len(head)} by {reranker.name}"


def _text(candidate: SearchCandidate) -> str:
    from smara.core.text import best_window

    content = candidate.hit.content
    if len(content) <= _LONGEST:
        return content
    start = best_window(content, candidate.hit.terms, _LONGEST)
    return content[start : start + _LONGEST]
