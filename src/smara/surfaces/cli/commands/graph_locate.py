"""``smara graph locate``: the files that an issue, an error or a question is about."""

from __future__ import annotations

import sys
from typing import Any

import click

from smara.codegraph.models import Located
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.command("locate")
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 1_000), default=10, show_default=True, metavar="N")
@click.option("--tests", is_flag=True, help="Look among tests too.")
@common
def locate(call: Call, text: str, limit: int, tests: bool) -> None:
    """Find the files that TEXT is about: an issue, an error with its traceback, a question. With -
    it is read from the standard input.
    """
    said = sys.stdin.read() if text == "-" else text
    with call.memory() as memory:
        note = memory.code.catch_up()
        found = memory.code.locate(said, limit, tests=tests)
        warnings = [*memory.warnings, *([f"{note[0].upper()}{note[1:]}."] if note else [])]
    if call.as_json:
        output.envelope({"files": [_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    if not found:
        click.echo("No file says anything of it. Try other words, or --tests.", err=True)
        return
    rows = [(f"{each.score:.2f}", each.citation, each.name, "; ".join(each.why)) for each in found]
    output.table(("score", "place", "in", "why"), rows, folding=("place", "in", "why"))


def _json(each: Located) -> dict[str, Any]:
    return {
        "path": each.path,
        "score": each.score,
        "why": list(each.why),
        "name": each.name,
        "isStale": each.is_stale,
        "firstLine": each.first_line,
        "lastLine": each.last_line,
        "citation": each.citation,
    }
