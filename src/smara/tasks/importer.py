"""Import many tasks at once; repeating an import is safe.

Every field that cannot be imported is named in the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from smara.core.clock import check_time
from smara.core.ids import key_of
from smara.core.scope import require_id
from smara.database.fulltext import terms_of
from smara.database.project_store import plain_value
from smara.errors import DependencyCycleError, InvalidInputError
from smara.secrets.redact import clean_name
from smara.tasks import lifecycle, prepare
from smara.tasks.dependencies import Edge, topological_order, waits_for
from smara.tasks.models import NewTask, TaskImportReport, TaskRefusal
from smara.tasks.queries import require_task
from smara.tasks.store import StoredTask
from smara.tasks.transaction import TaskTransaction, TaskTransactions

_BATCH = 200
_NAMES = (
    "title", "description", "status", "priority", "type", "assignee", "session_id", "created_at",
    "created_by",
    "closed_at", "close_reason", "summary", "labels", "metadata",
)  # fmt: skip


@dataclass(slots=True)
class _ImportCounts:
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    newer_here: int = 0
    dependencies: int = 0
    refused: list[TaskRefusal] = field(default_factory=list)


class TaskImporter:
    """One import of tasks."""

    def __init__(self, turns: TaskTransactions, prefix: str, actor: str | None) -> None:
        self._turns = turns
        self._prefix = prefix
        self._actor = actor
        self._report = _ImportCounts()
        self._numbers: dict[str, int] = {}
        self._wanted: list[
            tuple[int, str, str, str]
        ] = []  # task, what it depends on, type, its name
        self._known_numbers: set[int] = (
            set()
        )  # tasks that were there, and whose dependencies become what came in

    def run(self, tasks: Iterable[NewTask]) -> TaskImportReport:
        """Put the tasks, then their dependencies."""
        stream = iter(tasks)
        while batch := list(islice(stream, _BATCH)):
            with self._turns.begin(self._actor, None) as turn:
                for new in batch:
                    self._put(turn, new)
        known = sorted(self._known_numbers)
        for start in range(0, len(known), _BATCH):
            with self._turns.begin(self._actor, None) as turn:
                self._undepend(turn, known[start : start + _BATCH])
        for start in range(0, len(self._wanted), 5 * _BATCH):
            with self._turns.begin(self._actor, None) as turn:
                self._depend(turn, self._wanted[start : start + 5 * _BATCH])
        report = self._report
        return TaskImportReport(
            report.added,
            report.changed,
            report.unchanged,
            newer_here=report.newer_here,
            dependencies=report.dependencies,
            refused=tuple(report.refused),
        )

    def _put(self, turn: TaskTransaction, new: NewTask) -> None:
        name = str(new.short_id or new.id or new.title)
        try:
            fields = _check_fields(new, turn.now_ms)
            short_id = None if new.short_id is None else clean_name(new.short_id, "short_id")
            task_id = None if new.id is None else require_id(new.id, "id")
            wanted = [
                (require_id(other, "depends_on"), prepare.clean_dependency_type(type_))
                for other, type_ in new.depends_on
            ]
        except InvalidInputError as error:
            self._report.refused.append(TaskRefusal(name, "task", str(error)))
            return
        no = self._known(turn, task_id, short_id)
        if no is None:
            no = self._add(turn, task_id, short_id, fields)
        elif not self._bring_up_to_date(turn, no, new, fields=fields):
            wanted = []
        else:
            self._known_numbers.add(no)
        for given in filter(None, (task_id, short_id)):
            self._numbers[key_of(given)] = no
        self._wanted += [(no, other, type_, name) for other, type_ in wanted]

    def _known(
        self, turn: TaskTransaction, task_id: str | None, short_id: str | None
    ) -> int | None:
        conditions = []
        if task_id is not None:
            conditions.append(("t.id = ?", task_id))
        if short_id is not None:
            conditions.append(("t.key = ?", key_of(short_id)))
        found = turn.store.looked_up(turn.session, conditions, 1) if conditions else []
        return found[0][0] if found else None

    def _add(
        self,
        turn: TaskTransaction,
        task_id: str | None,
        short_id: str | None,
        fields: dict[str, Any],
    ) -> int:
        task_id = task_id or self._turns.new_id()
        values = {name: value for name, value in fields.items() if name != "labels"}
        values["claimed_at"] = fields["updated_at"] if fields["status"] == "in_progress" else None
        said = [fields[part] for part in ("description", "summary") if fields[part]]
        terms = terms_of(fields["title"], "\n".join([*said, " ".join(fields["labels"])]))
        no = lifecycle.make(
            turn,
            task_id,
            short_id or turn.new_short_id(task_id, self._prefix),
            values=values,
            labels=fields["labels"],
            terms=terms,
        )
        turn.event(no, "imported", {}, {"title": fields["title"], "status": fields["status"]})
        self._report.added += 1
        return no

    def _bring_up_to_date(
        self, turn: TaskTransaction, no: int, new: NewTask, fields: dict[str, Any]
    ) -> bool:
        """Give a known task what came in; ``False`` when it was changed here since, and stays."""
        task = turn.store.by_number(turn.session, no)
        updated_at = turn.now_ms if new.updated_at is None else fields["updated_at"]
        if task.updated_at > updated_at:
            self._report.newer_here += 1
            return False
        # What nobody told stays as it was.
        names = [
            name
            for name in _NAMES
            if name not in ("created_at", "created_by") or getattr(new, name) is not None
        ]
        have = {name: plain_value(getattr(task, name)) for name in names} | {
            "description": task.full_description
        }
        changed = {
            name: value for name in names if (value := plain_value(fields[name])) != have[name]
        }
        if not changed:
            self._report.unchanged += 1
            return True
        if task.is_compacted:
            changed = {**lifecycle.restore_fields(task), **changed}
        turn.change(
            StoredTask(no, task),
            "imported",
            {**changed, "updated_at": updated_at},
            is_touched=False,
        )
        self._report.changed += 1
        return True

    def _undepend(self, turn: TaskTransaction, numbers: Sequence[int]) -> None:
        """Take away what known tasks no longer depend on."""
        kept: dict[int, set[tuple[str, str]]] = {}
        for no, other, type_, _ in self._wanted:
            kept.setdefault(no, set()).add((key_of(other), type_))
        for no, task in turn.store.by_numbers(turn.session, numbers).items():
            for dependency in task.dependencies:
                names = {
                    (key_of(name), dependency.type)
                    for name in (dependency.depends_on, dependency.depends_on_id)
                }
                if not names & kept.get(no, set()):
                    target = require_task(turn.session, turn.store, dependency.depends_on_id)
                    lifecycle.remove_dependencies(
                        turn,
                        StoredTask(no, task),
                        target,
                        types=(dependency.type,),
                        is_touched=False,
                    )

    def _depend(self, turn: TaskTransaction, wanted: Sequence[tuple[int, str, str, str]]) -> None:
        edges: list[tuple[Edge, str, str]] = []
        for no, other, type_, name in wanted:
            target = self._numbers.get(key_of(other))
            target = target if target is not None else self._known(turn, other, other)
            if target is None:
                self._report.refused.append(
                    TaskRefusal(name, f"{type_} {other}", "there is no such task")
                )
            elif target == no:
                self._report.refused.append(
                    TaskRefusal(name, f"{type_} {other}", "a task cannot depend on itself")
                )
            else:
                edges.append(((no, target, type_), other, name))
        present = turn.store.all_edges(turn.session, is_unfinished_only=False)
        is_free = (
            topological_order([*present, *(edge for edge, _, _ in edges if edge[2] != "related")])
            is not None
        )
        affected = {waits_for(edge)[0] for edge, _, _ in edges if edge[2] != "related"}
        if is_free:
            targets = turn.store.by_numbers(turn.session, [edge[1] for edge, _, _ in edges])
            with turn.counted(affected):
                for edge, _, _ in edges:
                    self._add_edge(turn, edge, StoredTask(edge[1], targets[edge[1]]))
            return
        for edge, other, name in edges:
            try:
                self._add_checked(turn, edge)
            except DependencyCycleError as error:
                self._report.refused.append(
                    TaskRefusal(name, f"{edge[2]} {other}", str(error.facts["brief"]))
                )

    def _add_checked(self, turn: TaskTransaction, edge: Edge) -> None:
        no, target, type_ = edge
        tasks = turn.store.by_numbers(turn.session, (no, target))
        if lifecycle.add_dependency(
            turn,
            StoredTask(no, tasks[no]),
            StoredTask(target, tasks[target]),
            type_=type_,
            is_touched=False,
        ):
            self._report.dependencies += 1

    def _add_edge(self, turn: TaskTransaction, edge: Edge, target: StoredTask) -> None:
        no, target_no, type_ = edge
        if turn.store.add_dependency(turn.session, (no, target_no, type_, turn.now_ms, turn.actor)):
            turn.event(no, "dependency_added", {}, lifecycle.dependency_facts(target, type_))
            self._report.dependencies += 1


def _check_fields(new: NewTask, now_ms: int) -> dict[str, Any]:
    """The fields of a task that came in, as they are stored."""
    created_at = check_time(new.created_at)
    created_at = now_ms if created_at is None else created_at
    updated_at = check_time(new.updated_at, "updated_at")
    updated_at = created_at if updated_at is None else updated_at
    closed_at = check_time(new.closed_at, "closed_at")
    is_closed = prepare.clean_status(new.status) == "closed"
    return {
        "title": prepare.clean_title(new.title),
        "description": prepare.clean_text(
            new.description, "description", prepare.MAX_DESCRIPTION_LENGTH
        ),
        "status": new.status,
        "priority": prepare.clean_priority(new.priority),
        "type": prepare.clean_type(new.type),
        "assignee": _name(new.assignee, "assignee"),
        "session_id": _name(new.session_id, "session_id"),
        "created_at": created_at,
        "created_by": _name(new.created_by, "created_by"),
        "updated_at": updated_at,
        "closed_at": (updated_at if closed_at is None else closed_at) if is_closed else None,
        "close_reason": _text(new.close_reason, "close_reason") if is_closed else None,
        "summary": _text(new.summary, "summary"),
        "labels": prepare.clean_labels(new.labels),
        "metadata": prepare.clean_metadata(new.metadata),
    }


def _name(value: str | None, what: str) -> str | None:
    return None if value is None or not value.strip() else clean_name(value, what)


def _text(value: str | None, what: str) -> str | None:
    return (
        None if value is None else prepare.clean_text(value, what, prepare.MAX_DESCRIPTION_LENGTH)
    )
