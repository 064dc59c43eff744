"""Convert rows of a Mastra store into threads, messages and notes.

Columns have two spellings (``createdAt``, ``created_at``) and times three forms. Format 2 of
a message holds parts of the AI SDK's user interface: a tool call with its result is one part
there and two here. Version 1 holds a text or the SDK's core parts. Markers are counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from smara.adapters.blocks import base64_size, first_text, parts_of, words_of
from smara.adapters.lines import (
    given,
    json_in,
    list_in,
    load_json,
    mapping_in,
    milliseconds,
    text_in,
)
from smara.adapters.mastra.source import MastraSource, Row
from smara.adapters.records import bounded_id
from smara.core.startup.regex import regex
from smara.messages.models import NewMessage, NewThread, Part, Role, plain
from smara.shapes import encodable

_BOOKKEEPING = ("step-start", "step-finish", "step-end", "start", "finish")
_MARKER = "data-om-"
_CALLED = (
    "call",
    "partial-call",
    "input-available",
    "input-streaming",
    "approval-requested",
    "approval-responded",
)
_FAILED = ("output-error", "output-denied", "error")


class Content(NamedTuple):
    """The content of a message.

    Attributes:
        times: When its parts were written, where they say so (ms).
        skipped: Parts that are bookkeeping, by type.
    """

    parts: tuple[Part, ...]
    times: tuple[int, ...] = ()
    skipped: Mapping[str, int] = {}
    metadata: Mapping[str, Any] = {}
    repairs: tuple[str, ...] = ()


def content_of(value: Any) -> Content:
    """Return a message's content from JSON text, JSON or plain text."""
    repairs: list[str] = []
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            value, repairs = load_json(value)
        except (ValueError, RecursionError):
            return Content(
                (Part("text", value),) if value.strip() else (),
                repairs=("its content is no valid JSON",),
            )
    if isinstance(value, dict) and ("parts" in value or value.get("format") == 2):
        return _format_2(value)._replace(repairs=tuple(repairs))
    if isinstance(value, list):
        return _read(value)._replace(repairs=tuple(repairs))
    if isinstance(value, dict):
        inner = value.get("content")
        found = content_of(inner) if isinstance(inner, (str, list)) else Content(parts_of(value))
        return found._replace(repairs=(*repairs, *found.repairs))
    return Content((Part("text", value),) if isinstance(value, str) and value.strip() else ())


def _format_2(content: Mapping[str, Any]) -> Content:
    found = _read(list_in(content.get("parts")))
    parts = list(found.parts)
    calls = {part.call_id for part in parts if part.type == "tool_call"}
    for invocation in list_in(content.get("toolInvocations")):
        # Older messages hold their calls beside the parts; newer ones in both places.
        if mapping_in(invocation).get("toolCallId") not in calls:
            parts += _invocation(mapping_in(invocation))
    if text_in(content.get("reasoning")).strip() and not any(
        part.type == "reasoning" for part in parts
    ):
        parts.insert(0, Part("reasoning", text_in(content.get("reasoning"))))
    if text_in(content.get("content")).strip() and not any(part.type == "text" for part in parts):
        parts.append(Part("text", text_in(content.get("content"))))
    parts += [
        _attachment(mapping_in(each))
        for each in list_in(content.get("experimental_attachments"))
        if each
    ]
    return found._replace(parts=tuple(parts), metadata=mapping_in(content.get("metadata")))


def _read(blocks: list[Any]) -> Content:
    parts: list[Part] = []
    times: list[int] = []
    skipped: Counter[str] = Counter()
    for block in blocks:
        kind = text_in(mapping_in(block).get("type"))
        if kind in _BOOKKEEPING or kind.startswith(_MARKER):
            skipped[kind] += 1
            continue
        parts += _parts(kind, block)
        if (at := milliseconds(mapping_in(block).get("createdAt"))) is not None:
            times.append(at)
    return Content(tuple(parts), tuple(times), dict(skipped))


def _parts(kind: str, block: Any) -> tuple[Part, ...]:
    fields = mapping_in(block)
    is_call = kind.startswith("tool-") and "toolCallId" in fields and "state" in fields
    match kind:
        case "tool-invocation":
            return _invocation(mapping_in(fields.get("toolInvocation")) or fields)
        case _ if kind == "dynamic-tool" or is_call:
            name = fields.get("toolName") or kind.removeprefix("tool-")
            return _invocation({**fields, "toolName": name})
        case "tool-call":
            return _invocation({**fields, "state": "call"})
        case "tool-result":
            result = _invocation({**fields, "state": "result"})[-1]
            return (replace(result, is_error=fields.get("isError") is True),)
        case "reasoning" | "redacted-reasoning":
            words = first_text(fields, "reasoning", "text") or "\n".join(
                text
                for each in map(mapping_in, list_in(fields.get("details")))
                if (text := text_in(each.get("text")))
            )
            return (Part("reasoning", words),) if words.strip() else ()
        case "file" | "image":
            return (_attachment(fields, kind),)
        case "source" | "source-url" | "source-document":
            source = mapping_in(fields.get("source")) or fields
            return (
                Part(
                    "file",
                    name=first_text(source, "title", "filename") or None,
                    uri=first_text(source, "url") or None,
                    media_type=first_text(source, "mediaType") or None,
                ),
            )
        case _ if kind.startswith("data-"):
            return (Part("text", f"[{kind}] {_words(fields.get('data'))}".strip()),)
        case _:
            return parts_of([block])


def _invocation(call: Mapping[str, Any]) -> tuple[Part, ...]:
    name = first_text(call, "toolName", "name") or None
    call_id = first_text(call, "toolCallId", "callId") or None
    state = text_in(call.get("state"))
    arguments = call.get("args", call.get("input", call.get("rawInput")))
    called = Part("tool_call", name=name, call_id=call_id, arguments=arguments)
    if state in _FAILED:
        words = text_in(call.get("errorText")) or _words(call.get("result")) or state
        return called, Part("tool_result", words, name=name, call_id=call_id, is_error=True)
    result = call.get("result", call.get("output"))
    if state in _CALLED or (result is None and state not in ("result", "output-available")):
        return (called,)
    return called, Part("tool_result", _words(result), name=name, call_id=call_id)


def _attachment(fields: Mapping[str, Any], kind: Any = "file") -> Part:
    media = first_text(fields, "mimeType", "mediaType", "contentType") or None
    data = first_text(fields, "data", "image", "url")
    name = first_text(fields, "filename", "name") or None
    if (media or "").startswith("image/"):
        kind = "image"
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        media = media or head[5:].split(";")[0] or None
    elif "://" in data[:40]:
        return Part(kind, name=name, media_type=media, uri=data)
    return Part(kind, name=name, media_type=media, size_bytes=base64_size(data) if data else None)


def _words(value: Any) -> str:
    """A result as text: the words of blocks, or the value as JSON, so that nothing of it is
    lost.
    """
    if value is None:
        return ""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(each, dict) and "text" in each for each in value)
    ):
        return words_of(value)
    return plain(value)


_ROLES: Mapping[str, Role] = {
    "user": "user", "assistant": "assistant", "system": "system", "tool": "tool", "data": "system",
}  # fmt: skip
_LONGEST_TITLE = 500
_CAPITAL = regex("[A-Z]")
_WIDEST_ZONES_MS = 26 * 3_600_000


class ThreadRow(NamedTuple):
    """A thread, and the page that is held in mind in it."""

    thread: NewThread
    page: str | None


class MessageRow(NamedTuple):
    """A message with its id there, or the reason it is none."""

    name: str
    thread_id: str
    resource_id: str | None
    message: NewMessage | None
    why_not: str | None = None


class ObservationNotes(NamedTuple):
    """One generation of observations of a thread or a resource.

    Attributes:
        texts: Pairs of what it is (``observations``, ``buffered``, ``reflection``) and its text.
    """

    name: str
    thread: NewThread
    texts: tuple[tuple[str, str], ...]
    created_at: int | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Reads the rows of one source.

    A column is named as Mastra's code does (``createdAt``); older tables spell it ``created_at``.
    """

    source: MastraSource

    def thread(self, row: Row) -> ThreadRow | None:
        thread_id = self._text(row, "id")
        if not thread_id:
            return None
        metadata = dict(mapping_in(self._json(row, "metadata")))
        page = metadata.pop("workingMemory", None)
        observed = mapping_in(mapping_in(metadata.get("mastra")).get("om")) or metadata
        tasks = {key: text_in(observed.get(key)) for key in ("currentTask", "suggestedResponse")}
        thread = NewThread(
            bounded_id(thread_id),
            _id(self._text(row, "resourceId")),
            " ".join(self._text(row, "title").split())[:_LONGEST_TITLE] or None,
            metadata=given(importedFrom="mastra", observations=given(**tasks), mastra=metadata),
            created_at=_time(row, "createdAt"),
        )
        return ThreadRow(thread, _page(page))

    def message(self, row: Row, number: int) -> MessageRow:
        name = self._text(row, "id") or f"row {number}"
        thread_id, resource_id = self._text(row, "threadId"), _id(self._text(row, "resourceId"))
        refusal = "" if thread_id else "it belongs to no thread"
        content = content_of(self._value(row, "content"))
        if not content.parts:
            refusal = refusal or "it holds no words, only marks of observing"
        if refusal:
            return MessageRow(name, thread_id, resource_id, message=None, why_not=refusal)
        given_role, version = self._text(row, "role"), self._text(row, "type")
        role = _ROLES.get(given_role, "system")
        if role == "user" and all(part.type == "tool_result" for part in content.parts):
            role = "tool"
        # How large it was there is kept beside the words, so that growing is noticed.
        about: dict[str, Any] = {
            "parts": len(content.parts),
            "characters": sum(len(part.text) for part in content.parts),
            **({} if given_role in _ROLES else {"role": given_role}),
            **given(
                type=version,
                partTimes=list(content.times),
                skipped=content.skipped,
                metadata=content.metadata,
            ),
        }
        message = NewMessage(
            role,
            content.parts,
            bounded_id(name),
            created_at=_time(row, "createdAt"),
            metadata=given(mastra=about, repairs=list(content.repairs)),
        )
        return MessageRow(name, bounded_id(thread_id), resource_id, message=message)

    def page(self, row: Row) -> tuple[str, str] | None:
        """Return a resource and its working memory."""
        resource_id, page = self._text(row, "id"), _page(self._value(row, "workingMemory"))
        return (bounded_id(resource_id), page) if resource_id and page else None

    def notes(self, row: Row) -> ObservationNotes | None:
        """Return the observations of a row; ``None`` without any."""
        name, scope = self._text(row, "id"), self._text(row, "scope")
        thread_id, resource_id = self._text(row, "threadId"), self._text(row, "resourceId")
        key = self._text(row, "lookupKey") or f"{scope or 'thread'}:{thread_id or resource_id}"
        origin = self._text(row, "originType")
        chunks = self._json(row, "bufferedObservationChunks")
        pairs = [
            (
                "reflection" if origin == "reflection" else "observations",
                self._value(row, "activeObservations"),
            ),
            *(
                ("buffered", chunk.get("observations") or chunk.get("content"))
                for chunk in map(mapping_in, list_in(chunks))
            ),
            ("buffered reflection", self._value(row, "bufferedReflection")),
        ]
        texts = tuple((kind, text) for kind, value in pairs if (text := _lines(value)))
        if not texts or not (thread_id or resource_id):
            return None
        thread = NewThread(
            bounded_id(f"mastra-observations:{key}"),
            _id(resource_id),
            f"Observations from Mastra ({key})"[:200],
            metadata={"importedFrom": "mastra", "scope": scope},
            kind="compaction",
            parent_id=_id(thread_id),
            created_at=_time(row, "createdAt"),
        )
        facts = {"originType": origin, "generation": row.get("generationCount")}
        return ObservationNotes(
            name or key,
            thread,
            texts,
            created_at=_time(row, "lastObservedAt") or _time(row, "updatedAt"),
            metadata={name: fact for name, fact in facts.items() if fact not in (None, "")},
        )

    def _value(self, row: Row, name: str) -> Any:
        value = _column(row, name)
        if not isinstance(value, (bytes, bytearray, memoryview)):
            return encodable(value) if isinstance(value, (str, dict, list)) else value
        data = bytes(value)
        try:
            text = data.decode("utf-8")
            if text[:1] in ("{", "[", '"') or not text or text.isprintable():
                return text
        except UnicodeDecodeError:
            pass
        # Newer versions keep JSON in SQLite's own binary form.
        return self.source.json_text(data) or data.decode("utf-8", "replace")

    def _text(self, row: Row, name: str) -> str:
        value = self._value(row, name)
        return "" if value is None or isinstance(value, (dict, list)) else str(value)

    def _json(self, row: Row, name: str) -> Any:
        value = self._value(row, name)
        is_json = isinstance(value, str) and value.lstrip()[:1] in ("{", "[")
        return json_in(value) if is_json else value


def _column(row: Row, name: str) -> Any:
    older = _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)
    return row[name] if row.get(name) is not None else row.get(older)


def _id(value: str) -> str | None:
    return bounded_id(value) if value else None


def _page(value: Any) -> str | None:
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, indent=2)
    return value if isinstance(value, str) and value.strip() else None


def _lines(value: Any) -> str:
    """Observations as lines; some versions kept a list of them as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = json_in(value, otherwise=value)
    if isinstance(value, list):
        texts = (
            each if isinstance(each, str) else text_in(mapping_in(each).get("content"))
            for each in value
        )
        return "\n".join(text for text in texts if text).strip()
    return value.strip() if isinstance(value, str) else ""


def _time(row: Row, name: str) -> int | None:
    """A time in milliseconds.

    PostgreSQL has it twice. The column that knows its zone is right, unless it was added later and
    got the time of that day: then the two are further apart than any zone is from another.
    """
    zoned, unzoned = milliseconds(row.get(f"{name}Z")), milliseconds(_column(row, name))
    if zoned is None or (unzoned is not None and abs(zoned - unzoned) > _WIDEST_ZONES_MS):
        return unzoned
    return zoned
