"""Appending, against a bare apsw insert of the same rows with the same tokenizer."""

from __future__ import annotations

import time
from pathlib import Path

import apsw

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, take_turns
from smara.core.clock import SystemClock
from smara.core.ids import Uuid7
from smara.core.text import analyze
from smara.database.migrate import migrate
from smara.database.sqlite import SqliteDatabase
from smara.secrets import redact

WARM_UP = 3_000
ROUNDS = 30
SINGLES = 60


class Bare:
    """The same two tables, written with nothing but apsw and our analysis."""

    def __init__(self, path: Path) -> None:
        database = SqliteDatabase(path)
        migrate(database, SystemClock())
        database.close()
        self._connection = apsw.Connection(str(path))
        self._connection.execute(
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16384"
        ).fetchall()
        self._connection.execute("INSERT INTO projects VALUES (1, 'p', 'p', NULL, NULL, NULL, 0)")
        self._connection.execute(
            "INSERT INTO threads (no, project_no, id, resource_id, kind, metadata, created_at, "
            "updated_at)"
            " VALUES (1, 1, 't', 'r', 'conversation', '{}', 0, 0)"
        )
        self._new_id = Uuid7()
        self._no = 0

    def add_many(self, texts: list[dict[str, str]]) -> None:
        rows, index = [], []
        for message in texts:
            self._no += 1
            terms = analyze(message["content"])
            rows.append(
                (
                    self._no,
                    1,
                    1,
                    self._no,
                    self._new_id(),
                    message["role"],
                    message["content"],
                    60,
                    "none",
                    terms.length,
                    0,
                )
            )
            index.append((self._no << 16, terms.prose, terms.code, "^p1 ^t1 ^ruser ^u0"))
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            "INSERT INTO messages (no, project_no, thread_no, seq, id, role, raw_content, "
            "token_count, token_method,"
            " term_count, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        self._connection.executemany(
            "INSERT INTO message_index (rowid, prose, code, scope) VALUES (?, ?, ?, ?)", index
        )
        self._connection.execute("COMMIT")


def run(folder: Path, report: Report) -> None:
    """Batches of 100, then one at a time; durable, both."""
    corpus = Corpus()
    bare = Bare(folder / "bare.db")
    with smara.open(folder / "ours.db") as memory:
        warm = list(corpus.messages(WARM_UP))
        bare.add_many(warm)
        memory.messages.add_many(thread_id="warm", messages=warm)
        batches = [list(corpus.messages(100, WARM_UP + 100 * n)) for n in range(ROUNDS)]
        times = take_turns(
            ROUNDS,
            bare=lambda n: bare.add_many(batches[n]),
            ours=lambda n: memory.messages.add_many(thread_id=f"thread-{n}", messages=batches[n]),
        )
        _tell(report, "batches of 100", 100, times=times)
        singles = list(corpus.messages(SINGLES * 10, 1_000_000))
        times = take_turns(
            SINGLES,
            bare=lambda n: [bare.add_many([one]) for one in singles[n * 10 : n * 10 + 10]],
            ours=lambda n: [
                memory.messages.add(thread_id=f"one-{n}", **one)
                for one in singles[n * 10 : n * 10 + 10]
            ],
        )
        _tell(report, "one at a time", 10, times=times)
        _secrets(report, singles, p50(times["ours"]) / 10)


def _tell(report: Report, what: str, per_round: int, times: dict[str, list[float]]) -> None:
    bare, ours = per_round / p50(times["bare"]), per_round / p50(times["ours"])
    ratio = ours / bare
    report.figure(f"append {what}", ratio)
    report.add(
        f"append, durable, {what}",
        f"{ours:,.0f}/s, bare {bare:,.0f}/s = {ratio:.2f}",
        ">= 0.50 of bare",
        ratio >= 0.5,
    )


def _secrets(report: Report, messages: list[dict[str, str]], append_seconds: float) -> None:
    started = time.perf_counter()
    for message in messages:
        redact(message["content"])
    share = (time.perf_counter() - started) / len(messages) / append_seconds
    report.add("redaction, share of a single append", f"{share:.1%}", "<= 20%", share <= 0.2)
