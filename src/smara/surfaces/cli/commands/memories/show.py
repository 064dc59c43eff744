"""Define `smara memories list`, `search`, `show`, `why` and `audit`.

The arguments that all memory commands share are here, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from smara.core.freshness import Freshness
from smara.errors import InvalidInputError
from smara.knowledge.models import SOURCES, TIERS, TYPES, AddResult, Evidence, TypedMemory
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common, complete_memory, standard_input
from smara.surfaces.cli.render import memories
from smara.surfaces.cli.render import memories as memory_lines
from smara.surfaces.cli.render.memories import (
    added_json,
    audit_json,
    code_line,
    memory_json,
    why_json,
)
from smara.surfaces.cli.render.tasks import say_more

F = TypeVar("F", bound=Callable[..., Any])
PERSON: dict[str, Any] = {"by": "person"}
"""Whoever types at the command line is a person; agents have their own door."""

memory_argument = click.argument("memory_id", metavar="MEMORY", shell_complete=complete_memory)
memory_arguments = click.argument(
    "memory_ids", metavar="MEMORY...", nargs=-1, required=True, shell_complete=complete_memory
)


def with_actor(function: F) -> Callable[..., Any]:
    """Give a command ``--actor``; it gets who acts as ``who``. Stands below ``common``."""

    @click.option("--actor", metavar="NAME", help="Who does it; also SMARA_ACTOR. Without it, you.")
    @wraps(function)
    def wrapped(call: Invocation, actor: str | None, **options: Any) -> Any:
        return function(call, who={"actor": actor, **PERSON}, **options)

    return wrapped


def text_or_input(text: str | None) -> str | None:
    """What was given; ``-`` reads standard input."""
    return standard_input() if text == "-" else text


def worth_of(memory: Memory, memories: Iterable[TypedMemory]) -> dict[str, float]:
    """What memories are worth now, by id."""
    return {each.id: memory.memories.confidence(each).value for each in memories}


def tell(call: Invocation, memory: Memory, changed: list[TypedMemory], verb: str) -> None:
    """The answer to a change of one or several memories."""
    worth, warnings, code = (
        worth_of(memory, changed),
        memory.warnings,
        memory.memories.freshness(changed),
    )
    if call.as_json:
        told = [memory_json(each, worth[each.id], code.get(each.id)) for each in changed]
        output.envelope({"memories": told}, warnings)
        return
    output.warn(warnings)
    memory_lines.changed(changed, verb)


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
    click.echo(f"{memories.mark(memory)} ", nl=False)
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
        ("state", memories.state_of(memory)),
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


def tell_added(
    call: Invocation,
    memory: Memory,
    added: AddResult,
    guessed: tuple[str, ...] = (),
    verb: str = "Added",
) -> None:
    """Print the outcome; a refusal leaves with an error that says why. ``guessed`` is why the type
    was chosen.
    """
    if added.memory is None:
        because = "; ".join(added.why)
        raise InvalidInputError(
            f"It was not remembered: {because}. Say it in other words, or teach it with `smara "
            "remember`.",
            why=added.why,
        )
    warnings, found = memory.warnings, added.memory
    code = memory.memories.freshness([found]).get(found.id)
    if call.as_json:
        guess = {"guessedBecause": list(guessed)} if guessed else {}
        output.envelope(added_json(added, code) | guess, warnings)
        return
    output.warn(warnings)
    if not output.is_terminal():
        output.row((found.short_id, added.outcome, found.type, found.content))
        return
    head = (
        f"{verb} {found.short_id}"
        if added.outcome == "added"
        else f"Known already as {found.short_id}"
    )
    output.say(output.paragraph(f"{head}: {' '.join(found.content.split())}", "", "  "), bold=True)
    _tell_kind(found, guessed, memory.memories.confidence(found).value)
    if code is not None:
        places = ", ".join(each.now or each.was for each in code.anchors)
        output.say(
            output.paragraph(
                f"It speaks of {places}; when that changes, you are told.", "  ", "  "
            ),
            dim=True,
        )
    for each in (*added.superseded, *added.disputes):
        other = memory.memories.get(each)
        how = "It takes the place of" if each in added.superseded else "It contradicts"
        output.say(
            output.paragraph(
                f"{how} {other.short_id}: {' '.join(other.content.split())}", "  ", "    "
            )
        )
    if added.disputes:
        click.echo("  `smara memories review` asks which of them is true.")


def _tell_kind(memory: TypedMemory, guessed: tuple[str, ...], confidence: float) -> None:
    output.say(output.paragraph(memories.facts(memory, confidence), "  ", "  "), dim=True)
    if guessed:
        told = (
            f"Its type is a guess ({', '.join(guessed)}); `smara memories edit "
            f"{memory.short_id} --type T` changes it."
        )
        output.say(output.paragraph(told, "  ", "  "), dim=True)


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
    call: Invocation,
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
    memories.print_list(page, worth, code=code)
    if page.next_offset is not None:
        say_more(f"There are more: --offset {page.next_offset}, or a larger --limit.")
    elif not page and output.is_terminal():
        output.say(_none(totals.total, totals.active))
    elif output.is_terminal():
        output.say()
        click.echo(memories.legend(page))
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
def search(call: Invocation, query: str, type_: Any, files: tuple[str, ...], limit: int) -> None:
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
    memories.print_list(found, {each.memory.id: each.confidence for each in answer.hits}, code=code)


@click.command("show")
@memory_argument
@common
def show(call: Invocation, memory_id: str) -> None:
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
def why(call: Invocation, memory_id: str) -> None:
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
def audit(call: Invocation, examples: int) -> None:
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
