"""Define the records of the tasks room: tasks, dependencies, events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args

from smara.core.items import Items
from smara.core.startup.record import dataclass, field

TaskStatus = Literal["open", "in_progress", "closed"]
TaskType = Literal["bug", "feature", "task", "epic", "chore"]
DependencyType = Literal["blocks", "parent-child", "related"]
CloseReason = Literal["completed", "wontfix", "duplicate"]
Priority: TypeAlias = Annotated[int, range(5)]
Relation = Literal["output", "reference", "created_from"]
EventKind = Literal[
    "created",
    "imported",
    "updated",
    "claimed",
    "released",
    "handed_over",
    "expired",
    "closed",
    "reopened",
    "dependency_added",
    "dependency_removed",
    "linked",
    "unlinked",
    "compacted",
    "undone",
]

STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
TYPES: tuple[TaskType, ...] = get_args(TaskType)
DEPENDENCY_TYPES: tuple[DependencyType, ...] = get_args(DependencyType)
CLOSE_REASONS: tuple[CloseReason, ...] = get_args(CloseReason)
RELATIONS: tuple[Relation, ...] = get_args(Relation)

MAX_TITLE_LENGTH = 500
DEFAULT_PRIORITY = 2
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Dependency:
    """``task_id`` needs ``depends_on_id``; for ``parent-child``, the latter is the parent."""

    task_id: str
    depends_on_id: str
    type: DependencyType = "blocks"
    created_at: int = 0
    created_by: str | None = None
    task: str = ""
    depends_on: str = ""
    """The same two as short ids, for showing."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task as it is now.

    ``id`` is a UUID v7; ``short_id`` is what people and agents write. ``description`` is
    the text to show, which for a compacted task is short; ``original_content`` keeps all of it.
    """

    id: str
    short_id: str
    title: str
    description: str
    status: TaskStatus
    priority: int
    type: TaskType
    assignee: str | None
    session_id: str | None
    claimed_at: int | None
    created_at: int
    created_by: str | None
    updated_at: int
    closed_at: int | None = None
    close_reason: str | None = None
    summary: str | None = None
    labels: tuple[str, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    """What this task depends on, ids as UUIDs."""
    compaction_level: int = 0
    compacted_at: int | None = None
    original_content: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @property
    def holder(self) -> str | None:
        """The session that claimed it, or the person without one."""
        return (self.session_id or self.assignee) if self.status == "in_progress" else None

    @property
    def is_compacted(self) -> bool:
        return self.compaction_level > 0

    @property
    def full_description(self) -> str:
        """All that was written, compacted or not."""
        return self.description if self.original_content is None else self.original_content


@dataclass(frozen=True, slots=True)
class TaskDetails:
    """A task with what stands around it."""

    task: Task
    is_blocked: bool
    blocking_tasks: tuple[Task, ...]
    """Unfinished tasks it waits for: its blockers, and its children."""
    dependents: tuple[Task, ...]
    """Tasks that wait for it: those it blocks, and its parents."""
    children: tuple[Task, ...]
    parents: tuple[Task, ...]
    related: tuple[Task, ...]
    progress: TaskProgress | None
    """For a task with children."""
    linked_message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The progress of a task's descendants, itself excluded."""

    closed: int
    total: int

    @property
    def percent(self) -> int:
        return 100 * self.closed // self.total if self.total else 0


class TaskTotals(NamedTuple):
    """The number of tasks by status, ready, and blocked."""

    open: int = 0
    in_progress: int = 0
    closed: int = 0
    ready: int = 0
    blocked: int = 0

    @property
    def all(self) -> int:
        return self.open + self.in_progress + self.closed

    def plus(self, added: Iterable[int], removed: Iterable[int] = (0,) * 5) -> TaskTotals:
        """Return the totals with some counts added and others taken away."""
        return TaskTotals(*(a + b - c for a, b, c in zip(self, added, removed, strict=True)))


@dataclass(frozen=True, slots=True)
class TaskPage(Items[Task]):
    """One page of tasks; a sequence.

    ``next_offset`` is ``None`` on the last page.
    """

    _FIELD = "tasks"
    tasks: tuple[Task, ...]
    next_offset: int | None = None


@dataclass(frozen=True, slots=True)
class ReadyTasks(TaskPage):
    """The ready tasks, with the counts of the whole project."""

    ready_count: int = 0
    blocked_count: int = 0


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """One change: actor, time, and fields before and after."""

    id: str
    task_id: str
    kind: EventKind
    actor: str
    session_id: str | None
    at: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A task in a printed tree; a repeated one is not opened."""

    task: Task
    relation: Literal["root", "child", "needs"]
    is_blocked: bool
    progress: TaskProgress | None
    nodes: tuple[TreeNode, ...] = ()
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be imported, with everything it had.

    ``depends_on`` names other tasks by any id that is known here or comes in the same batch.
    """

    title: str
    short_id: str | None = None
    id: str | None = None
    description: str = ""
    status: TaskStatus = "open"
    priority: Priority = DEFAULT_PRIORITY
    type: TaskType = "task"
    assignee: str | None = None
    session_id: str | None = None
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    closed_at: int | None = None
    close_reason: str | None = None
    summary: str | None = None
    labels: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    depends_on: Sequence[tuple[str, DependencyType]] = ()


@dataclass(frozen=True, slots=True)
class TaskRefusal:
    """A part of an imported task that was refused, and why."""

    task: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class TaskImportReport:
    """The result of an import."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    newer_here: int = 0
    """Tasks that were changed here after what came in was written; they were left as they are."""
    dependencies: int = 0
    refused: tuple[TaskRefusal, ...] = ()
