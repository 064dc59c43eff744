"""Read what is saved from a Zep or Graphiti graph as JSON.

There is no one export: people save what the API lists. So a document with sections (``episodes``,
``nodes``, ``edges``, ``threads`` …), a list, and one object a line are read, and each object is
told by its fields. A fact that Zep holds for invalid or expired has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from smara.core.startup.regex import re, regex
from smara.privacy.foreign.records import (
    Candidate,
    ForeignFact,
    ForeignFormat,
    ForeignMessage,
    ForeignRecord,
    Malformed,
    Unread,
    objects_of,
    read_document,
    role_of,
    text_of,
    texts_of,
    time_of,
)

_SECTIONS = (
    "episodes", "episodic_nodes", "messages", "threads", "sessions", "nodes", "entity_nodes",
    "entities", "edges", "entity_edges", "facts",
)  # fmt: skip
_SPEAKER = regex(r"(?P<role>user|human|assistant|ai|system|tool)\b[^:\n]{0,60}:\s*", re.I)
_OWNERS = ("user_id", "graph_id", "group_id")


def _recognizes(candidate: Candidate) -> bool:
    keys = candidate.keys
    has_uuid = "uuid" in keys or "uuid_" in keys
    is_edge = "fact" in keys
    is_node = {"summary", "labels"} <= keys
    is_episode = "content" in keys and bool(keys & {"source_description", "role_type"})
    return has_uuid and (is_edge or is_node or is_episode)


def _read(path: str) -> Iterator[ForeignRecord]:
    document = read_document(path)
    owner: Mapping[str, Any] = {}
    if isinstance(document, dict) and not document.keys().isdisjoint(_SECTIONS):
        owner = {name: document[name] for name in (*_OWNERS, "thread_id") if name in document}
        sections = [(name, document[name]) for name in _SECTIONS if name in document]
    else:
        sections = [("record", document if isinstance(document, list) else [document])]
    records = [
        (place, {**owner, **record})
        for name, values in sections
        for place, record in objects_of(values, name)
    ]
    for place, record in records:
        if "messages" in record:
            shared = {
                name: record[name]
                for name in ("thread_id", "session_id", *_OWNERS)
                if name in record
            }
            for where, message in objects_of(record["messages"], f"{place} message"):
                yield _episode({**shared, **message}, where)
        elif "fact" not in record and "content" in record:
            yield _episode(record, place)
    for place, record in records:
        if "fact" in record:
            yield _edge(record, place)
        elif "content" in record or "messages" in record:
            continue
        elif "summary" in record:
            yield _node(record, place)
        else:
            yield Unread("of an unknown shape: neither a fact, an entity nor an episode")


def _id(record: Mapping[str, Any], place: str) -> str:
    return text_of(record, place, "uuid", "uuid_", "message_id", "id")


def _owner(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return who a record belongs to; a graph that has no user is the project's."""
    part = next((str(record[name]) for name in _OWNERS if record.get(name)), "")
    return {"part": part, "is_personal": bool(record.get("user_id")) or not part}


def _edge(record: Mapping[str, Any], place: str) -> ForeignFact:
    name = text_of(record, place, "name", needed=False)
    ends = [
        each
        for each in (time_of(record, place, key) for key in ("invalid_at", "expired_at"))
        if each is not None
    ]
    return ForeignFact(
        _id(record, place),
        text_of(record, place, "fact"),
        time_of(record, place, "valid_at", "created_at"),
        tags=(name.lower(),) if name else (),
        ended_ms=min(ends, default=None),
        messages=texts_of(record, place, "episodes"),
        **_owner(record),
    )


def _node(record: Mapping[str, Any], place: str) -> ForeignRecord:
    name = text_of(record, place, "name")
    summary = text_of(record, place, "summary", needed=False)
    if not summary:
        return Unread("an entity without a summary")
    labels = [each for each in texts_of(record, place, "labels") if each != "Entity"]
    return ForeignFact(
        _id(record, place),
        summary if summary.lower().startswith(name.lower()) else f"{name}: {summary}",
        time_of(record, place, "created_at"),
        tags=tuple(each.lower() for each in labels),
        **_owner(record),
    )


def _episode(record: Mapping[str, Any], place: str) -> ForeignRecord:
    text = text_of(record, place, "content", needed=False)
    if not text:
        return Unread("an episode without words")
    given = record.get("role_type") or record.get("role")
    source = record.get("source")
    if not isinstance(given, str | None):
        raise Malformed(place, "role should be a text")
    speaker = _SPEAKER.match(text) if source == "message" and given is None else None
    role = role_of(given or (speaker["role"] if speaker else "system"))
    thread = text_of(record, place, "thread_id", "session_id", "group_id", "graph_id", needed=False)
    owner = _owner(record)
    return ForeignMessage(
        _id(record, place),
        thread or "episodes",
        text,
        role,
        time_of(record, place, "valid_at", "created_at"),
        person=owner["part"] if record.get("user_id") else None,
        part=owner["part"],
        kind="" if role != "system" else "episode",
    )


ZEP = ForeignFormat("zep", "Zep or Graphiti", _recognizes, _read)
