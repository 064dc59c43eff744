"""Several processes migrate at once, and one is killed in the middle: nothing is ever half done."""

from __future__ import annotations

import multiprocessing
import os

import smara
from smara.database.migrate import HEAD, schema_version
from tests.migrations.dump import schema_of
from tests.migrations.workers import die_at_statement, migrate_at_once

FORKED = multiprocessing.get_context("forkserver")
LARGE = os.environ.get("SMARA_FAULTS") == "large"


def test_processes_that_migrate_at_once_take_turns(address, open_database):
    count = 4 if LARGE else 3
    barrier, answers = FORKED.Barrier(count), FORKED.Queue()
    workers = [
        FORKED.Process(target=migrate_at_once, args=(address, barrier, answers))
        for _ in range(count)
    ]
    for worker in workers:
        worker.start()
    found = sorted((answers.get(timeout=600) for _ in workers), key=str)
    for worker in workers:
        worker.join(600)
    answers.close()
    answers.join_thread()
    assert found == [0] * (count - 1) + [HEAD]


def test_a_migration_killed_at_any_statement_leaves_nothing_half_done(address, open_database):
    """1. A process is killed before its n-th statement. 2. Nothing of it is seen. 3. The next one
    migrates whole.
    """
    for number in range(64) if LARGE else (1, 4, 9):
        worker = FORKED.Process(target=die_at_statement, args=(address, number))
        worker.start()
        worker.join(600)
        if worker.exitcode == 0:
            break
        database = open_database(address)
        with database.read() as session:
            assert schema_version(database, session) == 0
        assert "threads" not in repr(schema_of(database))
        database.close()
    with smara.open(address) as memory:
        memory.messages.add(thread_id="t", role="user", content="the walrus")
        assert len(memory.search("walrus")) == 1
