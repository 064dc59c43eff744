"""Build the sections that stand before an agent's messages.

The section that changes least comes first, so that prompt caches hit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from smara.context.models import Section, SectionName
from smara.core.escape import neutralize
from smara.core.prompts import load_prompt
from smara.core.tokens import TokenCounter
from smara.messages.models import Message, Thread
from smara.observations.models import Observation
from smara.observations.render import local, render, render_by_thread

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
GAP_MS = 3 * _HOUR
"""A longer silence between two messages is told."""


def ago(milliseconds: int) -> str:
    """How long something is past, or lies ahead.

    >>> ago(30_000), ago(5 * 60_000), ago(26 * 3_600_000), ago(9 * 86_400_000), ago(-3 * 86_400_000)
    ('just now', '5 minutes ago', '1 day ago', '1 week ago', 'in 3 days')
    """
    length = duration(abs(milliseconds))
    if abs(milliseconds) < _MINUTE:
        return "just now"
    return f"{length} ago" if milliseconds >= 0 else f"in {length}"


def duration(milliseconds: int) -> str:
    """A length of time in its largest unit.

    >>> duration(90 * 60_000), duration(45 * 86_400_000), duration(800 * 86_400_000)
    ('1 hour', '1 month', '2 years')
    """
    for size, name in (
        (365 * _DAY, "year"),
        (30 * _DAY, "month"),
        (7 * _DAY, "week"),
        (_DAY, "day"),
        (_HOUR, "hour"),
    ):
        if milliseconds >= size:
            return _counted(milliseconds // size, name)
    return _counted(max(1, milliseconds // _MINUTE), "minute")


def _counted(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


PROMPTS = Path(__file__).parent / "prompts"
_MOST_DATES = 12

Render = Callable[[Sequence[Observation]], str]


def stable_sections(
    active: Sequence[Observation], scope: str, timezone: str, counter: TokenCounter
) -> tuple[Section, ...]:
    """Instructions, reflections and observations: the same, byte for byte, until other observations
    are active.
    """
    draw = render_by_thread if scope == "resource" else render
    reflections = [row for row in active if row.kind == "reflection"]
    observations = [row for row in active if row.kind == "observation"]
    found = (
        [_section("instructions", load_prompt(PROMPTS, "instructions").text, counter)]
        if active
        else []
    )
    for name, tag, rows in (
        ("reflections", "reflections", reflections),
        ("observations", "observations", observations),
    ):
        if rows:
            text = draw([_shown(row) for row in rows], timezone, False)
            found.append(_section(name, f"<{tag}>\n{text}\n</{tag}>", counter))  # type: ignore[arg-type]  # both are names
    return tuple(found)


def task_section(thread: Thread, wants_response: bool, counter: TokenCounter) -> Section | None:
    """What the thread was last known to be about."""
    kept = thread.metadata.get("observations")
    if not isinstance(kept, dict):
        return None
    lines = []
    if kept.get("currentTask"):
        lines.append(f"<current-task>\n{neutralize(str(kept['currentTask']))}\n</current-task>")
    if wants_response and kept.get("suggestedResponse"):
        lines.append(
            f"<suggested-response>\n{neutralize(str(kept['suggestedResponse']))}\n</suggested-response>"
        )
    return _section("current_task", "\n".join(lines), counter) if lines else None


def others_section(
    messages: Sequence[Message], timezone: str, most_tokens: int, counter: TokenCounter
) -> Section | None:
    """What was said in other conversations of the same resource and is not observed yet; the newest
    within a budget.
    """
    by_thread: dict[str, list[str]] = {}
    used = 0
    for message in sorted(messages, key=lambda each: each.created_at, reverse=True):
        line = (
            f"[{local(message.created_at, timezone):%Y-%m-%d %H:%M}] {message.role}: "
            f"{_short(message.raw_content)}"
        )
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
    return _section("other_conversations", "\n".join([intro, *blocks]), counter)


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
    """What time it is, how long ago the last message was, and how long ago the days of the
    observations are.
    """
    now = local(now_ms, timezone)
    lines = [f"It is {now:%A, %Y-%m-%d} ({timezone})."]
    if last_said_at is not None:
        lines.append(f"The last message before this one was {ago(now_ms - last_said_at)}.")
    past = [(day, at) for day, at in days if now_ms - at >= 86_400_000]
    if past:
        shown = ", ".join(f"{day} is {ago(now_ms - at)}" for day, at in past[-_MOST_DATES:])
        lines.append(f"Of the dates above: {shown}.")
    return _section("time", "\n".join(lines), counter)


def section(name: SectionName, text: str, counter: TokenCounter) -> Section:
    """A section with its size."""
    return _section(name, text, counter)


def _section(name: SectionName, text: str, counter: TokenCounter) -> Section:
    return Section(name, text, counter.count(text).tokens)


def _shown(row: Observation) -> Observation:
    """An observation whose words can neither open nor close a block, nor begin a line of their
    own.
    """
    thread_id = None if row.thread_id is None else _attribute(row.thread_id)
    return replace(
        row, thread_id=thread_id, text=_one(row.text), details=tuple(map(_one, row.details))
    )


def _attribute(text: str) -> str:
    return neutralize(text).replace('"', "&quot;").replace(">", "&gt;")


def _one(text: str) -> str:
    return neutralize(text).strip().replace("\n", "\n    ")


def _short(text: str, width: int = 600) -> str:
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else line[: width - 1] + "…"
