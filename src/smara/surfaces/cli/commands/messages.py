"""Define `smara threads`, `smara messages` and `smara compact`."""

from __future__ import annotations

import click

from smara.core.extract import one_line
from smara.errors import InvalidInputError
from smara.memory import Memory
from smara.messages.models import ROLES, Role
from smara.shapes import Names, message_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.observations import outcome_json
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_task,
    complete_thread,
    find_message,
    find_task_id,
    limit_option,
    text_or_input,
    with_memory,
)
from smara.surfaces.cli.render import say_more

threads_command = click.Group("threads", help="List, show and change threads.")


@threads_command.command("list")
@click.option("--resource", metavar="ID", help="Only threads of this resource.")
@click.option("--kind", type=click.Choice(["conversation", "subagent", "compaction"]))
@limit_option(50)
@with_memory
def list_threads(memory: Memory, resource: str | None, kind: str | None, limit: int) -> Reply:
    """List threads, the most recently used first."""
    threads = memory.threads.list(resource_id=resource, kind=kind, limit=limit + 1)  # type: ignore[arg-type]  # click checked it
    yield [output.camel_case(thread) for thread in threads[:limit]]
    if not threads and output.is_terminal():
        output.say("No threads yet. Add one with `smara import` or `smara messages add`.")
        return
    output.table(
        ("thread", "kind", "messages", "last used", "title"),
        [
            (
                output.short(thread.id),
                thread.kind,
                thread.message_count,
                output.when(thread.updated_at),
                one_line(thread.title or "", 80),
            )
            for thread in threads[:limit]
        ],
        folding=("title",),
        wide=("kind",),
    )
    if len(threads) > limit:
        say_more("There are more: use a larger --limit.")


@threads_command.command("show")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@with_memory
def show_thread(memory: Memory, thread_id: str) -> Reply:
    """Show one thread: its owner, its size and its compactions."""
    thread = memory.threads.get(thread_id)
    compactions = memory.compactions.list(thread_id)
    yield output.camel_case(thread) | {
        "compactions": [output.camel_case(each) for each in compactions]
    }
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


@threads_command.command("update")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@click.option("--title", metavar="TEXT", required=True)
@with_memory
def update_thread(memory: Memory, thread_id: str, title: str) -> Reply:
    """Change a thread's title."""
    thread = memory.threads.update(thread_id, title=title)
    yield output.camel_case(thread)
    output.say(f"Renamed {thread.id} to {thread.title!r}.")


messages_command = click.Group("messages", help="Add, list and show messages.")


@messages_command.command("add")
@click.option("--thread", "thread_id", metavar="ID", required=True, shell_complete=complete_thread)
@click.option("--role", type=click.Choice(ROLES), required=True)
@click.option(
    "--content", metavar="TEXT|-", required=True, help="The text; - reads it from standard input."
)
@click.option("--resource", metavar="ID", help="Who the thread belongs to.")
@click.option(
    "--id", "client_id", metavar="ID", help="Your own id; adding the same id twice stores it once."
)
@click.option(
    "--task", "task_id", metavar="ID", help="The task it belongs to.", shell_complete=complete_task
)
@with_memory
def add_message(
    memory: Memory,
    thread_id: str,
    role: Role,
    content: str,
    resource: str | None,
    client_id: str | None,
    task_id: str | None,
) -> Reply:
    """Add a message to a thread.

    A new thread is created on first use.
    """
    message = memory.messages.add(
        thread_id=thread_id,
        role=role,
        content=text_or_input(content) or "",
        resource_id=resource,
        client_id=client_id,
        task_id=find_task_id(memory, task_id),
    )
    yield message_json(message, Names(memory.tasks.find))
    output.say(f"{message.id}\t{message.thread_id}\t{message.seq}")


@messages_command.command("list")
@click.option("--thread", "thread_id", metavar="ID", required=True, shell_complete=complete_thread)
@limit_option(20, help="Show at most N, the newest.")
@click.option(
    "--before", type=int, metavar="SEQ", help="Only messages before this sequence number."
)
@click.option("--after", type=int, metavar="SEQ", help="Only messages after this sequence number.")
@with_memory
def list_messages(
    memory: Memory, thread_id: str, limit: int, before: int | None, after: int | None
) -> Reply:
    """List the messages of a thread, oldest first."""
    memory.threads.get(thread_id)
    messages = memory.messages.list(thread_id=thread_id, limit=limit, before=before, after=after)
    names = Names(memory.tasks.find)
    yield [message_json(message, names) for message in messages]
    output.table(
        ("seq", "role", "time", "tokens", "content"),
        [
            (
                message.seq,
                message.role,
                output.moment(message.created_at),
                message.token_count,
                one_line(message.raw_content, 200),
            )
            for message in messages
        ],
        folding=("content",),
    )


@messages_command.command("show")
@click.argument("message_id", metavar="MESSAGE")
@click.option(
    "--around",
    type=click.IntRange(0, 100),
    metavar="N",
    default=0,
    help="Also show N messages before and after it.",
)
@with_memory
def show_message(memory: Memory, message_id: str, around: int) -> Reply:
    """Show one message in full. MESSAGE is its id or THREAD:SEQ."""
    shown = memory.messages.around(find_message(memory, message_id).id, before=around, after=around)
    names = Names(memory.tasks.find)
    shapes = [message_json(each, names) for each in shown]
    yield shapes if around else shapes[0]
    for each in shown:
        output.say(f"— {output.message_head(each)} · {each.token_count} tokens", bold=True)
        output.say(each.raw_content, "")


@click.command("compact")
@click.option("--thread", "thread_id", metavar="ID", shell_complete=complete_thread)
@click.option(
    "--keep",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="Keep the newest N messages in full.",
)
@click.option(
    "--when-due", is_flag=True, help="Compact only what is old: beyond 30 and 90 messages."
)
@click.option(
    "--undo", metavar="COMPACTION", help="Show the messages of a compaction in full again."
)
@common
def compact_command(
    call: Invocation, thread_id: str | None, keep: int, when_due: bool, undo: str | None
) -> Reply:
    """Replace old messages in the context by their observations.

    Messages are observed first. They stay stored and searchable in full.
    --undo removes a summary; observations stay.
    """
    if (thread_id is None) == (undo is None):
        raise InvalidInputError("Give either --thread ID to compact, or --undo COMPACTION.")
    if undo is not None:
        with call.memory() as memory:
            undone = memory.compactions.undo(undo)
        yield output.camel_case(undone)
        output.say(f"Messages {undone.start_seq} to {undone.end_seq} are shown in full again.")
        return
    with call.memory() as memory:
        both = memory.compact(thread_id or "", keep, is_when_due=when_due)
    done, observed = both.compacted, both.observed
    if not observed.success and observed.code != "read_only":
        call.warnings.append(f"The thread was not observed: {observed.error}")
    yield {
        "messagesCompacted": done.messages_compacted,
        "messagesWhole": done.messages_whole,
        "compactions": [output.camel_case(each) for each in done.compactions],
        "observations": outcome_json(observed),
        "renewed": both.renewed,
    }
    output.say(
        f"Compacted {output.count(done.messages_compacted, 'message')}; "
        f"{done.messages_whole:,} kept in full."
    )
    rows = [
        (each.id, each.level, f"{each.start_seq}–{each.end_seq}", one_line(each.summary, 160))
        for each in done.compactions
    ]
    if rows:
        output.table(("compaction", "level", "messages", "summary"), rows, folding=("summary",))
    if both.renewed:
        output.say(f"Rebuilt {output.count(both.renewed, 'older summary', 'older summaries')}.")
    if observed.notes:
        output.say(
            f"Added {output.count(observed.notes, 'observation')} from "
            f"{output.count(observed.messages, 'message')}."
        )
