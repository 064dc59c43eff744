"""Perform the actions of `memory-search` and `memory-record`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from smara.core.startup.regex import regex
from smara.errors import InvalidInputError, NotFoundError
from smara.knowledge.gate import RECORDED_PER_SESSION
from smara.knowledge.models import Evidence
from smara.memory import Memory
from smara.search.models import Hit
from smara.shapes import (
    Names,
    brief_hits_json,
    brief_memory_json,
    brief_mention_json,
    brief_message_json,
    brief_observation_json,
    brief_task_json,
    filled,
    hit_json,
    lean,
    paged_json,
)
from smara.tools.catalogue import MOST_DEEP, Json, ToolContext
from smara.tools.tasks import require_query

MOST_REASONS = 4
MOST_BEHIND = 10
"""So many of the messages behind an observation are named."""


def search(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Search messages by their words, the best first."""
    require_query(arguments["query"])
    limit, page = arguments["limit"], arguments["page"]
    first = (page - 1) * limit
    task_id = arguments.get("taskId")
    task = memory.tasks.find(task_id) if task_id is not None else None
    answer = memory.search(
        arguments["query"],
        min(first + limit, MOST_DEEP),
        thread_id=arguments.get("threadId"),
        task_id=task.id if task is not None else task_id,
        since=arguments.get("since"),
        until=arguments.get("until"),
        phase=arguments.get("phase") or memory.behavior.phase(context.session_id),
        may_imagine=page == 1,
    )
    hits = answer.hits[first : first + limit]
    folded = sum(len(hit.copies) for hit in answer.hits)
    has_more = len(hits) == limit and first + limit < min(answer.total_hits - folded, MOST_DEEP)
    names = Names(memory.tasks.find)
    return {
        "results": brief_hits_json(hits, names),
        "totalHits": answer.total_hits,
        **filled(
            reasons=memory.decisions.reasons(arguments["query"])[:MOST_REASONS]
            if page == 1
            else None,
            nearest=_nearest(answer.nearest, names),
            nextPage=page + 1 if has_more else None,
            warnings=list(answer.warnings),
        ),
    }


def _nearest(hits: Sequence[Hit], names: Names) -> list[Json]:
    """Return briefly what came closest where nothing was found."""
    return [
        lean({name: shape[name] for name in _OF_NEAREST})
        | ({} if shape["isConfirmed"] else {"isConfirmed": False})
        for shape in (hit_json(hit, names) for hit in hits)
    ]


_OF_NEAREST = ("id", "source", "score", "snippet", "createdAt", "role", "type", "hedge")


def read(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Read one hit, page by page."""
    page = arguments["page"]
    try:
        return brief_message_json(
            memory.messages.get(arguments["id"]), Names(memory.tasks.find), page
        )
    except NotFoundError:
        found = _record(memory, arguments["id"])
        if found is None:
            raise
    return paged_json("record", *found, page)


def _record(memory: Memory, record_id: str) -> tuple[Json, str] | None:
    """Return what an id names that is not a message, and its text."""
    statement = memory.memories.find(record_id)
    if statement is not None:
        return {**brief_memory_json(statement), "source": "memory"}, statement.content
    task = memory.tasks.find(record_id)
    if task is not None:
        text = "\n".join(filter(None, (task.title, task.full_description, task.summary)))
        return {**brief_task_json(task, ""), "source": "task"}, text
    piece = memory.code.piece(record_id)
    if piece is not None:
        facts = filled(
            id=record_id,
            type=piece.kind,
            title=piece.name,
            files=[piece.path],
            isStale=piece.is_stale or None,
        )
        return {"source": "code", **facts}, piece.text
    with suppress(NotFoundError, InvalidInputError):
        commit = memory.commits.get(record_id)
        facts = filled(id=commit.id, createdAt=commit.at, files=list(commit.files))
        return {"source": "commit", **facts}, commit.message
    try:
        noted = memory.observations.get(record_id)
    except NotFoundError:
        return None
    behind = [message.id for message in memory.observations.why(noted.id, limit=MOST_BEHIND)]
    shape = {**brief_observation_json(noted, behind), "source": noted.kind}
    return shape, "\n".join((noted.text, *noted.details))


_NAMED = regex(r"(?:message|observation|commit):\S+")
_PLACE = regex(r"\S+(?:@\S+)?(?::\d+(?:-\d+)?)?")
_MOST_BUSY = 200
"""So many tasks in progress are looked through for those of a session."""


def record(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Record a statement; a refusal says why."""
    superseded = arguments.get("supersedes")
    evidence = [
        # What is neither a place nor an id is a quotation.
        Evidence.parse(text) if _is_place(text) else Evidence(quote=text)
        for each in arguments.get("evidence", ())
        if (text := each.strip())
    ]
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
    short_ids = {
        each: memory.memories.get(each).short_id for each in (*added.superseded, *added.disputes)
    }
    return {
        "outcome": added.outcome,
        "memory": brief_memory_json(added.memory),
        **filled(
            why=list(added.why),
            supersedes=[short_ids[each] for each in added.superseded],
            contradicts=[short_ids[each] for each in added.disputes],
        ),
    }


def mark_used(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Record that a memory helped or was wrong."""
    found = memory.memories.used(
        arguments["id"],
        arguments["outcome"],
        by="agent",
        actor=context.actor,
        session_id=context.session_id,
    )
    return {"outcome": arguments["outcome"], "memory": brief_memory_json(found)}


def context(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Return what this session recorded, and its task."""
    if context.session_id is None:
        raise InvalidInputError(
            "context: no session is known here, so nothing can be told of it.",
            hint="Go on without it. The host can name the session when it starts the server, "
            "or send the header Smara-Session.",
        )
    recorded = memory.memories.list(
        session_id=context.session_id, source="agent_explicit", limit=RECORDED_PER_SESSION
    )
    tasks = [
        each
        for each in memory.tasks.list(status="in_progress", limit=_MOST_BUSY)
        if each.session_id == context.session_id
    ]
    return {
        "sessionId": context.session_id,
        **filled(threadId=context.thread_id),
        "memories": [brief_memory_json(each) for each in recorded],
        "tasks": [brief_mention_json(each) for each in tasks],
        "mayRecord": max(0, RECORDED_PER_SESSION - len(recorded)),
    }


def _is_place(text: str) -> bool:
    is_path = _PLACE.fullmatch(text) and ("/" in text or "." in text.strip("."))
    return bool(is_path or _NAMED.fullmatch(text))
