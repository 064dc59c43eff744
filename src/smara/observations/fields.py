"""The fields that a mode adds to an observation: what a bug hunt, a test run or a search has
besides words.

The names are written as they stand in JSON. Every observer uses this table, so that what
one wrote another can read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from smara.observations.models import AgentMode

Kind = Literal["text", "texts", "object", "objects"]

MODE_FIELDS: dict[AgentMode, dict[str, Kind]] = {
    "default": {},
    "explore": {"searchQueries": "texts", "notFound": "texts"},
    "bug_fixing": {"errorType": "text", "stackTrace": "text", "rootCause": "text"},
    "refactoring": {"filesAffected": "texts", "breaking": "texts"},
    "testing": {"testResults": "objects", "coverage": "object"},
    "debugging": {"symptoms": "texts", "variables": "object"},
    "research": {"sources": "texts"},
}

_SHAPES: dict[str, str] = {
    "testResults": 'testResults (list of {"name", "status": "passed"|"failed"|"skipped", '
    '"message"})',
    "coverage": 'coverage ({"percent", "uncovered": [paths]})',
    "variables": "variables (object of name: value as seen)",
}
_MOST_CHARACTERS = 4_000
_MOST_ITEMS = 100


def describe_fields(mode: AgentMode) -> str:
    """The fields of a mode with their shapes, as a prompt names them; empty for a mode without."""
    return ", ".join(
        _SHAPES.get(name) or f"{name} ({_WORDS[kind]})" for name, kind in MODE_FIELDS[mode].items()
    )


_WORDS: dict[Kind, str] = {
    "text": "text",
    "texts": "list of texts",
    "object": "object",
    "objects": "list of objects",
}


def field_name(written: str, mode: AgentMode) -> str | None:
    """The field of a mode that was meant, however it is cased and joined; ``None`` for none of
    them.
    """
    folded = _fold(written)
    return next((name for name in MODE_FIELDS[mode] if _fold(name) == folded), None)


def as_field(value: Any, kind: Kind) -> Any:
    """A value in the shape that a field has, where that can be done without guessing; else
    ``None``.

    >>> as_field("timeout", "texts"), as_field(["a", "b"], "text"), as_field(7, "object")
    (['timeout'], 'a; b', None)
    """
    if kind == "text":
        listed = as_field(value, "texts")
        return "; ".join(listed) if listed else None
    if kind == "texts":
        items = value if isinstance(value, list) else [value]
        texts = [
            str(item).strip() for item in items[:_MOST_ITEMS] if isinstance(item, str | int | float)
        ]
        return [text[:_MOST_CHARACTERS] for text in texts if text] or None
    if kind == "object":
        return dict(value) if isinstance(value, Mapping) and value else None
    items = value if isinstance(value, list) else [value]
    objects = [
        item if isinstance(item, Mapping) else {"name": item}
        for item in items[:_MOST_ITEMS]
        if isinstance(item, Mapping) or (isinstance(item, str) and item.strip())
    ]
    return objects or None


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
