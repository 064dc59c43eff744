"""``memory-search``: what was said before, and whole messages page by page."""

from __future__ import annotations

from smara.errors import NotFoundError
from smara.memory import Memory
from smara.tools.catalogue import MOST_DEEP
from smara.tools.models import Json, ToolContext
from smara.tools.shapes import Names, filled, hits_json, memory_json, message_json, record_json
from smara.tools.task_query import require_query

MOST_BEHIND = 10
"""So many of the messages behind an observation are named."""


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
        arguments["query"],
        min(first + limit, MOST_DEEP),
        thread_id=arguments.get("threadId"),
        task_id=task_id,
        since=arguments.get("since"),
        until=arguments.get("until"),
        may_imagine=page == 1,
    )
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
    """One hit, page by page: a message, or what the id names among memories, observations and
    tasks.
    """
    wanted, page = arguments["id"], arguments["page"]
    try:
        return message_json(memory.messages.get(wanted), Names(memory.tasks.find), page)
    except NotFoundError:
        found = _record(memory, wanted)
        if found is None:
            raise
    return record_json(*found, page)


def _record(memory: Memory, wanted: str) -> tuple[Json, str] | None:
    """What an id names that is no message, and its text."""
    known = memory.memories.find(wanted)
    if known is not None:
        return {"source": "memory", **memory_json(known)}, known.content
    task = memory.tasks.find(wanted)
    if task is not None:
        text = "\n".join(filter(None, (task.title, task.full_description, task.summary)))
        return {
            "source": "task",
            "id": task.short_id,
            "status": task.status,
            "createdAt": task.created_at,
        }, text
    piece = memory.code.piece(wanted)
    if piece is not None:
        facts = filled(
            id=wanted,
            type=piece.kind,
            title=piece.name,
            files=[piece.path],
            isStale=piece.is_stale or None,
        )
        return {"source": "code", **facts}, piece.text
    try:
        noted = memory.observations.get(wanted)
    except NotFoundError:
        return None
    behind = [message.id for message in memory.observations.why(noted.id, limit=MOST_BEHIND)]
    facts = filled(
        id=noted.id,
        threadId=noted.thread_id,
        type=noted.category,
        createdAt=noted.said_at,
        messageIds=behind,
    )
    return {"source": noted.kind, **facts}, "\n".join((noted.text, *noted.details))
