"""Read every record, and where it comes from, for its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smara.browse.models import KINDS
from smara.core.validate import one_of
from smara.memory import Memory
from smara.messages.models import ROLES
from smara.surfaces.http.shape import Shaper, tag_of
from smara.surfaces.panel.page import ROWS, Facts, PageSpec, Query, number

_FLAGS = ("needs_review", "is_stale", "is_pinned")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "memories": ("state", "type", "source", "tier", *_FLAGS, "module", "file", "tag", "session"),
    "decisions": ("state",),
    "observations": ("state", "category", "priority"),
    "messages": ("role", "thread_id"),
    "tasks": ("status", "priority", "type"),
    "working": ("scope",),
}
"""By kind: what an address may choose, each a facet or a key."""
_SHORT = 400


def browse(memory: Memory, query: Query) -> Facts:
    """Read one kind of record as a table, with its facets counted."""
    kind: Any = one_of(query.get("kind", "memories"), KINDS, "kind")
    words, offset = query.get("q", "").strip(), number(query, "offset")
    chosen = {name: query[name] for name in _CHOICES[kind] if query.get(name)}
    counts = memory.browse.facets(kind, chosen)
    rows, following = _ROWS[kind](memory, chosen, words, offset)
    facets: dict[str, list[Facts]] = {
        name: [
            {"value": each.value, "count": each.count}
            for each in values
            if name not in _FLAGS or each.value == "yes"
        ]
        for name, values in counts.facets.items()
    }
    threads = [each["value"] for each in facets.get("thread_id", ())]
    threads += [chosen[name] for name in ("thread_id", "session") if name in chosen]
    if kind == "messages":  # no index counts roles, and a million messages are not read for it
        facets["role"] = [{"value": each, "count": None} for each in ROLES]
    if kind == "memories":
        facets["module"] = [
            {"value": each.value, "count": each.count} for each in memory.browse.modules_named()
        ]
    return {
        "kind": kind,
        "kinds": list(KINDS),
        "q": words,
        "chosen": chosen,
        "total": None if "role" in chosen else counts.total,
        "facets": facets,
        "titles": {each: thread.title for each in threads if (thread := memory.threads.find(each))},
        "rows": rows,
        "offset": offset,
        "next": following,
    }


def _memories(
    memory: Memory, chosen: Mapping[str, str], words: str, offset: int
) -> tuple[list[Facts], int | None]:
    shape = Shaper(memory).shape
    if words:
        types = [chosen["type"]] if "type" in chosen else None
        state: Any = chosen.get("state", "active")
        answer = memory.search_memories(words, limit=ROWS, offset=offset, types=types, state=state)
        more = offset + ROWS if answer.total_hits > offset + ROWS else None
        return shape([hit.memory for hit in answer]), more
    filters: dict[str, Any] = {
        {"session": "session_id"}.get(name, name): value == "yes" if name in _FLAGS else value
        for name, value in chosen.items()
    }
    page = memory.memories.list(limit=ROWS, offset=offset, **filters)
    return shape(page.memories), page.next_offset


def _decisions(
    memory: Memory, chosen: Mapping[str, str], words: str, offset: int
) -> tuple[list[Facts], int | None]:
    shape = Shaper(memory).shape
    if words:
        return shape(memory.decisions.search(words, limit=ROWS)), None
    state: Any = chosen.get("state", "active")
    page = memory.decisions.list(state=state, limit=ROWS, offset=offset)
    return shape(page.decisions), page.next_offset


def _observations(
    memory: Memory, chosen: Mapping[str, str], words: str, offset: int
) -> tuple[list[Facts], int | None]:
    shape = Shaper(memory).shape
    if words:
        found = memory.search_observations(words, limit=ROWS)
        return shape([hit.observation for hit in found]), None
    rows = memory.observations.list(limit=ROWS + 1, offset=offset, **chosen)
    return shape(rows[:ROWS]), offset + ROWS if len(rows) > ROWS else None


def _messages(
    memory: Memory, chosen: Mapping[str, str], words: str, offset: int
) -> tuple[list[Facts], int | None]:
    """Return messages; the offset of their next page is the number of the last one."""
    shape = Shaper(memory).shape
    thread, role = chosen.get("thread_id"), chosen.get("role")
    if words:
        answer = memory.search(
            words, limit=ROWS, sources=("messages",), thread_id=thread, role=role
        )
        found = (memory.messages.find(hit.id) for hit in answer)
        return [_short(shape(each)) for each in found if each is not None], None
    rows = memory.browse.messages(role=role, thread_id=thread, before=offset or None, limit=ROWS)
    following = rows[-1].no if len(rows) == ROWS else None
    return [_short(shape(each.message)) for each in rows], following


def _short(message: Facts) -> Facts:
    return {**message, "content": message["content"][:_SHORT]}


def _tasks(
    memory: Memory, chosen: Mapping[str, str], words: str, offset: int
) -> tuple[list[Facts], int | None]:
    shape = Shaper(memory).shape
    filters: dict[str, Any] = dict(chosen)
    if words:
        found = memory.search_tasks(words, ROWS, offset=offset, status=chosen.get("status"))
        more = offset + ROWS if found.total_hits > offset + ROWS else None
        return shape([hit.task for hit in found]), more
    if "priority" in filters:
        filters["priority"] = number(filters, "priority")
    page = memory.tasks.list(limit=ROWS, offset=offset, **filters)
    return shape(page.tasks), page.next_offset


def _working(
    memory: Memory, chosen: Mapping[str, str], words: str, offset: int
) -> tuple[list[Facts], int | None]:
    pages = memory.browse.working(limit=ROWS + 1, offset=offset)
    rows = [each for each in pages[:ROWS] if chosen.get("scope") in (None, each.scope)]
    following = offset + ROWS if len(pages) > ROWS else None
    return [each for each in Shaper(memory).shape(rows) if words in each["content"]], following


_ROWS: Mapping[
    str, Callable[[Memory, Mapping[str, str], str, int], tuple[list[Facts], int | None]]
] = {
    "memories": _memories,
    "decisions": _decisions,
    "observations": _observations,
    "messages": _messages,
    "tasks": _tasks,
    "working": _working,
}


def one_memory(memory: Memory, query: Query) -> Facts:
    """Read a memory with its evidence and its history."""
    record = memory.memories.get(query["id"])
    shape = Shaper(memory).shape
    return {
        "memory": {**shape(record), "etag": tag_of(record)},
        "why": shape(memory.memories.why(record.id)),
        "history": shape(memory.memories.history(record.id)),
    }


def one_message(memory: Memory, query: Query) -> Facts:
    """Read a message, whole, with a quotation in it marked."""
    found = Shaper(memory).shape(memory.messages.get(query["id"]))
    return {"message": found, "quote": query.get("quote", "")}


def one_observation(memory: Memory, query: Query) -> Facts:
    """Read an observation with the messages it stands for."""
    record = memory.observations.get(query["id"])
    shape = Shaper(memory).shape
    messages = [_short(each) for each in shape(memory.observations.why(record.id, limit=20))]
    return {"observation": shape(record), "messages": messages}


def one_task(memory: Memory, query: Query) -> Facts:
    """Read a task with its dependencies and its history."""
    details = memory.tasks.show(query["id"])
    shape = Shaper(memory).shape
    return {
        "details": shape(details),
        "history": shape(memory.tasks.history(details.task.id)),
        "etag": tag_of(details.task),
    }


def one_page(memory: Memory, query: Query) -> Facts:
    """Read a page of working memory with its versions."""
    place: dict[str, Any] = {"scope": query.get("scope") or None}
    place |= {name: query[name] for name in ("resource_id", "thread_id") if query.get(name)}
    shape = Shaper(memory).shape
    versions = memory.working.history(**place, limit=10)
    return {"page": shape(memory.working.get(**place)), "versions": shape(versions)}


def erase(memory: Memory, query: Query) -> Facts:
    """Read what an erase would remove; nothing is changed."""
    record = memory.memories.get(query.get("memory", ""))
    plan = memory.privacy.plan_erase(memories=[record.id])
    return {
        "memory": Shaper(memory).shape(record),
        "lines": [{"count": count, "what": what, "why": why} for count, what, why in plan.lines],
        "total": plan.total,
    }


BROWSE: tuple[PageSpec, ...] = (
    PageSpec("/browse", "browse.html", browse, "Browse", key="b"),
    PageSpec("/memories/{id}", "memory.html", one_memory, "Memory"),
    PageSpec("/messages/{id}", "message.html", one_message, "Message"),
    PageSpec("/observations/{id}", "observation.html", one_observation, "Observation"),
    PageSpec("/tasks/{id}", "task.html", one_task, "Task"),
    PageSpec("/working", "working.html", one_page, "Working memory"),
    PageSpec("/erase", "erase.html", erase, "Erase for good"),
)
