"""Map issues and dependencies of beads to tasks and back.

`take` reads an issue as a task, `give` writes a task as an issue. What ``give(take(issue))``
would lose is kept in ``metadata["beads"]`` and restored by an export unless the task changed.
The four texts of an issue form one description with headings. Dependencies that are circular
or have no counterpart are kept with their issues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from smara.adapters.lines import given, list_in, mapping_in, milliseconds, text_in
from smara.core.extract import one_line, shorten
from smara.core.ids import key_of
from smara.core.scope import is_id
from smara.core.startup.regex import re, regex
from smara.secrets.redact import MAX_LINE_LENGTH
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
    MAX_LABELS,
    MAX_SUMMARY_LENGTH,
)

# One line of a tracker: an issue, or something else that beads keeps.
Record = Mapping[str, Any]

# Where a task's metadata holds what has no place of its own here.
KEY = "beads"

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
# What a store fills in where an issue is silent: there, a value is no change.
_FILLED_IN = ("created_at", "created_by", "updated_at", "closed_at")

_OUTCOME = regex(rf"({'|'.join(CLOSE_REASONS)})(?:: (.*))?", re.DOTALL)
_SHARED = [
    field.name
    for field in fields(NewTask)
    if field.name not in ("metadata", "depends_on", "description", "assignee", "session_id", "id")
]


def take(record: Record) -> NewTask:
    """Read an issue as a task, whatever its fields hold; dependencies apart."""
    closed_at = _time(record, "closed_at")
    status = STATUSES.get(text_in(record.get("status")), "open" if closed_at is None else "closed")
    is_closed = status == "closed"
    reason, summary = _outcome(record)
    title = one_line(text_in(record.get("title"))) or str(record["id"])
    priority, type_ = record.get("priority"), record.get("issue_type")
    if not isinstance(priority, int) or isinstance(priority, bool):
        priority = DEFAULT_PRIORITY
    labels = {
        " ".join(label.split()) for label in list_in(record.get("labels")) if isinstance(label, str)
    }
    return NewTask(
        short_id=record["id"],
        title=shorten(title, MAX_TITLE_LENGTH),
        description=fold(record)[:MAX_DESCRIPTION_LENGTH],
        status=status,
        priority=min(4, max(0, priority)),
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
        labels=tuple(sorted(each for each in labels if 0 < len(each) <= MAX_LINE_LENGTH))[
            :MAX_LABELS
        ],
        metadata={
            name: value for name, value in mapping_in(record.get("metadata")).items() if name != KEY
        },
    )


def give(task: NewTask, sections: Sequence[str] = ()) -> dict[str, Any]:
    """Return a task as an issue, without dependencies and empty fields."""
    summary, reason = task.summary or "", task.close_reason or "completed"
    ending: str | None = f"{reason}: {summary}" if summary else reason
    if reason == "completed" and _outcome({"close_reason": summary}) == (reason, task.summary):
        ending = summary or None
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
        "close_reason": ending,
        "metadata": dict(task.metadata) or None,
        "labels": list(task.labels) or None,
    }
    return {name: value for name, value in record.items() if value is not None}


def with_residue(record: Record, task: NewTask) -> NewTask:
    """Return the task with those fields that `give` would lose."""
    sections = sections_of(record)
    plain = give(task, sections)
    lost = {
        name: value
        for name, value in record.items()
        # True is not 1 in JSON.
        if name not in plain or type(plain[name]) is not type(value) or plain[name] != value
    }
    filled_in = _FILLED_IN if task.status == "closed" else _FILLED_IN[:-1]
    silent = [name for name in dict.fromkeys((*plain, *filled_in)) if name not in record]
    residue = given(fields=lost, silent=silent, sections=sections)
    return replace(task, metadata={**task.metadata, KEY: residue}) if residue else task


def issue_of(task: Task) -> tuple[dict[str, Any], bool]:
    """Return the issue of a task, and whether it changed here.

    Dependencies are left as they came.
    """
    residue = mapping_in(task.metadata.get(KEY))
    # A claim belongs to this store; what others may know is who works on it.
    ours = NewTask(
        **{name: getattr(task, name) for name in _SHARED},
        assignee=task.assignee or task.holder,
        description=task.full_description,
        metadata={name: value for name, value in task.metadata.items() if name != KEY},
    )
    plain = give(ours, [name for name in list_in(residue.get("sections")) if isinstance(name, str)])
    silent = set(map(str, list_in(residue.get("silent"))))
    candidate = {name: value for name, value in plain.items() if name not in silent}
    candidate.update(mapping_in(residue.get("fields")))
    taken = take(candidate)
    is_changed = False
    for names, meanings in GROUPS:
        if all(
            getattr(taken, meaning) == getattr(ours, meaning)
            or (getattr(taken, meaning) is None and meaning in _FILLED_IN)
            for meaning in meanings
        ):
            continue
        is_changed = True
        for name in names:
            candidate.pop(name, None)
            if name in plain:
                candidate[name] = plain[name]
    if is_changed and milliseconds(candidate.get("updated_at")) != ours.updated_at:
        candidate["updated_at"] = plain["updated_at"]  # also where the issue told none
    return candidate, is_changed


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


def _outcome(record: Record) -> tuple[str, str | None]:
    """How a task ended and what was said about it: free text, or one of our reasons before a
    colon.
    """
    words = text_in(record.get("close_reason")) or text_in(record.get("delete_reason"))
    words = words[:MAX_SUMMARY_LENGTH].strip()
    if record.get("status") == "tombstone":
        return "wontfix", words or None
    ours = _OUTCOME.fullmatch(words)
    reason, summary = (ours[1], (ours[2] or "").strip()) if ours else ("completed", words)
    return reason, summary or None


def _name(value: Any) -> str | None:
    return value if is_id(value) and value.strip() else None


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
    """Return the edge of a dependency; ``None`` for an unknown type.

    By keys, because ids may be written in any case.
    """
    fields = mapping_in(dependency)
    target, name = text_in(fields.get("depends_on_id")), text_in(fields.get("type", "blocks"))
    if not target or name not in DEPENDENCY_TYPES:
        return None
    type_, is_reversed = DEPENDENCY_TYPES[name]
    task, depends_on = key_of(issue_id), key_of(target)
    return IssueEdge(depends_on, task, type_) if is_reversed else IssueEdge(task, depends_on, type_)


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
    # Only tasks that are left when all that waits for nothing is taken away, again and again, can
    # be part of a cycle: mostly none, and then no edge has to be looked at on its own.
    sorter = TopologicalSorter[str]()
    knot = set()
    for waiting, awaited in (*before, *(pair for edge in given if (pair := edge.waits))):
        sorter.add(waiting, awaited)
        knot |= {waiting, awaited}
    with suppress(CycleError):
        sorter.prepare()
    while free := sorter.get_ready():
        knot.difference_update(free)
        sorter.done(*free)
    graph: dict[str, set[str]] = {}
    for waiting, awaited in before:
        graph.setdefault(waiting, set()).add(awaited)
    refused = set()
    for edge in given:
        if edge.task == edge.depends_on:
            refused.add(edge)
        elif (pair := edge.waits) and knot.issuperset(pair):
            waiting, awaited = pair
            reached = stack = {awaited}
            while stack:
                stack = {after for task in stack for after in graph.get(task, ())} - reached
                reached = reached | stack
            if waiting in reached:
                refused.add(edge)
            else:
                graph.setdefault(waiting, set()).add(awaited)
    return refused


NO_COUNTERPART = "of a type that has no counterpart"
NOT_THERE = "on an issue that is not there"
CIRCLE = "that would close a circle"


class Settlement(NamedTuple):
    """The dependencies of a tracker, by keys.

    Attributes:
        implied: Issues whose parent is known by their ids alone.
        apart: Issue → position of a dependency that cannot stand → why.
    """

    edges: set[IssueEdge]
    implied: set[str]
    apart: dict[str, dict[int, str]]


def settle(
    issues: Mapping[str, Record],
    present: AbstractSet[str],
    standing: Iterable[IssueEdge],
    orphans: AbstractSet[str],
) -> Settlement:
    """Accept the dependencies of issues in order, as far as they fit.

    ``orphans`` were taken from the parents that their ids name, and are not given back to them.
    """
    apart: dict[str, dict[int, str]] = {}
    candidates: list[tuple[str, int, IssueEdge]] = []
    for key, record in issues.items():
        for position, dependency in enumerate(list_in(record.get("dependencies"))):
            edge = edge_of(record["id"], dependency)
            if edge is None:
                apart.setdefault(key, {})[position] = NO_COUNTERPART
            elif not {edge.task, edge.depends_on} <= present:
                apart.setdefault(key, {})[position] = NOT_THERE
            else:
                candidates.append((key, position, edge))
    # Parents named by ids, but for issues that have others, or none.
    others = orphans | {edge.task for _, _, edge in candidates if edge.type == "parent-child"}
    implied = [
        IssueEdge(key, parent, "parent-child")
        for key in issues
        if key not in others and (parent := implied_parent(key)) in present and parent is not None
    ]
    refused = circular([*(edge for _, _, edge in candidates), *implied], standing)
    for key, position, edge in candidates:
        if edge in refused:
            apart.setdefault(key, {})[position] = CIRCLE
    return Settlement(
        {edge for edge in (*(each for _, _, each in candidates), *implied) if edge not in refused},
        {edge.task for edge in implied if edge not in refused},
        apart,
    )
