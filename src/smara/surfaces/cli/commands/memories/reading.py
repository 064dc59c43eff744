"""``smara memories list``, ``search``, ``show``, ``why`` and ``audit``"""

from __future__ import annotations

from typing import Any

import click

from smara.knowledge.models import SOURCES, TIERS, TYPES
from smara.surfaces.cli import memory_lines, output
from smara.surfaces.cli.commands.memories.asking import memory_argument, worth_of
from smara.surfaces.cli.memory_card import print_card
from smara.surfaces.cli.memory_shapes import audit_json, memory_json, why_json
from smara.surfaces.cli.options import Call, common
from smara.surfaces.cli.task_lines import say_more

_OFFSET = click.option(
    "--offset",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Leave out the first that many.",
)
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
@click.option("--trust", "tier", type=click.Choice(TIERS), help="Only of this tier.")
@click.option("--file", metavar="PATH", help="Only what speaks of this file.")
@click.option("--tag", metavar="TEXT", help="Only with this tag.")
@click.option("--pinned", is_flag=True, help="Only pinned ones.")
@click.option("--forgotten", is_flag=True, help="Those put aside, instead.")
@click.option("--all", "with_all", is_flag=True, help="Those put aside, too.")
@click.option(
    "--by-confidence", is_flag=True, help="The most certain first, instead of the newest."
)
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=30, show_default=True)
@_OFFSET
@common
def list_memories(
    call: Call,
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
) -> None:
    """Memories, the newest first."""
    state: Any = "all" if with_all else "deprecated" if forgotten else "active"
    with call.memory() as memory:
        page = memory.memories.list(
            type=type_,
            source=source,
            tier=tier,
            file=file,
            tag=tag,
            is_pinned=True if pinned else None,
            state=state,
            order="confidence" if by_confidence else "newest",
            limit=limit,
            offset=offset,
        )
        worth, code = worth_of(memory, page), memory.memories.freshness(page)
        totals = memory.memories.totals()
        warnings = memory.warnings
    if call.as_json:
        listed = [memory_json(each, worth[each.id], code.get(each.id)) for each in page]
        output.envelope({"memories": listed, "nextOffset": page.next_offset}, warnings)
        return
    output.warn(warnings)
    memory_lines.print_list(page, worth, code=code)
    if page.next_offset is not None:
        say_more(f"There are more: --offset {page.next_offset}, or a larger --limit.")
    elif not page and output.is_terminal():
        output.say(_none(totals.total, totals.active))
    elif output.is_terminal():
        output.say()
        click.echo(memory_lines.legend(page))
        if totals.to_review:
            say_more(f"{totals.to_review:,} wait for you: `smara memories review`.")


def _none(total: int, active: int) -> str:
    if not total:
        return 'No memories yet. `smara remember "What is to be remembered"` makes the first.'
    return (
        "No memory fits. Ask for less, or --all for those put aside, too."
        if active
        else "All were put aside: --all."
    )


@click.command("search")
@click.argument("query")
@_TYPE
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="Only what speaks of this file; may be repeated.",
)
@click.option("--limit", type=click.IntRange(1, 200), metavar="N", default=10, show_default=True)
@common
def search(call: Call, query: str, type_: Any, files: tuple[str, ...], limit: int) -> None:
    """Memories by their words, the best first."""
    with call.memory() as memory:
        answer = memory.search_memories(
            query, limit, types=[type_] if type_ else None, files=files or None
        )
        warnings = [*memory.warnings, *answer.warnings]
    if call.as_json:
        hits = [
            {
                "memory": memory_json(each.memory, each.confidence, each.code),
                "rank": each.rank,
                "score": each.score,
                "why": list(each.why),
                "snippet": each.snippet,
            }
            for each in answer.hits
        ]
        output.envelope({"results": hits, "totalHits": answer.total_hits}, warnings)
        return
    output.warn(warnings)
    found = [each.memory for each in answer.hits]
    if not found and output.is_terminal():
        output.say(
            "No memory found. Try other words; `smara search` looks through everything that was "
            "said."
        )
        return
    code = {each.memory.id: each.code for each in answer.hits if each.code is not None}
    memory_lines.print_list(
        found, {each.memory.id: each.confidence for each in answer.hits}, code=code
    )


@click.command("show")
@memory_argument
@common
def show(call: Call, memory_id: str) -> None:
    """One memory with all that is known of it."""
    with call.memory() as memory:
        found = memory.memories.get(memory_id)
        chain = memory.memories.chain(found.id)
        confidence, code = (
            memory.memories.confidence(found).value,
            memory.memories.freshness([found]).get(found.id),
        )
        warnings = memory.warnings
    if call.as_json:
        data = memory_json(found, confidence, code) | {"chain": [each.short_id for each in chain]}
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    print_card(found, confidence, chain, code=code)


@click.command("why")
@memory_argument
@common
def why(call: Call, memory_id: str) -> None:
    """Why a memory is there, and what it is worth now.

    Where it came from, how far it is trusted, how its confidence is worked
    out, what took the place of what, and what happened to it.
    """
    with call.memory() as memory:
        found = memory.memories.why(memory_id)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(why_json(found), warnings)
        return
    output.warn(warnings)
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
    help="For each.",
)
@common
def audit(call: Call, examples: int) -> None:
    """Measure junk, repetition, contradictions and staleness."""
    with call.memory() as memory:
        found = memory.memories.audit(examples=examples)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(audit_json(found, MEASURES), warnings)
        return
    output.warn(warnings)
    measured = [(name.replace("_", " "), getattr(found, name)) for name in MEASURES]
    if output.is_terminal():
        output.say(
            f"{found.active:,} memories, {found.total - found.active:,} put aside. Health: "
            f"{found.health} of 100."
        )
        output.say()
    rows = [(name, each.count, f"{each.share:.1%}") for name, each in measured]
    output.table(("of the active ones", "count", "share"), rows)
    for name, each in measured:
        if each.examples and output.is_terminal():
            output.say()
            output.say(name.capitalize(), bold=True)
            for example in each.examples:
                said = f"{' '.join(example.memory_ids)}  {example.text}: {example.why}"
                output.say(output.paragraph(said, "  ", "    "))
