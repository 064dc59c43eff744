"""Tasks as JSON: the shapes that every answer about tasks is made of. ``id`` is the short id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smara.search.models import TaskHit
from smara.tasks.models import Progress, Task, TaskDetails, TaskEvent, TreeNode


def task_json(task: Task, is_full: bool = False) -> dict[str, Any]:
    """A task; ``is_full`` gives all that was written, also of a compacted one."""
    return {
        "id": task.short_id,
        "uuid": task.id,
        "title": task.title,
        "description": task.full_description if is_full else task.description,
        "status": task.status,
        "priority": task.priority,
        "type": task.type,
        "assignee": task.assignee,
        "sessionId": task.session_id,
        "labels": list(task.labels),
        "createdAt": task.created_at,
        "createdBy": task.created_by,
        "updatedAt": task.updated_at,
        "claimedAt": task.claimed_at,
        "closedAt": task.closed_at,
        "closeReason": task.close_reason,
        "summary": task.summary,
        "dependencies": [
            {"taskId": each.task, "dependsOnId": each.depends_on, "type": each.type}
            for each in task.dependencies
        ],
        "compactionLevel": task.compaction_level,
        "compactedAt": task.compacted_at,
        "metadata": dict(task.metadata),
    }


def mention_json(task: Task) -> dict[str, Any]:
    """A task that stands beside another."""
    return {
        "id": task.short_id,
        "uuid": task.id,
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "type": task.type,
        "assignee": task.assignee,
        "sessionId": task.session_id,
    }


def details_json(details: TaskDetails, is_full: bool = False) -> dict[str, Any]:
    """A task with what stands around it."""
    return {
        "task": task_json(details.task, is_full),
        "isBlocked": details.is_blocked,
        "blockingTasks": _mentions(details.blocking_tasks),
        "dependents": _mentions(details.dependents),
        "children": _mentions(details.children),
        "parents": _mentions(details.parents),
        "related": _mentions(details.related),
        "progress": progress_json(details.progress),
        "linkedMessageIds": list(details.linked_message_ids),
    }


def node_json(node: TreeNode) -> dict[str, Any]:
    """A task in a tree, with what is below it."""
    return {
        **mention_json(node.task),
        "relation": node.relation,
        "isBlocked": node.is_blocked,
        "progress": progress_json(node.progress),
        "isRepeated": node.is_repeated,
        "nodes": [node_json(each) for each in node.nodes],
    }


def progress_json(progress: Progress | None) -> dict[str, int] | None:
    """How far the children of a task are."""
    if progress is None:
        return None
    return {"closed": progress.closed, "total": progress.total, "percent": progress.percent}


def event_json(event: TaskEvent) -> dict[str, Any]:
    """One change of a task."""
    return {
        "id": event.id,
        "kind": event.kind,
        "actor": event.actor,
        "sessionId": event.session_id,
        "at": event.at,
        "before": dict(event.before),
        "after": dict(event.after),
        "isUndone": event.is_undone,
    }


def task_hit_json(hit: TaskHit) -> dict[str, Any]:
    """A task that was found, and why."""
    return {
        "rank": hit.rank,
        "score": hit.score,
        "why": list(hit.why),
        "snippet": hit.snippet,
        "task": task_json(hit.task),
    }


def _mentions(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    return [mention_json(task) for task in tasks]
