"""Fuse word scores and vector similarity into one score.

The root of the word score relative to the best, plus the cosine in standard deviations of all
candidates' cosines (:func:`fuse`): a plain cosine would weigh differently for each query. Messages
are queried twice: the best of the first round move the query vector before the second.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from smara.core.dates import Days
from smara.database.database import Session
from smara.database.fulltext import Within, no_of
from smara.search.models import SearchCandidate
from smara.search.rank import MessageCandidate, MessageScore, Ranking, TermEvidence
from smara.search.relevance import Relevance
from smara.search.weights import FusionWeights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smara.database.vectors import Floats
    from smara.meaning.models import Vector
    from smara.meaning.query import Meaning, RowVectors

    Array = NDArray[Any]

NEAREST = 100
"""How many rows are looked at because of their meaning."""
THREAD_NEAREST = 800
"""The same when threads are ranked, where of these only the messages of users are used."""
_CODE_ROWS = 20
_LEAST = 1e-6
"""However far its meaning: what holds a word of the query stays in the answer, at its end."""

Score = TypeVar("Score", float, "Floats")


def fuse(
    words: Score, meaning: Score, near: Score, meaning_weight: float, near_weight: float
) -> Score:
    """Return the fused score of one candidate, or of many as arrays.

    The best by words, one deviation above the mean, with a weight of 0.17: 1.17.
    """
    score: Score = words + meaning_weight * meaning + near_weight * near
    return score


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean and the standard deviation of the candidates' cosines."""

    mean: float = 0.0
    deviation: float = 0.0

    @classmethod
    def of(cls, cosines: Collection[float]) -> Spread:
        """Return the spread of cosines; of fewer than two, none.

        >>> Spread.of([0.1, 0.3]).standard(0.4)
        2.0
        """
        count = len(cosines)
        if count < 2:
            return cls()
        mean = math.fsum(cosines) / count
        return cls(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in cosines) / count))

    def standard(self, cosine: float | None) -> float:
        """Return the deviations of a cosine above the mean, or 0."""
        if cosine is None or self.deviation < 1e-6:
            return 0.0
        return round((cosine - self.mean) / self.deviation, 9)

    def standards(self, cosines: Floats) -> Floats:
        """Return the same of many; -inf stands for an unknown cosine."""
        import numpy as np

        if self.deviation < 1e-6:
            return np.zeros_like(cosines)
        standard = np.round((cosines - self.mean) / self.deviation, 9)
        return np.where(np.isneginf(cosines), 0.0, standard)


class Scale:
    """The scale of one answer over all its candidates, whatever the source."""

    def __init__(
        self,
        best_words: float,
        cosines: Collection[float],
        weights: FusionWeights,
        code_share: float = 0.0,
    ) -> None:
        self.weights = weights
        self.spread = Spread.of(cosines)
        self.meaning_weight = weights.message_meaning + code_share * (
            weights.code_meaning - weights.message_meaning
        )
        self._best_words = best_words
        self._has_meaning = bool(cosines)

    def base(self, words: float, is_in_days: bool = False) -> float:
        """Return the score before meaning: the root of a share.

        The root lifts the middle, where meaning is to decide.

        >>> Scale(8.0, (), FusionWeights()).base(2.0)
        0.5
        """
        share = max(words, 0.0) / self._best_words if self._best_words > 0 else 0.0
        return math.sqrt(share) + (self.weights.days_bonus if is_in_days else 0.0)

    def rate(self, candidate: SearchCandidate) -> float:
        """Return the fused score; without meaning, words alone decide."""
        weights, cosine = self.weights, candidate.meaning
        if candidate.words <= 0 and (cosine is None or cosine <= weights.floor):
            return 0.0
        score = fuse(
            self.base(candidate.words, candidate.is_in_days),
            self.spread.standard(cosine),
            self.spread.standard(candidate.near),
            meaning_weight=weights.code_meaning
            if candidate.kind == "code"
            else self.meaning_weight,
            near_weight=weights.neighbor_meaning,
        )
        return max(score, _LEAST)

    def render(self) -> str:
        """Return one line for a person."""
        if not self._has_meaning:
            return "words alone"
        mean, deviation = self.spread.mean, self.spread.deviation
        weight = self.meaning_weight
        return f"words, and {weight:.2f} for each {deviation:.2f} of cosine above {mean:.2f}"


class Closeness:
    """The cosines of rows with a question, during one search."""

    def __init__(
        self,
        session: Session,
        meaning: Meaning | None,
        vector: Vector | None,
        within: Within,
        nearest: int = NEAREST,
    ) -> None:
        self._session = session
        self._meaning = meaning
        self._vector = vector if meaning is not None else None
        self._within = within
        self._nearest = nearest
        self._loaded: RowVectors | None = None
        self.cosines: dict[int, float] = {}
        self.first_cosines: dict[int, float] = {}
        """The cosines with the question as it was asked, before it was moved."""

    def nearest_besides(self, rows: Iterable[int]) -> list[int]:
        """Return the rows nearest to the question, besides the given ones."""
        if self._vector is None or self._meaning is None:
            return []
        there = set(rows)
        found = self._meaning.nearest(
            self._session, "message", self._vector, self._nearest, self._within
        )
        return [row for row, _ in found if row not in there]

    def look_up(self, rows: Sequence[int]) -> None:
        """Load the cosines of these rows."""
        if self._vector is not None and self._meaning is not None:
            self._loaded = self._meaning.load(self._session, "message", rows, self._vector)
            self.first_cosines = self.cosines = self._loaded.scores(self._vector)

    def ask_again(self, best: Sequence[int], share: float) -> None:
        """Move the question towards the best rows, and compute all cosines again."""
        if self._loaded is not None and self._vector is not None:
            moved = self._loaded.moved(self._vector, best, share)
            if moved is not None:
                self._vector = moved
                self.cosines = self._loaded.scores(moved)


class FusedMessage(NamedTuple):
    """One message on its way into the answer, by best piece."""

    message_no: int
    words: float
    cosine: float | None
    beside: float | None
    is_in_days: bool
    why: tuple[str, ...]
    first_cosine: float | None
    terms: frozenset[str]


class MessageFusion:
    """The candidates of one search, with words, cosines and neighbors."""

    def __init__(
        self,
        ranking: Ranking,
        rows: Sequence[MessageCandidate],
        close: Closeness,
        days: Days | None,
        weights: FusionWeights,
    ) -> None:
        self._ranking = ranking
        self._rows = list({each.no: each for each in rows}.values())
        self._words = {each.row.no: (score, each) for score, each in ranking.rated}
        self._evidence = {each.row.no: each for each in ranking.evidence}
        self._close = close
        self._days = days
        self._weights = weights
        self._is_in_days = [
            days is not None and days.contains(each.created_at) for each in self._rows
        ]
        best = nlargest(_CODE_ROWS, ranking.rated, key=lambda each: each[0])
        self.code_share = sum(each.row.is_code for _, each in best) / max(len(best), 1)
        """How many of the best rows by words are code."""

    def best(self, limit: int | None) -> list[FusedMessage]:
        """Return the best messages, each once, after a second round, with reasons."""
        if self._close.cosines:
            rows = [self._rows[place].no for place, _ in self._order()]
            self._close.ask_again(rows[: self._weights.feedback_rows], self._weights.feedback)
        found: dict[int, FusedMessage] = {}
        for place, beside in self._order():
            candidate = self._rows[place]
            message_no = no_of(candidate.no)
            if message_no in found:
                continue
            words, evidence = self._words.get(candidate.no, (0.0, None))
            why = self._ranking.why(evidence) if evidence is not None else ()
            if self._is_in_days[place] and self._days is not None:
                why = (*why, f"from {self._days.render()}")
            found[message_no] = FusedMessage(
                message_no,
                words / self._ranking.ideal,
                self._close.cosines.get(candidate.no),
                beside=beside,
                is_in_days=self._is_in_days[place],
                why=why,
                first_cosine=self._close.first_cosines.get(candidate.no),
                terms=self._ranking.terms_near(self._evidence[candidate.no]),
            )
            if len(found) == limit:
                break
        return list(found.values())

    @property
    def first_cosines(self) -> Collection[float]:
        """The cosines of all rows with the question as it was asked."""
        return self._close.first_cosines.values()

    def count(self, relevance: Relevance, least: float) -> int:
        """Return how many messages are relevant by themselves."""
        texts = [term.text for term in self._ranking.terms.terms]
        ideal, cosines = self._ranking.ideal, self._close.first_cosines
        terms: dict[tuple[int, ...], frozenset[str]] = {}
        for each in self._evidence.values():
            numbers = tuple(each.counts)
            if numbers not in terms:
                terms[numbers] = frozenset([texts[number] for number in numbers])
        return len(
            {
                no_of(no)
                for no, each in self._evidence.items()
                if relevance.rate(
                    terms[tuple(each.counts)],
                    self._words[no][0] / ideal if no in self._words else 0.0,
                    cosines.get(no),
                )
                >= least
            }
        )

    def _order(self) -> list[tuple[int, float | None]]:
        """Return the places of the rows, best first; of equals the newer.

        With each stands the cosine of the closer of its neighbors.
        """
        cosines = self._close.cosines
        scale = Scale(
            max((score for score, _ in self._words.values()), default=0.0),
            cosines.values(),
            self._weights,
            code_share=self.code_share,
        )
        base = [
            scale.base(self._words[row.no][0] if row.no in self._words else 0.0, is_in_days)
            for row, is_in_days in zip(self._rows, self._is_in_days, strict=True)
        ]
        if cosines:
            return self._by_meaning(scale, base)
        places = [place for place, row in enumerate(self._rows) if row.no in self._words]
        rows = self._rows
        places.sort(key=lambda place: (-base[place], -rows[place].created_at, -rows[place].no))
        return [(place, None) for place in places]

    def _by_meaning(self, scale: Scale, base: list[float]) -> list[tuple[int, float | None]]:
        import numpy as np

        unknown = -np.inf
        cosines = np.array([self._close.cosines.get(each.no, unknown) for each in self._rows])
        columns = self._columns
        closest = np.full(columns.messages + 1, unknown)
        np.maximum.at(closest, columns.of_row, cosines)  # of a message in several pieces
        closest[-1] = unknown
        beside = np.maximum(closest[columns.before], closest[columns.after])[columns.of_row]
        scores = fuse(
            np.array(base),
            scale.spread.standards(cosines),
            scale.spread.standards(beside),
            meaning_weight=scale.meaning_weight,
            near_weight=self._weights.neighbor_meaning,
        )
        answers = np.flatnonzero(columns.has_words | (cosines > self._weights.floor))
        keys = (columns.latest[answers], columns.newest[answers], -scores[answers])
        order = answers[np.lexsort(keys)]
        return [
            (place, None if cosine == unknown else cosine)
            for place, cosine in zip(order.tolist(), beside[order].tolist(), strict=True)
        ]

    @cached_property
    def _columns(self) -> _Columns:
        import numpy as np

        numbers: dict[int, int] = {}
        of_row = [numbers.setdefault(each.place, len(numbers)) for each in self._rows]
        return _Columns(
            np.array([each.no in self._words for each in self._rows]),
            np.array([-each.created_at for each in self._rows], dtype=np.int64),
            np.array([-each.no for each in self._rows], dtype=np.int64),
            messages=len(numbers),
            of_row=of_row,
            before=[numbers.get(place - 1, -1) for place in numbers],
            after=[numbers.get(place + 1, -1) for place in numbers],
        )


class _Columns(NamedTuple):
    """The rows as columns: their keys, their messages, and the messages around these."""

    has_words: Array
    newest: Array
    latest: Array
    messages: int
    of_row: list[int]
    before: list[int]
    after: list[int]


def rank_threads(
    ranking: Ranking, close: Closeness, days: Days | None, weights: FusionWeights, limit: int
) -> list[MessageScore]:
    """Return the best threads by words and the closest user message.

    The reasons are those of the best message of each thread.
    """
    if close.cosines:
        close.ask_again(_best_of_users(ranking, close, weights), weights.feedback)
    rated = ranking.rated_threads()
    evidence = {each.row.no: each for each in ranking.evidence}
    in_days = {
        each.row.thread_no
        for each in ranking.evidence
        if days is not None and days.contains(each.row.created_at)
    }
    closest: dict[int, tuple[float, TermEvidence]] = {}
    for row, cosine in close.cosines.items():
        each = evidence.get(row)
        if each is not None and each.row.role == "user":
            thread = each.row.thread_no
            if thread not in closest or cosine > closest[thread][0]:
                closest[thread] = (cosine, each)
    cosines = {thread: cosine for thread, (cosine, _) in closest.items()}
    lowest = min(cosines.values(), default=0.0)
    best = max((score for score, _ in rated.values()), default=0.0)
    scale = Scale(best, cosines.values(), weights)
    scores = {
        thread: max(
            _LEAST,
            fuse(
                scale.base(rated[thread][0] if thread in rated else 0.0, thread in in_days),
                scale.spread.standard(cosines.get(thread, lowest)),
                0.0,
                meaning_weight=weights.thread_meaning,
                near_weight=0.0,
            ),
        )
        for thread in rated.keys() | cosines.keys()
        if thread in rated or cosines[thread] > weights.floor
    }
    newest = {
        thread: (rated[thread] if thread in rated else closest[thread])[1].row.created_at
        for thread in scores
    }
    order = sorted(scores, key=lambda thread: (-scores[thread], -newest[thread], -thread))[:limit]
    return [
        MessageScore(
            thread,
            scores[thread] / scores[order[0]],
            ranking.why(rated[thread][1]) if thread in rated else ("close in meaning",),
        )
        for thread in order
    ]


def _best_of_users(ranking: Ranking, close: Closeness, weights: FusionWeights) -> list[int]:
    users = {each.row.no for each in ranking.evidence if each.row.role == "user"}
    rated = {each.row.no: score for score, each in ranking.rated if each.row.no in users}
    scale = Scale(max(rated.values(), default=0.0), close.cosines.values(), weights)

    def merit(row: int) -> tuple[float, int]:
        standard = scale.spread.standard(close.cosines[row])
        base = scale.base(rated.get(row, 0.0))
        return fuse(
            base, standard, 0.0, meaning_weight=weights.thread_meaning, near_weight=0.0
        ), row

    rows = [row for row in close.cosines if row in users]
    return sorted(rows, key=merit, reverse=True)[: weights.feedback_rows]
