"""``memory-search``: what was said before, and whole messages page by page."""

from __future__ import annotations

from smara.memory import Memory
from smara.tools.catalogue import MOST_DEEP
from smara.tools.models import Json, ToolContext
from smara.tools.shapes import Names, filled, hits_json, message_json
from smara.tools.task_query import require_query


def search(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Messages by their words, the best first; together they fill a page at most."""
    require_query(arguments["query"])
    limit, page = arguments["limit"], arguments["page"]
    first = (page - 1) * limit
    task_id = arguments.get("taskId")
    if task_id is not None:
        task = memory.tasks.find(task_id)
        task_id = task.id if task is not None else task_id
    answer = memory.search(
        arguments["query"], min(first + limit, MOST_DEEP), thread_id=arguments.get("threadId"), task_id=task_id,
        since=arguments.get("since"), until=arguments.get("until"),
    )  # fmt: skip
    hits = answer.hits[first : first + limit]
    has_more = len(hits) == limit and first + limit < min(answer.total_hits, MOST_DEEP)
    return {
        "results": hits_json(hits, Names(memory.tasks.find)),
        "totalHits": answer.total_hits,
        **filled(
            nextPage=page + 1 if has_more else None,
            warnings=list(answer.warnings),
        ),
    }


def read(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """One message, page by page."""
    message = memory.messages.get(arguments["id"])
    return message_json(message, Names(memory.tasks.find), arguments["page"])
