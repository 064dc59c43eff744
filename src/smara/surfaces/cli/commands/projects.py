"""``smara projects``"""

from __future__ import annotations

import click

from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.command("projects")
@common
def command(call: Call) -> None:
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
