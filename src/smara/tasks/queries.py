"""Query tasks: ready, listed, tree, progress, history.

`require_task` finds a task by UUID, short id or a prefix of either.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

from smara.core.escape import to_storable
from smara.database.database import Session, marks
from smara.errors import InvalidInputError
from smara.tasks import prepare
from smara.tasks.dependencies import longest_chain
from smara.tasks.models import (
    ReadyTasks,
    Task,
    TaskDetails,
    TaskEvent,
    TaskPage,
    TaskProgress,
    TaskStatus,
    TaskTotals,
    TreeNode,
)
from smara.tasks.store import WAITS, StoredTask, TaskStore


def require_task(session: Session, store: TaskStore, task_id: object) -> StoredTask:
    """Return the task, or raise NotFoundError."""
    no = store.require_no(session, task_id)
    return StoredTask(no, store.by_number(session, no))


_LISTED: tuple[tuple[TaskStatus, str], ...] = (
    ("in_progress", "t.priority, t.created_at, t.no"),
    ("open", "t.priority, t.created_at, t.no"),
    ("closed", "t.closed_at DESC, t.no DESC"),
)
_CHILD_OF = (
    "t.no IN (SELECT d.task_no FROM task_dependencies d WHERE d.type = 'parent-child' AND "
    "d.depends_on_no = ?)"
)
_DEEPEST = 100
_PAGE = 500

Filter = tuple[str, Any]
"""A condition on ``t`` with one mark, and its value."""


class TaskQueries:
    """Reads the tasks of one project; changes nothing."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    def ready(
        self, session: Session, filters: Sequence[Filter], limit: int, offset: int
    ) -> ReadyTasks:
        totals = self._store.totals(session)
        found = self._store.select(
            session,
            f" AND t.status = 'open'{where_clause(filters)} AND NOT {WAITS}"
            " ORDER BY t.priority, t.created_at, t.no LIMIT ? OFFSET ?",
            (*filter_values(filters), limit + 1, offset),
        )
        tasks, following = _cut(found, limit, offset)
        return ReadyTasks(tasks, following, totals.ready, totals.blocked)

    def list(
        self,
        session: Session,
        status: TaskStatus | None,
        filters: Sequence[Filter],
        limit: int,
        offset: int,
    ) -> TaskPage:
        found: list[StoredTask] = []
        skip = offset
        for each, order in _LISTED:
            if status not in (None, each):
                continue
            if skip:
                there = self._count(session, each, filters)
                if skip >= there:
                    skip -= there
                    continue
            found += self._store.select(
                session,
                f" AND t.status = ?{where_clause(filters)} ORDER BY {order} LIMIT ? OFFSET ?",
                (each, *filter_values(filters), limit + 1 - len(found), skip),
            )
            skip = 0
            if len(found) > limit:
                break
        return TaskPage(*_cut(found, limit, offset))

    def _count(self, session: Session, status: TaskStatus, filters: Sequence[Filter]) -> int:
        if not filters:
            return int(getattr(self._store.totals(session), status))
        row = session.one(
            self._store.sql(
                "SELECT count(*) FROM tasks t WHERE t.project_no = :project AND t.status = "
                f"?{where_clause(filters)}"
            ),
            (status, *filter_values(filters)),
        )
        return int(row[0]) if row else 0

    def show(
        self, session: Session, stored: StoredTask, linked_message_ids: tuple[str, ...]
    ) -> TaskDetails:
        store, no = self._store, stored.no
        blockers = [edge[1] for edge in store.needs(session, [no], "blocks")]
        parents = [edge[1] for edge in store.needs(session, [no], "parent-child")]
        blocked = [edge[0] for edge in store.needed_by(session, [no], "blocks")]
        children = [edge[0] for edge in store.needed_by(session, [no], "parent-child")]
        related = [edge[1] for edge in store.needs(session, [no], "related")]
        related += [edge[0] for edge in store.needed_by(session, [no], "related")]
        around = store.by_numbers(session, [*blockers, *parents, *blocked, *children, *related])

        def tasks(numbers: Sequence[int]) -> tuple[Task, ...]:
            return tuple(around[number] for number in dict.fromkeys(numbers) if number in around)

        blocking = tuple(task for task in tasks([*blockers, *children]) if task.status != "closed")
        return TaskDetails(
            stored.task,
            bool(blocking) and stored.task.status != "closed",
            blocking,
            dependents=tasks([*blocked, *parents]),
            children=tasks(children),
            parents=tasks(parents),
            related=tasks(related),
            progress=store.progress(session, no),
            linked_message_ids=linked_message_ids,
        )

    def blocked(self, session: Session, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for start in range(0, len(ids), _PAGE):
            part = ids[start : start + _PAGE]
            numbers = self._store.numbers(
                session, f" AND t.id IN ({marks(len(part))}) AND {WAITS}", part
            )
            found.update(task.id for task in self._store.by_numbers(session, numbers).values())
        return found

    def progress(self, session: Session, no: int) -> TaskProgress:
        return self._store.progress(session, no) or TaskProgress(0, 0)

    def totals(self, session: Session) -> TaskTotals:
        return self._store.totals(session)

    def history(self, session: Session, stored: StoredTask, limit: int) -> builtins.list[TaskEvent]:
        return self._store.events(session, stored.no, stored.task.id, limit)

    def critical_path(self, session: Session, last: StoredTask | None) -> builtins.list[Task]:
        edges = self._store.all_edges(session, is_unfinished_only=True)
        chain = longest_chain(edges, None if last is None else last.no)
        if last is not None and last.task.status == "closed":
            return []
        return list(self._store.by_numbers(session, chain).values())

    def tree(self, session: Session, root: StoredTask | None) -> builtins.list[TreeNode]:
        if root is not None:
            numbers = [root.no]
        else:
            numbers = self._store.numbers(
                session,
                " AND NOT EXISTS (SELECT 1 FROM task_dependencies d WHERE d.task_no = t.no AND "
                "d.type = 'parent-child')"
                " ORDER BY t.priority, t.created_at, t.no",
            )
        return _Forest(session, self._store, numbers).nodes(numbers, "root")

    def pages(self) -> Iterator[Task]:
        """Every task, by age, a few hundred in memory at a time."""
        after = (-(2**62), 0)
        while True:
            with self._store.database.read() as session:
                page = self._store.select(
                    session,
                    " AND (t.created_at > ? OR (t.created_at = ? AND t.no > ?)) ORDER BY "
                    "t.created_at, t.no LIMIT ?",
                    (after[0], *after, _PAGE),
                )
            if not page:
                return
            yield from (stored.task for stored in page)
            after = (page[-1].task.created_at, page[-1].no)


class _Forest:
    """The tasks below some, and what they need, read level by level and then put together."""

    def __init__(self, session: Session, store: TaskStore, roots: Sequence[int]) -> None:
        self._session = session
        self._store = store
        self._children: dict[int, list[int]] = {}
        self._needs: dict[int, list[int]] = {}
        known = dict.fromkeys(roots)
        level = list(roots)
        while level:
            fresh: dict[int, None] = {}
            for child, parent in store.needed_by(session, level, "parent-child"):
                self._children.setdefault(parent, []).append(child)
                fresh[child] = None
            for task, needed in store.needs(session, level, "blocks"):
                self._needs.setdefault(task, []).append(needed)
                fresh[needed] = None
            level = [no for no in fresh if no not in known]
            known.update(dict.fromkeys(level))
        self._tasks = store.by_numbers(session, known)
        self._waiting = store.waiting(session, list(known))
        self._opened: set[int] = set()

    def nodes(self, numbers: Sequence[int], relation: Any, depth: int = 0) -> list[TreeNode]:
        order = sorted(
            (no for no in numbers if no in self._tasks),
            key=lambda no: (self._tasks[no].priority, self._tasks[no].created_at, no),
        )
        return [self._node(no, relation, depth) for no in order]

    def _node(self, no: int, relation: Any, depth: int) -> TreeNode:
        task = self._tasks[no]
        is_blocked = no in self._waiting and task.status != "closed"
        progress = self._store.progress(self._session, no) if no in self._children else None
        if no in self._opened or depth > _DEEPEST:
            has_more = bool(self._children.get(no) or self._needs.get(no))
            return TreeNode(
                task, relation, is_blocked, progress=progress, nodes=(), is_repeated=has_more
            )
        self._opened.add(no)
        below = self.nodes(self._children.get(no, ()), "child", depth + 1)
        below += self.nodes(self._needs.get(no, ()), "needs", depth + 1)
        return TreeNode(task, relation, is_blocked, progress=progress, nodes=tuple(below))


def filters_for(
    session: Session,
    store: TaskStore,
    *,
    type: str | None = None,
    label: str | None = None,
    assignee: str | None = None,
    priority: int | None = None,
    parent: str | None = None,
) -> list[Filter]:
    """The conditions a caller asks for."""
    found: list[Filter] = []
    if type is not None:
        found.append(("t.type = ?", prepare.clean_type(type)))
    if assignee is not None:
        found.append(("t.assignee = ?", to_storable(assignee)))
    if priority is not None:
        found.append(("t.priority = ?", prepare.clean_priority(priority)))
    if label is not None:
        tagged = store.sql(
            "t.no IN (SELECT l.task_no FROM task_labels l WHERE l.project_no = :project AND "
            "l.label = ?)"
        )
        found.append((tagged, to_storable(label)))
    if parent is not None:
        found.append((_CHILD_OF, require_task(session, store, parent).no))
    return found


def check_page(limit: object, offset: object) -> None:
    """Refuse a page that cannot be."""
    for name, value, least in (("limit", limit, 1), ("offset", offset, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
            raise InvalidInputError(
                f"{name} must be a whole number, at least {least}; got {value!r}.", field=name
            )


def where_clause(filters: Sequence[Filter]) -> str:
    """Filters as the tail of a ``WHERE``."""
    return "".join(f" AND {condition}" for condition, _ in filters)


def filter_values(filters: Sequence[Filter]) -> list[Any]:
    """The values of filters, in order."""
    return [value for _, value in filters]


def _cut(
    found: Sequence[StoredTask], limit: int, offset: int
) -> tuple[tuple[Task, ...], int | None]:
    """A page out of what was found, one more than wanted, and where the next one begins."""
    return tuple(stored.task for stored in found[:limit]), offset + limit if len(
        found
    ) > limit else None
