"""Fuse word scores and vector similarity into one score.

The root of the word score relative to the best, plus the cosine in standard deviations of all
candidates' cosines (:class:`Scale`): a plain cosine would weigh differently for each query. The
order among messages is that of the learned model (``search/ranker.py``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from heapq import nlargest
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from smara.core.dates import Days
from smara.core.startup.record import dataclass
from smara.database.database import Session
from smara.database.fulltext import Within, no_of
from smara.search.models import SearchCandidate
from smara.search.rank import MessageScore, Ranking, TermEvidence
from smara.search.ranker import FACTS, describe, look_of, mix
from smara.search.relevance import Relevance
from smara.search.weights import FusionWeights

if TYPE_CHECKING:
    from smara.meaning.models import Vector
    from smara.meaning.query import Meaning, RowVectors

# How many rows are looked at because of their meaning.
NEAREST = 100
# The same when threads are ranked, where of these only the messages of users are used.
THREAD_NEAREST = 800
_CODE_ROWS = 20
_DAYS = FACTS.index("days")
# What moves a merit by less is not worth a word.
_LEAST_PART = 0.05
# However far its meaning: what holds a word of the query stays in the answer, at its end.
_LEAST = 1e-6


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
        weight = weights.code_meaning if candidate.kind == "code" else self.meaning_weight
        score = self.base(candidate.words, candidate.is_in_days)
        score += weight * self.spread.standard(cosine)
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
    is_in_days: bool
    why: tuple[str, ...]
    terms: frozenset[str]
    merit: float
    parts: tuple[tuple[str, float], ...]


class MessageFusion:
    """The candidates of one search, with words, cosines and neighbors."""

    def __init__(
        self,
        ranking: Ranking,
        close: Closeness,
        days: Days | None,
        text: str,
        weights: FusionWeights,
    ) -> None:
        self._ranking = ranking
        self.close = close
        self._days = days
        self._text = text
        self._floor = weights.floor
        self._quoted = weights.quoted
        best = nlargest(_CODE_ROWS, ranking.rated, key=lambda each: each[0])
        self.code_share = sum(each.row.is_code for _, each in best) / max(len(best), 1)
        """How many of the best rows by words are code."""

    def best(self, limit: int | None) -> list[FusedMessage]:
        """Return the best messages, each once, with reasons."""
        ranking, cosines = self._ranking, self.close.cosines
        rows, words, facts = [each.row for each in ranking.evidence], ranking.words, self._facts()
        weights = mix(look_of(rows, self.code_share))
        phrases, quoted = ranking.terms.phrases, self._quoted
        merits = [
            # Rounded, so that the order of additions cannot tell two databases apart.
            round(sum(map(mul, weights, each)), 9)
            + (quoted * sum([row.holds(each.needle) for each in phrases]) if phrases else 0.0)
            for row, each in zip(rows, facts, strict=True)
        ]
        places = [
            place
            for place, row in enumerate(rows)
            if words[place].score > 0 or cosines.get(row.no, -1.0) > self._floor
        ]
        places.sort(key=lambda place: (-merits[place], -rows[place].created_at, -rows[place].no))
        found: dict[int, FusedMessage] = {}
        for place in places:
            row, evidence = rows[place], ranking.evidence[place]
            message_no = no_of(row.no)
            if message_no in found:
                continue
            is_in_days = bool(facts[place][_DAYS])
            why = ranking.why(evidence) if words[place].score > 0 else ()
            if is_in_days and self._days is not None:
                why = (*why, f"from {self._days.render()}")
            parts = [(name, w * f) for name, w, f in zip(FACTS, weights, facts[place], strict=True)]
            found[message_no] = FusedMessage(
                message_no,
                words[place].score / ranking.ideal,
                cosines.get(row.no),
                is_in_days=is_in_days,
                why=why,
                terms=ranking.terms_near(evidence),
                merit=merits[place],
                parts=tuple([part for part in parts if abs(part[1]) >= _LEAST_PART]),
            )
            if len(found) == limit:
                break
        return list(found.values())

    def _facts(self) -> list[tuple[float, ...]]:
        """Return what the model knows of each row."""
        rows, cosines = [each.row for each in self._ranking.evidence], self.close.cosines
        spread = Spread.of(cosines.values())
        meaning = [spread.standard(cosines.get(row.no)) for row in rows]
        places = [row.place for row in rows]
        closest: dict[int, float] = {}  # of a message in several pieces
        for row, place, standard in zip(rows, places, meaning, strict=True):
            if row.no in cosines:
                closest[place] = max(standard, closest.get(place, standard))
        around = [
            max([closest[n] for n in (place - 1, place + 1) if n in closest], default=0.0)
            for place in places
        ]
        days, period = self._days, self._ranking.period
        times = [
            (
                days is not None and days.contains(row.created_at),
                period is not None and period.contains(row.created_at),
            )
            for row in rows
        ]
        return describe(self._text, rows, self._ranking.words, meaning, around, times)

    def count(self, relevance: Relevance, least: float) -> int:
        """Return how many messages are relevant by themselves."""
        texts = [term.text for term in self._ranking.terms.terms]
        ideal, cosines = self._ranking.ideal, self.close.first_cosines
        words = {each.row.no: score for score, each in self._ranking.rated}
        terms: dict[tuple[int, ...], frozenset[str]] = {}
        for each in self._ranking.evidence:
            numbers = tuple(each.counts)
            if numbers not in terms:
                terms[numbers] = frozenset([texts[number] for number in numbers])
        return len(
            {
                no_of(each.row.no)
                for each in self._ranking.evidence
                if relevance.rate(
                    terms[tuple(each.counts)],
                    words.get(each.row.no, 0.0) / ideal,
                    cosines.get(each.row.no),
                )
                >= least
            }
        )


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
            scale.base(rated[thread][0] if thread in rated else 0.0, thread in in_days)
            + weights.thread_meaning * scale.spread.standard(cosines.get(thread, lowest)),
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
        return scale.base(rated.get(row, 0.0)) + weights.thread_meaning * standard, row

    rows = [row for row in close.cosines if row in users]
    return sorted(rows, key=merit, reverse=True)[: weights.feedback_rows]
