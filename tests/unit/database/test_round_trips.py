"""What is done every day asks PostgreSQL a bounded number of times.

Over a network each question costs a millisecond, whatever it reads. The driver waits once for each,
so its waits are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import smara

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def memory() -> Iterator[smara.Memory]:
    from tests.postgres import fresh_schema

    with fresh_schema() as url, _open(url) as memory:
        for number in range(30):
            text = f"word{number} of a talk about the uploader and its retries"
            memory.messages.add(thread_id=f"t{number % 3}", role="user", content=text)
            memory.tasks.add(f"Look at word{number}")
        yield memory


def _open(url: str) -> smara.Memory:
    """Open a memory that does nothing beside what is asked of it."""
    return smara.open(url, embedder="off", project="near", compact_every_messages=0)


def _batch(memory: smara.Memory) -> object:
    messages = [{"role": "user", "content": f"message {number}"} for number in range(200)]
    return memory.messages.add_many(thread_id="batch", messages=messages)


def _claim_and_release(memory: smara.Memory) -> None:
    task = memory.tasks.claim(memory.tasks.ready(limit=1)[0].id, session_id="s")
    memory.tasks.release(task.id, session_id="s")


EVERYDAY: dict[str, tuple[Callable[[smara.Memory], object], int]] = {
    "append": (lambda m: m.messages.add(thread_id="t", role="user", content="word77 new77"), 8),
    "append 200 at once": (_batch, 12),
    "the newest messages": (lambda m: m.messages.list(thread_id="t1", limit=20), 4),
    "search of a name": (lambda m: m.search("word12"), 24),
    "search of a question": (lambda m: m.search("which retries of the uploader was it"), 25),
    "add a task": (lambda m: m.tasks.add("Another"), 13),
    "ready": (lambda m: m.tasks.ready(), 9),
    "claim and release": (_claim_and_release, 44),
    "get of a task": (lambda m: m.tasks.get(m.tasks.list(limit=1)[0].id), 15),
    "start of a session": (lambda m: m.moments.start(session_id="s"), 70),
}
"""Calls, and how often each may wait for the server."""


@pytest.mark.parametrize("what", EVERYDAY)
def test_an_everyday_call_waits_for_the_server_only_so_often(memory, monkeypatch, what):
    import psycopg

    call, most = EVERYDAY[what]
    call(memory)  # what is prepared once is not the subject
    waits = []
    wait = psycopg.Connection.wait
    monkeypatch.setattr(
        psycopg.Connection, "wait", lambda self, *values: waits.append(1) or wait(self, *values)
    )
    call(memory)
    assert len(waits) <= most


def test_rare_words_of_what_goes_are_looked_for_together(monkeypatch):
    """A round of retention removes messages with thousands of words of their own."""
    import psycopg

    from tests.postgres import fresh_schema

    with fresh_schema() as url, _open(url) as memory:
        for number in range(4):
            text = " ".join(f"own{number}x{each}" for each in range(60))
            memory.messages.add(thread_id=f"t{number}", role="user", content=f"{text} shared")
        looks = []
        execute = psycopg.Connection.execute
        monkeypatch.setattr(
            psycopg.Connection,
            "execute",
            lambda self, sql, *values, **more: (
                looks.append(sql) if "terms @@" in str(sql) else None,
                execute(self, sql, *values, **more),
            )[1],
        )
        memory.privacy.erase(threads=["t0", "t1"])
        assert 0 < len(looks) <= 6
        with memory.internals.database.read() as session:
            left = {row[0] for row in session.all("SELECT word FROM words")}
        assert {"own2x1", "shared"} <= left
        assert not [word for word in left if word.startswith(("own0", "own1"))]
