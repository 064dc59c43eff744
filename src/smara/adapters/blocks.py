"""Convert content blocks of any vendor into message parts.

Supported are plain text, our own parts, and the content blocks of the Anthropic, OpenAI
and Google interfaces. Bytes of images and documents are replaced by a placeholder with
their type and size. A block of unknown type keeps its text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smara.adapters.lines import json_in, list_in, mapping_in, text_in
from smara.messages.models import PART_TYPES, Part, PartType, plain

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
        return (Part("reasoning", text_in(block.get("text"))),)
    for key in ("functionCall", "functionResponse"):
        if isinstance(call := block.get(key), Mapping):
            name, call_id = first_text(call, "name") or None, first_text(call, "id") or None
            if key == "functionCall":
                return (Part("tool_call", name=name, call_id=call_id, arguments=call.get("args")),)
            text, is_error = response_text(call.get("response"))
            return (Part("tool_result", text, name=name, call_id=call_id, is_error=is_error),)
    for key in ("inlineData", "fileData"):
        if isinstance(file := block.get(key), Mapping):
            media_type, data = first_text(file, "mimeType"), first_text(file, "data")
            return (
                Part(
                    "image" if media_type.startswith("image/") else "file",
                    media_type=media_type or None,
                    uri=first_text(file, "fileUri") or None,
                    size_bytes=base64_size(data) if data else None,
                ),
            )
    code = block.get("executableCode") or block.get("codeExecutionResult")
    return (Part("text", first_text(code, "code", "output")),) if isinstance(code, Mapping) else ()


def response_text(response: Any) -> tuple[str, bool]:
    """Return the words of a response, and whether they are an error."""
    words, is_error = response, False
    if isinstance(response, Mapping):
        is_error = response.get("error") not in (None, "")
        texts = [response.get(name) for name in ("output", "result", "content")]
        own = next((text for text in texts if isinstance(text, str)), dict(response) or None)
        words = response["error"] if is_error else own
    return "" if words is None else plain(words), is_error


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
    if is_google_block(block):
        return google_parts(block)
    name = text_in(block.get("type"))
    kind = _TYPES.get(name)
    if name == "tool_result" or name.endswith("_tool_result") or name == "function_call_output":
        content = next(
            (block[key] for key in ("text", "content", "output") if block.get(key) is not None),
            None,
        )
        inner = parts_of(content if isinstance(content, (str, list)) else words_of(content))
        words = "\n".join(part.text for part in inner if part.type not in ("image", "file"))
        placeholders = (part for part in inner if part.type in ("image", "file"))
        return (Part("tool_result", words, **_plain_fields(block)), *placeholders)
    if kind == "tool_call" or name == "function_call":
        fields = _plain_fields(block)
        if fields["call_id"] is None:
            fields["call_id"] = _optional(block.get("id"))
        arguments = block.get("arguments", block.get("input"))
        if name == "function_call":  # of OpenAI's interface: the arguments are JSON in a text
            arguments = read_arguments(block.get("arguments"))
        return (Part("tool_call", text_in(block.get("text")), arguments=arguments, **fields),)
    if kind in ("image", "file"):
        return (_placeholder(kind, block),)
    if kind is not None:
        words = first_text(block, "text", "thinking", "refusal", "content")
        return (Part(kind, words, **_plain_fields(block)),)
    return (Part("text", words_of(block) or f"[{name or 'unnamed'} block]"),)


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
    match value:
        case str():
            return "" if value.startswith("data:") else value
        case list():
            return "\n".join(found for found in map(words_of, value) if found)
        case dict():
            return "\n".join(found for key in _WORD_KEYS if (found := words_of(value.get(key))))
        case _:
            return ""


def tool_calls_of(calls: Any) -> tuple[Part, ...]:
    """Return the ``tool_calls`` of a message in OpenAI's shape.

    Arguments given as JSON text are read.
    """
    return tuple(
        Part(
            "tool_call",
            name=_optional(function.get("name")),
            call_id=first_text(call, "id", "call_id") or None,
            arguments=read_arguments(function.get("arguments", function.get("input"))),
        )
        for call in map(mapping_in, list_in(calls))
        if (function := mapping_in(call.get("function")) or call)
    )


def read_arguments(arguments: Any) -> Any:
    """Return the arguments of a call: the object in a JSON text.

    Anything else is returned as it is.
    """
    is_object = isinstance(arguments, str) and arguments.lstrip().startswith("{")
    if not is_object or len(arguments) > 1_000_000:
        return arguments
    return json_in(arguments, otherwise=arguments)


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
