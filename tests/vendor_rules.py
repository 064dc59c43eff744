"""What the servers of Anthropic, OpenAI and Google refuse of a conversation with tools.

Written from their documentation and the words of their errors; shares no code with what writes
the conversation. ``refusal(path, body)`` is the reason for which a request is refused, or "".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MOST_MARKS = 4
_BLOCKS = {
    "text": {"type", "text", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
}


def refusal(path: str, body: dict[str, Any]) -> str:
    """The first reason for which a server refuses a request; "" if it takes it."""
    if path.endswith("/messages") or "/messages?" in path:
        reasons = _anthropic(body)
    elif ":generateContent" in path:
        reasons = _google(body)
    elif path.endswith("/responses"):
        reasons = _responses(body)
    else:
        reasons = _openai(body)
    return next(reasons, "")


def _anthropic(body: dict[str, Any]) -> Iterator[str]:
    system = body.get("system")
    if isinstance(system, list) and any(not block.get("text") for block in system):
        yield "system: text content blocks must be non-empty"
    messages = body.get("messages") or []
    if not messages:
        yield "messages: at least one message is required"
        return
    if messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    seen: set[str] = set()
    uses: list[str] = []
    marks = json.dumps(body).count('"cache_control"')
    if marks > _MOST_MARKS:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role not in ("user", "assistant"):
            yield f"messages.{at}: unexpected role {role}"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"messages.{at}: content must not be empty"
        results = [each["tool_use_id"] for each in blocks if each["type"] == "tool_result"]
        heads = [each["type"] for each in blocks[: len(uses)]]
        if uses and (role != "user" or set(uses) - set(results)):
            yield f"messages.{at}: `tool_use` ids were found without `tool_result` blocks after"
        if uses and heads != ["tool_result"] * len(uses):
            yield f"messages.{at}: messages after tool_use must begin with tool_result blocks"
        if set(results) - set(uses) or len(results) != len(set(results)):
            yield f"messages.{at}: unexpected tool_use_id found in tool_result blocks"
        uses = []
        for block in blocks:
            kind = block["type"]
            if kind not in _BLOCKS or set(block) - _BLOCKS[kind]:
                yield f"messages.{at}: extra inputs are not permitted: {block}"
            elif kind == "text" and not block["text"].strip():
                yield f"messages.{at}: text content blocks must contain non-whitespace text"
            elif kind == "tool_use":
                if role != "assistant" or not isinstance(block["input"], dict):
                    yield f"messages.{at}: tool_use is invalid here"
                if not _ANTHROPIC_ID.fullmatch(block["id"]) or not _NAME.fullmatch(block["name"]):
                    yield f"messages.{at}: String should match pattern"
                if block["id"] in seen:
                    yield f"messages.{at}: `tool_use` ids must be unique"
                seen.add(block["id"])
                uses.append(block["id"])
    if uses:
        yield "`tool_use` ids were found without `tool_result` blocks immediately after"
    last = messages[-1]
    if last["role"] == "assistant" and last["content"][-1].get("text", "").rstrip() != last[
        "content"
    ][-1].get("text", ""):
        yield "final assistant content cannot end with trailing whitespace"
    if seen and not body.get("tools"):
        yield "Requests which have `tool_use` blocks in `messages` must define tools."


def _openai(body: dict[str, Any]) -> Iterator[str]:
    waiting: list[str] = []
    seen: set[str] = set()
    if not body.get("messages"):
        yield "[] is too short - 'messages'"
    for at, message in enumerate(body.get("messages") or []):
        role, content = message["role"], message.get("content")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            yield f"Invalid value: {role!r}"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"messages[{at}]: role 'tool' must be a response to a preceding 'tool_calls'"
            else:
                waiting.remove(message["tool_call_id"])
        elif waiting:
            yield f"messages[{at}]: 'tool_calls' must be followed by tool messages: {waiting}"
        calls = message.get("tool_calls")
        if calls == [] or (calls and role != "assistant"):
            yield f"messages[{at}]: [] is too short - 'tool_calls'"
        if not isinstance(content, str) and not (content is None and calls):
            yield f"messages[{at}]: Invalid value for 'content': expected a string, got null."
        for call in calls or ():
            if len(call["id"]) > 40 or not _NAME.fullmatch(call["function"]["name"]):
                yield f"messages[{at}]: string too long or of the wrong pattern"
            if call["id"] in seen:
                yield f"messages[{at}]: Duplicate value for 'tool_call_id'"
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                yield f"messages[{at}]: arguments are no object"
            seen.add(call["id"])
            waiting.append(call["id"])
    if waiting:
        yield f"'tool_calls' must be followed by tool messages: {waiting}"


def _responses(body: dict[str, Any]) -> Iterator[str]:
    waiting: set[str] = set()
    for at, item in enumerate(body.get("input") or []):
        kind = item.get("type", "message")
        if kind == "message":
            if item["role"] not in ("user", "assistant", "system", "developer"):
                yield f"input[{at}]: Invalid value: {item['role']!r}"
            if not isinstance(item["content"], str):
                yield f"input[{at}]: content is no text"
        elif kind == "function_call":
            if len(item["call_id"]) > 64 or not _NAME.fullmatch(item["name"]):
                yield f"input[{at}]: string too long or of the wrong pattern"
            json.loads(item["arguments"])
            waiting.add(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in waiting:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            waiting.discard(item["call_id"])
        else:
            yield f"input[{at}]: Invalid value: {kind!r}"
    if waiting:
        yield f"No tool output found for function call {waiting}."


def _google(body: dict[str, Any]) -> Iterator[str]:
    before: dict[str, Any] | None = None
    if not body.get("contents"):
        yield "contents is not specified"
    for at, content in enumerate(body.get("contents") or []):
        role, parts = content.get("role"), content.get("parts") or []
        if role not in ("user", "model"):
            yield "Please use a valid role: user, model."
        if before is None and role != "user":
            yield "Please ensure that the conversation begins with a user turn."
        if before is not None and before["role"] == role:
            yield "Please ensure that multiturn requests alternate between user and model."
        if not parts or any(part.get("text") == "" for part in parts):
            yield f"contents[{at}].parts: must include at least one parts field"
        calls = [part for part in parts if "functionCall" in part]
        answers = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        expected = [
            part["functionCall"]["name"]
            for part in (before or {}).get("parts", ())
            if "functionCall" in part
        ]
        if sorted(answers) != sorted(expected):
            yield "The number of function response parts must equal that of function call parts."
        if calls and "thoughtSignature" not in calls[0]:
            yield f"Function call is missing a thought_signature in functionCall parts. {at}"
        before = content
    if any("functionCall" in part for part in (before or {}).get("parts", ())):
        yield "Please ensure that function call turn is followed by a function response turn."
