"""``smara complete``"""

from __future__ import annotations

import click

from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.command("complete")
@click.argument("prefix")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=20, show_default=True)
@common
def command(call: Call, prefix: str, limit: int) -> None:
    """Words and names of this project that begin with PREFIX."""
    with call.memory() as memory:
        words = memory.complete(prefix, limit)
    if call.as_json:
        output.envelope(words)
    else:
        for word in words:
            output.say(word)
