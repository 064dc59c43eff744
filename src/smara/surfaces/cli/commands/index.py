"""``smara index``"""

from __future__ import annotations

import click

from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common
from smara.surfaces.cli.progress import bar


@click.group("index")
def command() -> None:
    """Check, rebuild or optimize the search index."""


@command.command("check")
@common
def check(call: Call) -> None:
    """Compare the whole index with the messages. Exit code 8 when they differ."""
    with call.memory() as memory:
        problems = memory.index.problems(deep=True)
    if call.as_json:
        output.envelope({"problems": problems})
    else:
        for problem in problems or ["The index agrees with the messages."]:
            output.say(problem)
    if problems:
        raise click.exceptions.Exit(8)


@command.command("rebuild")
@common
def rebuild(call: Call) -> None:
    """Make the index again from the messages."""
    with call.memory() as memory, bar("Rebuilding") as progress:
        count = memory.index.rebuild(progress)
    if call.as_json:
        output.envelope({"messages": count})
    else:
        output.say(f"Rebuilt from {count:,} messages.")


@command.command("optimize")
@common
def optimize(call: Call) -> None:
    """Merge the index into its most compact form; worth it after a large import."""
    with call.memory() as memory:
        memory.index.optimize()
    if call.as_json:
        output.envelope({"optimized": True})
    else:
        output.say("Optimized.")
