"""Learn the weights by which sentences are taken for decisions.

``python -m tests.train_decisions [FOLDER …]`` prints how well sentences are told apart, out of fold
by project, subject or talk, and writes ``weights.json``. There are two tables: one for sessions in
which the agent works, one for talks. A FOLDER has labelled real sessions: a file of ``turns`` for
each (``<project>/<session>.json``), and ``labels.jsonl`` and ``negatives.jsonl`` with ``project``,
``session``, ``turn`` and ``sentence``. Without one, the table for work stays as it is.

The table for work has weights of words too: only of words that stand in many projects, so that it
learns how people settle things and not what their projects are about.
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
from smara.decisions.assemble import SURE
from smara.decisions.utterances import WORD_MARKS, Sentence, SpokenTurn, read_utterances

Numbers = npt.NDArray[np.float64]
WEIGHTS = Path(__file__).parents[1] / "src/smara/decisions/weights.json"
TALKS = Path(__file__).parent / "decision_training"
_STRENGTH = 3.0
"""How strongly the weights of facts are drawn to 0."""
_STRENGTH_OF_WORDS = 8.0
_LEAST_FOLDS = 8
"""In how many projects, subjects or talks a word has to stand."""
_FOLDS = 8
_LEAST_WEIGHT = 0.02
_LASTING = {1: 0.1, 2: 0.6, 3: 1.0}
"""How much a label counts, by how surely a later session wants it."""


class Example(NamedTuple):
    """A sentence: whether it decides something, and what it is held out with."""

    source: str
    fold: str
    is_deciding: bool
    facts: dict[str, float]
    weight: float


def main(arguments: list[str]) -> int:
    """Train both tables, print what they are worth, and write them."""
    examples = [*_talks(), *_development(), *_said()]
    for folder in arguments:
        examples += _real(Path(folder))
    tables = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    for name, sources in (
        ("work", ("real", "real2", "development", "said")),
        ("talk", ("talk", "development")),
    ):
        chosen = [each for each in examples if each.source in sources]
        if name == "work" and not arguments:
            continue
        facts = sorted(each for each in chosen[0].facts if each[0] not in WORD_MARKS)
        words = _words(chosen) if name == "work" else []
        table = np.array([[each.facts[fact] for fact in facts] for each in chosen])
        columns = {word: number for number, word in enumerate(words)}
        spoken = np.zeros((len(chosen), len(words)))
        for row, each in enumerate(chosen):
            spoken[row, [columns[word] for word in each.facts if word in columns]] = 1.0
        truth = np.array([float(each.is_deciding) for each in chosen])
        weights = np.array([each.weight for each in chosen])
        listed = sorted({each.fold for each in chosen})
        folds = np.array([listed.index(each.fold) % _FOLDS for each in chosen])
        guesses = np.zeros(len(chosen))
        for fold in range(_FOLDS):
            held = folds == fold
            found = _fit(table[~held], spoken[~held], truth[~held], weights[~held])
            guesses[held] = _guess(found, np.c_[table[held], spoken[held]])
        for source in sources:
            here = np.array([each.source == source for each in chosen])
            if here.any():
                area = _area(truth[here], guesses[here])
                kept = here & (guesses >= SURE)
                share = f"{truth[kept].mean():.2f} of {kept.sum()}" if kept.any() else "none"
                line = f"{name}: {source}: {here.sum()} sentences, area under the curve {area:.3f},"
                recall = truth[kept].sum() / truth[here].sum()
                sys.stdout.write(f"{line} {share} sure ones right, {recall:.2f} of all found\n")
        start, *rest = (round(float(each), 3) for each in _fit(table, spoken, truth, weights))
        pairs = zip((*facts, *words), rest, strict=True)
        tables[name] = {"start": start} | {
            key: weight
            for key, weight in pairs
            if key not in columns or abs(weight) >= _LEAST_WEIGHT
        }
        tables["sentences"][name] = len(chosen)
    text = json.dumps(tables, indent=0, sort_keys=True, ensure_ascii=False)
    WEIGHTS.write_text(text + "\n", encoding="utf-8")
    return 0


def _words(examples: Iterable[Example]) -> list[str]:
    """Return the words that stand in many folds."""
    places: dict[str, set[str]] = {}
    for each in examples:
        for name in each.facts:
            if name[0] in WORD_MARKS:
                places.setdefault(name, set()).add(each.fold)
    return sorted(word for word, folds in places.items() if len(folds) >= _LEAST_FOLDS)


def _fit(table: Numbers, words: Numbers, truth: Numbers, weights: Numbers) -> Numbers:
    """Return the start and the weights of a logistic regression, by Newton's method."""
    mean, spread = table.mean(0), table.std(0) + 1e-9
    scaled = np.c_[np.ones(len(table)), (table - mean) / spread, words]
    found = np.zeros(scaled.shape[1])
    strengths = [0.0] + [_STRENGTH] * table.shape[1] + [_STRENGTH_OF_WORDS] * words.shape[1]
    penalty = np.diag(strengths)
    for _ in range(12):
        guess = 1 / (1 + np.exp(-scaled @ found))
        curve = weights * (guess * (1 - guess) + 1e-6)
        slope = scaled.T @ (weights * (truth - guess)) - penalty @ found
        step = np.linalg.solve(scaled.T @ (scaled * curve[:, None]) + penalty, slope)
        found += step
        if np.abs(step).max() < 1e-4:
            break
    plain = found[1 : 1 + table.shape[1]] / spread
    return np.concatenate([[found[0] - plain @ mean], plain, found[1 + table.shape[1] :]])


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


def _said() -> Iterator[Example]:
    """Single sentences between two pieces of the agent's work."""
    lines = (TALKS / "said.txt").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(each for each in lines if each[:1] != "#"):
        _, mark, text = line.split(" ", 2)
        turns = [
            SpokenTurn("person", "Go on with the list."),
            SpokenTurn("agent", "Done, the tests pass.", calls=4),
            SpokenTurn("person", text),
            SpokenTurn("agent", "Done.", calls=3),
        ]
        for each in read_utterances(turns):
            if each.turn:
                yield Example("said", f"said {number % 12}", mark == "+", each.facts, 2.0)


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
                weight = _LASTING[label.get("lasting", 3)] if is_deciding else 1.0
                yield Example(folder.name, label["project"], is_deciding, best.facts, weight)


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
