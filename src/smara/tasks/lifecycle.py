"""Create, close, reopen, update, undo and condense tasks.

Each function takes an open transaction. A closed task is condensed in two levels; its text
stays in `original_content` and in the index.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from smara.core.extract import distinct, first_sentence, fit, names_in, shorten
from smara.core.ids import bare_key_of, key_of
from smara.database.fulltext import RecordTerms
from smara.errors import ConflictError, DependencyCycleError
from smara.tasks import claims
from smara.tasks.claims import refuse_others
from smara.tasks.dependencies import find_cycle, waits_for
from smara.tasks.models import EventKind, Task
from smara.tasks.store import StoredTask
from smara.tasks.transaction import TaskTransaction


def make(
    turn: TaskTransaction,
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


def close(
    turn: TaskTransaction, stored: StoredTask, reason: str, summary: str, is_forced: bool
) -> None:
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


def reopen(turn: TaskTransaction, stored: StoredTask) -> None:
    """Reopen a closed task with its whole text; keep its summary."""
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
    turn.change(stored, "reopened", {**fields, **restore_fields(task)})


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


def update(turn: TaskTransaction, stored: StoredTask, fields: Mapping[str, Any]) -> None:
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
        changed = {**restore_fields(stored.task), **changed}
    if changed:
        turn.change(stored, "updated", changed)


def _differs(have: Any, wanted: Any) -> bool:
    return bool(dict(have) != wanted) if isinstance(wanted, dict) else bool(have != wanted)


def add_dependency(
    turn: TaskTransaction,
    stored: StoredTask,
    target: StoredTask,
    type_: str,
    kind: EventKind = "dependency_added",
    is_touched: bool = True,
) -> bool:
    """Make one task need another; whether it is new."""
    return bool(
        add_dependencies(turn, stored, target, types=(type_,), kind=kind, is_touched=is_touched)
    )


def add_dependencies(
    turn: TaskTransaction,
    stored: StoredTask,
    target: StoredTask,
    types: Sequence[str],
    kind: EventKind,
    is_touched: bool = True,
) -> bool:
    """Add dependencies of some types; return True if any is new."""
    for type_ in types:
        refuse_cycle(turn, stored.no, target.no, type_=type_)
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
        turn.event(stored.no, kind, {}, dependency_facts(target, *fresh))
    return bool(fresh)


def remove_dependencies(
    turn: TaskTransaction,
    stored: StoredTask,
    target: StoredTask,
    types: Sequence[str],
    kind: EventKind = "dependency_removed",
    is_touched: bool = True,
) -> bool:
    """Remove dependencies of some types; return True if any existed."""
    with turn.counted([stored.no, target.no]):
        gone = [
            type_
            for type_ in types
            if turn.store.remove_dependency(turn.session, stored.no, target.no, type_=type_)
        ]
    if gone and is_touched:
        turn.write(stored.no, {"updated_at": turn.now_ms})
    if gone:
        turn.event(stored.no, kind, dependency_facts(target, *gone), {})
    return bool(gone)


def refuse_cycle(turn: TaskTransaction, no: int, depends_on_no: int, type_: str) -> None:
    """Raise ``DependencyCycleError`` with the path for a closed circle."""
    if type_ == "related" and no != depends_on_no:
        return
    circle = find_cycle(turn.session, turn.store, *waits_for((no, depends_on_no, type_)))
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


def dependency_facts(target: StoredTask, *types: str) -> dict[str, Any]:
    """A dependency as events tell it."""
    return {"depends_on": target.task.id, "short_id": target.task.short_id, "types": list(types)}


_LASTING = ("created", "imported")


def undo(turn: TaskTransaction, stored: StoredTask, is_forced: bool) -> None:
    """Undo the newest change; on another's task only by force."""
    if not is_forced:
        refuse_others(turn, stored.task)
    row = turn.store.newest_change(turn.session, stored.no)
    if row is None or row[1] in _LASTING:
        hint = "Close it as wontfix if it should not be there."
        raise ConflictError(
            f"There is nothing to undo on task {stored.task.short_id}: it is as it was made. "
            f"{hint}",
            task_id=stored.task.short_id,
            brief="Nothing to undo",
            hint=hint,
        )
    event_no, kind, before, after = int(row[0]), row[1], json.loads(row[2]), json.loads(row[3])
    if kind in ("dependency_added", "dependency_removed"):
        was_added = bool(after)
        change = after if was_added else before
        other = turn.store.find_no(turn.session, change["depends_on"])
        if other is not None:
            target = StoredTask(other, turn.store.by_number(turn.session, other))
            act = remove_dependencies if was_added else add_dependencies
            act(turn, stored, target, change["types"], "undone")
    elif kind in ("linked", "unlinked"):
        message_no = (after or before)["message_no"]
        if before:
            turn.store.add_link(
                turn.session, (stored.no, message_no, before["relation"], turn.now_ms, turn.actor)
            )
        else:
            turn.store.remove_link(turn.session, stored.no, message_no)
        turn.event(stored.no, "undone", after, before)
    else:
        turn.change(stored, "undone", before)
    undone_by = turn.session.one(
        turn.store.sql(
            "SELECT max(no) FROM task_events WHERE project_no = :project AND task_no = ?"
        ),
        (stored.no,),
    )
    turn.store.mark_undone(turn.session, event_no, int(undone_by[0]) if undone_by else event_no)


WORTH_CHARACTERS = {1: 400, 2: 200}
"""A shorter description is left as it is."""
_NAMES_CHARACTERS = 300
_LINE = 160


def condense_task(task: Task, level: int) -> str:
    """Return a closed task's shorter text at a level.

    Always shorter than what it stands for.
    """
    text = task.full_description
    said = task.summary or first_sentence(text)
    if level >= 2:
        return shorten(said.strip(), _LINE)
    lines = [shorten(said.strip(), 2 * _LINE)]
    opening = first_sentence(text)
    if task.summary and opening:
        lines.append(shorten(opening, _LINE))
    names = fit(distinct(names_in(text[:6_000])), _NAMES_CHARACTERS)
    if names:
        lines.append(f"Names: {', '.join(names)}.")
    return shorten("\n".join(lines), max(WORTH_CHARACTERS[2], len(text) * 6 // 10))
