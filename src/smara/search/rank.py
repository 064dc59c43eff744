"""Rank messages and threads by BM25, with reasons.

Pure functions over values, so that SQLite and PostgreSQL rank alike. A message scores by its own
words and, at a discount, by words of the two messages before and after it. A thread adds up what
its messages say about each term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from smara.core.dates import Period
from smara.search.evidence import (
    AROUND,
    DEFAULT_RANKING,
    Context,
    MessageCandidate,
    RankSettings,
    Stats,
    TermEvidence,
    TermWeights,
    by_place,
)
from smara.search.query import Query

_MOST_MATCHES = 4
_MOST_NEAR = 2
_PLACES = (
    (-1, "in the message before"),
    (1, "in the message after"),
    (-2, "two messages before"),
    (2, "two messages after"),
)


def reasons(
    terms: TermWeights, each: TermEvidence, context: Context, period: Period | None, is_recent: bool
) -> tuple[str, ...]:
    """The most telling matches first, then what stands near, then what time adds."""
    told: set[int] = set()
    found = [*_matches(terms, each, told), *_near(terms, each, context, told=told)]
    found += [f"phrase '{needle.strip()}'" for needle in terms.phrases if each.row.holds(needle)]
    if period is not None and period.contains(each.row.created_at):
        found.append(f"from around {period.render()}")
    if is_recent:
        found.append("recent")
    return tuple(found)


def _matches(terms: TermWeights, each: TermEvidence, told: set[int]) -> list[str]:
    """One reason for each word of the query: a name rather than its parts."""
    found: list[str] = []
    for number in sorted(
        each.counts, key=lambda no: (terms.terms[no].kind == "part", -terms.worths[no], no)
    ):
        term = terms.terms[number]
        if term.group in told:
            continue
        told.add(term.group)
        part = f"{term.text} of " if term.kind == "part" else ""
        found.append(f"matches {part}{term.word}{' (name)' if number in each.in_code else ''}")
    return found[:_MOST_MATCHES]


def _near(terms: TermWeights, each: TermEvidence, context: Context, told: set[int]) -> list[str]:
    """Words of the query that only the surroundings have."""
    found: list[str] = []
    for step, place in _PLACES:
        beside = context.get(each.row.place + step)
        for number in sorted(beside.counts) if beside is not None else ():
            term = terms.terms[number]
            if term.group not in told:
                told.add(term.group)
                found.append(f"near: {term.word} {place}")
    return found[:_MOST_NEAR]


_DAY_MS = 86_400_000
_NOTHING = (None,) * len(AROUND)


@dataclass(frozen=True, slots=True)
class MessageScore:
    """One row of the answer; the best has score 1. ``no`` is a row number, or that of a thread.

    ``words`` does not depend on the other rows: it is 1 for a message of usual length that
    holds every word of the query once.
    """

    no: int
    score: float
    why: tuple[str, ...]
    words: float = 0.0


def rank_messages(
    query: Query,
    candidates: Sequence[MessageCandidate],
    stats: Stats,
    now_ms: int,
    settings: RankSettings = DEFAULT_RANKING,
    limit: int | None = None,
) -> list[MessageScore]:
    """The candidates in order, best first.

    Candidates lend their words to each other. Of the messages around them that hold no word of the
    query the lengths count: short answers around a match keep it close to its context.
    """
    ranking = Ranking(query, candidates, stats, now_ms=now_ms, settings=settings)
    return ranking.scored(ranking.rated, limit)


def rank_threads(
    query: Query,
    candidates: Sequence[MessageCandidate],
    stats: Stats,
    now_ms: int,
    settings: RankSettings = DEFAULT_RANKING,
    limit: int | None = None,
) -> list[MessageScore]:
    """The threads of the candidates in order, best first; the reasons are those of their best
    messages.
    """
    ranking = Ranking(query, candidates, stats, now_ms=now_ms, settings=settings)
    rated = list(ranking.rated_threads(stats).values())
    return [
        MessageScore(each.row.thread_no, score, why)
        for score, each, why in ranking.answer(rated, limit)
    ]


Rated = tuple[float, TermEvidence]


def _order(rated: Rated) -> tuple[float, int, int]:
    """Best first; of equals the newer, then the later row, so that the order is always the same."""
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
        settings: RankSettings,
    ) -> None:
        self.settings = settings
        self.period = query.period
        self.now_ms = now_ms
        self.terms = TermWeights(query, stats, settings)
        self.found = self.terms.read(candidates, settings)
        self.context = by_place(self.found)
        near, far = settings.near_weight, settings.far_weight
        self.places = tuple([(near if abs(step) == 1 else far, step) for step in AROUND])
        self.usual_length = max(stats.average_length, 1.0)

    @property
    def ideal(self) -> float:
        """The score of a message of usual length that holds every word of the query once."""
        return sum(self.terms.worths) or 1.0

    @cached_property
    def rated(self) -> list[Rated]:
        """What the words of each row say of the query; rows without any are left out."""
        return [(score, each) for each in self.found if (score := self.rate(each)) > 0]

    def scored(self, rated: list[Rated], limit: int | None) -> list[MessageScore]:
        """The best of the rated in order, with reasons."""
        best = max((score for score, _ in rated), default=1.0)
        return [
            MessageScore(each.row.no, score, why, words=score * best / self.ideal)
            for score, each, why in self.answer(rated, limit)
        ]

    def rated_threads(self, stats: Stats) -> dict[int, Rated]:
        """What the words of each thread say, and its best message."""
        threads: dict[int, list[Rated]] = {}
        for score, each in self.rated:
            threads.setdefault(each.row.thread_no, []).append((score, each))
        worths = self.terms.thread_worths(self.found, stats)
        rated: dict[int, Rated] = {}
        for thread_no, members in threads.items():
            members.sort(key=_order)
            rated[thread_no] = (self.rate_thread(members, worths), members[0][1])
        return rated

    def why(self, each: TermEvidence) -> tuple[str, ...]:
        """Why a row is in the answer."""
        recent_after = self.now_ms - self.settings.half_life_days * _DAY_MS / 4
        return reasons(
            self.terms,
            each,
            self.context,
            period=self.period,
            is_recent=each.row.created_at > recent_after,
        )

    def rate(self, each: TermEvidence) -> float:
        """BM25 over a message and its surroundings; nothing for one that has no term of its own."""
        counts, row = each.counts, each.row
        if not counts:
            return 0.0
        own, context, place, average = counts, self.context, row.place, self.usual_length
        length, usual, guesses = float(row.length), average, self.terms.guesses
        for (weight, step), silent in zip(self.places, row.around or _NOTHING, strict=True):
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
        k, penalty, worths = (
            self.settings.saturation,
            self.settings.length_penalty,
            self.terms.worths,
        )
        held_back = k * (1 - penalty + penalty * length / usual)
        score = 0.0
        for number, count in counts.items():
            score += worths[number] * count * (k + 1) / (count + held_back)
        if len(own) > 1:
            score += self._side_by_side(each)
        return score * self._timeliness(row.created_at)

    def _side_by_side(self, each: TermEvidence) -> float:
        """What pairs of the query's words, and quoted phrases, add when they stand together in the
        message.
        """
        worths, bonus = self.terms.worths, 0.0
        for first in self._pairs(each):
            bonus += self.settings.pair_weight * min(worths[first], worths[first + 1])
        bonus *= self.settings.roles.get(each.row.role, 1.0)
        for needle in self.terms.phrases:
            if each.row.holds(needle):
                bonus += self.settings.phrase_weight * max(worths)
        return bonus

    def _pairs(self, each: TermEvidence) -> list[int]:
        counts = each.counts
        return [
            first
            for first, needle in self.terms.pairs
            if first in counts and first + 1 in counts and each.row.holds(needle)
        ]

    def rate_thread(self, members: list[Rated], worths: list[float]) -> float:
        """What the messages of a thread say together, and a share of what the best of them says."""
        settings = self.settings
        totals: dict[int, float] = {}
        pairs: dict[int, float] = {}
        for _, each in members[: settings.most_messages_of_thread]:
            role = each.row.role
            role_weight = settings.thread_roles.get(role, 1.0)
            share = role_weight / (settings.roles.get(role, 1.0) or 1.0)
            for number, count in each.counts.items():
                totals[number] = totals.get(number, 0.0) + share * count
            for first in self._pairs(each) if len(each.counts) > 1 else ():
                pairs[first] = pairs.get(first, 0.0) + role_weight
        k = settings.thread_saturation
        score = 0.0
        for number, total in totals.items():
            score += worths[number] * total * (k + 1) / (total + k)
        for first, total in pairs.items():
            score += (
                settings.pair_weight
                * min(worths[first], worths[first + 1])
                * total
                * (k + 1)
                / (total + k)
            )
        newest = max(each.row.created_at for _, each in members)
        return score * self._timeliness(newest) + settings.best_weight * members[0][0]

    def _timeliness(self, created_at: int) -> float:
        """A factor of 1 or a little more: for what is recent, and for what is of a time that the
        query names.
        """
        age_days = max(0, self.now_ms - created_at) / _DAY_MS
        factor = 1 + self.settings.recency_weight * math.exp2(
            -age_days / self.settings.half_life_days
        )
        if self.period is not None and self.period.contains(created_at):
            factor *= 1 + self.settings.period_weight
        return factor

    def answer(
        self, rated: list[Rated], limit: int | None
    ) -> list[tuple[float, TermEvidence, tuple[str, ...]]]:
        """The best of the rated in order, scores between 0 and 1, with reasons."""
        rated = sorted(rated, key=_order)[:limit]
        best = rated[0][0] if rated else 1.0
        return [(score / best, each, self.why(each)) for score, each in rated]
