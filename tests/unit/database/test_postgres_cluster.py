"""A PostgreSQL that is restarted, out of connections, or has a replica."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier, Event

import pytest

import smara
from smara.config import Settings
from smara.database.postgres import PostgresDatabase
from smara.errors import BusyError, ConnectionLostError
from smara.fleet.cluster import examine_cluster
from tests import postgres
from tests.postgres_cluster import Cluster

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(postgres.missing() is not None, reason=str(postgres.missing())),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


def test_writers_go_on_through_a_restart_and_nothing_acknowledged_is_lost(cluster):
    stored: list[str] = []
    is_over, has_written = Event(), Event()
    opened = Barrier(3)

    def write(number: int) -> None:
        with smara.open(f"{cluster.url()}&schema=restart", token_model="estimate") as memory:
            opened.wait()  # who still opens the store when the server stops is told so
            for each in range(10_000):
                if is_over.is_set() and each % 5 == 0:
                    return
                try:
                    text = f"message {number} {each}"
                    memory.messages.add(thread_id=f"t{number}", role="user", content=text)
                except (BusyError, ConnectionLostError):
                    continue  # what may be tried again
                stored.append(text)
                has_written.set()

    with ThreadPoolExecutor(3) as threads:
        writers = [threads.submit(write, number) for number in range(3)]
        has_written.wait()
        cluster.stop()
        cluster.start()
        has_written.clear()
        assert has_written.wait(120)
        is_over.set()
        for writer in writers:
            writer.result()
    database = PostgresDatabase(f"{cluster.url()}&schema=restart")
    with database.read() as session:
        found = [row[0] for row in session.all("SELECT raw_content FROM messages")]
    database.close()
    assert set(stored) <= set(found)
    assert len(found) == len(set(found))


def test_a_server_that_is_gone_is_told_apart_from_one_that_is_busy(cluster, monkeypatch):
    database = PostgresDatabase(f"{cluster.url()}&schema=busy", busy_timeout_seconds=60)
    with monkeypatch.context() as patch:
        with ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(database.read())
            # Only now: a busy machine may take its time for each of the eight.
            patch.setattr(database._pool, "_timeout_seconds", 0.5)
            with pytest.raises(BusyError, match="at most 8"), database.read():
                pass
        cluster.stop()
        with (
            pytest.raises(ConnectionLostError, match="Check the server") as caught,
            database.read(),
        ):
            pass
    assert caught.value.is_retryable
    cluster.start()
    with database.read() as session:
        assert session.one("SELECT 1") == (1,)
    database.close()


def test_a_server_that_is_back_is_used_although_it_was_away_for_long(cluster, monkeypatch):
    """The pool pauses longer and longer between its tries: here as after minutes."""
    monkeypatch.setattr("psycopg_pool.base.AttemptWithBackoff.INITIAL_DELAY", 1_000.0)
    monkeypatch.setattr("smara.database.servers._RECONNECT_SECONDS", 0.5)
    database = PostgresDatabase(f"{cluster.url()}&schema=away", busy_timeout_seconds=60)
    with database.read():
        monkeypatch.setattr(database._pool, "_timeout_seconds", 0.2)
    cluster.stop()
    with pytest.raises(ConnectionLostError), database.read():
        pass
    cluster.start()
    monkeypatch.setattr(database._pool, "_timeout_seconds", 60)
    with database.read() as session:
        assert session.one("SELECT 1") == (1,)
    database.close()


def test_a_connection_that_takes_its_time_is_waited_for(cluster, monkeypatch):
    """A hook waits 0.2 s for others; a busy machine needs longer than that to connect."""
    monkeypatch.setattr("smara.database.postgres.FIRST_SECONDS", 120)
    slow = f"{cluster.url()}&schema=slow&options=-c%20post_auth_delay%3D1"
    database = PostgresDatabase(slow, busy_timeout_seconds=0.2)
    with database.read() as session:
        assert session.one("SELECT 1") == (1,)
    database.close()


def test_a_server_without_free_connections_is_busy(cluster):
    import psycopg

    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN CONNECTION LIMIT 0")
    with pytest.raises(BusyError, match="pooler"):
        PostgresDatabase(cluster.url().replace("smara@", "guest@"))


def test_searches_use_a_replica_only_while_it_has_the_writes_of_this_process(cluster, monkeypatch):
    import psycopg

    # A busy machine may not answer within a second: it is asked again at once.
    monkeypatch.setattr("smara.database.servers._ABSENT_SECONDS", 0.0)

    url = f"{cluster.url()}&schema=copied"
    smara.open(url, token_model="estimate").close()
    cluster.add_replica()
    replica = psycopg.connect(cluster.url("replica"), autocommit=True)

    def where(memory: smara.Memory) -> bool:
        with memory._rooms.database.read(deadline_seconds=60) as session:
            row = session.one("SELECT pg_is_in_recovery()")
            return bool(row and row[0])

    with (
        replica,
        smara.open(url, replica_url=cluster.url("replica"), token_model="estimate") as memory,
    ):
        replica.execute("SELECT pg_wal_replay_pause()")
        memory.messages.add(thread_id="t", role="user", content="the walrus sleeps")
        assert where(memory) is False
        assert [hit.content for hit in memory.search("walrus")] == ["the walrus sleeps"]
        replica.execute("SELECT pg_wal_replay_resume()")
        # The primary goes on writing by itself; a replica that never catches up fails here.
        assert any(where(memory) for _ in range(2_000))
        assert [hit.content for hit in memory.search("walrus")] == ["the walrus sleeps"]
        cluster.stop("replica")
        assert where(memory) is False
        assert [hit.content for hit in memory.search("walrus")] == ["the walrus sleeps"]


def test_the_doctor_tells_how_far_the_replica_is_and_that_it_is_one(cluster):
    url = f"{cluster.url()}&schema=copied"
    cluster.add_replica()  # the test before may have run in another process

    def told(replica_url: str) -> list[tuple[str, str]]:
        settings = Settings(db=url, replica_url=replica_url)
        return [
            (each.level, each.text) for each in examine_cluster(settings) if each.check == "replica"
        ]

    ((level, text),) = told(cluster.url("replica"))
    assert (level, text.endswith("KiB behind.")) == ("ok", True)
    assert told(url) == [("problem", "replica_url leads to a primary.")]
    ((level, text),) = told(f"{cluster.url()}-nowhere")
    assert (level, text.startswith("It does not answer:")) == ("warning", True)


def test_the_doctor_counts_the_connections_of_all_also_for_a_plain_role(cluster):
    """The statistics of others are NULL for it: 82 connections must not look like two."""
    import psycopg

    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE plain LOGIN NOSUPERUSER")
        connection.execute("CREATE DATABASE plain OWNER plain")
    owned = cluster.url().replace("/postgres?", "/plain?")
    settings = Settings(db=f"{owned.replace('smara@', 'plain@')}")

    def told() -> dict[str, tuple[str, str]]:
        return {each.check: (each.level, each.text) for each in examine_cluster(settings)}

    smara.open(settings.db, token_model="estimate").close()
    assert told()["server"][0] == "ok"
    assert "transactions" not in told()
    with ExitStack() as stack:
        for each in range(82):
            url = owned if each < 3 else cluster.url()
            stack.enter_context(psycopg.connect(url)).execute("SELECT 1")
        server, transactions = told()["server"], told()["transactions"]
        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute("GRANT pg_read_all_stats TO plain")
        assert "transactions" not in told()
    used = int(server[1].split(", ")[1].split(" of ")[0])
    assert (server[0], used >= 83) == ("warning", True)
    assert transactions[0] == "ok"
    assert transactions[1].startswith("Not checked in 3 sessions of other roles")


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """One whose servers change their parts: tests may run in any order."""
    with Cluster() as made:
        yield made


def test_a_promoted_replica_is_found_by_the_url_and_has_what_was_acknowledged(own_cluster):
    """1. A store is reached by a URL that names both servers. 2. The primary stops; the replica is
    promoted. 3. The same open memory reads what it wrote and writes on.
    """
    cluster = own_cluster
    import psycopg

    cluster.add_replica()
    second = cluster.url("replica").partition("host=")[2]
    both = f"{cluster.url()},{second}&target_session_attrs=read-write&schema=copied"
    with smara.open(both, token_model="estimate") as memory:
        memory.messages.add(thread_id="moved", role="user", content="before")
        cluster.stop()  # in order: the replica gets what was written
        with psycopg.connect(cluster.url("replica"), autocommit=True) as replica:
            # One that waits has a snapshot, with which it may keep the replica from what is left.
            replica.execute("SELECT pg_promote(wait => false)")
            while replica.execute("SELECT 1 WHERE pg_is_in_recovery()").fetchone():
                pass
        memory.messages.add(thread_id="moved", role="user", content="after")
        listed = [each.content for each in memory.messages.list(thread_id="moved")]
    assert listed == ["before", "after"]
