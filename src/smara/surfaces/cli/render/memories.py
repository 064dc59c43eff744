"""Render memories and their code's freshness as lines.

A line states the memory first, then its type and confidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from smara.core.freshness import Freshness
from smara.knowledge.models import TypedMemory
from smara.surfaces.cli import output
from smara.surfaces.cli.render.tasks import cells, cut, pad, styled

_MOST = 4


def code_word(code: Freshness | None) -> str:
    """Return the verdict on code in a word or two.

    Nothing for fresh code.

    >>> code_word(Freshness("drifted", changed=0.4)), code_word(Freshness("orphaned")), code_word(Freshness("fresh"))
    ('code drifted 40 %', 'code gone', '')
    """  # noqa: E501
    if code is None or code.verdict == "fresh":
        return ""
    if code.verdict == "drifted":
        return (
            "code drifted"
            if code.changed is None
            else f"code drifted {code.changed:.0%}".replace("%", " %")
        )
    return {"moved": "code moved", "orphaned": "code gone", "unknown": "code being indexed"}[
        code.verdict
    ]


def code_line(code: Freshness | None) -> str:
    """Return the state of all code a memory names, in one line."""
    if code is None:
        return ""
    shown = "; ".join(code.lines[:_MOST])
    return shown + (f"; and {len(code.lines) - _MOST} more" if len(code.lines) > _MOST else "")


_MARKS: dict[str, tuple[str, str, str | None]] = {
    "confirmed": ("✓", "+", "green"), "unconfirmed": ("○", "o", None), "observed": ("◇", "*",
    "yellow"),
    "quarantined": ("⚠", "!", "red"), "forgotten": ("✗", "x", None),
}  # fmt: skip
_LINES_SHOWN = 2
_FENCE = re.compile(r"`{3,}\w*")
COLUMNS = (
    "memory", "type", "confidence", "trust", "state", "review", "source", "files", "evidence",
    "content",
)  # fmt: skip


def state_of(memory: TypedMemory, code: Freshness | None = None) -> str:
    """Return a memory's state: active, pinned, stale, or deprecated why."""
    if not memory.is_active:
        return memory.deprecated_because or "forgotten"
    states = [
        name for name, holds in (("pinned", memory.is_pinned), ("stale", memory.is_stale)) if holds
    ]
    return ", ".join(filter(None, (" ".join(states), code_word(code)))) or "active"


def mark(memory: TypedMemory) -> str:
    """Return the mark of a memory's trust, in its color."""
    sign, plain, color = _MARKS[_mark_name(memory)]
    return styled(sign if output.encodable(sign) == sign else plain, fg=color)


def legend(memories: Iterable[TypedMemory]) -> str:
    """Return the meaning of the marks of some memories."""
    shown = {_mark_name(each): mark(each) for each in memories}
    return "  ".join(f"{shown[name]} {name}" for name in _MARKS if name in shown)


def _mark_name(memory: TypedMemory) -> str:
    return memory.tier if memory.is_active else "forgotten"


def print_list(
    memories: Sequence[TypedMemory],
    worth: dict[str, float],
    with_reasons: bool = False,
    code: Mapping[str, Freshness] | None = None,
) -> None:
    """Print memories, in a pipe one row for each.

    ``worth`` is their confidence now and ``code`` the freshness of their code, by id.
    """
    freshness = code or {}
    if not output.is_terminal():
        rows = [
            row(each, worth.get(each.id, each.confidence), freshness.get(each.id))
            for each in memories
        ]
        output.table(COLUMNS, rows)
        return
    id_cells = max((cells(each.short_id) for each in memories), default=0)
    indent = " " * (id_cells + 4)
    for each in memories:
        width = output.terminal_width() - len(indent)
        first, *others = shown_lines(each.content, width, _LINES_SHOWN)
        name = styled(pad(each.short_id, id_cells), bold=True)
        click.echo(f"{mark(each)} {name}  {styled(first, dim=not each.is_active)}")
        for line in others:
            click.echo(f"{indent}{styled(line, dim=not each.is_active)}")
        about = facts(
            each,
            worth.get(each.id, each.confidence),
            with_reasons,
            code=freshness.get(each.id),
        )
        output.say(output.paragraph(output.printable(about), indent, indent), dim=True)
        if with_reasons and each.review_reasons:
            reasons = output.paragraph("; ".join(each.review_reasons), indent, indent)
            output.say(reasons, fg="yellow")


def row(memory: TypedMemory, confidence: float, code: Freshness | None = None) -> tuple[Any, ...]:
    """Return a memory as a row for a pipe; see ``COLUMNS``."""
    return (
        memory.short_id,
        memory.type,
        f"{confidence:.2f}",
        memory.tier,
        state_of(memory, code),
        "; ".join(memory.review_reasons) if memory.needs_review else "",
        memory.source,
        ", ".join(memory.files),
        ", ".join(str(each) for each in memory.evidence),
        memory.content,
    )


def shown_lines(text: str, width: int, most: int) -> list[str]:
    """Return the first lines of a text, wrapped.

    Code blocks lose their marks.
    """
    import textwrap

    plain = " ".join(_FENCE.sub(" ", output.printable(text)).split())
    lines = textwrap.wrap(
        plain, max(20, width), break_on_hyphens=False, max_lines=most, placeholder=" …"
    )
    return [cut(line, max(20, width)) for line in lines] or [""]


def facts(
    memory: TypedMemory,
    confidence: float,
    is_in_review: bool = False,
    code: Freshness | None = None,
) -> str:
    """Return type, confidence, trust and evidence of a memory in one line."""
    state = state_of(memory, code)
    trust = memory.tier if not memory.is_tainted else f"{memory.tier} ({', '.join(memory.taint)})"
    place = ", ".join(memory.files[:2])
    if memory.evidence:
        first = memory.evidence[0]
        place = str(replace(first, commit=None) if first.path else first)
    more = f" +{len(memory.evidence) - 1}" if len(memory.evidence) > 1 else ""
    parts = [
        memory.type,
        f"{confidence:.0%}",
        trust,
        "" if state == "active" else state,
        "needs review" if memory.needs_review and memory.is_active and not is_in_review else "",
        place + more,
    ]
    return " · ".join(part for part in parts if part)


def changed(memories: Iterable[TypedMemory], verb: str) -> None:
    """Print changed memories: sentences on a terminal.

    Id, state and content in a pipe.
    """
    for each in memories:
        if output.is_terminal():
            said = shown_lines(
                f"{verb} {each.short_id}: {each.content}", output.terminal_width() - 2, _LINES_SHOWN
            )
            output.say("\n  ".join(said))
        else:
            output.row((each.short_id, state_of(each), each.content))
