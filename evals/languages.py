"""The same prompts in six languages, put to a store that answers them and to one that does not.

The scenarios of a language are dealt into two stores. A prompt that needs a rule is put to both:
its own store should find something, the other one nothing. Both shares, and how often the best
relevance of the own store is above that of the other one, tell if scores mean the same in every
language. The stores are small (20 to 160 messages), and both are about software, so that much of
the other store is near.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import smara
from evals.data import Thread
from evals.packs import scenario_files, threads_of
from evals.scoring import wilson
from evals.systems import smara_store

NAME = "languages"
_HITS = 10
_DAY_MS = 86_400_000
_LEAST_PROMPTS = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt that needs a rule, and what both stores say to it."""

    language: str
    is_own_found: bool
    is_gold_first: bool
    is_other_found: bool
    own_score: float
    other_score: float


def evaluate() -> list[Asked]:
    """Put each prompt to its own store and to the other one."""
    rows = [
        json.loads(line)
        for path in scenario_files(with_live=True)
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    answers: list[Asked] = []
    for language in sorted({row["language"] for row in rows}):
        stores = [
            [row for row in rows if row["language"] == language and _half(row) == half]
            for half in (0, 1)
        ]
        if sum(len(_prompts(row)) for store in stores for row in store) < _LEAST_PROMPTS:
            continue
        print(f"\r{NAME}: {language}", end="", file=sys.stderr, flush=True)
        prompts = [(row, text) for store in stores for row in store for text in _prompts(row)]
        by_half = [_ask(store, [text for _, text in prompts]) for store in stores]
        for number, (row, _) in enumerate(prompts):
            own, other = by_half[_half(row)][number], by_half[1 - _half(row)][number]
            gold = {f"{row['id']}/{session}/{turn}" for session, turn in row["gold"]}
            answers.append(
                Asked(
                    language,
                    is_own_found=bool(own),
                    is_gold_first=any(hit.client_id in gold for hit in list(own)[:5]),
                    is_other_found=bool(other),
                    own_score=_best(own),
                    other_score=_best(other),
                )
            )
    print(file=sys.stderr)
    return answers


def _half(row: Mapping[str, Any]) -> int:
    return int(hashlib.sha256(row["id"].encode()).hexdigest(), 16) % 2


def _prompts(row: Mapping[str, Any]) -> list[str]:
    return [prompt["text"] for prompt in row["prompts"] if prompt["needs"]]


def _ask(rows: Sequence[Mapping[str, Any]], prompts: Sequence[str]) -> list[smara.Answer]:
    threads: list[Thread] = sorted(
        (thread for row in rows for thread in threads_of(row)),
        key=lambda each: (each.started_at, each.key),
    )
    with smara_store(threads) as (memory, clock):
        clock.asked_at = threads[-1].started_at + _DAY_MS
        memory.embeddings.embed_pending()
        return [memory.search(text, _HITS) for text in prompts]


def _best(answer: smara.Answer) -> float:
    return max((hit.score for hit in (*answer.hits, *answer.nearest)), default=0.0)


def render(answers: Sequence[Asked]) -> str:
    """The figures as Markdown."""
    lines = [
        "### Languages: prompts that need a rule, put to their own store and to another one",
        "",
        "| language | prompts | own store finds, % (95 %) | gold in the first 5, % | other store"
        " refuses, % (95 %) | own above other, % of pairs |",
        "|---" * 6 + "|",
    ]
    for language in sorted({each.language for each in answers}):
        some = [each for each in answers if each.language == language]
        lines.append(
            f"| {language} | {len(some)} | {_share([each.is_own_found for each in some])}"
            f" | {100 * sum(each.is_gold_first for each in some) / len(some):.0f}"
            f" | {_share([not each.is_other_found for each in some])}"
            f" | {100 * _above(some):.0f} |"
        )
    return "\n".join([*lines, ""])


def _share(flags: Sequence[bool]) -> str:
    low, high = wilson(sum(flags), len(flags))
    return f"{100 * sum(flags) / len(flags):.0f} ({low:.0f}–{high:.0f})"


def _above(answers: Sequence[Asked]) -> float:
    pairs = [(own.own_score, other.other_score) for own in answers for other in answers]
    return sum((own > other) + (own == other) / 2 for own, other in pairs) / len(pairs)


def main() -> int:
    """Print the table of languages."""
    print(render(evaluate()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
