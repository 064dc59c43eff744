"""What agents are told unasked: the pack of a session and what is said around tools, on a store of
100,000 messages.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95, take_turns
from smara.knowledge.models import MemoryType

MESSAGES, MEMORIES, TASKS = 100_000, 1_500, 200
ROUNDS = 60
_TYPES: tuple[MemoryType, ...] = (
    "gotcha",
    "decision",
    "pattern",
    "error_pattern",
    "preference",
    "requirement",
)
_LIMITS_MS = {
    "start of a session": 100.0,
    "before a change": 100.0,
    "after a search": 100.0,
    "first message": 500.0,
}


def run(folder: Path, report: Report, messages: int = MESSAGES) -> None:
    """Fill a store, and ask at each point for sessions that were told nothing yet."""
    with smara.open(folder / "saying.db", durability="normal", embedder="off") as memory:
        _fill(memory, messages)
        instructions = [
            "\n".join(f"- Rule {number}: {Corpus(5).text(number)[:160]}" for number in range(120))
        ]
        moments = memory.moments
        asked: dict[str, Callable[[int], object]] = {
            "start of a session": lambda n: moments.start(
                f"a{n}", cwd=str(folder), known_texts=instructions
            ),
            "before a change": lambda n: moments.before_tool(
                f"b{n}", "Edit", {"file_path": f"src/m0/f{n * 6}.py"}
            ),
            "after a search": lambda n: moments.after_tool(
                f"c{n}", "Grep", {"pattern": f"call_{n * 6}"}
            ),
            "first message": lambda n: moments.first_message(
                f"d{n}", "Please go on with task number 7 about the tests"
            ),
        }
        told = moments.start("first", known_texts=instructions)
        if told is None or len(told.items) < 10:
            raise SystemExit("the benchmark is wrong: a full store has nothing to say")
        times = take_turns(ROUNDS, **{name.replace(" ", "_"): act for name, act in asked.items()})
    for name, limit in _LIMITS_MS.items():
        taken = times[name.replace(" ", "_")]
        report.figure(f"said: {name}", p95(taken) * 1000)
        report.add(
            f"said at {name}, p50 / p95",
            f"{p50(taken) * 1000:.1f} / {p95(taken) * 1000:.1f} ms",
            f"p95 <= {limit:.0f} ms",
            p95(taken) * 1000 <= limit,
        )


def _fill(memory: smara.Memory, messages: int) -> None:
    corpus = Corpus(11)
    for start in range(0, messages, 1_000):
        memory.messages.add_many(
            thread_id=f"t{start // 1000}", messages=corpus.messages(1_000, start)
        )
    fill_knowledge(memory, corpus)


def fill_knowledge(memory: smara.Memory, corpus: Corpus, memories: int = MEMORIES) -> None:
    """Write memories of every type, and tasks."""
    chance = random.Random(3)
    words = [
        word for number in range(200) for word in corpus.text(number).split() if word.isalpha()
    ]
    for number in range(memories):
        content = f"{' '.join(chance.sample(words, 12))} in module_{number} needs `call_{number}()`"
        fields: dict[str, Any] = {"files": [f"src/m{number % 40}/f{number}.py"], "confidence": 0.9}
        type_ = _TYPES[number % 6]
        if number % 3:
            memory.memories.add(content, type=type_, session_id=f"s{number}", **fields)
        else:
            memory.memories.add(content, type=type_, source="user_taught", by="person", **fields)
    for number in range(TASKS):
        memory.tasks.add(f"Task number {number} about {' '.join(chance.sample(words, 3))}")
