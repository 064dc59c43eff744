"""``smara memories add``, ``edit``, ``pin``, ``unpin``, ``verify``, ``forget`` and ``restore``"""

from __future__ import annotations

import json
from typing import Any

import click

from smara.errors import InvalidInputError
from smara.knowledge.models import SCOPES, SOURCES, TYPES, VISIBILITIES, TypedMemory
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.memories.asking import (
    acting,
    memory_argument,
    memory_arguments,
    tell,
    text_or_input,
)
from smara.surfaces.cli.memory_added import tell_added
from smara.surfaces.cli.options import Call, common, complete_memory

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
@acting
def add(
    call: Call,
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
@acting
def edit(
    call: Call,
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


def _each(call: Call, memory_ids: tuple[str, ...], verb: str, change: Any) -> None:
    with call.memory() as memory:
        wanted = [
            memory.memories.get(each) for each in memory_ids
        ]  # a wrong id is told before anything is changed
        tell(call, memory, [change(memory, each) for each in wanted], verb=verb)


@click.command("pin")
@memory_arguments
@common
@acting
def pin(call: Call, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
    """Keep memories from fading."""
    _each(
        call, memory_ids, "Pinned", change=lambda memory, each: memory.memories.pin(each.id, **who)
    )


@click.command("unpin")
@memory_arguments
@common
@acting
def unpin(call: Call, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
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
@acting
def verify(call: Call, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
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
@acting
def forget(call: Call, who: dict[str, Any], memory_ids: tuple[str, ...], why: str) -> None:
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
@acting
def restore(call: Call, who: dict[str, Any], memory_ids: tuple[str, ...]) -> None:
    """Bring memories back that were put aside."""
    _each(
        call,
        memory_ids,
        "Restored",
        change=lambda memory, each: memory.memories.restore(each.id, **who),
    )
