"""``smara init``"""

from __future__ import annotations

import click

from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.command("init")
@common
def command(call: Call) -> None:
    """Make the store, if there is none, and say where it is.

    Nothing is written into your repository.
    """
    with call.memory() as memory:
        status = memory.status()
        warnings = memory.warnings
    if call.as_json:
        output.envelope(status, warnings)
        return
    output.warn(warnings)
    output.say(f"Store    {status['store']['path']}")
    output.say(f"Project  {status['project']}")
    output.say(f"Holds    {status['messages']:,} messages in {status['threads']:,} threads")
    output.say()
    output.say("Next:  smara import ~/.claude/projects/*/*.jsonl      bring in what your agent has said")
    output.say("       smara search 'the words you remember'          find it again")
