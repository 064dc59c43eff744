"""Processes that make vectors, and some that write or remove what they are made of."""

from __future__ import annotations

import os
import random
from multiprocessing.connection import Connection
from typing import Any

import smara
from smara.errors import DatabaseError
from smara.testing import HashEmbedder
from tests.faults.task_workers import at_once
from tests.faults.workers import READY, text_of, watched


def embed(pipe: Connection, path: str, kill_at: int | None = None) -> None:
    """Make vectors a few records at a time, and tell after each call how many have theirs."""
    pipe.send(READY)
    with smara.open(path, embedding_model=HashEmbedder(), vfs=watched(kill_at)) as memory:
        while True:
            done = memory.embeddings.embed_pending(limit=7)
            pipe.send(done.embedded)
            if done.stopped != "limit":
                return


def embed_until_none_wait(pipe: Connection, where: str, name: str, expected: int) -> None:
    """Make vectors, together with others, until so many are there; tell every text the model was
    asked for.
    """
    embedder = HashEmbedder()
    with at_once(pipe, where):
        memory = smara.open(where, durability="normal", embedding_model=embedder)
        while _there(memory) < expected:
            memory.embeddings.embed_pending(limit=11)
            os.sched_yield()
        memory.close()
        pipe.send(("done", [text for kind, text in embedder.asked if kind == "document"]))


def _there(memory: Any) -> int:
    """How many vectors there are."""
    return sum(each.total for each in memory.embeddings.status().spaces)


def write_some(pipe: Connection, where: str, name: str, count: int) -> None:
    """Append messages, change tasks and remove messages at random; nothing of it may fail because
    of vectors.
    """
    rng = random.Random(name)
    with at_once(pipe, where) as memory:
        task = memory.tasks.add(f"task of {name}")
        for number in range(count):
            memory.messages.add(thread_id=name, role="user", content=text_of(f"{name}n{number}"))
            if number % 3 == 0:
                memory.tasks.update(task.id, title=f"task of {name}, {number}")
            if number % 4 == 0:
                _remove(memory, name, rng)
        pipe.send(("done", count))


def _remove(memory: Any, thread_id: str, rng: random.Random) -> None:
    """Remove two messages of a thread for good, in one transaction, as an erasure will: the older
    one first.

    PostgreSQL locks a block of vectors with each; erasures in any order would wait for each other.
    """
    messages = memory.messages.list(thread_id=thread_id)
    chosen = sorted(rng.sample(messages, min(2, len(messages))), key=lambda message: message.seq)
    with memory._rooms.database.write() as session:
        for message in chosen:
            row = session.one("SELECT no FROM messages WHERE id = ?", (message.id,))
            memory._rooms.database.fulltext.remove(session, row[0])
            session.run("DELETE FROM messages WHERE no = ?", (row[0],))


def embed_until_told(pipe: Connection, where: str, name: str) -> None:
    """Make vectors without a pause until told to stop; another that is at it is an answer, not an
    error.
    """
    with at_once(pipe, where):
        memory = smara.open(where, durability="normal", embedding_model=HashEmbedder())
        troubles = 0
        while not pipe.poll():
            try:
                memory.embeddings.embed_pending(limit=20)
            except DatabaseError:  # a deadlock among workers: one of them is told to try again
                troubles += 1
        pipe.recv()
        memory.close()
        pipe.send(("done", troubles))
