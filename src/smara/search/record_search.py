"""Search memories, observations or tasks by words.

Each class searches one kind of record with the filters of that kind. An id is found as such.
Trusted and confident memories, and unfinished tasks, rank first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from smara.core.clock import Clock
from smara.core.text import snippet
from smara.core.validate import one_of
from smara.database.database import Session
from smara.database.fulltext import RecordKind
from smara.errors import DeadlineError
from smara.knowledge.decay import confidence_now
from smara.knowledge.models import STATES, TIERS, TYPES, State, TrustTier, TypedMemory, rank_of
from smara.knowledge.store import KnowledgeStore, searched_text
from smara.messages.store import MessageStore
from smara.observations.store import ObservationStore
from smara.search.models import (
    MemoryAnswer,
    MemoryHit,
    ObservationAnswer,
    ObservationHit,
    TaskAnswer,
    TaskHit,
)
from smara.search.query import Query, analyze_query, check_query
from smara.search.records import (
    CodeJudge,
    RecordMatches,
    RecordScore,
    judge_code,
    no_code,
    text_of,
)
from smara.search.relevance import Relevance, select
from smara.search.search import Search
from smara.search.weights import WEIGHTS, Weights
from smara.tasks.models import STATUSES
from smara.tasks.store import TaskStore

_TOO_LONG = "The search took too long and was stopped. Ask for rarer words."


BY_ID = RecordScore(2.0)


class _Ranking:
    """The records of one kind that share words with a query, with their scores."""

    def __init__(
        self,
        session: Session,
        store: KnowledgeStore | ObservationStore | TaskStore,
        messages: MessageStore,
        *,
        kind: RecordKind,
        total: int,
        query: Query,
        weights: Weights,
    ) -> None:
        matches = RecordMatches(
            session,
            store.database.records,
            kind,
            project_no=None if messages.is_alone(session) else store.scope.project_no,
            total=total,
            query=query,
            weights=weights.record_words,
        )
        self.scores = dict(matches.scored())
        if not isinstance(store, ObservationStore):
            named = store.find_asked_for(session, query.text)
            self.scores |= {named: BY_ID} if named is not None else {}
        self._relevance = Relevance(query, matches.frequencies, matches.total, weights.relevance)
        self._weights = weights.relevance

    def split(self, order: Sequence[int]) -> tuple[Rated, Rated]:
        """Return the relevant records, and the nearest if none is, rated."""
        rated = [(no, round(self._rate(self.scores[no]), 4)) for no in order]
        chosen = select([rating for _, rating in rated], self._weights)
        nearest = [] if chosen else rated[: self._weights.nearest]
        return [rated[place] for place in chosen], nearest

    def _rate(self, score: RecordScore) -> float:
        return 1.0 if score is BY_ID else self._relevance.rate(score.terms, score.words, None)


Rated = list[tuple[int, float]]


@dataclass(frozen=True, eq=False)
class MemorySearch:
    """Searches the memories of one project."""

    store: KnowledgeStore
    messages: MessageStore
    clock: Clock
    deadline_seconds: float
    freshness: CodeJudge = no_code
    weights: Weights = WEIGHTS

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
        """Return the memories that answer a query, best first.

        ``files``, ``tags`` and ``modules`` keep those that have any of them; ``min_tier`` those
        that are trusted at least so far; ``state`` may include what was superseded.
        """
        check_query(query, limit, offset)
        one_of(state, STATES, "state")
        for each in types or ():
            one_of(each, TYPES, "types")
        if min_tier is not None:
            one_of(min_tier, TIERS, "min_tier")
        any_of = [
            (name, frozenset(values))
            for name, values in (("files", files), ("tags", tags), ("modules", modules))
            if values is not None
        ]
        least = rank_of(min_tier) if min_tier is not None else 0

        def includes(memory: TypedMemory, confidence: float) -> bool:
            return (
                (state == "all" or memory.is_active is (state == "active"))
                and (types is None or memory.type in types)
                and rank_of(memory.tier) >= least
                and confidence >= min_confidence
                and all(not values.isdisjoint(getattr(memory, name)) for name, values in any_of)
            )

        try:
            with self.store.database.read(self.deadline_seconds) as session:
                return self._find(session, analyze_query(query), limit, offset, includes)
        except DeadlineError:
            return MemoryAnswer((), 0, (_TOO_LONG,))

    def _find(
        self,
        session: Session,
        query: Query,
        limit: int,
        offset: int,
        includes: Callable[[TypedMemory, float], bool],
    ) -> MemoryAnswer:
        ranking = _Ranking(
            session,
            self.store,
            self.messages,
            kind="memory",
            total=self.store.state(session).total,
            query=query,
            weights=self.weights,
        )
        scores, now = ranking.scores, self.clock.now_ms()
        found = {
            no: (memory, confidence)
            for no, memory in self.store.by_numbers(session, scores).items()
            if includes(memory, confidence := confidence_now(memory, now).value)
        }

        def merit(no: int) -> tuple[float, int]:
            doubt = self.weights.boost.confidence_share * (1 - found[no][1])
            return scores[no].words * (1 - doubt), no

        relevant, nearest = ranking.split(sorted(found, key=merit, reverse=True))
        shown = (relevant or nearest)[offset : offset + limit]
        code = judge_code(self.freshness, session, "memory", numbers=[no for no, _ in shown])
        hits = tuple(
            MemoryHit(
                found[no][0],
                rank,
                score,
                why=scores[no].why(found[no][0].content, files=found[no][0].files),
                snippet=snippet(searched_text(found[no][0]), query.texts),
                confidence=found[no][1],
                code=code.get(no),
            )
            for rank, (no, score) in enumerate(shown, offset + 1)
        )
        return MemoryAnswer((), 0, nearest=hits) if nearest else MemoryAnswer(hits, len(relevant))


@dataclass(frozen=True, eq=False)
class ObservationSearch:
    """Searches the observations of one project."""

    store: ObservationStore
    messages: MessageStore
    deadline_seconds: float
    weights: Weights = WEIGHTS

    def search(
        self, query: str, limit: int = 10, *, thread_id: str | None = None
    ) -> ObservationAnswer:
        """Return the observations and reflections that answer a query, best first."""
        check_query(query, limit)
        analyzed = analyze_query(query)
        try:
            with self.store.database.read(self.deadline_seconds) as session:
                ranking = _Ranking(
                    session,
                    self.store,
                    self.messages,
                    kind="observation",
                    total=self.store.count(session),
                    query=analyzed,
                    weights=self.weights,
                )
                scores, rows = ranking.scores, self.store.by_numbers(session, ranking.scores)
        except DeadlineError:
            return ObservationAnswer()
        order = [no for no in scores if no in rows and thread_id in (None, rows[no].thread_id)]
        order.sort(key=lambda no: (scores[no].words, no), reverse=True)
        relevant, nearest = ranking.split(order)
        hits = tuple(
            ObservationHit(
                rows[no],
                rank,
                score,
                why=scores[no].why(text := "\n".join((rows[no].text, *rows[no].details))),
                snippet=snippet(text, analyzed.texts),
            )
            for rank, (no, score) in enumerate((relevant or nearest)[:limit], 1)
        )
        return ObservationAnswer((), hits) if nearest else ObservationAnswer(hits)


_MESSAGES_OF_A_TASK = 5


@dataclass(frozen=True, eq=False)
class TaskSearch:
    """Searches the tasks of one project."""

    store: TaskStore
    messages: MessageStore
    everywhere: Search
    deadline_seconds: float
    weights: Weights = WEIGHTS

    def search(
        self,
        query: str,
        limit: int = 3,
        *,
        offset: int = 0,
        status: str | None = None,
        include_messages: bool = False,
    ) -> TaskAnswer:
        """Return the tasks that answer a query, best first.

        With ``include_messages``, each with its newest messages, and beside them what was said
        about it anywhere.
        """
        check_query(query, limit, offset)
        if status is not None:
            one_of(status, STATUSES, "status")
        messages = (
            self.everywhere.search(query, limit, sources=("messages",))
            if include_messages and query.strip()
            else None
        )
        try:
            with self.store.database.read(self.deadline_seconds) as session:
                answer = self._find(session, analyze_query(query), limit, offset, status)
                if include_messages:
                    hits = tuple(self._with_messages(session, hit) for hit in answer.hits)
                    answer = replace(answer, hits=hits)
        except DeadlineError:
            answer = TaskAnswer((), 0, warnings=(_TOO_LONG,))
        return replace(answer, messages=messages)

    def _find(
        self, session: Session, query: Query, limit: int, offset: int, status: str | None
    ) -> TaskAnswer:
        ranking = _Ranking(
            session,
            self.store,
            self.messages,
            kind="task",
            total=self.store.state(session).all,
            query=query,
            weights=self.weights,
        )
        scored = ranking.scores
        statement = "SELECT t.no, t.status FROM tasks t WHERE +t.project_no = :project"
        statuses: dict[int, str] = dict(
            self.store.rows(session, f"{statement} AND t.no IN (:some)", some=list(scored))
        )
        order = [no for no in scored if no in statuses and status in (None, statuses[no])]
        most = max((scored[no].words for no in order), default=1.0)

        def merit(no: int) -> tuple[float, int]:
            bonus = 0.0 if statuses[no] == "closed" else self.weights.boost.unfinished
            return scored[no].words / most + bonus, no

        relevant, nearest = ranking.split(sorted(order, key=merit, reverse=True))
        shown = (relevant or nearest)[offset : offset + limit]
        tasks = self.store.by_numbers(session, [no for no, _ in shown])
        hits = tuple(
            TaskHit(
                tasks[no],
                rank,
                score,
                why=scored[no].why(text_of(tasks[no]), tasks[no].title),
                snippet=snippet(text_of(tasks[no]), query.texts),
            )
            for rank, (no, score) in enumerate(shown, offset + 1)
        )
        return TaskAnswer((), 0, nearest=hits) if nearest else TaskAnswer(hits, len(relevant))

    def _with_messages(self, session: Session, hit: TaskHit) -> TaskHit:
        rows = session.all(
            self.store.sql(
                "SELECT l.message_no AS no FROM task_messages l JOIN tasks t ON t.no = l.task_no"
                " WHERE t.project_no = :project AND t.id = ?"
                " UNION SELECT m.no FROM messages m WHERE m.project_no = :project AND m.task_id = ?"
                f" ORDER BY no DESC LIMIT {_MESSAGES_OF_A_TASK}"
            ),
            (hit.task.id, hit.task.id),
        )
        found = self.messages.by_numbers(session, sorted(row[0] for row in rows))
        return replace(hit, messages=tuple(found[no] for no in sorted(found)))
