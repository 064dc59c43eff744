"""Define `smara status`, `smara projects` and `smara version`."""

from __future__ import annotations

import platform

import click

from smara import __version__
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.models import models_line
from smara.surfaces.cli.options import Invocation, common


@click.command("status")
@common
def status_command(call: Invocation) -> None:
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


@click.command("projects")
@common
def projects_command(call: Invocation) -> None:
    """The projects of this store; the current one is marked."""
    with call.memory() as memory:
        projects = memory.projects.list()
        current = memory.project
    if call.as_json:
        data = [
            {
                "id": each.id,
                "name": each.name,
                "gitCommonDir": each.git_common_dir,
                "remote": each.remote,
                "createdAt": each.created_at,
                "isCurrent": each.id == current,
            }
            for each in projects
        ]
        output.envelope(data)
        return
    rows = [
        ("*" if each.id == current else "", each.id, each.name, each.git_common_dir)
        for each in projects
    ]
    output.table(("", "project", "name", "git directory"), rows, folding=("git directory",))


@click.command("version")
@common
def version_command(call: Invocation) -> None:
    """The version of Smara and of what it stands on."""
    import apsw

    data = {
        "smara": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    if call.as_json:
        output.envelope(data)
    else:
        output.say(f"smara {data['smara']} (Python {data['python']}, SQLite {data['sqlite']})")
