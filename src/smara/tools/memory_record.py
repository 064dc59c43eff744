"""``memory-record``: what an agent learned, what came of what was remembered, and its session's
context.

What is recorded here is an agent's word: it is found by search and shown as unconfirmed, a
person reviews it, and it has the taint of whatever came into the conversation from outside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from smara.errors import InvalidInputError
from smara.knowledge.gate import RECORDED_PER_SESSION
from smara.knowledge.models import Added, Evidence
from smara.memory import Memory
from smara.tools.models import Json, ToolContext
from smara.tools.shapes import filled, memory_json, task_line_json

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


def used(memory: Memory, arguments: Json, context: ToolContext) -> Json:
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


def _around(memory: Memory, added: Added) -> Json:
    """The memories that gave way to it, and those that contradict it, by their short ids."""
    names = {
        each: memory.memories.get(each).short_id for each in (*added.superseded, *added.disputes)
    }
    return filled(
        why=list(added.why),
        supersedes=[names[each] for each in added.superseded],
        contradicts=[names[each] for each in added.disputes],
    )
