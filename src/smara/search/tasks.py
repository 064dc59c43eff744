"""Finding tasks by the words of their titles and descriptions; an id is found as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smara.core.text import snippet
from smara.database.database import Session, marks
from smara.errors import DeadlineError, InvalidInputError
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.search.models import TaskAnswer, TaskHit
from smara.search.query import Query, analyze_query
from smara.search.records import GatheredRecords
from smara.search.search import Search
from smara.tasks.models import STATUSES, Task
from smara.tasks.store import TaskStore

_UNFINISHED_BONUS = 0.05
_MOST = 1_000
_MESSAGES_OF_A_TASK = 5


class TaskSearch:
    """Searches the tasks of one project."""

    def __init__(
        self, store: TaskStore, messages: MessageStore, said: Search, deadline_seconds: float
    ) -> None:
        self._store = store
        self._messages = messages
        self._said = said
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
        """Tasks whose title or description answers a query, best first; never raises for what is
        asked.

        With ``include_messages``, each with its newest messages, and beside them what was said
        about it anywhere.
        """
        _check(query, limit, offset, status=status)
        messages = (
            self._said.search(query, limit, sources=("messages",))
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
        wall = None if self._messages.is_alone(session) else self._store.scope.project_no
        total = self._store.totals(session).all
        found = GatheredRecords(
            session, self._store.database.records, "task", wall=wall, total=total, query=query
        )
        scored = found.scored()
        named = self._store.find_asked_for(session, query.text)
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
                tasks[no],
                rank,
                round(merit(no)[0] / best, 4),
                why=scored[no][1],
                snippet=snippet(_text(tasks[no]), query.texts),
            )
            for rank, no in enumerate(shown, offset + 1)
        )
        total = len(wanted) if status is not None else max(len(found.numbers), len(wanted))
        return hits, total

    def _statuses(self, session: Session, numbers: Sequence[int]) -> dict[int, str]:
        if not numbers:
            return {}
        where = f"+t.project_no = :project AND t.no IN ({marks(len(numbers))})"
        rows = session.all(
            self._store.sql(f"SELECT t.no, t.status FROM tasks t WHERE {where}"), numbers
        )
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


def _text(task: Task) -> str:
    return "\n".join(filter(None, (task.title, task.full_description, task.summary)))


def _check(query: object, limit: object, offset: object, status: object) -> None:
    if not isinstance(query, str):
        raise InvalidInputError(f"query must be a text, not {type(query).__name__}.")
    for name, value, least in (("limit", limit, 1), ("offset", offset, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
            raise InvalidInputError(
                f"{name} must be a whole number from {least} to {_MOST}; got {value!r}."
            )
    if status is not None and status not in STATUSES:
        raise InvalidInputError(f"status must be one of {', '.join(STATUSES)}; got {status!r}.")
