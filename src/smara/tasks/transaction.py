"""Change the tasks of a project in one transaction.

The task writes of a project run one after the other, on both databases: a transaction
locks the row of totals until it ends. So a dependency cycle, a double claim or a wrong
total cannot arise between two writers. Every change writes the row and the totals, and
records an event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from smara.core.escape import to_storable
from smara.core.ids import IdMaker
from smara.database.database import Session, marks, parts
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import plain_value
from smara.database.projects import ProjectContext
from smara.secrets.redact import clean_name
from smara.tasks.models import EventKind, Task, TaskTotals
from smara.tasks.store import WAITS, StoredTask, TaskStore

_TEXTS = frozenset(
    {
        "title",
        "description",
        "summary",
        "close_reason",
        "original_content",
        "assignee",
        "session_id",
    }
)
_INDEXED = frozenset({"title", "description", "summary", "labels", "original_content"})


class TaskTransaction:
    """One transaction that changes tasks: actor, time, totals."""

    def __init__(
        self,
        store: TaskStore,
        session: Session,
        new_id: IdMaker,
        now_ms: int,
        actor: str,
        session_id: str | None,
    ) -> None:
        self.store = store
        self.session = session
        self.now_ms = now_ms
        self.actor = actor
        self.session_id = session_id
        self._new_id = new_id
        self._before = store.lock(session)
        self.totals = self._before
        if session_id is not None:
            store.see_session(session, session_id, now_ms)

    def end(self) -> None:
        """Write the totals, if they have changed."""
        if self.totals != self._before:
            self.store.put_totals(self.session, self.totals)

    def new_short_id(self, task_id: str, prefix: str) -> str:
        """Return the shortest free id of a new task."""
        return self.store.new_short_id(self.session, task_id, prefix, self.totals.all + 1)

    def insert(self, values: Mapping[str, Any], labels: Sequence[str], terms: RecordTerms) -> int:
        """Insert a task and return its number.

        The caller records the event when the task is complete.
        """
        no = self.store.insert(
            self.session, {name: _as_stored(name, value) for name, value in values.items()}
        )
        if labels:
            self.store.write_labels(
                self.session, no, [to_storable(label) for label in labels], is_new=True
            )
        self._add(self._count([no]))
        self.store.database.records.put(
            self.session, "task", self.store.scope.project_no, [(no, terms)]
        )
        return no

    def change(
        self,
        stored: StoredTask,
        kind: EventKind,
        fields: Mapping[str, Any],
        is_touched: bool = True,
    ) -> int:
        """Update a task's fields, record the event, return its number."""
        no, task = stored
        before = {name: plain_value(getattr(task, name)) for name in fields}
        after = {name: plain_value(value) for name, value in fields.items()}
        with self.counted(self._affected(no, task.status, fields.get("status", task.status))):
            self.write(no, {**fields, "updated_at": self.now_ms} if is_touched else fields)
        if not _INDEXED.isdisjoint(fields):
            self.index(no)
        return self.event(no, kind, before, after)

    def write(self, no: int, fields: Mapping[str, Any]) -> None:
        """Write fields of a task as they are stored."""
        values = {
            name: _as_stored(name, value) for name, value in fields.items() if name != "labels"
        }
        if values:
            self.store.write(self.session, no, values)
        if "labels" in fields:
            self.store.write_labels(
                self.session, no, [to_storable(label) for label in fields["labels"]]
            )

    def index(self, no: int) -> None:
        """Put the task as it is now into the index."""
        task = self.store.by_number(self.session, no)
        self.store.database.records.put(
            self.session, "task", self.store.scope.project_no, [(no, task_terms(task))]
        )

    def event(
        self, no: int, kind: EventKind, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> int:
        """Record what happened; the event's number."""
        values = (
            no,
            self._new_id(),
            kind,
            self.actor,
            self.session_id,
            self.now_ms,
            json.dumps(before),
            json.dumps(after),
        )
        return self.store.add_event(self.session, values)

    @contextmanager
    def counted(self, numbers: Iterable[int]) -> Iterator[None]:
        """Keep the totals right while tasks may become ready, blocked, or neither."""
        wanted = sorted(set(numbers))
        before = self._count(wanted)
        yield
        if wanted:
            self._add(self._count(wanted), before)

    def _affected(self, no: int, before: str, after: str) -> list[int]:
        """The tasks whose state may change with the status of one."""
        if before == after:
            return []
        if "closed" not in (before, after):
            return [no]
        blocked = [edge[0] for edge in self.store.needed_by(self.session, [no], "blocks")]
        parents = [edge[1] for edge in self.store.needs(self.session, [no], "parent-child")]
        return [no, *blocked, *parents]

    def _count(self, numbers: Sequence[int]) -> TaskTotals:
        counts = [0, 0, 0, 0, 0]
        for part in parts(numbers):
            for status, waits in self.session.all(
                self.store.sql(
                    f"SELECT t.status, {WAITS} FROM tasks t"
                    f" WHERE +t.project_no = :project AND t.no IN ({marks(len(part))})"
                ),
                part,
            ):
                counts[("open", "in_progress", "closed").index(status)] += 1
                if status != "closed":
                    counts[3] += status == "open" and not waits
                    counts[4] += bool(waits)
        return TaskTotals(*counts)

    def _add(self, after: TaskTotals, before: TaskTotals | None = None) -> None:
        have, old = self.totals, before or TaskTotals()
        self.totals = TaskTotals(
            have.open + after.open - old.open,
            have.in_progress + after.in_progress - old.in_progress,
            have.closed + after.closed - old.closed,
            ready=have.ready + after.ready - old.ready,
            blocked=have.blocked + after.blocked - old.blocked,
        )


class TaskTransactions:
    """The transactions of one project's tasks, with a default actor and session."""

    def __init__(self, project: ProjectContext) -> None:
        self.store = TaskStore(project.database, project.scope)
        self.clock = project.clock
        self.new_id = project.new_id
        self._project = project

    @contextmanager
    def begin(self, actor: str | None, session_id: str | None) -> Iterator[TaskTransaction]:
        """A transaction in which the tasks of this project may be changed."""
        who = clean_name(actor, "actor") if actor is not None else self._project.actor
        where = (
            clean_name(session_id, "session_id")
            if session_id is not None
            else self._project.settings.session
        )
        with self.store.database.write() as session:
            turn = TaskTransaction(
                self.store,
                session,
                self.new_id,
                now_ms=self.clock.now_ms(),
                actor=who,
                session_id=where,
            )
            yield turn
            turn.end()


def task_terms(task: Task) -> RecordTerms:
    """Return a task's index terms: title and all its texts."""
    return terms_of(
        task.title,
        "\n".join(filter(None, (task.full_description, task.summary, " ".join(task.labels)))),
    )


def _as_stored(name: str, value: Any) -> Any:
    if name == "metadata":
        return json.dumps(value, separators=(",", ":"))
    return to_storable(value) if name in _TEXTS and isinstance(value, str) else value
