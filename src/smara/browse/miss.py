"""Find the stage of a search at which a record fell out.

The search is asked again with its bounds taken away one at a time: first the bound of relevance,
then every other record. What it takes to bring the record back says what kept it out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from smara.browse.models import Miss
from smara.core.startup.record import dataclass, replace
from smara.core.text import analyze
from smara.search.query import MOST_HITS, understand
from smara.search.weights import WEIGHTS

if TYPE_CHECKING:
    from smara.search.models import Answer, Hit


@dataclass(frozen=True, slots=True)
class MissTarget:
    """A record that a person expected to find."""

    ids: frozenset[str]
    source: str
    text: str
    thread_id: str | None = None
    is_findable: bool = True


def trace_miss(
    search: Callable[..., Answer], query: str, record_id: str, target: MissTarget, limit: int
) -> Miss:
    """Return where a record fell out of a search, or its rank."""
    base = Miss(record_id, "no_match", query, target.source, limit=limit)
    shown = search(query, limit)
    if hit := _among(shown.hits, target):
        return _with(base, "found", hit)
    if not target.is_findable:
        return replace(base, stage="hidden")
    ranked = search(query, MOST_HITS, min_score=0.0)
    base = replace(base, candidates=ranked.trace.candidates)
    if hit := _among(ranked.hits, target):
        best = max((each.score for each in ranked.hits), default=0.0)
        weights = WEIGHTS.relevance
        bound = max(weights.least, weights.share * best) if shown.hits else weights.bound
        stage = "below_bound" if hit.score < bound else "below_limit"
        return replace(_with(base, stage, hit), bound=bound)
    alone = search(
        query, MOST_HITS, min_score=0.0, sources=(target.source,), thread_id=target.thread_id
    )
    terms = understand(query).query.terms
    pieces = analyze(target.text)
    has = frozenset(f"{pieces.prose} {pieces.code}".split())
    words = {term.word: False for term in terms if not term.is_stop}
    for term in terms:
        if term.word in words and term.text in has:
            words[term.word] = True
    base = replace(
        base,
        shared=tuple(word for word, is_there in words.items() if is_there),
        missing=tuple(word for word, is_there in words.items() if not is_there),
    )
    hit = _among(alone.hits, target)
    return _with(base, "crowded_out", hit) if hit else base


def _among(hits: tuple[Hit, ...], target: MissTarget) -> Hit | None:
    return next((hit for hit in hits if not target.ids.isdisjoint((hit.id, *hit.copies))), None)


def _with(miss: Miss, stage: str, hit: Hit) -> Miss:
    return replace(miss, stage=stage, hit=hit, rank=hit.rank, score=hit.score)  # type: ignore[arg-type]  # one of the stages
