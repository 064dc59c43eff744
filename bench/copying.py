"""Copies of stores, beside the bare driver copying the same rows into the same tables.

Both run as processes of their own, so that the peak of memory is theirs. The bare copy reads each
table and index with the driver and inserts the rows with it: it notes no progress, closes no
loops, compares nothing. PostgreSQL takes part if SMARA_EVAL_POSTGRES names one:
``python -m tests.with_postgres python -m bench copy``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np

import smara
from bench.corpus import Corpus
from bench.measure import Report
from smara.config import Settings
from smara.core.clock import SystemClock
from smara.database.database import Database, marks
from smara.database.fulltext import trigrams
from smara.database.migrate import migrate
from smara.database.vectors import Shelf, encode
from smara.meaning.store import VectorStore
from smara.memory import open_database
from smara.privacy.streams import _vector
from smara.privacy.tables import TABLES

SIZES = (10_000, 100_000)
LARGE = (*SIZES, 1_000_000)
_DIMS = 384
_A_THREAD = 200
_PART = 2_000


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Copy a store of each size to each database and back."""
    url = os.environ.get("SMARA_EVAL_POSTGRES")
    for size in sizes:
        place = folder / f"copy-{size}"
        place.mkdir()
        source = str(place / "source.db")
        _fill(source, size)
        there = {each: _schema(url, f"{each}_{size}") for each in ("ours", "bare")} if url else {}
        _measure(report, "SQLite → SQLite", size, source, {
            each: str(place / f"{each}.db") for each in ("bare", "ours")
        })  # fmt: skip
        _measure(report, "merge of SQLite into SQLite", size, source, {
            "bare": str(place / "bare-merge.db"), "ours": _begun(str(place / "merged.db")),
        })  # fmt: skip
        if url:
            _measure(report, "SQLite → PostgreSQL", size, source, there)
            back = {each: str(place / f"{each}-back.db") for each in ("bare", "ours")}
            _measure(report, "PostgreSQL → SQLite", size, there["ours"], back)


def _begun(path: str) -> str:
    """Write a store of the same project with a message of its own, to merge into."""
    with smara.open(path, project="bench", embedder="off") as memory:
        memory.messages.add(thread_id="own", role="user", content="We paint the doors blue.")
    return path


def _fill(path: str, size: int) -> None:
    """Write a store with messages, their index, and vectors at random."""
    corpus, chance = Corpus(), np.random.default_rng(7)
    with smara.open(path, project="bench", durability="normal", embedder="off") as memory:
        for first in range(0, size, _A_THREAD):
            memory.messages.add_many(
                thread_id=f"t{first}", messages=list(corpus.messages(_A_THREAD, first))
            )
        for number in range(size // 100):
            memory.tasks.add(f"Task {number}: {corpus.text(number)[:60]}")
        rooms = memory.internals
        store = VectorStore(rooms.database, rooms.scope)
        with rooms.database.write() as session:
            now = rooms.project.clock.now_ms()
            space = store.add_space(session, "drawn", _DIMS, "off", now)
            store.begin(session, space, now)
            shelf = store.shelf(session, space, "message")
        for first in range(1, size + 1, 5_000):
            _draw(rooms.database, shelf, range(first, min(first + 5_000, size + 1)), chance)
        with rooms.database.write() as session:
            session.run("DELETE FROM embedding_queue")
        rooms.database.shrink_log()


def _draw(database: Database, shelf: Shelf, numbers: range, chance: Any) -> None:
    stored = encode(chance.standard_normal((len(numbers), _DIMS), dtype=np.float32))
    with database.write() as session:
        records = {no: [each] for no, each in zip(numbers, stored, strict=True)}
        database.vectors.put(session, shelf, records)


def _measure(report: Report, way: str, size: int, source: str, targets: dict[str, str]) -> None:
    found = {}
    for each in ("bare", "ours"):
        found[each] = _timed(each, source, targets[each])
    seconds, rows, peak = found["ours"]
    bare_seconds, bare_rows, bare_peak = found["bare"]
    speed, bare = rows / seconds, bare_rows / bare_seconds
    report.figure(f"copy {way} {size} rows per second", speed)
    report.figure(f"copy {way} {size} of bare", speed / bare)
    report.figure(f"copy {way} {size} MiB", peak)
    report.add(
        f"copy {size:,} messages, {way}",
        f"{speed:,.0f} rows/s, bare {bare:,.0f} = {speed / bare:.2f}",
        f"{rows:,} rows, {seconds:,.0f} s",
    )
    report.add(f"  peak memory of it, {way}", f"{peak:,.0f} MiB, bare {bare_peak:,.0f} MiB")


def _timed(which: str, source: str, target: str) -> tuple[float, int, float]:
    """Copy in a process of its own; return seconds, rows and the peak of memory."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bench.copying", which, source, target],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    rows, peak = done.stdout.split()
    return seconds, int(rows), int(peak) / 1024


def _schema(url: str, name: str) -> str:
    return re.sub(r"schema=\w+", f"schema=copy_{name}", url)


def bare_copy(source: str, target: str) -> int:
    """Copy every row of every table with the driver alone; return how many."""
    first, second = (open_database(Settings(db=each)) for each in (source, target))
    migrate(second, SystemClock())
    rows = 0
    # A reader of PostgreSQL may not write; a writer of SQLite would hold all in one transaction.
    target_session = second.read if second.kind == "sqlite" else second.write
    with first.snapshot() as session, target_session() as other:
        reader = cast(Any, session).connection
        writer = cast(Any, other).connection
        there = first.tables(session)
        for name in (table.name for table in TABLES if table.name in there):
            if name in ("migrations", "index_state", "code_numbers", "model_switch"):
                continue
            given = [column.name for column in there[name]]
            read, columns = _reading(name, given, first.kind, second.kind)
            rows += _write(name, columns, _parts(read, reader, first.kind), writer)
    second.close()
    first.close()
    return rows


def _reading(name: str, columns: list[str], first: str, second: str) -> tuple[str, list[str]]:
    """Return the query for a table, and the columns of the target that it gives."""
    if name == "message_index" and first != second:
        if first == "sqlite":
            return (
                "SELECT i.rowid >> 16, i.rowid & 65535, m.project_no, m.thread_no, t.resource_id,"
                " m.role, i.prose, i.code, i.prose || ' ' || i.code FROM message_index i"
                " CROSS JOIN messages m ON m.no = i.rowid >> 16"
                " CROSS JOIN threads t ON t.no = m.thread_no",
                [
                    "no",
                    "chunk",
                    "project_no",
                    "thread_no",
                    "resource",
                    "role",
                    "prose",
                    "code",
                    "terms",
                ],
            )
        return (
            "SELECT no * 65536 + chunk, prose, code, '^p' || project_no || ' ^t' || thread_no"
            " FROM message_index ORDER BY 1",
            ["rowid", "prose", "code", "scope"],
        )
    if name == "record_index" and first != second:
        if first == "sqlite":
            return (
                "SELECT 'task', rowid >> 16, rowid & 255, 1, head, body, head || ' ' || body FROM"
                " record_index",
                ["kind", "no", "piece", "project_no", "head", "body", "terms"],
            )
        return (
            "SELECT (no * 256 + 1) * 256 + piece, head, body, '^p1' FROM record_index ORDER BY 1",
            ["rowid", "head", "body", "scope"],
        )
    if name == "words":
        columns = ["project_no", "word"]
        if second == "postgres":
            return "SELECT project_no, word, word FROM words", [*columns, "trigrams"]
    if name.endswith("_index") and first == "sqlite":
        columns = ["rowid", *columns]
    return f"SELECT {', '.join(columns)} FROM {name}", columns


def _parts(statement: str, reader: Any, kind: str) -> Iterator[list[Any]]:
    if kind == "sqlite":
        rows = iter(reader.execute(statement))
        while batch := list(islice(rows, _PART)):
            yield batch
        return
    with reader.cursor(name="bare") as cursor:
        cursor.execute(statement)
        while batch := cursor.fetchmany(_PART):
            yield batch


def _write(name: str, columns: list[str], batches: Iterator[list[Any]], writer: Any) -> int:
    rows = 0
    is_file = hasattr(writer, "executemany")
    for batch in batches:
        if is_file:
            statement = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks(len(columns))})"
            with writer:
                writer.executemany(statement, batch)
        else:
            if columns[-1] == "terms":
                project = columns.index("project_no")
                batch = [(*row[:-1], _vector(row[project], row[-1], "")) for row in batch]
            elif columns[-1] == "trigrams":
                batch = [(*row[:-1], trigrams(row[-1])) for row in batch]
            statement = f"COPY {name} ({', '.join(columns)}) FROM STDIN"
            with writer.cursor() as cursor, cursor.copy(statement) as copy:
                for row in batch:
                    copy.write_row(row)
        rows += len(batch)
    return rows


if __name__ == "__main__":
    which, *places = sys.argv[1:]
    count = bare_copy(*places) if which == "bare" else smara.copy_store(*places).rows
    # Since the program began: what rusage gives goes back to its parent.
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    print(count, peak[1] if peak else 0)
