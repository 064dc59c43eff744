"""Finding tasks by words: BM25 over titles and descriptions, a title counting for more.

The same words and terms as for messages, gathered newest first up to a limit, and ranked
here, so that both databases answer alike. An id is found as such.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from smara.core.text import snippet
from smara.database.database import Session, marks
from smara.database.records import record_no
from smara.errors import DeadlineError, InvalidInputError, SmaraError
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.search.models import TaskAnswer, TaskHit
from smara.search.query import Query, QueryTerm, analyze_query
from smara.search.search import Search
from smara.tasks.lookup import find_no
from smara.tasks.models import STATUSES, Task
from smara.tasks.store import TaskStore

TERM_LIMIT = 1_000
"""How many rows of one term are read, newest first."""
CANDIDATES = 150
_HEAD_WEIGHT = 3.0
_K1, _B = 1.2, 0.6
_UNFINISHED_BONUS = 0.05
_MOST = 1_000
_MESSAGES_OF_A_TASK = 5


class TaskSearch:
    """Searches the tasks of one project."""

    def __init__(self, store: TaskStore, messages: MessageStore, said: Search, deadline_seconds: float) -> None:
        self._store = store
        self._messages = messages
        self._said = said
        self._deadline_seconds = deadline_seconds

    def search(
        self, query: str, limit: int = 3, *, offset: int = 0, status: str | None = None, include_messages: bool = False
    ) -> TaskAnswer:
        """Tasks whose title or description answers a query, best first; never raises for what is asked.

        With ``include_messages``, each with its newest messages, and beside them what was said
        about it anywhere.
        """
        _check(query, limit, offset, status)
        messages = self._said.search(query, limit) if include_messages and query.strip() else None
        try:
            with self._store.database.read(self._deadline_seconds) as session:
                hits, total = self._find(session, analyze_query(query), limit, offset, status)
                if include_messages:
                    hits = tuple(replace(hit, messages=self._messages_of(session, hit.task)) for hit in hits)
        except DeadlineError:
            return TaskAnswer((), 0, messages, ("The search took too long and was stopped. Ask for rarer words.",))
        return TaskAnswer(hits, total, messages)

    def _find(
        self, session: Session, query: Query, limit: int, offset: int, status: str | None
    ) -> tuple[tuple[TaskHit, ...], int]:
        found = _Gathered(session, self._store, query, self._messages.is_alone(session))
        scored = found.scored()
        named = self._named(session, query.text)
        if named is not None:
            scored = {**scored, named: (2.0, ("matches the id",))}
        statuses = self._statuses(session, list(scored))
        wanted = [no for no in scored if no in statuses and status in (None, statuses[no])]
        top = max((scored[no][0] for no in wanted), default=1.0)

        def merit(no: int) -> tuple[float, int]:
            bonus = 0.0 if statuses[no] == "closed" else _UNFINISHED_BONUS
            return scored[no][0] / top + bonus, no

        wanted.sort(key=merit, reverse=True)
        best = merit(wanted[0])[0] if wanted else 1.0
        shown = wanted[offset : offset + limit]
        tasks = self._store.by_numbers(session, shown)
        hits = tuple(
            TaskHit(
                tasks[no], rank, round(merit(no)[0] / best, 4), scored[no][1],
                snippet(_text(tasks[no]), query.texts),
            )
            for rank, no in enumerate(shown, offset + 1)
        )  # fmt: skip
        total = len(wanted) if status is not None else max(len(found.numbers), len(wanted))
        return hits, total

    def _statuses(self, session: Session, numbers: Sequence[int]) -> dict[int, str]:
        if not numbers:
            return {}
        where = f"+t.project_no = :project AND t.no IN ({marks(len(numbers))})"
        rows = session.all(self._store.sql(f"SELECT t.no, t.status FROM tasks t WHERE {where}"), numbers)
        return {row[0]: row[1] for row in rows}

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

    def _named(self, session: Session, query: str) -> int | None:
        if len(query) > 100 or not query.strip() or " " in query.strip():
            return None
        try:
            return find_no(session, self._store, query)
        except SmaraError:
            return None


class _Gathered:
    """The rows that hold terms of a query, and what each term tells."""

    def __init__(self, session: Session, store: TaskStore, query: Query, is_alone: bool) -> None:
        self._session = session
        self._records = store.database.records
        self._wall = None if is_alone else store.scope.project_no
        totals = store.totals(session)
        self._total = max(totals.all, 1)
        self._weights: dict[str, float] = {}
        self._terms: dict[str, QueryTerm] = {}
        self._rows: dict[int, float] = {}
        for term in query.wanted:
            self._look_up(term)
        self.numbers = {record_no(row) for row in self._rows}

    def _look_up(self, term: QueryTerm) -> None:
        rows = self._records.match(self._session, term.text, self._wall, "task", TERM_LIMIT, term.is_prefix)
        count = len(rows)
        weight = math.log(1 + (max(self._total - count, 0) + 0.5) / (count + 0.5))
        self._weights[term.text] = weight * (0.3 if term.is_weak else 1.0) * (0.5 if term.kind == "part" else 1.0)
        self._terms[term.text] = term
        weight, known = self._weights[term.text], self._rows
        for row in rows:
            known[row] = known.get(row, 0.0) + weight

    def scored(self) -> dict[int, tuple[float, tuple[str, ...]]]:
        """Task number → score and reasons; of a long task, its best piece."""
        best = sorted(zip(self._rows.values(), self._rows, strict=True), reverse=True)[:CANDIDATES]
        rows = [row for _, row in best]
        texts = self._records.texts(self._session, rows)
        split = {row: (head.split(), body.split()) for row, (head, body) in texts.items()}
        average = sum(len(head) + len(body) for head, body in split.values()) / len(split) if split else 1.0
        found: dict[int, tuple[float, tuple[str, ...]]] = {}
        for row, (head, body) in split.items():
            score, why = self._score(head, body, average or 1.0)
            no = record_no(row)
            if score > found.get(no, (0.0, ()))[0]:
                found[no] = (score, why)
        return found

    def _score(self, head: Sequence[str], body: Sequence[str], average: float) -> tuple[float, tuple[str, ...]]:
        norm = _K1 * (1 - _B + _B * (len(head) + len(body)) / average)
        score = 0.0
        why: dict[str, None] = {}
        for text, weight in self._weights.items():
            heads = _count(head, text, self._terms[text].is_prefix)
            frequency = _HEAD_WEIGHT * heads + _count(body, text, self._terms[text].is_prefix)
            if frequency:
                score += weight * frequency * (_K1 + 1) / (frequency + norm)
                why[f"{self._terms[text].word} in the {'title' if heads else 'text'}"] = None
        return score, tuple(why)


def _count(terms: Sequence[str], text: str, is_prefix: bool) -> int:
    return sum(term.startswith(text) for term in terms) if is_prefix else terms.count(text)


def _text(task: Task) -> str:
    return "\n".join(filter(None, (task.title, task.full_description, task.summary)))


def _check(query: object, limit: object, offset: object, status: object) -> None:
    if not isinstance(query, str):
        raise InvalidInputError(f"query must be a text, not {type(query).__name__}.")
    for name, value, least in (("limit", limit, 1), ("offset", offset, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
            raise InvalidInputError(f"{name} must be a whole number from {least} to {_MOST}; got {value!r}.")
    if status is not None and status not in STATUSES:
        raise InvalidInputError(f"status must be one of {', '.join(STATUSES)}; got {status!r}.")
