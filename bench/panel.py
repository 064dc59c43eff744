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
from collections.abc import Callable
from functools import partial
from pathlib import Path

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
    """Measure ``smara ui`` from the start of its process to the first paint."""
    browser = next((each for name in _CHROMIUM if (each := shutil.which(name))), None)
    if browser is None:
        report.add("smara ui to the first paint", "no Chromium here")
        return
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "smara", "--db", str(path), "--project", "bench", "--json"]
    command += ["ui", "--no-browser"]
    seconds, processor = [], []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=_FLAGS)
        for _ in range(3):
            page = chromium.new_page()
            started, used = time.time(), _children()
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
                assert process.stdout is not None
                page.goto(json.loads(process.stdout.readline())["login"], wait_until="load")
                page.wait_for_function("performance.getEntriesByName('first-contentful-paint')[0]")
                painted = page.evaluate(
                    "performance.timeOrigin"
                    " + performance.getEntriesByName('first-contentful-paint')[0].startTime"
                )
                process.terminate()
            seconds.append(painted / 1_000 - started)
            processor.append(_children() - used)
            page.close()
        chromium.close()
    report.figure("smara ui to the first paint, seconds", min(seconds))
    report.add(
        "smara ui: start to the first paint, best and worst of 3; processor time of the server",
        f"{min(seconds):.2f}, {max(seconds):.2f} s; {min(processor):.2f} s",
        f"≤ {_MOST_PAINT_SECONDS:.0f} s",
        min(seconds) <= _MOST_PAINT_SECONDS,
    )


def _children() -> float:
    """Return the processor seconds of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
