"""A route of ``smara serve``: its own time beside the bare call of the room, and 200 streams."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import smara
from bench.measure import Report, p50, p95, take_turns
from smara.surfaces.http.guard import Limits
from smara.surfaces.http.server import ServeOptions, serving
from smara.tasks.models import NewTask

SIZES = [10_000, 100_000]
BLOCKS, ROUNDS = 4, 60
_TARGET_MS = 5.0
_STREAMS = 200
_BATCH = 1_000


def run(folder: Path, report: Report, sizes: list[int]) -> None:
    """Measure what HTTP adds to reads; a store has a tenth as many tasks as messages."""
    for size in sizes:
        path = folder / f"serving-{size}.db"
        with smara.open(path, project="bench", durability="normal", embedder="off") as memory:
            _fill(memory, size)
            _measure(memory, path, size, report)


def _fill(memory: smara.Memory, size: int) -> None:
    for start in range(0, size, _BATCH):
        messages = [
            {
                "role": "user",
                "content": f"parser_{number} fails in load_config of part {number % 97}",
            }
            for number in range(start, start + _BATCH)
        ]
        memory.messages.add_many(thread_id=f"t{start // 10_000}", messages=messages)
    memory.tasks.put_many(
        NewTask(f"task {number}", description="what is to be done " * 10)
        for number in range(size // 10)
    )


def _measure(memory: smara.Memory, path: Path, size: int, report: Report) -> None:
    task = memory.tasks.list(limit=1).tasks[0].short_id
    calls: list[tuple[str, str, Callable[[int], object]]] = [
        ("one task", f"/tasks/{task}", lambda number: memory.tasks.get(task)),
        ("50 tasks", "/tasks?limit=50", lambda number: memory.tasks.list(limit=50)),
        (
            "50 messages",
            "/threads/t0/messages?limit=50",
            lambda number: memory.messages.list(thread_id="t0", limit=50, after=0),
        ),
        (
            "a search",
            "/search?query=parser_77+load_config&limit=10",
            lambda number: memory.search("parser_77 load_config", 10),
        ),
    ]
    opened = partial(smara.open, path, project="bench", durability="normal", embedder="off")
    options = ServeOptions(folder=path.parent / "serve", limits=Limits(1 << 22, 1e9, 10**9))
    with serving(opened, options) as (url, service):
        connection = http.client.HTTPConnection(url.removeprefix("http://"))
        headers = {"Authorization": f"Bearer {service.key}"}

        def ask(target: str, number: int) -> int:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, target
            return len(body)

        for name, target, bare in calls:
            ask(target, 0)
            blocks = [
                take_turns(ROUNDS, bare=bare, route=partial(ask, target)) for _ in range(BLOCKS)
            ]
            calm = min(blocks, key=lambda found: p50(found["route"]))
            own = (p50(calm["route"]) - p50(calm["bare"])) * 1_000
            late = (p95(calm["route"]) - p95(calm["bare"])) * 1_000
            bare_ms, route_ms = (p50(calm[each]) * 1_000 for each in ("bare", "route"))
            report.figure(f"{name} over http at {size}, ms more than the room", own)
            report.add(
                f"http, {name} at {size:,}: room, route, p50 of the calmest block",
                f"{bare_ms:.2f}, {route_ms:.2f} ms = × {route_ms / bare_ms:.1f}",
                f"own time ≤ {_TARGET_MS:.0f} ms (p95 {late:.1f})",
                own <= _TARGET_MS,
            )
        _streams(memory, url, service.key, size, report)


def _streams(memory: smara.Memory, url: str, key: str, size: int, report: Report) -> None:
    """Tell 200 clients of one message that another process wrote."""
    opened = []
    for _ in range(_STREAMS):
        connection = http.client.HTTPConnection(url.removeprefix("http://"))
        connection.request("GET", "/events", headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        answer.readline()
        opened.append((connection, answer))
    started = time.perf_counter()
    memory.messages.add(thread_id="t0", role="user", content="one more")
    for _, answer in opened:
        while not answer.readline().startswith(b"data:"):
            pass
    took = time.perf_counter() - started
    for connection, _ in opened:
        connection.close()
    report.figure(f"{_STREAMS} streams at {size}, seconds to the last", took)
    report.add(
        f"http, {_STREAMS} streams at {size:,}: written to told to the last",
        f"{took:.2f} s",
        "≤ 2 s",
        took <= 2,
    )
