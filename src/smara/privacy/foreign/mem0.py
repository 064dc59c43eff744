"""Read memories of mem0: its lists, and its history.

A list is ``{"results": [...]}``, a bare list, one memory a line, or the Markdown that its plugin
for agents writes. The history (``history.db``) has every version of a memory; older versions and
deleted ones have ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import apsw

from smara.core.startup.regex import re, regex
from smara.privacy.foreign.records import (
    Candidate,
    ForeignFact,
    ForeignFormat,
    ForeignMessage,
    ForeignRecord,
    Malformed,
    Unread,
    database,
    objects_of,
    read_document,
    read_text,
    role_of,
    tables_of,
    text_of,
    texts_of,
    time_of,
)

_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
_HISTORY = frozenset({"memory_id", "old_memory", "new_memory", "event"})
_LONGEST_TAG = 60
_BLOCK = regex(r"^---[ \t]*$", re.MULTILINE)
_FIELD = regex(r"^(?P<name>\w+)[ \t]*:[ \t]*(?P<value>.*\S)[ \t]*$", re.MULTILINE)
_NOTE = regex(r"\s*---[ \t]*\r?\nid:[^\n]*\n(?:\w+:[^\n]*\n)*?categories:")


def _recognizes(candidate: Candidate) -> bool:
    keys = candidate.keys
    is_list = {"id", "memory"} <= keys and bool(keys & {"hash", "categories", *_OWNERS})
    is_history = candidate.tables.get("history", frozenset()) >= _HISTORY
    return is_list or is_history or any(map(_NOTE.match, candidate.notes))


def _read(path: str) -> Iterator[ForeignRecord]:
    if Candidate(path).tables:
        yield from _history(path)
        return
    if any(map(_NOTE.match, Candidate(path).notes)):
        yield from _blocks(path)
        return
    document = read_document(path)
    if isinstance(document, dict) and "memory" in document:
        document = [document]
    if not isinstance(document, dict):
        document = {"results": document}
    if document.get("next"):
        yield Unread("on further pages, which are not in the file")
    for place, record in objects_of(document.get("results", document.get("memories")), "memory"):
        yield _fact(record, place)
    for place, record in objects_of(document.get("relations"), "relation"):
        words = [
            text_of(record, place, *names)
            for names in (("source",), ("relationship", "relation"), ("target", "destination"))
        ]
        text = " ".join(words).replace("_", " ")
        yield ForeignFact(f"relation-{text}", text, tags=("relation",))


def _fact(record: Mapping[str, Any], place: str) -> ForeignFact:
    owner = next((str(record[name]) for name in _OWNERS if record.get(name)), "")
    metadata = record.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Malformed(place, "metadata should be an object")
    marks = [f"{name}:{value}" for name, value in metadata.items() if isinstance(value, str)]
    return ForeignFact(
        text_of(record, place, "id"),
        text_of(record, place, "memory", "data", "text"),
        time_of(record, place, "updated_at", "created_at"),
        tags=(
            *texts_of(record, place, "categories"),
            *(mark for mark in marks if len(mark) <= _LONGEST_TAG),
        ),
        part=owner,
        is_personal=bool(record.get("user_id")) or not owner,
        ended_ms=time_of(record, place, "expiration_date"),
    )


def _blocks(path: str) -> Iterator[ForeignRecord]:
    """Yield the memories of a Markdown file: fields and words, between lines of hyphens."""
    pieces = _BLOCK.split(read_text(path))[1:]
    for number, (head, words) in enumerate(zip(pieces[::2], pieces[1::2], strict=False), 1):
        place = f"memory {number}"
        record: dict[str, Any] = dict(_FIELD.findall(head))
        tags = {name: record.get(name, "").split(",") for name in ("categories", "files")}
        yield ForeignFact(
            text_of(record, place, "id"),
            text_of({"text": words}, place, "text"),
            time_of(record, place, "created_at"),
            tags=texts_of(tags, place, "categories"),
            files=texts_of(tags, place, "files"),
        )


def _history(path: str) -> Iterator[ForeignRecord]:
    with database(path) as connection:
        tables = tables_of(connection)
        if "history" not in tables:
            raise Malformed(path, "it has no table history")
        if "messages" in tables:
            yield from _messages(connection)
        order = "ORDER BY memory_id, created_at, updated_at, rowid"
        versions: list[tuple[str, int | None]] = []
        current, ended = "", False
        rows = connection.execute(
            "SELECT memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted"
            f" FROM history {order}"
        )
        names = ("memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at")
        for number, row in enumerate(rows, 1):
            record, place = dict(zip(names, row, strict=False)), f"history row {number}"
            name = text_of(record, place, "memory_id")
            if name != current:
                yield from _versions(current, versions, ended)
                current, versions, ended = name, [], False
            at = time_of(record, place, "updated_at", "created_at")
            event = text_of(record, place, "event").upper()
            if event == "DELETE" or row[6]:
                versions.append(("", at))
                ended = True
            elif text := text_of(record, place, "new_memory", needed=False):
                versions.append((text, at))
                ended = False
        yield from _versions(current, versions, ended)


def _versions(
    name: str, versions: list[tuple[str, int | None]], ended: bool
) -> Iterator[ForeignRecord]:
    """Yield the versions of one memory: each but the last has ended when the next began."""
    last = len(versions) - (2 if ended else 1)
    for number, (text, at) in enumerate(versions):
        if text:
            until = versions[number + 1][1] if number + 1 < len(versions) else None
            is_over = number < len(versions) - 1
            yield ForeignFact(
                name if number == last else f"{name}-version-{number + 1}",
                text,
                at,
                ended_ms=(until or at or 0) if is_over else None,
            )


def _messages(connection: apsw.Connection) -> Iterator[ForeignRecord]:
    names = ("id", "session_scope", "role", "content", "name", "created_at")
    rows = connection.execute(
        "SELECT id, session_scope, role, content, name, created_at FROM messages"
        " ORDER BY session_scope, created_at, rowid"
    )
    for number, row in enumerate(rows, 1):
        record, place = dict(zip(names, row, strict=True)), f"messages row {number}"
        text = text_of(record, place, "content", needed=False)
        if not text:
            yield Unread("a message without words")
            continue
        yield ForeignMessage(
            text_of(record, place, "id"),
            text_of(record, place, "session_scope", needed=False) or "messages",
            text,
            role_of(record["role"]),
            time_of(record, place, "created_at"),
        )


MEM0 = ForeignFormat("mem0", "mem0", _recognizes, _read)
