"""Bound the connections of the HTTP server before a token was shown.

Every process of the machine can connect. A connection *waits* while no whole request of it is
being answered: it then has a deadline, and when there are too many connections, in all or of one
peer, the one that has waited longest is dropped for the newest. A client that sends its request at
once is answered, however many others hold theirs back.
"""

from __future__ import annotations

import logging
import sys
import time
from asyncio import TimerHandle, Transport
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Literal

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from smara.core import log
from smara.core.startup.record import dataclass

_QUIET_SECONDS = 60.0
_MOST_CONNECTIONS = 256


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The bounds on connections and on the arrival of a request."""

    connections: int
    per_peer: int
    request_seconds: float = 20.0

    @classmethod
    def of_process(cls, connections: int = _MOST_CONNECTIONS) -> ConnectionLimits:
        """Choose limits that leave file descriptors for the store."""
        soft = 4 * connections
        if sys.platform != "win32":
            import resource

            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        most = max(8, min(connections, soft // 4 if soft > 0 else connections))
        return cls(most, most // 2)


class Connections:
    """The open connections of a server, longest wait first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.dropped = 0
        self._timers: dict[BoundedProtocol, TimerHandle | None] = {}
        self._logged_at = float("-inf")

    def add(self, connection: BoundedProtocol) -> None:
        """Admit a connection; above a limit, drop the longest waiting."""
        self.wait(connection)
        of_peer = [each for each in self._timers if each.peer == connection.peer]
        if len(of_peer) > self.limits.per_peer:
            self._drop_one(of_peer)
        elif len(self._timers) > self.limits.connections:
            self._drop_one(self._timers)

    def wait(self, connection: BoundedProtocol) -> None:
        """Begin the time in which a whole request has to arrive."""
        self.remove(connection)
        self._timers[connection] = connection.loop.call_later(
            self.limits.request_seconds, connection.transport.abort
        )

    def answer(self, connection: BoundedProtocol) -> None:
        """End the wait: a whole request is there."""
        if timer := self._timers.get(connection):
            timer.cancel()
            self._timers[connection] = None

    def remove(self, connection: BoundedProtocol) -> None:
        """Forget a connection that has ended."""
        self.answer(connection)
        self._timers.pop(connection, None)

    def _drop_one(self, candidates: Collection[BoundedProtocol]) -> None:
        # The newest waits too: if all others are being answered, it is the one.
        oldest = next(each for each in candidates if self._timers[each] is not None)
        self.remove(oldest)
        oldest.transport.abort()
        self.dropped += 1
        now = oldest.loop.time()
        if now - self._logged_at > _QUIET_SECONDS:
            self._logged_at = now
            log.warning("server.connections_dropped", peer=oldest.peer, dropped=self.dropped)


class BoundedProtocol(H11Protocol):
    """One connection of a client."""

    def __init__(self, *args: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*args, **named)
        self._bounds = connections
        self.peer = ""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.peer = self.client[0] if self.client else ""
        self._bounds.add(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            self._bounds.answer(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answering() and not self.transport.is_closing():
            self._bounds.wait(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._bounds.remove(self)

    def _is_answering(self) -> bool:
        cycle = self.cycle
        return cycle is not None and not (cycle.more_body or cycle.response_complete)


class OncePerMinute(logging.Filter):
    """A filter that passes each message once a minute."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._passed_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        key, now = str(record.msg).partition("\n")[0][:200], self._monotonic()
        if now - self._passed_at.get(key, float("-inf")) < _QUIET_SECONDS:
            return False
        self._passed_at[key] = now
        return True


def bounded(
    app: Any,
    limits: ConnectionLimits,
    closing_seconds: int,
    lifespan: Literal["on", "off"] = "off",
) -> uvicorn.Config:
    """Return how uvicorn serves: bounded, silent about what clients send."""
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(OncePerMinute())
    return uvicorn.Config(
        app,
        http=partial(BoundedProtocol, connections=Connections(limits)),  # type: ignore[arg-type]
        # So many are accepted before the first of them is looked at.
        backlog=min(limits.per_peer, 128),
        log_config=None,
        access_log=False,
        proxy_headers=False,  # a client must not choose the name under which it is counted
        server_header=False,
        lifespan=lifespan,
        timeout_graceful_shutdown=closing_seconds,
        ws="none",
    )
