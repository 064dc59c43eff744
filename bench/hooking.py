"""Hooks as hosts run them: whole processes, against bare Python in the same rounds, on a store of 100,000 messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95
from smara.adapters.hosts import briefs

MESSAGES = 100_000
_RUNS = 25
_MAIN = "from smara.surfaces.cli import main; main()"
_CAPTURE, _INJECTING, _INJECTING_MS = 1.5, 4.0, 150.0
_START = {"text": "What is known here: " + "one line of a pack. " * 400, "told": {}, "files": ["CLAUDE.md"]}
_TOOL = {"tool_name": "Read", "tool_use_id": "t", "tool_response": "x" * 2_000}


def run(folder: Path, report: Report, messages: int = MESSAGES) -> None:
    """Measure each hook; the store has a memory or two for those that speak."""
    place = folder / "hooks"
    place.mkdir()
    store = place / "smara.db"
    _fill(store, messages)
    spool = f"{store}-spool"
    os.makedirs(spool, mode=0o700)
    times: dict[str, list[float]] = {}
    for number in range(_RUNS + 1):
        for name, event, payload, is_watched in _cases(number):
            if event and not is_watched:
                briefs.write(spool, str(place), str(store), ["file:known.py"], {"claude": _START})
            taken = _once(event, payload, place, store)
            if number:  # the first run compiles
                times.setdefault(name, []).append(taken)
    _tell(report, times)


def _fill(store: Path, messages: int) -> None:
    corpus = Corpus(11)
    with smara.open(store, durability="normal", embed_in_background=False) as memory:
        batch: list[Any] = []
        for number, message in enumerate(corpus.messages(messages)):
            batch.append(message)
            if len(batch) == 1000:
                memory.messages.add_many(thread_id=f"t{number // 1000}", messages=batch)
                batch = []
        memory.memories.add("known.py must be read before it is changed: its tables are generated", type="gotcha",
                            files=["known.py"])  # fmt: skip


def _cases(number: int) -> list[tuple[str, str, dict[str, Any], bool]]:
    common = {"session_id": f"s{number}"}
    about = {**common, **_TOOL, "tool_use_id": f"t{number}"}
    return [
        ("bare", "", {}, False),
        ("capture: end of a turn", "Stop", {**common, "last_assistant_message": "Done. " * 100}, False),
        ("capture: end of a session", "SessionEnd", {**common, "reason": "other"}, False),
        ("injecting: tool result, nothing known", "PostToolUse",
         {**about, "tool_input": {"file_path": "/x/other.py"}}, False),
        ("injecting: tool result, something known", "PostToolUse",
         {**about, "tool_input": {"file_path": "/x/known.py"}}, False),
        ("injecting: before a command", "PreToolUse", {**about, "tool_name": "Bash", "tool_input": {"command": "ls"}},
         False),
        ("injecting: first prompt", "UserPromptSubmit", {**common, "prompt": "What is next?"}, False),
        ("injecting: later prompt", "UserPromptSubmit", {**common, "prompt": "And then?"}, False),
        ("injecting: start of a session, events waiting", "SessionStart", {**common, "source": "startup"}, False),
        ("capture with a secret in it", "Stop", {**common, "last_assistant_message": "password = x9!Kq2#vPz7Lm"}, True),
        ("drain", "drain", {}, True),
        ("injecting: start of a session, prepared", "SessionStart", {**common, "source": "startup", "n": 2}, False),
        ("injecting: start of a session, asked", "SessionStart", {**common, "source": "resume"}, False),
    ]  # fmt: skip


def _once(event: str, payload: dict[str, Any], place: Path, store: Path) -> float:
    command = [sys.executable, "-c", "pass"] if not event else [*_program(), "hook", "claude", event]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["SMARA_DB"] = str(store)
    started = time.perf_counter()
    done = subprocess.run(command, input=json.dumps(payload).encode(), capture_output=True, env=environment, cwd=place)
    taken = time.perf_counter() - started
    if done.returncode or done.stderr:
        sys.exit(f"the hook {event} left with {done.returncode}: {done.stderr!r}")
    return taken


def _program() -> list[str]:
    installed = Path(sys.executable).with_name("smara")
    return [str(installed)] if installed.exists() else [sys.executable, "-c", _MAIN]


def _tell(report: Report, times: dict[str, list[float]]) -> None:
    bare = p50(times["bare"])
    report.add("bare Python, as the hooks see it", f"{bare * 1000:.1f} ms")
    report.figure("hook.bare_ms", bare * 1000)
    for name, taken in times.items():
        if name == "bare":
            continue
        middle, worst = p50(taken) * 1000, p95(taken) * 1000
        ratio = p50(taken) / bare
        value = f"{middle:.1f} ms, p95 {worst:.0f}, {ratio:.2f}x bare"
        report.figure(f"hook.{name}_ms", middle)
        if name.startswith("capture:"):
            report.add(f"hook, {name}", value, f"<= {_CAPTURE}x", ratio <= _CAPTURE)
        elif name.startswith("injecting:"):
            is_met = ratio <= _INJECTING and middle <= _INJECTING_MS
            report.add(f"hook, {name}", value, f"<= {_INJECTING:.0f}x, <= {_INJECTING_MS:.0f} ms", is_met)
        else:
            report.add(f"hook, {name}", value)
