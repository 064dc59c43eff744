"""Pack the parts of a message into text and unpack them.

The text is what search reads; the layout says where each part begins and ends in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from smara.errors import InvalidInputError
from smara.messages.models import PART_TYPES, Part, plain

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
    return tuple(
        _check_part(part if isinstance(part, Part) else _part_from(part)) for part in content
    )


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


def _check_part(part: Part) -> Part:
    if part.type not in PART_TYPES:
        raise InvalidInputError(
            f"a part's type must be one of {', '.join(PART_TYPES)}; got {part.type!r}."
        )
    if not isinstance(part.text, str):
        raise InvalidInputError(f"a part's text must be a string, not {type(part.text).__name__}.")
    return part


def pack(parts: Sequence[Part]) -> tuple[str, str | None]:
    """Return the text of parts and their layout.

    No layout for one part of plain text.
    """
    if len(parts) == 1 and _is_plain(parts[0]):
        return parts[0].text, None
    try:
        texts = [part.render() for part in parts]
    except RecursionError:
        raise InvalidInputError(
            "A tool call's arguments are nested too deeply. Pass them as JSON text."
        ) from None
    layout = [_entry(part, text) for part, text in zip(parts, texts, strict=True)]
    return _BETWEEN.join(texts), json.dumps(layout, separators=(",", ":"))


def _is_plain(part: Part) -> bool:
    """Whether a part is nothing but words."""
    extras = (part.name, part.call_id, part.media_type, part.uri, part.size_bytes, part.arguments)
    return part.type == "text" and extras == (None,) * 6 and not part.is_error


def _entry(part: Part, text: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"t": part.type, "n": len(text)}
    entry.update(
        {name: value for name in _EXTRA_FIELDS if (value := getattr(part, name)) is not None}
    )
    if part.is_error:
        entry["is_error"] = True
    if part.type == "tool_call":
        entry["arguments"] = _argument_lengths(part.arguments)
        if part.text:
            entry["words"] = len(part.text)
    elif part.type in ("image", "file"):
        entry["caption"] = len(part.text)
    return entry


def _argument_lengths(arguments: Any) -> Any:
    """For each argument its name, whether it is a text, and how long it is written."""
    if isinstance(arguments, Mapping):
        return [
            [str(key), isinstance(value, str), len(plain(value))]
            for key, value in arguments.items()
        ]
    return None if arguments is None else [isinstance(arguments, str)]


def unpack(text: str, layout: str | None) -> tuple[Part, ...]:
    """The parts that were packed."""
    if layout is None:
        return (Part("text", text),)
    found: list[Part] = []
    at = 0
    for entry in json.loads(layout):
        piece = text[at : at + entry["n"]]
        at += entry["n"] + len(_BETWEEN)
        found.append(_part(entry, piece))
    return tuple(found)


def _part(entry: Mapping[str, Any], piece: str) -> Part:
    extras = {name: entry[name] for name in _EXTRA_FIELDS if name in entry}
    kind = entry["t"]
    words = piece if kind in ("text", "reasoning", "tool_result") else ""
    if kind in ("image", "file") and entry["caption"]:
        words = piece[-entry["caption"] :]
    arguments = None
    if kind == "tool_call":
        if "words" in entry:
            piece, words = piece[: -entry["words"] - 1], piece[-entry["words"] :]
        arguments = _arguments(
            entry["arguments"], piece.removeprefix(f"[tool: {entry.get('name') or 'tool'}]")[1:]
        )
    return Part(kind, words, arguments=arguments, is_error=entry.get("is_error", False), **extras)


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
