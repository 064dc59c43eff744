"""Read and write conversations in plain JSON and JSONL.

The JSONL format has one message or thread on each line; docs/guide/import.md describes it.
Reading accepts many names and shapes; `render_line` writes the one canonical form. A JSON
document with a list of messages is read by the same rules.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from smara.adapters.blocks import parts_of, tool_calls_of
from smara.adapters.lines import (
    MAX_LINE_BYTES,
    JsonLine,
    decode,
    elements,
    entry_of,
    head_of,
    is_document,
    list_in,
    mapping_in,
    milliseconds,
    read_lines,
    text_in,
)
from smara.adapters.records import Counted, Identities, Progress, Record, bounded_id, build
from smara.messages.models import ROLES, NewMessage, NewThread, Part, Role, ThreadKind
from smara.shapes import encodable

_THREAD = (
    "thread",
    "thread_id",
    "threadId",
    "conversation_id",
    "conversationId",
    "session_id",
    "sessionId",
)
_ROLE = ("role", "author", "sender")
_CONTENT = ("content", "parts", "text")
_ID = ("id", "client_id", "clientId", "message_id", "messageId", "uuid")
_TIME = ("created_at", "createdAt", "timestamp")
_RESOURCE = ("resource", "resource_id", "resourceId")
_TASK = ("task", "task_id", "taskId")
_PARENT = ("parent", "parent_id", "parentId")
_CALLS = ("tool_calls", "toolCalls")
_CALL_ID = ("tool_call_id", "toolCallId")
_REASONING = ("reasoning", "reasoning_content", "reasoningContent")
_MESSAGE_KEYS = {
    *_THREAD, *_ROLE, *_CONTENT, *_ID, *_TIME, *_RESOURCE, *_TASK, *_CALLS, *_CALL_ID, *_REASONING,
    "type", "title", "metadata",
}  # fmt: skip

_ROLE_NAMES: dict[str, Role] = {
    **{role: role for role in ROLES},
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}

_PART_DEFAULTS = {field.name: field.default for field in fields(Part) if field.name != "type"}
_SUFFIXES = (".gz", ".zst", ".jsonl", ".ndjson", ".json")


def read_jsonl(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Record]:
    """Read a file of our plain format line by line into records.

    No content makes it raise; only a file that cannot be opened does. A message without a
    thread goes to the thread named after the file.
    """
    reader = PlainReader(stem_of(path))
    for entry in map(decode, read_lines(path, progress, max_line_bytes=max_line_bytes)):
        yield entry if isinstance(entry, Counted) else reader.read(entry)


@dataclass(frozen=True, eq=False)
class PlainReader:
    """Turns objects into messages and threads, one record for each."""

    default_thread: str
    _threads: dict[str, NewThread] = field(default_factory=dict, init=False)
    _identities: Identities = field(default_factory=Identities, init=False)

    def read(self, entry: JsonLine) -> Record:
        """Read an object as a message or a thread, or count it."""
        value = entry.value
        if value.get("type") != "thread":
            return self._read_message(entry)
        thread_id, kind = _id_in(_first(value, "id", *_THREAD)), value.get("kind")
        if not thread_id:
            return Counted(entry.line, "thread", 'a thread without an id; give it "id"')
        if kind is not None and kind not in get_args(ThreadKind):
            reason = '"kind" must be conversation, subagent or compaction'
            return Counted(entry.line, "thread", reason)
        thread = self._describe(
            thread_id,
            resource_id=_id_in(_first(value, *_RESOURCE)),
            title=text_in(value.get("title")),
            metadata=value.get("metadata") if isinstance(value.get("metadata"), dict) else None,
            kind=kind,
            parent_id=_id_in(_first(value, *_PARENT)),
            created_at=milliseconds(_first(value, *_TIME)),
        )
        return Counted(entry.line, "thread", "describes a thread", thread=thread)

    def _read_message(self, entry: JsonLine) -> Record:
        value = entry.value
        if isinstance(value.get("message"), dict):  # a message in an envelope
            around = {key: inner for key, inner in value.items() if key != "message"}
            value = {**around, **value["message"]}
        given_role, given_thread = _first(value, *_ROLE), _first(value, *_THREAD)
        role = _ROLE_NAMES.get(text_in(given_role).strip().lower())
        content = None if role is None else _content_in(value, role)
        detail = ""
        if role is None and given_role is not None:
            problem = '"role" must be user, assistant, system or tool'
            if isinstance(given_role, str) and given_role.isalnum() and len(given_role) <= 20:
                detail = given_role
        elif role is None and isinstance(value.get("messages"), list):
            problem = 'many messages in one line; write each of "messages" as its own line'
        elif role is None:
            problem = 'no role; give "role": user, assistant, system or tool'
        elif content is None:
            problem = 'no content; give "content" as text or as a list of parts'
        elif given_thread is not None and not _id_in(given_thread):
            problem = '"thread" must be a text that is not empty'
        else:
            thread_id = _id_in(given_thread) or self.default_thread
            return self._message(entry, value, thread_id, role=role, content=content)
        return Counted(entry.line, "message", problem, detail=detail)

    def _message(
        self,
        entry: JsonLine,
        value: Mapping[str, Any],
        thread_id: str,
        *,
        role: Role,
        content: str | tuple[Part, ...],
    ) -> Record:
        repairs = list(entry.repairs)
        given_id, given_time = _id_in(_first(value, *_ID)), _first(value, *_TIME)
        created_at = milliseconds(given_time)
        if given_time is not None and created_at is None:
            repairs.append(
                '"created_at" is neither milliseconds nor ISO 8601; the time was left out'
            )
        # Fields of the line that have no meaning of their own are metadata, too.
        metadata = {key: inner for key, inner in value.items() if key not in _MESSAGE_KEYS}
        given_metadata = value.get("metadata")
        if given_metadata is None or isinstance(given_metadata, dict):
            metadata.update(given_metadata or {})
        else:
            repairs.append('"metadata" is not an object; it was kept as metadata.value')
            metadata["value"] = given_metadata
        imported = build(
            entry.line,
            self._describe(
                thread_id,
                resource_id=_id_in(_first(value, *_RESOURCE)),
                title=text_in(value.get("title")),
            ),
            role,
            content=content,
            client_id=given_id or self._identities.of_line(thread_id, entry.raw.strip()),
            created_at=created_at,
            metadata=metadata,
            repairs=tuple(repairs),
            task_id=_id_in(_first(value, *_TASK)),
        )
        return self._identities.settle(imported) if given_id else imported

    def _describe(self, thread_id: str, **facts: Any) -> NewThread:
        """Add facts to a thread; empty ones change nothing."""
        thread = self._threads.get(thread_id) or NewThread(thread_id)
        news = {
            name: fact for name, fact in facts.items() if fact and fact != getattr(thread, name)
        }
        self._threads[thread_id] = replace(thread, **news) if news else thread
        return self._threads[thread_id]


def _content_in(value: Mapping[str, Any], role: Role) -> str | tuple[Part, ...] | None:
    """The content as text where it is only that, else as parts; None when there is nothing."""
    content = _first(value, *_CONTENT)
    calls = tool_calls_of(_first(value, *_CALLS))
    reasoning = text_in(_first(value, *_REASONING))
    call_id = text_in(_first(value, *_CALL_ID)) or None
    if role == "tool" and call_id and not isinstance(content, list):
        return parts_of(
            {
                "type": "tool_result",
                "content": content,
                "call_id": call_id,
                "name": value.get("name"),
            }
        )
    if isinstance(content, str) and not calls and not reasoning:
        return content or None
    before = (Part("reasoning", reasoning),) if reasoning else ()
    return (*before, *parts_of(content), *calls) or None


def render_line(thread_id: str, message: NewMessage) -> str:
    """A message as one line of the plain format, without the newline."""
    content: Any = message.content
    if not isinstance(content, str):
        content = [
            {
                "type": part.type,
                **{
                    name: value
                    for name, default in _PART_DEFAULTS.items()
                    if (value := getattr(part, name)) != default
                },
            }
            for part in content
        ]
    return _dump(
        {
            "thread": thread_id,
            "role": message.role,
            "content": content,
            "id": message.client_id,
            "created_at": message.created_at,
            "task": message.task_id,
            "metadata": dict(message.metadata) or None,
        }
    )


def render_thread(thread: NewThread) -> str:
    """Render a thread as one line, to go before its messages."""
    return _dump(
        {
            "type": "thread",
            "id": thread.id,
            "resource": thread.resource_id,
            "title": thread.title,
            "kind": None if thread.kind == "conversation" else thread.kind,
            "parent": thread.parent_id,
            "created_at": thread.created_at,
            "metadata": dict(thread.metadata) or None,
        }
    )


def _dump(fields: dict[str, Any]) -> str:
    given = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(encodable(given), ensure_ascii=False, separators=(", ", ": "), default=str)


def _first(value: Mapping[str, Any], *keys: str) -> Any:
    return next((value[key] for key in keys if value.get(key) is not None), None)


def _id_in(value: Any) -> str | None:
    """An id given as text or as a whole number; None when it is neither, or empty."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**30 else None
    return bounded_id(value) if isinstance(value, str) and value.strip() else None


def stem_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a file without its endings, as an id."""
    name = Path(path).name
    while name.endswith(_SUFFIXES) and Path(name).stem:
        name = Path(name).stem
    return bounded_id(name)


_LISTS = ("messages", "history", "contents", "items", "conversations", "threads")
_NAMES = (
    "thread",
    "thread_id",
    "threadId",
    "conversation_id",
    "conversationId",
    "session_id",
    "sessionId",
    "id",
    "uuid",
)
_ITEM_KEYS, _ABOUT = ("id", "timestamp", "created_at"), ("title", "resource", "resource_id")
_ROLES_OF_ITEMS = {
    "function_call": "assistant",
    "custom_tool_call": "assistant",
    "reasoning": "assistant",
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
}


def read_conversations(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Record]:
    """The records of a file of conversations: for each message a record.

    No content makes it raise; only a file that cannot be opened does.
    """
    reader = _Conversations(stem_of(path))
    if is_document(head_of(path)):
        yield from reader.read_document(path, progress)
        return
    for entry in map(decode, read_lines(path, progress, max_line_bytes=max_line_bytes)):
        yield from (
            reader.read(entry, f"{reader.stem}-{entry.line}")
            if isinstance(entry, JsonLine)
            else (entry,)
        )


class _Conversations:
    def __init__(self, stem: str) -> None:
        self.stem = stem
        self._reader = PlainReader(stem)
        self._number = 0

    def read_document(
        self, path: str | os.PathLike[str], progress: Progress | None
    ) -> Iterator[Record]:
        document = elements(path, None, progress, broken_keys=_LISTS)
        if isinstance(document.around, dict) and not document.is_broken:
            entry = entry_of(1, document.around)
            yield from self.read(entry, self.stem) if isinstance(entry, JsonLine) else (entry,)
            return
        around = mapping_in(document.around)
        for number, element in enumerate(document.entries, 1):
            if not isinstance(element, JsonLine):
                yield element
            elif _list_in(element.value) is not None and "role" not in element.value:
                yield from self.read(element, f"{self.stem}-{number}")
            else:
                yield self._message(element, _thread_in(around), around)
        if not document.entries:
            yield Counted(1, "conversation", "a conversation without messages")

    def read(self, entry: JsonLine, thread: str) -> Iterator[Record]:
        """One conversation, or one message where a line holds no more."""
        messages = _list_in(entry.value)
        if messages is None:
            yield self._message(entry, "", {})
            return
        first = mapping_in(messages[0]) if messages else {}
        holds_conversations = "role" not in first and _list_in(first) is not None
        name = _thread_in(entry.value) or thread
        for number, each in enumerate(messages, 1):
            inner = entry_of(entry.line, each, () if holds_conversations else entry.repairs)
            if not isinstance(inner, JsonLine):
                yield inner
            elif holds_conversations:
                yield from self.read(inner, f"{thread}-{number}")
            else:
                yield self._message(inner, name, entry.value)
        if not messages:
            yield Counted(entry.line, "conversation", "a conversation without messages")

    def _message(self, entry: JsonLine, thread: str, around: Mapping[str, Any]) -> Record:
        self._number += 1
        value = entry.value
        item = text_in(value.get("type"))
        if "role" not in value and item in _ROLES_OF_ITEMS:
            value = {
                "role": _ROLES_OF_ITEMS[item],
                "content": _content_of_item(item, value),
                **{key: value[key] for key in _ITEM_KEYS if value.get(key) is not None},
            }
        blocks = [mapping_in(each) for each in list_in(value.get("content", value.get("parts")))]
        are_answers = all(
            block.get("type") == "tool_result" or "functionResponse" in block for block in blocks
        )
        if value.get("role") == "user" and blocks and are_answers:
            # Those interfaces send what a tool gave in the user's place.
            value = {**value, "role": "tool"}
        if thread:
            about = {key: around[key] for key in _ABOUT if text_in(around.get(key))}
            value = {**about, **value, "thread": bounded_id(thread)}
        return self._reader.read(JsonLine(self._number, entry.raw, value, repairs=entry.repairs))


def _thread_in(value: Mapping[str, Any]) -> str:
    names = (
        str(name)[:40]
        if isinstance(name, int) and not isinstance(name, bool)
        else text_in(name).strip()
        for name in map(value.get, _NAMES)
    )
    return next(filter(None, names), "")


def _content_of_item(item: str, value: Mapping[str, Any]) -> Any:
    """An item of OpenAI's interface as the content of a message."""
    if item == "reasoning":
        return [
            {"type": "reasoning", "text": text_in(mapping_in(each).get("text"))}
            for each in (*list_in(value.get("summary")), *list_in(value.get("content")))
        ]
    if item == "custom_tool_call":
        return [{**value, "type": "tool_call", "arguments": {"input": value.get("input")}}]
    return (
        [{**value, "type": "function_call_output"}]
        if item == "custom_tool_call_output"
        else [value]
    )


def _list_in(value: Mapping[str, Any]) -> list[Any] | None:
    return next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
