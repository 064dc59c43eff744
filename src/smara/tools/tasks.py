"""Perform the actions of `task-query` and `task-mutate`."""

from __future__ import annotations

from typing import Any

from smara.errors import InvalidInputError, NotFoundError
from smara.memory import Memory
from smara.shapes import (
    Names,
    brief_details_json,
    brief_hits_json,
    brief_task_json,
    brief_working_json,
    filled,
)
from smara.tasks.models import Task
from smara.tools.catalogue import MOST_DEEP, NEXT, Json, ToolContext
from smara.tools.schemas import INVALID_QUERY

BLANK_QUERY_HINT = (
    "Give at least one word: a name, a path, an error text. The query must not be empty."
)


def ready(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """List what can be started now, the most urgent first."""
    limit, page = arguments["limit"], arguments["page"]
    found = memory.tasks.ready(
        limit=limit,
        offset=(page - 1) * limit,
        type=arguments.get("type"),
        label=arguments.get("label"),
    )
    return {
        "tasks": [brief_task_json(task) for task in found],
        "readyCount": found.ready_count,
        "blockedCount": found.blocked_count,
        **filled(nextPage=page + 1 if found.next_offset is not None else None),
    }


def show(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Show a task with the tasks and messages around it."""
    return brief_details_json(memory.tasks.show(arguments["id"]), arguments["page"])


def list_tasks(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """List tasks by state, kind and holder; those in progress come first."""
    limit, page = arguments["limit"], arguments["page"]
    filters = {
        name: arguments.get(name) for name in ("status", "type", "label", "assignee", "parent")
    }
    found = memory.tasks.list(**filters, limit=limit, offset=(page - 1) * limit)
    names = Names(memory.tasks.find, found)
    tasks = [brief_task_json(task) | filled(blockedBy=names.blocking(task)) for task in found]
    total = None
    if not any(value for name, value in filters.items() if name != "status"):
        totals = memory.tasks.totals()
        total = getattr(totals, arguments["status"]) if "status" in arguments else totals.all
    return {
        "tasks": tasks,
        **filled(total=total, nextPage=page + 1 if found.next_offset is not None else None),
    }


def search(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Search tasks by their words, the best first."""
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
    return {
        "tasks": [
            brief_task_json(hit.task)
            | filled(
                blockedBy=names.blocking(hit.task),
                rank=hit.rank,
                score=round(hit.score, 4),
                why=list(hit.why),
                snippet=hit.snippet,
            )
            for hit in answer
        ],
        "totalHits": answer.total_hits,
        **filled(
            nearest=[
                {"id": hit.task.short_id, "title": hit.task.title, "score": round(hit.score, 4)}
                for hit in answer.nearest
            ]
        ),
        **(
            {"messages": brief_hits_json(answer.messages, names)}
            if answer.messages is not None
            else {}
        ),
        **filled(warnings=list(answer.warnings), nextPage=page + 1 if has_more else None),
    }


def require_query(query: str) -> None:
    """Refuse a query without a word in it."""
    if not query.strip():
        raise InvalidInputError(
            f"{INVALID_QUERY}. {BLANK_QUERY_HINT}", brief=INVALID_QUERY, hint=BLANK_QUERY_HINT
        )


_UPDATED = ("title", "description", "priority", "type", "labels", "assignee")


def create(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Create a task."""
    needs = [each.strip() for each in arguments.get("dependsOn", "").split(",")]
    return _task(
        memory.tasks.add(
            arguments["title"],
            description=arguments.get("description", ""),
            type=arguments["type"],
            priority=arguments["priority"],
            labels=arguments.get("labels", ()),
            assignee=arguments.get("assignee") or None,
            parent=arguments.get("parent"),
            depends_on=[each for each in needs if each],
            actor=context.author,
            session_id=context.session_id,
        )
    )


def claim(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Claim a ready task for this thread, and show all of it."""
    task_id = arguments["id"]
    if context.is_shared and context.session_id is None:
        raise InvalidInputError(
            "claim needs sessionId: several agents share this server, and a claim must say whose "
            "it is.",
            hint="Give sessionId, the same in every call of your session, or send the header "
            "Smara-Session.",
        )
    if task_id.strip().lower() == NEXT:
        taken = memory.tasks.claim_next(**_who(context))
        if taken is None:
            totals = memory.tasks.totals()
            advice = (
                f"Nothing is ready: {totals.in_progress} in progress, {totals.blocked} blocked, "
                f"{totals.closed} closed. task-query list shows them; create what is missing."
            )
            raise NotFoundError(advice, brief="No task is ready", hint=advice)
        task_id = taken.id
    task = memory.links.claim(task_id, thread_id=context.thread_id, **_who(context))
    return show(memory, {"id": task.id, "page": 1}, context)


def close(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Close a task; its summary is what remains."""
    return _task(
        memory.tasks.close(
            arguments["id"],
            arguments["summary"],
            reason=arguments["reason"],
            force=arguments["force"],
            **_who(context),
        )
    )


def release(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Give a task back, or hand it over to another session."""
    forced = {"force": arguments["force"], **_who(context)}
    if "to" in arguments:
        return _task(memory.tasks.hand_over(arguments["id"], to_session=arguments["to"], **forced))
    return _task(memory.tasks.release(arguments["id"], **forced))


def reopen(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Open a closed task again."""
    return _task(memory.tasks.reopen(arguments["id"], **_who(context)))


def update(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Change named fields of a task."""
    fields = {name: arguments[name] for name in _UPDATED if name in arguments}
    if not fields:
        raise InvalidInputError(
            f"update: nothing to change was given. Give one or more of {', '.join(_UPDATED)}.",
            hint='For example: {"action": "update", "id": "t-k3f9", "priority": 1}',
        )
    who: Json = {"actor": context.author, "session_id": context.session_id}
    return _task(memory.tasks.update(arguments["id"], **fields, **who))


def dep(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Make one task wait for another, or no longer."""
    change = memory.tasks.depend if arguments["add"] else memory.tasks.undepend
    return _task(
        change(arguments["taskId"], arguments["dependsOn"], type=arguments["kind"], **_who(context))
    )


def link(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Tie an earlier message to a task."""
    memory.links.add(
        arguments["taskId"], arguments["messageId"], relation=arguments["relation"], **_who(context)
    )
    task = memory.tasks.get(arguments["taskId"])
    tied = {
        "taskId": task.short_id,
        "messageId": arguments["messageId"],
        "relation": arguments["relation"],
    }
    return {**_task(task), "link": tied}


def update_context(memory: Memory, arguments: Json, context: ToolContext) -> Json:
    """Write working memory: all of it, or one section."""
    if memory.settings.keep == "vectors":
        raise InvalidInputError(
            "update_context: this project keeps no words of conversations, so that agents write no"
            " working memory.",
            hint="A person can write it with: smara working put",
        )
    is_thread = arguments["scope"] == "thread"
    if is_thread and context.thread_id is None:
        raise InvalidInputError(
            "update_context: scope thread needs threadId, since no conversation is known here.",
            hint="Give threadId, or use scope resource, which all conversations share.",
        )
    place: dict[str, Any] = {
        "scope": arguments["scope"],
        "resource_id": None if is_thread else context.resource_id,
        "thread_id": context.thread_id if is_thread else None,
        "expected_version": arguments.get("expectedVersion"),
        "actor": context.author,
    }
    if "section" in arguments:
        page = memory.working.update(arguments["section"], arguments["content"], **place)
    else:
        page = memory.working.put(arguments["content"], **place)
    return {"workingMemory": brief_working_json(page)}


def _who(context: ToolContext) -> dict[str, Any]:
    return {"actor": context.actor, "session_id": context.session_id}


def _task(task: Task) -> Json:
    return {"task": brief_task_json(task)}
