"""Smara beside one bare full-text table (``bench.plain``), on both databases, in one run.

The text is what people and agents wrote (the union haystack of LongMemEval and its questions, if
SMARA_EVAL_DATA names the folder), then the synthetic one. All take turns; Smara makes its vectors
in the background, as it does for users, and the turn of the others begins when they are made.
Memory and the first answer are those of a process of its own. PostgreSQL takes part if
SMARA_EVAL_POSTGRES names one:
``SMARA_TEST_DURABLE=1 python -m tests.with_postgres python -m bench compare``.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import smara
from bench.corpus import Corpus, rare_name
from bench.measure import Report, p50, p95, p99
from bench.plain import Plain, PlainPostgres, PlainSqlite, Rows
from smara.core.text import analyze_chunks
from smara.memory import Memory
from smara.secrets import redact

SIZES = (10_000, 100_000)
_SINGLES = 1_000
_TURN = 250
_BURSTS = 40
_A_BURST = 10
_QUESTIONS = 60
_NAMES = 100
_BATCH = 500
_DATA = "SMARA_EVAL_DATA"


class Text(NamedTuple):
    """Messages to store, questions about them, and names that stand in one of them."""

    name: str
    messages: list[dict[str, str]]
    questions: list[str]
    names: list[str]


def synthetic(size: int) -> Text:
    """Draw messages by Zipf's law, about 310 bytes each."""
    corpus = Corpus()
    messages = list(corpus.messages(size))
    names = [rare_name(50 * number, corpus.words) for number in range(1, _NAMES + 1)]
    return Text("synthetic", messages, corpus.questions(_QUESTIONS), names)


def real(size: int) -> Text | None:
    """Read the turns of LongMemEval, the union haystack first; ``None`` without the data."""
    folder = Path(os.environ.get(_DATA, ""))
    if not os.environ.get(_DATA) or not (folder / "longmemeval_union").is_dir():
        return None

    def lines(name: str) -> Iterator[dict[str, object]]:
        for path in sorted(folder.glob(f"{name}.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                yield from map(json.loads, file)

    def turns() -> Iterator[dict[str, str]]:
        for name in ("longmemeval_union/sessions", "longmemeval_s2/sessions"):
            for record in lines(name):
                for turn in record["turns"]:  # type: ignore[attr-defined]
                    if turn["content"]:
                        yield {"role": turn["role"], "content": turn["content"]}

    messages = list(islice(turns(), size))
    asked = (str(record["question"]) for record in lines("longmemeval_s/questions"))
    words: dict[str, int] = {}
    for message in messages[:10_000]:
        for word in set(re.findall(r"\b[A-Z][a-z]{5,}\b", message["content"])):
            words[word] = words.get(word, 0) + 1
    names = sorted(word for word, count in words.items() if count == 1)
    step = max(1, len(names) // _NAMES)
    return Text("real", messages, list(islice(asked, _QUESTIONS)), names[::step][:_NAMES])


class Ours:
    """Smara, as a user opens it."""

    def __init__(self, place: str) -> None:
        self.memory: Memory = smara.open(place, compact_every_messages=0)

    def add_many(self, thread: str, rows: Rows) -> None:
        if len(rows) == 1:
            self.memory.messages.add(thread_id=thread, **rows[0])  # type: ignore[arg-type]
        else:
            self.memory.messages.add_many(thread_id=thread, messages=rows)

    def search(self, question: str) -> object:
        return self.memory.search(question)

    def settle(self) -> None:
        self.memory.embeddings.embed_pending()

    def size(self) -> int:
        database = self.memory.internals.database
        if database.kind == "sqlite":
            database.shrink_log()  # type: ignore[attr-defined]
            return os.stat(str(self.memory.path)).st_size
        with database.read() as session:
            row = session.one(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
                " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
            )
        return int(row[0]) if row else 0

    def close(self) -> None:
        self.memory.close()


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Measure each text at each size; the stores of each are its own."""
    os.environ["SMARA_EMBED_IN_BACKGROUND"] = "true"
    try:
        for size in sizes:
            texts = (real(size) if size <= 10_000 else None, synthetic(size))
            for text in filter(None, texts):
                _compare(folder, report, text)
                _redaction(report, text)
    finally:
        os.environ["SMARA_EMBED_IN_BACKGROUND"] = "false"


def _compare(folder: Path, report: Report, text: Text) -> None:
    key = f"{text.name}_{len(text.messages)}"
    places = {"bare SQLite": str(folder / f"{key}-bare.db"), "SQLite": str(folder / f"{key}.db")}
    url = os.environ.get("SMARA_EVAL_POSTGRES")
    if url:
        places["bare PostgreSQL"] = re.sub(r"schema=\w+", f"schema=bare_{key}", url)
        places["PostgreSQL"] = re.sub(r"schema=\w+", f"schema=ours_{key}", url)
    systems: dict[str, Plain | Ours] = {name: opened(name, at) for name, at in places.items()}
    rest = text.messages[: -_SINGLES - _BURSTS * _A_BURST]
    batches = [rest[at : at + _BATCH] for at in range(0, len(rest), _BATCH)]
    label = f"{len(text.messages):,} {text.name}"
    for what, per_call, calls, turn in (
        ("batches of 500", _BATCH, batches, 1),
        ("one at a time, sustained", 1, [[m] for m in text.messages[-_SINGLES:]], _TURN),
        ("one at a time, bursts of 10", 1, [[m] for m in text.messages[: _BURSTS * _A_BURST]],
         _A_BURST),
    ):  # fmt: skip
        times = _turns(systems, calls, turn=turn, is_settled="burst" not in what)
        for name in systems:
            _tell_rate(report, f"{label}: append {what}", name, times=times, per_call=per_call)
    for what, queries, goal in (
        ("a question", text.questions, 4.0 if len(text.messages) <= 10_000 else 1.0),
        ("a rare name", text.names, 2.0),
    ):
        times = {name: ([], []) for name in systems}
        for query in queries:
            for name, system in systems.items():
                _time(times[name], partial(system.search, query))
        for name in systems:
            _tell_time(report, f"{label}: {what}", name, times=times, goal=goal)
    sizes = {name: system.size() / len(text.messages) for name, system in systems.items()}
    for system in systems.values():
        system.close()
    for name in (each for each in systems if not each.startswith("bare")):
        ratio = sizes[name] / sizes[f"bare {name}"]
        report.figure(f"{label} bytes {name}", ratio)
        report.add(f"{label}: bytes each, {name}", f"{sizes[name]:,.0f} = {ratio:.2f}",
                   "<= 1.50 of bare", ratio <= 1.5)  # fmt: skip
        _first_answer(report, label, name, places, text.questions[0])


def _redaction(report: Report, text: Text) -> None:
    """Tell how much of what preparing a message costs goes to the search for secrets."""
    used = {}
    contents = [message["content"] for message in text.messages[:_SINGLES]]
    for what, call in (("redact", redact), ("analyze", analyze_chunks)):
        started = time.thread_time()
        for content in contents:
            call(content)  # type: ignore[operator]
        used[what] = (time.thread_time() - started) / len(contents) * 1000
    report.add(f"{text.name}: processor time of a message for secrets / analysis",
               f"{used['redact']:.3f} / {used['analyze']:.3f} ms")  # fmt: skip


def opened(name: str, place: str) -> Plain | Ours:
    """Open one of the systems by its name."""
    if not name.startswith("bare"):
        return Ours(place)
    return PlainSqlite(Path(place)) if "SQLite" in name else PlainPostgres(place)


Times = dict[str, tuple[list[float], list[float]]]
"""By system: seconds by the clock, and seconds of this thread on the processor."""


def _time(times: tuple[list[float], list[float]], call: Callable[[], object]) -> None:
    started, used = time.perf_counter(), time.thread_time()
    call()
    times[1].append(time.thread_time() - used)
    times[0].append(time.perf_counter() - started)


def _turns(
    systems: dict[str, Plain | Ours], calls: list[Rows], turn: int, is_settled: bool
) -> Times:
    """Append by turns of so many calls; the vectors are made up before the next one's turn."""
    times: Times = {name: ([], []) for name in systems}
    for first in range(0, len(calls), turn):
        for name, system in systems.items():
            for rows in calls[first : first + turn]:
                _time(times[name], partial(system.add_many, f"t-{first // 10}", rows))
            if is_settled and isinstance(system, Ours):
                system.settle()
    return times


def _tell_rate(report: Report, what: str, name: str, times: Times, per_call: int) -> None:
    mine, used = times[name]
    rate = len(mine) * per_call / sum(mine)
    parts = " / ".join(f"{of(mine) / per_call * 1000:.2f}" for of in (p50, p95, p99))
    if name.startswith("bare"):
        report.add(f"{what}, {name}", f"{rate:,.0f}/s; {parts} ms")
        return
    plain, plain_used = times[f"bare {name}"]
    ratio = sum(plain) / sum(mine)
    goal = 0.3 if per_call > 1 else 0.5 if "burst" in what else 0.35
    report.figure(f"{what} {name}", ratio)
    work = f"; processor {sum(plain_used) / sum(used):.2f}" if name == "SQLite" else ""
    report.add(f"{what}, {name}", f"{rate:,.0f}/s = {ratio:.2f}{work}; {parts} ms",
               f">= {goal:.2f} of bare", ratio >= goal)  # fmt: skip


def _tell_time(report: Report, what: str, name: str, times: Times, goal: float) -> None:
    mine, used = times[name]
    parts = " / ".join(f"{of(mine) * 1000:.2f}" for of in (p50, p95, p99))
    if name.startswith("bare"):
        report.add(f"{what}, {name}", f"{parts} ms")
        return
    ratio = p50(mine) / p50(times[f"bare {name}"][0])
    work = (
        f"; processor {p50(used) / p50(times[f'bare {name}'][1]):.2f}" if name == "SQLite" else ""
    )
    report.figure(f"{what} {name}", ratio)
    report.add(f"{what}, {name}", f"{parts} ms = {ratio:.2f}{work}", f"<= {goal:.2f} of bare",
               ratio <= goal)  # fmt: skip


def _first_answer(
    report: Report, label: str, name: str, places: dict[str, str], question: str
) -> None:
    """Time processes that open a store and answer once, beside Python that does nothing."""
    found: dict[str, list[float]] = {"pass": [], name: [], f"bare {name}": []}
    peak = 0
    for _ in range(5):
        for each, times in found.items():
            code = (
                "pass" if each == "pass" else
                f"from bench.comparing import opened; opened({each!r}, {places[each]!r})"
                f".search({question!r})\n"
                "import re, pathlib; print(re.search(r'VmHWM:\\s+(\\d+)',"
                " pathlib.Path('/proc/self/status').read_text())[1])"
            )  # fmt: skip
            started = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True
            )
            times.append(time.perf_counter() - started)
            if each == name:
                peak = int(done.stdout)
    over = p50(found[name]) - p50(found["pass"])
    plain = p50(found[f"bare {name}"]) - p50(found["pass"])
    report.add(f"{label}: first answer of a process, over bare Python, {name}",
               f"{over:.3f} s, bare {plain:.3f}", "<= 0.15 s", over <= 0.15)  # fmt: skip
    report.add(f"{label}: peak memory of that process, {name}", f"{peak / 1024:.0f} MiB",
               "<= 120 MiB", peak <= 120 * 1024)  # fmt: skip
