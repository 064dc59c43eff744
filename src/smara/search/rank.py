"""Rank messages and threads by BM25, with reasons.

Pure functions over values, so that SQLite and PostgreSQL rank alike. A message scores by its own
words and, at a discount, by words of the two messages before and after it. A thread adds up what
its messages say about each term. Reading the texts costs the time: about a microsecond for each
term and thousand characters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

from smara.core.startup.record import dataclass, field
from smara.search.bm25 import length_norm, rarity, term_scores
from smara.search.query import Query
from smara.search.weights import WEIGHTS, Weights

# The places around a message that say something about it, the nearer first.
AROUND = (-1, 1, -2, 2)
PLACE_BITS = 32
# So many terms of a row of code are what stands first.
_FIRST_PROSE, _FIRST_CODE = 12, 6
# Of so many candidates or more four fifths must be code; in a talk about code what stands first
# tells nothing.
_FEWEST_OF_CODE = 20
_MOST_MATCHES, _MOST_NEAR = 4, 2
_PLACES = (
    (-1, "in the message before"),
    (1, "in the message after"),
    (-2, "two messages before"),
    (2, "two messages after"),
)
_DAY_MS = 86_400_000
_NOTHING = (None,) * len(AROUND)


class MessageCandidate(NamedTuple):
    """One indexed row that matches. Times are milliseconds since the epoch."""

    no: int
    thread_no: int
    seq: int
    role: str
    created_at: int
    prose: str
    code: str
    length: int
    around: tuple[int | None, ...] = ()
    """How many terms each of the messages around it has, ``None`` where there is none."""

    @property
    def place(self) -> int:
        """Thread and place in one number, to which a step is added."""
        return (self.thread_no << PLACE_BITS) + self.seq

    @property
    def is_code(self) -> bool:
        """True if a tenth of the row's terms are code."""
        return bool(self.code) and 10 * (self.code.count(" ") + 1) >= max(1, self.length)

    def holds(self, needle: str) -> bool:
        """Return True if spaced terms stand in order in the row."""
        return needle in f" {self.prose} " or (bool(self.code) and needle in f" {self.code} ")


@dataclass(frozen=True, slots=True)
class Stats:
    """The size of the index, and how common each term is."""

    messages: int
    threads: int
    average_length: float
    frequencies: Mapping[str, int]


@dataclass(slots=True, eq=False)
class TermEvidence:
    """One row's weight of each term, by number."""

    row: MessageCandidate
    counts: dict[int, float] = field(default_factory=dict, init=False)
    in_code: list[int] = field(default_factory=list, init=False)


class RowWords(NamedTuple):
    """The evidence of words for one row."""

    score: float
    """BM25 over the row and what stands around it."""
    own: float
    """BM25 of the row alone."""
    coverage: float
    """The share of the query's words, by weight, that it holds."""
    near: float
    """The share that only what stands around it holds."""
    in_code: float = 0.0
    """How much of what it holds stands in code, as a name or a path."""


Rated = tuple[float, TermEvidence]


@dataclass(frozen=True, slots=True)
class MessageScore:
    """One row of the answer; the best scores 1.

    ``no`` is a row number, or that of a thread.

    ``words`` does not depend on the other rows: it is 1 for a message of usual length that
    holds every word of the query once.
    """

    no: int
    score: float
    why: tuple[str, ...]
    words: float = 0.0


class TermWeights:
    """A query's terms and their weights in this index."""

    def __init__(self, query: Query, stats: Stats, weights: Weights) -> None:
        self._weights = weights.messages
        self.terms = query.telling
        self.needles = [
            (number, f" {term.text}" if term.is_prefix else f" {term.text} ")
            for number, term in enumerate(self.terms)
        ]
        words = weights.message_words
        self.shares = [
            (words.part_weight if term.kind == "part" else 1.0)
            * term.closeness
            * (words.weak_weight if term.is_weak else 1.0)
            for term in self.terms
        ]
        self.worths = [
            share * rarity(stats.frequencies.get(term.text, 0), stats.messages)
            for term, share in zip(self.terms, self.shares, strict=True)
        ]
        self.pairs = [
            (first, f" {self.terms[first].text} {self.terms[first + 1].text} ")
            for first in range(len(self.terms) - 1)
            if not (self.terms[first].is_prefix or self.terms[first + 1].is_prefix)
        ]
        self.phrases = query.phrases
        # Guesses stand for one another, so they are not added up over neighbors.
        self.guesses = frozenset(
            [number for number, term in enumerate(self.terms) if term.closeness < 1.0]
        )

    def read(self, rows: Iterable[MessageCandidate]) -> list[TermEvidence]:
        """Return the evidence of each row.

        In code, what stands first counts more."""
        found = [TermEvidence(row) for row in rows]
        self._count([f" {each.row.prose} " for each in found], found)
        named = [each for each in found if each.row.code]
        self._count([f" {each.row.code} " for each in named], named, is_code=True)
        coded = [each for each in found if each.row.is_code]
        if len(found) >= _FEWEST_OF_CODE and len(coded) >= 0.8 * len(found):
            for each in coded:
                self._add_first(each, self._weights.first_count)
        return found

    def _count(self, texts: list[str], evidence: list[TermEvidence], is_code: bool = False) -> None:
        """Add what texts say of each term: term by term, since most rows have few of them."""
        for number, needle in self.needles:
            for each, count in zip(evidence, map(str.count, texts, repeat(needle)), strict=True):
                if count:
                    each.counts[number] = each.counts.get(number, 0.0) + count
                    if is_code:
                        each.in_code.append(number)

    def _add_first(self, each: TermEvidence, first_count: float) -> None:
        """Count again what stands first in code: the signature and its description."""
        row, counts = each.row, each.counts
        prose = f" {' '.join(row.prose.split(' ', _FIRST_PROSE)[:_FIRST_PROSE])} "
        code = f" {' '.join(row.code.split(' ', _FIRST_CODE)[:_FIRST_CODE])} "
        for number, needle in self.needles if counts else ():
            if number in counts:
                counts[number] += first_count * ((needle in prose) + (needle in code))

    def thread_worths(self, evidence: list[TermEvidence], stats: Stats) -> list[float]:
        """Return term weights for a thread, by rarity among threads.

        The rarity is estimated from the candidates. A term in 300 messages, of which 100 are
        candidates and stand in 20 threads, is taken to stand in 60 threads. Where every match is a
        candidate this is exact.
        """
        rows = [0] * len(self.terms)
        threads: list[set[int]] = [set() for _ in self.terms]
        for each in evidence:
            for number in each.counts:
                rows[number] += 1
                threads[number].add(each.row.thread_no)
        worths = []
        for number, term in enumerate(self.terms):
            scale = stats.frequencies.get(term.text, 0) / rows[number] if rows[number] else 1.0
            estimate = round(len(threads[number]) * max(1.0, scale))
            worths.append(self.shares[number] * rarity(min(estimate, stats.threads), stats.threads))
        return worths


def rank_messages(
    query: Query,
    candidates: Sequence[MessageCandidate],
    stats: Stats,
    now_ms: int,
    weights: Weights = WEIGHTS,
    limit: int | None = None,
) -> list[MessageScore]:
    """Return the candidates in order, best first.

    Candidates lend their words to each other. Of the messages around them that hold no word of the
    query the lengths count: short answers around a match keep it close to its context.
    """
    ranking = Ranking(query, candidates, stats, now_ms=now_ms, weights=weights)
    rated = sorted(ranking.rated, key=order)[:limit]
    best = rated[0][0] if rated else 1.0
    return [
        MessageScore(each.row.no, score / best, ranking.why(each), words=score / ranking.ideal)
        for score, each in rated
    ]


def order(rated: Rated) -> tuple[float, int, int]:
    """Return the sort key: best first.

    Of equals the newer, then the later row.
    """
    score, each = rated
    return (-score, -each.row.created_at, -each.row.no)


class Ranking:
    """One query over one set of rows."""

    def __init__(
        self,
        query: Query,
        candidates: Sequence[MessageCandidate],
        stats: Stats,
        now_ms: int,
        weights: Weights = WEIGHTS,
    ) -> None:
        self._words = weights.message_words
        self._weights = weights.messages
        self.period = query.period
        self._now_ms = now_ms
        self._stats = stats
        self.terms = TermWeights(query, stats, weights)
        self.evidence = self.terms.read(candidates)
        # Of a message in several pieces, the piece that says most.
        self._context: dict[int, TermEvidence] = {}
        for each in self.evidence:
            place = each.row.place
            other = self._context.setdefault(place, each)
            if other is not each and (len(each.counts), -each.row.no) > (
                len(other.counts),
                -other.row.no,
            ):
                self._context[place] = each
        near, far = self._weights.near_weight, self._weights.far_weight
        self._places = tuple([(near if abs(step) == 1 else far, step) for step in AROUND])
        self._usual_length = max(stats.average_length, 1.0)
        self.ideal = sum(self.terms.worths) or 1.0
        """The score of a message of usual length that holds every word of the query once."""

    @cached_property
    def rated(self) -> list[Rated]:
        """The score of each row by its words.

        Rows without any are left out.
        """
        return [
            (words.score, each)
            for words, each in zip(self.words, self.evidence, strict=True)
            if words.score > 0
        ]

    @cached_property
    def words(self) -> list[RowWords]:
        """The evidence of words for each row, in their order."""
        return [self._rate(each) for each in self.evidence]

    def rated_threads(self) -> dict[int, Rated]:
        """Return each thread's word score and best message."""
        threads: dict[int, list[Rated]] = {}
        for score, each in self.rated:
            threads.setdefault(each.row.thread_no, []).append((score, each))
        worths = self.terms.thread_worths(self.evidence, self._stats)
        rated: dict[int, Rated] = {}
        for thread_no, members in threads.items():
            members.sort(key=order)
            rated[thread_no] = (self._rate_thread(members, worths), members[0][1])
        return rated

    def terms_near(self, each: TermEvidence) -> frozenset[str]:
        """Return the terms of a row and of the messages around it."""
        numbers = set(each.counts)
        for step in AROUND:
            beside = self._context.get(each.row.place + step)
            numbers |= beside.counts.keys() if beside is not None else frozenset()
        return frozenset([self.terms.terms[number].text for number in numbers])

    def why(self, each: TermEvidence) -> tuple[str, ...]:
        """Return a row's reasons: matches, neighbors, then time."""
        terms, groups = self.terms, set[int]()
        matches: list[str] = []
        # One reason for each word of the query: a name rather than its parts.
        for number in sorted(
            each.counts, key=lambda no: (terms.terms[no].kind == "part", -terms.worths[no], no)
        ):
            term = terms.terms[number]
            if term.group not in groups:
                groups.add(term.group)
                name = " (name)" if number in each.in_code else ""
                matches.append(f"matches {term.shown}{name}")
        near: list[str] = []
        for step, place in _PLACES:
            beside = self._context.get(each.row.place + step)
            for number in sorted(beside.counts) if beside is not None else ():
                term = terms.terms[number]
                if term.group not in groups:
                    groups.add(term.group)
                    near.append(f"near: {term.shown} {place}")
        found = [*matches[:_MOST_MATCHES], *near[:_MOST_NEAR]]
        found += [
            f"phrase '{phrase.text}'" for phrase in terms.phrases if each.row.holds(phrase.needle)
        ]
        if self.period is not None and self.period.contains(each.row.created_at):
            found.append(f"from around {self.period.render()}")
        if each.row.created_at > self._now_ms - self._weights.half_life_days * _DAY_MS / 4:
            found.append("recent")
        return tuple(found)

    def _rate(self, each: TermEvidence) -> RowWords:
        """Return BM25 over a message and its surroundings; 0 without a term of its own."""
        counts, row = each.counts, each.row
        own, context, place, average = counts, self._context, row.place, self._usual_length
        length, usual, guesses = float(row.length), average, self.terms.guesses
        for (weight, step), silent in zip(self._places, row.around or _NOTHING, strict=True):
            beside = context.get(place + step)
            if beside is None:
                if silent is not None:
                    length += weight * silent
                    usual += weight * average
                continue
            length += weight * beside.row.length
            usual += weight * average
            if counts is own:
                counts = own.copy()
            # Only words the message lacks: of equal messages in a row none may gain by standing in
            # the middle.
            for number, count in beside.counts.items():
                if number not in own and number not in guesses:
                    counts[number] = counts.get(number, 0.0) + weight * count
        worths, k = self.terms.worths, self._words.saturation
        inside = sum([worths[number] for number in own])
        near = (
            sum([worths[number] for number in counts]) - inside if len(counts) > len(own) else 0.0
        )
        if not own:
            return RowWords(0.0, 0.0, 0.0, near / self.ideal)
        norm = length_norm(row.length, average, self._words)
        alone = sum(term_scores(own, worths, norm, saturation=k))
        norm = length_norm(length, usual, self._words)
        score = sum(term_scores(counts, worths, norm, saturation=k))
        if len(own) > 1:
            # Pairs of the query's words, and quoted phrases, that stand together in the message.
            weights = self._weights
            for first in self._pairs(each):
                score += weights.pair_weight * min(worths[first], worths[first + 1])
            quoted = sum([row.holds(phrase.needle) for phrase in self.terms.phrases])
            score += quoted * weights.phrase_weight * max(worths)
        score *= self._timeliness(row.created_at)
        in_code = sum([worths[number] for number in set(each.in_code)]) / (inside or 1.0)
        return RowWords(score, alone, inside / self.ideal, near / self.ideal, in_code)

    def _pairs(self, each: TermEvidence) -> list[int]:
        counts = each.counts
        return [
            first
            for first, needle in self.terms.pairs
            if first in counts and first + 1 in counts and each.row.holds(needle)
        ]

    def _rate_thread(self, members: list[Rated], worths: list[float]) -> float:
        """Return what the messages of a thread say together, plus a share of the best."""
        weights = self._weights
        totals: dict[int, float] = {}
        pairs: dict[int, float] = {}
        for _, each in members[: weights.most_messages_of_thread]:
            share = weights.thread_roles.get(each.row.role, 1.0)
            for number, count in each.counts.items():
                totals[number] = totals.get(number, 0.0) + share * count
            for first in self._pairs(each) if len(each.counts) > 1 else ():
                pairs[first] = pairs.get(first, 0.0) + share
        pair_worths = {
            first: weights.pair_weight * min(worths[first], worths[first + 1]) for first in pairs
        }
        # A thread has no usual length: the saturation alone holds repetition back.
        k = weights.thread_saturation
        score = sum(
            term_scores(totals, worths, k, saturation=k)
            + term_scores(pairs, pair_worths, k, saturation=k)
        )
        newest = max(each.row.created_at for _, each in members)
        best = max(
            [
                each * (1.0 if evidence.row.role == "user" else weights.best_answer)
                for each, evidence in members
            ]
        )
        return score * self._timeliness(newest) + weights.best_weight * best

    def _timeliness(self, created_at: int) -> float:
        """Return a factor of 1 or a little more, for recent rows and those of the query's time."""
        weights = self._weights
        age_days = max(0, self._now_ms - created_at) / _DAY_MS
        factor = 1 + weights.recency_weight * math.exp2(-age_days / weights.half_life_days)
        if self.period is not None and self.period.contains(created_at):
            factor *= 1 + weights.period_weight
        return factor
