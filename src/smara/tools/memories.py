"""Perform the actions of `memory-search` and `memory-record`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smara.errors import InvalidInputError, NotFoundError
from smara.knowledge.gate import RECORDED_PER_SESSION
from smara.knowledge.models import AddResult, Evidence
from smara.memory import Memory
from smara.tools.catalogue import MOST_DEEP
from smara.tools.models import Json, ToolContext
from smara.tools.shapes import (
    Names,
    filled,
    hits_json,
    memory_json,
    message_json,
    record_json,
    task_line_json,
)
from smara.tools.tasks import require_query

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


_NAMED = re.compile(r"(?:message|observation|commit):\S+")
_PLACE = re.compile(r"\S+(?:@\S+)?(?::\d+(?:-\d+)?)?")
_MOST_BUSY = 200
"""So many tasks in progress are looked through for those of a session."""


def record(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Keep a statement; a refusal says why it is not worth it, or not new."""
    evidence, superseded = _evidence(arguments.get("evidence", ())), arguments.get("supersedes")
    added = memory.memories.add(
        arguments["content"],
        type=arguments["type"],
        source="agent_explicit",
        by="agent",
        actor=context.actor,
        session_id=context.session_id,
        thread_id=context.thread_id,
        evidence=evidence,
        files=[each.path for each in evidence if each.path],
        supersedes=[superseded] if superseded else (),
    )
    if added.memory is None:
        raise InvalidInputError(
            f"Not recorded: {'; '.join(added.why)}.",
            why=added.why,
            hint="Record one new fact about this project, in a sentence, with the file or message "
            "that shows it.",
        )
    return {"outcome": added.outcome, "memory": memory_json(added.memory), **_around(memory, added)}


def mark_used(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Say whether something remembered helped or was wrong; that alone keeps memories alive."""
    found = memory.memories.used(
        arguments["id"],
        arguments["outcome"],
        by="agent",
        actor=context.actor,
        session_id=context.session_id,
    )
    return {"outcome": arguments["outcome"], "memory": memory_json(found)}


def context(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """What this session has recorded, the task it works on, and how much more it may record."""
    if context.session_id is None:
        raise InvalidInputError(
            "context: no session is known here, so nothing can be told of it.",
            hint="Go on without it. Whoever runs the server can name the session, or send the "
            "header Smara-Session.",
        )
    recorded = memory.memories.list(
        session_id=context.session_id, source="agent_explicit", limit=RECORDED_PER_SESSION
    )
    busy = memory.tasks.list(status="in_progress", limit=_MOST_BUSY)
    tasks = [each for each in busy if each.session_id == context.session_id]
    return {
        "sessionId": context.session_id,
        **filled(threadId=context.thread_id),
        "memories": [memory_json(each) for each in recorded],
        "tasks": [task_line_json(each) for each in tasks],
        "mayRecord": max(0, RECORDED_PER_SESSION - len(recorded)),
    }


def _evidence(given: Sequence[str]) -> list[Evidence]:
    """Places by their form; what is neither a place nor an id is a quotation."""
    return [
        Evidence.parse(text) if _is_place(text) else Evidence(quote=text)
        for each in given
        if (text := each.strip())
    ]


def _is_place(text: str) -> bool:
    if _NAMED.fullmatch(text):
        return True
    return bool(_PLACE.fullmatch(text)) and ("/" in text or "." in text.strip("."))


def _around(memory: Memory, added: AddResult) -> Json:
    """The memories that gave way to it, and those that contradict it, by their short ids."""
    names = {
        each: memory.memories.get(each).short_id for each in (*added.superseded, *added.disputes)
    }
    return filled(
        why=list(added.why),
        supersedes=[names[each] for each in added.superseded],
        contradicts=[names[each] for each in added.disputes],
    )
