"""Many processes and threads at once: no lock error comes through, no number is given twice, none
is left out.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest

import smara
from smara.core.clock import SystemClock
from smara.database.migrate import migrate, migrations
from smara.database.postgres import PostgresDatabase
from tests.faults import recount, workers
from tests.faults.conftest import Start
from tests.faults.sizes import count
from tests.faults.workers import READY, THREADS, text_of

PATIENCE_SECONDS = 20
"""A side of a fork that hangs is ended, so that it fails its test and not the run."""


def assert_exact(where: str, expected: set[str]) -> None:
    with smara.open(where) as memory:
        assert recount.contents(memory) == {each: text_of(each) for each in expected}
        assert memory.threads.totals()["messages"] == len(expected)
        assert recount.problems(memory) == []
        assert memory.warnings == []
        some = sorted(expected)[len(expected) // 2]
        assert f"handle_{some}(" in memory.search(f"handle_{some}", limit=1)[0].content


def write_at_once(start: Start, where: str, processes: int, each: int) -> set[str]:
    """Writers beside a reader and a process that checkpoints; the ids of what they wrote."""
    beside = [start(workers.search_until_told, where), start(workers.checkpoint_until_told, where)]
    writers = [start(workers.add_some, where, f"w{number}", each) for number in range(processes)]
    assert [writer.rest() for writer in writers] == [[READY, ("done", each)]] * processes
    for worker in beside:
        worker.pipe.send("stop")
        first, (outcome, _) = worker.rest()
        assert (first, outcome) == (READY, "done")
    return {f"w{number}n{place}" for number in range(processes) for place in range(each)}


def test_many_processes_append_to_the_same_threads(store: str, start: Start) -> None:
    smara.open(store).close()
    expected = write_at_once(start, store, count(4, 8), each=count(60, 500))
    assert_exact(store, expected)


def test_many_processes_append_to_the_same_threads_of_a_new_store(store: str, start: Start) -> None:
    """Nobody has made the file: all of them open it for the first time at once."""
    writers = [start(workers.add_some, store, f"w{number}", 10) for number in range(count(4, 8))]
    assert [writer.rest() for writer in writers] == [[READY, ("done", 10)]] * len(writers)
    assert_exact(
        store, {f"w{number}n{place}" for number in range(len(writers)) for place in range(10)}
    )


@pytest.mark.postgres
def test_many_processes_append_to_the_same_threads_on_postgres(
    postgres_url: str, start: Start
) -> None:
    smara.open(postgres_url).close()
    expected = write_at_once(start, postgres_url, count(3, 8), each=count(30, 500))
    assert_exact(postgres_url, expected)


@pytest.mark.postgres
def test_second_of_two_that_migrate_postgres_at_once_finds_everything_done(
    postgres_url: str,
) -> None:
    """1. One holds the lock. 2. The other saw an empty schema and waits. 3. The first is done; so
    is the second.
    """
    first, second = PostgresDatabase(postgres_url), PostgresDatabase(postgres_url)
    outcome: list[object] = []

    def migrate_second() -> None:
        try:
            outcome.append(migrate(second, SystemClock()))
        except Exception as error:
            outcome.append(repr(error))

    waiting = threading.Thread(target=migrate_second)
    with first.write() as session:
        session.run(first.lock_statement)
        waiting.start()
        while (
            session.one("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            is None
        ):
            os.sched_yield()
        session.run(
            "CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at BIGINT)"
        )
        for step in migrations("postgres"):
            session.run(step.sql)
            session.run(
                "INSERT INTO migrations (number, name, applied_at) VALUES (?, ?, 1)",
                (step.number, step.name),
            )
    waiting.join()
    first.close()
    second.close()
    assert outcome == [0]


@pytest.mark.postgres
def test_many_processes_open_a_new_postgres_schema_at_once(postgres_url: str, start: Start) -> None:
    writers = [start(workers.add_some, postgres_url, f"w{number}", 5) for number in range(4)]
    assert [writer.rest() for writer in writers] == [[READY, ("done", 5)]] * 4
    assert_exact(postgres_url, {f"w{number}n{place}" for number in range(4) for place in range(5)})


def add_from_threads(memory: smara.Memory, threads: int, each: int) -> tuple[set[str], list[str]]:
    errors: list[str] = []

    def work(name: str) -> None:
        try:
            for number in range(each):
                client_id = f"{name}n{number}"
                memory.messages.add(
                    thread_id=f"t{number % THREADS}",
                    role="user",
                    content=text_of(client_id),
                    client_id=client_id,
                )
                memory.search(f"handle_{client_id}", limit=1)
        except Exception as error:
            errors.append(repr(error))

    running = [threading.Thread(target=work, args=(f"s{number}",)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return {f"s{number}n{place}" for number in range(threads) for place in range(each)}, errors


def test_many_threads_of_one_process_share_one_memory(store: str) -> None:
    with smara.open(store) as memory:
        expected, errors = add_from_threads(memory, 6, count(25, 200))
    assert errors == []
    assert_exact(store, expected)


@pytest.mark.postgres
def test_many_threads_of_one_process_share_one_memory_on_postgres(postgres_url: str) -> None:
    with smara.open(postgres_url) as memory:
        expected, errors = add_from_threads(memory, 12, count(10, 100))
    assert errors == []
    assert_exact(postgres_url, expected)


def fork(child: Callable[[], None]) -> int:
    """Run ``child`` in a fork of this process; its number."""
    number = os.fork()
    if number:
        return number
    signal.alarm(PATIENCE_SECONDS)
    status = 1
    try:
        child()
        status = 0
    finally:
        os._exit(status)


class Relay:
    """Two processes taking turns: each waits for the other's word."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def say(self) -> None:
        os.write(self._write, b".")

    def hear(self) -> None:
        os.read(self._read, 1)


def add(memory: smara.Memory, *ids: str) -> None:
    for client_id in ids:
        memory.messages.add(
            thread_id="t", role="user", content=text_of(client_id), client_id=client_id
        )


def use_across_a_fork(pipe: Connection, where: str, parent_closes_first: bool) -> None:
    """A memory used before a fork and, on both sides, after it; reports what everybody wrote."""
    to_child, to_parent = Relay(), Relay()
    memory = smara.open(where)
    add(memory, "before")

    def child() -> None:
        add(memory, "child1")
        assert len(memory.search("handle_before", limit=1)) == 1
        to_parent.say()
        to_child.hear()
        add(memory, "child2", "child3")
        memory.close()

    number = fork(child)
    try:
        to_parent.hear()
        add(memory, "parent1")
        if parent_closes_first:
            memory.close()
        to_child.say()
        _, status = os.waitpid(number, 0)
        if not parent_closes_first:
            add(memory, "parent2")
            memory.close()
        pipe.send(os.waitstatus_to_exitcode(status))
    except Exception as error:
        os.kill(number, signal.SIGKILL)
        pipe.send(repr(error))


def assert_served_both_sides(start: Start, where: str, parent_closes_first: bool) -> None:
    assert start(use_across_a_fork, where, parent_closes_first).rest() == [0]
    written = {"before", "child1", "child2", "child3", "parent1"}
    assert_exact(where, written if parent_closes_first else written | {"parent2"})


def test_memory_opened_before_a_fork_serves_both_sides(store: str, start: Start) -> None:
    assert_served_both_sides(start, store, parent_closes_first=False)


def test_memory_closed_by_the_parent_of_a_fork_still_serves_the_child(
    store: str, start: Start
) -> None:
    assert_served_both_sides(start, store, parent_closes_first=True)


@pytest.mark.postgres
@pytest.mark.parametrize("parent_closes_first", [False, True])
def test_memory_on_postgres_opened_before_a_fork_serves_both_sides(
    postgres_url: str, start: Start, parent_closes_first: bool
) -> None:
    assert_served_both_sides(start, postgres_url, parent_closes_first)


def test_opening_a_store_twice_in_one_process_keeps_the_locks_of_the_first(
    store: str, start: Start
) -> None:
    """Another process that believes it is the last would take the write-ahead log away from under
    us.
    """
    with smara.open(store) as first:
        add(first, "one")
        with smara.open(store) as second:
            assert start(workers.add_some, store, "w0", 1).rest() == [READY, ("done", 1)]
            add(second, "two")
            add(first, "three")
            assert start(workers.add_some, store, "w1", 1).rest() == [READY, ("done", 1)]
            assert set(recount.contents(first)) == {"one", "two", "three", "w0n0", "w1n0"}
    assert_exact(store, {"one", "two", "three", "w0n0", "w1n0"})
