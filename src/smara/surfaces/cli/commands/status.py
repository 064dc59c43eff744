"""``smara status``"""

from __future__ import annotations

import click

from smara.surfaces.cli import output
from smara.surfaces.cli.model_lines import models_line
from smara.surfaces.cli.options import Call, common


@click.command("status")
@common
def command(call: Call) -> None:
    """What is remembered in this project, and where it is kept."""
    with call.memory() as memory:
        status = memory.status()
        warnings = memory.warnings
    if call.as_json:
        output.envelope(status, warnings)
        return
    output.warn(warnings)
    store = status["store"]
    rows = [
        ("project", status["project"]),
        ("threads", f"{status['threads']:,}"),
        ("messages", f"{status['messages']:,}"),
        ("tokens", f"{status['tokens']:,}"),
        ("resources", f"{status['resources']:,}"),
        ("tasks", _tasks(status["tasks"])),
        ("observations", _observations(status["observations"])),
        ("models", models_line(status["models"])),
        ("store", store["path"]),
        ("engine", f"{store['engine']} {store['version']}"),
        ("durability", store["durability"]),
        ("size", output.size(store["fileBytes"])),
    ]
    if store.get("walBytes"):
        rows.append(("write-ahead log", output.size(store["walBytes"])))
    output.facts(rows)


def _observations(totals: dict[str, int]) -> str:
    told = (
        f"{totals['total']:,} ({totals['active']:,} active), condensed "
        f"{totals['generations']:,} times"
    )
    if totals["threadsWaiting"]:
        told += (
            f"; {totals['threadsWaiting']:,} threads wait for the model (`smara observations "
            "failures` says why)"
        )
    return told


def _tasks(totals: dict[str, int]) -> str:
    return (
        f"{totals['open'] + totals['inProgress']:,} unfinished ({totals['inProgress']:,} in "
        "progress,"
        f" {totals['ready']:,} ready, {totals['blocked']:,} blocked), {totals['closed']:,} closed"
    )
