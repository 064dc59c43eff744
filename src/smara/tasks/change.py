"""Change the tasks of a project in one transaction of the journal.

A dependency cycle, a double claim or a wrong total cannot arise between two writers, because they
take turns. A claim of a session that is gone expires.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from smara.core.escape import to_storable
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import Event
from smara.errors import DependencyCycleError, TaskBlockedError, TaskClaimedError
from smara.journal import Change, ChangeJournal
from smara.tasks.dependencies import find_cycle, waits_for
from smara.tasks.models import EventKind, Task, TaskTotals
from smara.tasks.store import TEXTS, StoredTask, TaskStore

_ESCAPED = TEXTS | {"assignee", "session_id"}
_INDEXED = frozenset({"title", "description", "summary", "labels", "original_content"})
UNCLAIMED: Mapping[str, Any] = {
    "status": "open",
    "session_id": None,
    "assignee": None,
    "claimed_at": None,
}


class TaskChange(Change[StoredTask]):
    """One transaction that changes tasks: actor, time, totals."""

    store: TaskStore
    state: TaskTotals

    def __init__(self, *args: Any, **facts: Any) -> None:
        super().__init__(*args, **facts)
        if self.session_id is not None:
            self.store.see_session(self.session, self.session_id, self.now_ms)

    def insert(self, prefix: str, fields: Mapping[str, Any], **ids: str | None) -> int:
        """Insert a task and return its number.

        The caller records the event when the task is complete.

        Args:
            prefix: The beginning of its short id.
            fields: Its fields, labels included.
            **ids: Its ``id`` and ``short_id``, if it has them already.
        """
        values = {
            **self.identify(prefix, self.state.all + 1, **ids),
            **{name: _as_stored(name, value) for name, value in fields.items() if name != "labels"},
        }
        no = self.store.insert(self.session, values)
        labels = fields["labels"]
        if labels:
            self.store.write_labels(self.session, no, map(to_storable, labels), is_new=True)
        self.state = self.state.plus(self.store.count(self.session, [no]))
        texts = fields["description"], fields.get("summary"), " ".join(labels)
        self.index("task", no, terms_of(fields["title"], "\n".join(filter(None, texts))))
        return no

    def put(self, stored: StoredTask, fields: Mapping[str, Any], is_touched: bool) -> StoredTask:
        """Write fields of a task with its labels, index and totals."""
        no, task = stored
        values = {
            name: _as_stored(name, value) for name, value in fields.items() if name != "labels"
        }
        if is_touched:
            values["updated_at"] = self.now_ms
        status = fields.get("status", task.status)
        affected = [no] if status != task.status else []
        if affected and "closed" in (status, task.status):
            affected += [
                waiter for waiter, _, _ in self.store.waits(self.session, [no], is_awaited=True)
            ]
        with self.counted(affected):
            if values:
                self.store.write(self.session, no, values)
            if "labels" in fields:
                self.store.write_labels(self.session, no, map(to_storable, fields["labels"]))
        changed = self.store.stored(self.session, no)
        if not _INDEXED.isdisjoint(fields):
            self.index("task", no, task_terms(changed.task))
        return changed

    @contextmanager
    def counted(self, numbers: Iterable[int]) -> Iterator[None]:
        """Keep the totals right while tasks may become ready, blocked, or neither."""
        affected = sorted(set(numbers))
        before = self.store.count(self.session, affected)
        yield
        if affected:
            self.state = self.state.plus(self.store.count(self.session, affected), before)

    # dependencies

    def add_dependencies(
        self,
        stored: StoredTask,
        target: StoredTask,
        *,
        types: Sequence[str],
        kind: EventKind = "dependency_added",
        is_touched: bool = True,
    ) -> bool:
        """Add dependencies of some types; return True if any is new."""
        for type_ in types:
            self.refuse_cycle(stored.no, target.no, type_)
        edge = (stored.no, target.no)
        with self.counted(edge):
            fresh = [
                type_
                for type_ in types
                if self.store.add_dependency(self.session, (*edge, type_, self.now_ms, self.actor))
            ]
        if fresh and is_touched:
            self.store.write(self.session, stored.no, {"updated_at": self.now_ms})
        if fresh:
            self.event(stored.no, kind, {}, dependency_facts(target, *fresh))
        return bool(fresh)

    def remove_dependencies(
        self,
        stored: StoredTask,
        target: StoredTask,
        *,
        types: Sequence[str],
        kind: EventKind = "dependency_removed",
        is_touched: bool = True,
    ) -> None:
        """Remove dependencies of some types."""
        with self.counted([stored.no, target.no]):
            gone = [
                type_
                for type_ in types
                if self.session.run(
                    self.store.sql(
                        "DELETE FROM task_dependencies WHERE project_no = :project"
                        " AND task_no = ? AND depends_on_no = ? AND type = ?"
                    ),
                    (stored.no, target.no, type_),
                )
            ]
        if gone and is_touched:
            self.store.write(self.session, stored.no, {"updated_at": self.now_ms})
        if gone:
            self.event(stored.no, kind, dependency_facts(target, *gone), {})

    def refuse_cycle(self, no: int, depends_on_no: int, type_: str) -> None:
        """Raise ``DependencyCycleError`` with the path for a closed circle."""
        if type_ == "related" and no != depends_on_no:
            return
        circle = find_cycle(self.session, self.store, *waits_for((no, depends_on_no, type_)))
        if circle is None:
            return
        tasks = self.store.by_numbers(self.session, circle)
        path = [tasks[no].short_id for no in circle]
        shown = " → ".join(path if len(path) <= 12 else [*path[:6], "…", *path[-5:]])
        if no == depends_on_no:
            what, hint = "A task cannot wait for itself", "Name another task."
        else:
            what = "These tasks would wait for each other for ever"
            hint = "Remove one of these dependencies first, or use the type related."
        raise DependencyCycleError.with_hint(
            f"{what}: {shown}.",
            hint,
            path=path,
            brief=f"Dependency cycle: {shown}",
        )

    # claims

    def hold(
        self, stored: StoredTask, kind: EventKind, session_id: str | None, assignee: str
    ) -> StoredTask:
        """Make a session or a person the holder of a task."""
        fields = {
            "status": "in_progress",
            "session_id": session_id,
            "assignee": assignee,
            "claimed_at": self.now_ms,
        }
        return self.change(stored, kind, fields)

    def expire(self, silent_since_ms: int | None) -> list[Task]:
        """Release what gone sessions hold; return the tasks."""
        numbers = self.store.abandoned(self.session, silent_since_ms)
        return [
            self.change(StoredTask(no, task), "expired", UNCLAIMED).task
            for no, task in self.store.by_numbers(self.session, numbers).items()
        ]

    def is_holder(self, task: Task) -> bool:
        """Return True if the actor holds the task."""
        if task.status != "in_progress":
            return False
        if task.session_id is not None:
            return task.session_id == self.session_id
        return self.session_id is None and task.assignee == self.actor

    def refuse_others(self, task: Task) -> None:
        """Raise ``TaskClaimedError`` if another session holds the task."""
        holder = task.holder
        if holder is None or self.is_holder(task):
            return
        who = f"session {holder}" if task.session_id else holder
        seen = self.session.one(
            self.store.sql("SELECT seen_at FROM sessions WHERE project_no = :project AND id = ?"),
            (task.session_id,),
        )
        raise TaskClaimedError.with_hint(
            f"Already claimed by {who}: task {task.short_id}.",
            "Take another task that is ready, or have it released or handed over."
            if self.session_id is not None
            else "Take another task that is ready, or take this one back with "
            f"`smara tasks release {task.short_id} --force`.",
            task_id=task.short_id,
            holder=holder,
            seen_at=int(seen[0]) if seen else None,
            brief=f"Already claimed by {who}",
        )

    def refuse_blocked(self, stored: StoredTask) -> None:
        """Raise ``TaskBlockedError`` if the task waits for unfinished ones."""
        awaited = [each for _, each, _ in self.store.waits(self.session, [stored.no])]
        tasks = self.store.by_numbers(self.session, awaited).values()
        names = [task.short_id for task in tasks if task.status != "closed"]
        if not names:
            return
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        raise TaskBlockedError.with_hint(
            f"Task is blocked by open dependencies: {stored.task.short_id}.",
            f"First close {', '.join(names[:20])}{more}, or take another task that is ready.",
            task_id=stored.task.short_id,
            blocking=names[:20],
            brief="Task is blocked by open dependencies",
        )

    # undo

    def revert(self, event: Event) -> None:
        """Revert one event: a dependency, a link to a message, or fields."""
        stored = self.store.stored(self.session, event.row_no)
        before, after = event.before, event.after
        if event.kind in ("dependency_added", "dependency_removed"):
            edge = after or before
            other = self.store.find_no(self.session, edge["depends_on"])
            if other is not None:
                act = self.remove_dependencies if after else self.add_dependencies
                target = self.store.stored(self.session, other)
                act(stored, target, types=edge["types"], kind="undone")
        elif event.kind in ("linked", "unlinked"):
            message_no = (after or before)["message_no"]
            if before:
                link = (stored.no, message_no, before["relation"], self.now_ms, self.actor)
                self.store.add_link(self.session, link)
            else:
                self.store.remove_link(self.session, stored.no, message_no)
            self.event(stored.no, "undone", after, before)
        else:
            self.change(stored, "undone", before)


TaskJournal = ChangeJournal[TaskStore, TaskChange]


def dependency_facts(target: StoredTask, *types: str) -> dict[str, Any]:
    """Return a dependency as events tell it."""
    return {"depends_on": target.task.id, "short_id": target.task.short_id, "types": list(types)}


def restore_fields(task: Task) -> dict[str, Any]:
    """Return a compacted task's fields as they were."""
    if not task.is_compacted:
        return {}
    return {
        "description": task.full_description,
        "original_content": None,
        "compaction_level": 0,
        "compacted_at": None,
    }


def task_terms(task: Task) -> RecordTerms:
    """Return a task's index terms: title and all its texts."""
    return terms_of(
        task.title,
        "\n".join(filter(None, (task.full_description, task.summary, " ".join(task.labels)))),
    )


def _as_stored(name: str, value: Any) -> Any:
    if name == "metadata":
        return json.dumps(value, separators=(",", ":"))
    return to_storable(value) if name in _ESCAPED and isinstance(value, str) else value
