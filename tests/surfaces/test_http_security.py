"""Attacks on the HTTP server, one test for each that was seen on servers like it."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import socket
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from smara.environment import serve_folder
from smara.requests.access import Access
from smara.requests.models import Principal
from smara.surfaces.http import address, guard
from smara.surfaces.http.guard import Doorway, Limits, Rate
from smara.surfaces.http.routes import ROUTE_OF, ROUTES, Route
from smara.testing import FakeClock
from tests.surfaces.http_server import Site, http_site
from tests.surfaces.shell import DEADLINE_SECONDS, command, environment, smara


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path) as opened:
        yield opened


@pytest.fixture
def browser(site):
    """Headers of the panel's own page."""
    return {"Cookie": site.cookie(), "Origin": f"http://127.0.0.1:{site.port}"}


def filled_path(route: Route) -> str:
    """The path of a route with something in each place."""
    return "/" + "/".join("1" if each.startswith("{") else each for each in route.segments)


def test_every_route_refuses_who_has_no_key(site):
    """1: no token."""
    for route in ROUTES:
        body = None if route.method == "GET" else {}
        reply = site.ask(route.method, filled_path(route), body, key=None)
        assert (reply.status, reply.code) == (401, "no_key"), route.path
        assert reply.headers["WWW-Authenticate"] == "Bearer"
    for path in ("/", "/openapi.json", "/login/codes", "/logout", "/events"):
        assert site.ask("GET", path, key=None).status == 401


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer", "Basic {key}", "{key}", "Bearer {key}x"]
)
def test_wrong_key_is_refused(site, header):
    """2: wrong token."""
    reply = site.ask("GET", "/tasks", key=None, Authorization=header.format(key=site.key))
    assert (reply.status, reply.code) == (401, "wrong_key")


def test_two_keys_are_refused(site):
    answer = site.raw(
        "GET /tasks HTTP/1.1", f"Host: 127.0.0.1:{site.port}",
        f"Authorization: Bearer {site.key}", "Authorization: Bearer other",
    )  # fmt: skip
    assert answer.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("name", ["token", "access_token", "api_key", "Key"])
def test_key_in_the_address_is_refused_even_if_it_is_right(site, name):
    """3: token in URL refused."""
    reply = site.ask("GET", f"/tasks?{name}={site.key}", key=None)
    assert (reply.status, reply.code) == (400, "key_in_url")
    assert site.ask("GET", f"/tasks?{name}={site.key}").code == "key_in_url"


def test_key_that_may_read_writes_nothing_on_any_route(site):
    """4: read token on write."""
    key = site.named_key(may_write=False)
    assert site.ask("GET", "/tasks", key=key).status == 200
    assert site.ask("POST", "/search", {"query": "login"}, key=key).status == 200
    for route in ROUTES:
        if route.writes:
            reply = site.ask(route.method, filled_path(route), {}, key=key)
            assert (reply.status, reply.code) == (403, "read_only_key"), route.path
    assert site.ask("POST", "/login/codes", key=key).status == 403


def test_key_of_another_team_sees_its_own_projects_alone(site):
    """5: other team's token."""
    site.post("/tasks", {"title": "ours"}, Smara_Project="red")
    key = site.named_key(projects=("blue",))
    for headers in ({}, {"Smara_Project": "red"}, {"Smara_Project": "default"}):
        reply = site.ask("GET", "/tasks", key=key, **headers)
        assert (reply.status, reply.code) == (403, "foreign_project")
    assert site.ask("GET", "/tasks?project=red", key=key).status == 403
    assert site.ask("GET", "/projects", key=key, Smara_Project="blue").status == 403
    erase = {"isEverything": True}
    assert site.ask("POST", "/erase", erase, key=key, Smara_Project="blue").status == 403
    made = site.ask("POST", "/tasks", {"title": "mine"}, key=key, Smara_Project="blue")
    assert made.status == 201
    assert "store" not in site.ask("GET", "/status", key=key, Smara_Project="blue").json
    titles = site.ask("GET", "/tasks", key=key, Smara_Project="blue").json["tasks"]
    assert [each["title"] for each in titles] == ["mine"]


def test_key_that_is_over_or_revoked_is_refused(site):
    """6: expired or revoked."""
    key = site.named_key("short", expires_at=site.clock.now_ms() + 60_000)
    assert site.ask("GET", "/tasks", key=key).status == 200
    site.clock.advance(61)
    assert site.ask("GET", "/tasks", key=key).status == 401
    other = site.named_key("other")
    assert site.ask("GET", "/tasks", key=other).status == 200
    with site.service.store.memory() as memory:
        memory.internals.requests.access.revoke("other")
    assert site.ask("GET", "/tasks", key=other).status == 401


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "null", "http://localhost:1", "http://127.0.0.1.evil.example",
        "http://127.0.0.1:{port}@evil.example", "file://", "https://127.0.0.1:1",
        "http://[::1]evil.example",
    ],
)  # fmt: skip
def test_foreign_page_is_refused_with_a_key_and_with_a_cookie(site, origin, browser):
    """7, 8: Origin of another page, and null."""
    origin = origin.format(port=site.port)
    assert site.ask("GET", "/tasks", Origin=origin).code == "foreign_origin"
    reply = site.ask("POST", "/tasks", {"title": "x"}, key=None, **{**browser, "Origin": origin})
    assert (reply.status, reply.code) == (403, "foreign_origin")


def test_change_by_cookie_needs_the_page_that_sends_it(site, browser):
    """9: missing Origin on a change needs a key."""
    cookie = {"Cookie": browser["Cookie"]}
    assert site.ask("GET", "/tasks", key=None, **cookie).status == 200
    assert site.ask("POST", "/tasks", {"title": "x"}, key=None, **cookie).code == "no_origin"
    assert site.ask("POST", "/tasks", {"title": "x"}, key=None, **browser).status == 201
    assert site.ask("POST", "/tasks", {"title": "x"}).status == 201


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("evil.example", False), ("evil.example:{port}", False), ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False), ("127.0.0.1:80@evil.example", False), ("", False),
        ("127.0.0.1:{port}/x", False), ("2130706433.evil", False), ("[::1]evil", False),
        ("127.0.0.1:{port}", True), ("LOCALHOST:{port}", True), ("localhost.:{port}", True),
        ("[::1]:{port}", True), ("127.0.0.1", True),
    ],
)  # fmt: skip
def test_name_of_another_host_is_refused(site, host, is_ours):
    """10, 11: rebinding; ports, trailing dots, IPv6, upper case."""
    reply = site.ask("GET", "/tasks", Host=host.format(port=site.port))
    assert reply.status == (200 if is_ours else 421)


def test_two_names_of_the_host_are_refused(site):
    """12: two Host headers."""
    answer = site.raw(
        "GET /tasks HTTP/1.1", f"Host: 127.0.0.1:{site.port}", "Host: evil.example",
        f"Authorization: Bearer {site.key}",
    )  # fmt: skip
    assert answer.split(b" ", 2)[1] in (b"400", b"421")


def test_forwarded_headers_change_nothing(site):
    """13: X-Forwarded-Host and its kin are not read."""
    forwarded = {"X_Forwarded_Host": "127.0.0.1", "Forwarded": "host=127.0.0.1;proto=https"}
    assert site.ask("GET", "/tasks", Host="evil.example", **forwarded).status == 421
    reply = site.ask("GET", "/tasks", X_Forwarded_Host="evil.example", X_Forwarded_For="6.6.6.6")
    assert reply.status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_form_that_any_page_could_send_is_refused(site, kind, browser):
    """14: a simple POST."""
    reply = site.ask("POST", "/tasks", b'{"title":"x"}', Content_Type=kind)
    assert (reply.status, reply.code) == (415, "not_json")


def test_no_page_is_ever_told_that_it_may_read(site):
    """15, 16: no preflight succeeds, no Access-Control header is ever sent."""
    asked = {"Origin": "https://evil.example", "Access_Control_Request_Method": "POST"}
    replies = [
        site.ask("OPTIONS", "/tasks", key=None, **asked),
        site.ask("OPTIONS", "/tasks"),
        site.ask("GET", "/tasks", Origin=f"http://127.0.0.1:{site.port}"),
        site.ask("GET", "/health", key=None, Origin=f"http://127.0.0.1:{site.port}"),
    ]
    assert [each.status for each in replies] == [403, 405, 200, 200]
    names = {name.lower() for each in replies for name in each.headers}
    assert not [name for name in names if name.startswith("access-control")]


def test_cookie_is_out_of_reach_of_scripts_and_of_other_sites(site):
    """17: HttpOnly, SameSite=Strict."""
    reply = site.ask("GET", f"/login?code={site.service.doorkeeper.new_code()}", key=None)
    name, *rest = (each.strip() for each in reply.headers["Set-Cookie"].split(";"))
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(rest)
    assert str(site.port) in name  # cookies know no ports


def test_server_behind_tls_answers_its_public_name_and_gives_cookies_for_tls_alone(db, tmp_path):
    """17: Secure, by the name that was asked for and not by what a header claims."""
    with http_site(db, tmp_path, public_url="https://box.example/") as site:
        public = {"Host": "box.example", "Origin": "https://box.example"}
        keys = {"X_Forwarded_Proto": "https", "Forwarded": "proto=https"}

        def cookie(**headers: str) -> str:
            path = f"/login?code={site.service.doorkeeper.new_code()}"
            return site.ask("GET", path, key=None, **headers).headers["Set-Cookie"]

        assert "; Secure" in cookie(Host="box.example")
        assert "; Secure" in cookie(Host="BOX.example:443")
        assert "; Secure" not in cookie(**keys)
        session = cookie(Host="box.example").partition(";")[0]
        page = {"Cookie": session, **public}
        assert site.ask("POST", "/tasks", {"title": "x"}, key=None, **page).status == 201
        foreign = {**page, "Origin": "https://evil.example"}
        assert site.ask("POST", "/tasks", {"title": "x"}, key=None, **foreign).status == 403
        assert site.ask("GET", "/tasks", Host="evil.example").status == 421
        assert site.ask("GET", "/tasks").status == 200


@pytest.mark.parametrize("value", ["cross-site", "same-site"])
def test_request_that_a_foreign_page_caused_is_refused(site, value, browser):
    """18: Sec-Fetch-Site."""
    reply = site.ask("GET", "/tasks", key=None, **browser, Sec_Fetch_Site=value)
    assert (reply.status, reply.code) == (403, "foreign_origin")
    for own in ("same-origin", "none"):
        assert site.ask("GET", "/tasks", key=None, **browser, Sec_Fetch_Site=own).status == 200


def test_stream_and_upgrade_are_refused_to_foreign_pages(site):
    """19: SSE and WebSocket."""
    assert site.ask("GET", "/events", Origin="https://evil.example").status == 403
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    reply = site.ask("GET", "/events", Origin="https://evil.example", **upgrade)
    assert reply.status == 403


@pytest.mark.parametrize("path", ["/", "/tasks", "/nowhere", "/health", "/login"])
def test_every_answer_has_the_headers_that_bind_a_browser(site, path):
    """20 to 23: CSP, nosniff, no referrer, no store."""
    headers = site.ask("GET", path).headers
    policy = headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "*" not in policy
    assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(
        policy.split("; ")
    )
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"


HOSTILE = (
    "<script>alert(1)</script>", "<svg onload=alert(1)>", "[x](javascript:alert(1))",
    "</title><img src=x onerror=alert(1)>", "=cmd|' /C calc'!A0", "{{7*7}}",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_comes_back_as_data_and_never_as_a_page(site, text):
    """24, 25, 26: stored scripts, links and formulas."""
    site.post("/tasks", {"title": text, "description": text, "labels": ["a"]})
    site.post("/memories/remember", {"text": f"Never write {text} here", "tags": ["a"]})
    site.post("/threads/x/messages", {"role": "user", "content": text})
    for path in ("/tasks", "/memories", "/threads/x/messages", "/tasks/export", "/export"):
        reply = site.ask("GET", path)
        kind = reply.headers["Content-Type"].partition(";")[0]
        assert kind in ("application/json", "application/x-ndjson"), path
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
    refused = site.ask("GET", f"/tasks?{text.replace(' ', '+')}=1")
    assert refused.headers["Content-Type"] == "application/problem+json"
    titles = [each["title"] for each in site.get("/tasks")["tasks"]]
    assert text in titles


@pytest.mark.parametrize(
    "target", ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)"]
)
def test_login_leads_to_a_page_of_this_server_alone(site, target):
    """27: open redirect."""
    code = site.service.doorkeeper.new_code()
    assert site.ask("GET", f"/login?code={code}&next={target}", key=None).headers["Location"] == "/"
    code = site.service.doorkeeper.new_code()
    reply = site.ask("GET", f"/login?code={code}&next=/memories", key=None)
    assert reply.headers["Location"] == "/memories"


def test_body_that_is_too_large_is_refused_while_it_comes(store, tmp_path):
    """28: by its length, and by what really comes."""
    with http_site(store, tmp_path, Limits(body_bytes=10_000)) as site:
        assert site.ask("POST", "/tasks", b" " * 10_001).code == "too_large"
        chunked = b"".join(b"%x\r\n%s\r\n" % (1_000, b" " * 1_000) for _ in range(11))
        answer = site.raw(
            "POST /tasks HTTP/1.1", f"Host: 127.0.0.1:{site.port}",
            f"Authorization: Bearer {site.key}", "Content-Type: application/json",
            "Transfer-Encoding: chunked",
            body=chunked,  # it never ends
        )  # fmt: skip
        assert answer.startswith(b"HTTP/1.1 413 ")


def test_compressed_body_is_refused_unread(site):
    """30: a bomb."""
    bomb = gzip.compress(b"[" * 1_000_000)
    reply = site.ask("POST", "/tasks", bomb, Content_Encoding="gzip")
    assert (reply.status, reply.code) == (415, "encoded_body")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"title":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not_json"),
        (b'{"metadata":' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}", "too_deep"),
        (b'{"priority": NaN}', "not_json"),
        (b'{"priority": ' + b"9" * 5_000 + b"}", "not_json"),
        (b'{"title":"a","title":"b"}', "not_json"),
        (b"[]", "not_an_object"),
        (b"\xff\xfe", "not_json"),
        (b'{"title":', "not_json"),
    ],
)
def test_json_that_would_hurt_is_refused(site, body, code):
    """31: depth, and what two readers read differently."""
    reply = site.ask("POST", "/tasks", body)
    assert (reply.status, reply.code) == (400, code)


def test_request_with_two_lengths_is_refused(site):
    """32: request smuggling."""
    hidden = b"0\r\n\r\nGET /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for lengths in (
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: xchunked"],
    ):
        answer = site.raw(
            "POST /tasks HTTP/1.1", f"Host: 127.0.0.1:{site.port}",
            f"Authorization: Bearer {site.key}", "Content-Type: application/json", *lengths,
            body=hidden,
        )  # fmt: skip
        assert answer.count(b"HTTP/1.1 ") == 1, lengths
        assert answer.split(b" ", 2)[1] in (b"400", b"501"), lengths


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"],
)
def test_path_leads_to_no_file(site, path):
    """33: path traversal."""
    reply = site.ask("GET", path)
    assert (reply.status, reply.code) == (404, "no_route")


def test_health_says_nothing_of_the_store(site):
    """34: it is open to all."""
    assert site.ask("GET", "/health", key=None).json == {"status": "ok"}


def test_no_route_gives_a_secret_away(store, tmp_path, monkeypatch):
    """35: keys of models and of the server itself."""
    secrets = {
        name: f"hidden-{number}-value-of-a-key"
        for number, name in enumerate(("EMBEDDER_API_KEY", "RERANKER_API_KEY", "MCP_TOKEN"))
    }
    for name, value in secrets.items():
        monkeypatch.setenv(f"SMARA_{name}", value)
    with http_site(store, tmp_path) as site:
        for route in ROUTES:
            if route.method == "GET" and "{" not in route.path:
                body = site.ask("GET", route.path).body
                assert b"hidden-" not in body, route.path
                assert site.key.encode() not in body, route.path


def test_session_is_random_and_a_cookie_of_another_is_worth_nothing(site):
    """36: a session is known to the server alone; headers that name one are no key."""
    first, second = site.cookie(), site.cookie()
    assert first != second
    assert len(first.partition("=")[2]) >= 43
    name = first.partition("=")[0]
    reply = site.ask("GET", "/tasks", key=None, Cookie=f"{name}=made-up")
    assert (reply.status, reply.code) == (401, "wrong_key")
    assert site.ask("GET", "/tasks", key=None, Smara_Session="login").status == 401


def test_session_ends_by_time_and_by_hand(site):
    cookie, origin = site.cookie(), f"http://127.0.0.1:{site.port}"
    assert site.ask("POST", "/logout", key=None, Cookie=cookie, Origin=origin).status == 200
    assert site.ask("GET", "/tasks", key=None, Cookie=cookie).status == 401
    cookie = site.cookie()
    site.clock.advance(12 * 3_600 + 1)
    assert site.ask("GET", "/tasks", key=None, Cookie=cookie).status == 401


def test_printed_address_works_once_and_not_for_ever(site):
    code = site.service.doorkeeper.new_code()
    assert site.ask("GET", f"/login?code={code}", key=None).status == 303
    assert site.ask("GET", f"/login?code={code}", key=None).code == "wrong_code"
    late = site.service.doorkeeper.new_code()
    site.clock.advance(3_601)
    assert site.ask("GET", f"/login?code={late}", key=None).status == 401
    assert site.ask("GET", f"/login?code={site.key}", key=None).status == 401


def test_another_address_is_given_to_who_has_the_key_of_a_person(site):
    path = site.ask("POST", "/login/codes").json["path"]
    assert site.ask("GET", path, key=None).status == 303
    agent = site.named_key(is_person=False)
    assert site.ask("POST", "/login/codes", key=agent).status == 403


def test_error_tells_no_path_and_no_stack(site, monkeypatch):
    """37: a bug."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot read {__file__}")

    assert ROUTE_OF["tasks.totals"].signature, "read once in a process, and not of this mutant"
    monkeypatch.setattr("smara.tasks.tasks.Tasks.totals", broken)
    reply = site.ask("GET", "/tasks/totals")
    assert (reply.status, reply.code) == (500, "bug")
    assert b"RuntimeError" not in reply.body
    assert b"/" not in reply.body.replace(b"problem+json", b"")


def test_guessing_keys_is_slowed_down_and_hinders_nobody_else(store, tmp_path):
    """38: rate limit on failures."""
    with http_site(store, tmp_path, Limits(failures_per_minute=5)) as site:
        guesses = [site.ask("GET", "/tasks", key=f"guess{n}") for n in range(8)]
        assert [each.status for each in guesses] == [401] * 5 + [429] * 3
        assert int(guesses[-1].headers["Retry-After"]) >= 1
        assert site.ask("GET", "/tasks").status == 200


def test_a_stranger_who_is_slowed_down_does_not_reach_the_store(store, tmp_path, monkeypatch):
    """Who was let in before goes on; a new one waits until the stranger's turns are over."""
    looked_up = []
    find = Access.find

    def count(access: Access, secret: str, *given: Any, **named: Any) -> Principal | None:
        looked_up.append(secret)
        return find(access, secret, *given, **named)

    monkeypatch.setattr(Access, "find", count)
    limits = Limits(failures_per_minute=5, lookups_per_second=0.1, lookup_burst=8)
    with http_site(store, tmp_path, limits) as site:
        key, late, cookie = site.named_key("ann"), site.named_key("late"), site.cookie()
        name = cookie.partition("=")[0]
        for known in ({"key": key}, {"key": None, "Cookie": cookie}):
            assert site.ask("GET", "/tasks", **known).status == 200
        looked_up.clear()
        for number in range(20):
            site.ask("GET", "/tasks", key=f"{number:043}")
            site.ask("GET", "/tasks", key=None, Cookie=f"{name}={number:043}")
        assert len(looked_up) == 6  # of 8, two were for those who have a key
        for known in ({"key": key}, {"key": None, "Cookie": cookie}, {}):
            assert site.ask("GET", "/tasks", **known).status == 200
        reply = site.ask("GET", "/tasks", key=late)
        assert (reply.status, reply.code) == (429, "too_many")
        with site.service.store.memory() as memory:
            memory.internals.requests.access.revoke("ann")
        assert [site.ask("GET", "/tasks", key=key).status for _ in range(2)] == [429, 429]


def test_a_stale_key_or_cookie_locks_no_valid_one_out_of_its_address(store, tmp_path):
    """Neither a key that was never used here, nor a browser that has just opened."""
    with http_site(store, tmp_path, Limits(failures_per_minute=5)) as site:
        name = site.cookie().partition("=")[0]
        key = site.named_key("ci")
        for _ in range(10):
            site.ask("GET", "/tasks", key=None, Cookie=f"{name}={'S' * 43}")
            site.ask("GET", "/tasks", key="K" * 43)
        assert site.ask("GET", "/tasks", key=None, Cookie=f"{name}={'S' * 43}").status == 429
        assert site.ask("GET", "/tasks", key=key).status == 200
        assert site.ask("GET", "/tasks", key=None, Cookie=site.cookie()).status == 200


class Keys:
    """The keys that are valid, and which were looked up."""

    def __init__(self, *valid: str) -> None:
        self.valid = set(valid)
        self.looked_up: list[str] = []

    def by_own_key(self, secret: str) -> None:
        return None

    def by_key(self, secret: str) -> Principal | None:
        self.looked_up.append(secret)
        return Principal(secret) if secret in self.valid else None

    by_session = by_key


class Door:
    """A doorway on a clock that is told, asked without a socket."""

    def __init__(self, keys: Keys, limits: Limits | None = None) -> None:
        self.clock = FakeClock()
        self.state: dict[str, Any] = {}
        site = address.Site("127.0.0.1")
        self._doorway = Doorway(
            self._answer, site, keys, cookie="c",  # type: ignore[arg-type]
            limits=limits, monotonic=self.clock.monotonic,
        )  # fmt: skip

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self.state = scope["state"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask(self, key: str) -> int:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {key}".encode())]
        scope = {
            "type": "http", "path": "/tasks", "method": "GET", "scheme": "http",
            "headers": headers, "client": ("127.0.0.1", 1), "query_string": b"",
        }  # fmt: skip
        await self._doorway(scope, None, send)  # type: ignore[arg-type]
        return int(sent[0]["status"])


def test_a_secret_that_was_rejected_is_looked_up_again_after_a_while():
    """A key that is made later works."""

    async def play() -> None:
        keys = Keys()
        door, key = Door(keys), "K" * 43
        assert [await door.ask(key) for _ in range(5)] == [401] * 5
        assert keys.looked_up == [key]
        keys.valid.add(key)
        assert await door.ask(key) == 401
        door.clock.advance(11)
        assert await door.ask(key) == 200
        assert len(keys.looked_up) == 2

    asyncio.run(play())


def test_a_first_look_up_waits_for_its_turn_behind_guesses_and_guesses_are_bounded(monkeypatch):
    monkeypatch.setattr(guard, "_TURN_SECONDS", 0.1)

    async def play() -> None:
        keys = Keys("V" * 43)
        door = Door(keys, Limits(lookups_per_second=200, lookup_burst=10))
        guesses = [door.ask(f"{number:043}") for number in range(20)]
        *failed, valid = await asyncio.gather(*guesses, door.ask("V" * 43))
        assert valid == 200
        assert 200 not in failed
        refused = [await door.ask(f"x{number:042}") for number in range(300)]
        assert set(refused) == {429}
        assert len(keys.looked_up) <= 10 + 0.1 * 200 + 1

    asyncio.run(play())


def test_the_stream_of_a_valid_key_outlives_guesses_and_ends_with_it(monkeypatch):
    """Also if so many others came that the door has forgotten it."""
    monkeypatch.setattr(guard, "_MOST_ACCEPTED", 1)

    async def play() -> None:
        own, other = "V" * 43, "W" * 43
        keys = Keys(own, other)
        door = Door(keys, Limits(failures_per_minute=5, lookups_per_second=0.1, lookup_burst=12))
        assert await door.ask(own) == 200
        is_known = door.state["is_known"]
        assert await door.ask(other) == 200
        assert {await door.ask(f"{number:043}") for number in range(20)} == {401, 429}
        assert await is_known()
        keys.valid.remove(own)
        assert not await is_known()

    asyncio.run(play())


def test_requests_of_one_client_are_bounded():
    clock = FakeClock()
    rate = Rate(10, 20, clock.monotonic)
    waits = [rate.take("a") for _ in range(25)]
    assert waits[:20] == [0.0] * 20
    assert all(each > 0 for each in waits[20:])
    assert rate.take("b") == 0.0
    clock.advance(1)
    assert [rate.take("a") for _ in range(11)][:10] == [0.0] * 10


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "10.0.0.1:0"])
def test_address_that_others_reach_needs_a_key(db, address):
    """39: loopback unless a key is given."""
    done = smara("serve", "--listen", address)
    assert done.code == 5
    assert "SMARA_HTTP_KEY" in done.err


def test_agents_key_cannot_confirm_what_an_agent_says(site):
    """What raises trust needs a person."""
    key = site.named_key(is_person=False)
    text = "Run `make seed` before the integration tests, or they fail without fixtures"
    statement = {"content": text, "type": "gotcha", "files": ["Makefile"]}
    added = site.ask("POST", "/memories", statement, key=key)
    memory = added.json["memory"]
    assert memory["isVerified"] is False
    path = f"/memories/{memory['id']}"
    for verb in ("accept", "verify", "pin"):
        assert site.ask("POST", f"{path}/{verb}", {}, key=key).status in (400, 403), verb
        claimed = site.ask("POST", f"{path}/{verb}", {"by": "person"}, key=key)
        assert (claimed.status, claimed.code) == (403, "not_a_person")
    for path in ("/memories/remember", "/memories/accept-all", "/erase"):
        assert site.ask("POST", path, {"text": "x"}, key=key).code == "not_a_person"
    reply = site.ask("POST", "/memories", {"content": "x y z", "type": "gotcha", "by": "system"})
    assert reply.code == "not_the_system"


@pytest.fixture(params=[("serve",), ("ui", "--no-browser")], ids=["serve", "ui"])
def served(db, request):
    """The real command, in a process of its own."""
    process = subprocess.Popen(
        command("--json", *request.param),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    watch = threading.Timer(DEADLINE_SECONDS, process.kill)
    watch.start()
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def test_command_prints_an_address_for_a_browser_and_leaves_a_key_for_programs(served):
    process, shown = served
    running = next(Path(serve_folder()).glob("running-*.json"))
    facts = json.loads(running.read_text())
    assert stat.S_IMODE(running.stat().st_mode) == 0o600
    assert facts["url"] == shown["url"]
    site = Site(shown["url"], None, FakeClock(), running.parent)  # type: ignore[arg-type]
    assert site.ask("GET", "/tasks", key=facts["key"]).status == 200
    path = shown["login"].removeprefix(shown["url"])
    assert site.ask("GET", path, key=None).status == 303
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert not running.exists()
    assert facts["key"].encode() not in out + err


def test_request_that_runs_is_answered_before_a_signal_ends_the_server(served):
    """A clean stop: the server reads a request, the signal comes, the body is sent."""
    process, shown = served
    running = next(Path(serve_folder()).glob("running-*.json"))
    key = json.loads(running.read_text())["key"]
    port = int(shown["url"].rpartition(":")[2])
    body = b'{"title":"kept"}'
    with socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS) as connection:
        connection.sendall(
            f"POST /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Expect: 100-continue\r\n\r\n".encode()
        )
        assert connection.recv(65_536).startswith(b"HTTP/1.1 100 ")  # it waits for the body
        process.send_signal(signal.SIGTERM)
        connection.sendall(body)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 201 ")
    assert process.wait(DEADLINE_SECONDS) == 0
    assert [each["title"] for each in smara("--json", "tasks", "list").data["tasks"]] == ["kept"]


def test_log_holds_no_key_and_no_text(store, tmp_path, caplog):
    """Nothing secret in logs, at any level."""
    with caplog.at_level("DEBUG"), http_site(store, tmp_path) as site:
        site.post("/tasks", {"title": "zebra-in-the-title"})
        site.ask("GET", "/tasks/zebra-in-the-path")
        site.ask("GET", "/tasks", key="zebra-as-a-key")
        site.ask("POST", "/tasks", b'{"zebra')
        key = site.key
    assert "zebra" not in caplog.text
    assert key not in caplog.text


def test_slow_client_does_not_hold_a_connection_for_ever(site):
    """29: the deadline and the bounds are those of the MCP server; see test_mcp_http."""
    from smara.surfaces.http import connections, server
    from smara.surfaces.mcp import transport

    assert server.bounded is transport.bounded
    config = server.configured(site.service)
    assert config.http.func is connections.BoundedProtocol  # type: ignore[union-attr]
    assert config.http.keywords["connections"].limits.request_seconds <= 20  # type: ignore[union-attr]
