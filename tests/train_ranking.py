"""Learn the weights by which messages are ordered.

``python -m tests.train_ranking [CACHE]`` describes the candidates of every question of the
evaluation sets by the facts of ``search/ranker.py``, in stores made as users make them, prints how
well the model orders them out of fold and on sets it was not trained on, beside the plain sum of
words and meaning, and writes ``ranker.json``. CACHE is a folder in which the facts are kept: to
gather them takes half an hour, to learn from them a minute.

Each look of a conversation has sets of its own: LoCoMo people, CoSQA code, the scenarios and the
decided rules a brief assistant, both parts of LongMemEval_S a lengthy one. The loss is that of
pairs: every gold row against all others of its question, by the softmax of their scores. What
must not harm by its nature (:data:`RISING`) has no negative weight.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evals.data import Dataset, data_folder, load_cosqa, load_locomo, load_longmemeval
from evals.packs import chats_with_gold, scenarios_with_gold
from evals.scoring import paired
from evals.systems import smara_store
from smara.database.fulltext import no_of
from smara.search.fuse import Closeness, MessageFusion
from smara.search.query import understand
from smara.search.ranker import FACTS, LOOKS
from smara.search.search import _filter
from smara.search.weights import WEIGHTS

Numbers = npt.NDArray[np.float64]
TABLE = Path(__file__).parents[1] / "src/smara/search/ranker.json"
RISING = (
    *("words", "own words", "coverage", "meaning", "days", "time"),
    *("words of its thread", "meaning of its thread"),
)
_RIDGE = 10.0
_FOLDS = 5
_SETS: dict[str, tuple[str, Callable[[Path], Dataset]]] = {
    "locomo": ("people", load_locomo),
    "cosqa": ("code", load_cosqa),
    "scenarios": ("brief", lambda _: scenarios_with_gold()),
    "decisions": ("brief", chats_with_gold),
    "longmemeval_s": ("lengthy", lambda folder: load_longmemeval(folder, level="message")),
    "longmemeval_s2": (
        "lengthy",
        lambda folder: load_longmemeval(folder, "longmemeval_s2", "message"),
    ),
}
_FILES = {
    "locomo": ("locomo/conversations.jsonl.gz",),
    "cosqa": ("cosqa/queries.jsonl.gz", "cosqa/functions.jsonl.gz"),
    "decisions": ("decisions/tasks.jsonl.gz", "decisions/decoys.jsonl.gz"),
    "longmemeval_s": ("longmemeval_s/questions.jsonl.gz", "longmemeval_s/sessions.jsonl.gz"),
    "longmemeval_s2": ("longmemeval_s2/questions.jsonl.gz", "longmemeval_s2/sessions.jsonl.gz"),
}


class Asked(NamedTuple):
    """The candidates of one question."""

    dataset: str
    fold: int
    facts: Numbers
    is_gold: npt.NDArray[np.bool_]
    order: npt.NDArray[np.int64]
    """Time, row and message of each candidate."""
    gold: int
    """How many messages hold the answer, found or not."""


def main(arguments: list[str]) -> int:
    """Gather or read the facts, print the figures, and write the table."""
    cache = Path(arguments[0]) if arguments else None
    folder = data_folder()
    asked = {name: _facts(name, folder, cache) for name in _SETS}
    weights = {}
    for look in LOOKS:
        own = [name for name, (of, _) in _SETS.items() if of == look]
        _print_figures(look, {name: asked[name] for name in own})
        found = fit([each for name in own for each in asked[name]])
        weights[look] = {fact: round(float(w), 4) for fact, w in zip(FACTS, found, strict=True)}
    hashes = {
        file: hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for files in _FILES.values()
        for file in files
    }
    table = {
        "made_by": "python -m tests.train_ranking",
        "questions": {name: len(asked[name]) for name in _SETS},
        "sha256": hashes,
        "weights": weights,
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 0


# The facts of every candidate.


def _facts(name: str, folder: Path, cache: Path | None) -> list[Asked]:
    file = cache / f"{name}.npz" if cache is not None else None
    if file is not None and file.exists():
        return _read(name, file)
    found = list(_gather(name, _SETS[name][1](folder)))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            file,
            facts=np.concatenate([each.facts for each in found]).astype(np.float32),
            is_gold=np.concatenate([each.is_gold for each in found]),
            order=np.concatenate([each.order for each in found]),
            sizes=np.array([(len(each.facts), each.gold, each.fold) for each in found]),
        )
    return found


def _read(name: str, file: Path) -> list[Asked]:
    kept: Any = np.load(file)
    ends = np.cumsum(kept["sizes"][:, 0])
    facts, is_gold, order = kept["facts"].astype(np.float64), kept["is_gold"], kept["order"]
    return [
        Asked(name, fold, facts[end - n : end], is_gold[end - n : end], order[end - n : end], gold)
        for end, (n, gold, fold) in zip(ends.tolist(), kept["sizes"].tolist(), strict=True)
    ]


def _gather(name: str, dataset: Dataset) -> Iterator[Asked]:
    """Ask every question, and describe all candidates as the product does."""
    number = 0
    stores = list(dataset.by_haystack())
    for store, (key, questions) in enumerate(stores):
        sys.stderr.write(f"\r{name}: store {store + 1} of {len(stores)}")
        with smara_store(dataset.haystack(key)) as (memory, clock):
            search = memory._rooms.search
            messages = search.messages
            with search._database.read(60.0) as session:
                keys = dict(session.all("SELECT no, client_id FROM messages"))
            for question in questions:
                clock.asked_at = question.asked_at
                intent = understand(question.text, None, search._today())
                vector, _ = search._vector(intent.query, True)
                filters = _filter(
                    *(("messages",), None, None),
                    role=None,
                    since=None,
                    until=None,
                    task_id=None,
                    limit=10,
                )
                with search._database.read(60.0) as session:
                    within = search._within(session, filters)
                    query, gathered, rows, _ = messages._by_words(session, intent.query, within, 10)
                    close = Closeness(session, messages._meaning, vector, within=within)
                    rows = messages._with_nearest(session, rows, close, within=within)
                    ranking = messages._ranking(session, query, gathered, rows=rows)
                fusion = MessageFusion(
                    ranking, close, intent.days, text=query.text, weights=WEIGHTS.fusion
                )
                rows = [each.row for each in ranking.evidence]
                fold = (store if len(stores) > 1 else number) % _FOLDS
                number += 1
                if rows:
                    yield Asked(
                        name,
                        fold,
                        np.array(fusion._facts()),
                        np.array([keys[no_of(row.no)] in question.gold for row in rows]),
                        np.array([(row.created_at, row.no, no_of(row.no)) for row in rows]),
                        len(question.gold),
                    )
    sys.stderr.write("\n")


# The model.


def fit(asked: Sequence[Asked], rounds: int = 40) -> Numbers:
    """Return the weights that put gold rows above the others of their questions.

    Newton's method on standardized facts, with a ridge and without negative weights of what must
    not harm.
    """
    taught = [each for each in asked if each.is_gold.any() and not each.is_gold.all()]
    scale = np.concatenate([each.facts for each in taught]).std(0) + 1e-6
    cases = [
        (
            each.facts[each.is_gold] / scale,
            each.facts[~each.is_gold] / scale,
            1000 / (len(taught) * each.is_gold.sum()),
        )
        for each in taught
    ]
    rising = np.array([fact in RISING for fact in FACTS])
    weights = np.zeros(len(FACTS))
    loss, slope, curve = _loss(cases, weights)
    for _ in range(rounds):
        free = ~(rising & (weights <= 0) & (slope > 0))
        step = np.zeros(len(FACTS))
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], -slope[free])
        share = 1.0
        while True:
            moved = weights + share * step
            moved = np.where(rising & (moved < 0), 0.0, moved)
            new = _loss(cases, moved)
            if new[0] < loss or share < 1e-3:
                break
            share /= 2
        is_done = loss - new[0] < 1e-6 * loss
        weights, (loss, slope, curve) = moved, new
        if is_done:
            break
    return weights / scale


def _loss(cases: Sequence[tuple[Any, Any, float]], weights: Numbers) -> tuple[float, Any, Any]:
    loss = 0.5 * _RIDGE * float(weights @ weights)
    slope, curve = _RIDGE * weights, _RIDGE * np.eye(len(weights))
    for gold, others, share in cases:
        scores, best = others @ weights, gold @ weights
        most = max(scores.max(), best.max())
        raised = np.exp(scores - most)
        total, mean, square = raised.sum(), raised @ others, (others * raised[:, None]).T @ others
        for row, score in zip(gold, best, strict=True):
            own = np.exp(score - most)
            middle = (mean + own * row) / (total + own)
            loss -= share * (score - most - np.log(total + own))
            slope = slope - share * (row - middle)
            curve = curve + share * (
                (square + own * np.outer(row, row)) / (total + own) - np.outer(middle, middle)
            )
    return loss, slope, curve


# The figures.


def figures(asked: Asked, scores: Numbers) -> tuple[float, float, float]:
    """Return R@5, R@10 and the reciprocal rank of one question, each message by its best row."""
    created, rows, messages = asked.order.T
    ranked = np.lexsort((-rows, -created, -scores))
    _, firsts = np.unique(messages[ranked], return_index=True)
    gold = asked.is_gold[ranked[np.sort(firsts)[:10]]]
    first = int(np.argmax(gold)) + 1 if gold.any() else 0
    return gold[:5].sum() / asked.gold, gold.sum() / asked.gold, 1 / first if first else 0.0


def _print_figures(look: str, sets: dict[str, list[Asked]]) -> None:
    for name, asked in sets.items():
        plain = np.zeros(len(FACTS))
        plain[[FACTS.index("words"), FACTS.index("meaning")]] = (1.0, 0.05)
        results = {"words and meaning": [figures(e, e.facts @ plain) for e in asked]}
        every = [each for members in sets.values() for each in members]
        folds = [fit([each for each in every if each.fold != fold]) for fold in range(_FOLDS)]
        results["out of fold"] = [figures(e, e.facts @ folds[e.fold]) for e in asked]
        others = [each for each in every if each.dataset != name]
        if others:
            weights = fit(others)
            results["trained on the others"] = [figures(e, e.facts @ weights) for e in asked]
        for way, found in results.items():
            r5, r10, rr = 100 * np.array(found).mean(0)
            lead = paired([e[0] for e in found], [e[0] for e in results["words and meaning"]])
            sys.stdout.write(
                f"{look:8} {name:15} {way:22} R@5 {r5:.1f} R@10 {r10:.1f} MRR {rr:.1f}"
                f" ({lead[0]:+.1f}: {lead[1]:+.1f} to {lead[2]:+.1f})\n"
            )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
