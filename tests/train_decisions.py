"""Learn the weights by which sentences are taken for decisions.

``python -m tests.train_decisions [FILE …]`` prints how well sentences are told apart, out of fold
by file, project, subject or talk, and writes ``weights.json``. There are two tables: one for
sessions in which the agent works, one for talks. A FILE has labelled real sessions, in the form of
``decision_training/work``; a label may have a ``level`` from 0 to 3, how surely a later session
wants the sentence. With one, the table for work is learned; without, the table for talks.

The table for work is drawn to the one for any sentence, which was learned from 9,001 sentences of
56 projects that are not at hand any more. It has weights of words too: only of words that stand in
many sessions, so that it learns how people settle things and not what their projects are about.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evals.data import data_folder
from smara.decisions.assemble import SURE
from smara.decisions.utterances import (
    WORD_MARKS,
    SpokenTurn,
    count_signs,
    read_utterances,
    signs,
)

Numbers = npt.NDArray[np.float64]
WEIGHTS = Path(__file__).parents[1] / "src/smara/decisions/weights.json"
TALKS = Path(__file__).parent / "decision_training"
_STRENGTH = 3.0
"""How strongly the weights of facts are drawn to the former ones, or to 0."""
_STRENGTH_OF_WORDS = 8.0
_DESIGNED, _STRENGTH_OF_DESIGN = ("ever", "ever at once", "oblige", "first"), 1_000.0
"""Signs that the writers of invented sessions were asked to use sparingly in rules and often in
noise, and the place of a rule in a story: how often they stand there tells nothing, so their
weights stay near the former ones."""
_LEAST_SPREAD = 0.15
"""A fact that is rarer than others is not drawn less."""
_LEAST_SESSIONS = 8
"""In how many sessions a word has to stand."""
_FOLDS = 8
_LEAST_WEIGHT = 0.02
_LEAST_LEVEL = 1.5
_REAL = 1.5
"""How much a real sentence counts beside an invented one."""
_UNSURE = {0.5: 0.3, 1.0: 0.3, 1.5: 0.5, 2.0: 0.8}
"""How much a label counts that a reader was not sure of, or two readers did not agree on."""


class Example(NamedTuple):
    """A sentence: whether it decides something, and what it is held out with."""

    source: str
    fold: str
    session: str
    is_deciding: bool
    facts: dict[str, float]
    weight: float


def main(arguments: list[str]) -> int:
    """Train both tables, print what they are worth, and write them."""
    examples = [*_talks(), *_development(), *_said()]
    for path in sorted((TALKS / "work").glob("*.jsonl")):
        examples += _labelled(path, "work")
    for name in arguments:
        examples += _labelled(Path(name), "real")
    tables = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    former = tables["any"]
    for name, sources in (
        ("work", ("real", "work", "development", "said")),
        ("talk", ("talk", "development")),
    ):
        chosen = [each for each in examples if each.source in sources]
        if (name == "work") != bool(arguments):
            continue
        prior = former if name == "work" else {}
        facts = sorted(each for each in chosen[0].facts if each[0] not in WORD_MARKS)
        words = sorted({*_words(chosen), *_word_names(prior)}) if name == "work" else []
        table = np.array([[each.facts[fact] for fact in facts] for each in chosen])
        columns = {word: number for number, word in enumerate(words)}
        spoken = [
            np.array([columns[word] for word in each.facts if word in columns], np.intp)
            for each in chosen
        ]
        truth = np.array([float(each.is_deciding) for each in chosen])
        weights = np.array([each.weight for each in chosen])
        start = np.array([prior.get(key, 0.0) for key in ("start", *facts, *words)])
        strengths = np.array(
            [
                0.01,
                *(
                    _STRENGTH_OF_DESIGN if name == "work" and fact in _DESIGNED else _STRENGTH
                    for fact in facts
                ),
                *(
                    _STRENGTH_OF_DESIGN if _is_designed(word) else _STRENGTH_OF_WORDS
                    for word in words
                ),
            ]
        )
        listed = sorted({each.fold for each in chosen})
        folds = np.array([listed.index(each.fold) % _FOLDS for each in chosen])
        guesses = np.zeros(len(chosen))
        for fold in range(_FOLDS):
            held = folds == fold
            rest = Rows(table[~held], [spoken[row] for row in np.flatnonzero(~held)], len(words))
            found = _fit(rest, truth[~held], weights[~held], start, strengths)
            here = Rows(table[held], [spoken[row] for row in np.flatnonzero(held)], len(words))
            guesses[held] = 1 / (1 + np.exp(-here.dot(found)))
        for source in sources:
            here = np.array([each.source == source for each in chosen])
            if here.any():
                area = _area(truth[here], guesses[here])
                kept = here & (guesses >= SURE)
                share = f"{truth[kept].mean():.2f} of {kept.sum()}" if kept.any() else "none"
                line = f"{name}: {source}: {here.sum()} sentences, area under the curve {area:.3f},"
                recall = truth[kept].sum() / truth[here].sum()
                sys.stdout.write(f"{line} {share} sure ones right, {recall:.2f} of all found\n")
        found = _fit(Rows(table, spoken, len(words)), truth, weights, start, strengths)
        first, *others = (round(float(each), 3) for each in found)
        pairs = zip((*facts, *words), others, strict=True)
        tables[name] = {"start": first} | {
            key: weight
            for key, weight in pairs
            if key not in columns or abs(weight) >= _LEAST_WEIGHT
        }
        tables["sentences"][name] = len(chosen)
    text = json.dumps(tables, indent=0, sort_keys=True, ensure_ascii=False)
    WEIGHTS.write_text(text + "\n", encoding="utf-8")
    return 0


def _words(examples: Iterable[Example]) -> set[str]:
    """Return the words that stand in many sessions."""
    places: dict[str, set[str]] = {}
    for each in examples:
        for name in _word_names(each.facts):
            places.setdefault(name, set()).add(each.session)
    return {word for word, sessions in places.items() if len(sessions) >= _LEAST_SESSIONS}


def _is_designed(word: str) -> bool:
    """Return True for a word of the signs that writers were told about."""
    return any(count_signs(word.lstrip(WORD_MARKS), name) for name in _DESIGNED if name in signs())


def _word_names(facts: Iterable[str]) -> Iterator[str]:
    return (name for name in facts if name[0] in WORD_MARKS)


class Rows:
    """Examples as rows of numbers: 1, the facts, and for each word whether it is there."""

    def __init__(self, table: Numbers, words: list[npt.NDArray[np.intp]], width: int) -> None:
        self.table = np.c_[np.ones(len(table)), table]
        self.counts = np.array([len(each) for each in words])
        self.words = np.concatenate(words) if words else np.zeros(0, np.intp)
        self.rows = np.repeat(np.arange(len(words)), self.counts)
        self.width = width

    def dot(self, found: Numbers) -> Numbers:
        """Return the sum of each row's weights."""
        facts = self.table.shape[1]
        spoken = np.bincount(self.rows, found[facts:][self.words], len(self.table))
        result: Numbers = self.table @ found[:facts] + spoken
        return result

    def back(self, values: Numbers, power: int = 1) -> Numbers:
        """Return the sum over the rows for each column, given a number for each row."""
        spoken = np.bincount(self.words, values[self.rows], self.width)
        return np.concatenate([(self.table**power).T @ values, spoken])


def _fit(
    rows: Rows, truth: Numbers, weights: Numbers, prior: Numbers, strengths: Numbers
) -> Numbers:
    """Return the start and the weights of a logistic regression, drawn to a prior.

    Newton's method; its steps are solved by conjugate gradients.
    """
    facts = rows.table[:, 1:]
    mean, spread = facts.mean(0), np.maximum(facts.std(0), _LEAST_SPREAD)
    last = 1 + facts.shape[1]
    scaled = copy(rows)
    scaled.table = np.c_[np.ones(len(facts)), (facts - mean) / spread]
    drawn = prior.copy()
    drawn[0] += prior[1:last] @ mean
    drawn[1:last] *= spread

    def loss(at: Numbers) -> float:
        total = scaled.dot(at)
        misses = weights @ (np.logaddexp(0, total) - truth * total)
        return float(misses + strengths @ (at - drawn) ** 2 / 2)

    found = drawn.copy()
    for _ in range(20):
        guess = 1 / (1 + np.exp(-np.clip(scaled.dot(found), -30, 30)))
        curve = weights * (guess * (1 - guess) + 1e-6)
        slope = scaled.back(weights * (truth - guess)) - strengths * (found - drawn)
        step = _solve(scaled, curve, strengths, slope)
        before = loss(found)
        while loss(found + step) > before and np.abs(step).max() > 1e-4:
            step /= 2
        found += step
        if np.abs(step).max() < 1e-3:
            break
    found[1:last] /= spread
    found[0] -= found[1:last] @ mean
    return found


def _solve(rows: Rows, curve: Numbers, strengths: Numbers, slope: Numbers) -> Numbers:
    """Return the step of Newton's method without its matrix."""
    diagonal = rows.back(curve, power=2) + strengths
    step = np.zeros_like(slope)
    rest = slope.copy()
    way = rest / diagonal
    size = float(rest @ way)
    for _ in range(120):
        moved = rows.back(curve * rows.dot(way)) + strengths * way
        length = size / float(way @ moved)
        step += length * way
        rest -= length * moved
        near = rest / diagonal
        size, former = float(rest @ near), size
        if size < 1e-7:
            break
        way = near + (size / former) * way
    return step


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
                    fold = f"talk {number % 12}"
                    yield Example("talk", fold, fold, is_gold, each.facts, 1.0)


def _development() -> Iterator[Example]:
    """The chats of the development set: all that is said in reply decides, decoys do not."""
    for task in _lines("tasks"):
        for chat in task.get("chats", ()):
            for each in read_utterances(_turns(chat)):
                if each.turn:
                    is_deciding = not each.facts["question"]
                    fold = task["task_id"].split("-")[1]
                    yield Example("development", fold, fold, is_deciding, each.facts, 0.5)
    for number, decoy in enumerate(_lines("decoys")):
        fold = f"decoy {number % 10}"
        for each in read_utterances(_turns(decoy["turns"])):
            yield Example("development", fold, fold, False, each.facts, 1.0)


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
                fold = f"said {number % 12}"
                yield Example("said", fold, fold, mark == "+", each.facts, 2.0)


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(data_folder() / "decisions" / f"{name}.jsonl.gz", "rt") as file:
        yield from map(json.loads, file)


def _labelled(path: Path, source: str) -> Iterator[Example]:
    """Sentences of labelled sessions; what has no label is wanted by no later session."""
    for line in path.read_text(encoding="utf-8").splitlines():
        session = json.loads(line)
        turns, places = _merged(session["turns"])
        labels: dict[int, list[tuple[str, float]]] = {}
        for each in session["labels"]:
            level = float(each.get("level", 3.0))
            labels.setdefault(places[each["turn"]], []).append((each["sentence"], level))
        fold = session["project"] if source == "real" else path.stem
        for sentence in read_utterances(turns):
            level = _level(sentence.text, labels.get(sentence.turn, ()))
            weight = _UNSURE.get(level, 1.0) * (_REAL if source == "real" else 1.0)
            is_deciding = level >= _LEAST_LEVEL
            yield Example(source, fold, session["id"], is_deciding, sentence.facts, weight)


def _level(text: str, labels: Iterable[tuple[str, float]]) -> float:
    """Return the level of the label that a sentence has, or is most of; 0 for none."""
    words = set(text.split())
    found = [
        level
        for label, level in labels
        if text in label
        or " ".join(label.split()) in text
        or len(words & set(label.split())) >= 0.5 * len(words | set(label.split()))
    ]
    return max(found, default=0.0)


def _merged(raw: list[dict[str, Any]]) -> tuple[list[SpokenTurn], dict[int, int]]:
    """Return turns, those of an agent that follow each other as one, and where each went."""
    turns: list[SpokenTurn] = []
    places: dict[int, int] = {}
    for number, each in enumerate(raw):
        (turn,) = _turns([each])
        if turn.speaker == "agent" and turns and turns[-1].speaker == "agent":
            last = turns.pop()
            turn = turn._replace(
                text=f"{last.text}\n{turn.text}",
                calls=last.calls + turn.calls,
                commands=last.commands + turn.commands,
                files=last.files + turn.files,
            )
        turns.append(turn)
        places[number] = len(turns) - 1
    return turns, places


def _turns(raw: Iterable[dict[str, Any]]) -> list[SpokenTurn]:
    return [
        SpokenTurn(
            "person" if each["role"] == "user" else "agent",
            each["text"],
            calls=each.get("calls", 0),
            files=tuple(each.get("files", ())),
            commands=tuple(each.get("commands", ())),
            is_form=each.get("form", False),
        )
        for each in raw
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
