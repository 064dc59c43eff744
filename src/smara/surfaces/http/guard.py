"""Stand before every route: who may ask, how much, and how fast.

The order matters: what a foreign page or a foreign name sends is refused before its key is looked
at, and a body is read only for those who have one. Nothing that is refused is logged with its
words: a header may hold a key.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from functools import partial
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from smara.core import log
from smara.core.startup.record import dataclass
from smara.errors import SmaraError
from smara.requests.models import SECRET_LENGTH, Principal, hash_of
from smara.surfaces.http.address import Site, is_same_origin
from smara.surfaces.http.keys import Doorkeeper
from smara.surfaces.http.problem import MEDIA_TYPE, Refusal, problem_of

MOST_BODY_BYTES = 4 * 1024 * 1024
READS = frozenset({"GET", "HEAD"})
OPEN_PATHS = frozenset({"/health", "/login"})
"""What is answered without a key."""
KEYS_IN_URLS = frozenset({"token", "access_token", "api_key", "apikey", "key", "bearer"})
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    # With "no-referrer" a browser sends the forms of our own pages under the origin "null".
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
_NO_STORE = (b"cache-control", b"no-store")
_MOST_PEERS = 4_096
_MOST_ACCEPTED = 1_024
_MOST_REJECTED = 4_096
_REJECTED_SECONDS = 10.0
_TURN_SECONDS = 2.0
"""How long the first look-up of a secret may wait for its turn."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds on what one client may ask of a server."""

    body_bytes: int = MOST_BODY_BYTES
    requests_per_second: float = 200.0
    burst: int = 600
    failures_per_minute: int = 20
    lookups_per_second: float = 50.0
    """How often the store is asked for secrets of one address that were not let in before."""
    lookup_burst: int = 200
    send_seconds: float = 30.0
    """How long a client may take to read a piece of an answer."""


class Rate:
    """A bucket of requests for each client."""

    def __init__(self, per_second: float, burst: int, monotonic: Callable[[], float]) -> None:
        self._per_second, self._burst, self._monotonic = per_second, burst, monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, patience: float = 0.0) -> float:
        """Take one from a client's bucket; return the seconds to wait.

        Args:
            client: The client.
            patience: The seconds that it waits: the next one is its own then. With more to wait,
                nothing is taken.
        """
        now, full = self._monotonic(), float(self._burst)
        left, at = self._buckets.pop(client, (full, now))
        while len(self._buckets) >= _MOST_PEERS:
            self._buckets.popitem(last=False)
        left = min(full, left + (now - at) * self._per_second)
        seconds = max(0.0, (1.0 - left) / self._per_second)
        self._buckets[client] = (left - 1.0 if seconds <= patience else left, now)
        return seconds


class Headers:
    """The headers of a request; a name may stand there several times."""

    def __init__(self, scope: Scope) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            self._values.setdefault(name.lower(), []).append(value)

    def all(self, name: bytes) -> list[bytes]:
        """Return every value of a header."""
        return self._values.get(name, [])

    def one(self, name: bytes) -> str:
        """Return the one value of a header, or an empty text."""
        values = self.all(name)
        return values[0].decode("latin-1").strip() if len(values) == 1 else ""


class Doorway:
    """The outermost layer of the server."""

    def __init__(
        self,
        app: ASGIApp,
        site: Site,
        doorkeeper: Doorkeeper,
        *,
        cookie: str,
        limits: Limits | None = None,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self._app = app
        self._site = site
        self._doorkeeper = doorkeeper
        self._cookie = cookie
        self._limits = limits or Limits()
        clock = monotonic or _loop_time
        self._rate = Rate(self._limits.requests_per_second, self._limits.burst, clock)
        failures = self._limits.failures_per_minute
        self._failures = Rate(failures / 60, failures, clock)
        self._lookups = Rate(self._limits.lookups_per_second, self._limits.lookup_burst, clock)
        self._monotonic = clock
        self._accepted: OrderedDict[str, float] = OrderedDict()
        self._rejected: OrderedDict[str, float] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Outgoing(send, self._limits.send_seconds)
        try:
            headers = Headers(scope)
            self._check_request(scope, headers)
            principal = await self._identify(scope, headers)
            is_known = partial(self._is_known, headers)
            scope["state"] = {
                **scope.get("state", {}), "principal": principal, "is_known": is_known
            }  # fmt: skip
            # Cookies are for TLS alone where a proxy speaks it for this server.
            scope["scheme"] = self._site.scheme(headers.all(b"host"), scope["scheme"])
            body = _BoundedBody(receive, self._limits.body_bytes)
            await self._app(scope, body.receive, answer.send)
        except Exception as error:
            if answer.is_begun:
                raise
            await answer.refuse(error)

    def _check_request(self, scope: Scope, headers: Headers) -> None:
        """Refuse what a foreign page or name sends."""
        hosts = headers.all(b"host")
        check_request(
            scope,
            headers,
            self._site,
            most_bytes=self._limits.body_bytes,
            is_own_page=lambda origin: is_same_origin(origin, hosts),
        )
        is_navigation = scope["path"] == "/login" and scope["method"] in READS
        site = headers.one(b"sec-fetch-site").lower()
        if site not in ("", "same-origin", "none") and not is_navigation:
            raise Refusal(403, "foreign_origin", "A foreign page sent this request.")

    async def _identify(self, scope: Scope, headers: Headers) -> Principal | None:
        peer = _peer_of(scope)
        if scope["path"] in OPEN_PATHS:
            self._wait(self._rate.take(f"open {peer}"))
            return None
        principal, is_given = await self._principal(headers, peer)
        if principal is None:
            # One who only guesses is slowed down; one who has a key is not hindered by that.
            if is_given:
                self._wait(self._failures.take(peer))
            raise Refusal(
                401,
                "no_key" if not is_given else "wrong_key",
                "A key is needed: Authorization: Bearer KEY.",
                www_authenticate="Bearer",
            )
        if principal.is_browser and scope["method"] not in READS and not headers.all(b"origin"):
            raise Refusal(
                403, "no_origin", "A browser's request to change something names its page."
            )
        self._wait(self._rate.take(f"{principal.name} {peer}"))
        return principal

    async def _is_known(self, headers: Headers) -> bool:
        """Look again who sent a request whose answer takes long."""
        # It had a key when it began: it is not one of those that only guess.
        return (await self._principal(headers))[0] is not None

    async def _principal(
        self, headers: Headers, peer: str | None = None
    ) -> tuple[Principal | None, bool]:
        """Return the holder of a key or a session, and if one was sent.

        Args:
            headers: Those of the request.
            peer: The address whose first look-ups are bounded.
        """
        if headers.all(b"authorization"):
            kind, _, secret = headers.one(b"authorization").partition(" ")
            if kind.lower() not in ("bearer", "token"):
                return None, True
            if own := self._doorkeeper.by_own_key(secret := secret.strip()):
                return own, True
            find, hashed = self._doorkeeper.by_key, f"key {hash_of(secret)}"
        else:
            secret = session_of(headers, self._cookie)
            if not secret:
                return None, False
            find, hashed = self._doorkeeper.by_session, f"session {hash_of(secret)}"
        # A browser whose session has ended asks on and on: that is no look-up, and hinders no
        # neighbor at the same address, such as a proxy.
        if len(secret) != SECRET_LENGTH or self._rejected.get(hashed, 0.0) > self._monotonic():
            return None, True
        if peer is not None and hashed not in self._accepted:
            await self._turn(peer)
        principal = await run_in_threadpool(find, secret)
        self._accepted.pop(hashed, None)
        self._rejected.pop(hashed, None)
        judged, most = (
            (self._rejected, _MOST_REJECTED)
            if principal is None
            else (self._accepted, _MOST_ACCEPTED)
        )
        while len(judged) >= most:
            judged.popitem(last=False)
        judged[hashed] = self._monotonic() + _REJECTED_SECONDS
        return principal, True

    async def _turn(self, peer: str) -> None:
        """Wait until the store may be asked for a secret that was not let in before."""
        seconds = self._lookups.take(peer, _TURN_SECONDS)
        self._wait(seconds if seconds > _TURN_SECONDS else 0.0)
        if seconds:
            # Refused at once, a valid key would find each turn taken by one who guesses faster.
            await asyncio.sleep(seconds)

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            after = max(1, round(seconds + 0.5))
            raise Refusal(
                429, "too_many", f"Too many requests. Wait {after} s.", retry_after=str(after)
            )


def check_request(
    scope: Scope,
    headers: Headers,
    site: Site,
    *,
    most_bytes: int,
    is_own_page: Callable[[bytes], bool],
) -> None:
    """Refuse foreign names and pages, and what two servers read differently.

    Every server of this package asks it first, before a key is looked at.

    Raises:
        Refusal: If the request must not be answered.
    """
    if headers.all(b"transfer-encoding") and headers.all(b"content-length"):
        raise Refusal(400, "ambiguous_length", "The request has two lengths.", connection="close")
    if not site.is_named(headers.all(b"host")):
        raise Refusal(421, "foreign_host", "The Host header does not name this server.")
    if any(not is_own_page(each) for each in headers.all(b"origin")):
        raise Refusal(403, "foreign_origin", "The Origin header names a foreign page.")
    length = headers.one(b"content-length")
    if length.isdigit() and int(length) > most_bytes:
        raise too_large(most_bytes)
    if headers.one(b"content-encoding") not in ("", "identity"):
        raise Refusal(415, "encoded_body", "Send the body without Content-Encoding.")
    query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    if any(name.lower() in KEYS_IN_URLS for name, _ in query):
        raise Refusal(
            400,
            "key_in_url",
            "Addresses end up in logs. Send the key as Authorization: Bearer KEY.",
        )


def session_of(headers: Headers, cookie: str) -> str:
    """Return the session in a request's cookies; empty without one."""
    try:
        found = SimpleCookie("; ".join(each.decode("latin-1") for each in headers.all(b"cookie")))
    except CookieError:
        return ""
    return found[cookie].value if cookie in found else ""


def too_large(limit: int) -> Refusal:
    """Return the refusal of a body that is too large."""
    return Refusal(413, "too_large", f"A body has at most {limit:,} bytes.", connection="close")


def _peer_of(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class _BoundedBody:
    """A body that is refused as soon as it is too large, whatever its length claims."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._limit, self._bytes = receive, limit, 0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            if self._bytes > self._limit:
                raise too_large(self._limit)
        return message


class _Outgoing:
    """An answer on its way, with the headers of every answer."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self.is_begun = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.is_begun = True
            headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in headers}
            every = (*SECURITY_HEADERS, _NO_STORE)
            headers += [(name, value) for name, value in every if name not in names]
            message = {**message, "headers": headers}
        # A client that reads nothing would hold the answer, and its connection, for ever.
        async with asyncio.timeout(self._seconds):
            await self._send(message)

    async def refuse(self, error: Exception) -> None:
        """Send the problem that an error tells of."""
        body = problem_of(error)
        if body["status"] == 500:
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
            log.warning("http.bug", error=type(error).__name__, at=place)
        headers = [(b"content-type", MEDIA_TYPE.encode())]
        given = error.headers if isinstance(error, Refusal) else {}
        if isinstance(error, SmaraError) and error.is_retryable:
            given = {"retry-after": "1"}
        headers += [(name.encode(), value.encode()) for name, value in given.items()]
        data = json.dumps(body).encode()
        headers.append((b"content-length", str(len(data)).encode()))
        await self.send(
            {"type": "http.response.start", "status": body["status"], "headers": headers}
        )
        await self.send({"type": "http.response.body", "body": data})
