"""Define `smara projects` and `version`."""

from __future__ import annotations

import os
import platform

import click

from smara import __version__
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common, complete_project


@click.command("projects")
@click.argument("verb", required=False, type=click.Choice(["list"]), metavar="[list]")
@click.option(
    "--adopt",
    metavar="PROJECT",
    help="Make PROJECT the one of the repository here.",
    shell_complete=complete_project,
)
@common
def projects_command(call: Invocation, verb: str | None, adopt: str | None) -> Reply:
    """List the projects of this store; the current one is marked.

    With --adopt, what the repository's project has stored until now stays
    there, under its name.
    """
    if adopt is not None:
        with call.memory() as memory:
            memory.projects.adopt(adopt, os.getcwd())
    with call.memory() as memory:
        projects = memory.projects.list()
        current = memory.project
        notes = {each.id: memory.projects.notes(each.id) for each in projects}
    yield [
        {
            "id": each.id,
            "name": each.name,
            "folders": each.folders,
            "remotes": each.remotes,
            "notes": notes[each.id],
            "createdAt": each.created_at,
            "isCurrent": each.id == current,
        }
        for each in projects
    ]
    output.table(
        ("", "project", "name", "folders"),
        [
            ("*" if each.id == current else "", each.id, each.name, ", ".join(each.folders))
            for each in projects
        ],
        folding=("folders",),
    )
    for note in notes[current]:
        click.echo(output.paragraph(note, f"{current}: ", "  "), err=True)


@click.command("version")
@common
def version_command(call: Invocation) -> Reply:
    """Show the versions of Smara, Python and SQLite."""
    import apsw

    data = {
        "smara": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    yield data
    output.say(f"smara {data['smara']} (Python {data['python']}, SQLite {data['sqlite']})")
