"""Decisions as their past grows: taking in sessions and commits, and the first message after them.

Sessions are transcripts on disk, taken in by `smara import`; one in ten settles a rule. Beside
them stands a history of twice as many commits, 20,000 at most; one in seven gives a reason. Hooks
are whole processes, against bare Python in the same rounds: a message about one of those rules,
and one that needs nothing.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import time
from contextlib import chdir
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from bench.corpus import Corpus
from bench.hooking import INJECTING, INJECTING_MS, Taken, once, program
from bench.measure import Report, p50, p95

SIZES = (1_000, 10_000)
LARGE = (*SIZES, 100_000)
_RUNS = 15
_TURNS = 6
_MOST_COMMITS, _FILES = 20_000, 800
_NOUNS = (
    "audit", "invoice", "parcel", "tariff", "coupon", "refund", "warehouse", "label", "ledger",
    "voucher", "courier", "stock", "basket", "shelf", "pallet", "customs", "freight", "receipt",
    "discount", "supplier", "forecast", "batch", "sample", "sensor", "meter",
)  # fmt: skip
_EVERYDAY = (
    "run the tests and tell me what fails",
    "commit this and push it",
    "What does this traceback mean? ValueError: not enough values to unpack",
    "please rename the branch to something shorter",
)


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Fill a store of each size, and ask it with first messages."""
    found = [_measure(folder / f"decisions-{size}", size, report) for size in sizes]
    growth = found[-1] / found[0]
    report.figure("decisions.import_growth", growth)
    of = f"from {sizes[0]:,} to {sizes[-1]:,} sessions"
    report.add(f"decisions, import of a session, {of}", f"× {growth:.2f}")


def _measure(place: Path, size: int, report: Report) -> float:
    place.mkdir()
    subprocess.run(["git", "init", "-q", str(place)], check=True)  # noqa: S607 - git is where the user has it
    store = place / "smara.db"
    with chdir(place):
        rules = _write_sessions(place, size)
        begun, before = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
        _smara("import", store=store)
        seconds, after = time.perf_counter() - begun, getrusage(RUSAGE_CHILDREN)
        # By the processor: other work slows down the clock alone.
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        commits = min(2 * size, _MOST_COMMITS)
        _write_history(place, commits)
        before = getrusage(RUSAGE_CHILDREN)
        _smara("import", "--from", "git", ".", store=store)
        after = getrusage(RUSAGE_CHILDREN)
        read = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        report.add(f"decisions, import of {commits:,} commits", f"processor {read:.1f} s")
        _smara("init", "--yes", store=store)  # prepares what hooks read
        _smara("hook", "claude", "drain", store=store)
        report.figure(f"decisions.import_{size}_ms", 1000 * busy / size)
        each = f"{seconds:.1f} s, processor {1000 * busy / size:.2f} ms a session"
        report.add(f"decisions, import of {size:,} sessions", each)
        _ask(place, store, rules, size=size, report=report)
    return busy / size


def _smara(*arguments: str, store: Path) -> None:
    # Patient: a background that a busy machine cuts short would leave nothing prepared.
    own = {"SMARA_DB": str(store), "HOME": str(store.parent), "SMARA_PATIENCE": "100"}
    environment = {**os.environ, **own, "SMARA_DURABILITY": "normal"}
    done = subprocess.run(
        [*program(), *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode:
        raise SystemExit(f"smara {arguments[0]} left with {done.returncode}: {done.stderr!r}")


def _write_sessions(place: Path, size: int) -> list[tuple[str, str]]:
    """Write transcripts where the host keeps them; return the words of each rule's subject."""
    corpus, rng = Corpus(13), random.Random(13)
    folder = place / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(place))
    folder.mkdir(parents=True)
    rules = []
    for number in range(size):
        texts = [corpus.text(_TURNS * number + turn)[:300] for turn in range(_TURNS)]
        if number % 10 == 0:
            first, second = f"{rng.choice(_NOUNS)} {rng.choice(_NOUNS)}", rng.choice(_NOUNS)
            rules.append((first, second))
            texts = _exchange(first, second, number % 83 + 17)
        lines = (
            json.dumps(_record(place, number, turn, text)) + "\n" for turn, text in enumerate(texts)
        )
        (folder / f"{_session(number)}.jsonl").write_text("".join(lines), encoding="utf-8")
    return rules


def _write_history(place: Path, commits: int) -> None:
    """Write a history of small changes; one commit in seven gives a reason."""
    corpus, rng = Corpus(17), random.Random(17)
    lines: list[str] = []
    for number in range(commits):
        one, other = rng.choice(_NOUNS), rng.choice(_NOUNS)
        message = f"Change the {one} of the {other}\n"
        if number % 7 == 0:
            message += (
                f"\nThe {one} must stay below {number % 89}, because {corpus.text(number)[:80]}\n"
            )
        text = "".join(f"{rng.choice(_NOUNS)}_{line} = {rng.randrange(99)}\n" for line in range(12))
        at = 1_690_000_000 + 600 * number
        lines += [
            f"commit refs/heads/main\ncommitter A <a@example.com> {at} +0000",
            f"data {len(message.encode())}\n{message}",
            f"M 100644 inline src/part{rng.randrange(_FILES) // 20}/file{number % _FILES}.py",
            f"data {len(text)}\n{text}",
        ]
    given = "\n".join(lines).encode()
    for command in (["fast-import", "--quiet"], ["checkout", "-qf", "main"]):
        subprocess.run(["git", *command], cwd=place, input=given, check=True, capture_output=True)  # noqa: S607 - git is where the user has it


def _exchange(first: str, second: str, count: int) -> list[str]:
    """Return a session that settles a rule: a proposal, a correction, a summary, a word for it."""
    name = _name(first, second)
    return [
        f"The {first} {second} list grows without bound and the nightly report dies of it.",
        f"I'll let {name} drop the oldest entry whenever the report is slow.",
        f"No, not when it is slow. {name} always keeps the newest {count} entries, never more, and "
        f"a {second} without a date goes first.",
        f"Got it: {name} keeps the newest {count} entries, drops those without a date first, and "
        "looks at nothing else.",
        "Exactly, that's the rule. Ship it.",
        f"Done: {name} keeps {count} entries and the tests pass.",
    ]


def _name(first: str, second: str) -> str:
    return f"{first} {second}".replace(" ", "_")


def _session(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def _record(place: Path, number: int, turn: int, text: str) -> dict[str, Any]:
    role = "assistant" if turn % 2 else "user"
    at = time.gmtime(1_700_000_000 + 600 * number + 40 * turn)
    key = f"{number}-{turn}"
    message: dict[str, Any] = {"role": role, "content": text}
    if turn % 2:
        message = {"role": role, "id": key, "content": [{"type": "text", "text": text}]}
    return {
        "type": role,
        "uuid": key,
        "parentUuid": f"{number}-{turn - 1}" if turn else None,
        "sessionId": _session(number),
        "cwd": str(place),
        "isSidechain": False,
        "version": "2.1.39",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", at),
        "message": message,
    }


def _ask(
    place: Path, store: Path, rules: list[tuple[str, str]], *, size: int, report: Report
) -> None:
    times: dict[str, list[Taken]] = {"bare": [], "about a rule": [], "needs nothing": []}
    answers = dict.fromkeys(times, 0)
    for number in range(_RUNS + 1):
        first, second = rules[-1 - number * len(rules) // (_RUNS + 2)]
        prompts = {
            "bare": "",
            "about a rule": f"The nightly report shows a {first} {second} list that loses the wrong"
            f" entries. Fix {_name(first, second)} so that the newest ones stay.",
            "needs nothing": _EVERYDAY[number % len(_EVERYDAY)],
        }
        for name, prompt in prompts.items():
            session = f"{name.replace(' ', '-')}-{number}"
            start = {"session_id": session, "cwd": str(place), "source": "startup"}
            if prompt:
                once("SessionStart", start, place, store=store)
            event = "UserPromptSubmit" if prompt else ""
            taken, said = once(event, {**start, "prompt": prompt}, place, store=store)
            if number:  # the first run compiles
                times[name].append(taken)
                answers[name] += bool(said)
    bare = p50([each.wall for each in times.pop("bare")])
    for name, taken in times.items():
        walls = [each.wall for each in taken]
        middle, ratio = 1000 * p50(walls), p50(walls) / bare
        value = f"{middle:.1f} ms, p95 {p95(walls) * 1000:.0f}, {ratio:.2f}x bare"
        value += f", answered {answers[name]} of {len(walls)}"
        report.figure(f"decisions.{name}_{size}_ms", middle)
        is_met = ratio <= INJECTING and middle <= INJECTING_MS
        target = f"<= {INJECTING:.0f}x, <= {INJECTING_MS:.0f} ms"
        report.add(f"{size:,} sessions: first message, {name}", value, target, is_met)
