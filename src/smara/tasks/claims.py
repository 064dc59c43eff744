"""Claim a task for one holder, release it, or expire claims.

Claiming twice by the same holder is safe. A claim of a session that is gone expires.
"""

from __future__ import annotations

from typing import Any

from smara.core.validate import invalid
from smara.errors import ConflictError, TaskBlockedError, TaskClaimedError
from smara.secrets.redact import clean_name
from smara.tasks.models import Task
from smara.tasks.store import WAITS, StoredTask
from smara.tasks.transaction import TaskTransaction

_NOBODY: dict[str, Any] = {
    "status": "open",
    "session_id": None,
    "assignee": None,
    "claimed_at": None,
}


def claim(turn: TaskTransaction, stored: StoredTask) -> None:
    """Claim a ready task; its holder keeps it."""
    if is_holder(turn, stored.task):
        return
    refuse_others(turn, stored.task)
    if stored.task.status == "closed":
        raise ConflictError(
            f"Task {stored.task.short_id} is closed. Reopen it first if there is more to do.",
            task_id=stored.task.short_id,
            brief="Task is closed",
            hint="Reopen it first if there is more to do.",
        )
    if stored.task.status == "open":
        refuse_blocked(turn, stored)
    turn.change(stored, "claimed", _claim_fields(turn, turn.session_id, turn.actor))


def claim_first(turn: TaskTransaction, rest: str, values: list[Any]) -> int | None:
    """Take the first ready task that fits; its number."""
    found = turn.store.select(
        turn.session,
        f" AND t.status = 'open'{rest} AND NOT {WAITS} ORDER BY t.priority, t.created_at, t.no "
        "LIMIT 1",
        values,
    )
    if not found:
        return None
    turn.change(found[0], "claimed", _claim_fields(turn, turn.session_id, turn.actor))
    return found[0].no


def release(turn: TaskTransaction, stored: StoredTask, is_forced: bool) -> None:
    """Release a task; an unclaimed one stays as it is."""
    if stored.task.status != "in_progress":
        return
    if not is_forced:
        refuse_others(turn, stored.task)
    turn.change(stored, "released", _NOBODY)


def hand_over(
    turn: TaskTransaction,
    stored: StoredTask,
    to_session: str | None,
    to_assignee: str | None,
    is_forced: bool,
) -> None:
    """Hand a task to another holder."""
    if to_session is None and to_assignee is None:
        raise invalid(
            "A hand-over needs somebody to hand over to",
            "Say to_session, to_assignee, or both.",
            "to",
        )
    if stored.task.status == "closed":
        raise ConflictError(
            f"Task {stored.task.short_id} is closed, and cannot be handed over. Reopen it first.",
            task_id=stored.task.short_id,
            brief="Task is closed",
            hint="Reopen it first.",
        )
    if not is_forced:
        refuse_others(turn, stored.task)
    if stored.task.status == "open":
        refuse_blocked(turn, stored)
    session = None if to_session is None else clean_name(to_session, "to_session")
    person = session if to_assignee is None else clean_name(to_assignee, "to_assignee")
    if to_assignee is None and session is not None and session == stored.task.session_id:
        person = stored.task.assignee  # it stays where it is
    if (stored.task.status, stored.task.session_id, stored.task.assignee) == (
        "in_progress",
        session,
        person,
    ):
        return
    if session is not None:
        # A sign of life is given for it: it has the usual time to begin.
        turn.store.see_session(turn.session, session, turn.now_ms)
    turn.change(stored, "handed_over", _claim_fields(turn, session, person or ""))


def expire(turn: TaskTransaction, silent_since_ms: int | None) -> list[int]:
    """Release what gone sessions hold; return the tasks' numbers."""
    numbers = turn.store.abandoned(turn.session, silent_since_ms)
    for no, task in turn.store.by_numbers(turn.session, numbers).items():
        turn.change(StoredTask(no, task), "expired", _NOBODY)
    return numbers


def is_holder(turn: TaskTransaction, task: Task) -> bool:
    """Return True if the actor holds the task."""
    if task.status != "in_progress":
        return False
    if task.session_id is not None:
        return task.session_id == turn.session_id
    return turn.session_id is None and task.assignee == turn.actor


def refuse_others(turn: TaskTransaction, task: Task) -> None:
    """Raise ``TaskClaimedError`` if another session holds the task."""
    holder = task.holder
    if holder is None or is_holder(turn, task):
        return
    who = f"session {holder}" if task.session_id else holder
    seen_at = turn.store.seen_at(turn.session, task.session_id) if task.session_id else None
    hint = "Take another task that is ready, or have it released or handed over."
    raise TaskClaimedError(
        f"Already claimed by {who}: task {task.short_id}. {hint}",
        task_id=task.short_id,
        holder=holder,
        seen_at=seen_at,
        brief=f"Already claimed by {who}",
        hint=hint,
    )


def refuse_blocked(turn: TaskTransaction, stored: StoredTask) -> None:
    """``TaskBlockedError`` when the task waits for unfinished ones."""
    blocking = blocking_numbers(turn, stored.no)
    if not blocking:
        return
    names = [task.short_id for task in turn.store.by_numbers(turn.session, blocking[:20]).values()]
    more = f" and {len(blocking) - 20} more" if len(blocking) > 20 else ""
    hint = f"First close {', '.join(names)}{more}, or take another task that is ready."
    raise TaskBlockedError(
        f"Task is blocked by open dependencies: {stored.task.short_id}. {hint}",
        task_id=stored.task.short_id,
        blocking=names,
        brief="Task is blocked by open dependencies",
        hint=hint,
    )


def blocking_numbers(turn: TaskTransaction, no: int) -> list[int]:
    """The unfinished tasks that one waits for."""
    store, session = turn.store, turn.session
    awaited = [edge[1] for edge in store.needs(session, [no], "blocks")]
    awaited += [edge[0] for edge in store.needed_by(session, [no], "parent-child")]
    tasks = store.by_numbers(session, awaited)
    return [number for number, task in tasks.items() if task.status != "closed"]


def _claim_fields(turn: TaskTransaction, session_id: str | None, assignee: str) -> dict[str, Any]:
    return {
        "status": "in_progress",
        "session_id": session_id,
        "assignee": assignee,
        "claimed_at": turn.now_ms,
    }
