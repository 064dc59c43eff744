"""One memory as a card: what it says, what it is worth and why, and what it rests on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from smara.core.freshness import Freshness
from smara.knowledge.models import Evidence, TypedMemory
from smara.surfaces.cli import memory_lines, output
from smara.surfaces.cli.code_lines import code_line

_TAINT = {
    "imported": "an imported file", "web": "the web", "mcp": "another server",
    "tool": "the output of tools",
    "file": "files", "other": "other people",
}  # fmt: skip


def print_card(
    memory: TypedMemory,
    confidence: float,
    chain: Sequence[TypedMemory],
    code: Freshness | None = None,
) -> None:
    """Print a memory with all that is known of it; names and values in a pipe."""
    if not output.is_terminal():
        for name_and_value in rows(memory, confidence, code):
            output.row(name_and_value)
        return
    click.echo(f"{memory_lines.mark(memory)} ", nl=False)
    lines = memory.content.split("\n")
    output.say(output.paragraph(f"{memory.short_id}  {lines[0]}", "", "  ").lstrip(), bold=True)
    for line in lines[1:]:
        output.say(f"  {line}")
    output.say()
    shown = [
        (name, str(value))
        for name, value in rows(memory, confidence, code)[2:]
        if value not in (None, "")
    ]
    for name, value in shown:
        if name not in ("evidence", "data"):
            output.say(output.paragraph(f"{name:<12}{value}", "  ", " " * 14))
    _print_data(memory)
    _print_evidence(memory)
    if len(chain) > 1:
        _heading("What took the place of what")
        for each in chain:
            here = " (this)" if each.id == memory.id else ""
            output.say(
                output.paragraph(
                    f"{each.short_id}{here}  {' '.join(each.content.split())}", "    ", "      "
                )
            )


def rows(
    memory: TypedMemory, confidence: float, code: Freshness | None = None
) -> list[tuple[str, Any]]:
    """Names and values of a memory."""
    made = f"{output.moment(memory.created_at)} by {memory.created_by} ({memory.source})"
    confirmed = (
        f"{output.moment(memory.verified_at or 0)} by {memory.verified_by}"
        if memory.is_verified
        else ""
    )
    taint = ", ".join(_TAINT.get(each, each) for each in memory.taint)
    trust = memory.tier + (
        f": it comes from {taint}, and nobody has confirmed it" if memory.is_tainted else ""
    )
    worth = f"{confidence:.0%} now"
    if abs(confidence - memory.confidence) >= 0.005:
        worth += f", {memory.confidence:.0%} when it was last known to be right"
    review = "; ".join(memory.review_reasons) if memory.needs_review and memory.is_active else ""
    return [
        ("memory", memory.short_id),
        ("content", memory.content),
        ("type", memory.type),
        ("confidence", worth),
        ("trust", trust),
        ("confirmed", confirmed),
        ("review", review),
        ("state", memory_lines.state_of(memory)),
        ("stale", memory.stale_because if memory.is_stale else ""),
        ("code", code_line(code)),
        ("files", ", ".join(memory.files)),
        ("modules", ", ".join(memory.modules)),
        ("tags", ", ".join(memory.tags)),
        ("scope", memory.scope),
        ("visible to", memory.visibility),
        ("made", made),
        ("session", memory.session_id),
        ("commit", memory.commit),
        ("context", memory.chunk.context_prefix if memory.chunk else ""),
        ("citation", memory.citation),
        ("uses", memory.verified_uses or ""),
        ("corrections", memory.corrections or ""),
        ("superseded by", memory.superseded_by),
        ("evidence", " ".join(str(each) for each in memory.evidence)),
        ("data", json.dumps(dict(memory.data), ensure_ascii=False) if memory.data else ""),
        ("uuid", memory.id),
    ]


def _print_data(memory: TypedMemory) -> None:
    """The extended shape of a type; steps are in the words already, those of other makers are
    told.
    """
    told = {
        name: value
        for name, value in memory.data.items()
        if not (name == "steps" and _is_said(memory, value))
    }
    if not told:
        return
    _heading("More")
    for name, value in told.items():
        if name == "steps":
            for step in value:
                output.say(
                    output.paragraph(f"{step['order']}. {step['description']}", "    ", "       ")
                )
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        output.say(output.paragraph(f"{name.replace('_', ' ')}: {text}", "    ", "      "))


def _is_said(memory: TypedMemory, steps: Any) -> bool:
    return all(str(step["description"]).split("\n")[0] in memory.content for step in steps)


def _print_evidence(memory: TypedMemory) -> None:
    if not memory.evidence:
        return
    _heading("Rests on")
    for each in memory.evidence:
        output.say(output.paragraph(_place(each), "    ", "      "))
        if each.quote and " ".join(each.quote.split()) != " ".join(memory.content.split()):
            output.say(
                output.paragraph(output.short(each.quote, 300), "      “", "      "), dim=True
            )


def _place(evidence: Evidence) -> str:
    """A commit in twelve characters says as much as in forty."""
    text = str(evidence)
    return (
        text.replace(f"@{evidence.commit}", f"@{evidence.commit[:12]}") if evidence.commit else text
    )


def _heading(title: str) -> None:
    output.say()
    output.say(f"  {title}", bold=True)
