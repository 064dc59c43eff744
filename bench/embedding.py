"""Making vectors in the background, what they take, and the nearest of 100,000 and 1,000,000
against bare numpy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95, take_turns
from smara.database.vectors import encode
from smara.meaning.nearest import Nearest
from smara.meaning.store import VectorStore

SIZES = (100_000, 1_000_000)
EMBEDDED = 100_000
QUESTIONS = 30
_BATCH = 500
_CLUSTERS = 2_000


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Embed real messages with the default embedder, then search synthetic vectors."""
    _made(folder / "embedded.db", report)
    _beside(folder / "beside.db", report)
    _searched(folder / "near-100000-1024.db", report, 100_000, dims=1_024)
    for size in sizes:
        _searched(folder / f"near-{size}.db", report, size, dims=256)


def _made(path: Path, report: Report) -> None:
    """100,000 messages written, then embedded in one go."""
    with smara.open(
        path, durability="normal", compact_every_messages=0, embed_in_background=False
    ) as memory:
        corpus, started = Corpus(), time.perf_counter()
        for size in range(0, EMBEDDED, _BATCH):
            memory.messages.add_many(
                thread_id=f"thread-{size // 5_000}", messages=corpus.messages(_BATCH, size)
            )
        added = time.perf_counter() - started
        memory.internals.database.shrink_log()
        before, started = os.stat(path).st_size, time.perf_counter()
        done = memory.embeddings.embed_pending()
        embedded = time.perf_counter() - started
        memory.internals.database.shrink_log()
        if done.embedded != EMBEDDED or not done.is_done:
            sys.exit(f"the benchmark is wrong: {done}")
        report.add(f"{EMBEDDED:,} messages: embedded per second", f"{EMBEDDED / embedded:,.0f}/s")
        report.add(f"{EMBEDDED:,} messages: embedded in", f"{embedded:,.1f} s")
        report.add(
            f"{EMBEDDED:,} messages: added and embedded per second",
            f"{EMBEDDED / (added + embedded):,.0f}/s",
        )
        report.figure("embedded per second", EMBEDDED / embedded)
        report.add(
            f"{EMBEDDED:,} messages: bytes of a vector in the store",
            f"{(os.stat(path).st_size - before) / EMBEDDED:,.0f}",
            "<= 400 (256 of them the vector)",
            (os.stat(path).st_size - before) / EMBEDDED <= 400,
        )


def _beside(path: Path, report: Report) -> None:
    """What a write costs while vectors are made beside it, against a process that makes none."""
    other = path.with_name("alone.db")
    corpus = Corpus()
    with (
        smara.open(path, compact_every_messages=0, embed_in_background=True) as memory,
        smara.open(other, compact_every_messages=0, embed_in_background=False) as alone,
    ):
        said = list(corpus.messages(2_000, 0))
        times = take_turns(
            len(said),
            beside=lambda n: memory.messages.add_many(thread_id="t", messages=said[n : n + 1]),
            alone=lambda n: alone.messages.add_many(thread_id="t", messages=said[n : n + 1]),
        )
    report.add(
        "a write while vectors are made in the background, p50",
        f"{p50(times['beside']) * 1000:.2f} ms, alone {p50(times['alone']) * 1000:.2f}",
    )
    report.add(
        "a write while vectors are made in the background, p95",
        f"{p95(times['beside']) * 1000:.2f} ms, alone {p95(times['alone']) * 1000:.2f}",
    )


def _searched(path: Path, report: Report, size: int, dims: int) -> None:
    centers = np.random.default_rng(1).standard_normal((_CLUSTERS, dims)).astype(np.float32)
    with smara.open(path, durability="normal", embed_in_background=False) as memory:
        store = VectorStore(memory._rooms.database, memory._rooms.scope)
        _stock(store, size, dims, centers=centers)
        memory.internals.database.shrink_log()
        what = f"{size:,} vectors of {dims}"
        with memory._rooms.database.read() as session:
            space = store.spaces(session)[0]
            shelf = store.shelf(session, space.no, "message")
            questions = _drawn(np.random.default_rng(5), QUESTIONS, centers)
            finder = Nearest(memory._rooms.database)
            started = time.perf_counter()
            finder.find(session, shelf, questions[0], 50)
            report.add(
                f"{what}: the first question of a process",
                f"{(time.perf_counter() - started) * 1000:,.0f} ms",
            )
            report.add(
                f"{what}: bytes of memory each, by our count", f"{finder.bytes() / size:,.1f}"
            )
            whole = np.concatenate(
                [_part(size, dims, centers, start=start) for start in range(0, size, 50_000)]
            )
            # Not by turns: a matrix of a gigabyte leaves nothing of ours in the processor's cache.
            ours, ours_work = _timed(lambda n: finder.find(session, shelf, questions[n], 50))
            bare, bare_work = _timed(lambda n: np.argpartition(-(whole @ questions[n]), 50)[:50])
            recall = np.mean(
                [
                    len(
                        _ten(whole @ question)
                        & {(row >> 16) - 1 for row, _ in finder.find(session, shelf, question, 50)}
                    )
                    for question in questions
                ]
            )
    ratio = p50(ours_work) / p50(bare_work)
    report.figure(f"nearest {size} {dims}", ratio)
    report.add(
        f"{what}: of the ten nearest, found among fifty",
        f"{recall:.2f}",
        ">= 9.90",
        float(recall) >= 9.9,
    )
    limit = 60 if size <= 100_000 else 200
    report.add(
        f"{what}: nearest, p50 / p95 (bare numpy)",
        f"{p50(ours) * 1000:.1f} / {p95(ours) * 1000:.1f} ms ({p50(bare) * 1000:.1f} / "
        f"{p95(bare) * 1000:.1f})",
        f"p95 <= {limit} ms",
        p95(ours) * 1000 <= limit,
    )
    report.add(
        f"{what}: nearest, processor time",
        f"{p50(ours_work) * 1000:.1f} ms, bare numpy {p50(bare_work) * 1000:.1f} = {ratio:.2f}",
        "<= 1.00 of bare",
        ratio <= 1,
    )
    if sys.platform == "linux":
        resident = _resident(path, dims) / size
        report.add(f"{what}: bytes of memory each, by the system's count", f"{resident:,.0f}")


def _timed(find: Callable[[int], object]) -> tuple[list[float], list[float]]:
    """How long each question takes, by the clock and by the processor's; the machine may be busy
    with others.
    """
    find(0)
    clock, work = [], []
    for number in range(QUESTIONS):
        before = time.perf_counter(), time.process_time()
        find(number)
        clock.append(time.perf_counter() - before[0])
        work.append(time.process_time() - before[1])
    return clock, work


def _stock(store: VectorStore, size: int, dims: int, centers: np.ndarray) -> None:
    """Put synthetic vectors on the shelf of messages, as many to a transaction as an embedder
    would.
    """
    with store.database.write() as session:
        no = store.add_space(session, f"synthetic-{dims}", dims, embedder="offline", now_ms=1)
        store.begin(session, no, 1)
        shelf = store.shelf(session, no, "message")
    for start in range(0, size, 50_000):
        stored = encode(_part(size, dims, centers, start=start))
        for first in range(0, len(stored), 5_120):
            with store.database.write(is_derived=True) as session:
                numbers = range(
                    start + first + 1, start + first + 1 + len(stored[first : first + 5_120])
                )
                store.database.vectors.put(
                    session, shelf, {each: [stored[each - start - 1]] for each in numbers}
                )


def _part(size: int, dims: int, centers: np.ndarray, start: int) -> np.ndarray:
    """50,000 of the vectors, the same at every call."""
    return _drawn(np.random.default_rng((start, dims)), min(50_000, size - start), centers)


def _drawn(rng: np.random.Generator, count: int, centers: np.ndarray) -> np.ndarray:
    """Vectors around some of the centers, as far from them as texts on one subject are from each
    other.
    """
    drawn = centers[rng.integers(len(centers), size=count)]
    drawn = drawn + rng.standard_normal(drawn.shape).astype(np.float32)
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)  # type: ignore[no-any-return]


def _ten(scores: np.ndarray) -> set[int]:
    return set(np.argpartition(-scores, 10)[:10].tolist())


_SCRIPT = """
import os, sys
import numpy as np, smara
from smara.meaning.nearest import Nearest
from smara.meaning.store import VectorStore
memory = smara.open(sys.argv[1], embed_in_background=False)
store = VectorStore(memory._rooms.database, memory._rooms.scope)
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
with memory._rooms.database.read() as session:
    shelf = store.shelf(session, store.spaces(session)[0].no, "message")
    query = np.ones(int(sys.argv[2]), dtype=np.float32) / np.sqrt(np.float32(int(sys.argv[2])))
    np.ones(256) @ np.ones(256)
    before = resident()
    finder = Nearest(memory._rooms.database)
    finder.find(session, shelf, query, 50)
    print(resident() - before)
"""


def _resident(path: Path, dims: int) -> float:
    """How much larger a process is after its first question, the cache of the database's pages
    included.
    """
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(path), str(dims)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)
