"""Search memories, observations or tasks by words.

Each class searches one kind of record with the filters of that kind. An id is found as such.
Trusted and confident memories, and unfinished tasks, rank first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from smara.core.clock import Clock
from smara.core.text import snippet
from smara.database.database import Session, marks
from smara.database.fulltext import RecordKind
from smara.errors import DeadlineError, InvalidInputError
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


def _matches(
    session: Session,
    store: KnowledgeStore | ObservationStore | TaskStore,
    messages: MessageStore,
    kind: RecordKind,
    total: int,
    query: Query,
    weights: Weights,
) -> RecordMatches:
    return RecordMatches(
        session,
        store.database.records,
        kind,
        project_no=None if messages.is_alone(session) else store.scope.project_no,
        total=total,
        query=query,
        weights=weights.record_words,
    )


BY_ID = RecordScore(2.0)


def _rater(
    matches: RecordMatches, query: Query, weights: Weights
) -> Callable[[RecordScore], float]:
    relevance = Relevance(query, matches.frequencies, matches.total, weights.relevance)

    def rate(score: RecordScore) -> float:
        return 1.0 if score is BY_ID else relevance.rate(score.terms, score.words, None)

    return rate


Rated = list[tuple[int, float]]


def _split(rated: Rated, weights: Weights) -> tuple[Rated, Rated]:
    """Return the records that are relevant, and the nearest if none is, with scores."""
    rated = [(no, round(relevance, 4)) for no, relevance in rated]
    chosen = select([relevance for _, relevance in rated], weights.relevance)
    nearest = [] if chosen else rated[: weights.relevance.nearest]
    return [rated[place] for place in chosen], nearest


class MemorySearch:
    """Searches the memories of one project."""

    def __init__(
        self,
        store: KnowledgeStore,
        messages: MessageStore,
        clock: Clock,
        deadline_seconds: float,
        freshness: CodeJudge = no_code,
        weights: Weights = WEIGHTS,
    ) -> None:
        self._weights = weights
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
        """Return the memories that answer a query, best first.

        ``files``, ``tags`` and ``modules`` keep those that have any of them; ``min_tier`` those
        that are trusted at least so far; ``state`` may include what was superseded.
        """
        check_query(query, limit, offset)
        for name, value, allowed in (
            *(("types", each, TYPES) for each in types or ()),
            *((("min_tier", min_tier, TIERS),) if min_tier is not None else ()),
            ("state", state, STATES),
        ):
            if value not in allowed:
                among = "among" if name == "types" else "one of"
                raise InvalidInputError(
                    f"{name} must be {among} {', '.join(allowed)}; got {value!r}."
                )
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
            with self._store.database.read(self._deadline_seconds) as session:
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
        matches = _matches(
            session,
            self._store,
            self._messages,
            kind="memory",
            total=self._store.state(session).total,
            query=query,
            weights=self._weights,
        )
        scores, rate = matches.scored(), _rater(matches, query, self._weights)
        if (named := self._store.find_asked_for(session, query.text)) is not None:
            scores = {**scores, named: BY_ID}
        now = self._clock.now_ms()
        found = {
            no: (memory, confidence)
            for no, memory in self._store.by_numbers(session, scores).items()
            if includes(memory, confidence := confidence_now(memory, now).value)
        }

        def merit(no: int) -> tuple[float, int]:
            doubt = self._weights.boost.confidence_share * (1 - found[no][1])
            return scores[no].words * (1 - doubt), no

        order = sorted(found, key=merit, reverse=True)
        relevant, nearest = _split([(no, rate(scores[no])) for no in order], self._weights)
        shown = (relevant or nearest)[offset : offset + limit]
        code = judge_code(self._freshness, session, "memory", numbers=[no for no, _ in shown])
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
        if nearest:
            return MemoryAnswer((), 0, nearest=hits)
        return MemoryAnswer(hits, len(relevant))


class ObservationSearch:
    """Searches the observations of one project."""

    def __init__(
        self,
        store: ObservationStore,
        messages: MessageStore,
        deadline_seconds: float,
        weights: Weights = WEIGHTS,
    ) -> None:
        self._weights = weights
        self._store = store
        self._messages = messages
        self._deadline_seconds = deadline_seconds

    def search(
        self, query: str, limit: int = 10, *, thread_id: str | None = None
    ) -> ObservationAnswer:
        """Return the observations and reflections that answer a query, best first."""
        check_query(query, limit)
        analyzed = analyze_query(query)
        try:
            with self._store.database.read(self._deadline_seconds) as session:
                matches = _matches(
                    session,
                    self._store,
                    self._messages,
                    kind="observation",
                    total=self._store.count(session),
                    query=analyzed,
                    weights=self._weights,
                )
                scores, rate = matches.scored(), _rater(matches, analyzed, self._weights)
                rows = self._store.by_numbers(session, scores)
        except DeadlineError:
            return ObservationAnswer()
        order = [no for no in scores if no in rows and thread_id in (None, rows[no].thread_id)]
        order.sort(key=lambda no: (scores[no].words, no), reverse=True)
        relevant, nearest = _split([(no, rate(scores[no])) for no in order], self._weights)
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


class TaskSearch:
    """Searches the tasks of one project."""

    def __init__(
        self,
        store: TaskStore,
        messages: MessageStore,
        search: Search,
        deadline_seconds: float,
        weights: Weights = WEIGHTS,
    ) -> None:
        self._weights = weights
        self._store = store
        self._messages = messages
        self._search = search
        self._deadline_seconds = deadline_seconds

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
        if status is not None and status not in STATUSES:
            raise InvalidInputError(f"status must be one of {', '.join(STATUSES)}; got {status!r}.")
        messages = (
            self._search.search(query, limit, sources=("messages",))
            if include_messages and query.strip()
            else None
        )
        try:
            with self._store.database.read(self._deadline_seconds) as session:
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
        matches = _matches(
            session,
            self._store,
            self._messages,
            kind="task",
            total=self._store.state(session).all,
            query=query,
            weights=self._weights,
        )
        scored, rate = matches.scored(), _rater(matches, query, self._weights)
        if (named := self._store.find_asked_for(session, query.text)) is not None:
            scored = {**scored, named: BY_ID}
        statuses: dict[int, str] = {}
        if scored:
            where = f"+t.project_no = :project AND t.no IN ({marks(len(scored))})"
            statement = self._store.sql(f"SELECT t.no, t.status FROM tasks t WHERE {where}")
            statuses = {row[0]: row[1] for row in session.all(statement, list(scored))}
        order = [no for no in scored if no in statuses and status in (None, statuses[no])]
        most = max((scored[no].words for no in order), default=1.0)

        def merit(no: int) -> tuple[float, int]:
            bonus = 0.0 if statuses[no] == "closed" else self._weights.boost.unfinished
            return scored[no].words / most + bonus, no

        order.sort(key=merit, reverse=True)
        relevant, nearest = _split([(no, rate(scored[no])) for no in order], self._weights)
        shown = (relevant or nearest)[offset : offset + limit]
        tasks = self._store.by_numbers(session, [no for no, _ in shown])
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
        if nearest:
            return TaskAnswer((), 0, nearest=hits)
        return TaskAnswer(hits, len(relevant))

    def _with_messages(self, session: Session, hit: TaskHit) -> TaskHit:
        rows = session.all(
            self._store.sql(
                "SELECT l.message_no AS no FROM task_messages l JOIN tasks t ON t.no = l.task_no"
                " WHERE t.project_no = :project AND t.id = ?"
                " UNION SELECT m.no FROM messages m WHERE m.project_no = :project AND m.task_id = ?"
                f" ORDER BY no DESC LIMIT {_MESSAGES_OF_A_TASK}"
            ),
            (hit.task.id, hit.task.id),
        )
        found = self._messages.by_numbers(session, sorted(row[0] for row in rows))
        return replace(hit, messages=tuple(found[no] for no in sorted(found)))
