"""Answer probes, trace and count requests, and drain before the end.

It stands before everything else: probes come from machines that have no key and name the server by
its address. They learn whether to send requests here, and nothing more.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import anyio
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from smara.core import log
from smara.errors import SmaraError
from smara.surfaces.http.guard import READS, Headers
from smara.surfaces.http.metrics import Metrics
from smara.surfaces.http.problem import Refusal
from smara.surfaces.http.store import Store
from smara.telemetry.trace import span

METRICS_PATH = "/metrics"
_CHECK_SECONDS = 5.0
_VALID_SECONDS = 1.0
"""An answer of the store is passed on for so long: anyone may ask."""


class Operations:
    """The outermost layer of a server."""

    def __init__(self, app: ASGIApp, store: Store, metrics: Metrics) -> None:
        self._app = app
        self._store = store
        self._metrics = metrics
        self._is_draining = False
        self._checking = asyncio.Lock()
        self._checked: tuple[float, str] = (float("-inf"), "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        probe = {"/live": self._live, "/ready": self._ready}.get(scope["path"])
        if probe is not None and scope["method"] in READS:
            await _send(send, *(await probe()))
            return
        started, status = time.perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                trace = (b"smara-trace", work.trace.encode())
                message = {**message, "headers": [*message.get("headers", ()), trace]}
            await send(message)

        method = scope["method"]
        with span(f"http {method}", Headers(scope).one(b"traceparent")) as work:
            try:
                with self._metrics.in_progress():
                    await self._app(scope, receive, note)
            finally:
                # The pattern of the path, not the path: ids may be names of people.
                route = str(scope.get("state", {}).get("route", "other"))
                seconds = time.perf_counter() - started
                work.put(route=route, status=status)
                if status >= 500:
                    work.fail(str(status))
                self._metrics.count(method, route, status, seconds)
                ms = round(seconds * 1000, 1)
                log.event("http.answered", method=method, route=route, status=status, ms=ms)

    async def _live(self) -> tuple[int, str]:
        return 200, "ok"

    async def _ready(self) -> tuple[int, str]:
        if self._is_draining:
            return 503, "draining"
        async with self._checking:
            if time.monotonic() - self._checked[0] > _VALID_SECONDS:
                with anyio.move_on_after(_CHECK_SECONDS) as waiting:
                    trouble = await anyio.to_thread.run_sync(self._check, abandon_on_cancel=True)
                self._checked = (
                    time.monotonic(),
                    "timeout" if waiting.cancelled_caught else trouble,
                )
        trouble = self._checked[1]
        return (503, trouble) if trouble else (200, "ok")

    def _check(self) -> str:
        """Return the code of what is wrong with the store, or an empty text."""
        try:
            with self._store.memory() as memory, memory.internals.database.read():
                return ""
        except SmaraError as error:
            return error.code

    def drain(self, server: uvicorn.Server, stop: Callable[[], None], seconds: float) -> None:
        """Refuse to be called ready, and stop after some seconds.

        A second call stops at once.
        """
        if self._is_draining:
            stop()
            server.force_exit = True
        elif seconds > 0:
            asyncio.get_running_loop().call_later(seconds, stop)
        else:
            stop()
        self._is_draining = True


class MetricsPage:
    """The metrics, before an application that has none."""

    def __init__(self, app: ASGIApp, store: Store, metrics: Metrics) -> None:
        self._app, self._store, self._metrics = app, store, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != METRICS_PATH:
            await self._app(scope, receive, send)
            return
        scope["state"] = {**scope.get("state", {}), "route": METRICS_PATH}
        try:
            body = await anyio.to_thread.run_sync(self._metrics.render, self._store)
        except Refusal as error:
            await _send(send, error.status, error.detail)
            return
        await _send(send, 200, body)


async def _send(send: Send, status: int, answer: str | bytes) -> None:
    is_text = isinstance(answer, bytes)
    body: Any = answer if is_text else json.dumps({"status": answer}).encode()
    kind = b"text/plain; version=0.0.4; charset=utf-8" if is_text else b"application/json"
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
