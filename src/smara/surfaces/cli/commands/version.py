"""``smara version``"""

from __future__ import annotations

import platform

import click

from smara import __version__
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.command("version")
@common
def command(call: Call) -> None:
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
