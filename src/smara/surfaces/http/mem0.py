"""Speak the REST interface of mem0, so that its clients work unchanged.

``smara serve --mem0`` serves the paths of the hosted service (``/v1/…`` to ``/v3/…``), which
``MemoryClient`` calls, and those of the self-hosted server under ``/mem0``. What a client adds is
stored as messages of a thread; each statement in them becomes a memory with the message as its
evidence. A client acts as an agent: what it adds waits for review, and what a person confirmed it
cannot change. Users, agents, apps and runs are tags (``user:alice``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from smara.errors import InvalidInputError, NotFoundError
from smara.knowledge.models import Evidence, MemoryEvent, TypedMemory
from smara.memory import Memory
from smara.shapes import encodable
from smara.surfaces.http.api import Api, Caller, read_body
from smara.surfaces.http.problem import Refusal

ENTITIES = ("user", "agent", "app", "run")
_PAGE = 200
_MOST_RESULTS = 1_000
_EVENTS = {"created": "ADD", "updated": "UPDATE", "deprecated": "DELETE", "forgotten": "DELETE"}
Json = dict[str, Any]
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, other: bool(value == other),
    "ne": lambda value, other: bool(value != other),
    "in": lambda value, other: value in other,
    "gt": lambda value, other: value is not None and bool(value > other),
    "gte": lambda value, other: value is not None and bool(value >= other),
    "lt": lambda value, other: value is not None and bool(value < other),
    "lte": lambda value, other: value is not None and bool(value <= other),
    "contains": lambda value, other: str(other) in str(value),
    "icontains": lambda value, other: str(other).lower() in str(value).lower(),
}


class Mem0:
    """The routes of mem0 over one server's memory."""

    def __init__(self, api: Api) -> None:
        self._api = api
        hosted = [
            self._route("/v1/ping/", "GET", self._ping, reads=True),
            self._route("/v3/memories/add/", "POST", self._add),
            self._route("/v1/memories/", "POST", self._add),
            *(
                self._route(f"/{version}/memories/search/", "POST", self._search, reads=True)
                for version in ("v1", "v2", "v3")
            ),
            *(
                self._route(f"/{version}/memories/", "POST", self._list, reads=True)
                for version in ("v2", "v3")
            ),
            self._route("/v1/memories/", "GET", self._list, reads=True),
            self._route("/v1/memories/", "DELETE", self._delete_all),
            self._route("/v1/memories/{id}/history/", "GET", self._history, reads=True),
            self._route("/v1/memories/{id}/", "GET", self._get, reads=True),
            self._route("/v1/memories/{id}/", "PUT", self._update),
            self._route("/v1/memories/{id}/", "DELETE", self._delete),
            self._route("/v1/entities/", "GET", self._entities, reads=True),
            self._route("/v2/entities/{type}/{name}/", "DELETE", self._delete_entity),
            self._route("/v1/batch/", "PUT", self._update_batch),
            self._route("/v1/batch/", "DELETE", self._delete_batch),
            self._route("/v1/feedback/", "POST", self._feedback),
            *(
                Route(path, _unsupported, methods=["GET", "POST", "PUT", "DELETE"])
                for path in ("/v1/exports/{rest:path}", "/v1/summary/", "/v2/profiles/{rest:path}")
            ),
        ]
        own = [
            self._route("/memories", "POST", self._add),
            self._route("/memories", "GET", self._list_own, reads=True),
            self._route("/memories", "DELETE", self._delete_all),
            self._route("/memories/{id}/history", "GET", self._history, reads=True),
            self._route("/memories/{id}", "GET", self._get, reads=True),
            self._route("/memories/{id}", "PUT", self._update),
            self._route("/memories/{id}", "DELETE", self._delete),
            self._route("/search", "POST", self._search, reads=True),
            self._route("/reset", "POST", self._reset),
            Route("/configure", _unsupported, methods=["GET", "POST"]),
        ]
        self.routes = [*hosted, Mount("/mem0", routes=[*hosted, *own])]

    def _route(
        self, path: str, method: str, answer: Callable[[Memory, Json], Any], reads: bool = False
    ) -> Route:
        async def respond(request: Request) -> Response:
            caller = Caller.of(request)
            if not reads and not caller.principal.may_write:
                raise Refusal(403, "read_only_key", "This key may only read.")
            given: Json = {**request.query_params, **request.path_params}
            if method != "GET":
                given |= await read_body(request)
            body = await self._api.in_thread(
                partial(self._answer, caller, answer, given, may_write=not reads)
            )
            return JSONResponse(encodable(body))

        return Route(path, respond, methods=[method])

    def _answer(
        self, caller: Caller, answer: Callable[[Memory, Json], Any], given: Json, may_write: bool
    ) -> Any:
        with self._api.memory(caller, may_write) as memory:
            body = answer(memory, given)
            if may_write:
                self._api.written(memory)
            return body

    def _ping(self, memory: Memory, given: Json) -> Json:
        return {
            "status": "ok",
            "org_id": "smara",
            "project_id": memory.project,
            "user_email": None,
        }

    def _add(self, memory: Memory, given: Json) -> Json:
        """Store the messages, and each statement in them as a memory."""
        messages, tags = _messages_in(given), _tags_in(given)
        metadata = _object_in(given, "metadata")
        thread_id = "mem0:" + (",".join(tags) or "default")
        owner = next((tag.partition(":")[2] for tag in tags), None)
        results = []
        for role, text in messages:
            message = memory.messages.add(
                thread_id=thread_id,
                role=role,  # type: ignore[arg-type]  # the room refuses others
                content=text,
                metadata={"mem0": metadata} if metadata else None,
                resource_id=owner,
            )
            if role not in ("user", "assistant") or (role == "assistant" and _infers(given)):
                continue
            added = memory.memories.add(
                text,
                type=memory.memories.guess_type(text),
                by="agent",
                tags=tags,
                evidence=[Evidence(message_id=message.id)],
                thread_id=thread_id,
            )
            found = added.memory
            if found is None:
                continue
            if not set(tags) <= set(found.tags):  # another user had said the same
                mine = sorted({*found.tags, *tags})
                found = memory.memories.update(found.id, tags=mine, by="agent")
            event = "ADD" if added.outcome == "added" else "UPDATE"
            results.append({"id": found.id, "memory": found.content, "event": event})
        return {"results": results}

    def _search(self, memory: Memory, given: Json) -> Json:
        query = given.get("query")
        if not isinstance(query, str) or not query.strip():
            raise InvalidInputError("query must be a text.", field="query")
        most = _whole_number(given, "top_k", _whole_number(given, "limit", 10))
        threshold = given.get("threshold")
        filters, tags = _filters_in(given), _tags_in(_flat(given))
        answer = memory.search_memories(
            query, _MOST_RESULTS if filters else most, tags=tags or None
        )
        results = []
        for hit in (*answer.hits, *answer.nearest):
            shape = self._shape(memory, hit.memory, tags) | {"score": round(hit.score, 4)}
            is_near = not isinstance(threshold, int | float) or hit.score >= threshold
            if is_near and matches(filters, shape):
                results.append(shape)
        return {"results": results[:most]}

    def _list(self, memory: Memory, given: Json) -> Json:
        found = list(self._found(memory, given))
        size = _whole_number(given, "page_size", 100)
        page = _whole_number(given, "page", 1)
        start = (page - 1) * size
        shown = found[start : start + size]
        following = f"?page={page + 1}&page_size={size}" if start + size < len(found) else None
        before = f"?page={page - 1}&page_size={size}" if page > 1 else None
        return {"count": len(found), "next": following, "previous": before, "results": shown}

    def _list_own(self, memory: Memory, given: Json) -> Json:
        return {"results": list(self._found(memory, given))}

    def _found(self, memory: Memory, given: Json) -> Iterator[Json]:
        """Yield what a client's filters let pass, the newest first."""
        filters, tags = _filters_in(given), _tags_in(_flat(given))
        for each in _tagged(memory, tags):
            shape = self._shape(memory, each, tags)
            if matches(filters, shape):
                yield shape

    def _get(self, memory: Memory, given: Json) -> Json:
        return self._shape(memory, _memory(memory, given["id"]), ())

    def _update(self, memory: Memory, given: Json) -> Json:
        """Change the text or the metadata; what was said of it becomes evidence, too."""
        found = _memory(memory, given["id"])
        text = given.get("text") or given.get("data") or given.get("memory")
        metadata = _object_in(given, "metadata")
        if not isinstance(text, str) and not metadata:
            raise InvalidInputError("text or metadata is needed.", field="text")
        message = memory.messages.add(
            thread_id="mem0:" + (",".join(found.tags) or "default"),
            role="user",
            content=text if isinstance(text, str) else found.content,
            metadata={"mem0": metadata or self._metadata(memory, found)},
        )
        evidence = [*found.evidence, Evidence(message_id=message.id)]
        changes: Json = {"content": text} if isinstance(text, str) else {}
        changed = memory.memories.update(found.id, by="agent", evidence=evidence, **changes)
        return self._shape(memory, changed, ()) | {"message": "Memory updated successfully!"}

    def _delete(self, memory: Memory, given: Json) -> Json:
        _forget(memory, _memory(memory, given["id"]), ())
        return {"message": "Memory deleted successfully!"}

    def _delete_all(self, memory: Memory, given: Json) -> Json:
        tags = _tags_in(given)
        if not tags:
            raise InvalidInputError(
                "Name whose: user_id, agent_id, app_id or run_id.", field="user_id"
            )
        count = sum(_forget(memory, each, tags) for each in list(_tagged(memory, tags)))
        return {"message": "Memories deleted successfully!", "count": count}

    def _delete_entity(self, memory: Memory, given: Json) -> Json:
        if given["type"] not in ENTITIES:
            raise NotFoundError(f"There are no entities of type {given['type']!r}.")
        self._delete_all(memory, {f"{given['type']}_id": given["name"]})
        return {"message": "Entity deleted successfully!"}

    def _reset(self, memory: Memory, given: Json) -> Json:
        for tag in _owners(memory):
            for each in list(_tagged(memory, [tag])):
                _forget(memory, each, [tag])
        return {"message": "All memories reset"}

    def _entities(self, memory: Memory, given: Json) -> Json:
        results = [
            {"type": tag.partition(":")[0], "name": tag.partition(":")[2], "total_memories": count}
            for tag, count in _owners(memory).items()
        ]
        return {"count": len(results), "next": None, "previous": None, "results": results}

    def _history(self, memory: Memory, given: Json) -> list[Json]:
        found = _memory(memory, given["id"])
        events = reversed(memory.memories.history(found.id, limit=_PAGE))
        return [_event(found, each) for each in events]

    def _update_batch(self, memory: Memory, given: Json) -> Json:
        rows = _batch(given)
        for row in rows:
            self._update(memory, {**row, "id": row["memory_id"]})
        return {"message": f"Successfully updated {len(rows)} memories"}

    def _delete_batch(self, memory: Memory, given: Json) -> Json:
        rows = _batch(given)
        for row in rows:
            self._delete(memory, {"id": row["memory_id"]})
        return {"message": f"Successfully deleted {len(rows)} memories"}

    def _feedback(self, memory: Memory, given: Json) -> Json:
        found = _memory(memory, str(given.get("memory_id", "")))
        outcome = "verified" if given.get("feedback") == "POSITIVE" else "wrong"
        note = str(given.get("feedback_reason") or "")
        memory.memories.used(found.id, outcome, note=note, by="agent")  # type: ignore[arg-type]
        return {"id": found.id, "feedback": given.get("feedback")}

    def _shape(self, memory: Memory, found: TypedMemory, tags: Iterable[str]) -> Json:
        """Return a memory as mem0 has it."""
        # One that several users stated is shown as that of the one who asks.
        owners = [tag for tag in (*found.tags, *tags) if _is_owner(tag)]
        named = dict(tag.split(":", 1) for tag in owners)
        return {
            "id": found.id,
            "memory": found.content,
            **{f"{kind}_id": named.get(kind) for kind in ENTITIES},
            "hash": hashlib.md5(found.content.encode(), usedforsecurity=False).hexdigest(),
            "metadata": self._metadata(memory, found) or None,
            "categories": [tag for tag in found.tags if not _is_owner(tag)],
            "created_at": _moment(found.created_at),
            "updated_at": _moment(found.updated_at),
            "is_confirmed": found.is_verified,
        }

    def _metadata(self, memory: Memory, found: TypedMemory) -> Json:
        ids = [each.message_id for each in found.evidence if each.message_id]
        for message_id in reversed(ids):
            message = memory.messages.find(message_id)
            stored = message.metadata.get("mem0") if message is not None else None
            if isinstance(stored, dict):
                return stored
        return {}


async def _unsupported(request: Request) -> Response:
    raise Refusal(501, "not_offered", "This server does not offer that part of mem0.")


def _is_owner(tag: str) -> bool:
    return tag.partition(":")[0] in ENTITIES and ":" in tag


def _tags_in(given: Mapping[str, Any]) -> list[str]:
    """Return the tags of the user, agent, app and run that a request names."""
    tags = []
    for kind in ENTITIES:
        name = given.get(f"{kind}_id")
        if name not in (None, "", "*"):
            if not isinstance(name, str | int):
                raise InvalidInputError(f"{kind}_id must be a text.", field=f"{kind}_id")
            tags.append(f"{kind}:{name}")
    return tags


def _flat(given: Mapping[str, Any]) -> Json:
    """Return the owners that must match, named at the top, in filters, or in their AND."""
    filters = given.get("filters")
    found = {name: given.get(name) for name in (f"{kind}_id" for kind in ENTITIES)}
    layers = [filters] if isinstance(filters, dict) else []
    layers += [
        each for each in (layers[0].get("AND") or [] if layers else []) if isinstance(each, dict)
    ]
    for layer in layers:
        found |= {name: layer[name] for name in found if isinstance(layer.get(name), str)}
    return found


def _filters_in(given: Mapping[str, Any]) -> Json:
    filters = given.get("filters")
    if isinstance(filters, str):
        try:
            filters = json.loads(filters)
        except ValueError:
            filters = [filters]
    if filters is None:
        filters = {}
    if not isinstance(filters, dict):
        raise InvalidInputError("filters must be an object.", field="filters")
    named = {f"{kind}_id": given[f"{kind}_id"] for kind in ENTITIES if given.get(f"{kind}_id")}
    return {**filters, **named}


def matches(filters: Any, shape: Mapping[str, Any]) -> bool:
    """Return True if a memory passes the filters of mem0.

    >>> matches({"AND": [{"user_id": "a"}, {"score": {"gte": 1}}]}, {"user_id": "a", "score": 2})
    True
    """
    if not isinstance(filters, dict):
        raise InvalidInputError("filters must be an object.", field="filters")
    for name, value in filters.items():
        inner = value if isinstance(value, list) else [value]
        if name in ("AND", "$and"):
            passes = all(matches(each, shape) for each in inner)
        elif name in ("OR", "$or"):
            passes = any(matches(each, shape) for each in inner)
        elif name in ("NOT", "$not"):
            passes = not any(matches(each, shape) for each in inner)
        elif name == "metadata" and isinstance(value, dict):
            passes = matches(value, shape.get("metadata") or {})
        else:
            stored = shape[name] if name in shape else (shape.get("metadata") or {}).get(name)
            passes = _compare(stored, value)
        if not passes:
            return False
    return True


def _compare(stored: Any, value: Any) -> bool:
    if value == "*":
        return stored is not None
    if not isinstance(value, dict):
        return value in stored if isinstance(stored, list) else bool(stored == value)
    try:
        return all(_COMPARE[name](stored, other) for name, other in value.items())
    except (KeyError, TypeError):
        words = ", ".join(_COMPARE)
        raise InvalidInputError(f"A filter compares by {words}.", field="filters") from None


def _messages_in(given: Json) -> list[tuple[str, str]]:
    messages = given.get("messages")
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if isinstance(messages, dict):
        messages = [messages]
    if not isinstance(messages, list) or not messages:
        raise InvalidInputError("messages must be a list of messages.", field="messages")
    found = []
    for each in messages:
        content = each.get("content") if isinstance(each, dict) else None
        if isinstance(content, list):
            texts = [part.get("text", "") for part in content if isinstance(part, dict)]
            content = "\n".join(text for text in texts if isinstance(text, str))
        role = each.get("role", "user") if isinstance(each, dict) else None
        if not isinstance(content, str) or not isinstance(role, str):
            raise InvalidInputError("A message has a role and a content.", field="messages")
        found.append((role, content))
    return found


def _infers(given: Json) -> bool:
    """Return True if statements are looked for: an agent's words are then not taken as facts."""
    return given.get("infer") is not False


def _object_in(given: Json, name: str) -> Json:
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInputError(f"{name} must be an object.", field=name)
    return value


def _whole_number(given: Json, name: str, default: int) -> int:
    value = given.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_RESULTS:
        raise InvalidInputError(f"{name} is a number from 1 to {_MOST_RESULTS}.", field=name)
    return value


def _memory(memory: Memory, memory_id: Any) -> TypedMemory:
    found = memory.memories.get(str(memory_id))
    if not found.is_active:
        raise NotFoundError(f"Memory {found.short_id} was deleted.")
    return found


def _tagged(memory: Memory, tags: list[str]) -> Iterator[TypedMemory]:
    """Yield the memories that have all of some tags; all that have any owner without one."""
    offset: int | None = 0
    filters: Json = {"tag": tags[0]} if tags else {}
    while offset is not None:
        page = memory.memories.list(limit=_PAGE, offset=offset, **filters)
        offset = page.next_offset
        for each in page:
            if set(tags) <= set(each.tags) and (tags or any(map(_is_owner, each.tags))):
                yield each


def _owners(memory: Memory) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in _tagged(memory, []):
        for tag in filter(_is_owner, each.tags):
            counts[tag] = counts.get(tag, 0) + 1
    return counts


def _forget(memory: Memory, found: TypedMemory, tags: Iterable[str]) -> int:
    """Forget a memory; if others stated it too, it stays theirs."""
    left = [tag for tag in found.tags if tag not in set(tags)]
    kinds = {tag.partition(":")[0] for tag in tags}
    if tags and any(_is_owner(tag) and tag.partition(":")[0] in kinds for tag in left):
        memory.memories.update(found.id, tags=left, by="agent")
    else:
        memory.memories.forget(found.id, "deleted by a client of mem0", by="agent")
    return 1


def _batch(given: Json) -> list[Json]:
    rows = given.get("memories")
    if not isinstance(rows, list) or not all(
        isinstance(each, dict) and isinstance(each.get("memory_id"), str) for each in rows
    ):
        raise InvalidInputError("memories is a list of objects with memory_id.", field="memories")
    return rows


def _event(found: TypedMemory, event: MemoryEvent) -> Json:
    before, after = event.before.get("content"), event.after.get("content")
    return {
        "id": event.id,
        "memory_id": found.id,
        "old_memory": before,
        "new_memory": after or (found.content if event.kind == "created" else None),
        "event": _EVENTS.get(event.kind, "UPDATE"),
        "created_at": _moment(found.created_at),
        "updated_at": _moment(event.at),
        "is_deleted": _EVENTS.get(event.kind) == "DELETE",
    }


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).isoformat()
