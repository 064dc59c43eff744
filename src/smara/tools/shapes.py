"""Shape values as the JSON that agents read.

Ids are short, keys are camelCase, and empty fields are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from smara.core.text import best_window
from smara.errors import InvalidInputError
from smara.knowledge.models import TypedMemory
from smara.messages.models import Message
from smara.search.models import Hit
from smara.tasks.models import Task, TaskDetails
from smara.tools.models import Json
from smara.working.models import WorkingMemory

BRIEF = 200
PAGE_CHARACTERS = 6_000
MOST_LINKED = 20
MOST_AROUND = 20
_MOST_METADATA = 2_000

FindTask = Callable[[str], Task | None]


class Names:
    """The short ids of tasks that are known by their UUID; each is looked up once."""

    def __init__(self, find: FindTask, known: Iterable[Task] = ()) -> None:
        self._find = find
        self._known: dict[str, Task | None] = {task.id: task for task in known}

    def task(self, task_id: str) -> Task | None:
        """The task, or ``None`` when it is not known here."""
        if task_id not in self._known:
            self._known[task_id] = self._look_up(task_id)
        return self._known[task_id]

    def _look_up(self, task_id: str) -> Task | None:
        # A message may carry any text as the id of its task; the beginning of some other id must
        # not pass for it.
        try:
            found = self._find(task_id)
        except InvalidInputError:
            return None
        return found if found is not None and task_id in (found.id, found.short_id) else None

    def short(self, task_id: str) -> str:
        """The short id; of an unknown task the id that was given."""
        task = self.task(task_id)
        return task.short_id if task else task_id

    def blocking(self, task: Task) -> list[str]:
        """The unfinished tasks that a task says it depends on."""
        needed = [each.depends_on_id for each in task.dependencies if each.type == "blocks"]
        wanted = [self.task(each) for each in needed[:MOST_AROUND]]
        return [each.short_id for each in wanted if each is not None and each.status != "closed"]


def filled(**fields: Any) -> Json:
    """The fields that say something."""
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value not in ("", [], {}, ())
    }


def task_json(task: Task, names: Names, description: str | None = None) -> Json:
    """A task. ``description`` is what to show of it; without it, its beginning."""
    return filled(
        id=task.short_id,
        uuid=task.id,
        title=task.title,
        description=brief(task.description) if description is None else description,
        status=task.status,
        priority=task.priority,
        type=task.type,
        labels=list(task.labels),
        assignee=task.assignee,
        sessionId=task.session_id,
        dependencies=[
            {
                "taskId": task.short_id,
                "dependsOnId": names.short(each.depends_on_id),
                "type": each.type,
            }
            for each in task.dependencies[:MOST_AROUND]
        ],
        dependencyCount=_more_than(MOST_AROUND, task.dependencies),
        createdAt=task.created_at,
        updatedAt=task.updated_at,
        closedAt=task.closed_at,
        closeReason=task.close_reason,
        summary=task.summary if description is not None else brief(task.summary or ""),
        compactionLevel=task.compaction_level or None,
    )


def task_line_json(task: Task) -> Json:
    """A task that is mentioned beside another."""
    return filled(
        id=task.short_id,
        title=task.title,
        status=task.status,
        priority=task.priority,
        type=task.type,
        sessionId=task.session_id,
    )


def details_json(details: TaskDetails, names: Names, page: int) -> Json:
    """A task with what stands around it, its text page by page."""
    text, paging = page_of(details.task.description, page)
    task = task_json(details.task, names, text)
    if "nextPage" in paging or page > 1:
        task["descriptionRange"] = paging["range"]
    linked, metadata = details.linked_message_ids, dict(details.task.metadata)
    task |= filled(
        linkedMessageIds=list(linked[-MOST_LINKED:]),
        linkedMessageCount=_more_than(MOST_LINKED, linked),
        metadata=metadata if len(str(metadata)) <= _MOST_METADATA else None,
    )
    around = {
        "blockingTasks": details.blocking_tasks,
        "dependents": details.dependents,
        "children": details.children,
        "parents": details.parents,
        "related": details.related,
    }
    progress = details.progress
    return {
        "task": task,
        "isBlocked": details.is_blocked,
        "blockingTasks": [],
        **filled(
            **{
                name: [task_line_json(each) for each in tasks[:MOST_AROUND]]
                for name, tasks in around.items()
            }
        ),
        **filled(
            **{f"{name}Count": _more_than(MOST_AROUND, tasks) for name, tasks in around.items()}
        ),
        **({"progress": {"closed": progress.closed, "total": progress.total}} if progress else {}),
        **filled(nextPage=paging.get("nextPage")),
    }


def _more_than(shown: int, things: Sequence[Any]) -> int | None:
    """How many there are, when they are more than are shown."""
    return len(things) if len(things) > shown else None


def hits_json(hits: Sequence[Hit], names: Names) -> list[Json]:
    """Some hits, which fill a page together at most."""
    widths = shares([len(hit.content) for hit in hits], PAGE_CHARACTERS)
    return [hit_json(hit, names, width) for hit, width in zip(hits, widths, strict=True)]


def hit_json(hit: Hit, names: Names, width: int) -> Json:
    """A hit; a content longer than ``width`` is cut around what answers best."""
    content, cut = hit.content, None
    if len(content) > width:
        start = min(best_window(content, hit.terms, width), len(content) - width)
        cut = [start, start + width, len(content)]
        content = content[start : start + width]
    return filled(
        id=hit.id,
        source=hit.source,
        content=content,
        contentRange=cut,
        rank=hit.rank,
        taskId=names.short(hit.task_id) if hit.task_id else None,
        createdAt=hit.created_at,
        threadId=hit.thread_id,
        role=hit.role,
        type=hit.type,
        title=hit.title,
        files=list(hit.files),
        confirmed=None if hit.is_confirmed else False,
        hedge=hit.metadata.get("hedge"),
        score=round(hit.score, 4),
        why=list(hit.why),
        snippet=hit.snippet,
    )


def message_json(message: Message, names: Names, page: int) -> Json:
    """A message, page by page."""
    content, paging = page_of(message.raw_content, page)
    shown = filled(
        id=message.id,
        threadId=message.thread_id,
        seq=message.seq,
        role=message.role,
        createdAt=message.created_at,
        taskId=names.short(message.task_id) if message.task_id else None,
    )
    cut = {"contentRange": paging["range"]} if page > 1 or "nextPage" in paging else {}
    return {
        "message": {**shown, "content": content, **cut},
        **filled(nextPage=paging.get("nextPage")),
    }


def memory_json(memory: TypedMemory) -> Json:
    """A memory; ``trust`` says whether a person confirmed it, and what it may hold otherwise."""
    return filled(
        id=memory.short_id,
        uuid=memory.id,
        type=memory.type,
        content=memory.content,
        trust=memory.tier,
        taint=list(memory.taint) if memory.is_tainted else None,
        confidence=memory.confidence,
        needsReview=memory.needs_review or None,
        files=list(memory.files[:MOST_AROUND]),
        evidence=[str(each) for each in memory.evidence[:MOST_AROUND]],
        stale=memory.stale_because,
        putAside=memory.deprecated_because,
        sessionId=memory.session_id,
        createdAt=memory.created_at,
    )


def record_json(shown: Json, text: str, page: int) -> Json:
    """Something remembered that is no message, page by page."""
    content, paging = page_of(text, page)
    cut = {"contentRange": paging["range"]} if page > 1 or "nextPage" in paging else {}
    return {
        "record": {**shown, "content": content, **cut},
        **filled(nextPage=paging.get("nextPage")),
    }


def working_json(page: WorkingMemory) -> Json:
    """A working memory."""
    return filled(
        scope=page.scope,
        resourceId=page.resource_id,
        threadId=page.thread_id,
        version=page.version,
        format=page.format,
        updatedAt=page.updated_at,
    ) | {"content": page.content}


def page_of(text: str, page: int, size: int = PAGE_CHARACTERS) -> tuple[str, Json]:
    """One page of a text, with where it stands and which page is next.

    >>> page_of("abcde", 2, 2)
    ('cd', {'range': [2, 4, 5], 'nextPage': 3})
    """
    start = min((page - 1) * size, len(text))
    end = min(start + size, len(text))
    following = {"nextPage": page + 1} if end < len(text) else {}
    return text[start:end], {"range": [start, end, len(text)], **following}


def brief(text: str, width: int = BRIEF) -> str:
    """The beginning of a text."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def shares(lengths: list[int], budget: int) -> list[int]:
    """How much of a budget each of several texts may use: short ones all they need, long ones
    alike.

    >>> shares([100, 5_000, 9_000], 6_000)
    [100, 2950, 2950]
    """
    granted = [0] * len(lengths)
    left, waiting = budget, sorted(range(len(lengths)), key=lambda at: lengths[at])
    while waiting:
        at = waiting.pop(0)
        granted[at] = min(lengths[at], left // (len(waiting) + 1))
        left -= granted[at]
    return granted


def encodable(value: Any) -> Any:
    """The value without characters that no JSON reader takes: lone halves of a surrogate pair."""
    if isinstance(value, str):
        return (
            value
            if value.isascii()
            else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, dict):
        return {str(name): encodable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(each) for each in value]
    return value
