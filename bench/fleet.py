"""A fleet of workers: threads observed per minute by 1 and by 8 processes.

The model is a server on loopback that answers after 200 ms. Each process runs one job at a time, so
that the figure is of processes. What counts is the time between the model's answers, without the
start and the end of a run. PostgreSQL is that of SMARA_EVAL_POSTGRES:
``python -m tests.with_postgres python -m bench fleet``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import smara
from bench.measure import Report

MODEL_SECONDS = 0.2
PROJECTS = 10
LEAST_GAIN = 6.0
RUNS = ((1, 40), (8, 320), (1, 40))
"""Processes, and threads that are due."""
_WORDS = "It matters a lot for the release, and the tests have to stay green. "
_NOTE = "The user wants two files changed, with green tests."
_REPLY = f"<observations>\nDate: {time.strftime('%Y-%m-%d')}\n* 🟡 (#1) {_NOTE}\n</observations>"
_MOST_SECONDS = 600.0


class _Model(BaseHTTPRequestHandler):
    """Answers as OpenAI does, late."""

    protocol_version = "HTTP/1.1"
    server: _ModelServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(MODEL_SECONDS)
        body: dict[str, Any] = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "slow",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": _REPLY},
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        reply = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        self.server.answered_at.append(time.monotonic())

    def log_message(self, *_: object) -> None:
        pass


class _ModelServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Model)
        self.answered_at: list[float] = []


def run(folder: Path, report: Report) -> None:
    """Compare fleets of 1 and of 8 processes, the single one before and after."""
    url = os.environ.get("SMARA_EVAL_POSTGRES")
    if url is None:
        print("a fleet needs PostgreSQL: python -m tests.with_postgres python -m bench fleet")
        return
    rates: dict[int, list[float]] = {}
    for number, (processes, threads) in enumerate(RUNS):
        with _model() as server:
            address = f"http://127.0.0.1:{server.server_address[1]}/v1"
            settings = {
                "observe_after_tokens": 1000,
                "embedder": "off",
                "model": f"openai-compatible:{address}#slow",
                "model_api_key": "none",
                "model_tokens_per_hour": 10**9,
                "model_tokens_per_day": 10**9,
                "model_dollars_per_hour": 10**6,
                "model_dollars_per_day": 10**6,
                "fleet_limits": "threads=1; learning=0; vectors=0",
            }
            _fill(url, f"run{number}", threads, settings)
            spent = getrusage(RUSAGE_CHILDREN)
            rate = _observe(url, processes, threads, settings, server)
            _check(url, f"run{number}", threads)
            now = getrusage(RUSAGE_CHILDREN)
        cpu = now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime
        rates.setdefault(processes, []).append(rate)
        report.add(
            f"fleet of {processes}: {threads} threads, model of 200 ms",
            f"{rate * 60:,.0f} threads a minute, {cpu / threads * 1000:,.0f} ms CPU each",
        )
    single = sum(rates[1]) / len(rates[1])
    gain = rates[8][0] / single
    report.add(
        "fleet of 8 against 1, threads observed per minute",
        f"{gain:.1f} x",
        f"≥ {LEAST_GAIN:g} x",
        gain >= LEAST_GAIN,
    )
    report.figure("fleet_8_processes_gain", gain)


@contextmanager
def _model() -> Iterator[_ModelServer]:
    server = _ModelServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _fill(url: str, name: str, threads: int, settings: dict[str, Any]) -> None:
    """Put threads that are due into some projects."""
    with smara.open(url, project=name, **settings) as memory:
        projects = [memory.in_project(f"{name}-{each}") for each in range(PROJECTS)]
        for number in range(threads):
            projects[number % PROJECTS].messages.add_many(
                thread_id=f"t{number}",
                messages=[
                    {"role": "user", "content": f"Change src/file{each}.py. {_WORDS * 8}"}
                    for each in range(2)
                ],
            )


def _check(url: str, name: str, threads: int) -> None:
    """See that every thread has what the model wrote, once."""
    with smara.open(url, project=name) as memory:
        found = [
            row.text
            for each in range(PROJECTS)
            for row in memory.in_project(f"{name}-{each}").observations.list(limit=1000)
        ]
    if found != [_NOTE] * threads:
        sys.exit(f"{len(found)} observations of {threads} threads: {sorted(set(found))[:3]}")


def _observe(
    url: str, processes: int, threads: int, settings: dict[str, Any], server: _ModelServer
) -> float:
    """Let a fleet observe all threads; return how many it did in a second."""
    environment = {
        **os.environ,
        **{f"SMARA_{name.upper()}": str(value) for name, value in settings.items()},
    }
    command = [sys.executable, "-m", "smara", "worker", "--fleet", str(processes), "--db", url]
    fleet = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    until = time.monotonic() + _MOST_SECONDS
    try:
        while len(server.answered_at) < threads and time.monotonic() < until:
            if fleet.poll() is not None:
                sys.exit(f"the fleet ended with {fleet.returncode}")
            time.sleep(0.1)
    finally:
        fleet.terminate()
        fleet.wait()
    if len(server.answered_at) < threads:
        sys.exit(f"{len(server.answered_at)} of {threads} threads were observed")
    times = sorted(server.answered_at)
    middle = times[len(times) // 4 : -len(times) // 10]
    return (len(middle) - 1) / (middle[-1] - middle[0])
