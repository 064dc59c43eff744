"""The content of a message of Mastra, in any of its formats, as parts.

Format 2 holds parts as the AI SDK's user interface has them: a tool's call and its result are one
part there and two here. Version 1 holds a text, or the parts of the AI SDK's core. Markers of
observing, and where a step begins, are bookkeeping: they say nothing and are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from smara.adapters.blocks import base64_size, parts_of, words_of
from smara.adapters.decoding import list_in, load_json, mapping_in, milliseconds, text_in
from smara.messages.models import Part, plain

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
    """What a message holds."""

    parts: tuple[Part, ...]
    times: tuple[int, ...] = ()
    """When its parts were written, where they say so (ms)."""
    skipped: Mapping[str, int] = {}
    """Parts that are bookkeeping, by type."""
    metadata: Mapping[str, Any] = {}
    repairs: tuple[str, ...] = ()


def content_of(value: Any) -> Content:
    """The content of a message as the database has it: JSON text, JSON, or plain text."""
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
    known = {part.call_id for part in parts if part.type == "tool_call"}
    for invocation in list_in(content.get("toolInvocations")):
        # Older messages hold their calls beside the parts; newer ones in both places.
        if mapping_in(invocation).get("toolCallId") not in known:
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
        at = milliseconds(mapping_in(block).get("createdAt"))
        if at is not None:
            times.append(at)
    return Content(tuple(parts), tuple(times), dict(skipped))


def _parts(kind: str, block: Any) -> tuple[Part, ...]:
    fields = mapping_in(block)
    if kind == "tool-invocation":
        return _invocation(mapping_in(fields.get("toolInvocation")) or fields)
    if kind == "dynamic-tool" or (
        kind.startswith("tool-") and "toolCallId" in fields and "state" in fields
    ):
        return _invocation(
            {**fields, "toolName": fields.get("toolName") or kind.removeprefix("tool-")}
        )
    if kind == "tool-call":
        arguments = fields.get("args", fields.get("input"))
        return (Part("tool_call", name=_name(fields), call_id=_call(fields), arguments=arguments),)
    if kind == "tool-result":
        result = fields.get("result", fields.get("output"))
        is_error = fields.get("isError") is True
        return (
            Part(
                "tool_result",
                _words(result),
                name=_name(fields),
                call_id=_call(fields),
                is_error=is_error,
            ),
        )
    if kind in ("reasoning", "redacted-reasoning"):
        return _reasoning(fields)
    if kind in ("file", "image"):
        return (_attachment(fields, "image" if kind == "image" else "file"),)
    if kind in ("source", "source-url", "source-document"):
        return (_source(mapping_in(fields.get("source")) or fields),)
    if kind.startswith("data-"):
        return (Part("text", f"[{kind}] {_words(fields.get('data'))}".strip()),)
    return parts_of([block])


def _invocation(call: Mapping[str, Any]) -> tuple[Part, ...]:
    name, call_id, state = _name(call), _call(call), text_in(call.get("state"))
    arguments = call.get("args", call.get("input", call.get("rawInput")))
    called = Part("tool_call", name=name, call_id=call_id, arguments=arguments)
    if state in _FAILED:
        words = text_in(call.get("errorText")) or _words(call.get("result")) or state
        return called, Part("tool_result", words, name=name, call_id=call_id, is_error=True)
    result = call.get("result", call.get("output"))
    if state in _CALLED or (result is None and state not in ("result", "output-available")):
        return (called,)
    return called, Part("tool_result", _words(result), name=name, call_id=call_id)


def _reasoning(fields: Mapping[str, Any]) -> tuple[Part, ...]:
    words = text_in(fields.get("reasoning")) or text_in(fields.get("text"))
    if not words:
        details = map(mapping_in, list_in(fields.get("details")))
        words = "\n".join(text for each in details if (text := text_in(each.get("text"))))
    return (Part("reasoning", words),) if words.strip() else ()


def _attachment(fields: Mapping[str, Any], kind: Any = "file") -> Part:
    media = next(
        (
            text
            for key in ("mimeType", "mediaType", "contentType")
            if (text := text_in(fields.get(key)))
        ),
        None,
    )
    data = text_in(fields.get("data")) or text_in(fields.get("image")) or text_in(fields.get("url"))
    name = text_in(fields.get("filename")) or text_in(fields.get("name")) or None
    if (media or "").startswith("image/"):
        kind = "image"
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        media = media or head[5:].split(";")[0] or None
    elif "://" in data[:40]:
        return Part(kind, name=name, media_type=media, uri=data)
    return Part(kind, name=name, media_type=media, size_bytes=base64_size(data) if data else None)


def _source(fields: Mapping[str, Any]) -> Part:
    title = text_in(fields.get("title")) or text_in(fields.get("filename")) or None
    media = text_in(fields.get("mediaType")) or None
    return Part("file", name=title, uri=text_in(fields.get("url")) or None, media_type=media)


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


def _name(fields: Mapping[str, Any]) -> str | None:
    return text_in(fields.get("toolName")) or text_in(fields.get("name")) or None


def _call(fields: Mapping[str, Any]) -> str | None:
    return text_in(fields.get("toolCallId")) or text_in(fields.get("callId")) or None
