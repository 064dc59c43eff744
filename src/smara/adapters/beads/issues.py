"""Map issues and dependencies of beads to tasks and back.

`take` reads an issue as a task, `give` writes a task as an issue. What ``give(take(issue))``
would lose is kept in ``metadata["beads"]`` and restored by an export unless the task changed.
The four texts of an issue form one description with headings. Dependencies that are circular
or have no counterpart are kept with their issues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from smara.adapters.beads.tracker import KEY, Record
from smara.adapters.lines import list_in, mapping_in, milliseconds, text_in
from smara.core.ids import key_of
from smara.core.scope import is_id
from smara.tasks.models import (
    CLOSE_REASONS,
    DEFAULT_PRIORITY,
    MAX_TITLE_LENGTH,
    TYPES,
    DependencyType,
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

HEADINGS: Mapping[str, str] = {
    "design": "## Design", "acceptance_criteria": "## Acceptance criteria", "notes": "## Notes",
}  # fmt: skip


def sections_of(record: Mapping[str, Any]) -> list[str]:
    """Return the names of an issue's other texts."""
    return [name for name in HEADINGS if isinstance(record.get(name), str) and record[name]]


def fold(record: Mapping[str, Any]) -> str:
    """All texts of an issue as one."""
    description = record.get("description")
    texts = [description] if isinstance(description, str) and description else []
    return "\n\n".join(
        [*texts, *(f"{HEADINGS[name]}\n\n{record[name]}" for name in sections_of(record))]
    )


def unfold(text: str, sections: Iterable[str]) -> dict[str, str]:
    """Split one text into an issue's texts, at these headings.

    Empty ones are left out.

    The last of equal headings counts: it is ours, whatever the text before it holds.
    """
    found: dict[str, str] = {}
    for name in reversed([name for name in HEADINGS if name in set(sections)]):
        # A text that begins with a heading is one without a description.
        before, heading, after = f"\n\n{text}".rpartition(f"\n\n{HEADINGS[name]}\n\n")
        if heading:
            found[name], text = after, before.removeprefix("\n\n")
    return {name: value for name, value in {"description": text, **found}.items() if value}


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
    """Return a task as an issue, without dependencies and empty fields."""
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
    """Return the task with those fields that `give` would lose."""
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
    """Return the issue of a task, with the changes made here.

    Dependencies are left as they came.

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
    """Format a time as beads does: UTC, with no superfluous digits.

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


class IssueEdge(NamedTuple):
    """``task`` needs ``depends_on``; for ``parent-child`` the latter is the parent."""

    task: str
    depends_on: str
    type: DependencyType

    @property
    def waits(self) -> tuple[str, str] | None:
        """The task that waits, and the one it waits for.

        A task waits for its blocker, a parent for its child.
        """
        if self.type == "related":
            return None
        return (
            (self.depends_on, self.task)
            if self.type == "parent-child"
            else (self.task, self.depends_on)
        )


# Each type of beads with ours, and whether the two ends change places. What makes an issue wait
# there blocks here; what only ties two issues together is related; what is not listed has no
# counterpart.
DEPENDENCY_TYPES: Mapping[str, tuple[DependencyType, bool]] = {
    "blocks": ("blocks", False),
    "blocked-by": ("blocks", False),
    "depends-on": ("blocks", False),
    "conditional-blocks": ("blocks", False),
    "waits-for": ("blocks", False),
    "parent-child": ("parent-child", False),
    "child-of": ("parent-child", False),
    "parent-of": ("parent-child", True),
    **dict.fromkeys(
        ("related", "relates-to", "discovered-from", "tracks", "duplicates", "supersedes",
        "replies-to", "caused-by",
         "validates", "until", "delegated-from"),
        ("related", False),
    ),
}  # fmt: skip


def edge_of(issue_id: str, dependency: Any) -> IssueEdge | None:
    """Return the edge of a dependency; ``None`` for an unknown type."""
    if not isinstance(dependency, dict):
        return None
    target, name = dependency.get("depends_on_id"), dependency.get("type", "blocks")
    if (
        not isinstance(target, str)
        or not target
        or not isinstance(name, str)
        or name not in DEPENDENCY_TYPES
    ):
        return None
    type_, is_reversed = DEPENDENCY_TYPES[name]
    return IssueEdge(target, issue_id, type_) if is_reversed else IssueEdge(issue_id, target, type_)


def keyed(edge: IssueEdge) -> IssueEdge:
    """The same edge by keys: ids may be written in any case."""
    return IssueEdge(key_of(edge.task), key_of(edge.depends_on), edge.type)


def implied_parent(issue_id: str) -> str | None:
    """Return the parent in a hierarchical id: ``bd-1`` for ``bd-1.2``."""
    parent, dot, number = issue_id.rpartition(".")
    return parent if dot and parent and number.isdigit() else None


def circular(edges: Iterable[IssueEdge], standing: Iterable[IssueEdge]) -> set[IssueEdge]:
    """Return the edges that would close a cycle, first come first served.

    ``standing`` are taken as they are. An edge from a task to itself is refused whatever its type.
    """
    given = list(dict.fromkeys(edges))
    before = [pair for edge in standing if (pair := edge.waits)]
    knot = _knotted([*before, *(pair for edge in given if (pair := edge.waits))])
    graph: dict[str, set[str]] = {}
    for waiting, awaited in before:
        graph.setdefault(waiting, set()).add(awaited)
    refused = set()
    for edge in given:
        if edge.task == edge.depends_on:
            refused.add(edge)
        elif (pair := edge.waits) and knot.issuperset(pair):
            if _reaches(graph, pair[1], pair[0]):
                refused.add(edge)
            else:
                graph.setdefault(pair[0], set()).add(pair[1])
    return refused


def _knotted(pairs: list[tuple[str, str]]) -> set[str]:
    """The tasks that may be part of a circle.

    It is what is left when all that waits for nothing is taken away, again and again: mostly
    nothing, and then no edge has to be looked at on its own.
    """
    awaiting: dict[str, int] = {}
    waiters: dict[str, list[str]] = {}
    for waiting, awaited in pairs:
        awaiting[waiting] = awaiting.get(waiting, 0) + 1
        awaiting.setdefault(awaited, 0)
        waiters.setdefault(awaited, []).append(waiting)
    free = [task for task, count in awaiting.items() if not count]
    for task in free:  # grows while it is walked
        for waiting in waiters.get(task, ()):
            awaiting[waiting] -= 1
            if not awaiting[waiting]:
                free.append(waiting)
    return set(awaiting).difference(free)


def _reaches(graph: Mapping[str, set[str]], start: str, goal: str) -> bool:
    stack, seen = [start], {start}
    while stack:
        task = stack.pop()
        if task == goal:
            return True
        new = graph.get(task, set()) - seen
        seen |= new
        stack += new
    return False


NO_COUNTERPART = "of a type that has no counterpart"
NOT_THERE = "on an issue that is not there"
CIRCLE = "that would close a circle"


@dataclass(slots=True)
class Settled:
    """The dependencies of a tracker, by keys."""

    edges: set[IssueEdge] = field(default_factory=set)
    implied: set[str] = field(default_factory=set)
    """Issues whose parent is known by their ids alone."""
    apart: dict[str, dict[int, str]] = field(default_factory=dict)
    """Issue → position of a dependency that cannot stand → why."""
    _by_task: dict[str, set[IssueEdge]] = field(default_factory=dict)

    def add(self, edge: IssueEdge) -> None:
        self.edges.add(edge)
        self._by_task.setdefault(edge.task, set()).add(edge)

    def edges_of(self, key: str) -> AbstractSet[IssueEdge]:
        """Return the edges of a task."""
        return self._by_task.get(key, frozenset())


def settle(
    issues: Mapping[str, Record],
    known: AbstractSet[str],
    standing: Iterable[IssueEdge],
    orphans: AbstractSet[str],
) -> Settled:
    """Accept the dependencies of issues in order, as far as they fit.

    ``orphans`` were taken from the parents that their ids name, and are not given back to them.
    """
    settled = Settled()
    found: list[tuple[str, int, IssueEdge]] = []
    for key, record in issues.items():
        for position, dependency in enumerate(list_in(record.get("dependencies"))):
            edge = edge_of(record["id"], dependency)
            if edge is None:
                settled.apart.setdefault(key, {})[position] = NO_COUNTERPART
            elif not {(edge := keyed(edge)).task, edge.depends_on} <= known:
                settled.apart.setdefault(key, {})[position] = NOT_THERE
            else:
                found.append((key, position, edge))
    told = {edge.task for _, _, edge in found if edge.type == "parent-child"}
    implied = _implied(issues, known, told | orphans)
    refused = circular([*(edge for _, _, edge in found), *implied], standing)
    for key, position, edge in found:
        if edge in refused:
            settled.apart.setdefault(key, {})[position] = CIRCLE
        else:
            settled.add(edge)
    for edge in implied:
        if edge not in refused:
            settled.add(edge)
            settled.implied.add(edge.task)
    return settled


def _implied(
    issues: Mapping[str, Record], known: AbstractSet[str], others: AbstractSet[str]
) -> list[IssueEdge]:
    """Parents named by ids, but for some issues: they have others, or none."""
    parents = {key: implied_parent(key) for key in issues if key not in others}
    return [
        IssueEdge(key, parent, "parent-child")
        for key, parent in parents.items()
        if parent is not None and parent in known
    ]
