"""What operators ask of a server: probes, metrics, traces, log lines, and an orderly end."""

from __future__ import annotations

import io
import json
import logging
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.core import log
from smara.surfaces.http import metrics
from smara.telemetry import trace
from smara.telemetry.logs import JsonLines
from tests.postgres import fresh_store
from tests.surfaces.http_server import http_site
from tests.surfaces.shell import DEADLINE_SECONDS, command, environment

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def site(db: str, tmp_path: Path) -> Any:
    with http_site(db, tmp_path) as running:
        yield running


@pytest.mark.parametrize("path", ["/live", "/ready"])
def test_probe_needs_no_key_and_no_name_of_the_server(site: Any, path: str) -> None:
    reply = site.ask("GET", path, key=None, Host="10.1.2.3:8080")
    assert (reply.status, reply.json) == (200, {"status": "ok"})
    assert site.ask("HEAD", path, key=None).status == 200
    assert site.ask("POST", path, key=None).status == 401


def test_server_whose_store_is_away_lives_and_is_not_ready(tmp_path: Path) -> None:
    def opened() -> smara.Memory:
        raise smara.errors.CannotOpenError("away")

    with http_site("", tmp_path, opened=opened) as site:
        reply = site.ask("GET", "/ready", key=None)
        assert (reply.status, reply.json) == (503, {"status": "cannot_open"})
        assert site.ask("GET", "/live", key=None).status == 200


def test_metrics_count_requests_by_route_and_hold_no_id(site: Any) -> None:
    assert site.ask("GET", "/metrics", key=None).status == 401
    made = site.post("/tasks", {"title": "wash the walrus"})
    site.get(f"/tasks/{made['id']}")
    site.ask("GET", "/tasks/nobody-knows")
    reply = site.ask("GET", "/metrics")
    text = reply.body.decode()
    assert reply.headers["Content-Type"].startswith("text/plain; version=")
    count = 'smara_http_requests_total{method="GET",route="/tasks/{task_id}",status="200"} 1.0'
    assert count in text
    assert 'status="404"} 1.0' in text
    assert 'smara_http_request_seconds_count{route="/tasks"} 1.0' in text
    assert "smara_store_up 1.0" in text
    for word in (made["id"], "walrus", "nobody-knows"):
        assert word not in text


def test_without_the_package_a_server_says_what_metrics_need(
    db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(metrics.__dict__["__builtins__"], "__import__", _without("prometheus"))
    with http_site(db, tmp_path) as site:
        reply = site.ask("GET", "/metrics")
        assert (reply.status, "smara[telemetry]" in reply.json["status"]) == (404, True)


def _without(name: str) -> Any:
    really = __import__

    def find(module: str, *rest: Any) -> Any:
        if module.startswith(name):
            raise ImportError(module)
        return really(module, *rest)

    return find


@pytest.mark.postgres
def test_metrics_show_the_queue_of_a_fleet(tmp_path: Path) -> None:
    from smara.fleet.queue import JobQueue
    from tests.contract.observing import SMALL, fill

    with fresh_store() as url, smara.open(url, **SMALL, embedder="off") as memory:
        JobQueue(memory).install()
        fill(memory, 6)
        with http_site(url, tmp_path) as site:
            text = site.ask("GET", "/metrics").body.decode()
    assert 'smara_fleet_jobs{queue="threads",state="waiting"} 1.0' in text
    assert 'smara_fleet_workers{state="alive"} 0.0' in text


def test_trace_of_the_caller_stands_in_the_answer_and_in_the_log_lines(site: Any) -> None:
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("smara")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        reply = site.ask("GET", "/tasks", traceparent=PARENT)
        other = site.ask("GET", "/tasks", traceparent="00-walrus-01")
        site.ask("GET", "/live")  # what follows an answer is done by then
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert reply.headers["smara-trace"] == PARENT[3:35]
    assert other.headers["smara-trace"] not in ("", PARENT[3:35])
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    answers = [each for each in written if each["event"] == "http.answered"]
    assert [each["trace"] for each in answers] == [
        reply.headers["smara-trace"],
        other.headers["smara-trace"],
    ]
    assert {key: answers[0][key] for key in ("level", "method", "route", "status")} == {
        "level": "info",
        "method": "GET",
        "route": "/tasks",
        "status": 200,
    }


def test_log_lines_in_json_are_redacted_fact_by_fact() -> None:
    with smara.open(":memory:"):
        record = logging.LogRecord("smara", logging.WARNING, "", 0, "line", (), None)
        key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        record.smara = ("model.failed", {"reason": f'said "{key}"', "level": 3})
        line = json.loads(JsonLines().format(record))
    assert line["event"] == "model.failed"
    assert key not in line["reason"]
    assert (line["level"], line["level_"]) == ("warning", 3)
    assert log.redact_text(None) == "None"


def test_request_is_a_span_of_the_callers_trace(site: Any) -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    trace.start_tracing(exporter)
    try:
        reply = site.ask("GET", "/tasks", traceparent=PARENT)
        site.ask("GET", "/live")  # what follows an answer is done by then
    finally:
        trace.stop_tracing()
    (span,) = exporter.get_finished_spans()
    assert span.name == "http GET"
    assert f"{span.context.trace_id:032x}" == PARENT[3:35] == reply.headers["smara-trace"]
    assert dict(span.attributes) == {"smara.route": "/tasks", "smara.status": 200}


def ask(url: str, token: str = "") -> int:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("kind", ["serve", "mcp"])
def test_server_told_to_stop_is_not_ready_and_answers_until_it_is_drained(
    db: str, kind: str
) -> None:
    """1. It serves. 2. A signal comes: the probe says no, requests are answered. 3. A second
    signal ends it.
    """
    words = {
        "serve": ("serve", "--json", "--listen", "127.0.0.1:0", "--key", "k" * 32),
        "mcp": ("mcp", "--http", "127.0.0.1:0", "--token", "k" * 32),
    }[kind]
    process = subprocess.Popen(
        command(*words),
        env=environment(SMARA_DRAIN_SECONDS="100000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watch = threading.Timer(DEADLINE_SECONDS, process.kill)
    watch.start()
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        if kind == "serve":
            url = json.loads(process.stdout.readline())["url"]
        else:
            url = process.stderr.readline().split()[-1].removesuffix("/mcp")
        assert ask(f"{url}/ready") == 200
        assert ask(f"{url}/metrics") == 401
        assert ask(f"{url}/metrics", "k" * 32) == 200
        process.send_signal(signal.SIGTERM)
        while ask(f"{url}/ready") == 200:
            pass
        assert ask(f"{url}/ready") == 503
        assert ask(f"{url}/live") == 200
        assert ask(f"{url}/metrics", "k" * 32) == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0
    finally:
        watch.cancel()
        process.kill()
        process.communicate()
