"""The changes that need thought: make, close, reopen, update, depend. Each takes an open turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smara.core.shortids import bare_key_of, code_of, key_of, length_for
from smara.database.records import RecordTerms
from smara.errors import ConflictError, DependencyCycleError
from smara.tasks import claims
from smara.tasks.models import EventKind, Task
from smara.tasks.store import Stored
from smara.tasks.turn import Turn
from smara.tasks.waiting import find_circle, waits_for


def make(
    turn: Turn,
    task_id: str,
    short_id: str,
    values: Mapping[str, Any],
    labels: Sequence[str],
    terms: RecordTerms,
) -> int:
    """A new task; its number. The caller records the event."""
    row = {
        "id": task_id,
        "short_id": short_id,
        "key": key_of(short_id),
        "bare_key": bare_key_of(short_id),
        **values,
    }
    return turn.insert(row, labels, terms)


def new_short_id(turn: Turn, task_id: str, prefix: str) -> str:
    """The shortest id of a task that nobody has, long enough for the size of the project."""
    length = length_for(turn.totals.all + 1)
    while True:
        short_id = f"{prefix}-{code_of(task_id, length)}"
        if not turn.store.has_key(turn.session, key_of(short_id)):
            return short_id
        length += 1


def close(turn: Turn, stored: Stored, reason: str, summary: str, is_forced: bool) -> None:
    """Close a task; closing it again in the same words changes nothing."""
    task = stored.task
    if task.status == "closed":
        if (task.close_reason, task.summary) == (reason, summary):
            return
        raise ConflictError(
            f"Task {task.short_id} is closed already ({task.close_reason}). Reopen it to close it "
            "differently.",
            task_id=task.short_id,
            brief="Task is already closed",
            hint="Reopen it first to close it differently.",
        )
    if not is_forced:
        claims.refuse_others(turn, task)
    turn.change(
        stored,
        "closed",
        {"status": "closed", "closed_at": turn.now_ms, "close_reason": reason, "summary": summary},
    )


def reopen(turn: Turn, stored: Stored) -> None:
    """Make a closed task open again, with its whole text; its summary stays."""
    task = stored.task
    if task.status != "closed":
        return
    fields: dict[str, Any] = {
        "status": "open",
        "closed_at": None,
        "close_reason": None,
        "session_id": None,
        "assignee": None,
        "claimed_at": None,
    }
    turn.change(stored, "reopened", {**fields, **restored(task)})


def restored(task: Task) -> dict[str, Any]:
    """The fields of a compacted task as they were before; nothing for another."""
    if not task.is_compacted:
        return {}
    return {
        "description": task.full_description,
        "original_content": None,
        "compaction_level": 0,
        "compacted_at": None,
    }


def update(turn: Turn, stored: Stored, fields: Mapping[str, Any]) -> None:
    """Change named fields; what is the same already is left alone."""
    changed = {
        name: value for name, value in fields.items() if _differs(getattr(stored.task, name), value)
    }
    if "assignee" in changed and stored.task.holder is not None:
        hint = "Hand it over instead (release with `to`), or release it first."
        raise ConflictError(
            f"Task {stored.task.short_id} is being worked on by {stored.task.holder}. {hint}",
            task_id=stored.task.short_id,
            brief=f"Task is held by {stored.task.holder}",
            hint=hint,
        )
    if "description" in changed and stored.task.is_compacted:
        # What was written before would otherwise come back over the new text with a restore.
        changed = {**restored(stored.task), **changed}
    if changed:
        turn.change(stored, "updated", changed)


def _differs(have: Any, wanted: Any) -> bool:
    return bool(dict(have) != wanted) if isinstance(wanted, dict) else bool(have != wanted)


def add_dependency(
    turn: Turn,
    stored: Stored,
    target: Stored,
    type_: str,
    kind: EventKind = "dependency_added",
    is_touched: bool = True,
) -> bool:
    """Make one task need another; whether it is new."""
    return bool(
        add_dependencies(turn, stored, target, types=(type_,), kind=kind, is_touched=is_touched)
    )


def add_dependencies(
    turn: Turn,
    stored: Stored,
    target: Stored,
    types: Sequence[str],
    kind: EventKind,
    is_touched: bool = True,
) -> bool:
    """Make one task need another, by some types, in one change; whether anything is new."""
    for type_ in types:
        refuse_circle(turn, stored.no, target.no, type_=type_)
    with turn.counted([stored.no, target.no]):
        fresh = [
            type_
            for type_ in types
            if turn.store.add_dependency(
                turn.session, (stored.no, target.no, type_, turn.now_ms, turn.actor)
            )
        ]
    if fresh and is_touched:
        turn.write(stored.no, {"updated_at": turn.now_ms})
    if fresh:
        turn.event(stored.no, kind, {}, named(target, *fresh))
    return bool(fresh)


def remove_dependencies(
    turn: Turn,
    stored: Stored,
    target: Stored,
    types: Sequence[str],
    kind: EventKind = "dependency_removed",
    is_touched: bool = True,
) -> bool:
    """Let one task no longer need another, by some types, in one change; whether it did."""
    with turn.counted([stored.no, target.no]):
        gone = [
            type_
            for type_ in types
            if turn.store.remove_dependency(turn.session, stored.no, target.no, type_=type_)
        ]
    if gone and is_touched:
        turn.write(stored.no, {"updated_at": turn.now_ms})
    if gone:
        turn.event(stored.no, kind, named(target, *gone), {})
    return bool(gone)


def refuse_circle(turn: Turn, no: int, depends_on_no: int, type_: str) -> None:
    """``DependencyCycleError`` with the path of short ids, when a dependency would close a
    circle.
    """
    if type_ == "related" and no != depends_on_no:
        return
    circle = find_circle(turn.session, turn.store, *waits_for((no, depends_on_no, type_)))
    if circle is None:
        return
    tasks = turn.store.by_numbers(turn.session, circle)
    path = [tasks[no].short_id for no in circle]
    shown = " → ".join(path if len(path) <= 12 else [*path[:6], "…", *path[-5:]])
    hint = "Remove one of these dependencies first, or use the type related."
    raise DependencyCycleError(
        f"These tasks would wait for each other for ever: {shown}. {hint}",
        path=path,
        brief=f"Dependency cycle: {shown}",
        hint=hint,
    )


def named(target: Stored, *types: str) -> dict[str, Any]:
    """A dependency as events tell it."""
    return {"depends_on": target.task.id, "short_id": target.task.short_id, "types": list(types)}
