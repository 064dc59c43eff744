"""Count which query terms each candidate message holds, and where.

This part of the ranking reads texts, so it costs the time: about a microsecond for each term and
thousand characters. The weights of the message ranking stand here, each with its measured benefit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from smara.search.query import Query, QueryTerm


@dataclass(frozen=True, slots=True)
class RankSettings:
    """Every weight of the ranking. One setting serves all evaluation sets.

    Each comment says what another value would change. L is LoCoMo R@10, S is LongMemEval_S
    R@5, U is the union haystack R@10, C is CoSQA MRR@10, all on the development parts; one
    question is 1.05 points of S and U, so most differences there are noise.
    """

    # How soon repetition of a term stops counting. 0.8: L -0.4, C -0.4; 2.0: L -1.1, C -1.0.
    saturation: float = 1.2
    # How much a long message, taken with its surroundings, is held back. 0.4: C -0.9; 0.75: L -0.3.
    length_penalty: float = 0.5
    # Terms of the messages next to this one, and of those two away. Neither: L -13.7; only the
    # nearest: L -4.6.
    near_weight: float = 0.5
    far_weight: float = 0.25
    # A term in code, a name or a path, against the same term in prose. By decision; 1.0: C +0.4, U
    # -0.2.
    code_weight: float = 1.5
    # The parts of a name that is asked for, against the name itself. The sets hold too few names to
    # tell.
    part_weight: float = 0.6
    # "days", "ago" and other words that measure time. 1.0: S -1.2, U -1.1, L -0.1.
    weak_weight: float = 0.3
    # Two words of the query side by side. 0: U -0.5, L -0.1, C -0.6; 0.4: U -1.1.
    pair_weight: float = 0.2
    # A quoted phrase that stands in the message. By decision, not measured.
    phrase_weight: float = 1.0
    # How much of a term is counted by who wrote it. All 1.0: U -1.7, S -0.7. Tool and system: by
    # analogy.
    roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 0.3, "tool": 0.25, "system": 0.25}
    )
    # The same for terms in code: a name is as good in an answer as in a question, while tool output
    # repeats names. By the story of the demo (the schema is in the answer); the sets hold too
    # little code to tell.
    code_roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 1.0, "tool": 0.5, "system": 0.5}
    )
    # The same inside a thread's sum, where long answers would drown the questions. All 1.0: U -6.7,
    # S -1.5.
    thread_roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 0.15, "tool": 0.1, "system": 0.1}
    )
    # How soon repetition inside a thread stops counting. 1.0: U -2.0, S -0.7; 3.0: U -0.5, S -1.3.
    thread_saturation: float = 2.0
    # The best message of a thread, against the sum of its messages. 0: S -1.3, U -1.3; 1.0: U -2.7,
    # S -1.0.
    best_weight: float = 0.3
    # A thread is judged by its best messages, so that a very long one has little advantage. Not
    # measured.
    most_messages_of_thread: int = 40
    # A message from the time that the query names. 0: L -1.2, U -0.4; 0.8: L +0.3.
    period_weight: float = 0.4
    # A message of this moment gains 3 %, one of a month ago 1.5 %: enough to order equal matches,
    # never more.
    recency_weight: float = 0.03
    half_life_days: float = 30.0


DEFAULT_RANKING = RankSettings()


AROUND = (-1, 1, -2, 2)
"""The places around a message that say something about it, the nearer first."""
PLACE_BITS = 32


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

    def holds(self, needle: str) -> bool:
        """Whether terms, given with a space on either side, stand in this order in the row."""
        return needle in f" {self.prose} " or (bool(self.code) and needle in f" {self.code} ")


@dataclass(frozen=True, slots=True)
class Stats:
    """What the index knows as a whole: how many messages and threads, how long on average, how
    common each term.
    """

    messages: int
    threads: int
    average_length: float
    frequencies: Mapping[str, int]


_FIRST_PROSE, _FIRST_CODE = 12, 6
"""So many terms of a row of code are what stands first."""
_FEWEST_OF_CODE = 20
"""Of so many candidates or more four fifths must be code; in a talk about code what stands first
tells nothing.
"""
_FIRST_COUNT = 2.0
"""A term there counts as if it stood there so many times more. 0: C -2.1."""


def is_code(row: MessageCandidate) -> bool:
    """Whether a tenth or more of a row's terms are names, paths and the like."""
    return bool(row.code) and 10 * (row.code.count(" ") + 1) >= max(1, row.length)


class TermEvidence:
    """One row, how much it says of each term (by the term's number), and which terms it has in
    code.
    """

    __slots__ = ("counts", "in_code", "row")

    def __init__(self, row: MessageCandidate) -> None:
        self.row = row
        self.counts: dict[int, float] = {}
        self.in_code: list[int] = []


class TermWeights:
    """The terms of a query, and what each is worth in this index."""

    def __init__(self, query: Query, stats: Stats, settings: RankSettings) -> None:
        self.terms = query.wanted
        self.needles = [
            (number, f" {term.text}" if term.is_prefix else f" {term.text} ")
            for number, term in enumerate(self.terms)
        ]
        self.shares = [_share(term, settings) for term in self.terms]
        self.worths = [
            share * rarity(stats.frequencies.get(term.text, 0), stats.messages)
            for term, share in zip(self.terms, self.shares, strict=True)
        ]
        self.pairs = [
            (first, f" {self.terms[first].text} {self.terms[first + 1].text} ")
            for first in range(len(self.terms) - 1)
            if not (self.terms[first].is_prefix or self.terms[first + 1].is_prefix)
        ]
        self.phrases = [f" {' '.join(phrase)} " for phrase in query.phrases]
        # Guesses stand for one another, so they are not added up over neighbors.
        self.guesses = frozenset(
            [number for number, term in enumerate(self.terms) if term.closeness < 1.0]
        )

    def read(self, rows: Iterable[MessageCandidate], settings: RankSettings) -> list[TermEvidence]:
        """The evidence of each row, terms in code weighing more, all weighed by who wrote it."""
        roles = settings.roles
        code = {role: settings.code_weight * weight for role, weight in settings.code_roles.items()}
        candidates = list(rows)
        is_of_code = len(candidates) >= _FEWEST_OF_CODE and sum(
            map(is_code, candidates)
        ) >= 0.8 * len(candidates)
        found = [TermEvidence(row) for row in candidates]
        self._count(
            [f" {row.prose} " for row in candidates],
            [roles.get(row.role, 1.0) for row in candidates],
            found,
        )
        named = [each for each in found if each.row.code]
        weights = [code.get(each.row.role, 1.0) for each in named]
        self._count([f" {each.row.code} " for each in named], weights, named, is_code=True)
        for each in found if is_of_code else ():
            if each.counts and is_code(each.row):
                role = each.row.role
                self._add_first(
                    each.counts, each.row, roles.get(role, 1.0), code_weight=code.get(role, 1.0)
                )
        return found

    def _count(
        self,
        texts: list[str],
        weights: list[float],
        found: list[TermEvidence],
        is_code: bool = False,
    ) -> None:
        """Add what texts say of each term: term by term, since most rows have few of them."""
        for number, needle in self.needles:
            for place, text in enumerate(texts):
                if needle in text:
                    each = found[place]
                    count = text.count(needle) * weights[place]
                    each.counts[number] = each.counts.get(number, 0.0) + count
                    if is_code:
                        each.in_code.append(number)

    def _add_first(
        self,
        counts: dict[int, float],
        row: MessageCandidate,
        role_weight: float,
        code_weight: float,
    ) -> None:
        """What stands first in code, the signature and what is said about it, tells more than what
        comes after.
        """
        prose = f" {' '.join(row.prose.split(' ', _FIRST_PROSE)[:_FIRST_PROSE])} "
        code = f" {' '.join(row.code.split(' ', _FIRST_CODE)[:_FIRST_CODE])} "
        for number, needle in self.needles:
            if number in counts:
                if needle in prose:
                    counts[number] += _FIRST_COUNT * role_weight
                if needle in code:
                    counts[number] += _FIRST_COUNT * code_weight

    def thread_worths(self, found: list[TermEvidence], stats: Stats) -> list[float]:
        """How much each term tells about a thread, its rarity among threads being estimated from
        the candidates.

        A term in 300 messages, of which 100 are candidates and stand in 20 threads, is taken to
        stand in 60 threads. Where every match is a candidate this is exact.
        """
        rows = [0] * len(self.terms)
        threads: list[set[int]] = [set() for _ in self.terms]
        for each in found:
            for number in each.counts:
                rows[number] += 1
                threads[number].add(each.row.thread_no)
        worths = []
        for number, term in enumerate(self.terms):
            scale = (
                max(1.0, stats.frequencies.get(term.text, 0) / rows[number])
                if rows[number]
                else 1.0
            )
            worths.append(
                self.shares[number] * rarity(round(len(threads[number]) * scale), stats.threads)
            )
        return worths


def _share(term: QueryTerm, settings: RankSettings) -> float:
    share = settings.part_weight if term.kind == "part" else 1.0
    return share * term.closeness * (settings.weak_weight if term.is_weak else 1.0)


def rarity(frequency: int, total: int) -> float:
    """Of 1,000 messages: a term in one weighs 6.5, in ten 4.6, in half of them 0.7."""
    frequency = min(frequency, total)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


Context = dict[int, TermEvidence]


def by_place(found: list[TermEvidence]) -> Context:
    """Each message by its place. Of a message in several pieces, the piece that says most."""
    context: Context = {}
    for each in found:
        place = each.row.place
        known = context.get(place)
        if known is None or (len(each.counts), -each.row.no) > (len(known.counts), -known.row.no):
            context[place] = each
    return context
