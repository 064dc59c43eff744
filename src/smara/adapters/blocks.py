"""Convert content blocks of any vendor into message parts.

Supported are plain text, our own parts, and the content blocks of the Anthropic, OpenAI
and Google interfaces. Bytes of images and documents are replaced by a placeholder with
their type and size. A block of unknown type keeps its text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smara.adapters.lines import list_in, load_json, mapping_in, text_in
from smara.messages.models import PART_TYPES, Part, PartType

_FIELDS = (
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
)


def is_google_block(block: Mapping[str, Any]) -> bool:
    """Return True if a block is a part of Google's interface."""
    return "type" not in block and (
        block.get("thought") is True or any(name in block for name in _FIELDS)
    )


def google_parts(block: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return the parts of one Google block.

    The bytes of files never come through.
    """
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


_TYPES: dict[str, PartType] = {
    **{name: name for name in PART_TYPES},
    "input_text": "text",
    "output_text": "text",
    "refusal": "text",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "tool_use": "tool_call",
    "server_tool_use": "tool_call",
    "mcp_tool_use": "tool_call",
    "image_url": "image",
    "input_image": "image",
    "document": "file",
    "input_file": "file",
}

# Where the words of a block of unknown type, or of an unknown record, may stand.
_WORD_KEYS = (
    "text",
    "content",
    "prompt",
    "message",
    "summary",
    "output",
    "stdout",
    "stderr",
    "title",
    "url",
    "error",
)


def parts_of(content: Any) -> tuple[Part, ...]:
    """Return the parts in a message's content, whatever its shape."""
    if content is None or content == "":
        return ()
    blocks = content if isinstance(content, list) else [content]
    return tuple(part for block in blocks for part in _parts_of_block(block))


def _parts_of_block(block: Any) -> tuple[Part, ...]:
    if isinstance(block, str):
        return (Part("text", block),)
    if not isinstance(block, dict):
        return () if block is None else (Part("text", json.dumps(block, ensure_ascii=False)),)
    name = text_in(block.get("type"))
    if is_google_block(block):
        return google_parts(block)
    if name == "tool_result" or name.endswith("_tool_result") or name == "function_call_output":
        fields = _plain_fields(block)
        content = next(
            (block[key] for key in ("text", "content", "output") if block.get(key) is not None),
            None,
        )
        inner = (
            parts_of(content) if isinstance(content, (str, list)) else parts_of(words_of(content))
        )
        words = "\n".join(part.text for part in inner if part.type not in ("image", "file"))
        placeholders = tuple(part for part in inner if part.type in ("image", "file"))
        return (Part("tool_result", words, **fields), *placeholders)
    kind = _TYPES.get(name)
    if (
        name == "function_call"
    ):  # of OpenAI's interface, which gives the arguments as JSON in a text
        return (_tool_call({**block, "arguments": read_arguments(block.get("arguments"))}),)
    if kind == "tool_call":
        return (_tool_call(block),)
    if kind in ("image", "file"):
        return (_placeholder(kind, block),)
    if kind is not None:
        return (_worded(kind, block),)
    return (Part("text", words_of(block) or f"[{name or 'unnamed'} block]"),)


def _worded(kind: PartType, block: Mapping[str, Any]) -> Part:
    words = first_text(block, "text", "thinking", "refusal", "content")
    return Part(kind, words, **_plain_fields(block))


def _tool_call(block: Mapping[str, Any]) -> Part:
    fields = _plain_fields(block)
    if fields["call_id"] is None:
        fields["call_id"] = _optional(block.get("id"))
    arguments = block.get("arguments", block.get("input"))
    return Part("tool_call", text_in(block.get("text")), arguments=arguments, **fields)


def _placeholder(kind: PartType, block: Mapping[str, Any]) -> Part:
    fields = _plain_fields(block)
    source = mapping_in(block.get("source"))
    image_url = block.get("image_url")
    link = (
        text_in(image_url)
        or first_text(mapping_in(image_url), "url")
        or first_text(source, "url", "file_id")
    )
    inlined = text_in(source.get("data")) or first_text(block, "data", "file_data", "base64")
    found = {
        "media_type": first_text(source, "media_type") or first_text(block, "mimeType"),
        "uri": link,
        "name": first_text(block, "title", "filename"),
    }
    fields.update({key: value for key, value in found.items() if value and fields[key] is None})
    words = text_in(block.get("text"))
    if source.get("type") == "text":  # a document given as text: its words are no bytes
        words, inlined = words or inlined, ""
    if (fields["uri"] or "").startswith("data:"):
        head, _, inlined = fields["uri"].partition(",")
        fields["media_type"] = fields["media_type"] or head[5:].split(";")[0] or None
        fields["uri"] = None
    if inlined and fields["size_bytes"] is None:
        fields["size_bytes"] = base64_size(inlined)
    return Part(kind, words, **fields)


def _plain_fields(block: Mapping[str, Any]) -> dict[str, Any]:
    size = block.get("size_bytes", block.get("sizeBytes"))
    is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 0
    return {
        "name": _optional(block.get("name")),
        "call_id": next(
            (block[key] for key in _CALL_ID_KEYS if isinstance(block.get(key), str)), None
        ),
        "is_error": block.get("is_error", block.get("isError")) is True,
        "media_type": _optional(block.get("media_type", block.get("mediaType"))),
        "uri": _optional(block.get("uri")),
        "size_bytes": size if is_size else None,
    }


_CALL_ID_KEYS = ("call_id", "tool_use_id", "tool_call_id", "callId", "toolCallId")


def words_of(value: Any) -> str:
    """Return the readable words in an object of unknown shape.

    They are joined by newlines; binary data is left out.
    """
    if isinstance(value, str):
        return "" if value.startswith("data:") else value
    if isinstance(value, list):
        return "\n".join(found for found in map(words_of, value) if found)
    if isinstance(value, dict):
        return "\n".join(found for key in _WORD_KEYS if (found := words_of(value.get(key))))
    return ""


def tool_calls_of(calls: Any) -> tuple[Part, ...]:
    """Return the ``tool_calls`` of a message in OpenAI's shape.

    Arguments given as JSON text are read.
    """
    parts = []
    for call in list_in(calls):
        function = mapping_in(mapping_in(call).get("function")) or mapping_in(call)
        if not function:
            continue
        arguments = read_arguments(function.get("arguments", function.get("input")))
        call_id = first_text(call, "id", "call_id") or None
        parts.append(
            Part(
                "tool_call",
                name=_optional(function.get("name")),
                call_id=call_id,
                arguments=arguments,
            )
        )
    return tuple(parts)


def read_arguments(arguments: Any) -> Any:
    """Return the arguments of a call: the object in a JSON text.

    Anything else is returned as it is.
    """
    if (
        not isinstance(arguments, str)
        or not arguments.lstrip().startswith("{")
        or len(arguments) > 1_000_000
    ):
        return arguments
    try:
        return load_json(arguments)[0]
    except (ValueError, RecursionError):
        return arguments


def base64_size(encoded: str) -> int:
    """Return the number of bytes in base64 text: "aGk=" → 2."""
    return max(0, len(encoded) * 3 // 4 - encoded[-2:].count("="))


def first_text(block: Mapping[str, Any], *keys: str) -> str:
    """Return the first text under some keys of an object, or ""."""
    return next((found for key in keys if (found := text_in(block.get(key)))), "")


def _optional(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def text_parts(words: str) -> tuple[Part, ...]:
    """Return a text as a message's only part; blank text gives none."""
    return (Part("text", words),) if words.strip() else ()


def usage_of(counts: Any, names: Mapping[str, str]) -> dict[str, int]:
    """Return a host's token counts under our names, without zeros."""
    own = {name: mapping_in(counts).get(key) for key, name in names.items()}
    return {
        name: int(count) for name, count in own.items() if isinstance(count, int | float) and count
    }
