"""Define `smara remember`: add a memory that is trusted at once."""

from __future__ import annotations

from typing import Any

import click

from smara.adapters.instructions import type_of
from smara.errors import InvalidInputError
from smara.knowledge.models import TYPES
from smara.surfaces.cli.commands.memories.show import tell_added
from smara.surfaces.cli.options import Invocation, common, standard_input


@click.command("remember")
@click.argument("words", metavar="TEXT...|-", nargs=-1, required=True)
@click.option(
    "--type",
    "type_",
    type=click.Choice(TYPES),
    metavar="T",
    help=f"One of {', '.join(TYPES)}; without it, guessed by the words.",
)
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
@click.option("--pin", "is_pinned", is_flag=True, help="It never fades.")
@click.option("--personal", is_flag=True, help="For you alone, not for the project.")
@click.option("--actor", metavar="NAME", help="Who says so; also SMARA_ACTOR. Without it, you.")
@common
def remember_command(
    call: Invocation,
    words: tuple[str, ...],
    type_: Any,
    personal: bool,
    actor: str | None,
    **given: Any,
) -> None:
    """Remember something, taught by you: it is trusted at once.

    A newer statement takes the place of an older one that it contradicts;
    both are kept. `smara memories` lists, changes and forgets.
    """
    text = standard_input() if words == ("-",) else " ".join(words)
    if not text.strip():
        raise InvalidInputError(
            "There is nothing to remember. Give a sentence, or - to read it from standard input."
        )
    guess = type_of(text)
    with call.memory() as memory:
        added = memory.memories.remember(
            text,
            type=type_ or guess.type,
            actor=actor,
            visibility="personal" if personal else "project",
            **given,
        )
        is_guessed = type_ is None and added.outcome == "added"
        tell_added(call, memory, added, guessed=guess.why if is_guessed else (), verb="Remembered")
