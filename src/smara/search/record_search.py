"""Search memories, observations or tasks by words.

Each class searches one kind of record with the filters of that kind. An id is found as such.
Trusted and confident memories, and unfinished tasks, rank first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smara.core.clock import Clock
from smara.core.text import snippet
from smara.database.database import Session, marks
from smara.errors import DeadlineError, InvalidInputError
from smara.knowledge.decay import confidence_now
from smara.knowledge.journal import searched_text
from smara.knowledge.models import STATES, TIERS, TYPES, State, TrustTier, TypedMemory, rank_of
from smara.knowledge.store import KnowledgeStore
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.observations.store import ObservationStore
from smara.search.models import MemoryAnswer, MemoryHit, ObservationHit, TaskAnswer, TaskHit
from smara.search.query import Query, analyze_query, check_query
from smara.search.records import (
    CodeJudge,
    RecordMatches,
    Scores,
    judge_code,
    no_code,
    text_of,
)
from smara.search.search import Search
from smara.search.weights import WEIGHTS, Weights
from smara.tasks.models import STATUSES, Task
from smara.tasks.store import TaskStore


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
        wanted = _MemoryFilter(
            types,
            files,
            tags,
            modules=modules,
            min_confidence=min_confidence,
            min_tier=min_tier,
            state=state,
        )
        _check_memories(query, limit, offset, wanted=wanted)
        try:
            with self._store.database.read(self._deadline_seconds) as session:
                return self._find(session, analyze_query(query), limit, offset, wanted)
        except DeadlineError:
            return MemoryAnswer(
                (), 0, ("The search took too long and was stopped. Ask for rarer words.",)
            )

    def _find(
        self, session: Session, query: Query, limit: int, offset: int, wanted: _MemoryFilter
    ) -> MemoryAnswer:
        project_no = None if self._messages.is_alone(session) else self._store.scope.project_no
        records, total = self._store.database.records, self._store.totals(session).total
        scores: Scores = RecordMatches(
            session,
            records,
            "memory",
            project_no=project_no,
            total=total,
            query=query,
            weights=self._weights.record_words,
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
            doubt = self._weights.boost.confidence_share * (1 - found[no][1])
            return scores[no][0] * (1 - doubt), no

        order = sorted(found, key=merit, reverse=True)
        best = merit(order[0])[0] if order else 1.0
        code = judge_code(
            self._freshness, session, "memory", numbers=order[offset : offset + limit]
        )
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


class _MemoryFilter:
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


def _check_memories(query: object, limit: object, offset: object, wanted: _MemoryFilter) -> None:
    check_query(query, limit, offset)
    for each in wanted.types or ():
        if each not in TYPES:
            raise InvalidInputError(f"types must be among {', '.join(TYPES)}; got {each!r}.")
    if wanted.min_tier is not None and wanted.min_tier not in TIERS:
        raise InvalidInputError(
            f"min_tier must be one of {', '.join(TIERS)}; got {wanted.min_tier!r}."
        )
    if wanted.state not in STATES:
        raise InvalidInputError(f"state must be one of {', '.join(STATES)}; got {wanted.state!r}.")


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
    ) -> list[ObservationHit]:
        """Return the observations and reflections that answer a query, best first."""
        check_query(query, limit)
        analyzed = analyze_query(query)
        try:
            with self._store.database.read(self._deadline_seconds) as session:
                project_no = (
                    None if self._messages.is_alone(session) else self._store.scope.project_no
                )
                records = self._store.database.records
                counted = session.one(
                    self._store.sql("SELECT count(*) FROM observations WHERE project_no = :project")
                )
                found = RecordMatches(
                    session,
                    records,
                    "observation",
                    project_no=project_no,
                    total=int(counted[0]) if counted else 0,
                    query=analyzed,
                    weights=self._weights.record_words,
                )
                scores = found.scored()
                numbers = list(scores)
                rows = (
                    dict(
                        self._store.select(
                            session, f" AND o.no IN ({marks(len(numbers))})", numbers
                        )
                    )
                    if numbers
                    else {}
                )
        except DeadlineError:
            return []
        wanted = [no for no in scores if no in rows and thread_id in (None, rows[no].thread_id)]
        wanted.sort(key=lambda no: (scores[no][0], no), reverse=True)
        top = scores[wanted[0]][0] if wanted else 1.0
        return [
            ObservationHit(
                rows[no],
                rank,
                round(scores[no][0] / top, 4),
                why=scores[no][1],
                snippet=snippet("\n".join((rows[no].text, *rows[no].details)), analyzed.texts),
            )
            for rank, no in enumerate(wanted[:limit], 1)
        ]


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
                hits, total = self._find(session, analyze_query(query), limit, offset, status)
                if include_messages:
                    hits = tuple(
                        replace(hit, messages=self._messages_of(session, hit.task)) for hit in hits
                    )
        except DeadlineError:
            return TaskAnswer(
                (), 0, messages, ("The search took too long and was stopped. Ask for rarer words.",)
            )
        return TaskAnswer(hits, total, messages)

    def _find(
        self, session: Session, query: Query, limit: int, offset: int, status: str | None
    ) -> tuple[tuple[TaskHit, ...], int]:
        project_no = None if self._messages.is_alone(session) else self._store.scope.project_no
        total = self._store.totals(session).all
        found = RecordMatches(
            session,
            self._store.database.records,
            "task",
            project_no=project_no,
            total=total,
            query=query,
            weights=self._weights.record_words,
        )
        scored = found.scored()
        named = self._store.find_asked_for(session, query.text)
        if named is not None:
            scored = {**scored, named: (2.0, ("matches the id",))}
        statuses: dict[int, str] = {}
        if scored:
            where = f"+t.project_no = :project AND t.no IN ({marks(len(scored))})"
            statement = self._store.sql(f"SELECT t.no, t.status FROM tasks t WHERE {where}")
            statuses = {row[0]: row[1] for row in session.all(statement, list(scored))}
        wanted = [no for no in scored if no in statuses and status in (None, statuses[no])]
        top = max((scored[no][0] for no in wanted), default=1.0)

        def merit(no: int) -> tuple[float, int]:
            bonus = 0.0 if statuses[no] == "closed" else self._weights.boost.unfinished
            return scored[no][0] / top + bonus, no

        wanted.sort(key=merit, reverse=True)
        best = merit(wanted[0])[0] if wanted else 1.0
        shown = wanted[offset : offset + limit]
        tasks = self._store.by_numbers(session, shown)
        hits = tuple(
            TaskHit(
                tasks[no],
                rank,
                round(merit(no)[0] / best, 4),
                why=scored[no][1],
                snippet=snippet(text_of(tasks[no]), query.texts),
            )
            for rank, no in enumerate(shown, offset + 1)
        )
        total = len(wanted) if status is not None else max(len(found.numbers), len(wanted))
        return hits, total

    def _messages_of(self, session: Session, task: Task) -> tuple[Message, ...]:
        rows = session.all(
            self._store.sql(
                "SELECT l.message_no AS no FROM task_messages l JOIN tasks t ON t.no = l.task_no"
                " WHERE t.project_no = :project AND t.id = ?"
                " UNION SELECT m.no FROM messages m WHERE m.project_no = :project AND m.task_id = ?"
                f" ORDER BY no DESC LIMIT {_MESSAGES_OF_A_TASK}"
            ),
            (task.id, task.id),
        )
        found = self._messages.by_numbers(session, sorted(row[0] for row in rows))
        return tuple(found[no] for no in sorted(found))
