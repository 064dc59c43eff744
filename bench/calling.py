"""A tool call: the engine's own, through the tools, and over the pipe of ``smara mcp``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import smara
from bench.measure import Report, p50, take_turns
from smara.tools import Toolbox, ToolContext

BLOCKS, ROUNDS = 8, 150
"""Two processes and three threads pass a call on. A busy machine makes them wait, so the calmest
block counts.
"""
_TARGET_MS = 2.0
_TASKS = 100
Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


def run(folder: Path, report: Report) -> None:
    """Measure what the tools and the protocol add to a look at the ready tasks and to a search."""
    path = folder / "calling.db"
    with smara.open(path, durability="normal") as memory, _server(path) as ask:
        for number in range(_TASKS):
            memory.tasks.add(f"task {number}", description="what is to be done " * 10)
            memory.messages.add(
                thread_id="t", role="user", content=f"parser_{number} fails in load_config"
            )
        toolbox = Toolbox(memory, ToolContext(session_id="bench"))
        calls: list[tuple[str, Callable[[int], object], str, dict[str, Any]]] = [
            (
                "ready",
                lambda number: memory.tasks.ready(limit=5),
                "task-query",
                {"action": "ready"},
            ),
            (
                "search",
                lambda number: memory.search("load_config", 1),
                "memory-search",
                {"query": "load_config"},
            ),
        ]
        for name, engine, tool, arguments in calls:
            blocks = [
                take_turns(
                    ROUNDS,
                    engine=engine,
                    toolbox=lambda number, tool=tool, arguments=arguments: toolbox.call(
                        tool, arguments
                    ),
                    stdio=lambda number, tool=tool, arguments=arguments: ask(tool, arguments),
                )
                for _ in range(BLOCKS)
            ]
            medians = [
                {each: p50(values) * 1_000 for each, values in block.items()} for block in blocks
            ]
            _tell(report, name, min(medians, key=lambda found: found["stdio"]))


def _tell(report: Report, name: str, found: dict[str, float]) -> None:
    more = found["stdio"] - found["engine"]
    report.figure(f"{name} over stdio, ms more than the engine", more)
    report.add(
        f"{name}: engine, tools, stdio, p50 of the calmest block",
        f"{found['engine']:.2f}, {found['toolbox']:.2f}, {found['stdio']:.2f} ms = + {more:.2f}",
        f"≤ {_TARGET_MS:.0f} ms more",
        more <= _TARGET_MS,
    )


@contextmanager
def _server(path: Path) -> Iterator[Ask]:
    """A server of its own, spoken to in bare lines: a client library would cost as much again."""
    process = subprocess.Popen(
        [sys.executable, "-m", "smara", "mcp", "--db", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    pipes = process.stdin, process.stdout

    def send(message: dict[str, Any]) -> None:
        assert pipes[0] is not None
        pipes[0].write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        pipes[0].flush()

    def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert pipes[1] is not None
        send({"id": 1, "method": method, "params": params})
        found: dict[str, Any] = json.loads(pipes[1].readline())
        if "result" not in found or found["result"].get("isError"):
            sys.exit(f"the benchmark is wrong: {found}")
        return found

    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    try:
        request("initialize", about)
        send({"method": "notifications/initialized"})
        yield lambda tool, arguments: request("tools/call", {"name": tool, "arguments": arguments})
    finally:
        process.communicate()
