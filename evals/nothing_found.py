"""Ask stores what they cannot know: is anything presented as found?

Questions of other conversations and of other sets are put to each store, and its own, to see what
the bound costs: a question that is refused counts as lost. First Smara as it is shipped; then its
model with weights and bound from other stores, and from other sets, than it is measured on; and
two plain bounds, on the best BM25 score and on the best cosine, each put where it loses as little
on the very questions it is measured with. ``python -m evals.nothing_found`` prints new weights.

LoCoMo names people: a question about a John is not put to another conversation with a John.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.baselines import fts5_scores, turns
from evals.data import Dataset, Question, data_folder, load_cosqa, load_locomo, load_longmemeval
from evals.scoring import interval, recall
from evals.systems import smara_store

if TYPE_CHECKING:
    import smara

NAME = "nothing-found"
TARGET = 95.0
MOST_LOST = 0.5
_HITS = 10
_OF_THE_SET, _OF_OTHERS = 100, 40
"""So many questions of its own set and of each other are put to a store that has many questions."""
_OF_EACH = 3
"""The same for a store that has one."""
FACTS = ("cosine", "words", "coverage", "unknown", "unknown names")

Array = Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, where it was put, and what came of it."""

    dataset: str
    origin: str
    """The set it is of; empty if it belongs to the store."""
    store: str
    text: str
    is_found: bool
    gain: tuple[float, float]
    """Recall at 5 and 10 without a bound."""
    loss: tuple[float, float]
    """The recall that the bound takes away."""
    facts: Array
    """Of each hit what its relevance is made of, in the order of ``FACTS``."""
    plain: tuple[float, float]
    """The best BM25 score and the best cosine."""


def evaluate(folder: Path) -> list[Asked]:
    """Put every question to its stores."""
    sets = [load_locomo(folder), load_longmemeval(folder), load_cosqa(folder)]
    sets.append(load_longmemeval(folder, "longmemeval_s2"))
    return [asked for dataset in sets for asked in _ask_all(dataset, sets)]


def _ask_all(dataset: Dataset, sets: Sequence[Dataset]) -> Iterator[Asked]:
    chosen = random.Random(0)
    for number, (store, own) in enumerate(dataset.by_haystack(), 1):
        print(f"\r{NAME}: {dataset.name}, store {number}", end="", file=sys.stderr, flush=True)
        threads = dataset.haystack(store)
        keys = {thread.key for thread in threads}
        names = set(re.findall(r"\b[A-Z]\w+(?=:)", " ".join(t.text for _, t in _texts(threads))))
        with smara_store(threads) as (memory, clock):
            ask = partial(_ask, memory, dataset, store, words=fts5_scores(turns(threads)))
            for question in own:
                clock.asked_at = question.asked_at
                yield ask(question, "")
            for other in sets:
                foreign = [
                    each
                    for each in other.questions
                    if (other is not dataset or each.haystack != store)
                    and not (dataset.level == "thread" and each.gold & keys)
                    and not names.intersection(re.findall(r"\w+", each.text))
                ]
                most = _OF_THE_SET if other is dataset else _OF_OTHERS
                if other is dataset and len(list(dataset.by_haystack())) == 1:
                    continue
                count = most if len(own) > 1 else _OF_EACH
                for question in chosen.sample(foreign, min(count, len(foreign))):
                    clock.asked_at = own[0].asked_at
                    yield ask(replace(question, gold=frozenset()), other.name)
    print(file=sys.stderr)


def _texts(threads: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    return ((thread.key, turn) for thread in threads for turn in thread.turns)


def _ask(
    memory: smara.Memory,
    dataset: Dataset,
    store: str,
    question: Question,
    origin: str,
    *,
    words: Callable[[str, int], dict[int, float]],
) -> Asked:
    ranked = memory.search(question.text, _HITS, min_score=0.0)
    found = memory.search(question.text, _HITS)
    if dataset.level == "thread":
        kept = [hit.thread_id for hit in memory.search_threads(question.text)]
        # It is all or none.
        every = kept or [
            hit.thread_id for hit in memory.search_threads(question.text, min_score=0.0)
        ]
    else:
        every = [hit.client_id or "" for hit in ranked]
        kept = [hit.client_id or "" for hit in found]
    gain, left = (
        tuple(recall(keys, question.gold, k) if question.gold else 0.0 for k in (5, 10))
        for keys in (every, kept)
    )
    stages = [hit.stages for hit in ranked if hit.stages is not None]
    facts = np.array(
        [
            (
                *(each.meaning or 0.0, min(each.words, 1.0), each.coverage),
                *(each.unknown, each.unknown_names),
            )
            for each in stages
        ]
    ).reshape(-1, len(FACTS))
    return Asked(
        dataset.name,
        origin,
        store,
        question.text,
        is_found=bool(found) or bool(kept),
        gain=(gain[0], gain[1]),
        loss=(gain[0] - left[0], gain[1] - left[1]),
        facts=facts,
        plain=(
            max(words(question.text, 1).values(), default=0.0),
            max((each.meaning or 0.0 for each in stages), default=0.0),
        ),
    )


# A logistic model whose bag of hits is judged by its best one.


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of the facts, a start, and the bound of the sum."""

    weights: Array
    start: float
    bound: float = 0.0

    def rate(self, asked: Asked) -> float:
        """Return the sum of the best hit."""
        return float((asked.facts @ self.weights).max() + self.start) if len(asked.facts) else -30.0


def fit(questions: Sequence[Asked], uses_meaning: bool = True, rounds: int = 6) -> Model:
    """Fit a model, each set and each origin with the same weight, and put its bound."""
    taught = [each for each in questions if each.origin or each.gain[1] > 0]
    groups: dict[tuple[str, str], int] = {}
    for each in taught:
        groups[each.dataset, each.origin] = groups.get((each.dataset, each.origin), 0) + 1
    own = {key: 1.0 for key in groups if not key[1]}
    share = {key: own.get(key, len(own) / max(1, len(groups) - len(own))) for key in groups}
    weights = np.array(
        [1000 * share[e.dataset, e.origin] / groups[e.dataset, e.origin] for e in taught]
    )
    is_own = np.array([not each.origin for each in taught], dtype=float)
    used = np.array([float(uses_meaning), 1.0, 1.0, 1.0, 1.0])
    model = Model(used, 0.0)
    for _ in range(rounds):
        best = np.array(
            [
                e.facts[int(np.argmax(e.facts @ model.weights))] * used
                if len(e.facts)
                else np.zeros(len(FACTS))
                for e in taught
            ]
        )
        model = _logistic(best, is_own, weights)
    return replace(model, bound=_bound(model, questions))


def _logistic(facts: Array, is_own: Array, weights: Array) -> Model:
    """Newton's method with a little ridge, on standardized facts."""
    mean, deviation = facts.mean(0), facts.std(0) + 1e-9
    rows = np.c_[(facts - mean) / deviation, np.ones(len(facts))]
    ridge = np.diag([2.0] * facts.shape[1] + [0.0])
    found = np.zeros(rows.shape[1])
    for _ in range(40):
        likely = 1 / (1 + np.exp(-np.clip(rows @ found, -30, 30)))
        slope = rows.T @ (weights * (is_own - likely)) - ridge @ found
        curve = (rows * (weights * likely * (1 - likely))[:, None]).T @ rows + ridge
        found = found + np.linalg.solve(curve, slope)
    plain = found[:-1] / deviation
    return Model(plain, float(found[-1] - plain @ mean))


def _bound(model: Model, questions: Sequence[Asked]) -> float:
    """Return the highest bound at which no set loses more than it may."""
    sets = {each.dataset for each in questions}
    bounds = []
    for name in sets:
        own = sorted(
            ((model.rate(e), e.gain) for e in questions if e.dataset == name and not e.origin),
            key=lambda each: each[0],
        )
        lost, bound = np.zeros(2), -30.0
        for sum_, gain in own:
            lost += np.array(gain)
            if 100 * lost.max() / len(own) > MOST_LOST:
                bound = sum_
                break
        bounds.append(bound)
    return min(bounds)


def refusals(questions: Sequence[Asked], judge: Callable[[Asked], bool]) -> dict[str, str]:
    """Return for each origin the share that is refused, and for own questions what is lost."""
    told = {}
    for origin in dict.fromkeys(each.origin for each in questions):
        some = [each for each in questions if each.origin == origin]
        if origin:
            refused = [float(not judge(each)) for each in some]
            low, high = interval(refused)
            told[origin] = f"{100 * sum(refused) / len(refused):.1f} ({low:.0f}–{high:.0f})"
        else:
            lost = [100 * sum(e.gain[k] for e in some if not judge(e)) / len(some) for k in (0, 1)]
            told[origin] = f"{lost[0]:.2f} / {lost[1]:.2f}"
    return told


def _plain_bound(questions: Sequence[Asked], which: int) -> Callable[[Asked], bool]:
    model = Model(np.zeros(len(FACTS)), 0.0)
    own = [replace(e, facts=np.array([[e.plain[which], 0, 0, 0, 0]])) for e in questions]
    bound = _bound(replace(model, weights=np.array([1.0, 0, 0, 0, 0])), own)
    return lambda each: each.plain[which] >= bound


def _folds(questions: Sequence[Asked], uses_meaning: bool) -> Callable[[Asked], bool]:
    """Judge each store by a model of the other stores, in five parts."""
    stores = sorted({(each.dataset, each.store) for each in questions})
    part = {key: number % 5 for number, key in enumerate(stores)}
    models = [
        fit([e for e in questions if part[e.dataset, e.store] != number], uses_meaning)
        for number in range(5)
    ]

    def judge(each: Asked) -> bool:
        model = models[part[each.dataset, each.store]]
        return model.rate(each) >= model.bound

    return judge


def _others(questions: Sequence[Asked], dataset: str) -> Callable[[Asked], bool]:
    """Judge a set by a model of the other sets; the parts of LongMemEval_S are one."""
    model = fit([e for e in questions if e.dataset.split(",")[0] != dataset.split(",")[0]])
    return lambda each: model.rate(each) >= model.bound


def render(questions: Sequence[Asked]) -> str:
    """The figures as Markdown."""
    foreign = sum(bool(each.origin) for each in questions)
    lines = [
        f"### Nothing found ({foreign:,} questions without an answer, {len(questions) - foreign:,}"
        " with one)",
        "",
        "Refused, in percent, with its 95 % interval; what own questions lose at R@5 / R@10.",
        "",
    ]
    out_of_fold = _folds(questions, uses_meaning=True)
    by_words = _folds(questions, uses_meaning=False)
    for dataset in dict.fromkeys(each.dataset for each in questions):
        some = [each for each in questions if each.dataset == dataset]
        origins = [name for name in dict.fromkeys(each.origin for each in some) if name]
        counts = {name: sum(each.origin == name for each in some) for name in origins}
        shipped = refusals(some, lambda each: each.is_found)
        own = [each for each in some if not each.origin]
        lost = [100 * sum(each.loss[k] for each in own) / len(own) for k in (0, 1)]
        shipped[""] = f"{lost[0]:.2f} / {lost[1]:.2f}"
        rows = {
            "Smara, as shipped": shipped,
            "the model, other stores": refusals(some, out_of_fold),
            "the model, other sets": refusals(some, _others(questions, dataset)),
            "words alone, other stores": refusals(some, by_words),
            "best BM25, in sample": refusals(some, _plain_bound(some, 0)),
            "best cosine, in sample": refusals(some, _plain_bound(some, 1)),
        }
        heads = [f"{name} ({counts[name]})" for name in origins]
        lines += [
            f"| {dataset} | own ({len(own)}) lose | " + " | ".join(heads) + " |",
            "|---" * (len(origins) + 2) + "|",
            *(
                f"| {name} | " + " | ".join(row[origin] for origin in ("", *origins)) + " |"
                for name, row in rows.items()
            ),
            "",
        ]
        refused = [float(not each.is_found) for each in some if each.origin == dataset]
        if refused:
            share = 100 * sum(refused) / len(refused)
            verdict = "met" if share >= TARGET and max(lost) <= MOST_LOST else "missed"
            lines += [
                f"Target {dataset}: {TARGET:.0f} % of its own kind refused, at most {MOST_LOST}"
                f" points lost: {share:.1f} %, {max(lost):.2f} points: {verdict}.",
                "",
            ]
    return "\n".join(lines)


def main() -> int:
    """Print the table, and weights for ``search/weights.py``."""
    questions = evaluate(data_folder())
    print(render(questions))
    for uses_meaning in (True, False):
        model = fit(questions, uses_meaning)
        rounded = ", ".join(f"{n} {w:.2f}" for n, w in zip(FACTS, model.weights, strict=True))
        print(f"start {model.start:.2f}, {rounded}; bound {1 / (1 + np.exp(-model.bound)):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
