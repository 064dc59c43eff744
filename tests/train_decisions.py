"""Learn the weights by which sentences are taken for decisions.

``python -m tests.train_decisions [FOLDER]`` prints how well sentences are told apart, out of fold
by project, subject or talk, and writes ``weights.json``. There are two tables: one for sessions in
which the agent works, one for talks. FOLDER has labelled real sessions: a file of ``turns`` for
each (``<project>/<session>.json``), and ``labels.jsonl`` and ``negatives.jsonl`` with ``project``,
``session``, ``turn`` and ``sentence``. Without it, the table for work stays as it is.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evals.data import data_folder
from smara.decisions.utterances import Sentence, SpokenTurn, read_utterances

Numbers = npt.NDArray[np.float64]
WEIGHTS = Path(__file__).parents[1] / "src/smara/decisions/weights.json"
TALKS = Path(__file__).parent / "decision_training"
_STRENGTH = 3.0
"""How strongly the weights are drawn to 0."""


class Example(NamedTuple):
    """A sentence: whether it decides something, and what it is held out with."""

    source: str
    fold: str
    is_deciding: bool
    facts: dict[str, float]
    weight: float


def main(arguments: list[str]) -> int:
    """Train both tables, print what they are worth, and write them."""
    examples = [*_talks(), *_development()]
    if arguments:
        examples += _real(Path(arguments[0]))
    tables = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    for name, sources in (("work", ("real", "development")), ("talk", ("talk", "development"))):
        chosen = [each for each in examples if each.source in sources]
        if name == "work" and not arguments:
            continue
        names = sorted(chosen[0].facts)
        table = np.array([[each.facts[fact] for fact in names] for each in chosen])
        truth = np.array([float(each.is_deciding) for each in chosen])
        weights = np.array([each.weight for each in chosen])
        folds = np.array([each.fold for each in chosen])
        guesses = np.zeros(len(chosen))
        for fold in sorted(set(folds)):
            held = folds == fold
            found = _fit(table[~held], truth[~held], weights[~held])
            guesses[held] = _guess(found, table[held])
        for source in sources:
            here = np.array([each.source == source for each in chosen])
            area = _area(truth[here], guesses[here])
            line = f"{name}: {source}: {here.sum()} sentences, area under the curve {area:.3f}"
            sys.stdout.write(f"{line}\n")
        start, *rest = (round(float(each), 4) for each in _fit(table, truth, weights))
        tables[name] = {"start": start, **dict(zip(names, rest, strict=True))}
        tables["sentences"][name] = len(chosen)
    text = json.dumps(tables, indent=1, sort_keys=True)
    WEIGHTS.write_text(text + "\n", encoding="utf-8")
    return 0


def _fit(table: Numbers, truth: Numbers, weights: Numbers) -> Numbers:
    """Return the start and the weights of a logistic regression, by Newton's method."""
    mean, spread = table.mean(0), table.std(0) + 1e-9
    scaled = np.c_[np.ones(len(table)), (table - mean) / spread]
    found = np.zeros(scaled.shape[1])
    penalty = _STRENGTH * np.eye(scaled.shape[1])
    penalty[0, 0] = 0.0
    for _ in range(60):
        guess = 1 / (1 + np.exp(-scaled @ found))
        curve = weights * (guess * (1 - guess) + 1e-6)
        slope = scaled.T @ (weights * (truth - guess)) - penalty @ found
        found += np.linalg.solve(scaled.T @ (scaled * curve[:, None]) + penalty, slope)
    plain = found[1:] / spread
    return np.concatenate([[found[0] - plain @ mean], plain])


def _guess(found: Numbers, table: Numbers) -> Numbers:
    result: Numbers = 1 / (1 + np.exp(-(found[0] + table @ found[1:])))
    return result


def _area(truth: Numbers, guesses: Numbers) -> float:
    """Return the share of pairs in which the deciding sentence has the higher guess."""
    ranks = np.empty(len(guesses))
    ranks[np.argsort(guesses)] = np.arange(len(guesses))
    positive = truth.sum()
    pairs = positive * (len(truth) - positive)
    return float((ranks[truth == 1].sum() - positive * (positive - 1) / 2) / pairs)


def _talks() -> Iterator[Example]:
    for path in sorted(TALKS.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            talk = json.loads(line)
            for each in read_utterances(_turns(talk["turns"])):
                is_gold = each.turn in talk["gold"]
                if not (is_gold and each.facts["question"]):
                    yield Example("talk", f"talk {number % 12}", is_gold, each.facts, 1.0)


def _development() -> Iterator[Example]:
    """The chats of the development set: all that is said in reply decides, decoys do not."""
    for task in _lines("tasks"):
        for chat in task.get("chats", ()):
            for each in read_utterances(_turns(chat)):
                if each.turn:
                    is_deciding = not each.facts["question"]
                    fold = task["task_id"].split("-")[1]
                    yield Example("development", fold, is_deciding, each.facts, 0.5)
    for number, decoy in enumerate(_lines("decoys")):
        for each in read_utterances(_turns(decoy["turns"])):
            yield Example("development", f"decoy {number % 10}", False, each.facts, 0.25)


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(data_folder() / "decisions" / f"{name}.jsonl.gz", "rt") as file:
        yield from map(json.loads, file)


def _real(folder: Path) -> Iterator[Example]:
    """Labelled sentences, each found again among those of its turn by its words."""
    sessions: dict[tuple[str, str], list[Any]] = {}
    for path in folder.glob("*/*.json"):
        session = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(session, dict):
            sessions[session["project"], session["session"]] = session["turns"]
    read: dict[tuple[str, str], tuple[list[Sentence], dict[int, int]]] = {}
    for name, is_deciding in (("labels", True), ("negatives", False)):
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            label = json.loads(line)
            key = (label["project"], label["session"])
            if key not in read:
                turns, places = _merged(sessions[key])
                read[key] = (read_utterances(turns), places)
            listed, places = read[key]
            words = set(label["sentence"].split())
            spoken = [each for each in listed if each.turn == places[label["turn"]]]
            shares = [
                len(words & set(each.text.split())) / max(1, len(words | set(each.text.split())))
                for each in spoken
            ]
            if shares and max(shares) >= 0.5:
                best = spoken[shares.index(max(shares))]
                yield Example("real", label["project"], is_deciding, best.facts, 1.0)


def _merged(raw: list[dict[str, Any]]) -> tuple[list[SpokenTurn], dict[int, int]]:
    """Return turns with the calls of tools counted in the agent's, and where each went."""
    turns: list[SpokenTurn] = []
    places: dict[int, int] = {}
    for number, each in enumerate(raw):
        is_person = each["role"] == "user" or each.get("via") == "question"
        is_call = each["role"] == "tool" and not is_person
        if is_person:
            turns.append(SpokenTurn("person", each["text"]))
        elif turns and turns[-1].speaker == "agent":
            last = turns.pop()
            text = last.text if is_call else f"{last.text}\n{each['text']}"
            turns.append(last._replace(text=text, calls=last.calls + is_call))
        else:
            turns.append(SpokenTurn("agent", "" if is_call else each["text"], calls=int(is_call)))
        places[number] = len(turns) - 1
    return turns, places


def _turns(raw: Iterable[dict[str, Any]]) -> list[SpokenTurn]:
    return [
        SpokenTurn(
            "person" if each["role"] == "user" else "agent",
            each["text"],
            calls=each.get("calls", 0),
        )
        for each in raw
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
