"""Running the server: which transport, for whom, and how it ends."""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
from mcp.server.lowlevel import Server

from smara.adapters.hosts.beside import Beside
from smara.adapters.hosts.preparing import bring_up_to_date
from smara.core import log
from smara.environment import spool_folder
from smara.errors import ConfigError
from smara.memory import Memory
from smara.surfaces.mcp.http import PATH, is_loopback, listen, parse_address, serve_http
from smara.surfaces.mcp.server import build_server
from smara.surfaces.mcp.stdio import standard_streams
from smara.surfaces.mcp.store import Store
from smara.tools import Profile, ToolContext
from smara.tools.schemas import Form


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server is started."""

    context: ToolContext
    form: Form = "flat"
    address: str | None = None
    """``HOST:PORT`` for HTTP; ``None`` for standard input and output."""
    token: str | None = None
    profile: Profile = "default"


def run_server(open_memory: Callable[[], Memory], options: ServerOptions) -> None:
    """Serve until the input ends or a signal comes; then give back what belongs to this process
    alone.
    """
    store = Store(open_memory, partial(bring_up_to_date, folder=spool_folder()))
    if options.address is not None:
        _run_http(store, options, options.address)
        return
    own_session = None if options.context.session_id else f"mcp-{secrets.token_hex(4)}"
    context = replace(options.context, session_id=options.context.session_id or own_session)
    if sys.stdin.isatty():
        _say(
            "Smara speaks MCP here, a message to a line; agents start this command by themselves. "
            "Ctrl-D ends it."
        )
    beside = Beside(spool_folder())
    beside.start()
    try:
        anyio.run(_serve_stdio, build_server(store, context, options.form, profile=options.profile))
    finally:
        beside.stop()
        # Nobody can come back as a session that was made up for this process: its claims end with
        # it.
        store.close(own_session)


def _run_http(store: Store, options: ServerOptions, address: str) -> None:
    host, port = parse_address(address)
    if not options.token and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines. "
            "Give a token (--token or SMARA_MCP_TOKEN), or listen at 127.0.0.1."
        )
    token = options.token or secrets.token_urlsafe(24)
    bound = listen(host, port)
    name = f"[{host}]" if ":" in host else host
    _say(f"Smara listens at http://{name}:{bound.getsockname()[1]}{PATH}")
    if not options.token:
        _say(f"token: {token}")
    try:
        # Several agents may use it, so nobody's session can be assumed.
        context = replace(options.context, is_shared=options.context.session_id is None)
        server = build_server(store, context, options.form, profile=options.profile)
        anyio.run(_serve_http, server, bound, host, token)
    finally:
        store.close()


async def _serve_stdio(server: Server[Any]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_on_signal, tasks.cancel_scope.cancel)
        async with standard_streams() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _serve_http(server: Server[Any], bound: Any, host: str, token: str) -> None:
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_on_signal, stop.set)
        await serve_http(server, bound, host, token=token, stop=stop)
        tasks.cancel_scope.cancel()


async def _on_signal(act: Callable[[], None]) -> None:
    """Leave when asked to; on Windows the interpreter does it by itself."""
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            log.event("server.stopping", signal=number.name)
            act()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
