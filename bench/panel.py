"""The pages of the panel on a large store, and the time until a person sees the first.

Times are given twice: by the clock, and as processor time of the server, which a busy machine does
not change. SMARA_BENCH_STORE names a file in which the large store is kept for the next run.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import smara
from bench.measure import Report, p50, p95
from bench.panel_store import LONG_THREAD, large_store
from smara.surfaces.http.guard import Limits
from smara.surfaces.http.server import ServeOptions, serving
from smara.surfaces.panel.pages import PAGES
from smara.surfaces.panel.panel import panel_routes

ROUNDS = 20
_MOST_MS, _MOST_BYTES, _MOST_PAINT_SECONDS = 100, 100_000, 2.0
_QUERIES = {"/search": {"q": "parser load config"}, "/context": {"thread": LONG_THREAD}}
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_PAINTS = 5
_HELLO = """
import socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

async def hello(request):
    return HTMLResponse("<!doctype html><title>Hello</title><p>Hello")

bound = socket.create_server(("127.0.0.1", 0))
print('{"login": "http://127.0.0.1:%d/"}' % bound.getsockname()[1], flush=True)
config = uvicorn.Config(Starlette(routes=[Route("/", hello)]), log_level="critical")
uvicorn.Server(config).run(sockets=[bound])
"""
# A function, not a string to wait for: the policy of the pages forbids to evaluate one.
_FIRST_PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  const [paint] = list.getEntriesByName("first-contentful-paint");
  if (paint) done(performance.timeOrigin + paint.startTime);
}).observe({ type: "paint", buffered: true }))"""
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def run(folder: Path, report: Report) -> None:
    """Measure every page that needs no id, and the first paint."""
    root = Path(__file__).parents[1]
    kept = os.environ.get("SMARA_BENCH_STORE")
    path = large_store(Path(kept) if kept else folder / "panel.db", root)
    opened = partial(smara.open, path, project="bench", durability="normal", embedder="off")
    options = ServeOptions(
        folder=folder / "panel", limits=Limits(1 << 22, 1e9, 10**9), pages=panel_routes
    )
    with opened() as memory, serving(opened, options) as (url, service):

        def ask(target: str) -> int:
            # A new one each time: the server ends one that was idle while facts were read.
            connection = http.client.HTTPConnection(url.removeprefix("http://"))
            connection.request("GET", target, headers={"Authorization": f"Bearer {service.key}"})
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            assert answer.status == 200, target
            return len(body)

        for spec in (each for each in PAGES if "{" not in each.path and each.path != "/erase"):
            query = _QUERIES.get(spec.path, {})
            words = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in query.items())
            target = f"/ui{spec.path}".rstrip("/") + (f"?{words}" if words else "")
            length = ask(target)
            clock, processor = _times(partial(ask, target))
            _, bare = _times(lambda read=spec.read, query=query: read(memory, query))
            late = p95(processor) * 1_000
            report.figure(f"page {spec.path} on the large store, ms of processor p95", late)
            report.add(
                f"panel, {spec.path}: processor p95, clock p95, bytes, × its facts",
                f"{late:.0f} ms, {p95(clock) * 1_000:.0f} ms, {length / 1_000:.0f} kB,"
                f" × {p50(processor) / max(p50(bare), 1e-6):.1f}",
                f"≤ {_MOST_MS} ms, ≤ {_MOST_BYTES // 1_000} kB",
                late <= _MOST_MS and length <= _MOST_BYTES,
            )
    _paint(path, root, report)


def _times(act: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Return the seconds of each round: by the clock, and of the processor."""
    clock, processor = [], []
    for _ in range(ROUNDS):
        started, used = time.perf_counter(), time.process_time()
        act()
        clock.append(time.perf_counter() - started)
        processor.append(time.process_time() - used)
    return clock, processor


def _paint(path: Path, root: Path, report: Report) -> None:
    """Measure ``smara ui`` from the start of its process to the first paint, beside a bare page."""
    browser = next((each for name in _CHROMIUM if (each := shutil.which(name))), None)
    if browser is None:
        report.add("smara ui to the first paint", "no Chromium here")
        return
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "smara", "--db", str(path), "--project", "bench", "--json"]
    command += ["ui", "--no-browser"]
    bare = [sys.executable, "-c", _HELLO]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=_FLAGS)
        # In turns, so that a busy moment of the machine meets both.
        rounds = [
            [_painted(chromium, each, root) for each in (command, bare)] for _ in range(_PAINTS)
        ]
        chromium.close()
    used = [[_used(each, root) for each in (command, bare)] for _ in range(_PAINTS)]
    seconds, plain = zip(*rounds, strict=True)
    processor, least = (p50(list(each)) for each in zip(*used, strict=True))
    report.figure("smara ui to the first paint, seconds", min(seconds))
    report.figure("smara ui to its first page, seconds of processor", processor)
    report.add(
        f"smara ui: start to the first paint, best and worst of {_PAINTS}; a bare page",
        f"{min(seconds):.2f}, {max(seconds):.2f} s; {min(plain):.2f}, {max(plain):.2f} s",
        f"≤ {_MOST_PAINT_SECONDS:.0f} s",
        min(seconds) <= _MOST_PAINT_SECONDS,
    )
    report.add(
        "smara ui: processor until its first page is sent, × a bare page of uvicorn",
        f"{processor:.2f} s, × {processor / least:.1f}",
    )


def _painted(chromium: Any, command: list[str], root: Path) -> float:
    """Return the seconds from the start of a server to what a browser paints first."""
    page, started = chromium.new_page(), time.time()
    with _running(command, root) as login:
        page.goto(login, wait_until="load")
        painted: float = page.evaluate(_FIRST_PAINT)
    page.close()
    return painted / 1_000 - started


def _used(command: list[str], root: Path) -> float:
    """Return the processor seconds of a server until its first page is sent."""
    used = _children()
    with _running(command, root) as login:
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        opener.open(login).read()
    return _children() - used


@contextmanager
def _running(command: list[str], root: Path) -> Iterator[str]:
    """Run a server; yield the address that it prints."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["login"])
        finally:
            process.terminate()


def _children() -> float:
    """Return the processor seconds of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
