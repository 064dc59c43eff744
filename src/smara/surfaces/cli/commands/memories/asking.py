"""What the commands about memories have in common: how memories, texts and an actor are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import click

from smara.knowledge.models import TypedMemory
from smara.memory import Memory
from smara.surfaces.cli import memory_lines, output
from smara.surfaces.cli.memory_shapes import memory_json
from smara.surfaces.cli.options import Call, complete_memory, standard_input

F = TypeVar("F", bound=Callable[..., Any])
PERSON: dict[str, Any] = {"by": "person"}
"""Whoever types at the command line is a person; agents have their own door."""

memory_argument = click.argument("memory_id", metavar="MEMORY", shell_complete=complete_memory)
memory_arguments = click.argument(
    "memory_ids", metavar="MEMORY...", nargs=-1, required=True, shell_complete=complete_memory
)


def acting(function: F) -> Callable[..., Any]:
    """Give a command ``--actor``; it gets who acts as ``who``. Stands below ``common``."""

    @click.option("--actor", metavar="NAME", help="Who does it; also SMARA_ACTOR. Without it, you.")
    @wraps(function)
    def wrapped(call: Call, actor: str | None, **options: Any) -> Any:
        return function(call, who={"actor": actor, **PERSON}, **options)

    return wrapped


def text_or_input(text: str | None) -> str | None:
    """What was given; ``-`` reads standard input."""
    return standard_input() if text == "-" else text


def worth_of(memory: Memory, memories: Iterable[TypedMemory]) -> dict[str, float]:
    """What memories are worth now, by id."""
    return {each.id: memory.memories.confidence(each).value for each in memories}


def tell(call: Call, memory: Memory, changed: list[TypedMemory], verb: str) -> None:
    """The answer to a change of one or several memories."""
    worth, warnings, code = (
        worth_of(memory, changed),
        memory.warnings,
        memory.memories.freshness(changed),
    )
    if call.as_json:
        told = [memory_json(each, worth[each.id], code.get(each.id)) for each in changed]
        output.envelope({"memories": told}, warnings)
        return
    output.warn(warnings)
    memory_lines.changed(changed, verb)
