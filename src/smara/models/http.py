"""Exchange JSON over HTTP with embedding and reranking servers.

Standard library only, so that a plain installation can call Ollama. Each exchange has its own
thread, and the caller returns at the deadline whatever the server does. Redirects are not followed:
they would carry a key to another address.
"""

from __future__ import annotations

import json
import socket
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from smara.core.clock import SystemClock
from smara.core.deadline import Abort, run_within
from smara.core.startup.record import dataclass
from smara.core.validate import no_constant
from smara.errors import BadReplyError, ConfigError
from smara.models import failures

THREAD_NAME = "smara-http"
MOST_BYTES = 64_000_000
_PIECE_BYTES = 65_536
_MOST_ERROR_BYTES = 65_536
_WHO = "smara"


def request_json(
    url: str,
    body: Mapping[str, Any] | None = None,
    *,
    model: str,
    deadline_seconds: float,
    headers: Mapping[str, str] | None = None,
    most_bytes: int = MOST_BYTES,
    advice: Mapping[str, str] | None = None,
    abort: Abort | None = None,
) -> Any:
    """Post JSON, or get it without a body; return the answer.

    ``model`` is who the errors speak of; ``advice`` has other last sentences for some of their
    reasons.

    Raises:
        ModelError: There is no answer within the deadline. An error whose fact ``may_be_billed``
            is ``False`` cost nothing.
        ConfigError: The address is invalid.
    """
    address, was_sent, sent = parse_address(url), False, None
    fields = {
        "Accept": "application/json",
        "User-Agent": _WHO,
        **_login(address),
        **(headers or {}),
    }
    if body is not None:
        sent = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        fields = {"Content-Type": "application/json", **fields}

    def exchange(stop: Abort) -> _Answer:
        nonlocal was_sent
        connection, target, proxy_fields = _connection(address, deadline_seconds)

        def hang_up() -> None:
            """Shut the socket, which wakes a thread that waits on it."""
            with suppress(OSError):  # the other side was first, or the socket is being wrapped
                if connection.sock is not None:
                    connection.sock.shutdown(socket.SHUT_RDWR)

        try:
            with stop.calling(hang_up):
                connection.connect()
                if stop.is_set():
                    raise TimeoutError
                was_sent = True
                connection.request(
                    "GET" if sent is None else "POST", target, sent, {**fields, **proxy_fields}
                )
                response = connection.getresponse()
                most = most_bytes if response.status < 300 else _MOST_ERROR_BYTES
                content = bytearray()
                while len(content) <= most and (piece := response.read(_PIECE_BYTES)):
                    content += piece
                if response.length and len(content) <= most:  # announced, and it did not come
                    raise IncompleteRead(bytes(content[:0]), response.length)
                return _Answer(response.status, bytes(content), response.headers.get("Retry-After"))
        finally:
            # Here alone: closing what another thread still reads would wait for it.
            connection.close()

    if deadline_seconds <= 0:
        raise failures.timed_out(model, 0, may_be_billed=False, advice=advice)
    try:
        answer = run_within(
            exchange, deadline_seconds, SystemClock(), thread_name=THREAD_NAME, abort=abort
        )
    except InterruptedError:
        raise failures.taken_back(model, was_sent) from None
    except TimeoutError as error:
        raise failures.timed_out(model, deadline_seconds, was_sent, advice=advice) from error
    except (OSError, IncompleteRead) as error:
        reason = f"{type(error).__name__}: {error}"
        raise failures.failure(
            model, "connection", reason, may_be_billed=was_sent, advice=advice
        ) from error
    except HTTPException as error:
        raise failures.unreadable(model, f"{type(error).__name__}: {error}") from error
    return _read(answer, model, most_bytes, advice=advice)


def _read(answer: _Answer, model: str, most_bytes: int, advice: Mapping[str, str] | None) -> Any:
    """Return the JSON of an answer; raise for a refusal and for anything else."""
    is_refusal = answer.status >= 300
    if len(answer.content) > most_bytes and not is_refusal:
        raise BadReplyError(
            f"{model} sent more than {most_bytes:,} bytes; the rest was not read. Check the "
            "server.",
            model=model,
            reason="too_long",
            may_be_billed=True,
        )

    try:
        body = json.loads(answer.content, parse_constant=None if is_refusal else no_constant)
    except (ValueError, RecursionError) as error:
        if not is_refusal:
            raise failures.unreadable(model, f"{type(error).__name__}: {error}") from None
        body = answer.content[:200].decode("utf-8", "replace")
    if is_refusal:
        wait = _seconds(answer.retry_after)
        raise failures.from_status(
            model, answer.status, body, retry_after_seconds=wait, advice=advice
        )
    return body


def bearer(key: str | None) -> dict[str, str]:
    """The header that shows a key; none without a key."""
    if not key:
        return {}
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            "A key has characters that no key has, such as a space or a line end. Copy it again."
        )
    return {"Authorization": f"Bearer {key}"}


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    content: bytes
    retry_after: str | None


def _seconds(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    if header is None:
        return None
    try:
        found = float(header)
    except ValueError:
        try:
            at = parsedate_to_datetime(header)
        except ValueError:
            return None
        found = (at - datetime.now(at.tzinfo or UTC)).total_seconds() if at.tzinfo else 0.0
    return found if 0 <= found < float("inf") else None


def parse_address(url: str) -> SplitResult:
    """Parse an address; raise ``ConfigError`` for an invalid one."""
    try:
        parts = urlsplit(url)
        is_good = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        )
    except ValueError:
        is_good = False
    if not is_good or not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError(
            f"{without_login(url)!r} is no address. Write it as http://HOST:PORT/PATH or https://…."
        )
    return parts


def without_login(url: str) -> str:
    """Return an address without user and password."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def _login(parts: SplitResult, header: str = "Authorization") -> dict[str, str]:
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {header: f"Basic {b64encode(pair.encode()).decode()}"}


def _connection(parts: SplitResult, seconds: float) -> tuple[HTTPConnection, str, dict[str, str]]:
    """The connection for an address, what to ask it for, and headers for the proxy on the way."""
    from urllib.request import getproxies, proxy_bypass

    host = parts.hostname or ""
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    # No proxy reaches this machine.
    is_direct = is_this_machine(host) or proxy_bypass(host)
    named = None if is_direct else getproxies().get(parts.scheme)
    if not named:
        return kind(host, parts.port, timeout=seconds), target, {}
    proxy = parse_address(named if "://" in named else f"http://{named}")
    connection = kind(proxy.hostname or "", proxy.port or 80, timeout=seconds)
    login = _login(proxy, "Proxy-Authorization")
    if parts.scheme == "https":
        connection.set_tunnel(host, parts.port or 443, login)
        return connection, target, {}
    place = f"[{host}]" if ":" in host else host
    return connection, f"http://{place}:{parts.port or 80}{target}", login


def is_this_machine(host: str) -> bool:
    """Return True if an address is that of this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
