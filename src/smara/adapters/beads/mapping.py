"""Between an issue of beads and a task: there, and back without loss.

`take` reads an issue as a task, `give` writes a task as an issue. What ``give(take(issue))``
does not give back (exact times, statuses and fields that only beads has) is kept with the
task, in ``metadata["beads"]``. An export puts it back, unless the task was changed here
since: a kept value counts as long as reading it gives what the task says now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, cast

from smara.adapters.beads.models import KEY, Record
from smara.adapters.beads.sections import fold, sections_of, unfold
from smara.adapters.decoding import list_in, mapping_in, milliseconds, text_in
from smara.core.scope import is_id
from smara.tasks.models import (
    CLOSE_REASONS,
    DEFAULT_PRIORITY,
    MAX_TITLE_LENGTH,
    TYPES,
    NewTask,
    Task,
    TaskStatus,
)
from smara.tasks.prepare import (
    MAX_DESCRIPTION_LENGTH,
    MAX_LABEL_LENGTH,
    MAX_LABELS,
    MAX_SUMMARY_LENGTH,
)

STATUSES: Mapping[str, TaskStatus] = {
    "open": "open",
    "in_progress": "in_progress",
    "closed": "closed",
    "tombstone": "closed",  # deleted there; kept here, out of the way
    "hooked": "in_progress",  # a worker has it
    "blocked": "open",  # here a task is blocked by its dependencies, not by its status
    "deferred": "open",
    "pinned": "open",
}
# Fields of an issue, and the fields of a task that say the same. They are put back together or not
# at all: an issue that was reopened here is not deleted any more, and its reason for closing is
# gone.
GROUPS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("title",), ("title",)),
    (("description", "design", "acceptance_criteria", "notes"), ("description",)),
    (
        ("status", "closed_at", "close_reason", "closed_by_session", "deleted_at", "deleted_by",
        "delete_reason",
         "original_type"),
        ("status", "closed_at", "close_reason", "summary"),
    ),
    (("priority",), ("priority",)),
    (("issue_type",), ("type",)),
    (("assignee",), ("assignee",)),
    (("created_at",), ("created_at",)),
    (("created_by",), ("created_by",)),
    (("updated_at",), ("updated_at",)),
    (("labels",), ("labels",)),
    (("metadata",), ("metadata",)),
)  # fmt: skip
COUNTERPARTS = {"id", "dependencies", *(name for names, _ in GROUPS for name in names)} - {
    "closed_by_session",
    "deleted_at",
    "deleted_by",
    "delete_reason",
    "original_type",
}
_FILLED_IN = ("created_at", "created_by", "updated_at", "closed_at")
"""What a store fills in where an issue is silent: there, a value is no change."""

_OUTCOME = re.compile(rf"({'|'.join(CLOSE_REASONS)})(?:: (.*))?", re.DOTALL)
_SHARED = [
    field.name
    for field in fields(NewTask)
    if field.name not in ("metadata", "depends_on", "description")
]


def take(record: Record) -> NewTask:
    """An issue as a task, whatever its fields hold; dependencies apart."""
    status = _status(record)
    reason, summary = _outcome(record)
    is_closed = status == "closed"
    type_ = record.get("issue_type")
    return NewTask(
        short_id=record["id"],
        title=_title(record),
        description=fold(record)[:MAX_DESCRIPTION_LENGTH],
        status=status,
        priority=_priority(record.get("priority")),
        type=type_ if type_ in TYPES else "task",
        assignee=_name(record.get("assignee")),
        created_at=_time(record, "created_at", "updated_at", "closed_at"),
        created_by=_name(record.get("created_by")),
        updated_at=_time(record, "updated_at", "closed_at", "created_at"),
        closed_at=_time(record, "closed_at", "deleted_at", "updated_at", "created_at")
        if is_closed
        else None,
        close_reason=reason if is_closed else None,
        summary=summary,
        labels=_labels(record.get("labels")),
        metadata={
            name: value for name, value in mapping_in(record.get("metadata")).items() if name != KEY
        },
    )


def give(task: NewTask, sections: Sequence[str] = ()) -> dict[str, Any]:
    """A task as an issue, dependencies apart; what says nothing is left out."""
    record = {
        "id": task.short_id,
        "title": task.title,
        **unfold(task.description, sections),
        "status": task.status,
        "priority": task.priority,
        "issue_type": task.type,
        "assignee": task.assignee,
        "created_at": rfc3339(task.created_at),
        "created_by": task.created_by,
        "updated_at": rfc3339(task.updated_at),
        "closed_at": rfc3339(task.closed_at),
        "close_reason": _close_reason(task),
        "metadata": dict(task.metadata) or None,
        "labels": list(task.labels) or None,
    }
    return {name: value for name, value in record.items() if value is not None}


def with_residue(record: Record, task: NewTask) -> NewTask:
    """The task with what `give` alone would not give back of its record."""
    sections = sections_of(record)
    plain = give(task, sections)
    kept = {
        name: value
        for name, value in record.items()
        if name not in plain or not _is_same(plain[name], value)
    }
    filled_in = _FILLED_IN if task.status == "closed" else _FILLED_IN[:-1]
    silent = [name for name in dict.fromkeys((*plain, *filled_in)) if name not in record]
    residue = {"fields": kept, "silent": silent, "sections": sections}
    residue = {name: value for name, value in residue.items() if value}
    return replace(task, metadata={**task.metadata, KEY: residue}) if residue else task


def issue_of(task: Task) -> tuple[dict[str, Any], bool]:
    """The task as the issue it came from, with what was changed here; dependencies are left as they
    came.

    Also says whether anything was changed.
    """
    residue = mapping_in(task.metadata.get(KEY))
    ours = as_new(task)
    plain = give(ours, [name for name in list_in(residue.get("sections")) if isinstance(name, str)])
    silent = set(map(str, list_in(residue.get("silent"))))
    candidate = {name: value for name, value in plain.items() if name not in silent}
    candidate.update(mapping_in(residue.get("fields")))
    taken = take(candidate)
    is_changed = False
    for names, meanings in GROUPS:
        if all(_still_says(taken, ours, meaning) for meaning in meanings):
            continue
        is_changed = True
        for name in names:
            candidate.pop(name, None)
            if name in plain:
                candidate[name] = plain[name]
    if is_changed and milliseconds(candidate.get("updated_at")) != ours.updated_at:
        candidate["updated_at"] = plain["updated_at"]  # also where the issue told none
    return candidate, is_changed


def as_new(task: Task) -> NewTask:
    """A task as it would be handed to another store."""
    shared = {name: getattr(task, name) for name in _SHARED}
    metadata = {name: value for name, value in task.metadata.items() if name != KEY}
    # A claim belongs to this store; what others may know is who works on it.
    shared |= {"session_id": None, "id": None, "assignee": task.assignee or task.holder}
    return NewTask(**shared, description=task.full_description, metadata=metadata)


def rfc3339(milliseconds: int | None) -> str | None:
    """A time as beads writes it: UTC, with no more digits than it needs.

    >>> rfc3339(1770841013366), rfc3339(1770841013000)
    ('2026-02-11T20:16:53.366Z', '2026-02-11T20:16:53Z')
    """
    if milliseconds is None:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    fraction = f".{rest:03d}".rstrip("0") if rest else ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _still_says(taken: NewTask, ours: NewTask, meaning: str) -> bool:
    kept, now = getattr(taken, meaning), getattr(ours, meaning)
    return bool(kept == now) or (kept is None and meaning in _FILLED_IN)


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)  # True is not 1 in JSON


def _status(record: Record) -> TaskStatus:
    status = record.get("status")
    if isinstance(status, str) and status in STATUSES:
        return STATUSES[status]
    return "open" if milliseconds(record.get("closed_at")) is None else "closed"


def _outcome(record: Record) -> tuple[str, str | None]:
    """How a task ended and what was said about it: free text, or one of our reasons before a
    colon.
    """
    said = (text_in(record.get("close_reason")) or text_in(record.get("delete_reason")))[
        :MAX_SUMMARY_LENGTH
    ].strip()
    if record.get("status") == "tombstone":
        return "wontfix", said or None
    found = _OUTCOME.fullmatch(said)
    if found is None:
        return "completed", said or None
    return found[1], (found[2] or "").strip() or None


def _close_reason(task: NewTask) -> str | None:
    summary, reason = task.summary or "", task.close_reason or "completed"
    if reason == "completed" and _outcome({"close_reason": summary}) == (reason, task.summary):
        return summary or None
    return f"{reason}: {summary}" if summary else reason


def _title(record: Record) -> str:
    line = " ".join(text_in(record.get("title")).split())
    if len(line) > MAX_TITLE_LENGTH:
        return line[: MAX_TITLE_LENGTH - 1].rstrip() + "…"
    return line or cast("str", record["id"])


def _priority(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return DEFAULT_PRIORITY
    return min(4, max(0, value))


def _name(value: Any) -> str | None:
    return value if is_id(value) and value.strip() else None


def _labels(value: Any) -> tuple[str, ...]:
    lines = {" ".join(label.split()) for label in list_in(value) if isinstance(label, str)}
    return tuple(sorted(line for line in lines if 0 < len(line) <= MAX_LABEL_LENGTH))[:MAX_LABELS]


def _time(record: Record, *names: str) -> int | None:
    return next(
        (found for name in names if (found := milliseconds(record.get(name))) is not None), None
    )
