"""What can only go wrong with several writers at once, and the index of the server: PostgreSQL
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

import smara
from smara.database.vectors import PostgresVectors
from smara.errors import BusyError
from smara.meaning.nearest import Nearest
from smara.testing import HashEmbedder
from tests.contract.embedding import Restless, near, shelf_of, texts, vectors, waiting
from tests.contract.test_meaning import fill, sentences

pytestmark = pytest.mark.postgres


@pytest.fixture
def memory(postgres_url: str) -> Iterator[Any]:
    with smara.open(postgres_url, embedding_model=HashEmbedder(), token_model="estimate") as memory:
        yield memory


@pytest.fixture
def pgvector(postgres_url: str) -> None:
    """The extension in the schema where everybody finds it."""
    url, _, _ = postgres_url.partition("&schema=")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7)")
        connection.execute("SET client_min_messages TO warning")
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")


def say(memory: Any, text: str, thread_id: str = "t") -> None:
    memory.messages.add(thread_id=thread_id, role="user", content=text)


def test_a_message_whose_transaction_ends_after_newer_ones_were_embedded_is_not_missed(
    memory: Any,
) -> None:
    say(memory, "the first")
    memory.embeddings.embed_pending()
    with memory._rooms.database.write() as slow:
        slow.run(
            "INSERT INTO messages (project_no, thread_no, seq, id, role, raw_content, "
            "token_count, token_method,"
            " term_count, created_at) SELECT project_no, thread_no, 99, 'late', role, 'the late "
            "one', 1, 'x', 1, 1"
            " FROM messages LIMIT 1"
        )
        say(memory, "the newer one", "other")
        assert memory.embeddings.embed_pending().embedded == 1
    assert memory.embeddings.embed_pending().embedded == 1
    assert len(vectors(memory)) == 3
    assert memory.embeddings.problems() == []


def test_a_message_that_is_committed_behind_the_walk_is_not_missed(memory: Any) -> None:
    say(memory, "the first")
    with memory._rooms.database.write() as slow:
        slow.run(
            "INSERT INTO messages (project_no, thread_no, seq, id, role, raw_content, "
            "token_count, token_method,"
            " term_count, created_at) SELECT project_no, thread_no, 99, 'late', role, 'the late "
            "one', 1, 'x', 1, 1"
            " FROM messages LIMIT 1"
        )
        say(memory, "the newer one", "other")
        with memory._rooms.database.write() as session:
            session.run("DELETE FROM embedding_queue")  # as in a store that is older than the queue
        assert memory.embeddings.embed_pending().embedded == 2
        assert memory.embeddings.status().spaces[0].space.state == "ready"
    assert memory.embeddings.embed_pending().embedded == 1
    assert memory.embeddings.problems() == []


def test_a_worker_does_not_wait_for_a_writer_that_holds_what_it_embeds(memory: Any) -> None:
    task = memory.tasks.add("old title")
    memory.tasks.add("another")
    with memory._rooms.database.write() as writer:
        writer.run("UPDATE tasks SET title = 'new title' WHERE id = ?", (task.id,))
        done = memory.embeddings.embed_pending(limit=2)
        assert done.stopped == "limit"
        assert len(waiting(memory)) == 1
    assert memory.embeddings.embed_pending().embedded == 1
    assert len(near(memory, "new", 1, kind="task")) == 1


@pytest.mark.parametrize("has_vectors", [False, True])
def test_a_worker_passes_over_what_somebody_is_removing_and_leaves_nothing_behind(
    memory: Any, has_vectors: bool
) -> None:
    for number in range(4):
        say(memory, f"message {number}")
    if has_vectors:
        memory.embeddings.embed_pending()
        memory.messages.extend(memory.messages.list(thread_id="t")[2].id, " and more")
    with memory._rooms.database.write() as writer:
        writer.run("DELETE FROM messages WHERE raw_content LIKE 'message 1%'")
        memory.embeddings.embed_pending(limit=3)
    assert memory.embeddings.embed_pending().is_done
    assert len(vectors(memory)) == 3
    assert memory.embeddings.problems() == []


def test_a_writer_that_comes_while_the_model_thinks_waits_for_nobody(postgres_url: str) -> None:
    embedder = Restless()
    with smara.open(postgres_url, embedding_model=embedder, busy_timeout_seconds=1) as memory:
        task = memory.tasks.add("a title")
        embedder.meanwhile = lambda: memory.tasks.update(task.id, title="b title")
        assert memory.embeddings.embed_pending().is_done
        assert texts(embedder) == ["task: a title", "task: b title"]


@pytest.mark.usefixtures("pgvector")
def test_the_index_of_the_server_finds_what_the_comparison_with_everything_finds(
    memory: Any,
) -> None:
    memory._rooms.database.vectors = PostgresVectors(indexed_from=100)
    fill(memory, sentences(400))
    questions = ("cat river", "wind", "door window tree")
    exact = {question: near(memory, question, 10) for question in questions}
    with memory._rooms.database.read() as session:
        assert memory._rooms.database.vectors._has_index(session, shelf_of(memory))
        shelf = shelf_of(memory)
        database = memory._rooms.database
        assert database.vectors.make_index(database, shelf, 64) is False
        assert (
            memory._rooms.database.vectors.nearest(session, shelf, np.ones(64, dtype=np.float32), 5)
            is not None
        )
    memory._rooms.meaning._nearest = Nearest(memory._rooms.database, exact_up_to=0)
    assert {question: near(memory, question, 10) for question in questions} == exact
    assert memory._rooms.meaning._nearest.bytes() == 0
    say(memory, "cat river cat river", "other")
    memory.embeddings.embed_pending()
    assert len(near(memory, "cat river", 1)) == 1
    assert near(memory, "cat river", 1)[0] == max(vectors(memory))


@pytest.mark.usefixtures("pgvector")
def test_an_index_whose_making_was_interrupted_is_made_again(memory: Any) -> None:
    memory._rooms.database.vectors = PostgresVectors(indexed_from=100)
    fill(memory, sentences(120))
    shelf = shelf_of(memory)
    with memory._rooms.database.write() as session:
        session.run(
            "UPDATE pg_index SET indisvalid = false"
            f" WHERE indexrelid = (current_schema() || '.vectors_near_{shelf.no}')::regclass"
        )
    assert memory._rooms.meaning is not None
    say(memory, "cat", "other")
    memory.embeddings.embed_pending()
    with memory._rooms.database.read() as session:
        assert memory._rooms.database.vectors._has_index(session, shelf)
        near_all = memory._rooms.database.vectors.nearest(
            session, shelf, np.ones(64, dtype=np.float32), 200
        )
    assert len(near_all) == 121


@pytest.mark.usefixtures("pgvector")
def test_an_index_is_not_waited_for_without_end(memory: Any) -> None:
    """A transaction that stays open is in the way of an index beside writers."""
    fill(memory, sentences(120))
    database, shelf = memory._rooms.database, shelf_of(memory)
    database.vectors = PostgresVectors(indexed_from=100)
    database._busy_ms = 200
    with database.write() as session:
        session.run("LOCK TABLE vectors IN ROW EXCLUSIVE MODE")
        with pytest.raises(BusyError):
            database.vectors.make_index(database, shelf, 64)
    with database.read() as session:
        assert session.one("SHOW lock_timeout") != ("200ms",)
    database._busy_ms = 60_000  # other tests of the server may be in the way for a moment
    assert database.vectors.make_index(database, shelf, 64)


@pytest.mark.usefixtures("pgvector")
def test_a_dropped_space_takes_its_index_with_it(memory: Any) -> None:
    memory._rooms.database.vectors = PostgresVectors(indexed_from=10)
    fill(memory, sentences(20))
    shelf = shelf_of(memory)
    memory.embeddings.drop("hash-64")
    with memory._rooms.database.read() as session:
        assert not memory._rooms.database.vectors._has_index(session, shelf)
