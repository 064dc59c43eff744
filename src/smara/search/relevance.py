"""Judge how relevant a text is, on one scale for all answers.

A ranking only orders: in any store something is nearest to any question. Relevance is a probability
that the text belongs to a question that has an answer here, the same in every answer, source and
database. A logistic model reads five facts: how well the words match, which share of the query's
words the text holds, how near its meaning is, which share of the query no text of the store
holds, and which share of its names. The weights come from ``python -m evals.nothing_found``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from smara.core.dates import is_date_word
from smara.search.bm25 import rarity
from smara.search.query import STOP_WORDS, Query, QueryTerm
from smara.search.weights import WEIGHTS, RelevanceWeights

_CALIBRATED = "wordllama-l2-256"
"""The model whose cosines the weights were measured with."""
_USUAL_COSINE, _USUAL_DEVIATION = 0.28, 0.094
"""Its cosines among the candidates of a question; those of another model are brought to them."""
_FEWEST_COSINES = 20
_ENOUGH_BIGRAMS = 0.4
"""A sentence without spaces has bigrams across its words; so many of them are all of it."""
_FEW_TEXTS = 100
_LONGEST_QUESTION = 20
"""What has more words is a pasted text."""
_LACKS = 0.65
"""A name of which more is unknown stands nowhere: ``schema`` is not ``LoginSchema``."""
_NAMES = ("identifier", "path")


class _Word(NamedTuple):
    """One word of a query: its weight, and the terms that stand for it."""

    weight: float
    terms: tuple[QueryTerm, ...]
    is_name: bool

    def coverage(self, terms: Collection[str]) -> float:
        """Return how much of the word is among terms.

        Of ``LoginSchema`` a text with ``schema`` alone holds 0.6 times 6 of 11 letters.
        """
        present = [term for term in self.terms if term.text in terms]
        bigrams = sum(term.kind == "cjk" for term in self.terms)
        if bigrams:
            return min(1.0, len(present) / max(1.0, _ENOUGH_BIGRAMS * bigrams))
        letters = sum(len(term.text) for term in self.terms if term.kind == "part")
        parts = sum(len(term.text) for term in present if term.kind == "part")
        whole = [term.closeness for term in present if term.kind != "part" or term.closeness < 1]
        return max([0.6 * parts / letters if letters else 0.0, *whole])


class Relevance:
    """The relevance of texts to one query, by words and meaning."""

    def __init__(
        self,
        query: Query,
        frequencies: Mapping[str, int],
        total: int,
        weights: RelevanceWeights = WEIGHTS.relevance,
    ) -> None:
        self._words = _words(query, frequencies, total)
        self._total = math.fsum(word.weight for word in self._words) or 1.0
        # No text holds all words of a long question, and of a pasted log hardly a few.
        asks = len(self._words) <= _LONGEST_QUESTION
        most = max((word.weight for word in self._words), default=0.0)
        self._enough = min(self._total, (6 if asks else 3) * most) / self._total
        self._shares: dict[frozenset[str], float] = {}
        self._scale = (0.0, 1.0)
        # A term that was not looked up, for lack of room or of time, is not unknown.
        present = frozenset([text for text in query.texts if frequencies.get(text, 1)])
        # A pasted log names much that nobody said.
        unknown = [(word, 1 - word.coverage(present)) for word in self._words if asks]
        # A word that ten messages do not hold says nothing; one that a thousand lack says much.
        self._sure = total / (total + _FEW_TEXTS)
        self.unknown = (
            self._sure * math.fsum(word.weight * lack for word, lack in unknown) / self._total
        )
        """The share of the query that nothing here holds, less among few texts."""
        names = [lack > _LACKS for word, lack in unknown if word.is_name]
        self.unknown_names = sum(names) / max(len(names), 1)
        """The share of its names that stand nowhere here."""
        self._by_words, self._with_meaning = (
            (row.start + row.unknown * self.unknown + row.unknown_names * self.unknown_names, row)
            for row in (weights.words_alone, weights.with_meaning)
        )

    def calibrate(self, model_id: str, cosines: Sequence[float]) -> None:
        """Bring the cosines of another model to the scale of the weights."""
        if model_id == _CALIBRATED or len(cosines) < _FEWEST_COSINES:
            return
        mean = math.fsum(cosines) / len(cosines)
        deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in cosines) / len(cosines))
        factor = _USUAL_DEVIATION / max(deviation, 1e-6)
        self._scale = (_USUAL_COSINE - factor * mean, factor)

    def rate(self, terms: Iterable[str], words: float, cosine: float | None) -> float:
        """Return the relevance of a text from 0 to 1.

        Args:
            terms: The terms of the query that it, or what stands beside it, holds.
            words: Its score by words; 1 for a usual text that holds every word once.
            cosine: How near its meaning is; None where nothing is known of it.
        """
        coverage, share = self.coverage(terms), min(max(words / self._enough, 0.0), 1.0)
        start, row = self._by_words
        found = start + row.words * share + row.coverage * coverage
        if cosine is not None:
            start, row = self._with_meaning
            near = max(0.0, self._scale[0] + self._scale[1] * cosine)
            both = start + row.words * share + row.coverage * coverage + row.cosine * near
            # What holds every word is an answer, whatever its meaning is near to; and the weights
            # were measured in stores of hundreds of texts, so among a few the better side counts.
            doubt = 1.0 if coverage > 0.99 else 1 - self._sure
            found = both + doubt * max(0.0, found - both)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, found))))

    def coverage(self, terms: Iterable[str]) -> float:
        """Return the share of terms among those that a text can hold."""
        return min(1.0, self.share(terms) / self._enough)

    def share(self, terms: Iterable[str]) -> float:
        """Return the share of the query, by weight, that terms stand for."""
        key = frozenset(terms)
        if key not in self._shares:
            weight = math.fsum(word.weight * word.coverage(key) for word in self._words)
            self._shares[key] = weight / self._total
        return self._shares[key]


def select(relevances: Sequence[float], weights: RelevanceWeights) -> list[tuple[int, float]]:
    """Return the places of hits that are relevant enough, with their scores.

    The scores never rise from one hit to the next: what ranks higher is at least as relevant as
    what ranks below it. If no hit reaches the bound, there are none.

    >>> select([0.4, 0.01, 0.7, 0.2, 0.02], RelevanceWeights())
    [(0, 0.7), (2, 0.7), (3, 0.2)]
    >>> select([0.03, 0.02], RelevanceWeights())
    []
    """
    most = max(relevances, default=0.0)
    found, best = list[tuple[int, float]](), 0.0
    for place in reversed(range(len(relevances))):
        best = max(best, relevances[place])
        if relevances[place] >= max(weights.least, weights.share * most):
            found.append((place, best))
    return found[::-1] if most >= weights.bound else []


def _words(query: Query, frequencies: Mapping[str, int], total: int) -> list[_Word]:
    """Return the words of a query; a date that was understood is looked up by its time."""
    groups: dict[int, list[QueryTerm]] = {}
    for term in query.telling:
        groups.setdefault(term.group, []).append(term)
    if query.period is not None:
        undated = {no: each for no, each in groups.items() if not is_date_word(each[0].word)}
        groups = undated or groups
    names = _capitalized(query.text)
    # Where most words have capitals, as in a title or in German, they tell no name.
    if 2 * sum(each[0].word in names for each in groups.values()) > max(len(groups), 2):
        names = frozenset()
    found = []
    for terms in groups.values():
        first = terms[0]
        counts = [frequencies.get(each.text, 0) for each in terms if each.kind == first.kind]
        share = WEIGHTS.message_words.weak_weight if first.is_weak else 1.0
        count = max(counts) if first.kind == "cjk" else counts[0]
        is_name = first.word in names or first.kind in _NAMES
        found.append(
            _Word(share * rarity(count, max(total, 2 * _FEW_TEXTS)), tuple(terms), is_name)
        )
    return found


def _capitalized(text: str) -> frozenset[str]:
    """Return the words with a capital that do not begin a sentence."""
    tokens = text[:1_000].split()
    return frozenset(
        [
            token.strip("\"'“”‘’()[]{}.,;:!?…")
            for before, token in pairwise(tokens)
            if not before.endswith((".", "!", "?", ":"))
            and token.lstrip("\"'“‘([{")[:1].isupper()
            and token.lower() not in STOP_WORDS
        ]
    )
