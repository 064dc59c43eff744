"""Memories as lines of a terminal: what is said first, below it what kind it is and what it is
worth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from smara.core.freshness import Freshness
from smara.knowledge.models import Evidence, TypedMemory
from smara.surfaces.cli import output
from smara.surfaces.cli.code_lines import code_word
from smara.surfaces.cli.task_lines import cells, cut, pad, styled

_MARKS: dict[str, tuple[str, str, str | None]] = {
    "confirmed": ("✓", "+", "green"), "unconfirmed": ("○", "o", None), "observed": ("◇", "*",
    "yellow"),
    "quarantined": ("⚠", "!", "red"), "put aside": ("✗", "x", None),
}  # fmt: skip
_LINES_SHOWN = 2
_FENCE = re.compile(r"`{3,}\w*")
COLUMNS = (
    "memory", "type", "confidence", "trust", "state", "review", "source", "files", "evidence",
    "content",
)  # fmt: skip


def state_of(memory: TypedMemory, code: Freshness | None = None) -> str:
    """How a memory stands: active, pinned, stale, what became of its code, or how it was put
    aside.
    """
    if not memory.is_active:
        return memory.deprecated_because or "put aside"
    states = [
        name for name, holds in (("pinned", memory.is_pinned), ("stale", memory.is_stale)) if holds
    ]
    return ", ".join(filter(None, (" ".join(states), code_word(code)))) or "active"


def mark(memory: TypedMemory) -> str:
    """The mark of a memory's trust, in its color."""
    sign, plain, color = _MARKS[_mark_name(memory)]
    return styled(sign if output.encodable(sign) == sign else plain, fg=color)


def legend(memories: Iterable[TypedMemory]) -> str:
    """What the marks of some memories mean."""
    shown = {_mark_name(each): mark(each) for each in memories}
    return "  ".join(f"{shown[name]} {name}" for name in _MARKS if name in shown)


def _mark_name(memory: TypedMemory) -> str:
    return memory.tier if memory.is_active else "put aside"


def print_list(
    memories: Sequence[TypedMemory],
    worth: dict[str, float],
    with_reasons: bool = False,
    code: Mapping[str, Freshness] | None = None,
) -> None:
    """Some memories; ``worth`` is their confidence now and ``code`` how their code stands, by id.

    In a pipe, one row for each.
    """
    found = code or {}
    if not output.is_terminal():
        rows = [
            row(each, worth.get(each.id, each.confidence), found.get(each.id)) for each in memories
        ]
        output.table(COLUMNS, rows)
        return
    width = max((cells(each.short_id) for each in memories), default=0)
    for each in memories:
        _print_one(
            each,
            worth.get(each.id, each.confidence),
            width,
            with_reasons=with_reasons,
            code=found.get(each.id),
        )


def row(memory: TypedMemory, confidence: float, code: Freshness | None = None) -> tuple[Any, ...]:
    """A memory as a row for a pipe; see ``COLUMNS``."""
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


def _print_one(
    memory: TypedMemory,
    confidence: float,
    id_cells: int,
    with_reasons: bool,
    code: Freshness | None,
) -> None:
    indent = " " * (id_cells + 4)
    first, *others = shown_lines(
        memory.content, output.terminal_width() - len(indent), _LINES_SHOWN
    )
    name = styled(pad(memory.short_id, id_cells), bold=True)
    click.echo(f"{mark(memory)} {name}  {styled(first, dim=not memory.is_active)}")
    for line in others:
        click.echo(f"{indent}{styled(line, dim=not memory.is_active)}")
    _dimmed(facts(memory, confidence, with_reasons, code=code), indent)
    if with_reasons and memory.review_reasons:
        output.say(output.paragraph("; ".join(memory.review_reasons), indent, indent), fg="yellow")


def shown_lines(text: str, width: int, most: int) -> list[str]:
    """The beginning of a text as lines that fit; code blocks lose their marks."""
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
    """What kind of memory it is, what it is worth, and where it comes from, in one line."""
    state = state_of(memory, code)
    trust = memory.tier if not memory.is_tainted else f"{memory.tier} ({', '.join(memory.taint)})"
    place = _place(memory.evidence[0]) if memory.evidence else ", ".join(memory.files[:2])
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


def _place(evidence: Evidence) -> str:
    """Where something stands, without its commit: that is on the card."""
    return str(replace(evidence, commit=None)) if evidence.path else str(evidence)


def _dimmed(text: str, indent: str) -> None:
    output.say(output.paragraph(output.printable(text), indent, indent), dim=True)


def changed(memories: Iterable[TypedMemory], verb: str) -> None:
    """Tell changes: a sentence for each on a terminal; id, state and content in a pipe."""
    for each in memories:
        if output.is_terminal():
            said = shown_lines(
                f"{verb} {each.short_id}: {each.content}", output.terminal_width() - 2, _LINES_SHOWN
            )
            output.say("\n  ".join(said))
        else:
            output.row((each.short_id, state_of(each), each.content))
