"""Define the commands that show memories: list, search, show, why and audit.

What all memory commands share is here, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from smara.core.extract import one_line
from smara.core.freshness import Freshness
from smara.errors import InvalidInputError
from smara.knowledge.models import MADE_BY, SOURCES, TIERS, TYPES, AddResult, TypedMemory, origins
from smara.memory import Memory
from smara.shapes import evidence_json, memory_json
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_memory,
    limit_option,
    offset_option,
    with_memory,
)
from smara.surfaces.cli.render import (
    code_line,
    heading,
    legend,
    mark,
    print_memories,
    say_more,
    trust_of,
)
from smara.texts import memory_facts, memory_state

memory_argument = click.argument("memory_id", metavar="MEMORY", shell_complete=complete_memory)
memory_arguments = click.argument(
    "memory_ids", metavar="MEMORY...", nargs=-1, required=True, shell_complete=complete_memory
)


def worth_of(memory: Memory, memories: Iterable[TypedMemory]) -> dict[str, float]:
    """Return the confidence of memories now, by id."""
    shown = list(memories)
    code = memory.memories.freshness(shown)
    return {each.id: memory.memories.confidence(each, code).value for each in shown}


def memories_json(memory: Memory, memories: Sequence[TypedMemory]) -> list[dict[str, Any]]:
    """Return memories as JSON, with confidence and freshness now."""
    worth, code = worth_of(memory, memories), memory.memories.freshness(memories)
    return [memory_json(each, worth[each.id], code.get(each.id)) for each in memories]


def _rows(
    memory: TypedMemory, confidence: float, code: Freshness | None = None
) -> list[tuple[str, Any]]:
    made = f"{output.moment(memory.created_at)} by {memory.created_by}, {MADE_BY[memory.source]}"
    confirmed = (
        f"{output.moment(memory.verified_at or 0)} by {memory.verified_by}"
        if memory.is_verified
        else ""
    )
    trust = memory.tier + (
        f": it comes from {origins(memory.taint)} and is not confirmed" if memory.is_tainted else ""
    )
    worth = f"{confidence:.0%} now"
    if abs(confidence - memory.confidence) >= 0.005:
        worth += f", {memory.confidence:.0%} as stored"
    review = "; ".join(memory.review_reasons) if memory.needs_review and memory.is_active else ""
    return [
        ("memory", memory.short_id),
        ("content", memory.content),
        ("type", memory.type),
        ("confidence", worth),
        ("trust", trust),
        ("confirmed", confirmed),
        ("review", review),
        ("state", memory_state(memory_json(memory))),
        ("marked stale", memory.stale_because if memory.is_stale else ""),
        ("code", code_line(code)),
        ("files", ", ".join(memory.files)),
        ("modules", ", ".join(memory.modules)),
        ("tags", ", ".join(memory.tags)),
        ("scope", memory.scope),
        ("visible to", memory.visibility),
        ("created", made),
        ("seen", output.moment(memory.seen_at) if memory.seen_at else ""),
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


def reply_added(
    call: Invocation,
    add: Callable[[Memory], AddResult],
    guessed: tuple[str, ...] = (),
    verb: str = "Added",
) -> Reply:
    """Add a memory and answer with the outcome.

    Args:
        call: The invocation.
        add: The function that adds the memory.
        guessed: Why its type was guessed, if it was.
        verb: The first word of the sentence that people read.

    Raises:
        InvalidInputError: If the memory was refused.
    """
    with call.memory() as memory:
        added = add(memory)
        if added.memory is None:
            raise InvalidInputError(
                f"Not remembered: {'; '.join(added.why)}. Use other words, or teach it with "
                "`smara remember`.",
                why=added.why,
            )
        found = added.memory
        code = memory.memories.freshness([found]).get(found.id)
        confidence = memory.memories.confidence(found).value
        others = [memory.memories.get(each) for each in (*added.superseded, *added.disputes)]
    guessed = guessed if added.outcome == "added" else ()
    yield {
        "outcome": added.outcome,
        "memory": memory_json(found, None, code),
        "why": list(added.why),
        "similarTo": added.similar_to,
        "superseded": list(added.superseded),
        "disputes": list(added.disputes),
        **({"guessedBecause": list(guessed)} if guessed else {}),
    }
    if not output.is_terminal():
        output.row((found.short_id, added.outcome, found.type, found.content))
        return
    head = f"{verb} {found.short_id}" if added.outcome == "added" else f"Already {found.short_id}"
    output.say(output.paragraph(f"{head}: {one_line(found.content)}", "", "  "), bold=True)
    output.say(
        output.paragraph(memory_facts(memory_json(found, confidence), is_local=True), "  ", "  "),
        dim=True,
    )
    if guessed:
        note = (
            f"The type is a guess ({', '.join(guessed)}). Change it with `smara memories edit "
            f"{found.short_id} --type T`."
        )
        output.say(output.paragraph(note, "  ", "  "), dim=True)
    if code is not None:
        places = ", ".join(each.now or each.was for each in code.anchors)
        note = f"It is tied to {places}; you are told when that code changes."
        output.say(output.paragraph(note, "  ", "  "), dim=True)
    for other in others:
        how = "Replaces" if other.id in added.superseded else "Contradicts"
        output.say(
            output.paragraph(f"{how} {other.short_id}: {one_line(other.content)}", "  ", "    ")
        )
    if added.disputes:
        click.echo("  Run `smara review` to decide which of them is true.")


_TYPE = click.option(
    "--type", "type_", type=click.Choice(TYPES), metavar="T", help=f"One of {', '.join(TYPES)}."
)
MEASURES = (
    "junk",
    "duplicates",
    "contradictions",
    "stale",
    "unreviewed",
    "tainted",
    "without_evidence",
)


@click.command("list")
@_TYPE
@click.option(
    "--source", type=click.Choice(SOURCES), metavar="S", help=f"One of {', '.join(SOURCES)}."
)
@click.option("--trust", "tier", type=click.Choice(TIERS), help="Only with this trust.")
@click.option("--file", metavar="PATH", help="Only memories about this file.")
@click.option("--tag", metavar="TEXT", help="Only with this tag.")
@click.option("--pinned", is_flag=True, help="Only pinned memories.")
@click.option("--forgotten", is_flag=True, help="List forgotten memories instead.")
@click.option("--all", "with_all", is_flag=True, help="List forgotten memories, too.")
@click.option("--by-confidence", is_flag=True, help="Sort by confidence instead of age.")
@limit_option(30, 1000)
@offset_option
@with_memory
def list_memories(
    memory: Memory,
    type_: Any,
    source: Any,
    tier: Any,
    file: str | None,
    tag: str | None,
    pinned: bool,
    forgotten: bool,
    with_all: bool,
    by_confidence: bool,
    limit: int,
    offset: int,
) -> Reply:
    """List memories, newest first."""
    page = memory.memories.list(
        type=type_,
        source=source,
        tier=tier,
        file=file,
        tag=tag,
        is_pinned=True if pinned else None,
        state="all" if with_all else "deprecated" if forgotten else "active",
        order="confidence" if by_confidence else "newest",
        limit=limit,
        offset=offset,
    )
    worth, code = worth_of(memory, page), memory.memories.freshness(page)
    totals = memory.memories.totals()
    listed = [memory_json(each, worth[each.id], code.get(each.id)) for each in page]
    yield {"memories": listed, "nextOffset": page.next_offset}
    print_memories(page, worth, code=code)
    if page.next_offset is not None:
        say_more(f"There are more: use --offset {page.next_offset} or a larger --limit.")
    elif not page and output.is_terminal():
        if not totals.total:
            output.say('No memories yet. Teach the first: `smara remember "Use uv, never pip"`.')
        elif totals.active:
            output.say("No memories match. Use fewer filters, or --all for forgotten ones, too.")
        else:
            output.say("All memories are forgotten; --all lists them.")
    elif output.is_terminal():
        output.say()
        click.echo(legend(map(trust_of, page)))
        if totals.to_review:
            say_more(f"{totals.to_review:,} to review: `smara review`.")


@click.command("search")
@click.argument("query")
@_TYPE
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="Only memories about this file; may be repeated.",
)
@limit_option(10, 200)
@common
def search(call: Invocation, query: str, type_: Any, files: tuple[str, ...], limit: int) -> Reply:
    """Search memories, best match first."""
    with call.memory() as memory:
        answer = memory.search_memories(
            query, limit, types=[type_] if type_ else None, files=files or None
        )
        call.warnings += answer.warnings
    results, nearest = (
        [
            {
                "memory": memory_json(each.memory, each.confidence, each.code),
                "rank": each.rank,
                "score": each.score,
                "why": list(each.why),
                "snippet": each.snippet,
            }
            for each in hits
        ]
        for hits in (answer.hits, answer.nearest)
    )
    data = {"results": results, "totalHits": answer.total_hits}
    yield data | ({"nearest": nearest} if nearest else {})
    found = [each.memory for each in answer.hits]
    if not found and output.is_terminal():
        output.say("No memories match. Try other words; `smara search` searches messages, too.")
    output.print_nearest(f"{each.memory.short_id}: {each.snippet}" for each in answer.nearest)
    if not found and output.is_terminal():
        return
    code = {each.memory.id: each.code for each in answer.hits if each.code is not None}
    print_memories(found, {each.memory.id: each.confidence for each in answer.hits}, code=code)


@click.command("show")
@memory_argument
@with_memory
def show(memory: Memory, memory_id: str) -> Reply:
    """Show one memory with all its fields."""
    found = memory.memories.get(memory_id)
    chain = memory.memories.chain(found.id)
    confidence, code = (
        memory.memories.confidence(found).value,
        memory.memories.freshness([found]).get(found.id),
    )
    yield memory_json(found, confidence, code) | {"chain": [each.short_id for each in chain]}
    facts = _rows(found, confidence, code)
    if not output.is_terminal():
        for fact in facts:
            output.row(fact)
        return
    click.echo(f"{mark(trust_of(found))} ", nl=False)
    lines = found.content.split("\n")
    output.say(output.paragraph(f"{found.short_id}  {lines[0]}", "", "  ").lstrip(), bold=True)
    output.print_lines(f"  {line}" for line in lines[1:])
    output.say()
    for name, value in facts[2:]:
        if value not in (None, "") and name not in ("evidence", "data"):
            output.say(output.paragraph(f"{name:<12}{value}", "  ", " " * 14))
    _print_data(found)
    if found.evidence:
        heading("Evidence")
    for evidence in found.evidence:
        # Twelve characters of a commit are enough to find it.
        place = str(evidence).replace(evidence.commit or "", (evidence.commit or "")[:12])
        output.say(output.paragraph(place, "    ", "      "))
        if evidence.quote and one_line(evidence.quote) != one_line(found.content):
            output.say(
                output.paragraph(one_line(evidence.quote, 300), "      “", "      "), dim=True
            )
    if len(chain) > 1:
        heading("Replaced versions")
        for each in chain:
            here = " (this)" if each.id == found.id else ""
            line = f"{each.short_id}{here}  {one_line(each.content)}"
            output.say(output.paragraph(line, "    ", "      "))


def _print_data(memory: TypedMemory) -> None:
    """Print the fields of the memory's type; steps only if its text does not have them."""
    lines = []
    for name, value in memory.data.items():
        if name == "steps":
            steps = [(step["order"], str(step["description"])) for step in value]
            if not all(text.split("\n")[0] in memory.content for _, text in steps):
                lines += [(f"{order}. {text}", " " * 7) for order, text in steps]
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        lines.append((f"{name.replace('_', ' ')}: {text}", " " * 6))
    if lines:
        heading("More")
    output.print_lines(output.paragraph(line, "    ", indent) for line, indent in lines)


@click.command("why")
@memory_argument
@with_memory
def why(memory: Memory, memory_id: str) -> Reply:
    """Explain where a memory comes from and how far it is trusted.

    Shows its sources, its trust, how its confidence is calculated, what it
    replaced, and its history.
    """
    found = memory.memories.why(memory_id)
    yield {
        "memory": memory_json(found.memory, found.confidence.value, found.code),
        "sources": [
            {
                "evidence": evidence_json(each.evidence),
                "text": each.text,
                "toldBy": each.told_by,
                "isThere": each.is_there,
                "taint": sorted(each.taint),
            }
            for each in found.sources
        ],
        "trust": {"value": found.trust.tier, "reasons": list(found.trust.reasons)},
        "confidence": {
            "value": found.confidence.value,
            "steps": [
                {"text": each.text, "factor": each.factor, "value": each.value}
                for each in found.confidence.steps
            ],
        },
        "staleness": {
            "isStale": found.staleness.is_stale,
            "reasons": [
                {"layer": each.layer, "text": each.text} for each in found.staleness.reasons
            ],
        },
        "injection": {
            "allowed": found.injection.allowed,
            "asInstruction": found.injection.as_instruction,
            "why": found.injection.why,
        },
        **{
            name: [
                {
                    "id": each.short_id,
                    "uuid": each.id,
                    "content": each.content,
                    "createdAt": each.created_at,
                    "isActive": each.is_active,
                    "deprecatedBecause": each.deprecated_because,
                }
                for each in mentioned
            ]
            for name, mentioned in (("chain", found.chain), ("origins", found.origins))
        },
        "events": [
            {
                "id": each.id,
                "kind": each.kind,
                "actor": each.actor,
                "by": each.by,
                "sessionId": each.session_id,
                "at": each.at,
                "before": dict(each.before),
                "after": dict(each.after),
                "isUndone": each.is_undone,
            }
            for each in found.events
        ],
    }
    for line in found.lines():
        if not output.is_terminal():
            output.say(line)
            continue
        indent = " " * (len(line) - len(line.lstrip()))
        output.say(
            output.paragraph(line.strip(), indent, indent + "  "), bold=bool(line) and not indent
        )


@click.command("audit")
@click.option(
    "--examples",
    type=click.IntRange(0, 50),
    metavar="N",
    default=3,
    show_default=True,
    help="Show N examples of each.",
)
@with_memory
def audit(memory: Memory, examples: int) -> Reply:
    """Count junk, duplicates, contradictions and stale memories."""
    found = memory.memories.audit(examples=examples)
    measured = [(name, getattr(found, name)) for name in MEASURES]
    yield {
        "total": found.total,
        "active": found.active,
        "health": found.health,
        "byType": dict(found.by_type),
        **{
            {"without_evidence": "withoutEvidence"}.get(name, name): {
                "count": measure.count,
                "share": measure.share,
                "examples": [
                    {"ids": list(each.memory_ids), "text": each.text, "why": each.why}
                    for each in measure.examples
                ],
            }
            for name, measure in measured
        },
    }
    if output.is_terminal():
        output.say(
            f"{found.active:,} memories, {found.total - found.active:,} forgotten. Health: "
            f"{found.health} of 100."
        )
        output.say()
    output.table(
        ("measure", "count", "share"),
        [(name.replace("_", " "), each.count, f"{each.share:.1%}") for name, each in measured],
    )
    for name, each in measured:
        if each.examples and output.is_terminal():
            output.say("", name.replace("_", " ").capitalize(), bold=True)
            for example in each.examples:
                line = f"{' '.join(example.memory_ids)}  {example.text}: {example.why}"
                output.say(output.paragraph(line, "  ", "    "))
