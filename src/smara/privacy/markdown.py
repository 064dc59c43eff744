"""Write records as Markdown that people read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from smara.core.escape import from_storable

Rows = Iterable[Mapping[str, Any]]


def memory_lines(rows: Rows) -> Iterator[str]:
    """Yield the memories, oldest first, each with what it rests on."""
    for number, row in enumerate(rows):
        if number == 0:
            yield "# Memories\n"
        yield f"## {row['short_id']} · {row['type']} · {_day(row['created_at'])}\n"
        yield from_storable(row["content"]).strip() + "\n"
        for name, values in (("Files", row["files"]), ("Tags", row["tags"])):
            if values and isinstance(values, list):
                yield f"- {name}: {', '.join(map(str, values))}"
        yield f"- From: {row['source']} by {from_storable(row['created_by'])}"
        for each in row["evidence"] if isinstance(row["evidence"], list) else ():
            yield f"- Evidence: {', '.join(f'{key} {value}' for key, value in each.items())}"
        if row["deprecated_because"]:
            yield f"- No longer in force: {row['deprecated_because']}"
        yield ""


def task_lines(rows: Rows) -> Iterator[str]:
    """Yield the tasks as a list with boxes, oldest first."""
    for number, row in enumerate(rows):
        if number == 0:
            yield "# Tasks\n"
        box = "x" if row["status"] == "closed" else " "
        title = " ".join(from_storable(row["title"]).split())
        yield f"- [{box}] {row['short_id']} P{row['priority']} {row['type']}: {title}"
        for text in (row["description"], row["close_reason"]):
            for line in from_storable(text or "").strip().splitlines():
                yield f"    {line}"


def thread_lines(rows: Rows) -> Iterator[str]:
    """Yield the messages in order, with a heading for each thread."""
    thread = None
    for row in rows:
        if thread is None:
            yield "# Conversations"
        if row["thread_id"] != thread:
            thread = row["thread_id"]
            yield f"\n## {thread}"
        yield f"\n### {row['role']} · {_day(row['created_at'], '%Y-%m-%d %H:%M')}\n"
        yield from_storable(row["raw_content"])


def instruction_lines(rows: Rows) -> Iterator[str]:
    """Yield confirmed memories in force, as instructions for an agent."""
    by_type: dict[str, list[str]] = {}
    for row in rows:
        if row["is_verified"] and row["deprecated_because"] is None:
            text = from_storable(row["content"]).strip().replace("\n", "\n  ")
            names = row["files"] if isinstance(row["files"], list) else ()
            where = f" ({', '.join(f'`{name}`' for name in names)})" if names else ""
            by_type.setdefault(row["type"], []).append(f"- {text}{where}")
    yield "# What this project's memory holds"
    for kind, lines in sorted(by_type.items()):
        yield f"\n## {kind.replace('_', ' ').capitalize()}\n"
        yield from lines


def _day(time_ms: int, form: str = "%Y-%m-%d") -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime(form)
