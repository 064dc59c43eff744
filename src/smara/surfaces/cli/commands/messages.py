"""``smara messages``"""

from __future__ import annotations

import click

from smara.messages.models import ROLES, Message, Role
from smara.surfaces.cli import output
from smara.surfaces.cli.finding import find_message, find_task_id
from smara.surfaces.cli.options import Call, common, complete_task, complete_thread, standard_input


@click.group("messages")
def command() -> None:
    """Add, list and show messages."""


@command.command("add")
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
def add(
    call: Call,
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


@command.command("list")
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
    call: Call, thread_id: str, limit: int, before: int | None, after: int | None
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


@command.command("show")
@click.argument("message_id", metavar="MESSAGE")
@click.option(
    "--around",
    type=click.IntRange(0, 100),
    metavar="N",
    default=0,
    help="So many messages before and after it, too.",
)
@common
def show(call: Call, message_id: str, around: int) -> None:
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
