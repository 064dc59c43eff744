"""Define `smara threads`, `smara messages` and `smara compact`."""

from __future__ import annotations

import click

from smara.errors import InvalidInputError
from smara.messages.models import ROLES, Message, Role
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    common,
    complete_task,
    complete_thread,
    find_message,
    find_task_id,
    standard_input,
)
from smara.surfaces.cli.render.observations import outcome_json


@click.group("threads")
def threads_command() -> None:
    """List, show and change threads."""


@threads_command.command("list")
@click.option("--resource", metavar="ID", help="Only threads of this resource.")
@click.option("--kind", type=click.Choice(["conversation", "subagent", "compaction"]))
@click.option("--limit", type=click.IntRange(1), metavar="N", default=50, show_default=True)
@common
def list_threads(call: Invocation, resource: str | None, kind: str | None, limit: int) -> None:
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


@threads_command.command("show")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@common
def show_thread(call: Invocation, thread_id: str) -> None:
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


@threads_command.command("update")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@click.option("--title", metavar="TEXT", required=True)
@common
def update_thread(call: Invocation, thread_id: str, title: str) -> None:
    """Change a thread's title."""
    with call.memory() as memory:
        thread = memory.threads.update(thread_id, title=title)
    if call.as_json:
        output.envelope(output.thread_json(thread))
    else:
        output.say(f"{thread.id} is now {thread.title!r}.")


@click.group("messages")
def messages_command() -> None:
    """Add, list and show messages."""


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
@common
def add_message(
    call: Invocation,
    thread_id: str,
    role: Role,
    content: str,
    resource: str | None,
    client_id: str | None,
    task_id: str | None,
) -> None:
    """Append one message; the thread is made on first use."""
    text = standard_input() if content == "-" else content
    with call.memory() as memory:
        message = memory.messages.add(
            thread_id=thread_id,
            role=role,
            content=text,
            resource_id=resource,
            client_id=client_id,
            task_id=find_task_id(memory, task_id),
        )
        warnings = memory.warnings
    if call.as_json:
        output.envelope(output.message_json(message), warnings)
        return
    output.warn(warnings)
    output.say(f"{message.id}\t{message.thread_id}\t{message.seq}")


@messages_command.command("list")
@click.option("--thread", "thread_id", metavar="ID", required=True, shell_complete=complete_thread)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=20,
    show_default=True,
    help="The newest that many.",
)
@click.option(
    "--before", type=int, metavar="SEQ", help="Only messages before this sequence number."
)
@click.option("--after", type=int, metavar="SEQ", help="Only messages after this sequence number.")
@common
def list_messages(
    call: Invocation, thread_id: str, limit: int, before: int | None, after: int | None
) -> None:
    """Messages of a thread, oldest first."""
    with call.memory() as memory:
        memory.threads.get(thread_id)
        messages = memory.messages.list(
            thread_id=thread_id, limit=limit, before=before, after=after
        )
        warnings = memory.warnings
    if call.as_json:
        output.envelope([output.message_json(message) for message in messages], warnings)
        return
    output.warn(warnings)
    rows = [
        (
            message.seq,
            message.role,
            output.moment(message.created_at),
            message.token_count,
            _line(message),
        )
        for message in messages
    ]
    output.table(("seq", "role", "time", "tokens", "content"), rows, folding=("content",))


def _line(message: Message) -> str:
    return output.short(message.raw_content, 200)


@messages_command.command("show")
@click.argument("message_id", metavar="MESSAGE")
@click.option(
    "--around",
    type=click.IntRange(0, 100),
    metavar="N",
    default=0,
    help="So many messages before and after it, too.",
)
@common
def show_message(call: Invocation, message_id: str, around: int) -> None:
    """One message, word for word; THREAD:SEQ works as well as its id."""
    with call.memory() as memory:
        message = find_message(memory, message_id)
        shown = memory.messages.around(message.id, before=around, after=around)
    if call.as_json:
        output.envelope(
            [output.message_json(each) for each in shown]
            if around
            else output.message_json(message)
        )
        return
    for each in shown:
        output.say(
            f"— {each.role} · {each.thread_id}:{each.seq} · {output.moment(each.created_at)}"
            f" · {each.token_count} tokens",
            bold=True,
        )
        output.say(each.raw_content)
        output.say()


_OFF = "read_only"


@click.command("compact")
@click.option("--thread", "thread_id", metavar="ID", shell_complete=complete_thread)
@click.option(
    "--keep",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="Keep the newest that many whole.",
)
@click.option("--when-due", is_flag=True, help="Only what the rules call old (30 and 90 messages).")
@click.option("--undo", metavar="COMPACTION", help="Show the messages of a compaction whole again.")
@common
def compact_command(
    call: Invocation, thread_id: str | None, keep: int, when_due: bool, undo: str | None
) -> None:
    """Show old messages as what was observed of them. Every word stays stored and can be found.

    They are observed first. --undo takes a summary back; observations stay.
    """
    if (thread_id is None) == (undo is None):
        raise InvalidInputError("Give either --thread ID to compact, or --undo COMPACTION.")
    with call.memory() as memory:
        if undo is not None:
            undone = memory.compactions.undo(undo)
            if call.as_json:
                output.envelope(output.compaction_json(undone))
            else:
                output.say(f"Messages {undone.start_seq} to {undone.end_seq} are shown as before.")
            return
        both = memory.compact(thread_id or "", keep, is_when_due=when_due)
    done, observed = both.compacted, both.observed
    warnings = (
        []
        if observed.success or observed.code == _OFF
        else [f"The thread was not observed: {observed.error}"]
    )
    if call.as_json:
        data = {
            "messagesCompacted": done.messages_compacted,
            "messagesWhole": done.messages_whole,
            "compactions": [output.compaction_json(each) for each in done.compactions],
            "observations": outcome_json(observed),
            "renewed": both.renewed,
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    output.say(f"{done.messages_compacted} messages compacted, {done.messages_whole} left whole.")
    rows = [
        (each.id, each.level, f"{each.start_seq}–{each.end_seq}", output.short(each.summary, 160))
        for each in done.compactions
    ]
    if rows:
        output.table(("compaction", "level", "messages", "summary"), rows, folding=("summary",))
    if both.renewed:
        output.say(f"{both.renewed:,} older summaries were made anew from observations.")
    if observed.notes:
        output.say(f"{observed.notes:,} new observations of {observed.messages:,} messages.")
