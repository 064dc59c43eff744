"""Hooks as hosts run them: whole processes, against bare Python in the same rounds, on a store of
100,000 messages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, NamedTuple

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95
from smara.adapters.hosts import brief

MESSAGES, COMMITS = 100_000, 20_000
_RUNS = 25
_MAIN = "from smara.surfaces.cli import main; main()"
_CAPTURE, INJECTING, INJECTING_MS = 1.5, 4.0, 150.0
_TOOL = {"tool_name": "Read", "tool_use_id": "t", "tool_response": "x" * 2_000}
_FAILING = {"tool_name": "Bash", "tool_input": {"command": "npm test"}}
_ERROR = "Exit code 1\nError: Cannot find module 'left-pad'"
_LARGE = "".join(f"GET /cart/{number} 200 in {number % 97} ms\n" for number in range(140_000))
_TALK = (
    ("user", "The garage overcharges people who leave the car for weeks: see parking_fee."),
    ("assistant", "parking_fee charges every started hour. What is the cap of a day?"),
    ("user", "24 euros a day, and the day begins when the car enters, not at midnight."),
    ("assistant", "24 euros per 24 hours from entry. Does the first half hour stay free?"),
    ("user", "Yes, only once per car and day. Never free on event nights, the stadium pays."),
    ("assistant", "Settled: parking_fee is capped at 24 euros per 24 hours counted from entry."),
)
_DECIDED = "Customers complain about parking_fee: a car that stays for days pays far above the cap."
_UNDONE = "At night the ferry provider drops bookings: we seem to give up after too few tries."
Case = tuple[str, str, dict[str, Any]]


class Taken(NamedTuple):
    """What a process took: by the clock, and of the processor; other work slows down the first
    alone.
    """

    wall: float
    processor: float


def run(folder: Path, report: Report, messages: int = MESSAGES) -> None:
    """Measure each hook; the store knows a file with a trap and a command that failed before."""
    place = folder / "hooks"
    place.mkdir()
    # Agents work in repositories; outside of one hooks say nothing.
    subprocess.run(["git", "init", "-q", str(place)], check=True)  # noqa: S607 - git is where the user has it
    _commit(place, COMMITS if messages >= MESSAGES else COMMITS // 40)
    with chdir(place):  # whose project is the one that the hooks see
        _measure(place, report, messages)


def _measure(place: Path, report: Report, messages: int) -> None:
    store = place / "smara.db"
    _fill(store, messages)
    _fail_twice(place, store)
    times: dict[str, list[Taken]] = {}
    said: dict[str, int] = {}
    for number in range((_RUNS if messages >= MESSAGES else _RUNS // 2) + 1):
        for name, event, payload in _cases(number):
            if name.endswith("asked"):
                _forget_briefs(store)
            if name.endswith("checked"):
                _add_message(store, number)
            taken, size = once(event, payload, place, store=store)
            if number:  # the first run compiles
                times.setdefault(name, []).append(taken)
                said[name] = size
    _tell(report, times, said)


def _commit(place: Path, commits: int) -> None:
    """Give the repository a history, with a number that was set for a reason and then changed."""
    stream: list[str] = []

    def add(message: str, name: str, text: str) -> None:
        when = f"Ann <ann@example.com> {1_700_000_000 + 60 * len(stream)} +0000"
        stream.append(
            f"commit refs/heads/main\ncommitter {when}\ndata {len(message)}\n{message}\n"
            f"M 100644 inline {name}\ndata {len(text)}\n{text}\n"
        )

    for number in range(commits):
        body = "\n\nThe provider must never be asked twice within a second." * (number % 5 == 0)
        text = "".join(f"VALUE_{line} = {number * (line == 7)}\n" for line in range(20))
        add(f"feat: step {number}{body}", f"src/part{number % 2_000}.py", text)
    for message, tries in (
        ("feat: retry", 3),
        (
            "fix: retry the ferry provider 7 times\n\nBecause the ferry provider needs up to six"
            " tries at night, when its bookings are copied.",
            7,
        ),
        ("perf: simplify", 10),
    ):
        (place / "retried.py").write_text(f"MAX_ATTEMPTS = {tries}\nOTHER = 1\n")
        add(message, "retried.py", (place / "retried.py").read_text())
    subprocess.run(
        ["git", "-C", str(place), "fast-import", "--quiet"],  # noqa: S607 - as above
        input="".join(stream).encode(),
        check=True,
    )
    subprocess.run(["git", "-C", str(place), "symbolic-ref", "HEAD", "refs/heads/main"], check=True)  # noqa: S607 - as above


def _fill(store: Path, messages: int) -> None:
    corpus = Corpus(11)
    with smara.open(store, durability="normal", embed_in_background=False) as memory:
        batch: list[Any] = []
        for number, message in enumerate(corpus.messages(messages)):
            batch.append(message)
            if len(batch) == 1000:
                memory.messages.add_many(thread_id=f"t{number // 1000}", messages=batch)
                batch = []
        memory.memories.add(
            "known.py must be read before it is changed: its tables are generated",
            type="gotcha",
            files=["known.py"],
            by="person",
            source="user_taught",
        )
        talk = [{"role": role, "content": text} for role, text in _TALK]
        memory.messages.add_many(thread_id="garage", messages=talk)
        memory.decisions.read("garage")
        memory.commits.keep_up(300.0)


def _fail_twice(place: Path, store: Path) -> None:
    """Two sessions in which the same command failed for the same reason, and another helped."""
    for session in ("f1", "f2"):
        told = {"session_id": session, **_FAILING}
        helped = {
            "tool_input": {"command": "npm ci"},
            "tool_response": "added 10 packages",
            "tool_use_id": "2",
        }
        once(
            "PostToolUseFailure", {**told, "error": _ERROR, "tool_use_id": "1"}, place, store=store
        )
        once("PostToolUse", {**told, **helped}, place, store=store)
        once(
            "PostToolUse",
            {**told, "tool_response": "5 passing", "tool_use_id": "3"},
            place,
            store=store,
        )
        once("SessionEnd", {"session_id": session, "reason": "other"}, place, store=store)
    once("drain", {}, place, store=store)
    once("drain", {}, place, store=store)


def _forget_briefs(store: Path) -> None:
    for path in Path(f"{store}-spool", brief.FOLDER).glob("*"):
        path.unlink()


def _add_message(store: Path, number: int) -> None:
    with smara.open(store, durability="normal", embed_in_background=False) as memory:
        memory.messages.add(
            thread_id="later", role="user", content=f"Message {number} that changes the store"
        )


def _cases(number: int) -> list[Case]:
    common = {"session_id": f"s{number}"}
    about = {**common, **_TOOL, "tool_use_id": f"t{number}"}
    known = {**about, "tool_input": {"file_path": "known.py"}}
    failing = {**about, **_FAILING}
    undone = {**about, "tool_input": {"file_path": "retried.py"}}
    return [
        ("bare", "", {}),
        ("capture: end of a turn", "Stop", {**common, "last_assistant_message": "Done. " * 100}),
        ("capture: end of a session", "SessionEnd", {**common, "reason": "other"}),
        (
            "injecting: start of a session, events waiting",
            "SessionStart",
            {**common, "source": "startup"},
        ),
        ("injecting: first prompt", "UserPromptSubmit", {**common, "prompt": "What is next?"}),
        ("injecting: later prompt", "UserPromptSubmit", {**common, "prompt": "And then?"}),
        # What was decided is looked for by every term of a message: long ones have the most.
        (
            "injecting: a long prompt that needs nothing",
            "UserPromptSubmit",
            {"session_id": f"m{number}", "prompt": Corpus(number).text(number)[:4_000]},
        ),
        (
            "injecting: a prompt about what a person decided",
            "UserPromptSubmit",
            {"session_id": f"n{number}", "prompt": _DECIDED},
        ),
        (
            "injecting: a prompt about what a commit undid",
            "UserPromptSubmit",
            {"session_id": f"o{number}", "prompt": _UNDONE},
        ),
        (
            "injecting: tool result, nothing known",
            "PostToolUse",
            {**about, "tool_input": {"file_path": "other.py"}},
        ),
        (
            "injecting: before a command, nothing known",
            "PreToolUse",
            {**about, "tool_name": "Bash", "tool_input": {"command": "ls"}},
        ),
        # In sessions that were told nothing yet, so that there is something to say.
        (
            "injecting: tool result, something known",
            "PostToolUse",
            {**known, "session_id": f"a{number}"},
        ),
        (
            "injecting: a file is opened, a reason was undone",
            "PostToolUse",
            {**undone, "session_id": f"i{number}"},
        ),
        (
            "injecting: its lines are about to be changed",
            "PreToolUse",
            {
                **undone,
                "session_id": f"j{number}",
                "tool_name": "Edit",
                "tool_input": {
                    "file_path": "retried.py",
                    "old_string": "MAX_ATTEMPTS = 10",
                    "new_string": "MAX_ATTEMPTS = 4",
                },
            },
        ),
        (
            "injecting: before a command that failed",
            "PreToolUse",
            {**failing, "session_id": f"b{number}"},
        ),
        (
            "injecting: a failure that is known",
            "PostToolUseFailure",
            {**failing, "session_id": f"c{number}", "error": _ERROR},
        ),
        # A host hands over what a tool printed whole, and the hook reads it before it answers.
        (
            "result of 4 MB: nothing known",
            "PostToolUse",
            {**failing, "session_id": f"k{number}", "tool_response": {"stdout": _LARGE}},
        ),
        (
            "result of 4 MB: a failure that is known",
            "PostToolUseFailure",
            {**failing, "session_id": f"l{number}", "error": _LARGE + _ERROR},
        ),
        (
            "capture with a secret in it",
            "Stop",
            {**common, "last_assistant_message": "password = x9!Kq2#vPz7Lm"},
        ),
        (
            "start of a session, nothing prepared: asked",
            "SessionStart",
            {"session_id": f"g{number}", "source": "startup"},
        ),
        (
            "tool result, nothing prepared: asked",
            "PostToolUse",
            {**known, "session_id": f"h{number}"},
        ),
        ("drain", "drain", {}),
        (
            "injecting: start of a session, prepared",
            "SessionStart",
            {"session_id": f"d{number}", "source": "startup"},
        ),
        (
            "injecting: start of a session, checked",
            "SessionStart",
            {"session_id": f"e{number}", "source": "startup"},
        ),
        ("injecting: tool result, checked", "PostToolUse", {**known, "session_id": f"f{number}"}),
    ]


def once(event: str, payload: dict[str, Any], place: Path, store: Path | str) -> tuple[Taken, int]:
    """Run a hook, or bare Python without an event; the time, and the size of its answer."""
    command = [sys.executable, "-c", "pass"] if not event else [*program(), "hook", "claude", event]
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    environment["SMARA_DB"] = str(store)
    before, started = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, input=json.dumps(payload).encode(), capture_output=True, env=environment, cwd=place
    )
    wall, after = time.perf_counter() - started, getrusage(RUSAGE_CHILDREN)
    taken = Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    if done.returncode or done.stderr:
        sys.exit(f"the hook {event} left with {done.returncode}: {done.stderr!r}")
    return taken, len(done.stdout)


def program() -> list[str]:
    """Return the words that call the command line."""
    installed = Path(sys.executable).with_name("smara")
    return [str(installed)] if installed.exists() else [sys.executable, "-c", _MAIN]


def _tell(report: Report, times: dict[str, list[Taken]], said: dict[str, int]) -> None:
    bare = p50([each.wall for each in times["bare"]])
    least = min(each.processor for each in times["bare"])
    report.add(
        "bare Python, as the hooks see it", f"{bare * 1000:.1f} ms, processor {least * 1000:.1f}"
    )
    report.figure("hook.bare_ms", bare * 1000)
    for name, taken in times.items():
        if name == "bare":
            continue
        walls = [each.wall for each in taken]
        middle, ratio = p50(walls) * 1000, p50(walls) / bare
        processor = min(each.processor for each in taken)
        value = (
            f"{middle:.1f} ms, p95 {p95(walls) * 1000:.0f}, {ratio:.2f}x bare (processor "
            f"{processor / least:.2f}x)"
        )
        value += f", says {said[name]} bytes" if said[name] else ""
        report.figure(f"hook.{name}_ms", middle)
        if name.startswith("capture:"):
            report.add(f"hook, {name}", value, f"<= {_CAPTURE}x", ratio <= _CAPTURE)
        elif name.startswith("injecting:"):
            is_met = ratio <= INJECTING and middle <= INJECTING_MS
            report.add(
                f"hook, {name}", value, f"<= {INJECTING:.0f}x, <= {INJECTING_MS:.0f} ms", is_met
            )
        else:
            report.add(f"hook, {name}", value)
