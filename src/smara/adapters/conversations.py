"""Conversations in one piece: JSON with a list of messages, or one such object a line.

Understood are a bare list of messages, an object with its messages (``messages``, ``history``,
``contents``, ``items``), and a list of such objects. Each message is read as a line of the
plain format would be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from smara.adapters.decoding import Entry, decode, list_in, mapping_in, text_in
from smara.adapters.documents import elements, entry_of, is_document
from smara.adapters.jsonl import PlainReader, stem_of
from smara.adapters.reading import MAX_LINE_BYTES, read_lines
from smara.adapters.records import Counted, Progress, Record, bounded_id

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
    if is_document(path):
        yield from reader.read_document(path, progress)
        return
    for line in read_lines(path, progress, max_line_bytes=max_line_bytes):
        entry = decode(line)
        yield from (
            reader.read(entry, f"{reader.stem}-{line.number}")
            if isinstance(entry, Entry)
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
            yield from self.read(entry, self.stem) if isinstance(entry, Entry) else (entry,)
            return
        before = mapping_in(document.around)
        thread = _thread_in(before)
        for number, element in enumerate(document.entries, 1):
            if not isinstance(element, Entry):
                yield element
            elif _list_in(element.value) is not None and "role" not in element.value:
                yield from self.read(element, f"{self.stem}-{number}")
            else:
                yield self._message(element, bounded_id(thread) if thread else None, _about(before))
        if not document.entries:
            yield Counted(1, "conversation", "a conversation without messages")

    def read(self, entry: Entry, thread: str) -> Iterator[Record]:
        """One conversation, or one message where a line holds no more."""
        found = _list_in(entry.value)
        if found is None:
            yield self._message(entry, None, {})
            return
        if _holds_conversations(found):
            for number, each in enumerate(found, 1):
                inner = entry_of(entry.line, each)
                yield from (
                    self.read(inner, f"{thread}-{number}") if isinstance(inner, Entry) else (inner,)
                )
            return
        named, about = _thread_in(entry.value) or thread, _about(entry.value)
        for each in found:
            inner = entry_of(entry.line, each, entry.repairs)
            yield (
                self._message(inner, bounded_id(named), about)
                if isinstance(inner, Entry)
                else inner
            )
        if not found:
            yield Counted(entry.line, "conversation", "a conversation without messages")

    def _message(self, entry: Entry, thread: str | None, about: Mapping[str, Any]) -> Record:
        self._number += 1
        value = entry.value
        item = text_in(value.get("type"))
        if "role" not in value and item in _ROLES_OF_ITEMS:
            value = {
                "role": _ROLES_OF_ITEMS[item],
                "content": _content_of_item(item, value),
                **_kept(value),
            }
        if value.get("role") == "user" and _is_answer(value.get("content", value.get("parts"))):
            value = {
                **value,
                "role": "tool",
            }  # those interfaces send what a tool gave in the user's place
        if thread is not None:
            value = {**about, **value, "thread": thread}
        return self._reader.read(Entry(self._number, entry.raw, value, repairs=entry.repairs))


def _thread_in(value: Mapping[str, Any]) -> str:
    return next((name for key in _NAMES if (name := _name(value.get(key)))), "")


def _about(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value[key] for key in ("title", "resource", "resource_id") if text_in(value.get(key))
    }


def _is_answer(content: Any) -> bool:
    blocks = [mapping_in(block) for block in list_in(content)]
    return bool(blocks) and all(
        block.get("type") == "tool_result" or "functionResponse" in block for block in blocks
    )


def _content_of_item(item: str, value: Mapping[str, Any]) -> Any:
    """An item of OpenAI's interface as the content of a message."""
    if item == "reasoning":
        texts = (*list_in(value.get("summary")), *list_in(value.get("content")))
        return [
            {"type": "reasoning", "text": text_in(mapping_in(each).get("text"))} for each in texts
        ]
    if item == "custom_tool_call":
        return [{**value, "type": "tool_call", "arguments": {"input": value.get("input")}}]
    return (
        [{**value, "type": "function_call_output"}]
        if item == "custom_tool_call_output"
        else [value]
    )


def _kept(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: item[key] for key in ("id", "timestamp", "created_at") if item.get(key) is not None
    }


def _list_in(value: Mapping[str, Any]) -> list[Any] | None:
    return next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)


def _holds_conversations(found: list[Any]) -> bool:
    first = mapping_in(found[0]) if found else {}
    return "role" not in first and _list_in(first) is not None


def _name(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:40]
    return text_in(value).strip()
