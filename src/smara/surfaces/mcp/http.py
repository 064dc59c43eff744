"""Streamable HTTP, for hosts that share one server: on this machine only, unless a token says who
may come.

A browser on the same machine can reach a loopback port too, and a web page can make it try.
So every request must name a host that we are, must not come from a foreign page, and must
carry the token.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from smara.errors import ConfigError, InvalidInputError

PATH = "/mcp"
MOST_BODY_BYTES = 4 * 1024 * 1024
_CLOSING_SECONDS = 3
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - to recognise it, not to bind it
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``[::1]:PORT``, ``:PORT`` or ``PORT``."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or not 0 <= int(port) <= 65_535:
        raise InvalidInputError(f"--http takes HOST:PORT, such as 127.0.0.1:8765; got {text!r}.")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound already, so that the port is known before anybody is told it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"Cannot listen at {host}:{port}: {error.strerror}. Choose another --http address."
        ) from None


async def serve_http(
    server: Server[Any], bound: socket.socket, host: str, token: str, stop: anyio.Event
) -> None:
    """Serve until ``stop`` is set; requests under way get a moment to finish."""
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MOST_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        ),  # Guard does it
    )
    config = uvicorn.Config(
        Guard(inner, host, token),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=_CLOSING_SECONDS,
        ws="none",
    )
    running = _Quiet(config)
    async with anyio.create_task_group() as tasks:

        async def end() -> None:
            await stop.wait()
            running.should_exit = True

        tasks.start_soon(end)
        await running.serve(sockets=[bound])
        tasks.cancel_scope.cancel()


class _Quiet(uvicorn.Server):
    """A uvicorn that leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Any:
        yield


class Guard:
    """Lets in what names our host, comes from no foreign page, and carries the token."""

    def __init__(self, app: Any, host: str, token: str) -> None:
        self._app = app
        self._host = host
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(scope) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await _answer(send, *refused)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        # Who listens everywhere is reached under names that cannot be known here; the token
        # decides.
        if len(hosts) != 1 or not (self._is_ours(_host_of(hosts[0])) or self._host in _EVERYWHERE):
            return 403, "The Host header does not name this server."
        if any(not self._is_ours(_host_of(origin.partition(b"://")[2])) for origin in origins):
            return 403, "The Origin header names a foreign page."
        sent = headers.get(b"authorization", [])
        kind, _, token = sent[0].partition(b" ") if len(sent) == 1 else (b"", b"", b"")
        if kind.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            return 401, "A token is needed: Authorization: Bearer TOKEN."
        return None

    def _is_ours(self, host: str) -> bool:
        return is_loopback(host) or host == self._host.lower()


def _host_of(value: bytes) -> str:
    """The host of ``host:port``, without the port and the brackets of IPv6."""
    text = value.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


async def _answer(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
