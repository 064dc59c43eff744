"""Read the knowledge graph of the MCP memory server.

One entity or relation a line, or the whole graph as one document, as its tool ``read_graph``
answers. The graph has no times: the file's own is the time of what it says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from smara.privacy.foreign.records import (
    Candidate,
    ForeignFact,
    ForeignFormat,
    ForeignRecord,
    Malformed,
    Unread,
    objects_of,
    read_document,
    text_of,
    texts_of,
)


def _recognizes(candidate: Candidate) -> bool:
    keys = candidate.keys
    is_entity = {"name", "entityType", "observations"} <= keys
    return is_entity or {"from", "to", "relationType"} <= keys


def _read(path: str) -> Iterator[ForeignRecord]:
    at = int(os.stat(path).st_mtime * 1000)
    document = read_document(path)
    if isinstance(document, dict) and "type" not in document:
        for place, record in objects_of(document.get("entities"), "entity"):
            yield from _entity(record, place, at)
        for place, record in objects_of(document.get("relations"), "relation"):
            yield _relation(record, place, at)
        return
    lines = document if isinstance(document, list) else [document]
    for place, record in objects_of(lines, "line"):
        kind = record.get("type")
        if kind == "entity":
            yield from _entity(record, place, at)
        elif kind == "relation":
            yield _relation(record, place, at)
        else:
            yield Unread(f"of the unknown type {str(kind)[:40]!r}")


def _entity(record: Mapping[str, Any], place: str, at: int) -> Iterator[ForeignRecord]:
    name = text_of(record, place, "name")
    kind = text_of(record, place, "entityType", needed=False)
    if not isinstance(record.get("observations", []), list):
        raise Malformed(place, "observations should be a list of texts")
    observations = texts_of(record, place, "observations")
    if not observations:
        yield Unread("an entity without observations")
    for text in observations:
        about = f"{name}: {text}"
        yield ForeignFact(f"entity-{about}", about, at, tags=(kind,) if kind else ())


def _relation(record: Mapping[str, Any], place: str, at: int) -> ForeignFact:
    words = [text_of(record, place, name) for name in ("from", "relationType", "to")]
    text = " ".join((words[0], words[1].replace("_", " "), words[2]))
    return ForeignFact(f"relation-{text}", text, at, tags=("relation",))


MCP_MEMORY = ForeignFormat("mcp-memory", "the MCP memory server", _recognizes, _read)
