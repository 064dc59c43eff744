"""Define `smara mcp`: serve the memory over the Model Context Protocol."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from smara.config import load_settings
from smara.memory import open_memory
from smara.surfaces.cli.options import Invocation, common, needs_extra
from smara.telemetry.trace import start_tracing
from smara.tools import ToolContext

_NEEDS_MCP = (
    "The MCP server needs the package {}, which comes with mcp 2. Install it "
    'with: pip install "mcp>=2,<3". If another package here needs mcp 1, install Smara in '
    "an environment of its own: uv tool install smara"
)


@click.command("mcp")
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    help="Serve HTTP at this address instead of standard input and output.",
)
@click.option("--token", metavar="TOKEN", help="The token of HTTP clients; also SMARA_MCP_TOKEN.")
@click.option(
    "--session", "session_id", metavar="ID", help="The agent's session; also SMARA_SESSION."
)
@click.option("--thread", "thread_id", metavar="ID", help="The conversation of the agent.")
@click.option(
    "--resource",
    "resource_id",
    metavar="ID",
    help="The owner of the working memory; also SMARA_RESOURCE.",
)
@click.option("--actor", metavar="NAME", help="The name in the history of tasks; also SMARA_ACTOR.")
@click.option(
    "--profile",
    type=click.Choice(["default", "coding"]),
    help="default: four tools; coding: also code; also SMARA_TOOL_PROFILE.",
)
@click.option(
    "--schemas",
    "form",
    type=click.Choice(["flat", "union"]),
    default="flat",
    show_default=True,
    help="The form of the schemas; union is exact, but some hosts reject it.",
)
@common
def mcp_command(
    call: Invocation,
    address: str | None,
    token: str | None,
    session_id: str | None,
    thread_id: str | None,
    resource_id: str | None,
    actor: str | None,
    profile: Any,
    form: str,
) -> None:
    """Serve the memory to agents over the Model Context Protocol."""
    settings = load_settings(
        db=call.db,
        project=call.project,
        session=session_id,
        actor=actor,
        resource=resource_id,
        mcp_token=token,
        tool_profile=profile,
    )
    with needs_extra("mcp", _NEEDS_MCP):
        from smara.surfaces.mcp.transport import ServerOptions, run_server
    context = ToolContext(settings.session, thread_id, resource_id, settings.actor)
    opened = partial(
        open_memory,
        call.db,
        project=call.project,
        session=session_id,
        actor=actor,
        resource=resource_id,
    )
    options = ServerOptions(
        context,
        form,  # type: ignore[arg-type]
        address,
        token=settings.mcp_token,
        profile=settings.tool_profile,
        drain_seconds=settings.drain_seconds,
        public_url=settings.public_url or "",
    )
    if settings.tracing and address is not None:
        start_tracing()
    run_server(opened, options)
