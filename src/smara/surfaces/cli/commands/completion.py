"""``smara completion``"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
def command(call: Call, shell: str) -> None:
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
