"""Import many tasks at once; repeating an import is safe.

Every field that cannot be imported is named in the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from smara.core.clock import check_time
from smara.core.ids import key_of
from smara.core.scope import require_id
from smara.core.validate import one_of
from smara.database.project_store import Tombstones, plain_value
from smara.errors import DependencyCycleError, InvalidInputError
from smara.secrets.redact import clean_name
from smara.tasks.change import TaskChange, TaskJournal, dependency_facts, restore_fields
from smara.tasks.dependencies import topological_order, waits_for
from smara.tasks.models import DEPENDENCY_TYPES, NewTask, TaskImportReport, TaskRefusal
from smara.tasks.prepare import clean_fields
from smara.tasks.store import StoredTask

_BATCH = 200
_NAMES = (
    "title", "description", "status", "priority", "type", "assignee", "session_id", "created_at",
    "created_by",
    "closed_at", "close_reason", "summary", "labels", "metadata",
)  # fmt: skip


class _Dependency(NamedTuple):
    """A dependency that an imported task names: its number and name, the other, the type."""

    no: int
    name: str
    other: str
    type: str


class TaskImporter:
    """One import of tasks."""

    def __init__(self, journal: TaskJournal, prefix: str, actor: str | None) -> None:
        self._journal = journal
        self._prefix = prefix
        self._actor = actor
        self._counts: Counter[str] = Counter()
        self._refused: list[TaskRefusal] = []
        self._numbers: dict[str, int] = {}
        self._dependencies: list[_Dependency] = []
        self._updated: set[int] = set()
        """Tasks that were there, and whose dependencies become what came in."""

    def run(self, tasks: Iterable[NewTask]) -> TaskImportReport:
        """Put the tasks, then their dependencies."""
        stream = iter(tasks)
        while batch := list(islice(stream, _BATCH)):
            with self._journal.begin(self._actor) as turn:
                for new in batch:
                    self._put(turn, new)
        updated = sorted(self._updated)
        for start in range(0, len(updated), _BATCH):
            with self._journal.begin(self._actor) as turn:
                self._undepend(turn, updated[start : start + _BATCH])
        for start in range(0, len(self._dependencies), 5 * _BATCH):
            with self._journal.begin(self._actor) as turn:
                self._depend(turn, self._dependencies[start : start + 5 * _BATCH])
        return TaskImportReport(**self._counts, refused=tuple(self._refused))

    def _put(self, turn: TaskChange, new: NewTask) -> None:
        name = str(new.short_id or new.id or new.title)
        try:
            fields = _check_fields(new, turn.now_ms)
            short_id = None if new.short_id is None else clean_name(new.short_id, "short_id")
            task_id = None if new.id is None else require_id(new.id, "id")
            needed = [
                (require_id(other, "depends_on"), one_of(type_, DEPENDENCY_TYPES, "type"))
                for other, type_ in new.depends_on
            ]
        except InvalidInputError as error:
            self._refused.append(TaskRefusal(name, "task", str(error)))
            return
        no = _find(turn, task_id, short_id)
        names = [key_of(each) for each in (task_id, short_id) if each is not None]
        stones = Tombstones(turn.store.database, turn.store.scope)
        if no is None and stones.erased(turn.session, "task", names):
            self._refused.append(TaskRefusal(name, "task", "it was erased here"))
            return
        if no is None:
            claimed_at = fields["updated_at"] if fields["status"] == "in_progress" else None
            no = turn.insert(
                self._prefix, {**fields, "claimed_at": claimed_at}, id=task_id, short_id=short_id
            )
            turn.event(no, "imported", {}, {"title": fields["title"], "status": fields["status"]})
            self._counts["added"] += 1
        elif self._bring_up_to_date(turn, no, new, fields=fields):
            self._updated.add(no)
        else:
            needed = []
        self._numbers |= dict.fromkeys(names, no)
        self._dependencies += [_Dependency(no, name, other, type_) for other, type_ in needed]

    def _bring_up_to_date(
        self, turn: TaskChange, no: int, new: NewTask, fields: dict[str, Any]
    ) -> bool:
        """Update a task that is there; ``False`` when it was changed here since, and stays."""
        stored = turn.store.stored(turn.session, no)
        task = stored.task
        updated_at = turn.now_ms if new.updated_at is None else fields["updated_at"]
        if task.updated_at > updated_at:
            self._counts["newer_here"] += 1
            return False
        # What the import does not say stays as it was.
        names = [
            name
            for name in _NAMES
            if name not in ("created_at", "created_by") or getattr(new, name) is not None
        ]
        have = {name: plain_value(getattr(task, name)) for name in names}
        have["description"] = task.full_description
        changed = {
            name: value for name in names if (value := plain_value(fields[name])) != have[name]
        }
        self._counts["changed" if changed else "unchanged"] += 1
        if changed:
            changed = {**restore_fields(task), **changed, "updated_at": updated_at}
            turn.change(stored, "imported", changed, is_touched=False)
        return True

    def _undepend(self, turn: TaskChange, numbers: Sequence[int]) -> None:
        """Remove what updated tasks no longer depend on."""
        named: dict[int, set[tuple[str, str]]] = {}
        for each in self._dependencies:
            named.setdefault(each.no, set()).add((key_of(each.other), each.type))
        for no, task in turn.store.by_numbers(turn.session, numbers).items():
            for dependency in task.dependencies:
                names = {
                    (key_of(name), dependency.type)
                    for name in (dependency.depends_on, dependency.depends_on_id)
                }
                if names.isdisjoint(named.get(no, ())):
                    target = turn.store.require(turn.session, dependency.depends_on_id)
                    turn.remove_dependencies(
                        StoredTask(no, task), target, types=(dependency.type,), is_touched=False
                    )

    def _depend(self, turn: TaskChange, dependencies: Sequence[_Dependency]) -> None:
        edges: list[tuple[_Dependency, int]] = []
        for each in dependencies:
            target = self._numbers.get(key_of(each.other))
            target = target if target is not None else _find(turn, each.other, each.other)
            if target is None:
                self._refuse(each, "there is no such task")
            elif target == each.no:
                self._refuse(each, "a task cannot depend on itself")
            else:
                edges.append((each, target))
        waiting = [(each.no, to, each.type) for each, to in edges if each.type != "related"]
        present = turn.store.all_edges(turn.session, is_unfinished_only=False)
        tasks = turn.store.by_numbers(
            turn.session, [no for each, target in edges for no in (each.no, target)]
        )
        if topological_order([*present, *waiting]) is not None:
            # No circle: each is added without a look of its own.
            with turn.counted(waits_for(edge)[0] for edge in waiting):
                for each, to in edges:
                    row = (each.no, to, each.type, turn.now_ms, turn.actor)
                    if turn.store.add_dependency(turn.session, row):
                        facts = dependency_facts(StoredTask(to, tasks[to]), each.type)
                        turn.event(each.no, "dependency_added", {}, facts)
                        self._counts["dependencies"] += 1
            return
        for each, to in edges:
            waiter, target_task = StoredTask(each.no, tasks[each.no]), StoredTask(to, tasks[to])
            try:
                self._counts["dependencies"] += turn.add_dependencies(
                    waiter, target_task, types=(each.type,), is_touched=False
                )
            except DependencyCycleError as error:
                self._refuse(each, str(error.facts["brief"]))

    def _refuse(self, dependency: _Dependency, why: str) -> None:
        self._refused.append(
            TaskRefusal(dependency.name, f"{dependency.type} {dependency.other}", why)
        )


def _find(turn: TaskChange, task_id: str | None, short_id: str | None) -> int | None:
    conditions = [("t.id = ?", task_id)] if task_id is not None else []
    if short_id is not None:
        conditions.append(("t.key = ?", key_of(short_id)))
    found = turn.store.looked_up(turn.session, conditions, 1) if conditions else []
    return found[0][0] if found else None


def _check_fields(new: NewTask, now_ms: int) -> dict[str, Any]:
    """The fields of a task that came in, as they are stored."""
    created_at = check_time(new.created_at)
    created_at = now_ms if created_at is None else created_at
    updated_at = check_time(new.updated_at, "updated_at")
    updated_at = created_at if updated_at is None else updated_at
    closed_at = check_time(new.closed_at, "closed_at")
    fields = clean_fields(
        title=new.title,
        description=new.description,
        status=new.status,
        priority=new.priority,
        type=new.type,
        assignee=(new.assignee or "").strip() and new.assignee,
        session_id=(new.session_id or "").strip() and new.session_id,
        created_by=(new.created_by or "").strip() and new.created_by,
        close_reason=new.close_reason,
        summary=new.summary,
        labels=new.labels,
        metadata=new.metadata,
    )
    is_closed = new.status == "closed"
    return {
        **fields,
        "created_at": created_at,
        "updated_at": updated_at,
        "closed_at": (updated_at if closed_at is None else closed_at) if is_closed else None,
        "close_reason": fields["close_reason"] if is_closed else None,
    }
