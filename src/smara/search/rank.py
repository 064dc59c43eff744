"""Ranking: from what the database gathered to an ordered answer with reasons.

Pure functions over values, so that SQLite and PostgreSQL rank alike. The score of a
message is BM25 over its own words and, at a discount, those of the two messages before
and after it: an answer rarely repeats the words of its question. The score of a thread
adds up what its messages say about each term, with less and less for repetition.
The weights stand in ``RankSettings``, each with what it brought in the evaluation
(docs/reference/evaluation.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from smara.search.query import Query, QueryTerm

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class RankSettings:
    """Every weight of the ranking. One setting serves all evaluation sets.

    L is LoCoMo R@10, S is LongMemEval_S R@5, U is the union haystack R@10, all on the
    development parts; differences under one point on S and U are a single question.
    """

    # How soon repetition of a term stops counting. Between 0.8 and 2.0, L moves by 0.7.
    saturation: float = 1.2
    # How much a long message is held back. 0.75, the usual value: L -0.8; 0.3: L -0.4.
    length_penalty: float = 0.4
    # Terms of the messages next to this one, and of those two away. Neither: L -14; only the nearest: L -4.
    near_weight: float = 0.5
    far_weight: float = 0.25
    # A term in code, a name or a path, against the same term in prose. The sets hold no code: by ruling, not measured.
    code_weight: float = 1.5
    # The parts of a name that is asked for, against the name itself. The sets hold too few names to tell.
    part_weight: float = 0.6
    # "days", "ago" and other words that measure time. 1.0: S -1.2, U -0.3, L +0.1.
    weak_weight: float = 0.3
    # Two words of the query side by side. 0: U -0.5, L -0.2.
    pair_weight: float = 0.4
    # A quoted phrase that stands in the message. By ruling, not measured.
    phrase_weight: float = 1.0
    # How much of a term is counted by who wrote it. All 1.0: U -2, and turns of LongMemEval_S R@10 -4.
    roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 0.3, "tool": 0.25, "system": 0.25}
    )
    # The same inside a thread's sum, where long answers would drown the questions. 0.3: U -4.
    thread_roles: Mapping[str, float] = field(
        default_factory=lambda: {"user": 1.0, "assistant": 0.15, "tool": 0.1, "system": 0.1}
    )
    # How soon repetition inside a thread stops counting. 1.2: S -0.3; 3.0: U -0.5.
    thread_saturation: float = 2.0
    # The best message of a thread, against the sum of its messages. 0: U -0.5; 1.0: U -1.5.
    best_weight: float = 0.3
    # A thread is judged by its best messages, so that a very long one has no advantage.
    most_messages_of_thread: int = 40
    # A message from the time that the query names. 0: L -1.2.
    period_weight: float = 0.4
    # A message of this moment gains 3 %, one of a month ago 1.5 %: enough to order equal matches, never more.
    recency_weight: float = 0.03
    half_life_days: float = 30.0


DEFAULT = RankSettings()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One indexed row that matches, or stands beside one that does. Times are milliseconds since the epoch."""

    no: int
    thread_no: int
    seq: int
    role: str
    created_at: int
    prose: str
    code: str
    length: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What the index knows as a whole: how many messages and threads, how long on average, how common each term."""

    messages: int
    threads: int
    average_length: float
    frequencies: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Scored:
    """One row of the answer; the best has score 1. ``no`` is a row number, for threads that of the thread."""

    no: int
    score: float
    why: tuple[str, ...]


@dataclass(slots=True)
class _Evidence:
    """What one message says: how often each term occurs in it, weighed by role and column."""

    row: Candidate
    counts: dict[int, float]
    in_code: frozenset[int]


class _Terms:
    """The terms of a query with their worth in this index."""

    def __init__(self, query: Query, stats: Stats, settings: RankSettings) -> None:
        self.query = query
        self.terms = query.wanted
        self.needles = [f" {term.text}" if term.is_prefix else f" {term.text} " for term in self.terms]
        self.kinds = [_weight_of(term, settings) for term in self.terms]
        self.worths = [
            weight * _rarity(stats.frequencies.get(term.text, 0), stats.messages)
            for term, weight in zip(self.terms, self.kinds, strict=True)
        ]
        self.pairs = [
            (first, f" {self.terms[first].text} {self.terms[first + 1].text} ")
            for first in range(len(self.terms) - 1)
            if not (self.terms[first].is_prefix or self.terms[first + 1].is_prefix)
        ]
        self.phrases = [f" {' '.join(phrase)} " for phrase in query.phrases]


def _weight_of(term: QueryTerm, settings: RankSettings) -> float:
    weight = settings.part_weight if term.kind == "part" else 1.0
    return weight * settings.weak_weight if term.is_weak else weight


def _rarity(frequency: int, total: int) -> float:
    """Of 1,000 messages: a term in one weighs 6.5, in ten 4.6, in half of them 0.7."""
    frequency = min(frequency, total)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def rank_messages(
    query: Query,
    candidates: Sequence[Candidate],
    neighbors: Iterable[Candidate],
    stats: Stats,
    now_ms: int,
    settings: RankSettings = DEFAULT,
) -> list[Scored]:
    """The candidates in order, best first. Neighbors lend their words and are not ranked themselves."""
    terms = _Terms(query, stats, settings)
    found = _evidence(terms, candidates, settings)
    context = _by_place(found, _evidence(terms, neighbors, settings))
    rated = [(_rate(terms, each, context, stats, now_ms, settings), each) for each in found]
    rated = [(score, each) for score, each in rated if score > 0]
    rated.sort(key=lambda pair: (-pair[0], -pair[1].row.created_at, -pair[1].row.no))
    best = rated[0][0] if rated else 1.0
    return [
        Scored(each.row.no, round(score / best, 6), _reasons(terms, each, context, now_ms, settings))
        for score, each in rated
    ]


def rank_threads(
    query: Query,
    candidates: Sequence[Candidate],
    neighbors: Iterable[Candidate],
    stats: Stats,
    now_ms: int,
    settings: RankSettings = DEFAULT,
) -> list[Scored]:
    """The threads of the candidates in order, best first, each judged by all that its messages say."""
    terms = _Terms(query, stats, settings)
    found = _evidence(terms, candidates, settings)
    context = _by_place(found, _evidence(terms, neighbors, settings))
    threads: dict[int, list[tuple[float, _Evidence]]] = {}
    for each in found:
        score = _rate(terms, each, context, stats, now_ms, settings)
        if score > 0:
            threads.setdefault(each.row.thread_no, []).append((score, each))
    worths = _thread_worths(terms, found, stats)
    rated: list[tuple[float, _Evidence]] = []
    for members in threads.values():
        members.sort(key=lambda pair: (-pair[0], -pair[1].row.created_at, -pair[1].row.no))
        rated.append((_rate_thread(terms, worths, members, now_ms, settings), members[0][1]))
    rated.sort(key=lambda pair: (-pair[0], -pair[1].row.created_at, -pair[1].row.no))
    best = rated[0][0] if rated else 1.0
    return [
        Scored(each.row.thread_no, round(score / best, 6), _reasons(terms, each, context, now_ms, settings))
        for score, each in rated
    ]


def _evidence(terms: _Terms, rows: Iterable[Candidate], settings: RankSettings) -> list[_Evidence]:
    """Counts the terms in each row. The texts are long and the terms few, so this is where the time goes."""
    needles = list(enumerate(terms.needles))
    found = []
    for row in rows:
        role = settings.roles.get(row.role, 1.0)
        counts: dict[int, float] = {}
        in_code: frozenset[int] = frozenset()
        prose = f" {row.prose} "
        for index, needle in needles:
            if count := prose.count(needle):
                counts[index] = count * role
        if row.code:
            code, named = f" {row.code} ", []
            for index, needle in needles:
                if count := code.count(needle):
                    counts[index] = counts.get(index, 0.0) + count * role * settings.code_weight
                    named.append(index)
            in_code = frozenset(named)
        found.append(_Evidence(row, counts, in_code))
    return found


_Context = dict[tuple[int, int], _Evidence]


def _by_place(found: list[_Evidence], beside: list[_Evidence]) -> _Context:
    """Each message by thread and place. Of a message in several pieces, the piece that says most."""
    context: _Context = {}
    for each in (*found, *beside):
        place = (each.row.thread_no, each.row.seq)
        known = context.get(place)
        if known is None or (len(each.counts), -each.row.no) > (len(known.counts), -known.row.no):
            context[place] = each
    return context


def _surroundings(each: _Evidence, context: _Context, settings: RankSettings) -> list[tuple[float, int, _Evidence]]:
    thread, seq = each.row.thread_no, each.row.seq
    near, far = settings.near_weight, settings.far_weight
    places = ((near, -1), (near, 1), (far, -2), (far, 2))
    return [
        (weight, step, beside) for weight, step in places if (beside := context.get((thread, seq + step))) is not None
    ]


def _rate(
    terms: _Terms, each: _Evidence, context: _Context, stats: Stats, now_ms: int, settings: RankSettings
) -> float:
    """BM25 over the message and its surroundings; nothing for a message that has no term of its own."""
    if not each.counts:
        return 0.0
    counts, length = each.counts, float(each.row.length)
    surroundings = _surroundings(each, context, settings)
    if surroundings:
        counts = dict(counts)
        for weight, _, beside in surroundings:
            length += weight * beside.row.length
            for index, count in beside.counts.items():
                counts[index] = counts.get(index, 0.0) + weight * count
    usual = stats.average_length * (1 + 2 * settings.near_weight + 2 * settings.far_weight)
    long = length / usual if usual > 0 else 1.0
    k = settings.saturation
    held_back = k * (1 - settings.length_penalty + settings.length_penalty * long)
    score = sum(terms.worths[index] * count * (k + 1) / (count + held_back) for index, count in sorted(counts.items()))
    score += _side_by_side(terms, each, settings)
    return score * _timeliness(terms, each.row.created_at, now_ms, settings)


def _side_by_side(terms: _Terms, each: _Evidence, settings: RankSettings) -> float:
    """What pairs of the query's words and quoted phrases add when they stand together in the message."""
    counts, bonus = each.counts, 0.0
    if len(counts) < 2:
        return bonus
    role = settings.roles.get(each.row.role, 1.0)
    for first, needle in terms.pairs:
        if first in counts and first + 1 in counts and _holds(each.row, needle):
            bonus += settings.pair_weight * role * min(terms.worths[first], terms.worths[first + 1])
    for needle in terms.phrases:
        if _holds(each.row, needle):
            bonus += settings.phrase_weight * max(terms.worths)
    return bonus


def _holds(row: Candidate, needle: str) -> bool:
    return needle in f" {row.prose} " or (bool(row.code) and needle in f" {row.code} ")


def _timeliness(terms: _Terms, created_at: int, now_ms: int, settings: RankSettings) -> float:
    """A factor of 1 or a little more: for recent messages, and for those of a time that the query names."""
    age_days = max(0, now_ms - created_at) / _DAY_MS
    factor = 1 + settings.recency_weight * 0.5 ** (age_days / settings.half_life_days)
    period = terms.query.period
    if period is not None and period.contains(created_at):
        factor *= 1 + settings.period_weight
    return factor


def _thread_worths(terms: _Terms, found: list[_Evidence], stats: Stats) -> list[float]:
    """How rare each term is among threads, estimated from the candidates.

    A term in 300 messages, of which 100 are candidates and stand in 20 threads, is taken to
    stand in 60 threads. Where every match is a candidate this is exact.
    """
    rows = [0] * len(terms.terms)
    threads: list[set[int]] = [set() for _ in terms.terms]
    for each in found:
        for index in each.counts:
            rows[index] += 1
            threads[index].add(each.row.thread_no)
    worths = []
    for index, term in enumerate(terms.terms):
        frequency = stats.frequencies.get(term.text, 0)
        scale = max(1.0, frequency / rows[index]) if rows[index] else 1.0
        worths.append(terms.kinds[index] * _rarity(round(len(threads[index]) * scale), stats.threads))
    return worths


def _rate_thread(
    terms: _Terms,
    worths: list[float],
    members: list[tuple[float, _Evidence]],
    now_ms: int,
    settings: RankSettings,
) -> float:
    totals: dict[int, float] = {}
    pairs: dict[int, float] = {}
    for _, each in members[: settings.most_messages_of_thread]:
        role = each.row.role
        share = settings.thread_roles.get(role, 1.0) / (settings.roles.get(role, 1.0) or 1.0)
        for index, count in each.counts.items():
            totals[index] = totals.get(index, 0.0) + share * count
        for first, needle in terms.pairs:
            if first in each.counts and first + 1 in each.counts and _holds(each.row, needle):
                pairs[first] = pairs.get(first, 0.0) + settings.thread_roles.get(role, 1.0)
    k = settings.thread_saturation
    score = sum(worths[index] * total * (k + 1) / (total + k) for index, total in sorted(totals.items()))
    for first, total in sorted(pairs.items()):
        score += settings.pair_weight * min(worths[first], worths[first + 1]) * total * (k + 1) / (total + k)
    newest = max(each.row.created_at for _, each in members)
    return score * _timeliness(terms, newest, now_ms, settings) + settings.best_weight * members[0][0]


def _reasons(
    terms: _Terms, each: _Evidence, context: _Context, now_ms: int, settings: RankSettings
) -> tuple[str, ...]:
    """Why a message is in the answer, in a few short phrases."""
    reasons: list[str] = []
    told: set[int] = set()
    for index in sorted(each.counts, key=lambda index: -terms.worths[index]):
        term = terms.terms[index]
        if term.group in told or len(reasons) == 4:
            continue
        told.add(term.group)
        place = " (name)" if index in each.in_code else ""
        part = f"{term.text} of " if term.kind == "part" else ""
        reasons.append(f"matches {part}{term.word}{place}")
    reasons += _reasons_beside(terms, each, context, told, settings)
    reasons += [f"phrase {needle.strip()!r}" for needle in terms.phrases if _holds(each.row, needle)]
    period = terms.query.period
    if period is not None and period.contains(each.row.created_at):
        reasons.append(f"from around {period.render()}")
    if now_ms - each.row.created_at < settings.half_life_days * _DAY_MS / 4:
        reasons.append("recent")
    return tuple(reasons)


def _reasons_beside(
    terms: _Terms, each: _Evidence, context: _Context, told: set[int], settings: RankSettings
) -> list[str]:
    """Words that only the surroundings have, two at most."""
    places = {-2: "two messages before", -1: "in the message before", 1: "in the message after", 2: "two messages after"}
    reasons: list[str] = []
    for _, step, beside in _surroundings(each, context, settings):
        for index in sorted(beside.counts):
            term = terms.terms[index]
            if term.group not in told and len(reasons) < 2:
                told.add(term.group)
                reasons.append(f"near: {term.word} {places[step]}")
    return reasons
