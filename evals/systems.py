"""The systems under comparison: Smara through its public door, and the plain baselines.

A system is built over the threads of one haystack and then answers questions with
ranked keys. Smara is used as anybody would use it: ``smara.open``, ``add_many``,
``search`` and ``search_threads``, with default settings and nothing said about the set.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import smara
from evals.baselines import BASELINES, Documents, Ranker, fts5
from evals.data import Level, Question, Thread
from evals.hybrids import Combine, half_and_half, hybrid, meaning_alone, reciprocal_ranks


@dataclass(frozen=True, slots=True)
class System:
    """A name for the table, and how to open the system over a haystack."""

    name: str
    open: Callable[[Sequence[Thread]], AbstractContextManager[Ranker]]


def systems_for(level: Level, postgres_url: str | None = None) -> list[System]:
    """The baselines of a level, then Smara on SQLite and, where there is one, on PostgreSQL."""
    found = [System(name, _opener(make)) for name, make in BASELINES[level]]
    found.append(
        System("meaning alone, best turn", lambda threads: _plain(threads, level, meaning_alone))
    )
    found.append(
        System("plain hybrid, RRF 60", lambda threads: _plain(threads, level, reciprocal_ranks))
    )
    found.append(
        System("plain hybrid, half and half", lambda threads: _plain(threads, level, half_and_half))
    )
    found.append(
        System("Smara, words alone", lambda threads: smara_ranker(threads, level, embedder="off"))
    )
    found.append(System("Smara", lambda threads: smara_ranker(threads, level)))
    found.append(
        System("Smara, vectors only", lambda threads: smara_ranker(threads, level, keep="vectors"))
    )
    if postgres_url is not None:
        found.append(
            System("Smara, PostgreSQL", lambda threads: smara_ranker(threads, level, postgres_url))
        )
    return found


def _plain(
    threads: Sequence[Thread], level: Level, combine: Combine
) -> AbstractContextManager[Ranker]:
    return nullcontext(hybrid(threads, level, combine))


def _opener(
    make: Callable[[Sequence[Thread]], Documents],
) -> Callable[[Sequence[Thread]], AbstractContextManager[Ranker]]:
    @contextmanager
    def opened(threads: Sequence[Thread]) -> Iterator[Ranker]:
        yield fts5(make(threads))

    return opened


class AskedClock:
    """The machine's clock, but for the day on which a question is asked."""

    asked_at: int | None = None

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 if self.asked_at is None else self.asked_at

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float, until: threading.Event | None = None) -> None:
        (until or threading.Event()).wait(seconds)

    def wait_for(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)


@contextmanager
def smara_ranker(
    threads: Sequence[Thread],
    level: Level,
    url: str | None = None,
    embedder: str = "offline",
    keep: str = "text",
) -> Iterator[Ranker]:
    """Smara over a fresh file, or in a project of its own in the PostgreSQL database at ``url``."""
    with smara_store(threads, url, embedder, keep) as (memory, clock):

        def rank(question: Question, limit: int) -> list[str]:
            clock.asked_at = question.asked_at
            if level == "thread":
                return [hit.thread_id for hit in memory.search_threads(question.text, limit=limit)]
            return [hit.client_id or "" for hit in memory.search(question.text, limit=limit)]

        yield rank


@contextmanager
def smara_store(
    threads: Sequence[Thread],
    url: str | None = None,
    embedder: str = "offline",
    keep: str = "text",
) -> Iterator[tuple[smara.Memory, AskedClock]]:
    """A store that holds the threads, and the clock that tells when it is asked.

    One that keeps vectors reads their texts in a transcript beside it.
    """
    clock = AskedClock()
    # No deadlines: a busy machine must not change the figures.
    given: dict[str, Any] = {
        "durability": "normal",
        "embedder": embedder,
        "embed_query_seconds": 30.0,
        "search_deadline_seconds": 30.0,
        "embed_in_background": False,
        "keep": keep,
    }
    with (
        tempfile.TemporaryDirectory(prefix="smara-eval-") as folder,
        _own_key(Path(folder)) if keep == "vectors" else nullcontext(),
        smara.open(
            url or Path(folder) / "eval.db", project=uuid.uuid4().hex, clock=clock, **given
        ) as memory,
    ):
        for number, thread in enumerate(threads):
            messages = _messages(thread)
            if keep == "vectors":
                _transcribe(messages, Path(folder) / f"{number}.jsonl")
            memory.messages.add_many(thread_id=thread.key, messages=messages)
        if embedder != "off":
            memory.embeddings.embed_pending()
        yield memory, clock


@contextmanager
def _own_key(folder: Path) -> Iterator[None]:
    """Keep the key of terms with the store, and not among the settings of the user."""
    before = os.environ.get("SMARA_CONFIG")
    path = folder / "smara.toml"
    path.touch()
    os.environ["SMARA_CONFIG"] = str(path)
    try:
        yield
    finally:
        os.environ.pop("SMARA_CONFIG")
        if before is not None:
            os.environ["SMARA_CONFIG"] = before


def _transcribe(messages: list[dict[str, object]], path: Path) -> None:
    """Write messages as a transcript, and let each point to its line."""
    path.write_text("".join(json.dumps(each) + "\n" for each in messages), encoding="utf-8")
    for line, each in enumerate(messages, 1):
        each["pointer"] = smara.Pointer(str(path), "jsonl", line)


def _messages(thread: Thread) -> list[dict[str, object]]:
    return [
        {
            "role": turn.role,
            "content": turn.text,
            "client_id": turn.key,
            "created_at": thread.started_at,
        }
        for turn in thread.turns
    ]
