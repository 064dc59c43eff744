"""Define `smara search`: print ranked hits, packed text or a trace."""

from __future__ import annotations

from typing import Any

import click

from smara.messages.models import ROLES
from smara.search.models import KINDS, PHASES, Answer, Hit, PackedAnswer
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    common,
    complete_task,
    complete_thread,
    find_task_id,
)

_DEEP_SECONDS = 30.0


@click.command("search")
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=10, show_default=True)
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
    help="Only this; may be repeated.",
)
@click.option(
    "--threads", "by_thread", is_flag=True, help="Find conversations instead of single things."
)
@click.option(
    "--phase",
    type=click.Choice(PHASES),
    help="What you are doing: it decides which memories count for more.",
)
@click.option(
    "--file", "files", metavar="PATH", multiple=True, help="A file in play; may be repeated."
)
@click.option(
    "--deep", is_flag=True, help="Make what vectors are missing, and wait for the embedder."
)
@click.option(
    "--pack",
    "budget",
    type=click.IntRange(100),
    metavar="TOKENS",
    help="Print one text of so many tokens.",
)
@click.option("--full", is_flag=True, help="Print whole messages instead of snippets.")
@click.option(
    "--explain", is_flag=True, help="Say why each hit is there, and what the search cost."
)
@common
def search_command(
    call: Invocation,
    query: str,
    limit: int,
    thread_id: str | None,
    resource_id: str | None,
    role: tuple[str, ...],
    since: str | None,
    until: str | None,
    task_id: str | None,
    sources: tuple[str, ...],
    by_thread: bool,
    phase: str | None,
    files: tuple[str, ...],
    deep: bool,
    budget: int | None,
    full: bool,
    explain: bool,
) -> None:
    """Find anything remembered: words, questions, names, paths, parts of names, "exact phrases"."""
    filters: dict[str, Any] = {
        "resource_id": resource_id,
        "role": role or None,
        "since": since,
        "until": until,
        "deep": deep,
    }
    with call.memory() as memory:
        if deep:
            memory.embeddings.embed_pending(deadline_seconds=_DEEP_SECONDS)
        if by_thread:
            _show_threads(call, memory.search_threads(query, limit, **filters))
            return
        task = find_task_id(memory, task_id)
        answer = memory.search(
            query,
            limit,
            thread_id=thread_id,
            task_id=task,
            neighbors=1,
            sources=sources or None,
            phase=phase,
            files=files,
            **filters,
        )
        warnings = [*memory.warnings, *answer.warnings]
        packed = None if budget is None else memory.pack(answer, budget, phase=phase)
    if packed is not None:
        _show_packed(call, packed, warnings)
        return
    if call.as_json:
        data = {"results": [hit_json(hit) for hit in answer], "totalHits": answer.total_hits}
        output.envelope(data | ({"trace": _trace_json(answer)} if explain else {}), warnings)
        return
    output.warn(warnings)
    _show(answer, full, explain)


def hit_json(hit: Hit) -> dict[str, Any]:
    """A hit in the shape every door uses."""
    return {
        "id": hit.id,
        "source": hit.source,
        "content": hit.content,
        "rank": hit.rank,
        "taskId": hit.task_id,
        "createdAt": hit.created_at,
        "threadId": hit.thread_id,
        "score": hit.score,
        "why": list(hit.why),
        "snippet": hit.snippet,
        "role": hit.role,
        "seq": hit.seq,
        "resourceId": hit.resource_id,
        "type": hit.type,
        "title": hit.title,
        "files": list(hit.files),
        "isConfirmed": hit.is_confirmed,
        "freshness": hit.metadata.get("freshness"),
        "hedge": hit.metadata.get("hedge"),
        "stages": _stages_json(hit),
        "before": [
            {"id": each.id, "role": each.role, "seq": each.seq, "snippet": each.snippet}
            for each in hit.before
        ],
        "after": [
            {"id": each.id, "role": each.role, "seq": each.seq, "snippet": each.snippet}
            for each in hit.after
        ],
    }


def _stages_json(hit: Hit) -> dict[str, Any] | None:
    stages = hit.stages
    if stages is None:
        return None
    return {
        "words": round(stages.words, 4),
        "meaning": None if stages.meaning is None else round(stages.meaning, 4),
        "fused": round(stages.fused, 4),
        "factors": [[name, round(factor, 4)] for name, factor in stages.factors],
    }


def _trace_json(answer: Answer) -> dict[str, Any]:
    trace = answer.trace
    return {
        "terms": trace.terms,
        "postings": trace.postings,
        "candidates": trace.candidates,
        "isComplete": trace.is_complete,
        "notes": list(trace.notes),
        "queryType": trace.query_type,
        "usedMeaning": trace.used_meaning,
        "stages": list(trace.stages),
    }


def _show(answer: Answer, full: bool, explain: bool) -> None:
    if not answer:
        click.echo("Nothing found. Try fewer or other words, or a part of a name.", err=True)
        if not explain:
            return
    is_terminal = output.is_terminal()
    for hit in answer:
        output.say(
            f"{hit.rank}. {_head(hit)} · {output.moment(hit.created_at)} · {hit.score:.2f}",
            bold=True,
        )
        for line in _lines(hit, full, is_terminal):
            click.echo(f"   {_lit(line, hit) if is_terminal else output.printable(line)}")
        if explain:
            output.say(f"   why: {'; '.join(hit.why)}")
            output.say(f"   score: {_stages(hit)}")
        if hit.metadata.get("hedge"):
            output.say(output.paragraph(str(hit.metadata["hedge"]), "   but: ", "   "), fg="yellow")
        output.say()
    if explain:
        for stage in answer.trace.stages:
            output.say(stage)
        output.say(
            f"{answer.total_hits:,} hold any of "
            f"it{'' if answer.trace.is_complete else '; cut short'}."
        )


def _head(hit: Hit) -> str:
    """What a hit is, in a few words."""
    if hit.seq is not None:
        return f"{hit.role} · {hit.thread_id}:{hit.seq}"
    if hit.source == "task":
        return f"task {hit.metadata.get('shortId', hit.id)} · {hit.metadata.get('status')}"
    if hit.source == "code":
        mark = " · its file has changed since" if hit.metadata.get("isStale") else ""
        return f"code · {hit.title or hit.type}{mark} · {hit.id}"
    what = f"{hit.source} · {hit.type}" if hit.type else hit.source
    mark = "" if hit.is_confirmed else " · unconfirmed"
    return f"{what}{mark} · {hit.thread_id or hit.id}"


def _stages(hit: Hit) -> str:
    """``words 0.62, meaning 0.48, together 0.71, source user_taught × 1.40``."""
    stages = hit.stages
    if stages is None:
        return f"{hit.score:.2f}"
    told = [f"words {stages.words:.2f}"]
    if stages.meaning is not None:
        told.append(f"meaning {stages.meaning:.2f}")
    told.append(f"together {stages.fused:.2f}")
    return ", ".join([*told, *(f"{name} × {factor:.2f}" for name, factor in stages.factors)])


def _show_packed(call: Invocation, packed: PackedAnswer, warnings: list[str]) -> None:
    if call.as_json:
        data = {
            "text": packed.text,
            "tokens": packed.tokens,
            "budgetTokens": packed.budget_tokens,
            "results": [hit_json(hit) for hit in packed.hits],
            "leftOut": [hit.id for hit in packed.left_out],
            "repeated": [hit.id for hit in packed.repeated],
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    click.echo(output.printable(packed.text) if packed.text else "", nl=bool(packed.text))
    click.echo(
        f"{packed.tokens} of {packed.budget_tokens} tokens; {len(packed.left_out)} left out.",
        err=True,
    )


def _lines(hit: Hit, full: bool, is_terminal: bool) -> list[str]:
    """What to print of a hit: its own lines, or a snippet set to the width of the terminal."""
    if full:
        return hit.content.replace("\r\n", "\n").split("\n")
    if not is_terminal:
        return [hit.snippet]
    import textwrap

    return textwrap.wrap(hit.snippet, output.terminal_width() - 3, break_on_hyphens=False)


def _lit(text: str, hit: Hit) -> str:
    """The text with the query's words in bold."""
    from smara.core.text import spans

    found, at = [], 0
    for start, end in spans(text, hit.terms):
        found += [
            output.printable(text[at:start]),
            click.style(output.printable(text[start:end]), fg="yellow", bold=True),
        ]
        at = end
    return "".join([*found, output.printable(text[at:])])


def _show_threads(call: Invocation, found: list[Any]) -> None:
    if call.as_json:
        data = [
            {
                "threadId": each.thread_id,
                "resourceId": each.resource_id,
                "title": each.title,
                "rank": each.rank,
                "score": each.score,
                "why": list(each.why),
            }
            for each in found
        ]
        output.envelope({"results": data, "totalHits": len(data)})
        return
    rows = [
        (
            each.rank,
            f"{each.score:.2f}",
            each.thread_id,
            output.short(each.title or "", 50),
            "; ".join(each.why),
        )
        for each in found
    ]
    output.table(
        ("rank", "score", "thread", "title", "why"), rows, folding=("thread", "title", "why")
    )
