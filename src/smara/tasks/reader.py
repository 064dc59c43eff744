"""Read tasks: look them up, list them, show trees and history.

Before it lists tasks it releases those of sessions that are gone.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from smara.core import log
from smara.core.escape import to_storable
from smara.core.scope import author_of
from smara.core.validate import check_page, one_of
from smara.database.database import Session, marks, parts
from smara.errors import DatabaseError
from smara.tasks import prepare
from smara.tasks.change import TaskJournal
from smara.tasks.dependencies import longest_chain
from smara.tasks.models import (
    STATUSES,
    TYPES,
    ReadyTasks,
    Task,
    TaskDetails,
    TaskEvent,
    TaskPage,
    TaskProgress,
    TaskStatus,
    TaskTotals,
    TaskType,
    TreeNode,
)
from smara.tasks.store import WAITS, WAITS_FOR_NOTHING, StoredTask, TaskStore

READY = f" AND {WAITS_FOR_NOTHING} ORDER BY t.priority, t.created_at, t.no LIMIT ? OFFSET ?"
"""The end of a statement that gives open tasks that wait for nothing, the most urgent first."""
_LISTED: tuple[tuple[TaskStatus, str], ...] = (
    ("in_progress", "t.priority, t.created_at, t.no"),
    ("open", "t.priority, t.created_at, t.no"),
    ("closed", "t.closed_at DESC, t.no DESC"),
)
_LABEL = "t.no IN (SELECT task_no FROM task_labels WHERE project_no = :project AND label = ?)"
_CHILD_OF = (
    "t.no IN (SELECT d.task_no FROM task_dependencies d WHERE d.type = 'parent-child' AND "
    "d.depends_on_no = ?)"
)
_DEEPEST = 100
_PAGE = 500


class TaskReader:
    """The readings of one project's tasks.

    ``task_id`` is the UUID of a task, its short id with or without the part before the hyphen, or
    the beginning of one of these, as long as only one fits.
    """

    def __init__(
        self,
        journal: TaskJournal,
        linked_messages: Callable[[Session, int, str], tuple[str, ...]],
    ) -> None:
        self._journal = journal
        self._store = journal.store
        self._settings = journal.project.settings
        self._linked_messages = linked_messages

    def get(self, task_id: str) -> Task:
        """Return a task.

        Raises:
            NotFoundError: If there is no such task.
            InvalidInputError: If several are called so.
        """
        return self._store.ask(self._store.require, task_id).task

    def find(self, task_id: str) -> Task | None:
        """Return a task, or ``None``.

        Raises:
            InvalidInputError: If several are called so.
        """
        return self._store.ask(self._store.find, task_id)

    def show(self, task_id: str) -> TaskDetails:
        """Return a task with dependencies, dependents, children and messages.

        Raises:
            NotFoundError: If there is no such task.
        """
        store = self._store
        with store.database.read() as session:
            no, task = store.require(session, task_id)
            ahead, behind = store.waits(session, [no]), store.waits(session, [no], is_awaited=True)
            related = session.all(
                store.sql(
                    "SELECT depends_on_no, 0 FROM task_dependencies"
                    " WHERE project_no = :project AND type = 'related' AND task_no = ?"
                    " UNION ALL SELECT task_no, 1 FROM task_dependencies"
                    " WHERE project_no = :project AND type = 'related' AND depends_on_no = ?"
                    " ORDER BY 2, 1"
                ),
                (no, no),
            )
            awaited, waiters = [edge[1] for edge in ahead], [edge[0] for edge in behind]
            others = [row[0] for row in related]
            around = store.by_numbers(session, [*awaited, *waiters, *others])

            def tasks(numbers: Iterable[int]) -> tuple[Task, ...]:
                return tuple(around[number] for number in dict.fromkeys(numbers))

            blocking = tuple(each for each in tasks(awaited) if each.status != "closed")
            return TaskDetails(
                task,
                bool(blocking) and task.status != "closed",
                blocking,
                dependents=tasks(waiters),
                children=tasks(edge[1] for edge in ahead if edge[2] == "parent-child"),
                parents=tasks(edge[0] for edge in behind if edge[2] == "parent-child"),
                related=tasks(others),
                progress=store.progress(session, no),
                linked_message_ids=self._linked_messages(session, no, task.id),
            )

    def ready(
        self,
        *,
        limit: int = 5,
        offset: int = 0,
        type: TaskType | None = None,
        label: str | None = None,
        assignee: str | None = None,
    ) -> ReadyTasks:
        """Return claimable tasks by priority, then age.

        Args:
            limit: The most tasks on the page.
            offset: How many to skip.
            type: Only tasks of this type.
            label: Only tasks with this label.
            assignee: Only tasks of this person.

        Raises:
            InvalidInputError: If a value is impossible.
        """
        check_page(limit, offset)
        self._expire_quietly()
        with self._store.database.read() as session:
            where, values = self._filter(session, type=type, label=label, assignee=assignee)
            found = self._store.select(
                session,
                f" AND t.status = 'open'{where}{READY}",
                (*values, limit + 1, offset),
            )
            totals = self._store.state(session)
        return ReadyTasks(*_page(found, limit, offset), totals.ready, totals.blocked)

    def list(
        self,
        *,
        status: TaskStatus | None = None,
        type: TaskType | None = None,
        label: str | None = None,
        assignee: str | None = None,
        priority: int | None = None,
        parent: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> TaskPage:
        """List tasks: in progress, open by priority, closed newest first.

        Args:
            status: Only tasks of this status.
            type: Only tasks of this type.
            label: Only tasks with this label.
            assignee: Only tasks of this person.
            priority: Only tasks of this priority.
            parent: Only the children of this task.
            limit: The most tasks on the page.
            offset: How many to skip.

        Raises:
            InvalidInputError: If a value is impossible.
            NotFoundError: If there is no such parent.
        """
        check_page(limit, offset)
        if status is not None:
            one_of(status, STATUSES, "status")
        self._expire_quietly()
        found: builtins.list[StoredTask] = []
        skip = offset
        with self._store.database.read() as session:
            where, values = self._filter(
                session, type=type, label=label, assignee=assignee, priority=priority, parent=parent
            )
            for each, order in _LISTED:
                if status not in (None, each):
                    continue
                rest = f" AND t.status = ?{where}"
                if skip:
                    there = getattr(self._store.state(session), each)
                    if values:  # the totals know nothing of filters
                        there = len(self._store.numbers(session, rest, (each, *values)))
                    if skip >= there:
                        skip -= there
                        continue
                found += self._store.select(
                    session,
                    f"{rest} ORDER BY {order} LIMIT ? OFFSET ?",
                    (each, *values, limit + 1 - len(found), skip),
                )
                skip = 0
                if len(found) > limit:
                    break
        return TaskPage(*_page(found, limit, offset))

    def _filter(
        self, session: Session, *, parent: str | None = None, **given: Any
    ) -> tuple[str, builtins.list[Any]]:
        """Return the conditions that a caller gives as the rest of a ``WHERE``, and its values."""
        checks: dict[str, tuple[str, Callable[[Any], Any]]] = {
            "type": ("t.type = ?", lambda value: one_of(value, TYPES, "type")),
            "assignee": ("t.assignee = ?", to_storable),
            "priority": ("t.priority = ?", prepare.clean_priority),
            "label": (_LABEL, to_storable),
        }
        found = [
            (checks[name][0], checks[name][1](value))
            for name, value in given.items()
            if value is not None
        ]
        if parent is not None:
            found.append((_CHILD_OF, self._store.require(session, parent).no))
        where = "".join(f" AND {condition}" for condition, _ in found)
        return where, [value for _, value in found]

    def blocked(self, tasks: Iterable[Task]) -> set[str]:
        """Return the ids of tasks that wait for unfinished ones.

        Args:
            tasks: The tasks to look at; closed ones wait for nothing.
        """
        ids = [task.id for task in tasks if task.status != "closed"]
        statement = f"SELECT t.id FROM tasks t WHERE t.project_no = :project AND {WAITS}"
        rows = self._store.ask(self._store.rows, f"{statement} AND t.id IN (:some)", some=ids)
        return {row[0] for row in rows}

    def tree(self, task_id: str | None = None) -> builtins.list[TreeNode]:
        """Return the tree of tasks below one, or of all roots.

        Args:
            task_id: The root; without it, every task that has no parent is one.

        Raises:
            NotFoundError: If there is no such task.
        """
        with self._store.database.read() as session:
            if task_id is not None:
                numbers = [self._store.require_no(session, task_id)]
            else:
                numbers = self._store.numbers(
                    session,
                    " AND NOT EXISTS (SELECT 1 FROM task_dependencies d WHERE d.task_no = t.no AND "
                    "d.type = 'parent-child')"
                    " ORDER BY t.priority, t.created_at, t.no",
                )
            return _Forest(session, self._store, numbers).nodes(numbers, "root")

    def critical_path(self, task_id: str | None = None) -> builtins.list[Task]:
        """Return the longest chain of unfinished waiting tasks.

        Args:
            task_id: The last task of the chain; without it, the longest of all chains is given.

        Raises:
            NotFoundError: If there is no such task.
        """
        with self._store.database.read() as session:
            last = None if task_id is None else self._store.require(session, task_id)
            if last is not None and last.task.status == "closed":
                return []
            edges = self._store.all_edges(session, is_unfinished_only=True)
            chain = longest_chain(edges, None if last is None else last.no)
            return list(self._store.by_numbers(session, chain).values())

    def progress(self, task_id: str) -> TaskProgress:
        """Return the progress of everything below a task.

        Raises:
            NotFoundError: If there is no such task.
        """
        with self._store.database.read() as session:
            no = self._store.require_no(session, task_id)
            return self._store.progress(session, no) or TaskProgress(0, 0)

    def totals(self) -> TaskTotals:
        """Count tasks by status, ready, and blocked."""
        return self._store.ask(self._store.state)

    def problems(self) -> builtins.list[str]:
        """Return the faults of the totals; counts every task, for the doctor."""
        with self._store.database.snapshot() as session:
            totals, counted = self._store.state(session), self._store.count(session)
        fault = f"The totals of tasks say {totals}, and there are {counted}."
        return [] if totals == counted else [fault]

    def history(self, task_id: str, *, limit: int = 50) -> builtins.list[TaskEvent]:
        """Return a task's events, newest first.

        Args:
            task_id: The task.
            limit: The most events.

        Raises:
            NotFoundError: If there is no such task.
        """
        check_page(limit)
        with self._store.database.read() as session:
            no, task = self._store.require(session, task_id)
            events = self._store.history(session, no, limit)
        return [TaskEvent(task_id=task.id, **event.facts) for event in events]

    def author(self, task_id: str) -> str:
        """Return who wrote a task's title.

        Args:
            task_id: The task.

        Returns:
            ``person``, ``agent`` or ``import``.

        Raises:
            NotFoundError: If there is no such task.
        """
        titled = next(
            (each for each in self.history(task_id, limit=100) if "title" in each.after), None
        )
        if titled is None:
            return "person"
        return "import" if titled.kind == "imported" else author_of(titled.actor)

    def export(self) -> Iterator[Task]:
        """Yield every task, the oldest first, a few hundred at a time."""
        after = (-(2**62), 0)
        while page := self._store.ask(
            self._store.select,
            " AND (t.created_at > ? OR (t.created_at = ? AND t.no > ?)) ORDER BY "
            "t.created_at, t.no LIMIT ?",
            (after[0], *after, _PAGE),
        ):
            yield from (stored.task for stored in page)
            after = (page[-1].task.created_at, page[-1].no)

    # what gone sessions hold

    def expire(self) -> builtins.list[Task]:
        """Release the tasks of gone sessions and return them.

        Listing and changing tasks do this by themselves.
        """
        with self._journal.begin() as turn:
            return turn.expire(self._silent_since(turn.now_ms))

    def _silent_since(self, now_ms: int) -> int | None:
        minutes = self._settings.claim_expires_after_minutes
        return now_ms - minutes * 60_000 if minutes else None

    def _expire_quietly(self) -> None:
        """Expire claims before looking; a store that cannot be written is shown as it is."""
        if not self._store.ask(
            self._store.abandoned, self._silent_since(self._journal.project.clock.now_ms())
        ):
            return
        try:
            self.expire()
        except DatabaseError as error:
            log.warning("task.expire_failed", error=error.code)


class _Forest:
    """The tasks below some, and what they need, read level by level and then put together."""

    def __init__(self, session: Session, store: TaskStore, roots: Sequence[int]) -> None:
        self._session = session
        self._store = store
        self._children: dict[int, list[int]] = {}
        self._needs: dict[int, list[int]] = {}
        numbers = dict.fromkeys(roots)
        level = list(roots)
        while level:
            fresh: dict[int, None] = {}
            for waiter, awaited, type_ in store.waits(session, level):
                branches = self._needs if type_ == "blocks" else self._children
                branches.setdefault(waiter, []).append(awaited)
                fresh[awaited] = None
            level = [no for no in fresh if no not in numbers]
            numbers.update(dict.fromkeys(level))
        self._tasks = store.by_numbers(session, numbers)
        self._waiting: set[int] = set()
        for part in parts(list(numbers)):
            self._waiting.update(
                store.numbers(session, f" AND t.no IN ({marks(len(part))}) AND {WAITS}", part)
            )
        self._opened: set[int] = set()

    def nodes(self, numbers: Sequence[int], relation: Any, depth: int = 0) -> list[TreeNode]:
        """Return the nodes of some tasks, the most urgent first."""
        nodes: list[TreeNode] = []
        for no in sorted(
            [no for no in numbers if no in self._tasks],
            key=lambda n: (self._tasks[n].priority, self._tasks[n].created_at, n),
        ):
            task = self._tasks[no]
            children, needs = self._children.get(no, ()), self._needs.get(no, ())
            is_repeated = no in self._opened or depth > _DEEPEST
            below: list[TreeNode] = []
            if not is_repeated:
                self._opened.add(no)
                below += self.nodes(children, "child", depth + 1)
                below += self.nodes(needs, "needs", depth + 1)
            nodes.append(
                TreeNode(
                    task,
                    relation,
                    no in self._waiting and task.status != "closed",
                    progress=self._store.progress(self._session, no) if children else None,
                    nodes=tuple(below),
                    is_repeated=is_repeated and bool(children or needs),
                )
            )
        return nodes


def _page(
    matches: Sequence[StoredTask], limit: int, offset: int
) -> tuple[tuple[Task, ...], int | None]:
    """Return a page of one task more than fits, and where the next one begins."""
    tasks = tuple(stored.task for stored in matches[:limit])
    return tasks, offset + limit if len(matches) > limit else None
