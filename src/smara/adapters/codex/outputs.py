"""What a tool of Codex answered: its words, its exit code, and whether it failed.

Versions differ: a text, a text with a heading that names the exit code, JSON inside a text
with the exit code beside the output, an object with content and success, a list of content items.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smara.adapters.blocks import parts_of, read_arguments, words_of
from smara.adapters.decoding import mapping_in, text_in
from smara.messages.models import Part

# In the heading that newer versions write above the output; not further down, where the output may
# say anything.
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:?) (-?\d{1,10})\s*$", re.M)
_HEADING_CHARS = 400
_OUTPUT_MARK = re.compile(r"^(?:Output|Total output lines):", re.M)


@dataclass(frozen=True, slots=True)
class Output:
    """The words of a result, what it was about, and placeholders for images in it."""

    text: str
    has_failed: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    placeholders: tuple[Part, ...] = ()


def output_of(given: Any) -> Output:
    """What a call gave, whatever shape it has."""
    if isinstance(given, str):
        return _of_text(given)
    if isinstance(given, list):
        return _of_parts(given)
    told = mapping_in(given)
    inner = told.get("content", told.get("output", told.get("content_items")))
    found = (
        _of_parts(inner) if isinstance(inner, list) else _of_text(text_in(inner) or words_of(inner))
    )
    has_failed = found.has_failed or told.get("success") is False or told.get("isError") is True
    return Output(found.text, has_failed, found.facts, placeholders=found.placeholders)


def _of_text(text: str) -> Output:
    if text.startswith("{"):
        told = read_arguments(text)
        if isinstance(told, dict) and isinstance(told.get("output"), str):
            return _of_exit(told["output"], mapping_in(told.get("metadata")))
    heading = text[:_HEADING_CHARS]
    mark = _OUTPUT_MARK.search(heading)
    code = _EXIT.search(heading[: mark.start()] if mark else heading)
    # Without the mark it is no heading of Codex, unless the text begins with the words themselves.
    if code is None or (mark is None and code.start() > 0):
        return Output(text)
    number = int(code[1])
    return Output(text, number != 0, {"exit_code": number})


def _of_exit(text: str, metadata: Mapping[str, Any]) -> Output:
    code = metadata.get("exit_code")
    facts = {
        name: metadata[name]
        for name in ("exit_code", "duration_seconds")
        if isinstance(metadata.get(name), int | float)
    }
    return Output(text, isinstance(code, int) and not isinstance(code, bool) and code != 0, facts)


def _of_parts(items: list[Any]) -> Output:
    parts = parts_of(items)
    words = "\n".join(part.text for part in parts if part.type not in ("image", "file"))
    found = _of_text(words)
    return Output(
        found.text,
        found.has_failed,
        found.facts,
        placeholders=tuple(p for p in parts if p.type in ("image", "file")),
    )
