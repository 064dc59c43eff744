"""``task-query``: what can be done, one task, many tasks, and search."""

from __future__ import annotations

from smara.errors import InvalidInputError
from smara.memory import Memory
from smara.tools.catalogue import MOST_DEEP
from smara.tools.models import Json, ToolContext
from smara.tools.shapes import Names, details_json, filled, hits_json, task_json
from smara.tools.validate import INVALID_QUERY

BLANK_QUERY_HINT = (
    "Give at least one word: a name, a path, an error text. The query must not be empty."
)


def ready(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """What can be started now, the most urgent first."""
    limit, page = arguments["limit"], arguments["page"]
    found = memory.tasks.ready(
        limit=limit,
        offset=(page - 1) * limit,
        type=arguments.get("type"),
        label=arguments.get("label"),
    )
    names = Names(memory.tasks.find, found)
    return {
        "tasks": [task_json(task, names) for task in found],
        "readyCount": found.ready_count,
        "blockedCount": found.blocked_count,
        **filled(nextPage=page + 1 if found.next_offset is not None else None),
    }


def show(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """All of one task."""
    return show_task(memory, arguments["id"], arguments["page"])


def show_task(memory: Memory, task_id: str, page: int = 1) -> Json:
    """A task with what stands around it."""
    details = memory.tasks.show(task_id)
    around = (
        details.task,
        *details.blocking_tasks,
        *details.dependents,
        *details.children,
        *details.parents,
    )
    return details_json(details, Names(memory.tasks.find, around), page)


def list_tasks(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Tasks by what they are and who has them; what is being worked on comes first."""
    limit, page = arguments["limit"], arguments["page"]
    filters = {
        name: arguments.get(name) for name in ("status", "type", "label", "assignee", "parent")
    }
    found = memory.tasks.list(**filters, limit=limit, offset=(page - 1) * limit)
    names = Names(memory.tasks.find, found)
    tasks = [task_json(task, names) | filled(blockedBy=names.blocking(task)) for task in found]
    total = None
    if not any(value for name, value in filters.items() if name != "status"):
        totals = memory.tasks.totals()
        total = getattr(totals, arguments["status"]) if "status" in arguments else totals.all
    return {
        "tasks": tasks,
        **filled(total=total, nextPage=page + 1 if found.next_offset is not None else None),
    }


def search(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Tasks by their words, the best first."""
    require_query(arguments["query"])
    limit, page = arguments["limit"], arguments["page"]
    first = (page - 1) * limit
    answer = memory.search_tasks(
        arguments["query"],
        limit,
        offset=first,
        status=arguments.get("status"),
        include_messages=arguments["includeMessages"],
    )
    has_more = len(answer) == limit and first + limit < min(answer.total_hits, MOST_DEEP)
    names = Names(memory.tasks.find, (hit.task for hit in answer))
    tasks = [
        task_json(hit.task, names)
        | filled(
            blockedBy=names.blocking(hit.task),
            rank=hit.rank,
            score=round(hit.score, 4),
            why=list(hit.why),
            snippet=hit.snippet,
        )
        for hit in answer
    ]
    return {
        "tasks": tasks,
        "totalHits": answer.total_hits,
        **({"messages": hits_json(answer.messages, names)} if answer.messages is not None else {}),
        **filled(warnings=list(answer.warnings), nextPage=page + 1 if has_more else None),
    }


def require_query(query: str) -> None:
    """Refuse a query without a word in it."""
    if not query.strip():
        raise InvalidInputError(
            f"{INVALID_QUERY}. {BLANK_QUERY_HINT}", brief=INVALID_QUERY, hint=BLANK_QUERY_HINT
        )
