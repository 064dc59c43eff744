"""Watching agents: one event in a long-lived process, a batch as hooks tell it, and deciding on a
session.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Literal

import smara
from bench.measure import Report, p50, seconds

EVENTS = 20_000
SESSIONS = 12
_OBSERVE_US, _FINALIZE_MS = 200.0, 100.0
_BOUNDARY: Literal["turn_end"] = "turn_end"


def run(folder: Path, report: Report, events: int = EVENTS, sessions: int = SESSIONS) -> None:
    """Measure on a store of its own; a turn ends after every forty events, which is when a
    scratchpad is written.

    By processor time: an event takes less than the slice that a busy machine gives to another
    process in between.
    """
    with smara.open(folder / "watching.db", embedder="off") as memory:
        rng = random.Random(3)
        memory.behavior.observe(_event(rng, "warm", 0))
        told = [_event(rng, "long", number) for number in range(events)]
        taken: list[float] = []
        written: list[float] = []
        clock: list[float] = []
        for event in told:
            begin, by_the_clock = time.thread_time(), time.perf_counter()
            memory.behavior.observe(event)
            took = time.thread_time() - begin
            (written if event.kind == _BOUNDARY else taken).append(took)
            clock.append(time.perf_counter() - by_the_clock)
        p99 = 1e6 * sorted(taken)[int(len(taken) * 0.99)]
        report.add(
            "observe one event, p50 / p99",
            f"{1e6 * p50(taken):.0f} / {p99:.0f} µs",
            f"p99 <= {_OBSERVE_US:.0f} µs",
            p99 <= _OBSERVE_US,
        )
        report.add("… by the clock, p50", f"{1e6 * p50(clock):.0f} µs")
        report.add(
            "… and at the end of a turn, where it is written, p50", f"{1e3 * p50(written):.1f} ms"
        )
        decided, batches = [], []
        for number in range(sessions):
            session = f"s{number}"
            batch = [_event(rng, session, position) for position in range(600)]
            batches.append(seconds(lambda batch=batch: memory.behavior.observe_batch(batch)))  # type: ignore[misc]
            begin = time.process_time()
            memory.behavior.finalize(session)
            decided.append(time.process_time() - begin)
        report.add("take in a batch of 600 events, p50", f"{1e3 * p50(batches):.0f} ms")
        worst = 1e3 * p50(decided)
        report.add(
            "decide on a session of 600 events, p50",
            f"{worst:.0f} ms",
            f"<= {_FINALIZE_MS:.0f} ms",
            worst <= _FINALIZE_MS,
        )
        report.figure("observe_p99_us", p99)
        report.figure("finalize_p50_ms", worst)


def _event(rng: random.Random, session: str, number: int) -> smara.HostEvent:
    """An event as sessions have them: mostly reading and running, some changing, some talking."""
    at, key = 1_767_600_000_000 + number * 3_000, f"{session}:{number}"
    path = f"/work/shop/src/m{rng.randint(0, 20)}/f{rng.randint(0, 60)}.py"
    if number % 40 == 39:
        return smara.HostEvent(
            "claude", _BOUNDARY, session, at, text="Done with this part.", key=key
        )
    kind = rng.random()
    if kind < 0.35:
        text = (
            "from shop.core import thing\n"
            + "def total(rows):\n    return sum(rows)\n" * rng.randint(5, 150)
        )
        return _tool(session, at, key, tool="Read", given={"file_path": path}, output=text)
    if kind < 0.55:
        given = {"file_path": path, "old_string": "x" * 80, "new_string": f"y{number}"}
        return _tool(session, at, key, tool="Edit", given=given, output="done")
    if kind < 0.75:
        return _tool(
            session,
            at,
            key,
            tool="Bash",
            given={"command": "make test 2>&1 | tail -5"},
            output="ok\n" * 200 + "41 passed",
        )
    if kind < 0.85:
        noise = "building\n" * 300
        error = f"Exit code 1\n{noise}Error: could not find {rng.choice('abcdef') * 6}"
        return smara.HostEvent(
            "claude",
            "tool_fail",
            session,
            at,
            cwd="/work/shop",
            tool="Bash",
            error=error,
            key=key,
            tool_input={"command": f"make step-{rng.randint(0, 30)}"},
        )
    text = "Let me look at the next file, which should show how totals are made. " * rng.randint(
        1, 20
    )
    return smara.HostEvent("claude", "reasoning", session, at, text=text, key=key)


def _tool(
    session: str, at: int, key: str, tool: str, given: dict[str, str], output: str
) -> smara.HostEvent:
    return smara.HostEvent(
        "claude",
        "tool_post",
        session,
        at,
        cwd="/work/shop",
        tool=tool,
        tool_input=given,
        tool_output=output,
        key=key,
    )
