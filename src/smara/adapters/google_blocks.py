"""Content in the shape of Google's interface: parts without a type, known by the one field they
have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smara.messages.models import Part

_FIELDS = (
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
)


def is_google_block(block: Mapping[str, Any]) -> bool:
    """Whether a block is one of these parts."""
    return "type" not in block and (
        block.get("thought") is True or any(name in block for name in _FIELDS)
    )


def google_parts(block: Mapping[str, Any]) -> tuple[Part, ...]:
    """The parts of one such block; the bytes of files never come through."""
    if block.get("thought") is True:
        return (Part("reasoning", _text(block, "text")),)
    if isinstance(call := block.get("functionCall"), Mapping):
        return (
            Part(
                "tool_call",
                name=_named(call, "name"),
                call_id=_named(call, "id"),
                arguments=call.get("args"),
            ),
        )
    if isinstance(answer := block.get("functionResponse"), Mapping):
        text, is_error = response_text(answer.get("response"))
        name, call_id = _named(answer, "name"), _named(answer, "id")
        return (Part("tool_result", text, name=name, call_id=call_id, is_error=is_error),)
    for name in ("inlineData", "fileData"):
        if isinstance(file := block.get(name), Mapping):
            return (_file(file),)
    code = block.get("executableCode") or block.get("codeExecutionResult")
    return (
        (Part("text", _text(code, "code") or _text(code, "output")),)
        if isinstance(code, Mapping)
        else ()
    )


def response_text(response: Any) -> tuple[str, bool]:
    """The words of a function's response, and whether they are an error."""
    if isinstance(response, str):
        return response, False
    if not isinstance(response, Mapping):
        return (
            "" if response is None else json.dumps(response, ensure_ascii=False, default=str)
        ), False
    if response.get("error") not in (None, ""):
        error = response["error"]
        return (
            error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str)
        ), True
    for name in ("output", "result", "content"):
        if isinstance(response.get(name), str):
            return response[name], False
    return (json.dumps(dict(response), ensure_ascii=False, default=str) if response else ""), False


def _file(file: Mapping[str, Any]) -> Part:
    media_type, uri, data = _named(file, "mimeType"), _named(file, "fileUri"), _text(file, "data")
    size = max(0, len(data) * 3 // 4 - data[-2:].count("=")) if data else None
    is_image = (media_type or "").startswith("image/")
    return Part("image" if is_image else "file", media_type=media_type, uri=uri, size_bytes=size)


def _text(block: Mapping[str, Any], name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""


def _named(block: Mapping[str, Any], name: str) -> str | None:
    return _text(block, name) or None
