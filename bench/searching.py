"""Searching at 10,000, 100,000 and 1,000,000 messages, against bare FTS5 over the same index.

First by words alone; then, from 100,000 on, by words and meaning over messages, tasks and memories
at once. The vectors of the first 100,000 are made by the default embedder, the others are drawn
around those.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import apsw
import numpy as np

import smara
from bench.corpus import Corpus, rare_name
from bench.measure import Report, p50, p95, take_turns
from smara.core.text import analyze
from smara.meaning.store import VectorStore

SIZES = (10_000, 100_000, 1_000_000)
EVERYTHING = {100_000: 60, 1_000_000: 200}
"""From which sizes on everything is searched, and how many milliseconds the 95th of a hundred may
take.
"""
NAMES = 200
OTHERS = 500
EMBEDDED = 100_000
QUESTIONS = 60
_BATCH = 500
_DRAWN = 5_120


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Grow one store from size to size and measure at each."""
    corpus = Corpus()
    path = folder / "search.db"
    size = 0
    with smara.open(path, durability="normal", compact_every_messages=0) as memory:
        for target in sizes:
            started = time.perf_counter()
            while size < target:
                memory.messages.add_many(
                    thread_id=f"thread-{size // 5_000}", messages=corpus.messages(_BATCH, size)
                )
                size += _BATCH
            rate = (target - (sizes[sizes.index(target) - 1] if target != sizes[0] else 0)) / (
                time.perf_counter() - started
            )
            memory.internals.database.shrink_log()
            report.add(f"{target:,} messages: added per second", f"{rate:,.0f}/s")
            report.add(f"{target:,} messages: bytes each", f"{os.stat(path).st_size / target:,.0f}")
            _names(memory, path, corpus, report=report, size=target)
            _questions(memory, path, corpus, report=report, size=target)
            if target in EVERYTHING:
                _everything(memory, path, corpus, report=report, size=target)


def _bare(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.execute("PRAGMA cache_size = -16384").fetchall()
    return connection


_BARE_SQL = (
    "SELECT m.id, m.raw_content, m.role, m.seq, m.created_at, t.id, bm25(message_index) AS score"
    " FROM message_index i JOIN messages m ON m.no = i.rowid >> 16 JOIN threads t ON t.no = "
    "m.thread_no"
    " WHERE message_index MATCH ? ORDER BY score LIMIT 10"
)


def _names(memory: smara.Memory, path: Path, corpus: Corpus, report: Report, size: int) -> None:
    rng = random.Random(size)
    names = [rare_name(50 * rng.randrange(size // 50), corpus.words) for _ in range(NAMES)]
    bare = _bare(path)
    wholes = ['"' + analyze(name).code.split(" ")[0] + '"' for name in names]
    for name, whole in zip(names[:20], wholes[:20], strict=True):
        if not memory.search(name) or not bare.execute(_BARE_SQL, (whole,)).fetchall():
            sys.exit(f"the benchmark is wrong: {name} is not found")
    times = take_turns(
        NAMES,
        bare=lambda n: bare.execute(_BARE_SQL, (wholes[n],)).fetchall(),
        ours=lambda n: memory.search(names[n]),
    )
    ratio = p50(times["ours"]) / p50(times["bare"])
    report.figure(f"name {size}", ratio)
    report.add(
        f"{size:,} messages: a rare name",
        f"{p50(times['ours']) * 1000:.2f} ms, bare {p50(times['bare']) * 1000:.2f} = {ratio:.2f}",
        "<= 2.00 of bare",
        ratio <= 2,
    )
    bare.close()


def _questions(memory: smara.Memory, path: Path, corpus: Corpus, report: Report, size: int) -> None:
    questions = corpus.questions(QUESTIONS)
    bare = _bare(path)

    def naive(number: int) -> None:
        terms = " OR ".join(
            f'"{term}"' for term in dict.fromkeys(analyze(questions[number]).prose.split(" "))
        )
        bare.execute(_BARE_SQL, (terms,)).fetchall()

    times = take_turns(
        QUESTIONS if size < 1_000_000 else 20,
        naive=naive,
        ours=lambda n: memory.search(questions[n]),
    )
    ratio = p95(times["ours"]) / p95(times["naive"])
    report.figure(f"question {size}", ratio)
    is_target = size >= 1_000_000
    report.add(
        f"{size:,} messages: eight-word question, p50 / p95",
        f"{p50(times['ours']) * 1000:.0f} / {p95(times['ours']) * 1000:.0f} ms, naive p95"
        f" {p95(times['naive']) * 1000:,.0f} = {ratio:.3f}",
        "<= 0.100 of naive" if is_target else "",
        ratio <= 0.1 if is_target else None,
    )
    bare.close()


def _everything(
    memory: smara.Memory, path: Path, corpus: Corpus, report: Report, size: int
) -> None:
    """Messages with vectors, and beside them tasks and memories: one question over all."""
    before = os.stat(path).st_size
    if not memory.memories.list(limit=1):
        for number in range(OTHERS):
            memory.tasks.add(" ".join(corpus.text(number).split()[:8]))
            memory.memories.remember(
                corpus.text(number), type="gotcha", files=(f"src/{number % 50}.py",)
            )
    if size > EMBEDDED:
        _draw_vectors(memory, EMBEDDED + 1, size)
    started = time.perf_counter()
    done = memory.embeddings.embed_pending()
    if size <= EMBEDDED:
        rate = done.embedded / (time.perf_counter() - started)
        report.add(f"{size:,} messages: embedded per second", f"{rate:,.0f}/s")
        taken = (os.stat(path).st_size - before) / done.embedded
        report.add(f"{size:,} messages: bytes each of vectors", f"{taken:,.0f}")
    memory.internals.database.shrink_log()
    questions, bare = corpus.questions(QUESTIONS), _bare(path)

    def naive(number: int) -> None:
        terms = " OR ".join(
            f'"{term}"' for term in dict.fromkeys(analyze(questions[number]).prose.split(" "))
        )
        bare.execute(_BARE_SQL, (terms,)).fetchall()

    if not memory.search(questions[0], deep=True).trace.used_meaning:
        sys.exit("the benchmark is wrong: nothing is searched by meaning")
    times = take_turns(
        QUESTIONS if size < 1_000_000 else 30,
        naive=naive,
        ours=lambda n: memory.search(questions[n]),
    )
    limit, found = EVERYTHING[size], p95(times["ours"]) * 1000
    report.figure(f"everything {size}", found)
    report.add(
        f"{size:,} messages: words and meaning over everything, p50 / p95",
        f"{p50(times['ours']) * 1000:.0f} / {found:.0f} ms, naive FTS5 "
        f"{p50(times['naive']) * 1000:.0f} /"
        f" {p95(times['naive']) * 1000:.0f}",
        f"p95 <= {limit} ms",
        found <= limit,
    )
    bare.close()


def _draw_vectors(memory: smara.Memory, first: int, last: int) -> None:
    """Give messages vectors near to those of others, as if they had been embedded."""
    store, rng = VectorStore(memory._rooms.database, memory._rooms.scope), np.random.default_rng(3)
    with memory._rooms.database.read() as session:
        shelf = store.shelf(session, store.spaces(session)[0].no, "message")
        codes = memory._rooms.database.vectors.scan(session, shelf)[1].astype(np.int16)
    for start in range(first, last + 1, _DRAWN):
        numbers = range(start, min(start + _DRAWN, last + 1))
        drawn = codes[rng.integers(len(codes), size=len(numbers))] + rng.integers(
            -24, 25, (len(numbers), codes.shape[1])
        )
        vectors = np.clip(drawn, -127, 127).astype(np.int8)
        with memory._rooms.database.write(is_derived=True) as session:
            put = {no: [row.tobytes()] for no, row in zip(numbers, vectors, strict=True)}
            memory._rooms.database.vectors.put(session, shelf, put)
            session.run(
                "DELETE FROM embedding_queue WHERE kind = 1 AND no BETWEEN ? AND ?",
                (numbers[0], numbers[-1]),
            )
