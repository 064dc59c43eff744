"""Check which hosts and pages may name a server.

A page of another site can make a browser send requests to this machine. So a request must name this
server in its Host header, and a page that sends one must come from this very server. The MCP server
over HTTP uses the same checks.
"""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import anyio
import uvicorn

from smara.core import log
from smara.core.startup.record import dataclass
from smara.core.startup.regex import regex
from smara.errors import ConfigError, InvalidInputError

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - to recognise it, not to bind it
_HOST = regex(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@\[\]]+))(?::(\d{1,5}))?")


def parse_address(text: str, option: str = "--http") -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``[::1]:PORT``, ``:PORT`` or ``PORT``."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit()) or not 0 <= int(port) <= 65_535:
        raise InvalidInputError(f"{option} takes HOST:PORT, such as 127.0.0.1:8765; got {text!r}.")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Return True if a host name or address is this machine's."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def split_host(value: bytes) -> tuple[str, int | None]:
    """Split ``host:port``; the host is empty if invalid."""
    found = _HOST.fullmatch(value.decode("latin-1").strip().lower())
    if found is None:
        return "", None
    # A name that ends in a dot is the same name.
    name = found[1] or found[2].removesuffix(".")
    return name, int(found[3]) if found[3] else None


@dataclass(frozen=True, slots=True)
class Site:
    """The names under which a server is reached."""

    host: str
    public_url: str = ""
    """Its address behind a proxy, which passes on the host that was asked for."""

    def is_named(self, hosts: Iterable[bytes]) -> bool:
        """Return True if the one Host header names this server.

        The port may be that of a tunnel to this machine; no name of another host leads here.
        """
        every = list(hosts)
        host, _ = split_host(every[0]) if len(every) == 1 else ("", None)
        # Who listens everywhere is reached under names that cannot be known here; the key decides.
        return bool(host) and (self._is_ours(host) or self.host in EVERYWHERE)

    def scheme(self, hosts: Iterable[bytes], otherwise: str) -> str:
        """Return the scheme of a request that names a host.

        Who asks under the public name came through the proxy. What a client claims in
        ``Forwarded`` or ``X-Forwarded-Proto`` is not read.
        """
        scheme, public = self._public()
        is_public = bool(public) and all(split_host(each)[0] == public for each in hosts)
        return scheme if is_public else otherwise

    def is_local_page(self, origin: bytes) -> bool:
        """Return True if an Origin header names a page of this machine."""
        return self._is_ours(split_host(origin.partition(b"://")[2])[0])

    def _is_ours(self, host: str) -> bool:
        return is_loopback(host) or host in (self.host.lower(), self._public()[1] or self.host)

    def _public(self) -> tuple[str, str]:
        scheme, _, rest = self.public_url.partition("://")
        return scheme, split_host(rest.removesuffix("/").encode())[0]


def is_same_origin(origin: bytes, hosts: Iterable[bytes]) -> bool:
    """Return True if a page sends to its own host."""
    scheme, _, rest = origin.partition(b"://")
    default = {b"http": 80, b"https": 443}.get(scheme.lower())
    host, port = split_host(rest)
    if default is None or not host:
        return False
    return all(
        host == named and (port or default) == (other or default)
        for named, other in map(split_host, hosts)
    )


def bind(host: str, port: int, option: str) -> socket.socket:
    """Listen at an address and return the socket.

    Raises:
        ConfigError: If the address is taken or not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
        # asyncio does it for sockets of its own alone; without it an answer in two pieces waits
        # 40 ms for the client's acknowledgement of the first.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound
    except OSError as error:
        raise ConfigError(
            f"Cannot listen at {host}:{port}: {error.strerror}. Choose another {option} address."
        ) from None


def url_of(host: str, bound: socket.socket) -> str:
    """Return the address of a server that listens."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{bound.getsockname()[1]}"


class QuietServer(uvicorn.Server):
    """A uvicorn that leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signal."""
        yield


async def on_signal(act: Callable[[], None]) -> None:
    """Leave when asked to; on Windows the interpreter does it by itself."""
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            log.event("server.stopping", signal=number.name)
            act()
