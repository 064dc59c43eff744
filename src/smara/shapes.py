"""Shape tasks, memories, hits and observations as JSON, once for every door.

Keys are camelCase, and ``id`` is the short id where there is one. The command line prints a
shape whole; the agent tools leave out empty fields and those that an agent has no use for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from smara.core.extract import shorten
from smara.core.text import best_window
from smara.errors import InvalidInputError

if TYPE_CHECKING:  # a command that lists threads must not load the models of every room
    from smara.commits.models import Commit, LineReason
    from smara.core.freshness import Freshness
    from smara.decisions.models import Decision
    from smara.knowledge.models import Evidence, TypedMemory
    from smara.messages.models import Message
    from smara.observations.models import Observation
    from smara.search.models import Hit
    from smara.tasks.models import Task, TaskDetails, TaskProgress
    from smara.working.models import WorkingMemory

Json = dict[str, Any]
BRIEF = 200
PAGE_CHARACTERS = 6_000
MOST_LINKED = 20
MOST_AROUND = 20
_MOST_METADATA = 2_000
_TASK_LEAVES_OUT = ("createdBy", "claimedAt", "compactedAt", "metadata")
_MEMORY_KEEPS = (
    "id", "uuid", "type", "content", "trust", "taint", "confidence", "needsReview", "files",
    "evidence", "staleBecause", "deprecatedBecause", "sessionId", "createdAt",
)  # fmt: skip
_HIT_LEAVES_OUT = ("seq", "resourceId", "freshness", "stages", "before", "after")
_OBSERVATION_LEAVES_OUT = (
    "text", "details", "state", "generation", "mode", "tokens", "method", "reflectedInto",
    "createdAt", "code", "modeSpecific", "firstSeq", "lastSeq", "lines",
)  # fmt: skip

FindTask = Callable[[str], "Task | None"]


class Names:
    """The short ids of tasks by their UUID, each looked up once."""

    def __init__(self, find: FindTask, tasks: Iterable[Task] = ()) -> None:
        self._find = find
        self._tasks: dict[str, Task | None] = {task.id: task for task in tasks}

    def task(self, task_id: str) -> Task | None:
        """Return this project's task with this id, or None."""
        if task_id not in self._tasks:
            # A message may carry any text as the id of its task; the beginning of another id must
            # not pass for it.
            try:
                task = self._find(task_id)
            except InvalidInputError:
                task = None
            is_exact = task is not None and task_id in (task.id, task.short_id)
            self._tasks[task_id] = task if is_exact else None
        return self._tasks[task_id]

    def short(self, task_id: str | None) -> str | None:
        """Return a task's short id, or the given id."""
        task = self.task(task_id) if task_id else None
        return task.short_id if task else task_id

    def blocking(self, task: Task) -> list[str]:
        """Return the short ids of a task's unfinished dependencies."""
        needed = [each.depends_on_id for each in task.dependencies if each.type == "blocks"]
        blockers = [self.task(each) for each in needed[:MOST_AROUND]]
        return [each.short_id for each in blockers if each is not None and each.status != "closed"]


def filled(**fields: Any) -> Json:
    """Return the fields that are not empty."""
    return lean(fields)


def lean(shape: Json, without: Collection[str] = ()) -> Json:
    """Return a shape without its empty fields and the named ones.

    >>> lean({"id": "t-1", "priority": 0, "labels": [], "isPinned": False, "uuid": "7"}, ["uuid"])
    {'id': 't-1', 'priority': 0}
    """
    return {
        name: value
        for name, value in shape.items()
        if name not in without
        and value is not None
        and value is not False
        and value not in ("", [], {}, ())
    }


def task_json(task: Task, is_full: bool = False) -> Json:
    """Return the shape of a task.

    ``is_full`` gives a compacted one its whole text.
    """
    return {
        "id": task.short_id,
        "uuid": task.id,
        "title": task.title,
        "description": task.full_description if is_full else task.description,
        "status": task.status,
        "priority": task.priority,
        "type": task.type,
        "labels": list(task.labels),
        "assignee": task.assignee,
        "sessionId": task.session_id,
        "dependencies": [
            {"taskId": each.task, "dependsOnId": each.depends_on, "type": each.type}
            for each in task.dependencies
        ],
        "createdAt": task.created_at,
        "createdBy": task.created_by,
        "updatedAt": task.updated_at,
        "claimedAt": task.claimed_at,
        "closedAt": task.closed_at,
        "closeReason": task.close_reason,
        "summary": task.summary,
        "compactionLevel": task.compaction_level,
        "compactedAt": task.compacted_at,
        "metadata": dict(task.metadata),
    }


def brief_task_json(task: Task, description: str | None = None) -> Json:
    """Return the shape of a task for an agent.

    Without a description, the beginning of its own.
    """
    shape = task_json(task)
    is_whole = description is not None
    shape["description"] = description if is_whole else shorten(task.description, BRIEF)
    shape["summary"] = task.summary if is_whole else shorten(task.summary or "", BRIEF)
    shape["dependencies"] = shape["dependencies"][:MOST_AROUND]
    shape["dependencyCount"] = _more_than(MOST_AROUND, task.dependencies)
    shape["compactionLevel"] = task.compaction_level or None
    return lean(shape, _TASK_LEAVES_OUT)


def mention_json(task: Task) -> Json:
    """Return the shape of a task that is mentioned beside another."""
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


def brief_mention_json(task: Task) -> Json:
    """Return the shape of a mentioned task for an agent."""
    return lean(mention_json(task), ("uuid", "assignee"))


def details_json(details: TaskDetails, is_full: bool = False) -> Json:
    """Return a task's shape with related tasks and messages."""
    return {
        "task": task_json(details.task, is_full),
        "isBlocked": details.is_blocked,
        **{
            name: [mention_json(task) for task in tasks] for name, tasks in _around(details).items()
        },
        "progress": progress_json(details.progress),
        "linkedMessageIds": list(details.linked_message_ids),
    }


def brief_details_json(details: TaskDetails, page: int) -> Json:
    """Return a task's shape for an agent, by the page."""
    text, paging = page_of(details.task.description, page)
    task = brief_task_json(details.task, text)
    if "nextPage" in paging or page > 1:
        task["descriptionRange"] = paging["range"]
    linked, metadata = details.linked_message_ids, dict(details.task.metadata)
    task |= filled(
        linkedMessageIds=list(linked[-MOST_LINKED:]),
        linkedMessageCount=_more_than(MOST_LINKED, linked),
        metadata=metadata if len(str(metadata)) <= _MOST_METADATA else None,
    )
    around = _around(details)
    return {
        "task": task,
        "isBlocked": details.is_blocked,
        "blockingTasks": [],
        **filled(
            **{
                name: [brief_mention_json(each) for each in tasks[:MOST_AROUND]]
                for name, tasks in around.items()
            },
            **{f"{name}Count": _more_than(MOST_AROUND, tasks) for name, tasks in around.items()},
            progress=progress_json(details.progress),
            nextPage=paging.get("nextPage"),
        ),
    }


def _around(details: TaskDetails) -> dict[str, Sequence[Task]]:
    return {
        "blockingTasks": details.blocking_tasks,
        "dependents": details.dependents,
        "children": details.children,
        "parents": details.parents,
        "related": details.related,
    }


def _more_than(shown: int, things: Sequence[Any]) -> int | None:
    return len(things) if len(things) > shown else None


def progress_json(progress: TaskProgress | None) -> dict[str, int] | None:
    """Return a task's closed children, or None without any."""
    if progress is None:
        return None
    return {"closed": progress.closed, "total": progress.total, "percent": progress.percent}


def hit_json(hit: Hit, names: Names) -> Json:
    """Return the shape of a search hit.

    Its ``taskId`` is the task's short id.
    """
    stages = hit.stages
    before, after = (
        [
            {"id": each.id, "role": each.role, "seq": each.seq, "snippet": each.snippet}
            for each in messages
        ]
        for messages in (hit.before, hit.after)
    )
    return {
        "id": hit.id,
        "source": hit.source,
        "content": hit.content,
        "rank": hit.rank,
        "taskId": names.short(hit.task_id),
        "createdAt": hit.created_at,
        "threadId": hit.thread_id,
        "score": round(hit.score, 4),
        "why": list(hit.why),
        "snippet": hit.snippet,
        "role": hit.role,
        "seq": hit.seq,
        "resourceId": hit.resource_id,
        "type": hit.type,
        "title": hit.title,
        "files": list(hit.files),
        "isConfirmed": hit.is_confirmed,
        "freshness": hit.metadata.get("freshness"),
        "hedge": hit.metadata.get("hedge"),
        "copies": len(hit.copies) or None,
        "stages": None
        if stages is None
        else {
            "words": round(stages.words, 4),
            "meaning": None if stages.meaning is None else round(stages.meaning, 4),
            "fused": round(stages.fused, 4),
            "factors": [[name, round(factor, 4)] for name, factor in stages.factors],
            "coverage": round(stages.coverage, 4),
            "unknown": round(stages.unknown, 4),
            "unknownNames": round(stages.unknown_names, 4),
            "parts": [[name, round(part, 4)] for name, part in stages.parts],
        },
        "before": before,
        "after": after,
    }


def brief_hits_json(hits: Sequence[Hit], names: Names) -> list[Json]:
    """Return the shapes of hits for an agent.

    Together they fill a page at most.

    A content that is too long is cut around what answers best. ``isConfirmed`` is there only
    for what is not confirmed.
    """
    widths = shares([len(hit.content) for hit in hits], PAGE_CHARACTERS)
    shapes = []
    for hit, width in zip(hits, widths, strict=True):
        shape = hit_json(hit, names)
        if len(hit.content) > width:
            start = min(best_window(hit.content, hit.terms, width), len(hit.content) - width)
            shape["content"] = hit.content[start : start + width]
            shape["contentRange"] = [start, start + width, len(hit.content)]
        confirmed = {} if hit.is_confirmed else {"isConfirmed": False}
        shapes.append(lean(shape, (*_HIT_LEAVES_OUT, "isConfirmed")) | confirmed)
    return shapes


def memory_json(
    memory: TypedMemory, confidence: float | None = None, code: Freshness | None = None
) -> Json:
    """Return the shape of a memory.

    Args:
        memory: The memory.
        confidence: Its confidence now, if it was computed.
        code: The freshness of the code it names, if it was checked.
    """
    unit, chunk = memory.work_unit, memory.chunk
    return {
        "id": memory.short_id,
        "uuid": memory.id,
        "type": memory.type,
        "content": memory.content,
        "confidence": memory.confidence,
        "confidenceNow": confidence,
        "trust": memory.tier,
        "isTainted": memory.is_tainted,
        "taint": list(memory.taint),
        "needsReview": memory.needs_review,
        "reviewReasons": list(memory.review_reasons),
        "isVerified": memory.is_verified,
        "verifiedAt": memory.verified_at,
        "verifiedBy": memory.verified_by,
        "isPinned": memory.is_pinned,
        "isStale": memory.is_stale,
        "staleAt": memory.stale_at,
        "staleBecause": memory.stale_because,
        "isActive": memory.is_active,
        "deprecatedAt": memory.deprecated_at,
        "deprecatedBecause": memory.deprecated_because,
        "supersededBy": memory.superseded_by,
        "supersedes": list(memory.supersedes),
        "tags": list(memory.tags),
        "files": list(memory.files),
        "modules": list(memory.modules),
        "scope": memory.scope,
        "visibility": memory.visibility,
        "source": memory.source,
        "createdAt": memory.created_at,
        "seenAt": memory.evidence_at,
        "createdBy": memory.created_by,
        "updatedAt": memory.updated_at,
        "version": memory.version,
        "sessionId": memory.session_id,
        "sessionIds": list(memory.session_ids),
        "commit": memory.commit,
        "evidence": [evidence_json(each) for each in memory.evidence],
        "workUnit": asdict(unit) if unit is not None else None,
        "methodology": memory.methodology,
        "relations": [
            {
                "type": each.type,
                "memoryId": each.memory_id,
                "path": each.path,
                "confidence": each.confidence,
                "isAuto": each.is_auto,
            }
            for each in memory.relations
        ],
        "halfLifeDays": memory.half_life_days,
        "citation": memory.citation,
        "chunk": None
        if chunk is None
        else {
            "type": chunk.type,
            "firstLine": chunk.first_line,
            "lastLine": chunk.last_line,
            "contextPrefix": chunk.context_prefix,
        },
        "data": dict(memory.data),
        "verifiedUses": memory.verified_uses,
        "corrections": memory.corrections,
        "lastVerifiedUseAt": memory.last_verified_use_at,
        "code": code_json(code),
    }


def brief_memory_json(memory: TypedMemory) -> Json:
    """Return the shape of a memory for an agent.

    ``taint`` is there only while it counts.
    """
    shape = memory_json(memory)
    shape["taint"] = shape["taint"] if memory.is_tainted else []
    shape["files"], shape["evidence"] = (
        shape[name][:MOST_AROUND] for name in ("files", "evidence")
    )
    return lean({name: shape[name] for name in _MEMORY_KEEPS})


def evidence_json(evidence: Evidence) -> Json:
    """Return the shape of a piece of evidence, without its empty fields."""
    return filled(
        messageId=evidence.message_id,
        observationId=evidence.observation_id,
        path=evidence.path,
        commit=evidence.commit,
        firstLine=evidence.first_line,
        lastLine=evidence.last_line,
        quote=evidence.quote,
    )


def code_json(code: Freshness | None) -> Json | None:
    """Return the freshness of the code that a memory or observation names."""
    if code is None:
        return None
    return {
        "verdict": code.verdict,
        "changed": code.changed,
        "told": code.telling,
        "hedge": code.hedge,
        "anchors": [
            {
                "verdict": each.verdict,
                "path": each.path,
                "symbol": each.symbol or None,
                "nowPath": each.now_path,
                "nowSymbol": each.now_symbol or None,
                "firstLine": each.first_line,
                "lastLine": each.last_line,
                "changed": each.changed,
                "commit": each.commit,
                "why": each.why or None,
            }
            for each in code.anchors
        ],
    }


def observation_json(observation: Observation, code: Freshness | None = None) -> Json:
    """Return an observation's shape with its code's freshness."""
    return {
        "id": observation.id,
        "kind": observation.kind,
        "state": observation.state,
        "generation": observation.generation,
        "threadId": observation.thread_id,
        "mode": observation.mode,
        "priority": observation.priority,
        "category": observation.category,
        "text": observation.text,
        "details": list(observation.details),
        "files": list(observation.files),
        "lines": list(observation.lines),
        "modeSpecific": dict(observation.mode_specific),
        "taint": list(observation.taint),
        "saidAt": observation.said_at,
        "refersTo": observation.refers_to,
        "tokens": observation.tokens,
        "firstSeq": observation.first_seq,
        "lastSeq": observation.last_seq,
        "method": observation.method,
        "createdAt": observation.created_at,
        "reflectedInto": observation.reflected_into,
        "code": code_json(code),
    }


def brief_observation_json(observation: Observation, message_ids: Sequence[str]) -> Json:
    """Return an observation's shape for an agent, with messages."""
    shape = lean(observation_json(observation), _OBSERVATION_LEAVES_OUT)
    return shape | filled(messageIds=list(message_ids))


def message_json(message: Message, names: Names) -> Json:
    """Return the shape of a message.

    Its ``taskId`` is the task's short id.
    """
    return {
        "id": message.id,
        "threadId": message.thread_id,
        "resourceId": message.resource_id,
        "seq": message.seq,
        "role": message.role,
        "content": message.raw_content,
        "parts": [
            filled(
                type=part.type,
                text=part.text,
                name=part.name,
                callId=part.call_id,
                arguments=part.arguments,
                isError=part.is_error,
                mediaType=part.media_type,
                uri=part.uri,
                sizeBytes=part.size_bytes,
            )
            for part in message.parts
        ],
        "tokenCount": message.token_count,
        "tokenMethod": message.token_method,
        "createdAt": message.created_at,
        "clientId": message.client_id,
        "taskId": names.short(message.task_id),
        "isSealed": message.is_sealed,
        "compactionLevel": message.compaction_level,
        "metadata": dict(message.metadata),
    }


def brief_message_json(message: Message, names: Names, page: int) -> Json:
    """Return a message's shape for an agent, by the page."""
    shape = message_json(message, names)
    head = lean(
        {name: shape[name] for name in ("id", "threadId", "seq", "role", "createdAt", "taskId")}
    )
    return paged_json("message", head, message.raw_content, page=page)


def paged_json(name: str, shape: Json, text: str, page: int) -> Json:
    """Return a page of a record's text for an agent."""
    content, paging = page_of(text, page)
    cut = {"contentRange": paging["range"]} if page > 1 or "nextPage" in paging else {}
    return {
        name: {**shape, "content": content, **cut},
        **filled(nextPage=paging.get("nextPage")),
    }


def commit_json(commit: Commit) -> Json:
    """Return the shape of a commit."""
    return {
        "id": commit.sha,
        "shortId": commit.short_id,
        "at": commit.at,
        "author": commit.author,
        "subject": commit.subject,
        "body": commit.body,
        "reason": commit.reason,
        "files": list(commit.files),
        "functions": list(commit.functions),
    }


def decision_json(decision: Decision) -> Json:
    """Return the shape of a decision."""
    memory = decision.memory
    return {
        "id": decision.id,
        "shortId": decision.short_id,
        "type": memory.type,
        "rule": decision.rule,
        "quotations": list(decision.quotations),
        "rejected": list(decision.rejected),
        "isPlan": decision.is_plan,
        "decidedAt": decision.decided_at,
        "threadId": decision.thread_id,
        "files": list(memory.files),
        "isInForce": decision.is_in_force,
        "supersededBy": memory.superseded_by,
        "supersedes": list(memory.supersedes),
    }


def line_reason_json(reason: LineReason) -> Json:
    """Return the shape of a reason behind a file's lines."""
    return {
        "path": reason.path,
        "commit": commit_json(reason.commit),
        "lines": list(reason.lines),
        "functions": list(reason.functions),
        "lost": [{"text": each.text, "by": each.by} for each in reason.lost],
        "undoneBy": None if reason.undone_by is None else commit_json(reason.undone_by),
    }


def working_json(page: WorkingMemory) -> Json:
    """Return the shape of a page of working memory."""
    return {
        "id": page.id,
        "scope": page.scope,
        "resourceId": page.resource_id,
        "threadId": page.thread_id,
        "format": page.format,
        "content": page.content,
        "value": page.value,
        "template": page.template,
        "schema": page.schema,
        "version": page.version,
        "createdAt": page.created_at,
        "updatedAt": page.updated_at,
        "updatedBy": page.updated_by,
    }


def brief_working_json(page: WorkingMemory) -> Json:
    """Return the shape of a page of working memory for an agent."""
    left_out = ("id", "value", "template", "schema", "createdAt", "updatedBy")
    return lean(working_json(page), left_out) | {"content": page.content}


def page_of(text: str, page: int, size: int = PAGE_CHARACTERS) -> tuple[str, Json]:
    """Return one page of a text with its position.

    >>> page_of("abcde", 2, 2)
    ('cd', {'range': [2, 4, 5], 'nextPage': 3})
    """
    start = min((page - 1) * size, len(text))
    end = min(start + size, len(text))
    following = {"nextPage": page + 1} if end < len(text) else {}
    return text[start:end], {"range": [start, end, len(text)], **following}


def shares(lengths: list[int], budget: int) -> list[int]:
    """Divide a budget among texts: short ones whole, long alike.

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
    """Return the value without lone surrogates, which no JSON reader takes.

    >>> encodable({"a\\ud800": ["\\udc00x"]}) == {"a\\ufffd": ["\\ufffdx"]}
    True
    """
    if isinstance(value, str):
        return (
            value
            if value.isascii()
            else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, dict):
        return {encodable(str(name)): encodable(each) for name, each in value.items()}
    return [encodable(each) for each in value] if isinstance(value, list | tuple) else value
