"""Define `smara search` and `smara complete`.

A search prints ranked hits, packed text or a trace; `complete` lists words with a prefix.
"""

from __future__ import annotations

import textwrap
from typing import Any

import click

from smara.core.extract import one_line
from smara.core.text import spans
from smara.messages.models import ROLES
from smara.search.models import KINDS, PHASES, Answer, Hit, PackedAnswer, ThreadAnswer
from smara.shapes import Names, hit_json
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_task,
    complete_thread,
    find_task_id,
    limit_option,
)
from smara.texts import dotted, hit_head

_DEEP_SECONDS = 30.0
_MOST_PARTS = 4
_WEAK = 0.5
"""What is less relevant is more likely no answer than one."""


@click.command("search")
@click.argument("query")
@limit_option(10, 1000)
@click.option(
    "--thread",
    "thread_id",
    metavar="ID",
    help="Only in this thread.",
    shell_complete=complete_thread,
)
@click.option("--resource", "resource_id", metavar="ID", help="Only in threads of this resource.")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    multiple=True,
    help="Only messages of this role; may be repeated.",
)
@click.option(
    "--since", metavar="TIME", help="Only messages from this time on, such as 2026-03-01."
)
@click.option("--until", metavar="TIME", help="Only messages before this time.")
@click.option(
    "--task",
    "task_id",
    metavar="ID",
    help="Only messages of this task.",
    shell_complete=complete_task,
)
@click.option(
    "--source",
    "sources",
    type=click.Choice(tuple(KINDS)),
    multiple=True,
    help="Only this source; may be repeated.",
)
@click.option(
    "--threads",
    "by_thread",
    is_flag=True,
    help="Search for conversations instead of single records.",
)
@click.option(
    "--phase",
    type=click.Choice(PHASES),
    help="What you are doing; it weights the types of memories.",
)
@click.option(
    "--file", "files", metavar="PATH", multiple=True, help="A file you work on; may be repeated."
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    metavar="SCORE",
    help="Only matches that are this relevant, from 0 to 1; --explain shows it.",
)
@click.option(
    "--deep", is_flag=True, help="Create missing vectors first, and wait for the embedder."
)
@click.option(
    "--pack",
    "budget",
    type=click.IntRange(100),
    metavar="TOKENS",
    help="Print one text within a budget of tokens.",
)
@click.option("--full", is_flag=True, help="Print full messages instead of snippets.")
@click.option(
    "--explain", is_flag=True, help="Print the reasons and the score of each match, and the cost."
)
@common
def search_command(
    call: Invocation,
    query: str,
    limit: int,
    thread_id: str | None,
    role: tuple[str, ...],
    task_id: str | None,
    sources: tuple[str, ...],
    by_thread: bool,
    phase: str | None,
    files: tuple[str, ...],
    budget: int | None,
    full: bool,
    explain: bool,
    **filters: Any,
) -> Reply:
    """Search everything Smara remembers.

    QUERY is words, a question, a name or a part of one, a path, or an "exact phrase".
    """
    with call.memory() as memory:
        if filters["deep"]:
            memory.embeddings.embed_pending(deadline_seconds=_DEEP_SECONDS)
        if by_thread:
            return _reply_threads(memory.search_threads(query, limit, role=role or None, **filters))
        answer = memory.search(
            query,
            limit,
            thread_id=thread_id,
            task_id=find_task_id(memory, task_id),
            neighbors=1,
            sources=sources or None,
            phase=phase,
            files=files,
            role=role or None,
            **filters,
        )
        call.warnings += answer.warnings
        packed = memory.pack(answer, budget, phase=phase) if budget else None
        names = Names(memory.tasks.find)
        results = [hit_json(hit, names) for hit in (answer if packed is None else packed.hits)]
        nearest = [hit_json(hit, names) for hit in answer.nearest]
    if packed is not None:
        return _reply_packed(packed, results)
    return _reply_hits(answer, results, nearest, full=full, explain=explain)


def _reply_threads(answer: ThreadAnswer) -> Reply:
    results, nearest = (
        [
            {
                "threadId": each.thread_id,
                "resourceId": each.resource_id,
                "title": each.title,
                "rank": each.rank,
                "score": each.score,
                "why": list(each.why),
            }
            for each in threads
        ]
        for threads in (answer, answer.nearest)
    )
    data = {"results": results, "totalHits": len(results)}
    yield data | ({"nearest": nearest} if nearest else {})
    if not answer:
        click.echo(output.NOTHING_FOUND, err=True)
        output.print_nearest(
            f"{output.short(each.thread_id)}: {one_line(each.title or '', 50)}"
            for each in answer.nearest
        )
        return
    output.table(
        ("rank", "thread", "title", "why"),
        [
            (
                each.rank,
                output.short(each.thread_id),
                one_line(each.title or "", 50),
                "; ".join(each.why),
            )
            for each in answer
        ],
        folding=("title", "why"),
    )


def _reply_packed(packed: PackedAnswer, results: list[dict[str, Any]]) -> Reply:
    yield {
        "text": packed.text,
        "tokens": packed.tokens,
        "budgetTokens": packed.budget_tokens,
        "results": results,
        "leftOut": [hit.id for hit in packed.left_out],
        "repeated": [hit.id for hit in packed.repeated],
    }
    click.echo(output.printable(packed.text) if packed.text else "", nl=bool(packed.text))
    click.echo(
        f"{packed.tokens:,} of {packed.budget_tokens:,} tokens used; "
        f"{output.count(len(packed.left_out), 'match', 'matches')} left out.",
        err=True,
    )


def _reply_hits(
    answer: Answer,
    results: list[dict[str, Any]],
    nearest: list[dict[str, Any]],
    full: bool,
    explain: bool,
) -> Reply:
    trace = answer.trace
    explained = {
        "terms": trace.terms,
        "postings": trace.postings,
        "candidates": trace.candidates,
        "isComplete": trace.is_complete,
        "notes": list(trace.notes),
        "queryType": trace.query_type,
        "usedMeaning": trace.used_meaning,
        "stages": list(trace.stages),
    }
    data = {"results": results, "totalHits": answer.total_hits}
    data |= {"nearest": nearest} if nearest else {}
    yield data | ({"trace": explained} if explain else {})
    if not answer:
        click.echo(output.NOTHING_FOUND, err=True)
    output.print_nearest(
        f"{hit_head(shape, _place(hit), is_local=True)}: {hit.snippet}"
        for hit, shape in zip(answer.nearest, nearest, strict=True)
    )
    for hit, shape in zip(answer, results, strict=True):
        _print_hit(hit, shape, full, explain=explain)
    place = next((_place(hit) for hit in answer if hit.seq is not None), "")
    if place and output.is_terminal() and not full:
        output.say(f"smara messages show {place} shows a message whole.", dim=True)
    if explain:
        for stage in trace.stages:
            output.sentence(stage, others="  ")
        cut = "" if trace.is_complete else "; the search was cut short"
        output.say(f"{output.count(answer.total_hits, 'match', 'matches')}{cut}.")


def _print_hit(hit: Hit, shape: dict[str, Any], full: bool, explain: bool) -> None:
    is_terminal = output.is_terminal()
    weak = "weak match" if hit.score < _WEAK else ""
    head = f"{hit.rank}. {dotted(hit_head(shape, _place(hit), is_local=True), weak)}"
    output.say(output.paragraph(head, "", "   ") if is_terminal else head, bold=True)
    lines = [hit.snippet]
    if full:
        lines = hit.content.replace("\r\n", "\n").split("\n")
    elif is_terminal:
        lines = textwrap.wrap(hit.snippet, output.terminal_width() - 3, break_on_hyphens=False)
    for line in lines:
        pieces, at = [], 0
        for start, end in spans(line, hit.terms) if is_terminal else ():
            word = click.style(output.printable(line[start:end]), fg="yellow", bold=True)
            pieces += [output.printable(line[at:start]), word]
            at = end
        click.echo("   " + "".join([*pieces, output.printable(line[at:])]))
    if explain:
        output.sentence(f"   why: {'; '.join(hit.why)}", others="     ")
        output.sentence(f"   score: {_score(hit)}", others="     ")
    if hit.metadata.get("hedge"):
        output.say(output.paragraph(str(hit.metadata["hedge"]), "   but: ", "   "), fg="yellow")
    output.say()


def _place(hit: Hit) -> str:
    """Return where a hit is: in a thread, or the id and the state of a record."""
    if hit.seq is not None:
        return f"{output.short(str(hit.thread_id))}:{hit.seq}"
    if hit.source == "task":
        return dotted(hit.metadata.get("shortId", hit.id), hit.metadata.get("status"))
    if hit.source == "code":
        stale = "the file has changed" if hit.metadata.get("isStale") else ""
        return dotted(hit.title, stale, hit.id)
    is_long = hit.source == "commit" and output.is_terminal()
    return hit.id[:9] if is_long else output.short(hit.thread_id or hit.id)


def _score(hit: Hit) -> str:
    """Return what made the relevance and the rank of a hit.

    Such as ``relevance 0.93: words 0.62, 80% of the query's words by weight in it, meaning 0.48,
    rank by 0.71``.
    """
    stages = hit.stages
    if stages is None:
        return f"{hit.score:.2f}"
    meaning = [] if stages.meaning is None else [f"meaning {stages.meaning:.2f}"]
    factors = [f"{name} × {factor:.2f}" for name, factor in stages.factors]
    most = sorted(stages.parts, key=lambda part: -abs(part[1]))[:_MOST_PARTS]
    placed = "; ".join(f"{name} {part:+.1f}" for name, part in most)
    nowhere = f"{stages.unknown:.0%} of the query stands nowhere"
    unknown = [] if nowhere.startswith("0%") else [nowhere]
    where = "in it or beside it" if hit.seq is not None else "in it"
    return ", ".join(
        [
            f"relevance {hit.score:.2f}: words {stages.words:.2f}",
            f"{stages.coverage:.0%} of the query's words by weight {where}",
            *meaning,
            *unknown,
            f"rank by {stages.fused:.2f}",
            *factors,
            *([f"among messages by {placed}"] if placed else []),
        ]
    )


@click.command("complete")
@click.argument("prefix")
@limit_option(20, 1000)
@common
def complete_command(call: Invocation, prefix: str, limit: int) -> Reply:
    """List words and names of this project that begin with PREFIX."""
    with call.memory() as memory:
        words = memory.complete(prefix, limit)
    yield words
    for word in words:
        output.say(word)
