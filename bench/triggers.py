"""The cost of a fleet's triggers to one write: round trips and processor time of the server.

Two stores of one server, one with the queue of a fleet and no workers; both take turns. PostgreSQL
is that of SMARA_EVAL_POSTGRES: ``python -m tests.with_postgres python -m bench triggers``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psycopg

import smara
from bench.corpus import Corpus
from bench.measure import Report
from bench.tenants import server_seconds
from smara.fleet.queue import JobQueue

ROUNDS = 200
_BATCH = 100
_BATCHES = 20


def run(folder: Path, report: Report) -> None:
    """Write the same to both stores in turns."""
    url = os.environ.get("SMARA_EVAL_POSTGRES")
    if url is None:
        print("needs PostgreSQL: python -m tests.with_postgres python -m bench triggers")
        return
    stores = {
        name: smara.open(f"{url}_{name}", project="p", compact_every_messages=0)
        for name in ("bare", "fleet")
    }
    try:
        JobQueue(stores["fleet"]).install()
        corpus = Corpus(3)
        text = corpus.text(1)
        writes: tuple[tuple[str, int, Callable[[smara.Memory, int], object]], ...] = (
            (
                "one message",
                ROUNDS,
                lambda memory, number: memory.messages.add(
                    thread_id=f"t{number % 5}", role="user", content=text
                ),
            ),
            (
                f"a batch of {_BATCH} messages",
                _BATCHES,
                lambda memory, number: memory.messages.add_many(
                    thread_id=f"b{number}", messages=Corpus(number).messages(_BATCH)
                ),
            ),
            ("one task", ROUNDS, lambda memory, number: memory.tasks.add(f"Look at {number}")),
        )
        for what, rounds, write in writes:
            _compare(stores, report, what, rounds=rounds, write=write)
    finally:
        for store in stores.values():
            store.close()


def _compare(
    stores: dict[str, smara.Memory],
    report: Report,
    what: str,
    rounds: int,
    write: Callable[[smara.Memory, int], object],
) -> None:
    spent, waits = dict.fromkeys(stores, 0.0), dict.fromkeys(stores, 0)
    original = psycopg.Connection.wait
    for number in range(rounds + 5):
        for name, store in stores.items():

            def wait(self: object, *values: object, name: str = name, **more: object) -> object:
                waits[name] += 1
                return original(self, *values, **more)  # type: ignore[arg-type]

            if number >= 5:  # what is prepared once is not the subject
                psycopg.Connection.wait = wait  # type: ignore[method-assign, assignment]
            before = server_seconds(store)
            write(store, number)
            if number >= 5:
                spent[name] += server_seconds(store) - before
            psycopg.Connection.wait = original  # type: ignore[method-assign]
    figures = {name: seconds / rounds * 1000 for name, seconds in spent.items()}
    report.figure(f"fleet triggers {what}", figures["fleet"] / figures["bare"])
    report.add(
        f"{what}: server processor time without / with a fleet",
        f"{figures['bare']:.2f} / {figures['fleet']:.2f} ms",
    )
    report.add(
        f"{what}: round trips without / with a fleet",
        f"{waits['bare'] / rounds:.1f} / {waits['fleet'] / rounds:.1f}",
        "equal",
        waits["bare"] == waits["fleet"],
    )
