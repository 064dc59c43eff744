"""``smara threads``"""

from __future__ import annotations

import click

from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common, complete_thread


@click.group("threads")
def command() -> None:
    """List, show and change threads."""


@command.command("list")
@click.option("--resource", metavar="ID", help="Only threads of this resource.")
@click.option("--kind", type=click.Choice(["conversation", "subagent", "compaction"]))
@click.option("--limit", type=click.IntRange(1), metavar="N", default=50, show_default=True)
@common
def list_threads(call: Call, resource: str | None, kind: str | None, limit: int) -> None:
    """Threads, the most recently used first."""
    with call.memory() as memory:
        threads = memory.threads.list(resource_id=resource, kind=kind, limit=limit)  # type: ignore[arg-type]  # click checked it
        warnings = memory.warnings
    if call.as_json:
        output.envelope([output.thread_json(thread) for thread in threads], warnings)
        return
    output.warn(warnings)
    if not threads and output.is_terminal():
        output.say("No threads yet. `smara import FILE` or `smara messages add` makes the first.")
        return
    rows = [
        (
            thread.id,
            thread.kind,
            thread.message_count,
            output.moment(thread.updated_at),
            output.short(thread.title or "", 80),
        )
        for thread in threads
    ]
    output.table(
        ("thread", "kind", "messages", "last used", "title"), rows, folding=("thread", "title")
    )


@command.command("show")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@common
def show(call: Call, thread_id: str) -> None:
    """One thread: who it belongs to, how long it is, what is compacted."""
    with call.memory() as memory:
        thread = memory.threads.get(thread_id)
        compactions = memory.compactions.list(thread_id)
        warnings = memory.warnings
    if call.as_json:
        data = output.thread_json(thread) | {
            "compactions": [output.compaction_json(each) for each in compactions]
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    output.facts(
        [
            ("thread", thread.id),
            ("title", thread.title or ""),
            ("kind", thread.kind),
            ("resource", thread.resource_id),
            ("parent", thread.parent_id or ""),
            ("messages", f"{thread.message_count:,}"),
            ("tokens", f"{thread.token_count:,}"),
            ("created", output.moment(thread.created_at)),
            ("last used", output.moment(thread.updated_at)),
            ("compactions", str(sum(each.undone_at is None for each in compactions))),
        ]
    )


@command.command("update")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@click.option("--title", metavar="TEXT", required=True)
@common
def update(call: Call, thread_id: str, title: str) -> None:
    """Change a thread's title."""
    with call.memory() as memory:
        thread = memory.threads.update(thread_id, title=title)
    if call.as_json:
        output.envelope(output.thread_json(thread))
    else:
        output.say(f"{thread.id} is now {thread.title!r}.")
