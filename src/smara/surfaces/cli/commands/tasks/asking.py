"""What the commands about tasks have in common: how a task, a priority and an actor are given."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from smara.surfaces.cli.options import Call, complete_task, standard_input

F = TypeVar("F", bound=Callable[..., Any])


def priority_of(given: str | int) -> int:
    """0 to 4, also written P0 to P4; 0 is the most urgent."""
    digits = str(given).strip().upper().removeprefix("P")
    if digits not in ("0", "1", "2", "3", "4"):
        raise click.BadParameter(
            f"{given!r} is no priority. Give 0 (most urgent) to 4, or P0 to P4."
        )
    return int(digits)


task_argument = click.argument("task_id", metavar="TASK", shell_complete=complete_task)


def acting(function: F) -> Callable[..., Any]:
    """Give a command ``--actor`` and ``--session``; it gets both as ``who``. Stands below
    ``common``.
    """

    @click.option("--actor", metavar="NAME", help="Who does it; also SMARA_ACTOR. Without it, you.")
    @click.option(
        "--session",
        "session_id",
        metavar="ID",
        help="The agent session that does it; also SMARA_SESSION.",
    )
    @wraps(function)
    def wrapped(call: Call, actor: str | None, session_id: str | None, **options: Any) -> Any:
        return function(call, who={"actor": actor, "session_id": session_id}, **options)

    return wrapped


def text_or_input(text: str | None) -> str | None:
    """What was given; ``-`` reads standard input."""
    return standard_input() if text == "-" else text
