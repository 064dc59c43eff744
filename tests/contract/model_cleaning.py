"""What the model of a memory takes: messages and parts as they are given, checked and without their
secrets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from smara.errors import InvalidInputError
from smara.messages.models import PART_TYPES, NewMessage, Part
from smara.secrets import redact, redact_value


def new_message(value: NewMessage | Mapping[str, Any]) -> NewMessage:
    if isinstance(value, NewMessage):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            f"A message must be a dict or a NewMessage, not {type(value).__name__}."
        )
    allowed = {known.name for known in fields(NewMessage)}
    if unknown := set(value) - allowed:
        raise InvalidInputError(f"Unknown message field {unknown}. Allowed: {sorted(allowed)}.")
    if not {"role", "content"} <= set(value):
        raise InvalidInputError("A message needs a role and a content.")
    return NewMessage(**value)


def parts_of(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Part("text", content),)
    if not isinstance(content, Sequence):
        raise InvalidInputError(
            f"content must be a text or a list of parts, not {type(content).__name__}."
        )
    return tuple(_part_of(part) for part in content)


def _part_of(part: Any) -> Part:
    given = (
        {known.name: getattr(part, known.name) for known in fields(Part)}
        if isinstance(part, Part)
        else part
    )
    if not isinstance(given, Mapping) or given.get("type") not in PART_TYPES:
        raise InvalidInputError(
            f"a part's type must be one of {', '.join(PART_TYPES)}; got {given!r}."
        )
    if not isinstance(given.get("text", ""), str):
        raise InvalidInputError("a part's text must be a string.")
    return Part(**given)


def clean_part(part: Part) -> Part:
    def clean(text: str | None) -> str | None:
        return text and redact(text).text

    try:
        arguments = json.loads(json.dumps(redact_value(part.arguments)[0], default=str))
    except RecursionError:
        raise InvalidInputError(
            "A tool call's arguments are nested too deeply. Pass them as JSON text."
        ) from None
    return replace(
        part,
        text=clean(part.text),
        arguments=arguments,
        **{name: clean(getattr(part, name)) for name in ("uri", "name", "call_id", "media_type")},
    )


def rendered(parts: Any) -> str:
    return "\n\n".join(part.render() for part in parts)


def clean_title(title: str | None) -> str | None:
    return None if title is None else redact(" ".join(title.split())).text[:500]


def clean_metadata(metadata: Any) -> dict[str, Any]:
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata must be a dict, not {type(metadata).__name__}.")
    try:
        return json.loads(json.dumps(redact_value(dict(metadata))[0], allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"metadata cannot be written as JSON: {error}. Use texts, numbers, lists, dicts."
        ) from None


def checked_time(milliseconds: Any) -> int | None:
    if milliseconds is not None and (
        not isinstance(milliseconds, int) or isinstance(milliseconds, bool)
    ):
        raise InvalidInputError(
            f"created_at must be milliseconds since 1970, a whole number; got {milliseconds!r}."
        )
    if milliseconds is not None and not -62_135_596_800_000 <= milliseconds <= 253_402_300_799_999:
        raise InvalidInputError(
            f"created_at {milliseconds} is not within the years 1 to 9999. Give milliseconds."
        )
    return milliseconds
