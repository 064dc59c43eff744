"""Run the MCP server over standard streams or streamable HTTP.

`run_server` chooses the transport and ends on a signal.
Standard output carries one JSON-RPC message per line and nothing else. HTTP listens on the
loopback address only, unless a token is required.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import click
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage

from smara.adapters.hosts.hook_store import ServerDrain
from smara.adapters.hosts.precompute import bring_up_to_date
from smara.core.startup.record import dataclass, replace
from smara.core.startup.regex import regex
from smara.environment import spool_folder
from smara.errors import ConfigError
from smara.memory import Memory
from smara.shapes import encodable
from smara.surfaces.hooks import write_output
from smara.surfaces.http.address import (
    QuietServer,
    Site,
    bind,
    is_loopback,
    on_signal,
    parse_address,
    url_of,
)
from smara.surfaces.http.connections import ConnectionLimits, bounded
from smara.surfaces.http.guard import MOST_BODY_BYTES, Headers, check_request
from smara.surfaces.http.metrics import Metrics
from smara.surfaces.http.operations import MetricsPage, Operations
from smara.surfaces.http.problem import Refusal
from smara.surfaces.http.store import Store
from smara.surfaces.mcp.server import build_server
from smara.tools import Profile, ToolContext
from smara.tools.schemas import Form

MOST_LINE_BYTES = 8 * 1024 * 1024
_CHUNK = 65_536
_LAST_ANSWERS_SECONDS = 5.0
_ID = r'"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?\d{1,18})'
_ID_FIRST = regex(rf'\s*\{{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?{_ID}')
_ID_LAST = regex(rf"{_ID}\s*\}}\s*\Z")

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Open the server's standard streams; they end with the input.

    From here on file descriptor 1 leads to standard error, so that a stray ``print``, of
    ours or of a library, cannot get between the messages.
    """
    wire = _Wire(*_take_over())
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.receive, to_server, to_client.clone())
        tasks.start_soon(wire.send, from_server, tasks.cancel_scope)
        yield from_client, to_client
        # The server has closed its end; what it wrote last is still on its way.


class _Wire:
    """The two ends of the pipe, and the requests that have no answer yet."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._unanswered: set[str | int] = set()
        self._all_answered = anyio.Event()
        self._is_ended = False

    async def receive(
        self, to_server: MemoryObjectSendStream[SessionMessage | Exception], to_client: Outgoing
    ) -> None:
        async with to_server, to_client:
            async for line in _lines(self._read_fd):
                message = read_line(line)
                if isinstance(message, types.JSONRPCError):
                    await to_client.send(SessionMessage(message))
                elif message is not None:
                    if isinstance(message, types.JSONRPCRequest):
                        self._unanswered.add(message.id)
                    await to_server.send(SessionMessage(message))
            self._is_ended = True
            if self._unanswered:
                with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
                    await self._all_answered.wait()

    async def send(
        self, from_server: MemoryObjectReceiveStream[SessionMessage], scope: anyio.CancelScope
    ) -> None:
        async with from_server:
            async for each in from_server:
                data = (
                    each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                )
                try:
                    await anyio.to_thread.run_sync(write_output, self._write_fd, data)
                except OSError:  # nobody reads any more
                    scope.cancel()
                    return
                if isinstance(each.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._unanswered.discard(each.message.id)
                    if self._is_ended and not self._unanswered:
                        self._all_answered.set()


def read_line(line: bytes) -> types.JSONRPCMessage | None:
    """Parse a line's message; an error reply, or ``None`` if blank."""
    if not line.strip():
        return None
    if len(line) > MOST_LINE_BYTES:
        return _refused(
            line, types.INVALID_REQUEST, f"The message is longer than {MOST_LINE_BYTES:,} bytes."
        )
    text = line.decode("utf-8", "replace")
    try:
        return types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        pass
    try:
        return types.jsonrpc_message_adapter.validate_python(
            encodable(json.loads(text)), by_name=False
        )
    except json.JSONDecodeError as error:
        return _refused(
            line,
            types.PARSE_ERROR,
            f"The message is not JSON: {error.msg} at character {error.pos}.",
        )
    except RecursionError:
        return _refused(line, types.PARSE_ERROR, "The message is nested too deeply.")
    except ValueError:
        return _refused(
            line,
            types.INVALID_REQUEST,
            "The message is not a JSON-RPC 2.0 request or notification.",
        )


def _refused(line: bytes, code: int, why: str) -> types.JSONRPCError:
    # The id of a request that cannot be read is first or last, where every client puts it.
    start, end = (part.decode("utf-8", "replace") for part in (line[:1_000], line[-1_000:]))
    found = _ID_FIRST.match(start) or _ID_LAST.search(end)
    request_id: Any = None
    with suppress(ValueError):
        request_id = json.loads(found[1]) if found else None
    return types.JSONRPCError(
        jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=why)
    )


async def _lines(fd: int) -> AsyncIterator[bytes]:
    """The lines of a pipe. A thread of its own waits for them, which no exit has to wait for."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def deliver(line: bytes | None) -> None:
        with suppress(RuntimeError):  # the loop has ended: no reader is left
            loop.call_soon_threadsafe(queue.put_nowait, line)

    threading.Thread(target=_pump, args=(fd, deliver), name="smara-mcp-input", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def _pump(fd: int, deliver: Callable[[bytes | None], None]) -> None:
    pending = bytearray()
    while True:
        try:
            chunk = os.read(fd, _CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            if pending.strip():
                deliver(bytes(pending))
            deliver(None)
            return
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            deliver(bytes(pending + line))
            pending.clear()
        # Of a line that is refused for its length only so much is kept as tells whose it was.
        pending += rest if len(pending) <= MOST_LINE_BYTES else b""


def _take_over() -> tuple[int, int]:
    """Private descriptors for the pipe; 0 and 1 now lead nowhere and to standard error."""
    sys.stdout.flush()
    read_fd, write_fd = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nowhere, 1)
    os.close(nowhere)
    if sys.platform == "win32":
        import msvcrt

        for fd in (read_fd, write_fd):
            msvcrt.setmode(fd, os.O_BINARY)
    return read_fd, write_fd


PATH = "/mcp"
_CLOSING_SECONDS = 20
_SURROGATE = regex(r"\\u[dD][89a-fA-F]")
# What stands behind a request of two lengths would be read as another request.
_HEADERS = {
    400: [(b"connection", b"close")],
    401: [(b"www-authenticate", b"Bearer")],
    405: [(b"allow", b"POST")],
}
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def _serve_http(
    server: Server[Any], bound: socket.socket, host: str, store: Store, options: ServerOptions
) -> None:
    """Serve until a signal; running requests get a moment."""
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MOST_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        ),  # Guard does it
    )
    limits = ConnectionLimits.of_process()
    metrics = Metrics()
    guard = Guard(
        MetricsPage(inner, store, metrics), Site(host, options.public_url), options.token or ""
    )
    front = Operations(guard, store, metrics)
    running = QuietServer(bounded(front, limits, _CLOSING_SECONDS, lifespan="on"))
    stop = partial(setattr, running, "should_exit", True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(on_signal, partial(front.drain, running, stop, options.drain_seconds))
        await running.serve(sockets=[bound])
        tasks.cancel_scope.cancel()


class Guard:
    """A guard that admits our host, no foreign page, and the token."""

    def __init__(self, app: Any, site: Site, token: str) -> None:
        self._app = app
        self._site = site
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(scope) if scope["type"] == "http" else None
        if refused is None:
            is_post = scope.get("method") == "POST"
            await self._app(scope, await _mended(receive) if is_post else receive, send)
        else:
            status, text = refused
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            headers += _HEADERS.get(status, [])
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": text.encode()})

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope)
        try:
            check_request(
                scope,
                headers,
                self._site,
                most_bytes=MOST_BODY_BYTES,
                is_own_page=self._site.is_local_page,
            )
        except Refusal as error:
            # The protocol has one status for whoever is not let in.
            return 403 if error.status == 421 else error.status, error.detail
        kind, _, token = headers.one(b"authorization").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(
            token.strip().encode("latin-1"), self._token
        ):
            return 401, "A token is needed: Authorization: Bearer TOKEN."
        if scope.get("method") == "GET" and scope.get("path") == PATH:
            # A stream for what a server says unasked; this one never does, and it would stay open.
            return 405, "This server sends nothing unasked. Use POST."
        return None


async def _mended(receive: Receive) -> Receive:
    """A body as the standard streams read it: without lone surrogates and broken UTF-8."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body") or len(body) > MOST_BODY_BYTES:
            break
    text = body.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):  # whoever parses it says what is wrong
        if _SURROGATE.search(text):
            text = json.dumps(encodable(json.loads(text)))
    first = [message if message["type"] != "http.request" else {**message, "body": text.encode()}]

    async def receive_mended() -> MutableMapping[str, Any]:
        return first.pop() if first else await receive()

    return receive_mended


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server."""

    context: ToolContext
    form: Form = "flat"
    address: str | None = None
    """``HOST:PORT`` for HTTP; ``None`` for standard input and output."""
    token: str | None = None
    profile: Profile = "default"
    drain_seconds: float = 0.0
    public_url: str = ""


def run_server(open_memory: Callable[[], Memory], options: ServerOptions) -> None:
    """Serve until the input ends or a signal; then clean up."""
    store = Store(open_memory, partial(bring_up_to_date, folder=spool_folder()))
    if options.address is not None:
        _run_http(store, options, options.address)
        return
    own_session = None if options.context.session_id else f"mcp-{secrets.token_hex(4)}"
    context = replace(options.context, session_id=options.context.session_id or own_session)
    if sys.stdin.isatty():
        click.echo(
            "Smara speaks MCP here, a message to a line; agents start this command by themselves. "
            "Ctrl-D ends it.",
            err=True,
        )
    beside = ServerDrain(spool_folder())
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
    bound = bind(host, port, "--http")
    click.echo(f"Smara listens at {url_of(host, bound)}{PATH}", err=True)
    if not options.token:
        click.echo(f"token: {token}", err=True)
    try:
        # Several agents may use it, so nobody's session can be assumed.
        context = replace(options.context, is_shared=options.context.session_id is None)
        server = build_server(store, context, options.form, profile=options.profile)
        anyio.run(_serve_http, server, bound, host, store, replace(options, token=token))
    finally:
        store.close()


async def _serve_stdio(server: Server[Any]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(on_signal, tasks.cancel_scope.cancel)
        async with standard_streams() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()
