"""LongMemEval_S by observations alone: is the answer's session found without looking at its
messages?

The haystack of each question is put in as threads with their dates and observed offline, in the
general flavor. Then the question is asked of the observations, and of the messages of the same
store. Threads are ranked by their best hit or by the sum of their hits, among the first 50 hits.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import smara
from evals.data import Dataset, Question, Thread, data_folder, load_longmemeval
from evals.scoring import average, score

NAME = "observed-recall"
HITS = 50
RANKED = 10
FIGURES = ("R@5", "any@5", "all@5", "R@10", "any@10", "MRR")
SYSTEMS = (
    "observations alone, best hit",
    "observations alone, sum of hits",
    "messages, best hit",
    "messages, sum of hits",
    "messages, search_threads",
)


@dataclass(slots=True)
class Recall:
    """The figures of one run, by system, and what was observed."""

    part: str
    questions: int = 0
    figures: dict[str, list[dict[str, float]]] = field(
        default_factory=lambda: {name: [] for name in SYSTEMS}
    )
    milliseconds: list[float] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """Questions without any answer session among the first ten by best observation."""
    threads: int = 0
    notes: int = 0
    silent_threads: int = 0
    """Threads of which nothing was noted."""
    silent_gold: int = 0
    gold: int = 0
    message_tokens: int = 0
    note_tokens: int = 0


def evaluate(dataset: Dataset, questions: int | None = None) -> Recall:
    """Ask every question of the set, or so many of them, evenly spaced."""
    chosen = _spread(dataset.questions, questions)
    found = Recall(
        f"{len(chosen)} of the {len(dataset.questions)} questions of the development part",
        len(chosen),
    )
    for number, question in enumerate(chosen, 1):
        print(f"\r{NAME}: {number} of {len(chosen)}", end="", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="smara-eval-") as folder:
            store = Path(folder) / "eval.db"
            with smara.open(
                store,
                project="eval",
                durability="normal",
                token_model="estimate",  # noqa: S106  # not a password
                compact_every_messages=0,
                observe_flavor="general",
                observe_timezone="UTC",
                search_deadline_seconds=60.0,
            ) as memory:
                _fill(memory, dataset.haystack(question.haystack), question.gold, found=found)
                for name, ranked in _rankings(memory, question.text, found).items():
                    found.figures[name].append(score(ranked, question.gold))
        if found.figures[SYSTEMS[0]][-1]["any@10"] == 0:
            found.missed.append(f"{question.key} ({question.kind})")
    print(file=sys.stderr)
    return found


def _spread(values: Sequence[Question], count: int | None) -> list[Question]:
    """``count`` of the questions, evenly spaced, so that every kind of question is among them."""
    if count is None or count >= len(values):
        return list(values)
    return [values[at * len(values) // count] for at in range(max(1, count))]


def _fill(
    memory: smara.Memory, threads: Iterable[Thread], gold: frozenset[str], found: Recall
) -> None:
    for thread in threads:
        memory.messages.add_many(
            thread_id=thread.key,
            messages=[
                {
                    "role": turn.role,
                    "content": turn.text,
                    "client_id": turn.key,
                    "created_at": thread.started_at,
                }
                for turn in thread.turns
            ],
        )
        outcome = memory.observations.observe(thread.key)
        if not outcome.success or memory.observations.pending(thread.key).tokens:
            raise RuntimeError(f"{thread.key} was not observed to its end: {outcome.error}")
        notes = memory.observations.active(thread.key)
        found.threads += 1
        found.notes += len(notes)
        found.note_tokens += sum(note.tokens for note in notes)
        found.message_tokens += memory.observations.status(thread.key)["observedTokens"]
        found.silent_threads += not notes
        found.silent_gold += thread.key in gold and not notes
    found.gold += len(gold)


def _rankings(memory: smara.Memory, question: str, found: Recall) -> dict[str, list[str]]:
    begin = time.perf_counter()
    notes = memory.search_observations(question, HITS)
    found.milliseconds.append(1000 * (time.perf_counter() - begin))
    by_note = [(hit.observation.thread_id or "", hit.score) for hit in notes]
    by_message = [
        (hit.thread_id or "", hit.score)
        for hit in memory.search(question, HITS, sources=("messages",))
    ]
    rankings = [*_by_thread(by_note), *_by_thread(by_message)]
    rankings.append([hit.thread_id for hit in memory.search_threads(question, limit=RANKED)])
    return dict(zip(SYSTEMS, rankings, strict=True))


def _by_thread(hits: Sequence[tuple[str, float]]) -> tuple[list[str], list[str]]:
    """Threads by their best hit, and by the sum of their hits.

    >>> _by_thread([("a", 1.0), ("b", 0.8), ("b", 0.7)])
    (['a', 'b'], ['b', 'a'])
    """
    sums: dict[str, float] = {}
    for thread, value in hits:
        sums[thread] = sums.get(thread, 0.0) + value
    best = list(sums)  # hits come best first, so a thread's place is that of its best
    return best[:RANKED], sorted(sums, key=lambda thread: -sums[thread])[:RANKED]


def render(found: Recall) -> str:
    """The figures as Markdown."""
    lines = [f"### LongMemEval_S by observations alone ({found.part})", ""]
    lines += [
        "".join(["| ranked by |", *(f" {name} |" for name in FIGURES)]),
        "|---" * (len(FIGURES) + 1) + "|",
    ]
    for name in SYSTEMS:
        means = average(found.figures[name])
        lines.append(
            f"| {name} | " + " | ".join(f"{means[figure]:.1f}" for figure in FIGURES) + " |"
        )
    smaller = found.message_tokens / max(1, found.note_tokens)
    lines += [
        "",
        f"{found.threads:,} threads, {found.notes:,} notes, {smaller:.1f}× smaller than the "
        "messages. "
        f"{found.silent_threads:,} threads have no note, {found.silent_gold} of the {found.gold} "
        "answer sessions among "
        f"them. Median {statistics.median(found.milliseconds):.1f} ms a search of observations.",
        "",
        "No answer session among the first ten by best observation: "
        f"{', '.join(found.missed) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m evals.observed_recall", description=__doc__)
    parser.add_argument(
        "--questions", type=int, default=None, help="only so many, evenly spaced over the set"
    )
    print(render(evaluate(load_longmemeval(data_folder()), parser.parse_args().questions)))
