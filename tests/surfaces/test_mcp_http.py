"""``smara mcp --http``: the same tools for many agents, and nobody else."""

from __future__ import annotations

import http.client
import json
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from smara.errors import InvalidInputError
from smara.surfaces.http.address import Site, is_loopback, parse_address
from smara.surfaces.http.connections import (
    BoundedProtocol,
    ConnectionLimits,
    Connections,
    OncePerMinute,
)
from smara.surfaces.mcp.transport import Guard
from tests.surfaces.mcp_server import INITIALIZE, http_server
from tests.surfaces.shell import DEADLINE_SECONDS, spawn

TOKEN = "correct-horse"


def by_client(url: str, headers: dict[str, str], ask: Any, mode: str = "auto") -> Any:
    async def talk() -> Any:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with (
                create_mcp_http_client(headers=headers) as http,
                Client(streamable_http_client(url, http_client=http), mode=mode) as client,
            ):
                return await ask(client)

    return anyio.run(talk)


def post(url: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    """One request by hand."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=DEADLINE_SECONDS
    )
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(
            "POST",
            parts.path,
            body or json.dumps(request("initialize", INITIALIZE)).encode(),
            given,
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def bearer(token: str = TOKEN) -> str:
    return f"Bearer {token}"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_are_served_to_the_official_client(store, mode):
    async def ask(client):
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("memory-search", {"query": "LoginSchema"})
        page = await client.read_resource("smara://threads/login")
        return names, found.structured_content["results"][0]["threadId"], page.contents[0].text

    with http_server("--token", TOKEN) as (url, _, _):
        names, thread, page = by_client(url, {"Authorization": bearer()}, ask, mode=mode)
    assert names == ["task-query", "task-mutate", "memory-search", "memory-record"]
    assert (thread, page[:16]) == ("login", "# Login with Zod")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_who_calls_comes_with_each_request(db, mode):
    """Two agents share a server: each claim belongs to whoever sent the request."""

    async def claim(client):
        return (
            await client.call_tool("task-mutate", {"action": "claim", "id": "next"})
        ).structured_content

    async def create(client):
        for title in ("one", "two"):
            await client.call_tool("task-mutate", {"action": "create", "title": title})
        return await claim(client)

    with http_server("--token", TOKEN) as (url, _, _):
        headers = {"Authorization": bearer()}
        nobody = by_client(url, headers, create, mode=mode)
        first = by_client(
            url, {**headers, "Smara-Session": "a", "Smara-Actor": "ada"}, claim, mode=mode
        )
        second = by_client(url, {**headers, "Smara-Session": "b"}, claim, mode=mode)
    assert "Smara-Session" in nobody["hint"]
    assert [each["task"]["sessionId"] for each in (first, second)] == ["a", "b"]
    assert [each["task"]["title"] for each in (first, second)] == ["one", "two"]
    assert first["task"]["assignee"] == "ada"


def test_thread_of_a_request_is_where_messages_are_tied_to_the_task(db):
    import smara

    async def claim(client):
        await client.call_tool("task-mutate", {"action": "create", "title": "one"})
        await client.call_tool("task-mutate", {"action": "claim", "id": "next"})

    with http_server("--token", TOKEN) as (url, _, _):
        by_client(
            url, {"Authorization": bearer(), "Smara-Session": "a", "Smara-Thread": "talk"}, claim
        )
    with smara.open(db) as memory:
        active = memory.links.active("talk")
        assert active is not None
        assert active.title == "one"


def test_token_is_made_up_and_told_once_when_none_is_given(db):
    with http_server() as (url, token, _):
        assert len(token) >= 32
        assert post(url, Authorization=bearer(token))[0] == 200
        assert post(url, Authorization=bearer(token + "x"))[0] == 401


def test_token_comes_from_the_environment(db):
    with http_server(env={"SMARA_MCP_TOKEN": TOKEN}) as (url, _, _):
        assert post(url, Authorization=bearer())[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": bearer(), "Host": "evil.example"}, 403),
        ({"Authorization": bearer(), "Host": "evil.example:80"}, 403),
        ({"Authorization": bearer(), "Host": "localhost.evil.example"}, 403),
        ({"Authorization": bearer(), "Host": "127.0.0.1.evil.example"}, 403),
        ({"Authorization": bearer(), "Host": "127.0.0.1:80@evil.example"}, 403),
        ({"Authorization": bearer(), "Host": "[::1]@evil.example"}, 403),
        ({"Authorization": bearer(), "Host": "localhost:80/x"}, 403),
        ({"Authorization": bearer(), "Origin": "http://127.0.0.1:1@evil.example"}, 403),
        ({"Authorization": bearer(), "Origin": "http://[::1]evil.example"}, 403),
        ({"Authorization": bearer(), "Origin": "https://evil.example"}, 403),
        ({"Authorization": bearer(), "Origin": "null"}, 403),
        ({"Authorization": bearer(), "Transfer-Encoding": "chunked", "Content-Length": "2"}, 400),
        ({"Authorization": bearer(), "Content-Encoding": "gzip"}, 415),
        ({"Authorization": bearer(), "Origin": "http://localhost.evil.example"}, 403),
        ({"Authorization": bearer(), "Origin": "http://localhost:5173"}, 200),
        ({"Authorization": bearer(), "Host": "localhost:1"}, 200),
        ({"Authorization": bearer(), "Host": "[::1]:1"}, 200),
        ({"authorization": f"bearer {TOKEN}"}, 200),
    ],
)
def test_request_is_let_in_by_host_origin_and_token_alone(headers, status):
    """The guard itself; that it stands before the server is shown below."""
    assert guarded(headers) == status


def guarded(headers: dict[str, str], host: str = "127.0.0.1", public_url: str = "") -> int:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def send(message: Any) -> None:
        sent.append(message)

    given = {"Host": "127.0.0.1:80", **headers}
    scope = {
        "type": "http",
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
    }
    anyio.run(Guard(app, Site(host, public_url), TOKEN), scope, None, send)
    return int(sent[0]["status"])


def test_two_hosts_or_two_tokens_are_refused():
    assert guarded({"Host": "evil.example", "host": "127.0.0.1", "Authorization": bearer()}) == 403
    assert guarded({"Authorization": bearer(), "authorization": "Bearer other"}) == 401


def test_server_that_listens_everywhere_is_known_by_any_name_but_to_no_foreign_page():
    everywhere = {"Authorization": bearer(), "Host": "box.example"}
    assert guarded(everywhere, "0.0.0.0") == 200
    assert guarded({**everywhere, "Origin": "https://evil.example"}, "0.0.0.0") == 403
    assert guarded({"Host": "box.example"}, "0.0.0.0") == 401


def test_server_behind_a_proxy_is_known_by_its_public_name_alone():
    public = {"Authorization": bearer(), "Host": "box.example"}
    assert guarded(public) == 403
    assert guarded(public, public_url="https://box.example") == 200
    assert guarded({**public, "Host": "evil.example"}, public_url="https://box.example") == 403
    foreign = {**public, "Origin": "https://evil.example"}
    assert guarded(foreign, public_url="https://box.example") == 403


def test_guard_stands_before_the_server(db):
    with http_server("--token", TOKEN) as (url, _, _):
        assert post(url)[0] == 401
        assert post(url, Authorization=bearer(), Host="evil.example")[0] == 403
        assert post(url, Authorization=bearer(), Origin="https://evil.example")[0] == 403
        assert post(url.replace("/mcp", "/elsewhere"), Authorization=bearer())[0] == 404
        status, body = post(url, Authorization=bearer())
        assert (status, json.loads(body)["result"]["serverInfo"]["name"]) == (200, "smara")


def test_what_stands_behind_a_request_of_two_lengths_is_not_answered(db):
    asked = json.dumps(request("tools/list", {})).encode()
    with http_server("--token", TOKEN) as (url, _, _):
        port = urlsplit(url).port or 0
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {bearer()}\r\n"
        two = f"{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        more = f"Content-Type: application/json\r\nContent-Length: {len(asked)}\r\n\r\n"
        with half_open(port, f"{two}{head}{more}".encode() + asked) as connection:
            answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_server_that_listens_everywhere_takes_no_host_that_is_not_a_host():
    strange = {"Authorization": bearer(), "Host": "box.example:80@evil.example"}
    assert guarded(strange, "0.0.0.0") == 403


def test_stream_for_unasked_words_is_refused_since_there_are_none(db):
    with http_server("--token", TOKEN) as (url, _, _):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        headers = {"Authorization": bearer(), "Accept": "text/event-stream"}
        connection.request("GET", parts.path, headers=headers)
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        connection.close()


def test_lone_surrogate_is_mended_as_on_the_standard_streams(db):
    with http_server("--token", TOKEN) as (url, _, _):
        call = request("tools/call", {"name": "memory-search", "arguments": {"query": "half @"}})
        broken = json.dumps(call).replace("@", r"\ud83d").encode()
        for body in (broken, broken.replace(rb"\ud83d", b"\xff")):
            status, answer = post(url, body, Authorization=bearer())
            assert status == 200
            assert "error" not in json.loads(answer)


def test_client_that_asks_at_once_is_answered_among_many_that_hold_back():
    """Real sockets: ten that never end their request, and no room for more than four."""
    connections = Connections(ConnectionLimits(connections=4, per_peer=3))
    with served(connections) as port:
        held = [half_open(port) for _ in range(10)]
        assert [received(each) for each in held[:7]] == [b""] * 7
        assert post(f"http://127.0.0.1:{port}/")[0] == 200
        assert connections.dropped == 8
        for each in held:
            each.close()


def test_request_that_does_not_arrive_in_time_ends_its_connection():
    limits = ConnectionLimits(connections=4, per_peer=4, request_seconds=0.05)
    with served(Connections(limits)) as port:
        for opening in (b"", b"GET / HTTP/1.1\r\nHost: x", b"POST / HTTP/1.1\r\nHost: x\r\n"):
            with half_open(port, opening) as held:
                assert held.recv(1) == b""
        with half_open(
            port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"
        ) as held:
            received = b"".join(iter(lambda: held.recv(4096), b""))
        assert received.startswith(b"HTTP/1.1 200")


def test_message_of_a_library_is_logged_once_a_minute():
    now = [0.0]
    once = OncePerMinute(lambda: now[0])

    def passes(text):
        return once.filter(logging.LogRecord("asyncio", 40, "", 0, text, (), None))

    assert [passes("socket.accept() failed\nfd=1"), passes("socket.accept() failed\nfd=2")] == [
        True,
        False,
    ]
    now[0] = 61.0
    assert passes("socket.accept() failed\nfd=3")


def half_open(port: int, opening: bytes = b"GET / HTTP/1.1\r\nX-a: ") -> socket.socket:
    held = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
    held.sendall(opening)
    return held


def received(connection: socket.socket) -> bytes:
    """Everything until the server ends the connection, in whichever way."""
    received = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(4096):
            received += part
    return received


@contextmanager
def served(connections: Connections) -> Iterator[int]:
    """A server in this process that answers 200 to everything."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"ok"})

    bounded: Any = partial(BoundedProtocol, connections=connections)
    config = uvicorn.Config(app, http=bounded, lifespan="off", ws="none", log_config=None)
    server = uvicorn.Server(config)
    bound = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


def test_body_that_is_too_large_is_refused(db):
    with http_server("--token", TOKEN) as (url, _, _):
        assert post(url, b'"' + b"x" * 5_000_000 + b'"', Authorization=bearer())[0] == 413
        assert post(url, Authorization=bearer())[0] == 200


def test_address_that_others_can_reach_wants_a_token(db):
    said = spawn("mcp", "--http", "0.0.0.0:0")
    assert said.code == 5
    assert "--token" in said.err
    assert said.out == ""


def test_taken_port_is_told(db):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = spawn("mcp", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert said.code == 5
    assert "Choose another" in said.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server(db, number):
    with http_server("--token", TOKEN) as (url, _, process):
        assert post(url, Authorization=bearer())[0] == 200
        process.send_signal(number)
        assert process.wait(DEADLINE_SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:80", ("::1", 80)), (":80", ("127.0.0.1", 80)),
        ("80", ("127.0.0.1", 80)), ("box:0", ("box", 0)),
    ],
)  # fmt: skip
def test_address_is_read_as_people_write_it(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "box", "box:", "box:http", "box:70000", "box:-1"])
def test_address_that_is_none_is_refused(text):
    with pytest.raises(InvalidInputError, match="HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("box", False),
    ],
)
def test_loopback_is_known_by_its_names(host, is_ours):
    assert is_loopback(host) is is_ours
