"""Write turns in the shapes of the vendors.

``openai`` and ``openai-responses`` are OpenAI's two interfaces, ``anthropic`` and ``google`` those
of their makers. ``plain`` is text with a role, for models that know no tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from smara.core.validate import one_of
from smara.messages.models import plain
from smara.prompt.compose import ChatBlock, ChatEntry, ChatTurn, compose

Shape = Literal["openai", "openai-responses", "anthropic", "google", "plain"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
OPENING = "<system-reminder>The conversation began before this message.</system-reminder>"
# Google checks the first call of a step for a signature of its own models, but for this word.
_SIGNATURE = b"skip_thought_signature_validator"
_CACHED = {"type": "ephemeral"}


def shaped(
    entries: Sequence[ChatEntry], shape: Shape, system: str = "", is_cached: bool = False
) -> list[dict[str, Any]]:
    """Return messages in a vendor's shape.

    Args:
        entries: The messages in their order.
        shape: The vendor's name.
        system: The system text, for those that take it as the first message.
        is_cached: True to mark for Anthropic how far the prompt stays the same.

    Raises:
        InvalidInputError: There is no such shape.
    """
    messages = _WRITERS[one_of(shape, SHAPES, "shape")](compose(entries))
    if is_cached and shape == "anthropic":
        _mark(messages, entries)
    head = [{"role": "system", "content": system}]
    return [*head, *messages] if system and shape not in ("anthropic", "google") else messages


def requested(
    entries: Sequence[ChatEntry], shape: Shape, system: str, is_cached: bool
) -> dict[str, Any]:
    """Return the arguments of a request by the vendor's names."""
    messages = shaped(entries, shape, is_cached=is_cached)
    if shape == "anthropic":
        block = {
            "type": "text",
            "text": system,
            **({"cache_control": _CACHED} if is_cached else {}),
        }
        return {**({"system": [block]} if system else {}), "messages": messages}
    if shape == "google":
        return {
            "contents": messages,
            **({"config": {"system_instruction": system}} if system else {}),
        }
    if shape == "openai-responses":
        return {**({"instructions": system} if system else {}), "input": messages}
    return {"messages": shaped(entries, shape, system)}


def _texts(blocks: Sequence[ChatBlock]) -> str:
    return "\n\n".join(block.text for block in blocks if block.kind == "text")


def _alternating(turns: Sequence[ChatTurn]) -> list[tuple[str, list[ChatBlock]]]:
    """Return the blocks of user and assistant in turn; the user begins."""
    found: list[tuple[str, list[ChatBlock]]] = []
    for each in turns:
        role = "assistant" if each.role == "assistant" else "user"
        blocks = each.blocks
        if each.role == "system":
            text = f"<system-reminder>{_texts(blocks)}</system-reminder>"
            blocks = [ChatBlock("text", text)]
        if found and found[-1][0] == role:
            found[-1][1].extend(blocks)
        else:
            found.append((role, list(blocks)))
    if found and found[0][0] == "assistant":
        found.insert(0, ("user", [ChatBlock("text", OPENING)]))
    return found


def _anthropic(turns: Sequence[ChatTurn]) -> list[dict[str, Any]]:
    def block_of(block: ChatBlock) -> dict[str, Any]:
        if block.kind == "call":
            return {
                "type": "tool_use",
                "id": block.call_id,
                "name": block.name,
                "input": dict(block.arguments),
            }
        if block.kind == "result":
            failed = {"is_error": True} if block.is_error else {}
            return {
                "type": "tool_result",
                "tool_use_id": block.call_id,
                "content": block.output,
                **failed,
            }
        return {"type": "text", "text": block.text}

    found = [
        {"role": role, "content": [block_of(block) for block in blocks]}
        for role, blocks in _alternating(turns)
    ]
    if found and found[-1]["role"] == "assistant":
        # A reply that is to be continued must not end in a space.
        last: Any = found[-1]["content"][-1]
        last["text"] = last["text"].rstrip()
    return found


def _mark(messages: Sequence[dict[str, Any]], entries: Sequence[ChatEntry]) -> None:
    """Mark the last block that the next request has as well: not the note behind it."""
    blocks = [block for message in messages for block in message["content"]]
    if entries and entries[-1].is_note and blocks:
        blocks.pop()
    if blocks:
        blocks[-1]["cache_control"] = _CACHED


def _google(turns: Sequence[ChatTurn]) -> list[dict[str, Any]]:
    def part_of(block: ChatBlock, is_first: bool) -> dict[str, Any]:
        if block.kind == "call":
            call = {"id": block.call_id, "name": block.name, "args": dict(block.arguments)}
            return {
                "function_call": call,
                **({"thought_signature": _SIGNATURE} if is_first else {}),
            }
        if block.kind == "result":
            response = {"error" if block.is_error else "result": block.output}
            return {
                "function_response": {
                    "id": block.call_id,
                    "name": block.name,
                    "response": response,
                }
            }
        return {"text": block.text}

    found = []
    for role, blocks in _alternating(turns):
        first = next((block for block in blocks if block.kind == "call"), None)
        parts = [part_of(block, block is first) for block in blocks]
        found.append({"role": "model" if role == "assistant" else "user", "parts": parts})
    return found


def _openai(turns: Sequence[ChatTurn]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in turns:
        if each.role == "tool":
            found += [
                {"role": "tool", "tool_call_id": block.call_id, "content": block.output}
                for block in each.blocks
            ]
            continue
        message: dict[str, Any] = {"role": each.role, "content": _texts(each.blocks) or None}
        calls = [
            {
                "id": block.call_id,
                "type": "function",
                "function": {"name": block.name, "arguments": _json(block.arguments)},
            }
            for block in each.blocks
            if block.kind == "call"
        ]
        found.append({**message, "tool_calls": calls} if calls else message)
    return found


def _responses(turns: Sequence[ChatTurn]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in turns:
        for block in each.blocks:
            if block.kind == "text":
                found.append({"role": each.role, "content": block.text})
            elif block.kind == "call":
                found.append(
                    {
                        "type": "function_call",
                        "call_id": block.call_id,
                        "name": block.name,
                        "arguments": _json(block.arguments),
                    }
                )
            else:
                found.append(
                    {
                        "type": "function_call_output",
                        "call_id": block.call_id,
                        "output": block.output,
                    }
                )
    return found


def _plain(turns: Sequence[ChatTurn]) -> list[dict[str, Any]]:
    """A result stands in one message with the command it came from."""
    found: list[dict[str, Any]] = []
    calls: dict[str, ChatBlock] = {}
    for each in turns:
        calls |= {block.call_id: block for block in each.blocks if block.kind == "call"}
        if text := _texts(each.blocks):
            found.append({"role": each.role, "content": text})
        for block in each.blocks:
            if block.kind == "result":
                call = calls[block.call_id]
                shown = "; ".join(
                    f"{name}={plain(value)}" for name, value in call.arguments.items()
                )
                line = f"[tool:{call.name}{' ' + shown if shown else ''}] "
                line += f"{'failed: ' if block.is_error else ''}{block.text}"
                found.append({"role": "assistant", "content": line})
                if block.note:
                    found.append({"role": "user", "content": block.note})
    return found


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, default=str)


_WRITERS: Mapping[Shape, Callable[[Sequence[ChatTurn]], list[dict[str, Any]]]] = {
    "openai": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "google": _google,
    "plain": _plain,
}
