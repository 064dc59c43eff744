"""What came of adding a memory, told at this door."""

from __future__ import annotations

import click

from smara.errors import InvalidInputError
from smara.knowledge.models import Added, TypedMemory
from smara.memory import Memory
from smara.surfaces.cli import memory_lines, output
from smara.surfaces.cli.memory_shapes import added_json
from smara.surfaces.cli.options import Call


def tell_added(
    call: Call, memory: Memory, added: Added, guessed: tuple[str, ...] = (), verb: str = "Added"
) -> None:
    """Print the outcome; a refusal leaves with an error that says why. ``guessed`` is why the type
    was chosen.
    """
    if added.memory is None:
        because = "; ".join(added.why)
        raise InvalidInputError(
            f"It was not remembered: {because}. Say it in other words, or teach it with `smara "
            "remember`.",
            why=added.why,
        )
    warnings, found = memory.warnings, added.memory
    code = memory.memories.freshness([found]).get(found.id)
    if call.as_json:
        guess = {"guessedBecause": list(guessed)} if guessed else {}
        output.envelope(added_json(added, code) | guess, warnings)
        return
    output.warn(warnings)
    if not output.is_terminal():
        output.row((found.short_id, added.outcome, found.type, found.content))
        return
    head = (
        f"{verb} {found.short_id}"
        if added.outcome == "added"
        else f"Known already as {found.short_id}"
    )
    output.say(output.paragraph(f"{head}: {' '.join(found.content.split())}", "", "  "), bold=True)
    _tell_kind(found, guessed, memory.memories.confidence(found).value)
    if code is not None:
        places = ", ".join(each.now or each.was for each in code.anchors)
        output.say(
            output.paragraph(
                f"It speaks of {places}; when that changes, you are told.", "  ", "  "
            ),
            dim=True,
        )
    for each in (*added.superseded, *added.disputes):
        other = memory.memories.get(each)
        how = "It takes the place of" if each in added.superseded else "It contradicts"
        output.say(
            output.paragraph(
                f"{how} {other.short_id}: {' '.join(other.content.split())}", "  ", "    "
            )
        )
    if added.disputes:
        click.echo("  `smara memories review` asks which of them is true.")


def _tell_kind(memory: TypedMemory, guessed: tuple[str, ...], confidence: float) -> None:
    output.say(output.paragraph(memory_lines.facts(memory, confidence), "  ", "  "), dim=True)
    if guessed:
        told = (
            f"Its type is a guess ({', '.join(guessed)}); `smara memories edit "
            f"{memory.short_id} --type T` changes it."
        )
        output.say(output.paragraph(told, "  ", "  "), dim=True)
