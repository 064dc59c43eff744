"""PostgreSQL behind PgBouncer in transaction mode, where the next transaction of a client is on
whichever connection of the server is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain

import pytest

import smara
from smara.database.postgres import PostgresDatabase
from smara.database.servers import split_schema
from smara.errors import BusyError
from tests import postgres

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(postgres.pooler() is None, reason="pgbouncer is not installed"),
]


@pytest.fixture
def pooled_url(postgres_url: str) -> str:
    """An empty schema, reached through two connections that everybody shares."""
    return postgres.pooled(postgres_url, postgres.NARROW)


@pytest.fixture
def teams() -> Iterator[list[str]]:
    """Two schemas behind the same two connections."""
    with ExitStack() as stack:
        yield [
            postgres.pooled(stack.enter_context(postgres.fresh_schema()), postgres.NARROW)
            for _ in range(2)
        ]


def test_many_clients_write_and_search_behind_a_pooler(pooled_url):
    def write(number: int) -> int:
        with smara.open(pooled_url, project="x", token_model="estimate") as memory:
            for each in range(8):
                memory.messages.add(
                    thread_id=f"t{number}", role="user", content=f"webhook {number} {each}"
                )
                assert memory.search("webhook", limit=3)
            memory.tasks.add(f"task {number}")
            return len(memory.messages.list(thread_id=f"t{number}"))

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(write, range(6))) == [8] * 6


def test_opening_through_a_pooler_leaves_nothing_that_others_wait_for(postgres_url, pooled_url):
    import psycopg

    with smara.open(pooled_url, project="x"):
        pass
    with psycopg.connect(split_schema(postgres_url)[0]) as connection:
        locks = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert locks.fetchone() == (0,)
    with smara.open(postgres_url, project="x", busy_timeout_seconds=1) as memory:
        assert memory.messages.list(thread_id="t") == []


def test_opening_gives_up_when_another_process_holds_the_schema(postgres_url):
    import psycopg

    conninfo, schema = split_schema(postgres_url)
    with psycopg.connect(conninfo) as other:
        other.execute("SELECT pg_advisory_xact_lock(1397571922, hashtext(%s))", (schema,))
        with pytest.raises(BusyError, match="Try again"):
            PostgresDatabase(postgres_url, busy_timeout_seconds=0.05)


def test_no_row_of_one_team_is_met_by_another_behind_one_pooler(teams):
    """Marked rows of two schemas, written and read in turns by many threads at once."""
    memories = [smara.open(url, project="x", token_model="estimate") for url in teams]

    def work(number: int) -> list[str]:
        team = number % 2
        memory, seen = memories[team], []
        for each in range(10):
            thread = f"t{number}"
            memory.messages.add(thread_id=thread, role="user", content=f"mark{team} walrus {each}")
            hits = memory.search("walrus", limit=5)
            seen += [hit.content for hit in hits]
            seen += [each.content for each in memory.messages.list(thread_id=thread)]
        return [text for text in seen if f"mark{1 - team}" in text]

    try:
        with ThreadPoolExecutor(8) as threads:
            assert list(chain.from_iterable(threads.map(work, range(8)))) == []
        for memory in memories:
            with memory._rooms.database.read() as session:
                assert session.one("SELECT count(*) FROM messages") == (40,)
    finally:
        for memory in memories:
            memory.close()


def test_no_setting_of_a_session_stays_on_a_connection_of_the_pooler(pooled_url):
    import psycopg

    settings = "search_path", "statement_timeout", "lock_timeout", "synchronous_commit"
    with psycopg.connect(split_schema(pooled_url)[0], autocommit=True) as other:
        other.prepare_threshold = None
        before = [other.execute(f"SHOW {each}").fetchone() for each in settings]
        with smara.open(pooled_url, durability="normal", token_model="estimate") as memory:
            memory.messages.add(thread_id="t", role="user", content="the walrus sleeps")
            memory.search("walrus")
            with memory._rooms.database.read(deadline_seconds=3) as session:
                session.one("SELECT 1")
            for _ in range(4):  # whichever of the two connections is free
                assert [other.execute(f"SHOW {each}").fetchone() for each in settings] == before


def test_statements_are_prepared_without_a_pooler_and_not_behind_one(postgres_url, pooled_url):
    for url, is_prepared in ((postgres_url, True), (pooled_url, False)):
        database = PostgresDatabase(url)
        with database.read() as session:
            assert (session.connection.prepare_threshold is not None) == is_prepared
        database.close()
