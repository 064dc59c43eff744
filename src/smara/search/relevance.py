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
from smara.search.languages import STOP_WORDS, find_language
from smara.search.query import LONGEST_QUERY, Query, QueryTerm
from smara.search.weights import WEIGHTS, RelevanceWeights

# The model whose cosines the weights were measured with.
_CALIBRATED = "wordllama-l2-256"
# Its cosines among the candidates of a question; those of another model are brought to them.
_USUAL_COSINE, _USUAL_DEVIATION = 0.28, 0.094
_FEWEST_COSINES = 20
_FEW_TEXTS = 100
# What has more words is a pasted text.
_LONGEST_QUESTION = 20
_NAMES = ("identifier", "path")


class _Word(NamedTuple):
    """One word of a query: its weight, and the terms that stand for it."""

    weight: float
    terms: tuple[QueryTerm, ...]
    is_name: bool

    def coverage(self, terms: Collection[str], weights: RelevanceWeights) -> float:
        """Return how much of the word is among terms.

        ``login`` and ``schema`` are 0.6 of ``LoginSchema``; ``schema`` alone, in 6 of 11 letters,
        is 0.33.
        """
        present = [term for term in self.terms if term.text in terms]
        bigrams = sum(term.kind == "cjk" for term in self.terms)
        if bigrams:
            return min(1.0, len(present) / max(1.0, weights.enough_bigrams * bigrams))
        letters = sum(len(term.text) for term in self.terms if term.kind == "part")
        parts = sum(len(term.text) for term in present if term.kind == "part")
        whole = [term.closeness for term in present if term.kind != "part" or term.closeness < 1]
        return max([weights.parts * parts / letters if letters else 0.0, *whole])


class _Shares(NamedTuple):
    """The shares of a query that a text holds, and that it and the store lack.

    ``alone`` and ``beside`` are where the models of words alone and beside meaning start from.
    """

    coverage: float
    unknown: float
    unknown_names: float
    alone: float
    beside: float


class Relevance:
    """The relevance of texts to one query, by words and meaning."""

    def __init__(
        self,
        query: Query,
        frequencies: Mapping[str, int],
        total: int,
        weights: RelevanceWeights = WEIGHTS.relevance,
    ) -> None:
        language = find_language(query.text[:LONGEST_QUERY])
        self._words = _words(query, frequencies, total, language)
        self._total = math.fsum(word.weight for word in self._words) or 1.0
        # No text holds all words of a long question, and of a pasted log hardly a few.
        asks = len(self._words) <= _LONGEST_QUESTION
        most = max((word.weight for word in self._words), default=0.0)
        self._enough = min(self._total, (6 if asks else 3) * most) / self._total
        self._shares: dict[frozenset[str], _Shares] = {}
        self._scale = (-dict(weights.same_script).get(language or "", 0.0), 1.0)
        # A term that was not looked up, for lack of room or of time, is not unknown; and a pasted
        # log names much that was not said.
        present = frozenset([text for text in query.texts if frequencies.get(text, 1)])
        self._lacks = [1 - word.coverage(present, weights) if asks else 0.0 for word in self._words]
        self._names = sum(word.is_name for word in self._words) or 1
        # A word that ten messages do not hold says nothing; one that a thousand lack says much.
        self._sure = total / (total + _FEW_TEXTS)
        self._weights = weights

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
        shares, share = self.shares(terms), min(max(words / self._enough, 0.0), 1.0)
        coverage = min(1.0, shares.coverage / self._enough)
        row = self._weights.words_alone
        found = shares.alone + row.words * share + row.coverage * coverage
        if cosine is not None:
            row = self._weights.with_meaning
            near = max(0.0, self._scale[0] + self._scale[1] * cosine)
            both = shares.beside + row.words * share + row.coverage * coverage + row.cosine * near
            # What holds every word is an answer, whatever its meaning is near to; and the weights
            # were measured in stores of hundreds of texts, so among a few the better side counts.
            doubt = 1.0 if coverage > 0.99 else 1 - self._sure
            found = both + doubt * max(0.0, found - both)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, found))))

    def coverage(self, terms: Iterable[str]) -> float:
        """Return the share of terms among those that a text can hold."""
        return min(1.0, self.shares(terms).coverage / self._enough)

    def shares(self, terms: Iterable[str]) -> _Shares:
        """Return the shares of the query that a text holds and lacks.

        A name that stands nowhere whole is lacking in a text without most of its parts: neither
        ``login`` here nor ``schema`` there is ``LoginSchema``.
        """
        key = frozenset(terms)
        found = self._shares.get(key)
        if found is None:
            parts, least_parts = self._weights.parts, self._weights.least_parts
            coverage = lacking = names = 0.0
            for word, lack in zip(self._words, self._lacks, strict=True):
                covered = word.coverage(key, self._weights)
                if word.is_name and lack >= 1 - parts and covered < parts * least_parts:
                    covered, lack = 0.0, 1.0
                    names += 1
                coverage += word.weight * covered
                lacking += word.weight * lack
            unknown, unnamed = self._sure * lacking / self._total, names / self._names
            starts = [
                row.start + (row.unknown * unknown + row.unknown_names * unnamed)
                for row in (self._weights.words_alone, self._weights.with_meaning)
            ]
            found = self._shares[key] = _Shares(coverage / self._total, unknown, unnamed, *starts)
        return found


def select(relevances: Sequence[float], weights: RelevanceWeights) -> list[int]:
    """Return the places of the hits that are relevant enough.

    There are none if no hit reaches the bound.

    >>> select([0.4, 0.01, 0.7, 0.2, 0.02], RelevanceWeights())
    [0, 2, 3]
    >>> select([0.03, 0.02], RelevanceWeights())
    []
    """
    most = max(relevances, default=0.0)
    least = max(weights.least, weights.share * most)
    return [no for no, each in enumerate(relevances) if each >= least and most >= weights.bound]


def _words(
    query: Query, frequencies: Mapping[str, int], total: int, language: str | None
) -> list[_Word]:
    """Return the words of a query; a date that was understood is looked up by its time."""
    groups: dict[int, list[QueryTerm]] = {}
    for term in query.telling:
        groups.setdefault(term.group, []).append(term)
    if query.period is not None:
        undated = {no: each for no, each in groups.items() if not is_date_word(each[0].word)}
        groups = undated or groups
    # German nouns have capitals.
    names = frozenset() if language == "de" else _capitalized(query.text)
    # Where most words have capitals, as in a title, they tell no name.
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
