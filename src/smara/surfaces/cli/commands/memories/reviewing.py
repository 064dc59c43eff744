"""``smara memories review`` and ``trust``"""

from __future__ import annotations

from typing import Any

import click

from smara.errors import InvalidInputError
from smara.knowledge.models import TYPES
from smara.surfaces.cli import memory_lines, output
from smara.surfaces.cli.commands.memories.asking import (
    acting,
    memory_argument,
    memory_arguments,
    tell,
    text_or_input,
    worth_of,
)
from smara.surfaces.cli.memory_shapes import memory_json, trust_json
from smara.surfaces.cli.options import Call, common, complete_memory
from smara.surfaces.cli.task_lines import say_more


@click.group("review", invoke_without_command=True)
@click.option("--type", "type_", type=click.Choice(TYPES), metavar="T", help="Only of this type.")
@click.option("--session", "session_id", metavar="ID", help="Only what this session brought.")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=20, show_default=True)
@click.option(
    "--offset",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Leave out the first that many.",
)
@common
def review(call: Call, type_: Any, session_id: str | None, limit: int, offset: int) -> None:
    """What waits for a person; accept it, mend it, or reject it.

    Without a command: the list.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is not None:
        above = ctx.find_root()
        above.obj = {
            **(above.obj or {}),
            "db": call.db,
            "project": call.project,
            "as_json": call.as_json,
        }
        return
    with call.memory() as memory:
        memory.memories.check_code()  # what has drifted since waits, too
        page = memory.memories.to_review(
            session_id=session_id, type=type_, limit=limit, offset=offset
        )
        worth, code = worth_of(memory, page), memory.memories.freshness(page)
        total = memory.memories.totals().to_review
        warnings = memory.warnings
    if call.as_json:
        listed = [memory_json(each, worth[each.id], code.get(each.id)) for each in page]
        output.envelope(
            {"memories": listed, "nextOffset": page.next_offset, "toReview": total}, warnings
        )
        return
    output.warn(warnings)
    memory_lines.print_list(page, worth, True, code=code)
    if not page:
        say_more("Nothing waits for you.")
        return
    more = f" The next ones: --offset {page.next_offset}." if page.next_offset is not None else ""
    first = page[0].short_id
    say_more(
        f"{total:,} wait.{more} `smara memories review accept {first}`, or edit, reject; `undo` "
        "takes it back."
    )


@review.command("accept")
@click.argument("memory_ids", metavar="[MEMORY...]", nargs=-1, shell_complete=complete_memory)
@click.option(
    "--all",
    "all_of_them",
    is_flag=True,
    help="All that wait, but for what is tainted or contradicts something.",
)
@click.option(
    "--session", "session_id", metavar="ID", help="With --all: only what this session brought."
)
@common
@acting
def accept(
    call: Call,
    who: dict[str, Any],
    memory_ids: tuple[str, ...],
    all_of_them: bool,
    session_id: str | None,
) -> None:
    """Say that they are true.

    What each of them surely contradicts gives way to it.
    """
    if all_of_them == bool(memory_ids):
        raise InvalidInputError("Name the memories to accept, or give --all; not both.")
    with call.memory() as memory:
        if not all_of_them:
            wanted = [memory.memories.get(each) for each in memory_ids]
            tell(
                call,
                memory,
                [memory.memories.accept(each.id, **who) for each in wanted],
                verb="Accepted",
            )
            return
        done = memory.memories.accept_all(session_id=session_id, **who)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(
            {
                "memories": [memory_json(each) for each in done.accepted],
                "left": [{"memory": memory_json(each), "why": why} for each, why in done.left],
            },
            warnings,
        )
        return
    output.warn(warnings)
    memory_lines.changed(done.accepted, "Accepted")
    for each, why in done.left:
        click.echo(output.printable(f"left: {each.short_id}: {why}"), err=not output.is_terminal())
    if output.is_terminal():
        output.say(
            f"{len(done.accepted):,} accepted, {len(done.left):,} left to be looked at one by one."
        )


@review.command("edit")
@memory_argument
@click.option(
    "--text",
    metavar="TEXT|-",
    help="What it is to say; - reads standard input. Without it, your editor.",
)
@click.option("--type", "type_", type=click.Choice(TYPES), metavar="T", help="Another type.")
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="The files it speaks of, in place of those before.",
)
@click.option(
    "--tag", "tags", metavar="TEXT", multiple=True, help="The tags, in place of those before."
)
@common
@acting
def edit(
    call: Call,
    who: dict[str, Any],
    memory_id: str,
    text: str | None,
    type_: Any,
    files: tuple[str, ...],
    tags: tuple[str, ...],
) -> None:
    """Accept a memory in better words."""
    changes = {
        "content": text_or_input(text),
        "type": type_,
        "files": files or None,
        "tags": tags or None,
    }
    with call.memory() as memory:
        found = memory.memories.get(memory_id)
        if not any(changes.values()):
            if not output.is_terminal():
                raise InvalidInputError(
                    "Say what to change: --text, --type, --file or --tag. An editor needs a "
                    "terminal."
                )
            edited = click.edit(found.content, extension=".md")
            if edited is None or not edited.strip():
                output.say("Nothing was changed.")
                return
            changes["content"] = edited.strip()
        given = {name: value for name, value in changes.items() if value is not None}
        tell(
            call,
            memory,
            [memory.memories.accept(found.id, version=found.version, **given, **who)],
            verb="Accepted",
        )


@review.command("reject")
@memory_arguments
@click.option("--why", metavar="TEXT", default="", help="Kept in the history.")
@common
@acting
def reject(call: Call, who: dict[str, Any], memory_ids: tuple[str, ...], why: str) -> None:
    """Say that they are not to be remembered.

    The same words are not learned again.
    """
    with call.memory() as memory:
        wanted = [memory.memories.get(each) for each in memory_ids]
        tell(
            call,
            memory,
            [memory.memories.reject(each.id, why, **who) for each in wanted],
            verb="Rejected",
        )


@review.command("undo")
@memory_arguments
@common
@acting
def undo(call: Call, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
    """Take back the newest change of each.

    Again to go further back.
    """
    with call.memory() as memory:
        wanted = [memory.memories.get(each) for each in memory_ids]
        tell(
            call,
            memory,
            [memory.memories.undo(each.id, **who) for each in wanted],
            verb="Undone on",
        )


@click.command("trust")
@click.argument("level", required=False, type=click.IntRange(1, 4), metavar="[LEVEL]")
@click.option(
    "--decline", is_flag=True, help="Stay at this level although a more careful one is offered."
)
@common
@acting
def trust(call: Call, who: dict[str, Any], level: int | None, decline: bool) -> None:
    """How far memories are trusted here; LEVEL chooses.

    1 cautious, 2 standard, 3 confident: earned by sessions. 4 autonomous:
    only by your own choice.
    """
    if level is not None and decline:
        raise InvalidInputError("Give a level, or --decline; not both.")
    with call.memory() as memory:
        if level is not None:
            status = memory.memories.set_trust_level(level, **who)
        elif decline:
            status = memory.memories.decline_offer()
        else:
            status = memory.memories.trust()
        warnings = memory.warnings
    if call.as_json:
        output.envelope(trust_json(status), warnings)
        return
    output.warn(warnings)
    _print_trust(
        [
            ("level", f"{status.level} {status.name}: {status.meaning}"),
            ("told unasked", f"what is worth more than {status.inject_above:.0%}"),
            ("sessions", f"{status.sessions:,}"),
            ("confirmed", f"{status.confirmed_share:.0%} of what was learned"),
            ("wrong", f"{status.correction_rate:.0%} of what was used"),
            ("to the next level", "; ".join(status.next_level_needs)),
            ("offered", f"level {status.offer.level}: {status.offer.why}" if status.offer else ""),
        ]
    )


def _print_trust(facts: list[tuple[str, str]]) -> None:
    if not output.is_terminal():
        output.facts(facts)
        return
    for name, value in facts:
        if value:
            output.say(output.paragraph(f"{name:<19}{value}", "", " " * 19))
