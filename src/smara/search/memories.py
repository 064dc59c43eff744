"""Finding memories by their words; an id is found as such. What is trusted and sure ranks before
what is not.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.core.clock import Clock
from smara.core.text import snippet
from smara.database.database import Session
from smara.errors import DeadlineError, InvalidInputError
from smara.knowledge.decay import confidence_now
from smara.knowledge.models import STATES, TIERS, TYPES, State, TrustTier, TypedMemory, rank_of
from smara.knowledge.store import KnowledgeStore
from smara.knowledge.text import searched_text
from smara.messages.store import MessageStore
from smara.search.code_freshness import CodeJudge, judged, no_code
from smara.search.models import MemoryAnswer, MemoryHit
from smara.search.query import Query, analyze_query
from smara.search.records import GatheredRecords, Scores

_MOST = 1_000
_CONFIDENCE_SHARE = 0.3
"""How much of its score a memory of no confidence loses: what matches better is still found
first.
"""


class MemorySearch:
    """Searches the memories of one project."""

    def __init__(
        self,
        store: KnowledgeStore,
        messages: MessageStore,
        clock: Clock,
        deadline_seconds: float,
        freshness: CodeJudge = no_code,
    ) -> None:
        self._freshness = freshness
        self._store = store
        self._messages = messages
        self._clock = clock
        self._deadline_seconds = deadline_seconds

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        offset: int = 0,
        types: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        modules: Sequence[str] | None = None,
        min_confidence: float = 0.0,
        min_tier: TrustTier | None = None,
        state: State = "active",
    ) -> MemoryAnswer:
        """Memories that answer a query, best first; never raises for what is asked.

        ``files``, ``tags`` and ``modules`` keep those that have any of them; ``min_tier`` those
        that are trusted at least so far; ``state`` may include what was superseded.
        """
        wanted = _Wanted(
            types,
            files,
            tags,
            modules=modules,
            min_confidence=min_confidence,
            min_tier=min_tier,
            state=state,
        )
        _check(query, limit, offset, wanted=wanted)
        try:
            with self._store.database.read(self._deadline_seconds) as session:
                return self._find(session, analyze_query(query), limit, offset, wanted)
        except DeadlineError:
            return MemoryAnswer(
                (), 0, ("The search took too long and was stopped. Ask for rarer words.",)
            )

    def _find(
        self, session: Session, query: Query, limit: int, offset: int, wanted: _Wanted
    ) -> MemoryAnswer:
        wall = None if self._messages.is_alone(session) else self._store.scope.project_no
        records, total = self._store.database.records, self._store.totals(session).total
        scores: Scores = GatheredRecords(
            session, records, "memory", wall=wall, total=total, query=query
        ).scored()
        named = self._store.find_asked_for(session, query.text)
        if named is not None:
            scores = {
                **scores,
                named: (
                    2 * max((score for score, _ in scores.values()), default=1.0),
                    ("matches the id",),
                ),
            }
        now = self._clock.now_ms()
        found = {
            no: (memory, confidence)
            for no, memory in self._store.by_numbers(session, scores).items()
            if wanted.includes(memory, confidence := confidence_now(memory, now).value)
        }

        def merit(no: int) -> tuple[float, int]:
            return scores[no][0] * (1 - _CONFIDENCE_SHARE * (1 - found[no][1])), no

        order = sorted(found, key=merit, reverse=True)
        best = merit(order[0])[0] if order else 1.0
        code = judged(self._freshness, session, "memory", numbers=order[offset : offset + limit])
        hits = tuple(
            MemoryHit(
                found[no][0],
                rank,
                round(merit(no)[0] / best, 4),
                why=scores[no][1],
                snippet=snippet(searched_text(found[no][0]), query.texts),
                confidence=found[no][1],
                code=code.get(no),
            )
            for rank, no in enumerate(order[offset : offset + limit], offset + 1)
        )
        return MemoryAnswer(hits, len(order))


class _Wanted:
    """Which memories a caller wants."""

    def __init__(
        self,
        types: Sequence[str] | None,
        files: Sequence[str] | None,
        tags: Sequence[str] | None,
        modules: Sequence[str] | None,
        min_confidence: float,
        min_tier: TrustTier | None,
        state: State,
    ) -> None:
        self.types = types
        self.min_confidence = min_confidence
        self.min_tier = min_tier
        self.state = state
        self._any_of = tuple(
            (name, frozenset(values))
            for name, values in (("files", files), ("tags", tags), ("modules", modules))
            if values is not None
        )

    def includes(self, memory: TypedMemory, confidence: float) -> bool:
        if self.state != "all" and memory.is_active is not (self.state == "active"):
            return False
        if self.types is not None and memory.type not in self.types:
            return False
        if self.min_tier is not None and rank_of(memory.tier) < rank_of(self.min_tier):
            return False
        return confidence >= self.min_confidence and all(
            not values.isdisjoint(getattr(memory, name)) for name, values in self._any_of
        )


def _check(query: object, limit: object, offset: object, wanted: _Wanted) -> None:
    if not isinstance(query, str):
        raise InvalidInputError(f"query must be a text, not {type(query).__name__}.")
    for name, value, least in (("limit", limit, 1), ("offset", offset, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
            raise InvalidInputError(
                f"{name} must be a whole number from {least} to {_MOST}; got {value!r}."
            )
    for each in wanted.types or ():
        if each not in TYPES:
            raise InvalidInputError(f"types must be among {', '.join(TYPES)}; got {each!r}.")
    if wanted.min_tier is not None and wanted.min_tier not in TIERS:
        raise InvalidInputError(
            f"min_tier must be one of {', '.join(TIERS)}; got {wanted.min_tier!r}."
        )
    if wanted.state not in STATES:
        raise InvalidInputError(f"state must be one of {', '.join(STATES)}; got {wanted.state!r}.")
