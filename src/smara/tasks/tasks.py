"""Create, order, claim and close tasks; record every change."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from smara.config import Settings
from smara.core import log
from smara.database.database import Session
from smara.database.fulltext import terms_of
from smara.errors import DatabaseError, InvalidInputError, SmaraError
from smara.secrets.redact import clean_name
from smara.tasks import claims, lifecycle, prepare
from smara.tasks.importer import TaskImporter
from smara.tasks.lifecycle import WORTH_CHARACTERS, condense_task, undo
from smara.tasks.models import (
    DEFAULT_PRIORITY,
    CloseReason,
    DependencyType,
    NewTask,
    ReadyTasks,
    Task,
    TaskDetails,
    TaskEvent,
    TaskImportReport,
    TaskPage,
    TaskProgress,
    TaskStatus,
    TaskTotals,
    TaskType,
    TreeNode,
)
from smara.tasks.queries import (
    TaskQueries,
    check_page,
    filter_values,
    filters_for,
    require_task,
    where_clause,
)
from smara.tasks.store import StoredTask
from smara.tasks.transaction import TaskTransaction, TaskTransactions

_DAY_MS = 86_400_000
_COMPACTED_AT_ONCE = 200
_SIGN_OF_LIFE_MS = 30_000
_FADING = (
    " AND t.status = 'closed' AND t.compaction_level < ? AND t.closed_at < ? AND "
    "length(t.description) >= ?"
)
_UNTOUCHED = " AND (t.compaction_level > 0 OR t.compacted_at IS NULL)"


class Tasks:
    """The tasks of one project.

    ``task_id`` takes whatever a task is called: its UUID, its short id with or without what
    stands before the hyphen, or the beginning of one of these, as long as only one fits.
    """

    def __init__(
        self,
        settings: Settings,
        turns: TaskTransactions,
        linked_messages: Callable[[Session, int, str], tuple[str, ...]],
    ) -> None:
        self._turns = turns
        self._store = turns.store
        self._settings = settings
        self._reader = TaskQueries(turns.store)
        self._linked_messages = linked_messages
        self._seen: dict[str, int] = {}

    # making and changing

    def add(
        self,
        title: str,
        *,
        description: str = "",
        type: TaskType = "task",
        priority: int = DEFAULT_PRIORITY,
        labels: Sequence[str] = (),
        assignee: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        parent: str | None = None,
        depends_on: Sequence[str] = (),
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Add a task.

        ``depends_on`` names tasks that block it, ``parent`` the one it is part of.
        """
        if isinstance(depends_on, str):
            raise InvalidInputError(
                "depends_on must be a list of task ids, not one text.", field="depends_on"
            )
        fields: dict[str, Any] = {
            "title": prepare.clean_title(title),
            "description": prepare.clean_text(
                description, "description", prepare.MAX_DESCRIPTION_LENGTH
            ),
            "status": "open",
            "priority": prepare.clean_priority(priority),
            "type": prepare.clean_type(type),
            "assignee": clean_name(assignee, "assignee") if assignee else None,
            "metadata": prepare.clean_metadata(metadata or {}),
        }
        tags = prepare.clean_labels(labels)
        terms = terms_of(fields["title"], "\n".join([fields["description"], " ".join(tags)]))
        with self._turns.begin(actor, session_id) as turn:
            needed = [
                (require_task(turn.session, self._store, other), "blocks") for other in depends_on
            ]
            if parent is not None:
                needed.append((require_task(turn.session, self._store, parent), "parent-child"))
            task_id = self._turns.new_id()
            times = {"created_at": turn.now_ms, "updated_at": turn.now_ms, "created_by": turn.actor}
            short_id = turn.new_short_id(task_id, self._settings.task_prefix)
            no = lifecycle.make(
                turn, task_id, short_id, values={**fields, **times}, labels=tags, terms=terms
            )
            for target, type_ in needed:
                lifecycle.refuse_cycle(turn, no, target.no, type_=type_)
                affected = [no] if type_ == "blocks" else [target.no]
                with turn.counted(affected):
                    self._store.add_dependency(
                        turn.session, (no, target.no, type_, turn.now_ms, turn.actor)
                    )
            made = self._store.by_number(turn.session, no)
            after = {
                "title": made.title,
                "type": made.type,
                "priority": made.priority,
                "dependencies": [
                    lifecycle.dependency_facts(target, type_) for target, type_ in needed
                ],
            }
            turn.event(no, "created", {}, after)
        log.event("task.added", task=made.short_id)
        return made

    def update(
        self,
        task_id: str,
        *,
        title: str | None = None,
        description: str | None = None,
        priority: int | None = None,
        type: TaskType | None = None,
        labels: Sequence[str] | None = None,
        assignee: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Update named fields of a task.

        Metadata is merged, ``None`` takes a key out; ``assignee=""`` clears it.
        """
        fields: dict[str, Any] = {}
        if title is not None:
            fields["title"] = prepare.clean_title(title)
        if description is not None:
            fields["description"] = prepare.clean_text(
                description, "description", prepare.MAX_DESCRIPTION_LENGTH
            )
        if priority is not None:
            fields["priority"] = prepare.clean_priority(priority)
        if type is not None:
            fields["type"] = prepare.clean_type(type)
        if labels is not None:
            fields["labels"] = prepare.clean_labels(labels)
        if assignee is not None:
            fields["assignee"] = clean_name(assignee, "assignee") if assignee else None
        more = None if metadata is None else prepare.clean_metadata(metadata)
        with self._changing(task_id, actor, session_id) as (turn, stored):
            if more is not None:
                merged = {**stored.task.metadata, **more}
                fields["metadata"] = {
                    key: value for key, value in merged.items() if value is not None
                }
            lifecycle.update(turn, stored, fields)
        return self._after(stored)

    # taking and giving back

    def claim(
        self, task_id: str, *, actor: str | None = None, session_id: str | None = None
    ) -> Task:
        """Claim a ready task; its holder keeps it.

        Raises ``TaskClaimedError`` when another session holds it, ``TaskBlockedError`` when it
        waits for unfinished tasks, ``ConflictError`` when it is closed.
        """
        with self._changing(task_id, actor, session_id) as (turn, stored):
            claims.claim(turn, stored)
        return self._after(stored)

    def claim_next(
        self,
        *,
        type: TaskType | None = None,
        label: str | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task | None:
        """Claim the first ready task, or return ``None``.

        No two callers get the same.
        """
        with self._turns.begin(actor, session_id) as turn:
            claims.expire(turn, self._silent_since(turn.now_ms))
            filters = filters_for(turn.session, self._store, type=type, label=label)
            no = claims.claim_first(turn, where_clause(filters), filter_values(filters))
            return None if no is None else self._store.by_number(turn.session, no)

    def release(
        self,
        task_id: str,
        *,
        force: bool = False,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Release a task for others; ``force`` takes it from its holder."""
        with self._changing(task_id, actor, session_id) as (turn, stored):
            claims.release(turn, stored, force)
        return self._after(stored)

    def hand_over(
        self,
        task_id: str,
        *,
        to_session: str | None = None,
        to_assignee: str | None = None,
        force: bool = False,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Make another session or person the holder."""
        with self._changing(task_id, actor, session_id) as (turn, stored):
            claims.hand_over(turn, stored, to_session, to_assignee=to_assignee, is_forced=force)
        return self._after(stored)

    def close(
        self,
        task_id: str,
        summary: str,
        *,
        reason: CloseReason = "completed",
        force: bool = False,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Close a task with a summary of its outcome.

        ``force`` closes what another holds.
        """
        said, why = prepare.clean_summary(summary), prepare.clean_reason(reason)
        with self._changing(task_id, actor, session_id) as (turn, stored):
            lifecycle.close(turn, stored, why, summary=said, is_forced=force)
        self._decay_quietly()
        return self._after(stored)

    def reopen(
        self, task_id: str, *, actor: str | None = None, session_id: str | None = None
    ) -> Task:
        """Make a closed task open again."""
        with self._changing(task_id, actor, session_id) as (turn, stored):
            lifecycle.reopen(turn, stored)
        return self._after(stored)

    # what waits for what

    def depend(
        self,
        task_id: str,
        depends_on: str,
        *,
        type: DependencyType = "blocks",
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """``task_id`` needs ``depends_on``, which for ``parent-child`` is the parent; twice is the
        same as once.
        """
        kind = prepare.clean_dependency_type(type)
        with self._changing(task_id, actor, session_id) as (turn, stored):
            lifecycle.add_dependency(
                turn, stored, require_task(turn.session, self._store, depends_on), type_=kind
            )
        return self._after(stored)

    def undepend(
        self,
        task_id: str,
        depends_on: str,
        *,
        type: DependencyType | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Remove a dependency; without a type, all between the two."""
        kinds = prepare.clean_dependency_types(type)
        with self._changing(task_id, actor, session_id) as (turn, stored):
            target = require_task(turn.session, self._store, depends_on)
            lifecycle.remove_dependencies(turn, stored, target, types=kinds)
        return self._after(stored)

    # history

    def history(self, task_id: str, *, limit: int = 50) -> builtins.list[TaskEvent]:
        """Return a task's events, newest first."""
        check_page(limit, 0)
        with self._store.database.read() as session:
            return self._reader.history(session, require_task(session, self._store, task_id), limit)

    def undo(
        self,
        task_id: str,
        *,
        force: bool = False,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Undo the newest change of a task.

        Call it again to go further back. Raises ``TaskClaimedError`` when another session holds the
        task, unless ``force``.
        """
        with self._changing(task_id, actor, session_id, is_expiring=False) as (turn, stored):
            undo(turn, stored, force)
        return self._after(stored)

    # asking

    def get(self, task_id: str) -> Task:
        """The task, or ``NotFoundError``."""
        with self._store.database.read() as session:
            return require_task(session, self._store, task_id).task

    def find(self, task_id: str) -> Task | None:
        """The task, or ``None``."""
        with self._store.database.read() as session:
            no = self._store.find_no(session, task_id)
            return None if no is None else self._store.by_number(session, no)

    def show(self, task_id: str) -> TaskDetails:
        """Return a task with dependencies, dependents, children and messages."""
        with self._store.database.read() as session:
            stored = require_task(session, self._store, task_id)
            linked = self._linked_messages(session, stored.no, stored.task.id)
            return self._reader.show(session, stored, linked)

    def ready(
        self,
        *,
        limit: int = 5,
        offset: int = 0,
        type: TaskType | None = None,
        label: str | None = None,
        assignee: str | None = None,
    ) -> ReadyTasks:
        """Return claimable tasks by priority, then age."""
        check_page(limit, offset)
        self._expire_quietly()
        with self._store.database.read() as session:
            filters = filters_for(session, self._store, type=type, label=label, assignee=assignee)
            return self._reader.ready(session, filters, limit, offset)

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
        """List tasks: in progress, open by priority, closed newest first."""
        check_page(limit, offset)
        if status is not None:
            prepare.clean_status(status)
        self._expire_quietly()
        with self._store.database.read() as session:
            filters = filters_for(
                session,
                self._store,
                type=type,
                label=label,
                assignee=assignee,
                priority=priority,
                parent=parent,
            )
            return self._reader.list(session, status, filters, limit, offset)

    def blocked(self, tasks: Iterable[Task]) -> set[str]:
        """Return the ids of tasks that wait for unfinished ones."""
        with self._store.database.read() as session:
            return self._reader.blocked(
                session, [task.id for task in tasks if task.status != "closed"]
            )

    def tree(self, task_id: str | None = None) -> builtins.list[TreeNode]:
        """Return the tree of tasks below one, or of all roots."""
        with self._store.database.read() as session:
            root = None if task_id is None else require_task(session, self._store, task_id)
            return self._reader.tree(session, root)

    def critical_path(self, task_id: str | None = None) -> builtins.list[Task]:
        """Return the longest chain of unfinished waiting tasks."""
        with self._store.database.read() as session:
            last = None if task_id is None else require_task(session, self._store, task_id)
            return self._reader.critical_path(session, last)

    def progress(self, task_id: str) -> TaskProgress:
        """Return the progress of everything below a task."""
        with self._store.database.read() as session:
            return self._reader.progress(session, require_task(session, self._store, task_id).no)

    def totals(self) -> TaskTotals:
        """Count tasks by status, ready, and blocked."""
        with self._store.database.read() as session:
            return self._reader.totals(session)

    def problems(self) -> builtins.list[str]:
        """Return what is wrong with the totals, by counting all."""
        with self._store.database.snapshot() as session:
            kept, counted = self._store.totals(session), self._store.recount(session)
        return (
            [] if kept == counted else [f"The totals of tasks say {kept}, and there are {counted}."]
        )

    def recount(self) -> TaskTotals:
        """Recount and repair the totals.

        For when a backup or a hand has changed the tables.
        """
        with self._turns.begin(None, None) as turn:
            turn.totals = self._store.recount(turn.session)
            return turn.totals

    # sessions

    def seen(self, session_id: str) -> None:
        """Record a session's sign of life, written twice a minute at most."""
        now = self._turns.clock.now_ms()
        name = clean_name(session_id, "session_id")
        if now - self._seen.get(name, -_SIGN_OF_LIFE_MS) < _SIGN_OF_LIFE_MS:
            return
        with self._store.database.write(is_derived=True) as session:
            self._store.see_session(session, name, now)
        self._seen[name] = now

    def end_session(self, session_id: str) -> builtins.list[Task]:
        """A session is over: what it holds is free again; those tasks."""
        name = clean_name(session_id, "session_id")
        self._seen.pop(name, None)
        with self._store.database.write() as session:
            self._store.end_session(session, name, self._turns.clock.now_ms())
        return self.expire()

    def expire(self) -> builtins.list[Task]:
        """Release the tasks of gone sessions and return them.

        Asking and changing do this by themselves.
        """
        with self._turns.begin(None, None) as turn:
            numbers = claims.expire(turn, self._silent_since(turn.now_ms))
            return builtins.list(self._store.by_numbers(turn.session, numbers).values())

    # decay

    def compact(self, *, now: int | None = None, is_asked: bool = True) -> int:
        """Shorten what is shown of tasks closed long ago; return count.

        Their text is kept, and found. Closing a task does this by itself, and then leaves alone
        what a person has restored.
        """
        done = 0
        with self._turns.begin(None, None) as turn:
            at = turn.now_ms if now is None else now
            for level, days in (
                (2, self._settings.archive_tasks_after_days),
                (1, self._settings.compact_tasks_after_days),
            ):
                done += self._compact_level(turn, level, at - days * _DAY_MS, is_asked=is_asked)
        return done

    def restore(
        self, task_id: str, *, actor: str | None = None, session_id: str | None = None
    ) -> Task:
        """Show the whole text of a compacted task again."""
        with self._changing(task_id, actor, session_id) as (turn, stored):
            if stored.task.is_compacted:
                # The time stays: what somebody wanted whole is not shortened again by itself.
                fields = {**lifecycle.restore_fields(stored.task), "compacted_at": turn.now_ms}
                turn.change(stored, "updated", fields, is_touched=False)
        return self._after(stored)

    def _compact_level(
        self, turn: TaskTransaction, level: int, closed_before: int, is_asked: bool
    ) -> int:
        found = self._store.select(
            turn.session,
            f"{_FADING}{'' if is_asked else _UNTOUCHED} ORDER BY t.closed_at LIMIT ?",
            (level, closed_before, WORTH_CHARACTERS[level], _COMPACTED_AT_ONCE),
        )
        for stored in found:
            fields = {
                "description": condense_task(stored.task, level),
                "original_content": stored.task.full_description,
                "compaction_level": level,
                "compacted_at": turn.now_ms,
            }
            turn.change(stored, "compacted", fields, is_touched=False)
        return len(found)

    # many at once

    def put_many(self, tasks: Iterable[NewTask], *, actor: str | None = None) -> TaskImportReport:
        """Import tasks; safe to repeat.

        What cannot be taken over is named in ``refused``.
        """
        return TaskImporter(self._turns, self._settings.task_prefix, actor).run(tasks)

    def export(self) -> Iterator[Task]:
        """Every task, the oldest first."""
        yield from self._reader.pages()

    # how a change begins and ends

    @contextmanager
    def _changing(
        self, task_id: str, actor: str | None, session_id: str | None, is_expiring: bool = True
    ) -> Iterator[tuple[TaskTransaction, StoredTask]]:
        with self._turns.begin(actor, session_id) as turn:
            if is_expiring:
                claims.expire(turn, self._silent_since(turn.now_ms))
            yield turn, require_task(turn.session, self._store, task_id)

    def _after(self, stored: StoredTask) -> Task:
        with self._store.database.read() as session:
            return self._store.by_number(session, stored.no)

    def _silent_since(self, now_ms: int) -> int | None:
        minutes = self._settings.claim_expires_after_minutes
        return now_ms - minutes * 60_000 if minutes else None

    def _expire_quietly(self) -> None:
        """Free what is abandoned before looking; a store that cannot be written shows it as it
        is.
        """
        with self._store.database.read() as session:
            if not self._store.abandoned(session, self._silent_since(self._turns.clock.now_ms())):
                return
        try:
            self.expire()
        except DatabaseError as error:
            log.warning("task.expire_failed", error=error.code)

    def _decay_quietly(self) -> None:
        """Now and then; trouble here must not fail a task that is already closed."""
        try:
            with self._store.database.read() as session:
                now = self._turns.clock.now_ms()
                is_due = any(
                    self._store.numbers(
                        session,
                        f"{_FADING}{_UNTOUCHED} LIMIT 1",
                        (level, now - days * _DAY_MS, WORTH_CHARACTERS[level]),
                    )
                    for level, days in (
                        (1, self._settings.compact_tasks_after_days),
                        (2, self._settings.archive_tasks_after_days),
                    )
                )
            if is_due:
                self.compact(is_asked=False)
        except SmaraError as error:
            log.warning("task.decay_failed", error=error.code)
