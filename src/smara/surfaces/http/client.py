"""Reach a served memory from Python: ``smara.connect("http://127.0.0.1:8765")``.

The client is derived from the table of routes, so nothing is written twice: a method of a room is
sent to the route that serves it, and its result is made again by the type that the method declares.
Methods that are not served, such as those that take a function, say so.
"""

from __future__ import annotations

import http.client
import inspect
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from smara.environment import serve_folder
from smara.errors import (
    ConfigError,
    ConnectionLostError,
    InvalidInputError,
    NotFoundError,
    UsageError,
)
from smara.memory import Memory, Room
from smara.surfaces.http.codec import Signature, UnservedTypeError, camel, decode, encode
from smara.surfaces.http.problem import error_of
from smara.surfaces.http.routes import ROUTE_OF, Route, method_of

RECORD = "application/vnd.smara.record+json"
_SECONDS = 120.0
_LOST = (OSError, http.client.HTTPException)


def connect(
    url: str, *, key: str | None = None, project: str | None = None, **options: Any
) -> Memory:
    """Connect to a memory that `smara serve` serves.

    Args:
        url: The address that `smara serve` printed, such as ``http://127.0.0.1:8765``.
        key: An access key; without it, the one that a server of this user left for its programs.
        project: The project to work in; without it, the one that is served.
        **options: ``session`` and ``actor``, for the history of what is changed, and
            ``timeout_seconds``, for one answer.

    Returns:
        A memory with the rooms that are served; close it, or use it as a context manager.

    Raises:
        ConfigError: If the address is invalid, or there is no key.
        ConnectionLostError: If no server answers there.
    """
    site = urlsplit(url)
    if site.scheme not in ("http", "https") or not site.hostname:
        raise ConfigError(f"{url!r} is not an address such as http://127.0.0.1:8765.")
    memory = RemoteMemory(Wire(url, key or _key_left_for(url), project, **options))
    try:
        memory.wire.greet()
    except BaseException:
        memory.close()
        raise
    return memory


def _key_left_for(url: str) -> str:
    try:
        port = urlsplit(url).port
        text = (Path(serve_folder()) / f"running-{port}.json").read_text(encoding="utf-8")
        return str(json.loads(text)["key"])
    except (OSError, ValueError, KeyError):
        raise ConfigError(
            f"There is no key for {url}. Give one: `smara keys add NAME` makes it."
        ) from None


class Wire:
    """The connection to a server, one for each thread."""

    def __init__(
        self,
        url: str,
        key: str,
        project: str | None = None,
        *,
        session: str | None = None,
        actor: str | None = None,
        timeout_seconds: float = _SECONDS,
    ) -> None:
        self.url, self.key = url, key
        self.options = {"session": session, "actor": actor, "timeout_seconds": timeout_seconds}
        self._site, self._seconds = urlsplit(url), timeout_seconds
        self._local = threading.local()
        self._connections: set[http.client.HTTPConnection] = set()
        named = {"Smara-Project": project, "Smara-Session": session, "Smara-Actor": actor}
        self._headers = {name: value for name, value in named.items() if value is not None}
        self._headers |= {"Authorization": f"Bearer {key}", "Accept": RECORD}
        self.project = project or ""

    def sibling(self, project: str) -> Wire:
        """Return a connection to another project; closing either closes both."""
        other = Wire(self.url, self.key, project, **self.options)  # type: ignore[arg-type]
        other._connections = self._connections
        return other

    def greet(self) -> None:
        """Ask which project is served."""
        self.project = json.loads(self.send("GET", "/"))["project"]

    def send(self, method: str, path: str, body: Any = None) -> bytes:
        """Send a request and return the body of the answer.

        Raises:
            SmaraError: What the room raised, or ``ConnectionLostError``.
        """
        data = None if body is None else json.dumps(body).encode("utf-8", "surrogatepass")
        headers = dict(self._headers)
        if data is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = self._exchange(method, path, data, headers)
            content = answer.read()
        except _LOST as error:
            self.close()
            raise ConnectionLostError(
                f"No answer from {self.url}: {type(error).__name__}. Is `smara serve` running?"
            ) from error
        if answer.status >= 400:
            try:
                problem = json.loads(content)
            except ValueError:
                problem = None
            raise error_of(answer.status, problem)
        return content

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            try:
                connection.request(method, path, data, headers)
                found: http.client.HTTPResponse = connection.getresponse()
                return found
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # The server ended an idle connection. A write may have been done all the same, so
                # only what changes nothing is sent again.
                self.close()
                if method != "GET":
                    raise
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        connection = kinds[self._site.scheme](
            self._site.hostname or "", self._site.port, timeout=self._seconds
        )
        self._local.connection = connection
        self._connections.add(connection)
        connection.request(method, path, data, dict(headers))
        answer: http.client.HTTPResponse = connection.getresponse()
        return answer

    def close(self) -> None:
        """Close this thread's connection; the next request opens another."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._connections.discard(connection)
            self._local.connection = None

    def close_all(self) -> None:
        """Close the connections of all threads."""
        self.close()
        while self._connections:
            self._connections.pop().close()


class RemoteMemory(Memory):
    """A memory on a server, with the rooms that it serves."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        for name, value in inspect.getmembers_static(Memory):
            if isinstance(value, Room):
                setattr(self, name, RemoteRoom(wire, f"{name}."))
            elif name in ROUTE_OF:
                setattr(self, name, derived(wire, name))

    @property
    def project(self) -> str:
        return self.wire.project

    @property
    def path(self) -> str | None:
        return None

    @property
    def warnings(self) -> list[str]:
        return []

    def __getattr__(self, name: str) -> Any:
        raise unserved(name)

    def in_project(self, project_id: str) -> Memory:
        self.projects.named(project_id)  # created on first use
        return RemoteMemory(self.wire.sibling(project_id))

    def close(self) -> None:
        self.wire.close_all()


class RemoteRoom:
    """A room whose methods are answered by a server."""

    is_room = True

    def __init__(self, wire: Wire, prefix: str) -> None:
        self._wire, self._prefix = wire, prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        call = f"{self._prefix}{name}"
        if any(each.startswith(f"{call}.") for each in ROUTE_OF):
            return lambda: RemoteRoom(self._wire, f"{call}.")  # `code.asking()`
        return derived(self._wire, call)


class UnservedMethodError(UsageError, AttributeError):
    """A method that no route serves."""


def unserved(name: str) -> UnservedMethodError:
    """Return the error of a method that no route serves."""
    return UnservedMethodError(
        f"{name} is not served over HTTP. Open the store itself: smara.open()."
    )


def derived(wire: Wire, call: str) -> Callable[..., Any]:
    """Return a function that calls a method's route."""
    room, _, verb = call.rpartition(".")
    if call == "messages.stream":
        return partial(_pages, wire)
    route = ROUTE_OF.get(call)
    if route is None and verb == "find" and (getter := ROUTE_OF.get(f"{room}.get")) is not None:
        return partial(_find, wire, getter)
    if route is None:
        raise unserved(call)
    return partial(_stream if route.signature.is_stream else _call, wire, route)


def _find(wire: Wire, route: Route, *args: Any, **named: Any) -> Any:
    try:
        return _call(wire, route, *args, **named)
    except NotFoundError:
        return None


def _pages(wire: Wire, *, thread_id: str, after: int = 0) -> Iterator[Any]:
    route = ROUTE_OF["messages.list"]
    while page := _call(wire, route, thread_id=thread_id, limit=500, after=after):
        yield from page
        after = page[-1].seq


def _call(wire: Wire, route: Route, *args: Any, **named: Any) -> Any:
    method, path, body = request_of(route, args, named)
    answer = json.loads(wire.send(method, path, body))
    result = decode(route.signature.result, answer["result"], "result")
    limit = route.signature.parameters.get("limit")
    is_open = limit is not None and limit.default is None and named.get("limit") is None
    # Without a limit the method gives all; the server gives pages.
    while is_open and answer.get("nextCursor") and isinstance(result, list):
        mark = "&" if "?" in path else "?"
        following = f"{path}{mark}cursor={quote(answer['nextCursor'])}"
        answer = json.loads(wire.send(method, following, body))
        result += decode(route.signature.result, answer["result"], "result")
    return result


def _stream(wire: Wire, route: Route, *args: Any, **named: Any) -> Iterator[Any]:
    method, path, body = request_of(route, args, named)
    for line in wire.send(method, path, body).splitlines():
        if line:
            yield decode(route.signature.result, json.loads(line), "result")


def request_of(
    route: Route, args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[str, str, Any]:
    """Return the method, the path and the body of a call.

    Raises:
        TypeError: As the method itself would for wrong arguments.
        UsageError: If a value is given that cannot be sent, such as a function.
    """
    found = inspect.signature(route.function).bind(None, *args, **named).arguments
    found.pop("self", None)
    more = next(
        (
            k
            for k, p in inspect.signature(route.function).parameters.items()
            if p.kind is p.VAR_KEYWORD
        ),
        "",
    )
    given = {**found, **found.pop(more, {})} if more in found else dict(found)
    given.pop(more, None)
    signature: Signature = route.signature
    for name in [each for each in given if each not in signature.parameters]:
        if name in signature.unserved and given[name] is not None:
            raise UsageError(f"{route.call} takes no {name} over HTTP.")
        if name not in signature.unserved and route.call == "memories.add":
            raise TypeError(f"{route.call} has no argument {name!r}")
        if name not in signature.unserved:
            raise InvalidInputError(f"{name} is unknown here.", field=name)
        del given[name]
    texts: dict[str, Any] = {}
    for name, value in given.items():
        try:
            texts[name] = encode(value, is_strict=True)
        except (UnservedTypeError, RecursionError) as error:
            raise InvalidInputError(f"{name} cannot be sent: {error}.", field=name) from None
    for name in (each[1:-1] for each in route.segments if each.startswith("{")):
        # An empty name makes another address, and half a character arrives as another name.
        if not str(texts[name]).encode("utf-8", "ignore").decode() == str(texts[name]) != "":
            raise InvalidInputError(f"{name} must be a text that can be printed.", field=name)
    parts = [
        quote(str(texts.pop(each[1:-1])), safe="") if each.startswith("{") else each
        for each in route.segments
    ]
    path = "/" + "/".join(parts)
    if route.method != "GET":
        return route.method, path, {camel(name): value for name, value in texts.items()}
    query = [
        (camel(name), _text(each))
        for name, value in texts.items()
        if value is not None
        for each in (value if isinstance(value, list) and value else [value])
    ]
    words = urlencode(query, encoding="utf-8", errors="surrogatepass")
    return "GET", f"{path}?{words}" if words else path, None


def _text(value: Any) -> str:
    # An empty list has no values to stand in a query; it is written out.
    return json.dumps(value) if isinstance(value, bool | int | float | list) else str(value)


__all__ = ["RemoteMemory", "connect", "method_of"]
