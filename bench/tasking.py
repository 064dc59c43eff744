"""Tasks at 1,000, 20,000 and 100,000 with three dependencies each, against the bare SQL on the same
file.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95, take_turns
from smara.tasks.models import NewTask

SIZES = (1_000, 20_000, 100_000)
ROUNDS = 200
_TARGET_SIZE = 20_000
_LIMIT_MS = 10.0
_CLOSED_SHARE = 0.5


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Measure each verb at each size, each in a store of its own."""
    found: dict[str, list[float]] = {}
    for size in sizes:
        path = folder / f"tasks-{size}.db"
        with smara.open(path, durability="normal") as memory:
            started = time.perf_counter()
            imported = memory.tasks.put_many(tasks(size))
            if imported.refused or imported.added != size:
                sys.exit(f"the benchmark is wrong: {imported}")
            rate = size / (time.perf_counter() - started)
            report.add(
                f"{size:,} tasks with {imported.dependencies:,} dependencies: imported",
                f"{rate:,.0f}/s",
            )
            memory.internals.database.shrink_log()
            for verb, value in _verbs(memory, path, size, report=report).items():
                found.setdefault(verb, []).append(value)
    for verb, values in found.items():
        growth = values[-1] / values[0]
        report.figure(f"tasks {verb} growth", growth)
        report.add(f"tasks: {verb}, p50 from {sizes[0]:,} to {sizes[-1]:,}", f"× {growth:.1f}")


def tasks(size: int) -> Iterator[NewTask]:
    """Half of them closed, the older the likelier; each needs up to three older ones, near it or
    anywhere.
    """
    corpus, rng = Corpus(), random.Random(size)
    for number in range(size):
        needs: dict[str, str] = {}
        while number >= 3 and len(needs) < 3:
            other = (
                rng.randrange(max(0, number - 50), number)
                if rng.random() < 0.8
                else rng.randrange(number)
            )
            needs.setdefault(
                f"b-{other}", rng.choices(("blocks", "parent-child", "related"), (8, 0, 2))[0]
            )
        is_closed = rng.random() < _CLOSED_SHARE * 2 * (1 - number / size)
        words = corpus.text(number).split()
        yield NewTask(
            " ".join(words[:8])[:200],
            short_id=f"b-{number}",
            description=" ".join(words),
            status="closed" if is_closed else "open",
            priority=rng.randrange(5),
            created_at=1_700_000_000_000 + number,
            close_reason="completed" if is_closed else None,
            labels=(f"area{number % 40}",),
            depends_on=list(needs.items()),  # type: ignore[arg-type]  # the choices above are the types
        )


_WAITS = (
    "EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks b ON b.no = d.depends_on_no AND "
    "b.status <> 'closed'"
    " WHERE d.task_no = t.no AND d.type = 'blocks') OR EXISTS (SELECT 1 FROM task_dependencies d"
    " JOIN tasks b ON b.no = d.task_no AND b.status <> 'closed'"
    " WHERE d.depends_on_no = t.no AND d.type = 'parent-child')"
)
_BARE_READY = (
    f"SELECT * FROM tasks t WHERE t.project_no = 1 AND t.status = 'open' AND NOT ({_WAITS})"
    " ORDER BY t.priority, t.created_at, t.no LIMIT 5"
)
_BARE_COUNT = (
    f"SELECT sum(NOT ({_WAITS}) AND status = 'open'), sum({_WAITS}) FROM tasks t"
    " WHERE t.project_no = 1 AND t.status <> 'closed'"
)
_BARE_LIST = (
    "SELECT * FROM tasks t WHERE t.project_no = 1 AND t.status = 'open'"
    " ORDER BY t.priority, t.created_at, t.no LIMIT 50"
)
_BARE_SEARCH = (
    "SELECT t.*, bm25(record_index, 3.0) AS score FROM record_index i JOIN tasks t ON t.no = "
    "i.rowid >> 16"
    " WHERE record_index MATCH ? ORDER BY score LIMIT 3"
)


def _verbs(memory: smara.Memory, path: Path, size: int, report: Report) -> dict[str, float]:
    bare = apsw.Connection(str(path))
    bare.execute("PRAGMA synchronous = NORMAL").fetchall()
    corpus = Corpus()
    queries = [" ".join(corpus.text(50 * number).split()[2:5]) for number in range(ROUNDS)]
    terms = [
        " OR ".join(f'"{word}"' for word in query.split() if word.isalpha()) or '"none"'
        for query in queries
    ]
    claimed: list[str] = []

    def claim(number: int) -> None:
        task = memory.tasks.claim(memory.tasks.ready(limit=1)[0].id, session_id=f"s{number}")
        claimed.append(task.id)

    def bare_claim(number: int) -> None:
        row = bare.execute(_BARE_READY.replace("LIMIT 5", "LIMIT 1")).fetchone()
        bare.execute(
            "BEGIN IMMEDIATE; UPDATE tasks SET status = 'in_progress' WHERE no = ? AND status = "
            "'open'; COMMIT",
            (row[0],),
        )
        bare.execute("UPDATE tasks SET status = 'open' WHERE no = ?", (row[0],))

    def release(number: int) -> None:
        memory.tasks.release(claimed[-1], session_id=f"s{number}")

    times = take_turns(
        ROUNDS,
        ready=lambda n: memory.tasks.ready(),
        bare_ready=lambda n: (
            bare.execute(_BARE_READY).fetchall(),
            n % 10 or bare.execute(_BARE_COUNT).fetchall(),
        ),
        list=lambda n: memory.tasks.list(status="open"),
        bare_list=lambda n: bare.execute(_BARE_LIST).fetchall(),
        search=lambda n: memory.search_tasks(queries[n]),
        bare_search=lambda n: bare.execute(_BARE_SEARCH, (terms[n],)).fetchall(),
    )
    times |= take_turns(ROUNDS, claim=claim, release=release, bare_claim=bare_claim)
    bare.close()
    if len(claimed) != ROUNDS:
        sys.exit("the benchmark is wrong: not every claim was made")
    found = {}
    for verb in ("ready", "claim", "list", "search"):
        ours, plain = times[verb], times[f"bare_{verb}"]
        found[verb] = p50(ours)
        ratio = p50(ours) / p50(plain)
        report.figure(f"tasks {verb} {size}", p95(ours) * 1000)
        is_target = size == _TARGET_SIZE
        report.add(
            f"{size:,} tasks: {verb}, p50 / p95",
            f"{p50(ours) * 1000:.2f} / {p95(ours) * 1000:.2f} ms, bare {p50(plain) * 1000:.2f} = "
            f"{ratio:.2f}",
            f"p95 < {_LIMIT_MS:.0f} ms" if is_target else "",
            p95(ours) * 1000 < _LIMIT_MS if is_target else None,
        )
    return found
