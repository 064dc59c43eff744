"""Read LangChain's messages as ours, with tool calls and results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from smara.messages.models import NewMessage, Part, PartType, Role

_ROLES: tuple[tuple[type[BaseMessage], Role], ...] = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (ToolMessage, "tool"),
)
_REASONING = ("reasoning", "thinking")
_IMAGES = ("image", "image_url", "input_image")
_CALLS = ("tool_use", "tool_call", "server_tool_call", "function_call")


def new_messages(messages: Iterable[Any]) -> Iterator[NewMessage]:
    """Yield what people, agents and tools said.

    Instructions of the program (system messages) are said by no one, and are left out. A message
    without an id is named by its place and its words.
    """
    for number, message in enumerate(messages):
        role = next((role for kind, role in _ROLES if isinstance(message, kind)), None)
        if role is None:
            continue
        parts = [*_parts(message)]
        if parts:
            client_id = message.id or f"{number}:{_digest(parts)}"
            yield NewMessage(role, parts, client_id=client_id)


def _parts(message: BaseMessage) -> Iterator[Part]:
    if isinstance(message, ToolMessage):
        text = "\n".join(part.text for part in _content(message.content) if part.text)
        yield Part("tool_result", text, name=message.name, call_id=message.tool_call_id)
        return
    yield from _content(message.content)
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            yield Part("tool_call", name=call["name"], call_id=call["id"], arguments=call["args"])


def _content(content: Any) -> Iterator[Part]:
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind in _CALLS or kind is None:
            continue  # calls come again as such
        part: PartType = "file"
        if kind in _REASONING:
            part = "reasoning"
        elif kind in _IMAGES:
            part = "image"
        elif isinstance(block.get("text"), str):
            part = "text"
        words = next(
            (block[name] for name in ("text", *_REASONING) if isinstance(block.get(name), str)), ""
        )
        if words or part in ("image", "file"):
            yield Part(part, words)


def _digest(parts: Iterable[Part]) -> str:
    return hashlib.sha256(repr(list(parts)).encode("utf-8", "replace")).hexdigest()[:16]
