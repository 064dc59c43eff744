"""Requests made up from the description of every route: no bug, and every refusal has a code.

A few hundred in the small run, 20,000 in the large one. They go through the whole application, from
the guard to the database, without a socket.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

import smara
from smara.surfaces.http.guard import Limits
from smara.surfaces.http.openapi import document
from smara.surfaces.http.routes import ROUTE_OF
from smara.surfaces.http.server import ServeOptions, Service
from smara.surfaces.http.store import Store
from smara.surfaces.panel.pages import PAGES
from smara.surfaces.panel.panel import panel_routes
from smara.surfaces.panel.setup import ACTS
from tests.faults.sizes import SEED, count
from tests.stores import new_file

REQUESTS = count(600, 20_000)
PAGE_REQUESTS = count(400, 20_000)
SLOW = {"code.index", "worker.run_once", "embeddings.embed_pending"}
"""They work through what is there, however much that is; asked for once in a while."""
TEXTS = (
    "", " ", "a", "login", "t-1", "m-1", "../../etc/passwd", "'; DROP TABLE tasks; --", "NULL",
    "\x00", "\ud800", "é" * 300, "\u202e\u200b", "%00", "%", "*", '"unbalanced', "AND OR NOT (",
    "{{7*7}}", "<script>alert(1)</script>", "0", "-1", "1e999", "true", "null", "[]", "{}", "\n\n",
    "x" * 5_000, "a/b", "a?b#c", "２", "t-" + "9" * 40, "COLUMN:term", "NEAR(a b, 5)", "user_id",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 10, 1_000, 1_001, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**30)
OTHERS = (None, True, False, 1.5, -0.0, 1e308, [], {}, [[]], {"": ""}, [None], {"a": {"b": []}})


class Maker:
    """Makes up requests."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._schemas = document()["components"]["schemas"]
        self.operations = [
            (method.upper(), path, operation)
            for path, methods in document()["paths"].items()
            for method, operation in methods.items()
        ]
        self.ids: list[str] = ["login"]

    def request(self) -> tuple[str, str, bytes, dict[str, str], str]:
        choose = self._random
        method, path, operation = choose.choice(self.operations)
        while operation["operationId"] in SLOW and choose.random() > 0.01:
            method, path, operation = choose.choice(self.operations)
        query: list[tuple[str, str]] = []
        for each in operation["parameters"]:
            if each["in"] == "path":
                value = str(self._text() if choose.random() < 0.5 else choose.choice(self.ids))
                path = path.replace(f"{{{each['name']}}}", quote(_bytes(value), safe=""))
            elif each["in"] == "query" and (each.get("required") or choose.random() < 0.4):
                value = self.value(each["schema"])
                values = value if isinstance(value, list) else [value]
                query += [(each["name"], _word(one)) for one in values]
        if choose.random() < 0.05:
            query.append((self._text(), self._text()))
        headers = self._headers(method)
        body = b""
        if method != "GET":
            body, headers["content-type"] = self._body(operation), "application/json"
            if choose.random() < 0.03:
                headers["content-type"] = choose.choice(["text/plain", "", "multipart/form-data"])
        text = urlencode([(_bytes(name), _bytes(value)) for name, value in query])
        return method, f"{path}?{text}" if text else path, body, headers, operation["operationId"]

    def _headers(self, method: str) -> dict[str, str]:
        choose, headers = self._random, {"authorization": "Bearer fuzz", "host": "127.0.0.1"}
        for name, share in (
            ("if-match", 0.1), ("if-none-match", 0.05), ("idempotency-key", 0.05),
            ("smara-project", 0.05), ("smara-session", 0.2), ("smara-actor", 0.1),
            ("last-event-id", 0.02), ("accept", 0.2),
        ):  # fmt: skip
            if choose.random() < share:
                words = ["*", '"v1"', '"x"', "other", "application/vnd.smara.record+json"]
                headers[name] = choose.choice([*words, self._text()])
        return headers

    def _body(self, operation: dict[str, Any]) -> bytes:
        choose = self._random
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {"type": "object"})
        value = self.value(schema)
        text = json.dumps(value, allow_nan=True)
        if choose.random() < 0.05:
            cut = choose.randrange(len(text) + 1)
            text = text[:cut] + choose.choice(["", "}", "]", ",", "\x00", "NaN"]) + text[cut + 1 :]
        return text.encode()

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """A value of a schema, or of another."""
        choose = self._random
        if depth > 6 or choose.random() < 0.04:
            return choose.choice([self._text(), *OTHERS, *NUMBERS])
        if "$ref" in schema:
            return self.value(self._schemas[schema["$ref"].rpartition("/")[2]], depth + 1)
        if "anyOf" in schema:
            return self.value(choose.choice(schema["anyOf"]), depth + 1)
        if "enum" in schema:
            return choose.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            named = schema.get("properties", {})
            needed = schema.get("required", [])
            return {
                name: self.value(inner, depth + 1)
                for name, inner in named.items()
                if name in needed or choose.random() < 0.3
            }
        if kind == "array":
            items = schema.get("items") or {"type": "string"}
            return [self.value(items, depth + 1) for _ in range(choose.randrange(4))]
        if kind == "integer":
            return choose.choice(NUMBERS[:6]) if choose.random() < 0.8 else choose.choice(NUMBERS)
        if kind == "number":
            return choose.choice([0, 0.5, 1, -1, 1e300])
        if kind == "boolean":
            return choose.random() < 0.5
        if kind == "null":
            return None
        if choose.random() < 0.4:
            return choose.choice(self.ids)
        return self._text()

    def _text(self) -> str:
        choose = self._random
        if choose.random() < 0.7:
            return choose.choice(TEXTS)
        return "".join(chr(choose.randrange(1, 0x3000)) for _ in range(choose.randrange(20)))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


async def ask(app: Any, method: str, path: str, body: bytes, headers: dict[str, str]) -> Any:
    """One request through the application, as the server would hand it over."""
    raw, _, query = path.partition("?")
    sent: list[Any] = []
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http",
        "path": raw, "raw_path": raw.encode("latin-1", "replace"), "query_string": query.encode(),
        "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
        "headers": [
            (name.encode(), value.encode("utf-8", "surrogatepass"))
            for name, value in headers.items()
        ],
    }  # fmt: skip

    pieces = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if not pieces:
            await asyncio.Event().wait()  # the client waits for its answer
        return pieces.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    data = b"".join(each.get("body", b"") for each in sent[1:])
    kind = dict(sent[0]["headers"]).get(b"content-type", b"").decode()
    return sent[0]["status"], kind.partition(";")[0], data


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.chdir(tmp_path)  # no repository is around it
    for name in ("SMARA_PATIENCE", "SMARA_SEARCH_DEADLINE_SECONDS", "SMARA_EMBED_QUERY_SECONDS"):
        monkeypatch.delenv(name, raising=False)
    db = new_file(tmp_path / "smara.db")
    opened = partial(smara.open, db, project="default", token_model="estimate", embedder="off")
    store = Store(opened)
    limits = Limits(requests_per_second=1e9, burst=10**9)
    # Forms write settings and read past sessions: those of this test.
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    options = ServeOptions(key="fuzz", folder=tmp_path / "serve", limits=limits, pages=panel_routes)
    yield Service(store, options, "127.0.0.1", 80)
    store.close()


def test_no_request_meets_a_bug_and_every_refusal_has_a_code(service):
    maker = Maker(SEED)
    statuses: Counter[int] = Counter()
    bugs: list[str] = []

    async def story() -> None:
        for _ in range(REQUESTS):
            method, path, body, headers, name = maker.request()
            status, kind, data = await ask(service.app, method, path, body, headers)
            statuses[status] += 1
            where = f"{name} {status}: {method} {path[:200]} {body[:300]!r} {headers}"
            if status == 500:
                bugs.append(where)
            elif status >= 400:
                told = json.loads(data)
                if kind != "application/problem+json" or not told["code"] or not told["detail"]:
                    bugs.append(f"without a code: {where}")
            elif status != 304 and kind == "application/x-ndjson":
                [json.loads(line) for line in data.splitlines() if line]
            elif status != 304:
                maker_ids(maker, json.loads(data))

    asyncio.run(story())
    assert bugs[:5] == [], f"seed {SEED}"
    assert sum(statuses.values()) == REQUESTS
    assert statuses[200] + statuses[201] > REQUESTS // 10, statuses
    assert os.path.exists(service.api._store._current.memory.path)  # type: ignore[union-attr]


QUERY = (
    "q", "kind", "type", "state", "offset", "after", "symbol", "module", "under", "thread", "file",
    "id", "session", "scope", "thread_id", "quote", "record", "asks", "measure", "memory", "made",
    "whole", "full", "lang", "trust", "level", "moments", "moment_start_tokens", "back", "peek",
)  # fmt: skip


def page_request(maker: Maker) -> tuple[str, str, bytes, dict[str, str], str]:
    """Make up a request to the panel: a page, its twin, a file or a form."""
    choose, text = maker._random, maker._text
    fields = [
        (choose.choice(QUERY) if choose.random() < 0.9 else text(), text())
        for _ in range(choose.randrange(4))
    ]
    headers = maker._headers("GET") | ({"hx-request": "true"} if choose.random() < 0.3 else {})
    if choose.random() < 0.25:
        headers["content-type"] = "application/x-www-form-urlencoded"
        calls = sorted((set(ROUTE_OF) | set(ACTS)) - SLOW)
        fields += [("call", choose.choice(calls)), ("back", text())]
        fields += [
            (name, choose.choice(maker.ids))
            for name in ("memory_id", "task_id", "thread_id")
            if choose.random() < 0.3
        ]
        path = "/ui/language" if choose.random() < 0.05 else "/ui/act"
        body = urlencode([(_bytes(name), _bytes(value)) for name, value in fields])
        return "POST", path, body.encode(), headers, str(dict(fields)["call"])
    spec = choose.choice(PAGES)
    value = text() if choose.random() < 0.5 else choose.choice(maker.ids)
    path = re.sub(r"\{.*\}", lambda _: quote(_bytes(value), safe=""), f"/ui{spec.path}".rstrip("/"))
    if choose.random() < 0.05:
        path = f"/ui/static/{quote(_bytes(text()))}"
    elif choose.random() < 0.5:
        path += ".json"
    query = urlencode([(_bytes(name), _bytes(each)) for name, each in fields])
    return "GET", f"{path}?{query}", b"", headers, spec.path


def test_no_page_and_no_form_of_the_panel_meets_a_bug(service):
    maker = Maker(SEED)
    statuses: Counter[int] = Counter()
    bugs: list[str] = []

    async def story() -> None:
        for number in range(PAGE_REQUESTS):
            # Every other one fills the store, so that the pages have something to show.
            make = maker.request if number % 4 == 0 else partial(page_request, maker)
            method, path, body, headers, name = make()
            status, kind, data = await ask(service.app, method, path, body, headers)
            statuses[status] += 1
            where = f"{name} {status}: {method} {path[:200]} {body[:300]!r} {headers}"
            is_typed = kind == "application/problem+json" and json.loads(data)["code"]
            is_page = kind == "text/html" and b"<main" in data
            if status == 500 or (status >= 400 and not is_typed and not is_page):
                bugs.append(where)
            elif status in (200, 201) and kind == "application/json":
                maker_ids(maker, json.loads(data))

    asyncio.run(story())
    assert bugs[:5] == [], f"seed {SEED}"
    assert statuses[200] > PAGE_REQUESTS // 5, statuses


def maker_ids(maker: Maker, answer: Any) -> None:
    """Remember ids that exist, so that later requests meet something."""
    found = answer.get("id") if isinstance(answer, dict) else None
    if isinstance(found, str) and len(maker.ids) < 200:
        maker.ids.append(found)


def test_fuzzer_finds_a_bug_that_was_put_in(service, monkeypatch):
    """The detector detects."""

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    # A route reads its signature once in a process: not that of the mutant.
    assert ROUTE_OF["tasks.list"].signature
    assert ROUTE_OF["memories.list"].signature
    monkeypatch.setattr("smara.tasks.tasks.Tasks.list", broken)
    monkeypatch.setattr("smara.knowledge.memories.Memories.list", broken)
    with pytest.raises(AssertionError, match="seed"):
        test_no_request_meets_a_bug_and_every_refusal_has_a_code(service)
