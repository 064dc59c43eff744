"""Pack the parts of a message into text and unpack them.

The text is what search reads; the layout says where each part begins and ends in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from smara.core.validate import one_of
from smara.errors import InvalidInputError
from smara.messages.models import PART_TYPES, Part, Pointer, plain

_BETWEEN = "\n\n"
_EXTRA_FIELDS = ("name", "call_id", "media_type", "uri", "size_bytes")


def parts_of(content: str | Sequence[Part] | Sequence[Mapping[str, Any]]) -> tuple[Part, ...]:
    """Return the parts of a caller's content.

    A text, or a list of parts or of dicts.
    """
    if isinstance(content, str):
        return (Part("text", content),)
    if not isinstance(content, Sequence):
        raise InvalidInputError(
            f"content must be a text or a list of parts, not {type(content).__name__}. Pass a "
            "string."
        )
    found: list[Part] = []
    for given in content:
        part = given if isinstance(given, Part) else _part_from(given)
        one_of(part.type, PART_TYPES, "a part's type")
        if not isinstance(part.text, str):
            raise InvalidInputError(
                f"a part's text must be a string, not {type(part.text).__name__}."
            )
        found.append(part)
    return tuple(found)


def _part_from(fields: object) -> Part:
    if not isinstance(fields, Mapping):
        raise InvalidInputError(f"a part must be a Part or a dict, not {type(fields).__name__}.")
    unknown = set(fields) - set(Part.__slots__)
    if unknown:
        raise InvalidInputError(
            f"Unknown part field {', '.join(sorted(map(str, unknown)))}. Allowed: "
            f"{', '.join(Part.__slots__)}."
        )
    if "type" not in fields:
        raise InvalidInputError(f"a part needs a type, one of {', '.join(PART_TYPES)}.")
    return Part(**fields)


def pack(parts: Sequence[Part]) -> tuple[str, str | None]:
    """Return the text of parts and their layout.

    No layout for one part of plain text.
    """
    if len(parts) == 1 and parts[0] == Part("text", parts[0].text):
        return parts[0].text, None
    try:
        texts = [part.render() for part in parts]
    except RecursionError:
        raise InvalidInputError(
            "A tool call's arguments are nested too deeply. Pass them as JSON text."
        ) from None
    layout = []
    for part, text in zip(parts, texts, strict=True):
        entry: dict[str, Any] = {"t": part.type, "n": len(text)}
        extras = {name: getattr(part, name) for name in _EXTRA_FIELDS}
        entry |= {name: value for name, value in extras.items() if value is not None}
        if part.is_error:
            entry["is_error"] = True
        if part.type == "tool_call":
            entry["arguments"] = _argument_lengths(part.arguments)
            if part.text:
                entry["words"] = len(part.text)
        elif part.type in ("image", "file"):
            entry["caption"] = len(part.text)
        layout.append(entry)
    return _BETWEEN.join(texts), json.dumps(layout, separators=(",", ":"))


def _argument_lengths(arguments: Any) -> Any:
    """For each argument its name, whether it is a text, and how long it is written."""
    if isinstance(arguments, Mapping):
        return [
            [str(key), isinstance(value, str), len(plain(value))]
            for key, value in arguments.items()
        ]
    return None if arguments is None else [isinstance(arguments, str)]


def pointer_in(layout: str | None) -> Pointer | None:
    """Return the pointer that stands in place of a layout, if any."""
    return Pointer(**json.loads(layout)["pointer"]) if layout and layout[0] == "{" else None


def unpack(text: str, layout: str | None) -> tuple[Part, ...]:
    """The parts that were packed."""
    if layout is None:
        return (Part("text", text),)
    found: list[Part] = []
    at = 0
    for entry in json.loads(layout):
        piece = text[at : at + entry["n"]]
        at += entry["n"] + len(_BETWEEN)
        extras = {name: entry[name] for name in _EXTRA_FIELDS if name in entry}
        kind = entry["t"]
        words = piece if kind in ("text", "reasoning", "tool_result") else ""
        if kind in ("image", "file") and entry["caption"]:
            words = piece[-entry["caption"] :]
        if kind == "tool_call":
            if "words" in entry:
                piece, words = piece[: -entry["words"] - 1], piece[-entry["words"] :]
            written = piece.removeprefix(f"[tool: {entry.get('name') or 'tool'}]")[1:]
            extras["arguments"] = _arguments(entry["arguments"], written)
        found.append(Part(kind, words, is_error=entry.get("is_error", False), **extras))
    return tuple(found)


def _arguments(lengths: Any, written: str) -> Any:
    if lengths is None:
        return None
    if lengths and isinstance(lengths[0], bool):
        return written if lengths[0] else json.loads(written)
    found: dict[str, Any] = {}
    at = 0
    for key, is_text, length in lengths:
        at += len(key) + 2
        value = written[at : at + length]
        found[key] = value if is_text else json.loads(value)
        at += length + 1
    return found
