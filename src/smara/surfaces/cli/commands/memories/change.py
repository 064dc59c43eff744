"""Define `smara remember` and the commands that change memories.

`review` is a group of its own: accept, edit, reject and undo.
"""

from __future__ import annotations

import json
from typing import Any

import click

from smara.errors import InvalidInputError
from smara.knowledge.models import SCOPES, SOURCES, TYPES, VISIBILITIES, TypedMemory
from smara.memory import Memory
from smara.shapes import memory_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.memories.show import (
    memories_json,
    memory_argument,
    memory_arguments,
    reply_added,
    worth_of,
)
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    actor_option,
    common,
    complete_memory,
    limit_option,
    offset_option,
    text_or_input,
    with_memory,
)
from smara.surfaces.cli.render import memories_changed, print_memories, say_more

_TYPES = click.Choice(TYPES)


@click.command("remember")
@click.argument("words", metavar="TEXT...|-", nargs=-1, required=True)
@click.option(
    "--type",
    "type_",
    type=click.Choice(TYPES),
    metavar="T",
    help=f"One of {', '.join(TYPES)}; by default guessed from the text.",
)
@click.option(
    "--file", "files", metavar="PATH", multiple=True, help="A file it is about; may be repeated."
)
@click.option(
    "--module",
    "modules",
    metavar="NAME",
    multiple=True,
    help="A module it is about; may be repeated.",
)
@click.option("--tag", "tags", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--pin", "is_pinned", is_flag=True, help="Never let it fade.")
@click.option("--personal", is_flag=True, help="Only for you, not for the project.")
@click.option("--actor", metavar="NAME", help="Who says so; also SMARA_ACTOR. Without it, you.")
@common
def remember_command(
    call: Invocation,
    words: tuple[str, ...],
    type_: Any,
    personal: bool,
    actor: str | None,
    **given: Any,
) -> Reply:
    """Teach Smara something. It is trusted at once.

    A newer statement replaces an older one that it contradicts; both are
    kept. `smara memories` lists, edits and forgets them.
    """
    text = text_or_input(" ".join(words)) or ""
    if not text.strip():
        raise InvalidInputError(
            "The text is empty. Give a sentence, or - to read it from standard input."
        )
    from smara.adapters.instructions import type_of

    guess = type_of(text)
    return reply_added(
        call,
        lambda memory: memory.memories.remember(
            text,
            type=type_ or guess.type,
            actor=actor,
            visibility="personal" if personal else "project",
            **given,
        ),
        guessed=guess.why if type_ is None else (),
        verb="Remembered",
    )


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
    help=f"The source: one of {', '.join(SOURCES)}.",
)
@click.option(
    "--evidence",
    "-e",
    metavar="E",
    multiple=True,
    help="Evidence: PATH@COMMIT:FIRST-LAST or message:ID; may be repeated.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1),
    metavar="0-1",
    help="How certain it is, from 0 to 1.",
)
@click.option(
    "--file", "files", metavar="PATH", multiple=True, help="A file it is about; may be repeated."
)
@click.option(
    "--module",
    "modules",
    metavar="NAME",
    multiple=True,
    help="A module it is about; may be repeated.",
)
@click.option("--tag", "tags", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--scope", type=click.Choice(SCOPES), help="Where it applies.")
@click.option("--visibility", type=click.Choice(VISIBILITIES), default="project", show_default=True)
@click.option(
    "--session",
    "session_id",
    metavar="ID",
    help="The session it was learned in; also SMARA_SESSION.",
)
@click.option("--commit", metavar="SHA", help="The commit it was learned at.")
@click.option(
    "--taint", metavar="KIND", multiple=True, help="An untrusted origin: web, mcp, tool …"
)
@click.option("--data", metavar="JSON", help="Further fields of its type.")
@click.option(
    "--supersedes",
    metavar="MEMORY",
    multiple=True,
    shell_complete=complete_memory,
    help="A memory it replaces.",
)
@common
@actor_option
def add(
    call: Invocation,
    text: str,
    type_: Any,
    data: str | None,
    source: Any,
    **fields: Any,
) -> Reply:
    """Add a memory with all its fields, for scripts.

    To teach something, use `smara remember`. A memory added here follows
    the rules for agents: it must be specific, new and have evidence, and
    a person confirms it in the review.
    """
    try:
        value = {} if data is None else json.loads(data)
    except ValueError as error:
        raise InvalidInputError(
            f'--data is not JSON: {error}. Give an object, such as \'{{"cause": "…"}}\'.'
        ) from None
    if not isinstance(value, dict):
        raise InvalidInputError('--data must be a JSON object, such as \'{"cause": "…"}\'.')
    return reply_added(
        call,
        lambda memory: memory.memories.add(
            text_or_input(text) or "",
            type=type_,
            source=source,
            data=value,
            by="person" if source == "user_taught" else "agent",
            **fields,
        ),
    )


@click.command("edit")
@memory_argument
@click.option(
    "--text",
    "--content",
    "text",
    metavar="TEXT|-",
    help="The new text; - reads standard input.",
)
@click.option("--type", "type_", type=_TYPES, metavar="T", help="The new type.")
@click.option("--confidence", type=click.FloatRange(0, 1), metavar="0-1")
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="The files, replacing the old ones; may be repeated.",
)
@click.option(
    "--module",
    "modules",
    metavar="NAME",
    multiple=True,
    help="The modules, replacing the old ones; may be repeated.",
)
@click.option("--add-tag", metavar="TEXT", multiple=True)
@click.option("--remove-tag", metavar="TEXT", multiple=True)
@click.option("--scope", type=click.Choice(SCOPES))
@click.option("--visibility", type=click.Choice(VISIBILITIES))
@click.option(
    "--half-life-days",
    type=click.FloatRange(0, min_open=True),
    metavar="DAYS",
    help="The half-life of its confidence.",
)
@click.option("--citation", metavar="TEXT", help="A short form of it, at most 40 characters.")
@with_memory
@actor_option
def edit(
    memory: Memory,
    memory_id: str,
    text: str | None,
    type_: Any,
    actor: str | None,
    add_tag: tuple[str, ...],
    remove_tag: tuple[str, ...],
    files: tuple[str, ...],
    modules: tuple[str, ...],
    **given: Any,
) -> Reply:
    """Change a memory; without options, its text in your editor."""
    changes = {
        "content": text_or_input(text),
        "type": type_,
        "files": files or None,
        "modules": modules or None,
        **given,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    found = memory.memories.get(memory_id)
    if add_tag or remove_tag:
        changes["tags"] = sorted((set(found.tags) | set(add_tag)) - set(remove_tag))
    if not changes:
        changes = _edit_by_hand(found, "--text, --type, --file, --add-tag …")
    edited = (
        memory.memories.update(found.id, version=found.version, by="person", actor=actor, **changes)
        if changes
        else found
    )
    yield {"memories": memories_json(memory, [edited])}
    memories_changed([edited], "Changed" if edited.version != found.version else "Unchanged:")
    if edited.needs_review and output.is_terminal():
        name = edited.short_id
        output.sentence(f"  It still waits for review: `smara memories verify {name}` confirms it.")


def _edit_by_hand(memory: TypedMemory, options: str) -> dict[str, Any]:
    """Open the text of a memory in the editor; return the change, if any."""
    if not output.is_terminal():
        raise InvalidInputError(f"Nothing to change: give {options} An editor needs a terminal.")
    edited = click.edit(memory.content, extension=".md")
    return {} if edited is None or not edited.strip() else {"content": edited.strip()}


def _reply(
    memory: Memory, memory_ids: tuple[str, ...], verb: str, method: str, **given: Any
) -> Reply:
    """Change some memories by a method of ``Memories`` and answer with them."""
    # A wrong id is found before any change.
    ids = [memory.memories.get(each).id for each in memory_ids]
    changed = [getattr(memory.memories, method)(each, by="person", **given) for each in ids]
    yield {"memories": memories_json(memory, changed)}
    memories_changed(changed, verb)


def _change(name: str, verb: str, help: str) -> click.Command:
    """Return the command that changes memories by the method of its name."""

    @memory_arguments
    @with_memory
    @actor_option
    def change(memory: Memory, memory_ids: tuple[str, ...], **given: Any) -> Reply:
        return _reply(memory, memory_ids, verb, method=name, **given)

    if name in ("forget", "reject"):
        change = click.option(
            "--why", metavar="TEXT", default="", help="The reason, kept in the history."
        )(change)
    return click.command(name, help=help)(change)


pin = _change("pin", "Pinned", "Keep memories from fading.")
unpin = _change("unpin", "Unpinned", "Let pinned memories fade again.")
verify = _change(
    "verify",
    "Verified",
    """Confirm that memories are true as of now.

    They become confirmed whatever their source, and fade from today.
    """,
)
forget = _change("forget", "Forgot", "Forget memories; `restore` brings them back.")
restore = _change("restore", "Restored", "Restore forgotten memories.")


@click.group("review", invoke_without_command=True)
@click.option("--type", "type_", type=click.Choice(TYPES), metavar="T", help="Only of this type.")
@click.option("--session", "session_id", metavar="ID", help="Only from this session.")
@limit_option(20, 1000)
@offset_option
@common
def review(call: Invocation, type_: Any, session_id: str | None, limit: int, offset: int) -> Reply:
    """List memories to review; accept, edit or reject them.

    Without a command it lists them.
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
        memory.memories.check_code()  # memories whose code changed are to review, too
        page = memory.memories.to_review(
            session_id=session_id, type=type_, limit=limit, offset=offset
        )
        worth, code = worth_of(memory, page), memory.memories.freshness(page)
        total = memory.memories.totals().to_review
    listed = [memory_json(each, worth[each.id], code.get(each.id)) for each in page]
    yield {"memories": listed, "nextOffset": page.next_offset, "toReview": total}
    print_memories(page, worth, is_in_review=True, code=code)
    if not page:
        say_more("Nothing to review.")
        return
    more = f" Next page: --offset {page.next_offset}." if page.next_offset is not None else ""
    say_more(
        f"{total:,} to review.{more} Decide with `smara memories review accept "
        f"{page[0].short_id}`, or `edit`, `reject`; `undo` reverts it."
    )


@review.command("accept")
@click.argument("memory_ids", metavar="[MEMORY...]", nargs=-1, shell_complete=complete_memory)
@click.option(
    "--all",
    "all_of_them",
    is_flag=True,
    help="Accept all, except what came from tools or outside, or contradicts.",
)
@click.option("--session", "session_id", metavar="ID", help="With --all: only from this session.")
@with_memory
@actor_option
def accept_reviewed(
    memory: Memory,
    memory_ids: tuple[str, ...],
    all_of_them: bool,
    session_id: str | None,
    actor: str | None,
) -> Reply:
    """Accept memories as true.

    A memory that an accepted one clearly contradicts is replaced by it.
    """
    if all_of_them == bool(memory_ids):
        raise InvalidInputError("Name the memories to accept, or give --all; not both.")
    if not all_of_them:
        yield from _reply(memory, memory_ids, "Accepted", method="accept", actor=actor)
        return
    done = memory.memories.accept_all(session_id=session_id, by="person", actor=actor)
    yield {
        "memories": [memory_json(each) for each in done.accepted],
        "left": [{"memory": memory_json(each), "why": why} for each, why in done.left],
    }
    memories_changed(done.accepted, "Accepted")
    for each, why in done.left:
        click.echo(output.printable(f"left: {each.short_id}: {why}"), err=not output.is_terminal())
    if output.is_terminal():
        output.say(
            f"Accepted {output.count(len(done.accepted), 'memory', 'memories')}; "
            f"{len(done.left):,} left to review one by one."
        )


@review.command("edit")
@memory_argument
@click.option(
    "--text",
    metavar="TEXT|-",
    help="The new text; - reads standard input. By default, your editor.",
)
@click.option("--type", "type_", type=click.Choice(TYPES), metavar="T", help="The new type.")
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="The files, replacing the old ones; may be repeated.",
)
@click.option(
    "--tag", "tags", metavar="TEXT", multiple=True, help="The tags, replacing the old ones."
)
@with_memory
@actor_option
def edit_reviewed(
    memory: Memory,
    memory_id: str,
    text: str | None,
    type_: Any,
    files: tuple[str, ...],
    tags: tuple[str, ...],
    actor: str | None,
) -> Reply:
    """Accept a memory with changes."""
    changes = {
        "content": text_or_input(text),
        "type": type_,
        "files": files or None,
        "tags": tags or None,
    }
    found = memory.memories.get(memory_id)
    given = {name: value for name, value in changes.items() if value is not None}
    given = given or _edit_by_hand(found, "--text, --type, --file or --tag.")
    accepted = []
    if given:
        accepted.append(
            memory.memories.accept(
                found.id, version=found.version, by="person", actor=actor, **given
            )
        )
    yield {"memories": memories_json(memory, accepted)}
    memories_changed(accepted, "Accepted")
    if not accepted:
        output.say("Nothing was changed.")


review.add_command(
    _change("reject", "Rejected", "Reject memories. The same text is not learned again.")
)
review.add_command(
    _change(
        "undo",
        "Reverted",
        """Undo the last change of each memory.

    Repeat it to go further back.
    """,
    )
)


@click.command("trust")
@click.argument("level", required=False, type=click.IntRange(1, 4), metavar="[LEVEL]")
@click.option("--decline", is_flag=True, help="Decline the offer of a more careful level.")
@common
@actor_option
def trust(call: Invocation, level: int | None, decline: bool, actor: str | None) -> Reply:
    """Show or set how far memories are trusted in this project.

    LEVEL is 1 cautious, 2 standard or 3 confident, which sessions earn, or
    4 autonomous, which only you can choose.
    """
    if level is not None and decline:
        raise InvalidInputError("Give a level, or --decline; not both.")
    with call.memory() as memory:
        if level is not None:
            status = memory.memories.set_trust_level(level, by="person", actor=actor)
        elif decline:
            status = memory.memories.decline_offer()
        else:
            status = memory.memories.trust()
    offer = status.offer
    yield {
        "level": status.level,
        "name": status.name,
        "meaning": status.meaning,
        "injectAbove": status.inject_above,
        "sessions": status.sessions,
        "confirmedShare": status.confirmed_share,
        "correctionRate": status.correction_rate,
        "nextLevelNeeds": list(status.next_level_needs),
        "offer": None
        if offer is None
        else {"level": offer.level, "why": offer.why, "sessionId": offer.session_id},
    }
    facts = [
        ("level", f"{status.level} {status.name}: {status.meaning}"),
        ("injected", f"what a person confirmed, and facts above {status.inject_above:.0%}"),
        ("sessions", f"{status.sessions:,}"),
        ("confirmed", f"{status.confirmed_share:.0%} of what was learned"),
        ("wrong", f"{status.correction_rate:.0%} of what was used"),
        ("to the next level", "; ".join(status.next_level_needs)),
        ("offered", f"level {offer.level}: {offer.why}" if offer else ""),
    ]
    if not output.is_terminal():
        output.facts(facts)
        return
    for name, value in facts:
        if value:
            output.say(output.paragraph(f"{name:<19}{value}", "", " " * 19))
