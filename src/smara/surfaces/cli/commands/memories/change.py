"""Define the commands that add, edit, review and forget memories.

`review` is a group of its own: accept, edit, reject and undo.
"""

from __future__ import annotations

import json
from typing import Any

import click

from smara.errors import InvalidInputError
from smara.knowledge.models import SCOPES, SOURCES, TYPES, VISIBILITIES, TypedMemory
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.memories.show import (
    memory_argument,
    memory_arguments,
    tell,
    tell_added,
    text_or_input,
    with_actor,
    worth_of,
)
from smara.surfaces.cli.options import Invocation, common, complete_memory
from smara.surfaces.cli.render import memories
from smara.surfaces.cli.render.memories import memory_json, trust_json
from smara.surfaces.cli.render.tasks import say_more

_TYPES = click.Choice(TYPES)


@click.command("add")
@click.argument("text", metavar="TEXT|-")
@click.option(
    "--type", "type_", type=_TYPES, metavar="T", required=True, help=f"One of {', '.join(TYPES)}."
)
@click.option(
    "--source",
    type=click.Choice(SOURCES),
    metavar="S",
    default="agent_explicit",
    show_default=True,
    help=f"Who says so: one of {', '.join(SOURCES)}.",
)
@click.option(
    "--evidence",
    "-e",
    metavar="E",
    multiple=True,
    help="What it rests on: PATH@COMMIT:FIRST-LAST, message:ID; may be repeated.",
)
@click.option("--confidence", type=click.FloatRange(0, 1), metavar="0-1", help="How certain it is.")
@click.option(
    "--file", "files", metavar="PATH", multiple=True, help="A file it speaks of; may be repeated."
)
@click.option(
    "--module",
    "modules",
    metavar="NAME",
    multiple=True,
    help="A module it speaks of; may be repeated.",
)
@click.option("--tag", "tags", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--scope", type=click.Choice(SCOPES), help="How far it reaches.")
@click.option("--visibility", type=click.Choice(VISIBILITIES), default="project", show_default=True)
@click.option(
    "--session",
    "session_id",
    metavar="ID",
    help="The session it was learned in; also SMARA_SESSION.",
)
@click.option("--commit", metavar="SHA", help="The commit it was learned at.")
@click.option(
    "--taint", metavar="KIND", multiple=True, help="What it was taken from: web, mcp, tool …"
)
@click.option("--data", metavar="JSON", help="More, as its type has it.")
@click.option(
    "--supersedes",
    metavar="MEMORY",
    multiple=True,
    shell_complete=complete_memory,
    help="What it replaces.",
)
@common
@with_actor
def add(
    call: Invocation,
    who: dict[str, Any],
    text: str,
    type_: Any,
    data: str | None,
    session_id: str | None,
    source: Any,
    **fields: Any,
) -> None:
    """Add a memory with all its fields, for scripts.

    To teach something, `smara remember`. What is added here follows the
    rules for what agents learn: it must say something, rest on something,
    and be new; a person confirms it in the review.
    """
    by: Any = "person" if source == "user_taught" else "agent"
    with call.memory() as memory:
        added = memory.memories.add(
            text_or_input(text) or "",
            type=type_,
            source=source,
            data=_object(data),
            session_id=session_id,
            actor=who["actor"],
            by=by,
            **fields,
        )
        tell_added(call, memory, added)


def _object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(
            f'--data is not JSON: {error}. Give an object, such as \'{{"cause": "…"}}\'.'
        ) from None
    if not isinstance(found, dict):
        raise InvalidInputError('--data must be a JSON object, such as \'{"cause": "…"}\'.')
    return found


@click.command("edit")
@memory_argument
@click.option("--text", metavar="TEXT|-", help="What it is to say; - reads standard input.")
@click.option("--type", "type_", type=_TYPES, metavar="T", help="Another type.")
@click.option("--confidence", type=click.FloatRange(0, 1), metavar="0-1")
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="The files it speaks of, in place of those before.",
)
@click.option(
    "--module",
    "modules",
    metavar="NAME",
    multiple=True,
    help="The modules, in place of those before.",
)
@click.option("--add-tag", metavar="TEXT", multiple=True)
@click.option("--remove-tag", metavar="TEXT", multiple=True)
@click.option("--scope", type=click.Choice(SCOPES))
@click.option("--visibility", type=click.Choice(VISIBILITIES))
@click.option(
    "--half-life-days",
    type=click.FloatRange(0, min_open=True),
    metavar="DAYS",
    help="How fast it fades.",
)
@click.option(
    "--citation", metavar="TEXT", help="A few words to show in its place, at most 40 characters."
)
@common
@with_actor
def edit(
    call: Invocation,
    who: dict[str, Any],
    memory_id: str,
    text: str | None,
    type_: Any,
    add_tag: tuple[str, ...],
    remove_tag: tuple[str, ...],
    files: tuple[str, ...],
    modules: tuple[str, ...],
    **given: Any,
) -> None:
    """Change what is named, or its words in your editor."""
    changes = {
        "content": text_or_input(text),
        "type": type_,
        "files": files or None,
        "modules": modules or None,
        **given,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    with call.memory() as memory:
        found = memory.memories.get(memory_id)
        if add_tag or remove_tag:
            changes["tags"] = sorted((set(found.tags) | set(add_tag)) - set(remove_tag))
        if not changes:
            changes = _by_hand(found)
        edited = (
            memory.memories.update(found.id, version=found.version, **changes, **who)
            if changes
            else found
        )
        is_new = edited.version != found.version
        tell(call, memory, [edited], verb="Changed" if is_new else "Nothing new for")


def _by_hand(memory: TypedMemory) -> dict[str, Any]:
    if not output.is_terminal():
        raise InvalidInputError(
            "Say what to change: --text, --type, --file, --add-tag … An editor needs a terminal."
        )
    edited = click.edit(memory.content, extension=".md")
    return {} if edited is None or not edited.strip() else {"content": edited.strip()}


def _each(call: Invocation, memory_ids: tuple[str, ...], verb: str, change: Any) -> None:
    with call.memory() as memory:
        wanted = [
            memory.memories.get(each) for each in memory_ids
        ]  # a wrong id is told before anything is changed
        tell(call, memory, [change(memory, each) for each in wanted], verb=verb)


@click.command("pin")
@memory_arguments
@common
@with_actor
def pin(call: Invocation, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
    """Keep memories from fading."""
    _each(
        call, memory_ids, "Pinned", change=lambda memory, each: memory.memories.pin(each.id, **who)
    )


@click.command("unpin")
@memory_arguments
@common
@with_actor
def unpin(call: Invocation, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
    """Let them fade again."""
    _each(
        call,
        memory_ids,
        "Unpinned",
        change=lambda memory, each: memory.memories.unpin(each.id, **who),
    )


@click.command("verify")
@memory_arguments
@common
@with_actor
def verify(call: Invocation, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
    """Say that memories are true, as of now.

    They are confirmed, whatever they came from, and fade from here.
    """
    _each(
        call,
        memory_ids,
        "Verified",
        change=lambda memory, each: memory.memories.verify(each.id, **who),
    )


@click.command("forget")
@memory_arguments
@click.option("--why", metavar="TEXT", default="", help="Kept in the history.")
@common
@with_actor
def forget(call: Invocation, who: dict[str, Any], memory_ids: tuple[str, ...], why: str) -> None:
    """Put memories aside; `restore` brings them back."""
    _each(
        call,
        memory_ids,
        "Forgotten:",
        change=lambda memory, each: memory.memories.forget(each.id, why, **who),
    )


@click.command("restore")
@memory_arguments
@common
@with_actor
def restore(call: Invocation, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
    """Bring memories back that were put aside."""
    _each(
        call,
        memory_ids,
        "Restored",
        change=lambda memory, each: memory.memories.restore(each.id, **who),
    )


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
def review(call: Invocation, type_: Any, session_id: str | None, limit: int, offset: int) -> None:
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
    memories.print_list(page, worth, True, code=code)
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
@with_actor
def accept_reviewed(
    call: Invocation,
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
    memories.changed(done.accepted, "Accepted")
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
@with_actor
def edit_reviewed(
    call: Invocation,
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
@with_actor
def reject_reviewed(
    call: Invocation, who: dict[str, Any], memory_ids: tuple[str, ...], why: str
) -> None:
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
@with_actor
def undo_review(call: Invocation, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
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
@with_actor
def trust(call: Invocation, who: dict[str, Any], level: int | None, decline: bool) -> None:
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
