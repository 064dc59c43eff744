"""Create, order, claim and close tasks; record every change."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from smara.core import log
from smara.core.extract import distinct, first_sentence, fit, names_in, shorten
from smara.core.validate import invalid, one_of
from smara.database.database import Session
from smara.errors import ConflictError, InvalidInputError, SmaraError
from smara.secrets.redact import clean_name
from smara.tasks import prepare
from smara.tasks.change import UNCLAIMED, TaskChange, TaskJournal, dependency_facts, restore_fields
from smara.tasks.importer import TaskImporter
from smara.tasks.models import (
    CLOSE_REASONS,
    DEFAULT_PRIORITY,
    DEPENDENCY_TYPES,
    CloseReason,
    DependencyType,
    NewTask,
    Priority,
    Task,
    TaskImportReport,
    TaskTotals,
    TaskType,
)
from smara.tasks.reader import READY, TaskReader
from smara.tasks.store import StoredTask

_DAY_MS = 86_400_000
_COMPACTED_AT_ONCE = 200
_SIGN_OF_LIFE_MS = 30_000
_FADING = (
    " AND t.status = 'closed' AND t.compaction_level < ? AND t.closed_at < ? AND "
    "length(t.description) >= ?"
)
_UNTOUCHED = " AND (t.compaction_level > 0 OR t.compacted_at IS NULL)"
WORTH_CHARACTERS = {1: 400, 2: 200}
"""A shorter description is left as it is."""
_NAMES_CHARACTERS = 300
_LINE = 160


class Tasks(TaskReader):
    """The tasks of one project.

    Arguments that many methods share:
        task_id: The UUID of a task, its short id with or without the part before the hyphen, or
            the beginning of one of these, as long as only one fits; otherwise
            ``InvalidInputError``, or ``NotFoundError`` if none does.
        actor: The name of who acts, for the history.
        session_id: The session in which it happens; it holds what it claims.
        force: True to act although another session holds the task; otherwise
            ``TaskClaimedError``.
    """

    def __init__(
        self,
        journal: TaskJournal,
        linked_messages: Callable[[Session, int, str], tuple[str, ...]],
    ) -> None:
        super().__init__(journal, linked_messages)
        self._seen: dict[str, int] = {}

    # making and changing

    def add(
        self,
        title: str,
        *,
        description: str = "",
        type: TaskType = "task",
        priority: Priority = DEFAULT_PRIORITY,
        labels: Sequence[str] = (),
        assignee: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        parent: str | None = None,
        depends_on: Sequence[str] = (),
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Add a task.

        Args:
            title: One line that says what is to be done.
            description: All there is to say, in any number of lines.
            type: ``bug``, ``feature``, ``task``, ``epic`` or ``chore``.
            priority: From 0, the most urgent, to 4.
            labels: Free labels.
            assignee: The person whose task it is.
            metadata: Anything JSON can store.
            parent: The task it is part of.
            depends_on: The tasks that block it.

        Returns:
            The task, with its ids.

        Raises:
            InvalidInputError: If a field is impossible.
            NotFoundError: If there is no such parent or dependency.
        """
        if isinstance(depends_on, str):
            raise InvalidInputError(
                "depends_on must be a list of task ids, not one text.", field="depends_on"
            )
        fields = prepare.clean_fields(
            title=title,
            description=description,
            priority=priority,
            type=type,
            labels=labels,
            assignee=assignee,
            metadata=metadata or {},
        )
        with self._journal.begin(actor, session_id) as turn:
            needed = [(self._store.require(turn.session, each), "blocks") for each in depends_on]
            if parent is not None:
                needed.append((self._store.require(turn.session, parent), "parent-child"))
            times = {"created_at": turn.now_ms, "updated_at": turn.now_ms, "created_by": turn.actor}
            no = turn.insert(self._settings.task_prefix, {**fields, **times, "status": "open"})
            for target, kind in needed:
                turn.refuse_cycle(no, target.no, kind)
                with turn.counted([no if kind == "blocks" else target.no]):
                    self._store.add_dependency(
                        turn.session, (no, target.no, kind, turn.now_ms, turn.actor)
                    )
            task = self._store.stored(turn.session, no).task
            after = {
                "title": task.title,
                "type": task.type,
                "priority": task.priority,
                "dependencies": [dependency_facts(target, kind) for target, kind in needed],
            }
            turn.event(no, "created", {}, after)
        log.event("task.added", task=task.short_id)
        return task

    def update(
        self,
        task_id: str,
        *,
        title: str | None = None,
        description: str | None = None,
        priority: Priority | None = None,
        type: TaskType | None = None,
        labels: Sequence[str] | None = None,
        assignee: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Update named fields of a task; ``None`` leaves a field.

        Args:
            task_id: The task.
            title: One line of at most 500 characters.
            description: All there is to say; ``""`` empties it.
            priority: From 0, the most urgent, to 4.
            type: ``bug``, ``feature``, ``task``, ``epic`` or ``chore``.
            labels: All labels; they replace those that are there.
            assignee: The person whose task it is; ``""`` for none.
            metadata: Merged into what is there; ``None`` removes a key.

        Returns:
            The task as it is now.

        Raises:
            ConflictError: If the assignee of a claimed task is to change.
            InvalidInputError: If a field is impossible.
        """
        fields = prepare.clean_fields(
            is_partial=True,
            title=title,
            description=description,
            priority=priority,
            type=type,
            labels=labels,
            assignee=assignee,
            metadata=metadata,
        )
        with self._changing(task_id, actor, session_id) as (turn, stored):
            task = stored.task
            if metadata is not None:
                merged = {**task.metadata, **fields["metadata"]}
                fields["metadata"] = {
                    key: value for key, value in merged.items() if value is not None
                }
            changed = {
                name: value for name, value in fields.items() if getattr(task, name) != value
            }
            if "assignee" in changed and task.holder is not None:
                raise ConflictError.with_hint(
                    f"Task {task.short_id} is being worked on by {task.holder}.",
                    "Hand it over instead (release with `to`), or release it first.",
                    task_id=task.short_id,
                    brief=f"Task is held by {task.holder}",
                )
            if "description" in changed:
                # What was written before would otherwise come back over the new text with a
                # restore.
                changed = {**restore_fields(task), **changed}
            return turn.change(stored, "updated", changed).task if changed else task

    # taking and giving back

    def claim(
        self, task_id: str, *, actor: str | None = None, session_id: str | None = None
    ) -> Task:
        """Claim a ready task and return it; its holder keeps it.

        Raises:
            TaskClaimedError: If another session holds it.
            TaskBlockedError: If it waits for unfinished tasks.
            ConflictError: If it is closed.
        """
        with self._changing(task_id, actor, session_id) as (turn, stored):
            task = stored.task
            if turn.is_holder(task):
                return task
            turn.refuse_others(task)
            _refuse_closed(task, "", "Reopen it first if there is more to do.")
            if task.status == "open":
                turn.refuse_blocked(stored)
            return turn.hold(stored, "claimed", turn.session_id, assignee=turn.actor).task

    def claim_next(
        self,
        *,
        type: TaskType | None = None,
        label: str | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task | None:
        """Claim the first ready task; no two callers get the same.

        Args:
            type: Only a task of this type.
            label: Only a task with this label.

        Returns:
            The task, or ``None`` if none is ready.
        """
        with self._journal.begin(actor, session_id) as turn:
            turn.expire(self._silent_since(turn.now_ms))
            where, values = self._filter(turn.session, type=type, label=label)
            found = self._store.select(
                turn.session, f" AND t.status = 'open'{where}{READY}", (*values, 1, 0)
            )
            if not found:
                return None
            return turn.hold(found[0], "claimed", turn.session_id, assignee=turn.actor).task

    def release(
        self,
        task_id: str,
        *,
        force: bool = False,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Release a task for others and return it.

        An unclaimed one stays as it is.

        Raises:
            TaskClaimedError: If another session holds it, without ``force``.
        """
        with self._changing(task_id, actor, session_id) as (turn, stored):
            if stored.task.status != "in_progress":
                return stored.task
            if not force:
                turn.refuse_others(stored.task)
            return turn.change(stored, "released", UNCLAIMED).task

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
        """Make another session or person the holder; return the task.

        Args:
            task_id: The task.
            to_session: The session that holds it from now on.
            to_assignee: The person; without it, named like the session.

        Raises:
            InvalidInputError: If neither is given.
            ConflictError: If the task is closed.
            TaskBlockedError: If it waits for unfinished tasks.
            TaskClaimedError: If another session holds it, without ``force``.
        """
        with self._changing(task_id, actor, session_id) as (turn, stored):
            task = stored.task
            if to_session is None and to_assignee is None:
                raise invalid(
                    "A hand-over needs a session or an assignee",
                    "Say to_session, to_assignee, or both.",
                    "to",
                )
            _refuse_closed(task, ", and cannot be handed over", "Reopen it first.")
            if not force:
                turn.refuse_others(task)
            if task.status == "open":
                turn.refuse_blocked(stored)
            session = None if to_session is None else clean_name(to_session, "to_session")
            person = session if to_assignee is None else clean_name(to_assignee, "to_assignee")
            if to_assignee is None and session is not None and session == task.session_id:
                person = task.assignee  # it stays where it is
            is_there = (task.session_id, task.assignee) == (session, person)
            if is_there and task.status == "in_progress":
                return task
            if session is not None:
                # A sign of life is given for it: it has the usual time to begin.
                self._store.see_session(turn.session, session, turn.now_ms)
            return turn.hold(stored, "handed_over", session, assignee=person or "").task

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
        """Close a task and return it.

        Closing it again in the same words changes nothing.

        Args:
            task_id: The task.
            summary: What was done, where, and what was learned.
            reason: ``completed``, ``wontfix`` or ``duplicate``.

        Raises:
            ConflictError: If it is closed already, in other words.
            InvalidInputError: If the summary is empty.
            TaskClaimedError: If another session holds it, without ``force``.
        """
        outcome = (one_of(reason, CLOSE_REASONS, "reason"), prepare.clean_summary(summary))
        with self._changing(task_id, actor, session_id) as (turn, stored):
            task = stored.task
            if task.status == "closed" and (task.close_reason, task.summary) != outcome:
                raise ConflictError(
                    f"Task {task.short_id} is closed already ({task.close_reason}). Reopen it to "
                    "close it differently.",
                    task_id=task.short_id,
                    brief="Task is already closed",
                    hint="Reopen it first to close it differently.",
                )
            if task.status != "closed":
                if not force:
                    turn.refuse_others(task)
                fields = {
                    "status": "closed",
                    "closed_at": turn.now_ms,
                    "close_reason": outcome[0],
                    "summary": outcome[1],
                }
                stored = turn.change(stored, "closed", fields)
        self._decay_quietly()
        return stored.task

    def reopen(
        self, task_id: str, *, actor: str | None = None, session_id: str | None = None
    ) -> Task:
        """Reopen a closed task and return it.

        Its text is whole again; its summary stays.
        """
        with self._changing(task_id, actor, session_id) as (turn, stored):
            if stored.task.status != "closed":
                return stored.task
            fields = {"status": "open", "closed_at": None, "close_reason": None, **UNCLAIMED}
            return turn.change(stored, "reopened", {**fields, **restore_fields(stored.task)}).task

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
        """Make a task need another and return it; safe to repeat.

        Args:
            task_id: The task that waits, or the child.
            depends_on: The task it needs; for ``parent-child``, the parent.
            type: ``blocks``, ``parent-child`` or ``related``.

        Raises:
            DependencyCycleError: If the tasks would wait for each other.
            NotFoundError: If there is no such task.
        """
        one_of(type, DEPENDENCY_TYPES, "type")
        with self._changing(task_id, actor, session_id) as (turn, stored):
            turn.add_dependencies(
                stored, self._store.require(turn.session, depends_on), types=(type,)
            )
            return self._store.stored(turn.session, stored.no).task

    def undepend(
        self,
        task_id: str,
        depends_on: str,
        *,
        type: DependencyType | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Remove a dependency of a task and return the task.

        Args:
            depends_on: The task it needed, or the parent.
            type: As for :meth:`depend`; without it, all between the two.

        Raises:
            NotFoundError: If there is no such task.
        """
        types = DEPENDENCY_TYPES if type is None else (one_of(type, DEPENDENCY_TYPES, "type"),)
        with self._changing(task_id, actor, session_id) as (turn, stored):
            turn.remove_dependencies(
                stored, self._store.require(turn.session, depends_on), types=types
            )
            return self._store.stored(turn.session, stored.no).task

    def undo(
        self,
        task_id: str,
        *,
        force: bool = False,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Undo the newest change of a task and return it.

        Repeat to go further back.

        Raises:
            ConflictError: If nothing is left to undo.
            TaskClaimedError: If another session holds it, without ``force``.
        """
        with self._journal.begin(actor, session_id) as turn:
            stored = self._store.require(turn.session, task_id)
            if not force:
                turn.refuse_others(stored.task)
            return turn.undo(stored).task

    def recount(self) -> TaskTotals:
        """Count the totals again and store them.

        For a store whose tables were changed by a backup or by hand.
        """
        with self._journal.begin() as turn:
            turn.state = self._store.count(turn.session)
            return turn.state

    # sessions

    def seen(self, session_id: str) -> None:
        """Record a session's sign of life, written twice a minute at most."""
        now = self._journal.project.clock.now_ms()
        name = clean_name(session_id, "session_id")
        if now - self._seen.get(name, -_SIGN_OF_LIFE_MS) < _SIGN_OF_LIFE_MS:
            return
        with self._store.database.write(is_derived=True) as session:
            self._store.see_session(session, name, now)
        self._seen[name] = now

    def end_session(self, session_id: str) -> builtins.list[Task]:
        """End a session, and release the tasks it holds.

        Returns:
            The tasks that were released.
        """
        name = clean_name(session_id, "session_id")
        now = self._journal.project.clock.now_ms()
        self._seen.pop(name, None)
        with self._store.database.write() as session:
            session.run(
                self._store.sql(
                    "INSERT INTO sessions (project_no, id, seen_at, ended_at)"
                    " VALUES (:project, ?, ?, ?)"
                    " ON CONFLICT (project_no, id) DO UPDATE SET ended_at = excluded.ended_at"
                ),
                (name, now, now),
            )
        return self.expire()

    # decay

    def compact(self, *, now: int | None = None, is_asked: bool = True) -> int:
        """Shorten tasks closed long ago; return how many.

        Only what is shown is shortened: their text is kept, and found.

        Args:
            now: The time in milliseconds, instead of the clock's.
            is_asked: False to leave alone what a person has restored, as closing a task does.
        """
        done = 0
        with self._journal.begin() as turn:
            for level, closed_before in self._limits(turn.now_ms if now is None else now):
                found = self._store.select(
                    turn.session,
                    f"{_FADING}{'' if is_asked else _UNTOUCHED} ORDER BY t.closed_at LIMIT ?",
                    (level, closed_before, WORTH_CHARACTERS[level], _COMPACTED_AT_ONCE),
                )
                done += len(found)
                for stored in found:
                    fields = {
                        "description": condense_task(stored.task, level),
                        "original_content": stored.task.full_description,
                        "compaction_level": level,
                        "compacted_at": turn.now_ms,
                    }
                    turn.change(stored, "compacted", fields, is_touched=False)
        return done

    def restore(
        self, task_id: str, *, actor: str | None = None, session_id: str | None = None
    ) -> Task:
        """Show the whole text of a compacted task; return the task."""
        with self._changing(task_id, actor, session_id) as (turn, stored):
            if not stored.task.is_compacted:
                return stored.task
            # The time stays: a task that was restored is not shortened again by itself.
            fields = {**restore_fields(stored.task), "compacted_at": turn.now_ms}
            return turn.change(stored, "updated", fields, is_touched=False).task

    # many at once

    def put_many(self, tasks: Iterable[NewTask], *, actor: str | None = None) -> TaskImportReport:
        """Import tasks; safe to repeat.

        Args:
            tasks: The tasks, in any order.

        Returns:
            The counts; what cannot be imported is named in ``refused``.
        """
        return TaskImporter(self._journal, self._settings.task_prefix, actor).run(tasks)

    @contextmanager
    def _changing(
        self, task_id: str, actor: str | None, session_id: str | None
    ) -> Iterator[tuple[TaskChange, StoredTask]]:
        with self._journal.begin(actor, session_id) as turn:
            turn.expire(self._silent_since(turn.now_ms))
            yield turn, self._store.require(turn.session, task_id)

    def _limits(self, now_ms: int) -> tuple[tuple[int, int], ...]:
        """Return the levels of compaction, and until when a task for each was closed."""
        return (
            (2, now_ms - self._settings.archive_tasks_after_days * _DAY_MS),
            (1, now_ms - self._settings.compact_tasks_after_days * _DAY_MS),
        )

    def _decay_quietly(self) -> None:
        """Now and then; trouble here must not fail a task that is already closed."""
        try:
            with self._store.database.read() as session:
                is_due = any(
                    self._store.numbers(
                        session,
                        f"{_FADING}{_UNTOUCHED} LIMIT 1",
                        (level, closed_before, WORTH_CHARACTERS[level]),
                    )
                    for level, closed_before in self._limits(self._journal.project.clock.now_ms())
                )
            if is_due:
                self.compact(is_asked=False)
        except SmaraError as error:
            log.warning("task.decay_failed", error=error.code)


def _refuse_closed(task: Task, more: str, hint: str) -> None:
    if task.status == "closed":
        raise ConflictError.with_hint(
            f"Task {task.short_id} is closed{more}.",
            hint,
            task_id=task.short_id,
            brief="Task is closed",
        )


def condense_task(task: Task, level: int) -> str:
    """Return a closed task's shorter text at a level.

    Always shorter than what it stands for.
    """
    text = task.full_description
    opening = first_sentence(text)
    outcome = (task.summary or opening).strip()
    if level >= 2:
        return shorten(outcome, _LINE)
    lines = [shorten(outcome, 2 * _LINE)]
    if task.summary and opening:
        lines.append(shorten(opening, _LINE))
    names = fit(distinct(names_in(text[:6_000])), _NAMES_CHARACTERS)
    if names:
        lines.append(f"Names: {', '.join(names)}.")
    return shorten("\n".join(lines), max(WORTH_CHARACTERS[2], len(text) * 6 // 10))
