"""Define `smara complete` and `smara completion`.

The first lists indexed words with a prefix; the second prints a shell completion script.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common


@click.command("complete")
@click.argument("prefix")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=20, show_default=True)
@common
def complete_command(call: Invocation, prefix: str, limit: int) -> None:
    """Words and names of this project that begin with PREFIX."""
    with call.memory() as memory:
        words = memory.complete(prefix, limit)
    if call.as_json:
        output.envelope(words)
    else:
        for word in words:
            output.say(word)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
def completion_command(call: Invocation, shell: str) -> None:
    """Print a completion script: eval "$(smara completion bash)"."""
    from smara.surfaces.cli.app import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise AssertionError(f"click knows no shell {shell}")
    source = kind(cli, {}, "smara", "_SMARA_COMPLETE").source()
    if call.as_json:
        output.envelope({"shell": shell, "script": source})
    else:
        click.echo(source)
