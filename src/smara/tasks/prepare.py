"""Check and redact the fields of a task before storage."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from smara.core.validate import invalid, one_of
from smara.secrets import redact
from smara.secrets.redact import clean_list, clean_name, dump_metadata
from smara.tasks.models import MAX_TITLE_LENGTH, STATUSES, TYPES

MAX_DESCRIPTION_LENGTH = 2_000_000
MAX_SUMMARY_LENGTH = 20_000
MAX_LABELS = 100


def clean_title(title: object) -> str:
    """A title: one line that is not blank."""
    if not isinstance(title, str):
        raise invalid(
            f"title must be a text, not {type(title).__name__}", "Give one line of text.", "title"
        )
    line = " ".join(title.split())
    if not line:
        raise invalid("A task needs a title", "Say in one line what is to be done.", "title")
    if len(line) > MAX_TITLE_LENGTH:
        brief = f"The title has {len(line)} characters; at most {MAX_TITLE_LENGTH} are allowed"
        raise invalid(brief, "Shorten it, and put the rest into the description.", "title")
    return redact(line).text[:MAX_TITLE_LENGTH]


def clean_text(text: object, what: str, longest: int = MAX_DESCRIPTION_LENGTH) -> str:
    """A text of any number of lines."""
    if not isinstance(text, str):
        raise invalid(f"{what} must be a text, not {type(text).__name__}", "Give a text.", what)
    if len(text) > longest:
        brief = f"The {what} has {len(text):,} characters; at most {longest:,} are stored"
        raise invalid(brief, "Shorten it, or link messages.", what)
    return redact(text).text


def clean_summary(summary: object) -> str:
    """Check a closed task's summary; it must not be empty."""
    text = clean_text(summary, "summary", MAX_SUMMARY_LENGTH).strip()
    if not text:
        hint = "Say what was done, where, and what was learned, in a sentence or two."
        raise invalid("Closing a task needs a summary", hint, "summary")
    return text


def clean_priority(priority: object) -> int:
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= 4:
        raise invalid(
            f"priority must be a whole number from 0 to 4; got {priority!r}",
            "0 is the most urgent, 2 the usual.",
            "priority",
        )
    return priority


def clean_fields(*, is_partial: bool = False, **given: Any) -> dict[str, Any]:
    """Return fields, checked and redacted; of some fields, ``None`` is left out."""
    return {
        name: _CLEAN[name](value)
        for name, value in given.items()
        if value is not None or not is_partial
    }


_CLEAN: Mapping[str, Callable[[Any], Any]] = {
    "title": clean_title,
    "description": lambda value: clean_text(value, "description"),
    "summary": lambda value: None if value is None else clean_text(value, "summary"),
    "close_reason": lambda value: None if value is None else clean_text(value, "close_reason"),
    "status": lambda value: one_of(value, STATUSES, "status"),
    "priority": clean_priority,
    "type": lambda value: one_of(value, TYPES, "type"),
    "labels": lambda value: tuple(sorted(clean_list(value, "labels", MAX_LABELS))),
    "assignee": lambda value: clean_name(value, "assignee") if value else None,
    "session_id": lambda value: clean_name(value, "session_id") if value else None,
    "created_by": lambda value: clean_name(value, "created_by") if value else None,
    "metadata": lambda value: json.loads(dump_metadata(value)),
}
"""How each field is checked and redacted; an empty name clears it."""
