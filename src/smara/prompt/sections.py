"""Write the sections and the messages of a context.

The section that changes least comes first, so that prompt caches hit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from smara.core.escape import neutralize
from smara.core.extract import one_line
from smara.core.prompts import load_prompt
from smara.core.tokens import TokenCounter
from smara.errors import SmaraError
from smara.messages.messages import HistoryEntry
from smara.messages.models import Message, NewMessage, Part, Thread, plain
from smara.messages.parts import parts_of
from smara.messages.prepare import as_new_message
from smara.observations.models import Observation
from smara.observations.render import local, render, render_by_thread
from smara.prompt.models import ContextMessage, Section, SectionName

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
GAP_MS = 3 * _HOUR
"""A longer silence between two messages is told."""


def ago(milliseconds: int) -> str:
    """Return how long something is past, or lies ahead.

    >>> ago(30_000), ago(5 * 60_000), ago(26 * 3_600_000), ago(9 * 86_400_000), ago(-3 * 86_400_000)
    ('just now', '5 minutes ago', '1 day ago', '1 week ago', 'in 3 days')
    """
    length = duration(abs(milliseconds))
    if abs(milliseconds) < _MINUTE:
        return "just now"
    return f"{length} ago" if milliseconds >= 0 else f"in {length}"


def duration(milliseconds: int) -> str:
    """Return a length of time in its largest unit.

    >>> duration(90 * 60_000), duration(45 * 86_400_000), duration(800 * 86_400_000)
    ('1 hour', '1 month', '2 years')
    """
    units = ((365 * _DAY, "year"), (30 * _DAY, "month"), (7 * _DAY, "week"), (_DAY, "day"))
    size, name = next(
        (unit for unit in (*units, (_HOUR, "hour")) if milliseconds >= unit[0]), (_MINUTE, "minute")
    )
    count = max(1, milliseconds // size)
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


PROMPTS = Path(__file__).parent / "prompts"
_MOST_DATES = 12
_LONGEST_LINE = 600


def stable_sections(
    active: Sequence[Observation],
    scope: str,
    timezone: str,
    counter: TokenCounter,
    has_ids: bool = False,
) -> tuple[Section, ...]:
    """Instructions, reflections and observations: the same, byte for byte, until other observations
    are active.
    """
    draw = render_by_thread if scope == "resource" else render
    reflections = [row for row in active if row.kind == "reflection"]
    observations = [row for row in active if row.kind == "observation"]
    names = ("instructions", "line-ids") if has_ids else ("instructions",)
    instructions = "\n".join(load_prompt(PROMPTS, name).text for name in names)
    found = [section("instructions", instructions, counter)] if active else []
    for name, tag, rows in (
        ("reflections", "reflections", reflections),
        ("observations", "observations", observations),
    ):
        if rows:
            # Its words can neither open nor close a block, nor begin a line of their own.
            shown = [
                replace(
                    row,
                    thread_id=None if row.thread_id is None else _attribute(row.thread_id),
                    text=_one(row.text) + (f" [o-{row.id[-8:]}]" if has_ids else ""),
                    details=tuple(map(_one, row.details)),
                )
                for row in rows
            ]
            text = draw(shown, timezone, False)
            found.append(section(name, f"<{tag}>\n{text}\n</{tag}>", counter))  # type: ignore[arg-type]  # both are names
    return tuple(found)


def task_section(thread: Thread, wants_response: bool, counter: TokenCounter) -> Section | None:
    """Return the last known task of a thread with its age."""
    lines = []
    if thread.current_task:
        newer = thread.message_count - (thread.task_seq or thread.message_count)
        # "Waiting for the user" would be false where the person has spoken since.
        since = f"\n(noted before the newest {newer:,} messages)" if newer > 0 else ""
        text = neutralize(str(thread.current_task)) + since
        lines.append(f"<current-task>\n{text}\n</current-task>")
    if wants_response and thread.suggested_response:
        text = neutralize(str(thread.suggested_response))
        lines.append(f"<suggested-response>\n{text}\n</suggested-response>")
    return section("current_task", "\n".join(lines), counter) if lines else None


def others_section(
    messages: Sequence[Message], timezone: str, most_tokens: int, counter: TokenCounter
) -> Section | None:
    """Return the newest unobserved messages of other conversations."""
    by_thread: dict[str, list[str]] = {}
    used = 0
    for message in sorted(messages, key=lambda each: each.created_at, reverse=True):
        words = one_line(message.raw_content, _LONGEST_LINE)
        line = f"[{local(message.created_at, timezone):%Y-%m-%d %H:%M}] {message.role}: {words}"
        used += counter.count(line).tokens
        if used > most_tokens:
            break
        by_thread.setdefault(message.thread_id, []).append(neutralize(line))
    if not by_thread:
        return None
    blocks = [
        "\n".join(
            [
                f'<unobserved-context thread="{_attribute(thread_id)}">',
                *reversed(lines),
                "</unobserved-context>",
            ]
        )
        for thread_id, lines in by_thread.items()
    ]
    intro = "Said in other conversations with the same person, not in this one:"
    return section("other_conversations", "\n".join([intro, *blocks]), counter)


def summaries_section(entries: Sequence[HistoryEntry], counter: TokenCounter) -> Section | None:
    """Return the summaries of compacted messages, oldest first."""
    lines = [neutralize(each.text) for each in entries if each.compaction_id]
    text = "\n".join(["<earlier-messages>", *lines, "</earlier-messages>"])
    return section("summaries", text, counter) if lines else None


def days_of(active: Sequence[Observation], timezone: str) -> tuple[tuple[str, int], ...]:
    """The days on which something was observed, each with its last moment."""
    days = {f"{local(row.said_at, timezone):%Y-%m-%d}": row.said_at for row in active}
    return tuple(days.items())


def time_section(
    days: Sequence[tuple[str, int]],
    now_ms: int,
    last_said_at: int | None,
    timezone: str,
    counter: TokenCounter,
) -> Section:
    """Return the date, and how long ago things were."""
    lines = [f"It is {local(now_ms, timezone):%A, %Y-%m-%d} ({timezone})."]
    if last_said_at is not None:
        lines.append(f"The last message before this one was {ago(now_ms - last_said_at)}.")
    past = [(day, at) for day, at in days if now_ms - at >= 86_400_000]
    if past:
        shown = ", ".join(f"{day} is {ago(now_ms - at)}" for day, at in past[-_MOST_DATES:])
        lines.append(f"Of the dates above: {shown}.")
    return section("time", "\n".join(lines), counter)


def section(name: SectionName, text: str, counter: TokenCounter) -> Section:
    """Return a section with its size in tokens."""
    return Section(name, text, counter.count(text).tokens)


def _attribute(text: str) -> str:
    return neutralize(text).replace('"', "&quot;").replace(">", "&gt;")


def _one(text: str) -> str:
    return neutralize(text).strip().replace("\n", "\n    ")


def incoming_message(message: Mapping[str, Any] | NewMessage) -> ContextMessage:
    """Return a message as it came.

    One that memory could not keep is still the agent's, and goes through as it is.
    """
    try:
        new = as_new_message(message)
        parts = parts_of(new.content)
        return ContextMessage(new.role, spoken(parts), parts=parts, source="incoming")
    except (SmaraError, TypeError):
        given = (
            message
            if isinstance(message, Mapping)
            else {"content": getattr(message, "content", message)}
        )
        text = plain(given.get("content"))
        return ContextMessage(str(given.get("role", "user")), text, source="incoming")


def stored_messages(raw: Sequence[Message], is_continued: bool) -> Iterator[ContextMessage]:
    """Yield messages with hints at what is missing between them."""
    if is_continued:
        yield _note(load_prompt(PROMPTS, "continuation").text)
    before: int | None = None
    for message in raw:
        if before is not None and message.created_at - before >= GAP_MS:
            yield _note(f"{duration(message.created_at - before)} passed before the next message.")
        before = message.created_at
        yield ContextMessage(
            message.role,
            spoken(message.parts),
            message.id,
            seq=message.seq,
            parts=message.parts,
        )


def _note(text: str) -> ContextMessage:
    return ContextMessage("user", f"<system-reminder>{text}</system-reminder>", source="memory")


def spoken(parts: Sequence[Part]) -> str:
    """Return the text of parts without the reasoning."""
    return "\n\n".join(part.render() for part in parts if part.type != "reasoning")
