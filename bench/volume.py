"""Many messages on one node of PostgreSQL: append, search, erase and vacuum.

The store is filled by ``bench.generator``; SMARA_BENCH_MESSAGES says with how many messages, and
SMARA_BENCH_PROJECT with how many in each project. One that is filled is measured again. Times are
given with the processor time of the server's processes, since the machine may be busy:
``SMARA_TEST_DURABLE=1 python -m tests.with_postgres python -m bench volume``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import smara
from bench.corpus import Corpus
from bench.generator import MESSAGES, Generator, fill
from bench.measure import Report, p50, p95
from bench.tenants import server_seconds
from smara.privacy.models import EraseTarget

DEFAULT = 300_000
_BATCH = 500
_BATCHES = 10
_SINGLES = 100
_QUESTIONS = 60
_SIZES = (
    "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r'"
    " AND relnamespace = current_schema()::regnamespace ORDER BY 2 DESC"
)
_FILES = (
    "SELECT relname, relfilenode::bigint, pg_relation_size(oid) FROM pg_class"
    " WHERE relkind IN ('r', 'i') AND relnamespace = current_schema()::regnamespace"
)


def run(folder: Path, report: Report) -> None:
    """Fill a store, and measure what is done every day and what is done at last."""
    url = os.environ.get("SMARA_EVAL_POSTGRES")
    if url is None:
        print("needs PostgreSQL: python -m tests.with_postgres python -m bench volume")
        return
    wanted = int(os.environ.get("SMARA_BENCH_MESSAGES", DEFAULT))
    size = int(os.environ.get("SMARA_BENCH_PROJECT", MESSAGES))
    with smara.open(url, project="tenant") as memory:
        if not memory.threads.totals()["threads"]:
            fill(memory, 5)
        generator = Generator(memory, size)
        with _timed(report, memory, "fill", wanted):
            generator.fill(wanted)
        what = f"{generator.messages:,} messages, {generator.projects:,} projects"
        _report_size(memory, report, what, generator.messages)
        _append(memory, report, what)
        _search(memory, report, what)
        with (
            _timed(report, memory, f"{what}: VACUUM (ANALYZE) of the whole store", 1),
            memory.internals.database.autocommit() as session,
        ):
            session.run("VACUUM (ANALYZE)")
    _erase(url, report, what, size)


@contextmanager
def _timed(report: Report, memory: smara.Memory, what: str, count: int) -> Iterator[None]:
    """Report the time of a block, for each of so many."""
    before, started = server_seconds(memory), time.perf_counter()
    yield
    spent, server = time.perf_counter() - started, server_seconds(memory) - before
    value = f"{spent:,.2f} s, server CPU {server:,.2f} s"
    if count > 1:
        value += f"; {server / count * 1e3:,.2f} ms each of {count:,}"
    report.add(what, value)


def _report_size(memory: smara.Memory, report: Report, what: str, messages: int) -> None:
    with memory.internals.database.read() as session:
        rows = session.all(_SIZES)
    totals: dict[str, int] = {}
    for name, size in rows:
        table = name.rstrip("0123456789").rstrip("_")
        totals[table] = totals.get(table, 0) + int(size)
    report.add(f"{what}: bytes a message", f"{sum(totals.values()) / messages:,.0f}")
    for table, size in sorted(totals.items(), key=lambda each: -each[1])[:6]:
        report.add(f"{what}: bytes a message in {table}", f"{size / messages:,.0f}")


def _append(memory: smara.Memory, report: Report, what: str) -> None:
    project, corpus = memory.in_project("appended"), Corpus(77)
    with _timed(report, memory, f"{what}: append, batches of {_BATCH}", _BATCH * _BATCHES):
        for number in range(_BATCHES):
            project.messages.add_many(
                thread_id=f"batch-{number}", messages=corpus.messages(_BATCH, number * _BATCH)
            )
    with _timed(report, memory, f"{what}: append, one by one", _SINGLES):
        for message in corpus.messages(_SINGLES):
            project.messages.add(thread_id="single", **message)  # type: ignore[arg-type]


def _search(memory: smara.Memory, report: Report, what: str) -> None:
    questions = Corpus(5).questions(_QUESTIONS)
    for name in ("tenant", "template-0", "appended"):
        project = memory.in_project(name)
        for question in questions:
            project.search(question)
        times = []
        with _timed(report, memory, f"{what}: search in '{name}'", _QUESTIONS):
            for question in questions:
                started = time.perf_counter()
                project.search(question)
                times.append(time.perf_counter() - started)
        value = f"{p50(times) * 1000:,.0f} / {p95(times) * 1000:,.0f} ms"
        report.add(f"{what}: search in '{name}', p50 / p95", value)


def _erase(url: str, report: Report, what: str, size: int) -> None:
    """Erase the rows of a project, then a thread of another with what the files hold of it."""
    with smara.open(url, project="template-1") as memory:
        target, now = EraseTarget(is_project=True), 0
        with _timed(report, memory, f"{what}: erase of a project of {size:,}, the rows", size):
            plan, *_ = memory.privacy._remove(
                target, "bench", now, [memory.internals.scope.project_no]
            )
        report.add(f"{what}: rows erased with it", f"{plan.total:,}")
    with smara.open(url, project="template-2") as memory:
        before = _files(memory)
        with _timed(report, memory, f"{what}: erase of a thread of {size // 5:,}, whole", 1):
            receipt = memory.privacy.erase(threads=["thread-0"])
        after = _files(memory)
        changed = [name for name, (number, _) in after.items() if before[name][0] != number]
        report.add(f"{what}: traces left", str(len(receipt.traces)))
        report.add(f"{what}: files written again", f"{len(changed)} of {len(after)}")
        sizes = sum(before[name][1] for name in changed), sum(size for _, size in before.values())
        report.add(f"{what}: bytes written again", " of ".join(f"{each:,}" for each in sizes))


def _files(memory: smara.Memory) -> dict[str, tuple[int, int]]:
    """Return the file and the bytes of each table and index."""
    with memory.internals.database.read() as session:
        return {name: (number, size) for name, number, size in session.all(_FILES)}
