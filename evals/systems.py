"""The systems under comparison: Smara through its public door, and the plain baselines.

A system is built over the threads of one haystack and then answers questions with
ranked keys. Smara is used as anybody would use it: ``smara.open``, ``add_many``,
``search`` and ``search_threads``, with default settings and nothing said about the set.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import smara
from evals.baselines import BASELINES, Documents, fts5
from evals.data import Level, Thread

Ranker = Callable[[str, int], list[str]]
System = Callable[[Sequence[Thread], Level], "contextmanager_of_ranker"]
contextmanager_of_ranker = object


@contextmanager
def smara_ranker(threads: Sequence[Thread], level: Level, url: str | None = None) -> Iterator[Ranker]:
    """Smara over a fresh store. ``url`` names an empty PostgreSQL database instead of a file."""
    with tempfile.TemporaryDirectory(prefix="smara-eval-") as folder, smara.open(url or Path(folder) / "eval.db") as memory:
        for thread in threads:
            memory.messages.add_many(
                thread_id=thread.key,
                messages=[
                    {"role": turn.role, "content": turn.text, "client_id": turn.key, "created_at": thread.started_at}
                    for turn in thread.turns
                ],
            )

        def rank(question: str, limit: int) -> list[str]:
            if level == "thread":
                return [hit.thread_id for hit in memory.search_threads(question, limit=limit)]
            return [hit.client_id or "" for hit in memory.search(question, limit=limit)]

        yield rank
