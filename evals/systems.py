"""The systems under comparison: Smara through its public door, and the plain baselines.

A system is built over the threads of one haystack and then answers questions with
ranked keys. Smara is used as anybody would use it: ``smara.open``, ``add_many``,
``search`` and ``search_threads``, with default settings and nothing said about the set.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import smara
from evals.baselines import BASELINES, Documents, Ranker, fts5
from evals.data import Level, Thread


@dataclass(frozen=True, slots=True)
class System:
    """A name for the table, and how to open the system over a haystack."""

    name: str
    open: Callable[[Sequence[Thread]], AbstractContextManager[Ranker]]


def systems_for(level: Level, postgres_url: str | None = None) -> list[System]:
    """The baselines of a level, then Smara on SQLite and, where there is one, on PostgreSQL."""
    found = [System(name, _opener(make)) for name, make in BASELINES[level]]
    found.append(System("Smara", lambda threads: smara_ranker(threads, level)))
    if postgres_url is not None:
        found.append(System("Smara, PostgreSQL", lambda threads: smara_ranker(threads, level, postgres_url)))
    return found


def _opener(
    make: Callable[[Sequence[Thread]], Documents],
) -> Callable[[Sequence[Thread]], AbstractContextManager[Ranker]]:
    @contextmanager
    def opened(threads: Sequence[Thread]) -> Iterator[Ranker]:
        yield fts5(make(threads))

    return opened


@contextmanager
def smara_ranker(threads: Sequence[Thread], level: Level, url: str | None = None) -> Iterator[Ranker]:
    """Smara over a fresh file, or in a project of its own in the PostgreSQL database at ``url``."""
    with (
        tempfile.TemporaryDirectory(prefix="smara-eval-") as folder,
        smara.open(url or Path(folder) / "eval.db", project=uuid.uuid4().hex, durability="normal") as memory,
    ):
        for thread in threads:
            memory.messages.add_many(thread_id=thread.key, messages=_messages(thread))

        def rank(question: str, limit: int) -> list[str]:
            if level == "thread":
                return [hit.thread_id for hit in memory.search_threads(question, limit=limit)]
            return [hit.client_id or "" for hit in memory.search(question, limit=limit)]

        yield rank


def _messages(thread: Thread) -> list[dict[str, object]]:
    return [
        {"role": turn.role, "content": turn.text, "client_id": turn.key, "created_at": thread.started_at}
        for turn in thread.turns
    ]
