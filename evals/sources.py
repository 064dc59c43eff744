"""The same questions put to messages, observations, memories and decisions, and in five languages.

The scenarios lie in one store. Their threads are observed offline and read for decisions, and
each prompt that needs a rule is put to one kind of record at a time: are all parts of the rule in
the first ten? A rule that is found among messages and not among decisions was said and not kept.

Paraphrases: forty facts in French, German, Chinese and Japanese, each asked for in other words of
its language, and twelve in English with some of the same words, among the scenarios. Each was told
in passing: a conversation of two messages. That such messages fell behind long conversations was
found with the forty; no weight was learned from them, and the twelve came after it. Of a question,
one message is the answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import smara
from evals.data import Dataset, Question, Thread, Turn
from evals.packs import Need, scenario_rules
from evals.scoring import wilson
from evals.systems import smara_store

NAME = "sources"
HITS = 10
_FACTS = Path(__file__).parent / "paraphrases.jsonl"
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Found:
    """The share of a rule's parts that the first hits of one source hold."""

    source: str
    question: str
    share: float


def evaluate() -> list[Found]:
    """Put every prompt that needs a rule to each source."""
    rules = scenario_rules()
    found: list[Found] = []
    with smara_store(rules.threads) as (memory, clock):
        clock.asked_at = max(each.started_at for each in rules.threads) + _DAY_MS
        for number, thread in enumerate(rules.threads, 1):
            print(f"\r{NAME}: thread {number}", end="", file=sys.stderr, flush=True)
            memory.observations.observe(thread.key)
        memory.decisions.update()
        memory.embeddings.embed_pending()
        for need in rules.needs:
            clock.asked_at = need.question.asked_at
            for source, ask in _ASKED.items():
                found.append(Found(source, need.question.key, _share(need, ask, memory)))
    print(file=sys.stderr)
    return found


def _share(
    need: Need, ask: Callable[[smara.Memory, str], list[str]], memory: smara.Memory
) -> float:
    return need.share("\n".join(ask(memory, need.question.text)), ())


def _notes(memory: smara.Memory, text: str) -> list[str]:
    notes = [hit.observation for hit in memory.search_observations(text, HITS)]
    return ["\n".join((note.text, *note.details)) for note in notes]


_ASKED: Mapping[str, Callable[[smara.Memory, str], list[str]]] = {
    "messages": lambda memory, text: [
        hit.content for hit in memory.search(text, HITS, sources=["messages"])
    ],
    "observations": _notes,
    "memories": lambda memory, text: [
        hit.content for hit in memory.search(text, HITS, sources=["memories"])
    ],
    "decisions": lambda memory, text: [
        "\n".join((each.rule, *each.quotations)) for each in memory.decisions.search(text, HITS)
    ],
    "all together": lambda memory, text: [hit.content for hit in memory.search(text, HITS)],
}


def render(figures: list[Found]) -> str:
    """The figures as Markdown."""
    lines = [
        f"### Sources: the parts of a rule in the first {HITS} of each",
        "",
        "| source | questions | whole rule, % (95 %) | parts, % |",
        "|---" * 4 + "|",
    ]
    for source in _ASKED:
        shares = [each.share for each in figures if each.source == source]
        whole = sum(share == 1 for share in shares)
        low, high = wilson(whole, len(shares))
        lines.append(
            f"| {source} | {len(shares)} | {whole} = {100 * whole / len(shares):.1f}"
            f" ({low:.0f}–{high:.0f}) | {100 * sum(shares) / len(shares):.1f} |"
        )
    return "\n".join([*lines, ""])


def paraphrases() -> Dataset:
    """Facts in five languages, each in a conversation of its own among the scenarios."""
    rows = [json.loads(line) for line in _FACTS.read_text(encoding="utf-8").splitlines()]
    others = scenario_rules().threads
    first = min(each.started_at for each in others)
    threads = tuple(
        Thread(
            f"fact-{n}",
            first + n * _DAY_MS,
            (Turn(f"fact-{n}/0", "user", row["said"]), Turn(f"fact-{n}/1", "assistant", "OK.")),
        )
        for n, row in enumerate(rows)
    )
    questions = tuple(
        Question(
            f"fact-{n}",
            row["asked"],
            "facts",
            gold=frozenset([f"fact-{n}/0"]),
            kind=row["language"],
            asked_at=max(each.started_at for each in (*others, *threads)) + _DAY_MS,
        )
        for n, row in enumerate(rows)
    )
    part = f"{_FACTS}: {len(questions)} questions"
    return Dataset("Paraphrases", part, "message", questions, lambda _: (*others, *threads))


def main() -> int:
    """Print the table of sources."""
    print(render(evaluate()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
