"""Define `smara serve` and `smara keys`."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from smara.config import load_settings
from smara.memory import Memory, open_memory
from smara.requests.models import Principal
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common, needs_extra, with_memory
from smara.telemetry.trace import start_tracing

_DAY_MS = 86_400_000
_needs_http = partial(
    needs_extra,
    "http",
    'The HTTP server needs the package {}. Install it with: pip install "smara[http]"',
)


@click.command("serve")
@click.option(
    "--listen",
    "address",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    help="Where to listen; port 0 takes a free one. The default is 127.0.0.1:0.",
)
@click.option("--key", metavar="KEY", help="The key of programs; also SMARA_HTTP_KEY.")
@click.option("--mem0", "has_mem0", is_flag=True, help="Serve clients of mem0, too.")
@common
def serve_command(call: Invocation, address: str, key: str | None, has_mem0: bool) -> None:
    """Serve the memory over HTTP, to browsers and programs of this machine."""
    _serve(call, address, key, has_mem0)


@click.command("ui")
@click.option(
    "--listen",
    "address",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    help="Where to listen; port 0 takes a free one. The default is 127.0.0.1:0.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--export",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write one page of the project that needs no server, and end.",
)
@click.option("--language", type=click.Choice(("en", "fr")), default="en", help="Of that page.")
@common
def ui_command(
    call: Invocation, address: str, no_browser: bool, file: Path | None, language: str
) -> Reply:
    """Open the panel: see, review and correct what is remembered."""
    if file is None:
        _serve(call, address, show=None if no_browser else webbrowser.open)
        return
    with _needs_http():
        from smara.surfaces.panel.export import export
    with call.memory() as memory:
        report = export(memory, file, language)
    yield report
    counts = ", ".join(f"{count:,} {name}" for name, count in report["counts"].items())
    output.say(f"Wrote {file} ({output.size(report['bytes'])}): {counts}.")
    output.say("It holds private text of the project; share it as you would share the code.")


def _serve(
    call: Invocation,
    address: str,
    key: str | None = None,
    has_mem0: bool = False,
    show: Callable[[str], object] | None = None,
) -> None:
    """Serve until a signal."""
    settings = load_settings(db=call.db, project=call.project, http_key=key)
    if settings.tracing:
        start_tracing()
    with _needs_http():
        from smara.surfaces.http.server import ServeOptions, run
        from smara.surfaces.panel.panel import panel_routes
    run(
        partial(open_memory, call.db, project=call.project),
        ServeOptions(
            address,
            key=settings.http_key,
            has_mem0=has_mem0,
            pages=panel_routes,
            show=show,
            drain_seconds=settings.drain_seconds,
            is_logged=settings.log_format == "json",
            public_url=settings.public_url or "",
        ),
        call.as_json,
    )


keys_command = click.Group("keys", help="Add, list and revoke access keys of the HTTP server.")


@keys_command.command("add")
@click.argument("name")
@click.option("--read-only", is_flag=True, help="It may read, and change nothing.")
@click.option("--agent", is_flag=True, help="It acts as an agent: it cannot confirm memories.")
@click.option(
    "--only-project", "projects", metavar="NAME", multiple=True, help="Only this project."
)
@click.option("--days", type=click.IntRange(1, 3_650), metavar="N", help="It ends after N days.")
@with_memory
def add_key(
    memory: Memory,
    name: str,
    read_only: bool,
    agent: bool,
    projects: tuple[str, ...],
    days: int | None,
) -> Reply:
    """Make a key and print it; it is shown this once."""
    now_ms = int(time.time() * 1_000)
    principal = Principal(
        name,
        may_write=not read_only,
        is_person=not agent,
        projects=projects or None,
        expires_at=now_ms + days * _DAY_MS if days else None,
    )
    secret = memory.internals.requests.access.add(principal, now_ms)
    yield {**_key_json(principal), "key": secret}
    click.echo(secret)
    output.say(f"Send it as `Authorization: Bearer KEY`. `smara keys revoke {name}` ends it.")


@keys_command.command("list")
@with_memory
def list_keys(memory: Memory) -> Reply:
    """List the keys; their secrets are not stored."""
    keys = memory.internals.requests.access.list()
    yield [_key_json(each) for each in keys]
    output.table(
        ("key", "may", "as", "projects", "until"),
        [
            (
                each.name,
                "write" if each.may_write else "read",
                "person" if each.is_person else "agent",
                ", ".join(each.projects) if each.projects else "all",
                output.moment(each.expires_at) if each.expires_at else "",
            )
            for each in keys
        ],
    )


@keys_command.command("revoke")
@click.argument("name")
@with_memory
def revoke_key(memory: Memory, name: str) -> Reply:
    """End a key; running servers refuse it at once."""
    gone = memory.internals.requests.access.revoke(name)
    yield _key_json(gone)
    output.say(f"Revoked {gone.name}.")


def _key_json(key: Principal) -> dict[str, object]:
    return {
        "name": key.name,
        "mayWrite": key.may_write,
        "isPerson": key.is_person,
        "projects": list(key.projects) if key.projects is not None else None,
        "expiresAt": key.expires_at,
    }
