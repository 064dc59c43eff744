"""Rows of a Mastra store as threads, messages, pages and notes of ours.

Columns have had two spellings (``createdAt``, ``created_at``), and times three forms. A column that
we do not know is left alone; one that is missing is taken as empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from smara.adapters.decoding import load_json, mapping_in, milliseconds, text_in, without_surrogates
from smara.adapters.mastra.content import Content, content_of
from smara.adapters.mastra.source import Row, Source
from smara.adapters.records import bounded_id
from smara.messages.models import NewMessage, NewThread, Role

_ROLES: Mapping[str, Role] = {
    "user": "user", "assistant": "assistant", "system": "system", "tool": "tool", "data": "system",
}  # fmt: skip
_LONGEST_TITLE = 500
_WIDEST_ZONES_MS = 26 * 3_600_000


class ThreadRow(NamedTuple):
    """A thread, and the page that is held in mind in it."""

    thread: NewThread
    page: str | None


class MessageRow(NamedTuple):
    """A message with the name it has there; without one, why it is none."""

    name: str
    thread_id: str
    resource_id: str | None
    message: NewMessage | None
    why_not: str | None = None


class Notes(NamedTuple):
    """What was observed of a thread or a resource: one generation of it."""

    name: str
    thread: NewThread
    texts: tuple[tuple[str, str], ...]
    """Pairs of what it is (``observations``, ``buffered``, ``reflection``) and its text."""
    created_at: int | None
    metadata: Mapping[str, Any]


class Rows:
    """Reads the rows of one source."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def thread(self, row: Row) -> ThreadRow | None:
        thread_id = self._text(row, "id")
        if not thread_id:
            return None
        metadata = dict(mapping_in(self._json(row, "metadata")))
        page = metadata.pop("workingMemory", None)
        observed = mapping_in(mapping_in(metadata.get("mastra")).get("om")) or metadata
        kept: dict[str, Any] = {"importedFrom": "mastra"}
        kept.update(
            {
                key: observed[key]
                for key in ("currentTask", "suggestedResponse")
                if text_in(observed.get(key))
            }
        )
        if metadata:
            kept["mastra"] = metadata
        title = " ".join(self._text(row, "title").split())[:_LONGEST_TITLE] or None
        thread = NewThread(
            bounded_id(thread_id),
            _id(self._text(row, "resourceId", "resource_id")),
            title,
            metadata=kept,
            created_at=_time(row, "createdAt", "created_at"),
        )
        return ThreadRow(thread, _page(page))

    def message(self, row: Row, number: int) -> MessageRow:
        name = self._text(row, "id") or f"row {number}"
        thread_id = self._text(row, "thread_id", "threadId")
        resource_id = _id(self._text(row, "resourceId", "resource_id"))
        if not thread_id:
            return MessageRow(
                name, "", resource_id, message=None, why_not="it belongs to no thread"
            )
        content = content_of(self._value(row, "content"))
        if not content.parts:
            return MessageRow(
                name,
                thread_id,
                resource_id,
                message=None,
                why_not="it holds no words, only marks of observing",
            )
        given = self._text(row, "role")
        role = _ROLES.get(given, "system")
        if role == "user" and all(part.type == "tool_result" for part in content.parts):
            role = "tool"
        message = NewMessage(
            role,
            content.parts,
            bounded_id(name),
            created_at=_time(row, "createdAt", "created_at"),
            metadata=self._about(row, content, given),
        )
        return MessageRow(name, bounded_id(thread_id), resource_id, message=message)

    def page(self, row: Row) -> tuple[str, str] | None:
        """A resource and what is held in mind for it."""
        resource_id, page = (
            self._text(row, "id"),
            _page(self._value(row, "workingMemory", "working_memory")),
        )
        return (bounded_id(resource_id), page) if resource_id and page else None

    def notes(self, row: Row) -> Notes | None:
        name, scope = self._text(row, "id"), self._text(row, "scope")
        thread_id, resource_id = (
            self._text(row, "threadId", "thread_id"),
            self._text(row, "resourceId", "resource_id"),
        )
        key = (
            self._text(row, "lookupKey", "lookup_key")
            or f"{scope or 'thread'}:{thread_id or resource_id}"
        )
        texts = tuple(self._noted(row))
        if not texts or not (thread_id or resource_id):
            return None
        thread = NewThread(
            bounded_id(f"mastra-observations:{key}"),
            _id(resource_id),
            f"Observations from Mastra ({key})"[:200],
            metadata={"importedFrom": "mastra", "scope": scope},
            kind="compaction",
            parent_id=_id(thread_id) if thread_id else None,
            created_at=_time(row, "createdAt", "created_at"),
        )
        at = _time(row, "lastObservedAt", "last_observed_at") or _time(
            row, "updatedAt", "updated_at"
        )
        told = {
            "originType": self._text(row, "originType"),
            "generation": row.get("generationCount"),
        }
        kept = {name: value for name, value in told.items() if value not in (None, "")}
        return Notes(name or key, thread, texts, created_at=at, metadata=kept)

    def _noted(self, row: Row) -> Iterable[tuple[str, str]]:
        active = _lines(self._value(row, "activeObservations", "active_observations"))
        if active:
            yield (
                ("reflection" if self._text(row, "originType") == "reflection" else "observations"),
                active,
            )
        chunks = self._json(row, "bufferedObservationChunks", "buffered_observation_chunks")
        for chunk in chunks if isinstance(chunks, list) else ():
            fields = mapping_in(chunk)
            text = _lines(fields.get("observations") or fields.get("content"))
            if text:
                yield "buffered", text
        reflection = _lines(self._value(row, "bufferedReflection", "buffered_reflection"))
        if reflection:
            yield "buffered reflection", reflection

    def _about(self, row: Row, content: Content, given_role: str) -> dict[str, Any]:
        """What is kept beside the words: how large it was there, so that growing is noticed, and
        more.
        """
        about: dict[str, Any] = {
            "parts": len(content.parts),
            "characters": sum(len(p.text) for p in content.parts),
        }
        version = self._text(row, "type")
        if version:
            about["type"] = version
        if given_role not in _ROLES:
            about["role"] = given_role
        more = {
            "partTimes": list(content.times),
            "skipped": content.skipped,
            "metadata": content.metadata,
        }
        about.update({name: value for name, value in more.items() if value})
        found: dict[str, Any] = {"mastra": about}
        if content.repairs:
            found["repairs"] = list(content.repairs)
        return found

    def _value(self, row: Row, *names: str) -> Any:
        value = next((row[name] for name in names if row.get(name) is not None), None)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._decoded(bytes(value))
        return without_surrogates(value) if isinstance(value, (str, dict, list)) else value

    def _decoded(self, value: bytes) -> str:
        try:
            text = value.decode("utf-8")
            if text[:1] in ("{", "[", '"') or not text or text.isprintable():
                return text
        except UnicodeDecodeError:
            pass
        # Newer versions keep JSON in SQLite's own binary form.
        return self._source.json_text(value) or value.decode("utf-8", "replace")

    def _text(self, row: Row, *names: str) -> str:
        value = self._value(row, *names)
        return "" if value is None or isinstance(value, (dict, list)) else str(value)

    def _json(self, row: Row, *names: str) -> Any:
        value = self._value(row, *names)
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                return load_json(value)[0]
            except (ValueError, RecursionError):
                return None
        return value


def _id(value: str) -> str | None:
    return bounded_id(value) if value else None


def _page(value: Any) -> str | None:
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, indent=2)
    return value if isinstance(value, str) and value.strip() else None


def _lines(value: Any) -> str:
    """Observations as lines; some versions kept a list of them as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = load_json(value)[0]
        except (ValueError, RecursionError):
            return str(value).strip()
    if isinstance(value, list):
        texts = (
            each if isinstance(each, str) else text_in(mapping_in(each).get("content"))
            for each in value
        )
        return "\n".join(text for text in texts if text).strip()
    return value.strip() if isinstance(value, str) else ""


def _time(row: Row, *names: str) -> int | None:
    """A time in milliseconds.

    PostgreSQL has it twice. The column that knows its zone is right, unless it was added later and
    got the time of that day: then the two are further apart than any zone is from another.
    """
    zoned = _milliseconds(row.get(f"{names[0]}Z"))
    plain = next((at for name in names if (at := _milliseconds(row.get(name))) is not None), None)
    if zoned is None or (plain is not None and abs(zoned - plain) > _WIDEST_ZONES_MS):
        return plain
    return zoned


def _milliseconds(value: Any) -> int | None:
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return milliseconds(round(moment.timestamp() * 1000))
    return milliseconds(value)
