"""Serve a memory over HTTP: `smara serve`.

The server listens at the loopback address, unless a key is given. It prints an address that a
browser can open once; programs of the same user find their key in a file that only that user can
read. A signal ends it: running requests get a moment, streams end.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

import anyio
import click
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Router
from starlette.routing import Route as Page

from smara import __version__
from smara.adapters.hosts.precompute import bring_up_to_date
from smara.core.clock import SystemClock
from smara.core.startup.record import dataclass, field
from smara.environment import patience, serve_folder, spool_folder
from smara.errors import ConfigError
from smara.memory import Memory
from smara.requests.models import SESSION_SECONDS
from smara.surfaces.http.address import (
    QuietServer,
    Site,
    bind,
    is_loopback,
    on_signal,
    parse_address,
    url_of,
)
from smara.surfaces.http.api import Api, Caller
from smara.surfaces.http.connections import ConnectionLimits, bounded
from smara.surfaces.http.events import MOST_WATCHERS, Events
from smara.surfaces.http.guard import Doorway, Headers, Limits, session_of
from smara.surfaces.http.keys import Doorkeeper, write_private
from smara.surfaces.http.mem0 import Mem0
from smara.surfaces.http.metrics import Metrics
from smara.surfaces.http.openapi import document
from smara.surfaces.http.operations import MetricsPage, Operations
from smara.surfaces.http.problem import Refusal
from smara.surfaces.http.store import Store

_CLOSING_SECONDS = 20


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of a server."""

    address: str = "127.0.0.1:0"
    key: str | None = None
    folder: Path = field(default_factory=lambda: Path(serve_folder()))
    """Where the keys are."""
    limits: Limits = field(default_factory=Limits)
    has_mem0: bool = False
    """True to serve the interface of mem0, too."""
    pages: Callable[[Api], Sequence[Page]] | None = None
    """Makes the routes of the panel."""
    show: Callable[[str], object] | None = None
    """Shows the panel, given the address that opens it."""
    drain_seconds: float = 0.0
    """How long it goes on answering when it is told to stop."""
    public_url: str = ""
    """Its address behind a proxy."""
    is_logged: bool = False
    """True where what it prints is read as a log: no address that opens the panel stands there."""
    now_ms: Callable[[], int] = field(default_factory=lambda: SystemClock().now_ms)


class Service:
    """One server over one store: its application, its keys, its pages."""

    def __init__(self, store: Store, options: ServeOptions, host: str, port: int) -> None:
        self.store = store
        self.doorkeeper = Doorkeeper(options.key, store, options.now_ms, user=_user())
        self.key = self.doorkeeper.key
        # Cookies know no ports: two stores of one machine must not share theirs. The servers behind
        # one address share it, whatever ports they have.
        public = options.public_url and zlib.crc32(options.public_url.encode())
        self.cookie = f"smara_session_{public or port}"
        self.api = Api(store, self._after_write)
        self.events = Events(self.api)
        pages = [
            Page("/", self._index),
            Page("/health", self._health),
            Page("/login", self._login),
            Page("/login/codes", self._new_code, methods=["POST"]),
            Page("/logout", self._logout, methods=["POST"]),
            Page("/openapi.json", self._openapi),
            Page("/events", self.events.respond),
            *(Mem0(self.api).routes if options.has_mem0 else ()),
            *(options.pages(self.api) if options.pages else ()),
            Mount("/", app=self.api),
        ]
        metrics = Metrics()
        doorway = Doorway(
            # No pattern matches a line feed in a path.
            MetricsPage(Router(routes=pages, default=self.api), store, metrics),
            Site(host, options.public_url),
            self.doorkeeper,
            cookie=self.cookie,
            limits=options.limits,
        )
        self.app = Operations(doorway, store, metrics)

    def _after_write(self, memory: Memory) -> None:
        self.events.wake(memory.project)
        bring_up_to_date(memory, spool_folder())  # what hooks tell at the next start

    async def _index(self, request: Request) -> Response:
        caller = Caller.of(request)

        def read() -> str:
            with self.api.memory(caller) as memory:
                return memory.project

        project = await self.api.in_thread(read)
        shown = {"name": "smara", "version": __version__, "project": project}
        return JSONResponse({**shown, "openapi": "/openapi.json"})

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(document())

    async def _login(self, request: Request) -> Response:
        """Exchange the code of a printed address for a cookie."""
        code = request.query_params.get("code", "")
        session = await self.api.in_thread(partial(self.doorkeeper.exchange, code))
        if session is None:
            raise Refusal(
                401, "wrong_code", "This address was used, or is too old. Ask for another."
            )
        target = request.query_params.get("next", "/")
        # Only a path of this server: `//host` and `/\host` are other sites to a browser.
        is_local = target.startswith("/") and not target.startswith(("//", "/\\"))
        response = RedirectResponse(target if is_local else "/", status_code=303)
        response.set_cookie(
            self.cookie,
            session,
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def _new_code(self, request: Request) -> Response:
        who = request.scope["state"]["principal"]
        is_limited = not who.is_person or not who.may_write or who.projects is not None
        # A browser that opens another would prolong itself for ever.
        if is_limited or who.is_browser:
            raise Refusal(403, "not_a_person", "Only the key of a person opens the browser.")
        code = await self.api.in_thread(partial(self.doorkeeper.new_code, who))
        return JSONResponse({"path": f"/login?code={code}"}, 201)

    async def _logout(self, request: Request) -> Response:
        session = session_of(Headers(request.scope), self.cookie)
        await self.api.in_thread(partial(self.doorkeeper.leave, session))
        response = JSONResponse({"status": "ok"})
        response.delete_cookie(self.cookie)
        return response


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "local"


def configured(service: Service) -> uvicorn.Config:
    """Return how uvicorn serves: bounded, silent about what clients send."""
    limits = ConnectionLimits.of_process(2 * MOST_WATCHERS)
    return bounded(service.app, limits, _CLOSING_SECONDS)


def run(open_memory: Callable[[], Memory], options: ServeOptions, as_json: bool = False) -> None:
    """Serve until a signal.

    Raises:
        ConfigError: If the address is reachable from elsewhere and no key was given, or is taken.
    """
    host, port = parse_address(options.address, "--listen")
    if not options.key and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines. "
            "Give a key (--key or SMARA_HTTP_KEY), or listen at 127.0.0.1."
        )
    store = Store(open_memory)
    with store.memory() as memory:  # what is wrong with the store shows here
        project = memory.project
    bound = bind(host, port, "--listen")
    url = url_of(host, bound)
    service = Service(store, options, host, bound.getsockname()[1])
    try:
        with announced(url, service.key, options.folder):
            shown = {"url": options.public_url or url, "project": project}
            if is_loopback(host) and not options.is_logged:
                shown["login"] = f"{url}/login?code={quote(service.doorkeeper.new_code())}&next=/ui"
            if as_json or options.is_logged:
                click.echo(json.dumps(shown), err=not as_json)
            else:
                click.echo(_greeting(shown), err=True)
            if options.show is not None and "login" in shown:
                options.show(shown["login"])
            anyio.run(_serve, service, bound, options.drain_seconds)
    finally:
        bound.close()
        store.close()


def _greeting(shown: dict[str, str]) -> str:
    # An address that opens the panel is for the person at this machine, not for a log.
    login = shown.get("login", "POST /login/codes, with the key, answers with its address")
    return (
        f"Smara serves project {shown['project']!r} at {shown['url']}\n"
        f"The panel, once in a browser: {login}\n"
        f'Programs: smara.connect("{shown["url"]}"), or `smara keys add NAME` for a key.\n'
        "Ctrl-C ends it."
    )


@contextmanager
def announced(url: str, key: str, folder: Path) -> Iterator[None]:
    """Leave the key for this user's programs."""
    path = running_file(url, folder)
    write_private(path, json.dumps({"url": url, "key": key, "pid": os.getpid()}))
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def running_file(url: str, folder: Path) -> Path:
    """Return the file with the key of a running server."""
    return folder / f"running-{url.rpartition(':')[2]}.json"


async def _serve(service: Service, bound: socket.socket, drain_seconds: float) -> None:
    server = QuietServer(configured(service))
    drain = partial(service.app.drain, server, partial(stop, server, service), drain_seconds)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(on_signal, drain)
        await server.serve(sockets=[bound])
        tasks.cancel_scope.cancel()


def stop(server: uvicorn.Server, service: Service) -> None:
    """End the streams, answer what runs, and leave."""
    service.events.close()
    server.should_exit = True


@contextmanager
def serving(
    open_memory: Callable[[], Memory], options: ServeOptions | None = None
) -> Iterator[tuple[str, Service]]:
    """Serve in a thread of this process; yield its address."""
    options = options or ServeOptions()
    host, port = parse_address(options.address, "--listen")
    bound = bind(host, port, "--listen")
    store = Store(open_memory)
    service = Service(store, options, host, bound.getsockname()[1])
    server = QuietServer(configured(service))
    thread = threading.Thread(
        target=partial(server.run, sockets=[bound]), name="smara-http", daemon=True
    )
    thread.start()
    try:
        yield url_of(host, bound), service
    finally:
        stop(server, service)
        thread.join(30 * patience())
        bound.close()
        store.close()
