"""A server in this process, over a real socket, and short ways to ask it."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import smara
from smara.requests.models import Principal
from smara.surfaces.http.guard import Limits
from smara.surfaces.http.server import ServeOptions, Service, serving
from smara.testing import FakeClock
from tests.surfaces.shell import DEADLINE_SECONDS


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem, which must be one."""
        assert self.headers["Content-Type"] == "application/problem+json", self.body[:200]
        body = self.json
        assert body["status"] == self.status
        assert body["detail"]
        return str(body["code"])


@dataclass(frozen=True)
class Site:
    """A running server."""

    url: str
    service: Service
    clock: FakeClock
    folder: Path

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def key(self) -> str:
        return self.service.key

    def ask(
        self, method: str, path: str, body: Any = None, key: str | None = "", **headers: str
    ) -> Reply:
        """Send one request; without a key with ``None``."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            given = {"Authorization": f"Bearer {key or self.key}"} | given
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            given = {"Content-Type": "application/json"} | given
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Any:
        """The JSON at a path, which must be there."""
        reply = self.ask("GET", path, **headers)
        assert reply.status == 200, reply.body
        return reply.json

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """The answer to a POST that must succeed."""
        reply = self.ask("POST", path, {} if body is None else body, **headers)
        assert reply.status in (200, 201), reply.body
        return reply.json

    def raw(self, *lines: str, body: bytes = b"") -> bytes:
        """Send bytes as they are, and read until the server ends or has answered."""
        with socket.create_connection(("127.0.0.1", self.port), DEADLINE_SECONDS) as connection:
            head = "".join(f"{line}\r\n" for line in lines).encode("latin-1")
            connection.sendall(head + b"\r\n" + body)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(65_536):
                answer += piece
            return answer

    def cookie(self) -> str:
        """The cookie of a browser that opened the printed address."""
        reply = self.ask("GET", f"/login?code={self.service.doorkeeper.new_code()}", key=None)
        assert reply.status == 303
        return reply.headers["Set-Cookie"].partition(";")[0]

    def named_key(self, name: str = "other", **rights: Any) -> str:
        """A new key with other rights."""
        with self.service.store.memory() as memory:
            for project in rights.get("projects") or ():
                memory.projects.named(project)
            return memory.internals.requests.access.add(
                Principal(name, **rights), self.clock.now_ms()
            )


@contextmanager
def http_site(
    db: str,
    folder: Path,
    limits: Limits | None = None,
    address: str = "127.0.0.1:0",
    opened: Callable[[], smara.Memory] | None = None,
    **named: Any,
) -> Iterator[Site]:
    """Serve a store at a free port."""
    clock = FakeClock()
    options = ServeOptions(
        address,
        folder=folder / "serve",
        limits=limits or Limits(failures_per_minute=100_000, burst=1_000_000),
        now_ms=clock.now_ms,
        **named,
    )
    opened = opened or partial(smara.open, db, project="default")
    with serving(opened, options) as (url, service):
        yield Site(url, service, clock, options.folder)
