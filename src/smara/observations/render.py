"""Render observations as text: date headings and one line each.

Storage, command line and context use the same format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from smara.core.dates import local_time, zone_of
from smara.core.items import grouped
from smara.observations.models import Note, Observation, Priority

MARKS: dict[Priority, str] = {"high": "🔴", "medium": "🟡", "low": "🟢"}
_DONE = "✅"


def local(milliseconds: int, timezone: str) -> datetime:
    """Return a time in a zone."""
    return local_time(zone_of(timezone), milliseconds)


def render_note(note: Note | Observation, timezone: str, is_marked: bool = True) -> str:
    """Render one observation with its time and its details.

    Without marks, only the high ones keep theirs.
    """
    mark = MARKS[note.priority] if is_marked or note.priority == "high" else ""
    done = _DONE if note.category == "completion" and not note.text.startswith(_DONE) else ""
    time = f"({local(note.said_at, timezone):%H:%M})"
    meaning = f" (meaning {note.refers_to})" if note.refers_to else ""
    head = " ".join(piece for piece in (mark, time, done, note.text.strip()) if piece)
    return "\n".join([f"* {head}{meaning}", *(f"  * {detail.strip()}" for detail in note.details)])


def render(notes: Iterable[Note | Observation], timezone: str, is_marked: bool = True) -> str:
    """Render observations under the dates on which they were made."""
    lines: list[str] = []
    day = ""
    for note in notes:
        date = f"{local(note.said_at, timezone):%Y-%m-%d (%a)}"
        if date != day:
            lines += ["", f"Date: {date}"] if lines else [f"Date: {date}"]
            day = date
        lines.append(render_note(note, timezone, is_marked))
    return "\n".join(lines)


def render_by_thread(notes: Sequence[Observation], timezone: str, is_marked: bool = True) -> str:
    """Render observations, each thread's under its own heading."""
    by_thread = grouped((note.thread_id, note) for note in notes)
    # What is of no thread stands first, without a heading.
    texts = [render(by_thread.pop(None, ()), timezone, is_marked)]
    for thread_id, rows in by_thread.items():
        texts.append(f'<thread id="{thread_id}">\n{render(rows, timezone, is_marked)}\n</thread>')
    return "\n\n".join(filter(None, texts))
