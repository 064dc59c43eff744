"""Fuse word scores and vector similarity into one score.

The root of the word score relative to the best, plus the cosine in standard deviations of all
candidates' cosines: a plain cosine would weigh differently for each query. Messages are queried
twice: the best of the first round move the query vector before the second.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple

from smara.core.dates import Days
from smara.database.database import Session
from smara.database.fulltext import Within, no_of
from smara.search.candidate import SearchCandidate
from smara.search.evidence import MessageCandidate, Stats, TermEvidence, is_code
from smara.search.rank import MessageScore, Ranking, Rated

if TYPE_CHECKING:
    from smara.database.vectors import Floats


@dataclass(frozen=True, slots=True)
class FuseSettings:
    """Every weight of the fusion; the words of the best hit count 1."""

    # One standard deviation of cosine, for prose and for code, where names hide what meaning shows.
    message_meaning: float = 0.03
    code_meaning: float = 0.17
    # The same of the closer of the messages before and after.
    neighbor_meaning: float = 0.04
    # The same of the closest message of a user in a thread.
    thread_meaning: float = 0.08
    # What is of the days that "two weeks ago" means.
    days_bonus: float = 0.6
    # How much of the best messages goes into the vector that is asked for a second time, and how
    # many they are.
    feedback: float = 0.5
    feedback_rows: int = 10
    # Without a word in common, a cosine at or below it is no answer: in any store something is
    # nearest.
    floor: float = 0.25


DEFAULT_FUSION = FuseSettings()


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean and the standard deviation of the candidates' cosines."""

    mean: float = 0.0
    deviation: float = 0.0

    @classmethod
    def of(cls, cosines: Collection[float]) -> Spread:
        """
        >>> Spread.of([0.1, 0.3]).standard(0.4)
        2.0
        """
        count = len(cosines)
        if count < 2:
            return cls()
        mean = math.fsum(cosines) / count
        return cls(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in cosines) / count))

    def standard(self, cosine: float | None) -> float:
        """How many deviations a cosine lies above the mean; 0 where nothing is known or all are
        alike.
        """
        if cosine is None or self.deviation < 1e-6:
            return 0.0
        return round((cosine - self.mean) / self.deviation, 9)

    def standards(self, cosines: Floats) -> Floats:
        """The same of many; -inf stands for nothing known."""
        import numpy as np

        if self.deviation < 1e-6:
            return np.zeros_like(cosines)
        standard = np.round((cosines - self.mean) / self.deviation, 9)
        return np.where(np.isneginf(cosines), 0.0, standard)


def root_share(score: float, best: float) -> float:
    """The root of a share of the best: it lifts the middle, where meaning is to decide.

    >>> root_share(2.0, 8.0)
    0.5
    """
    return math.sqrt(max(score, 0.0) / best) if best > 0 else 0.0


class Fusion:
    """The scale of one answer over everything that was found for it, whatever the source."""

    def __init__(
        self,
        found: Iterable[SearchCandidate],
        cosines: Collection[float],
        code_share: float = 0.0,
        settings: FuseSettings = DEFAULT_FUSION,
    ) -> None:
        self._settings = settings
        self._best = max((each.words for each in found), default=0.0)
        self._spread = Spread.of(cosines)
        self._has_meaning = bool(cosines)
        self._weight = settings.message_meaning + code_share * (
            settings.code_meaning - settings.message_meaning
        )

    def rate(self, each: SearchCandidate) -> float:
        """The fused score. Where nothing is known of meaning, words alone decide."""
        settings = self._settings
        if each.words <= 0 and (each.meaning is None or each.meaning <= settings.floor):
            return 0.0
        score = root_share(each.words, self._best)
        if self._has_meaning:
            weight = settings.code_meaning if each.kind == "code" else self._weight
            score += weight * self._spread.standard(each.meaning)
            score += settings.neighbor_meaning * self._spread.standard(each.near)
        if each.is_in_days:
            score += settings.days_bonus
        # However far its meaning: what holds a word of the query stays in the answer, at its end.
        return max(score, 1e-6)

    def render(self) -> str:
        """One line for a person."""
        if not self._has_meaning:
            return "words alone"
        mean, deviation = self._spread.mean, self._spread.deviation
        return f"words, and {self._weight:.2f} for each {deviation:.2f} of cosine above {mean:.2f}"


def fuse_threads(
    words: Mapping[int, float],
    cosines: Mapping[int, float],
    in_days: Collection[int],
    settings: FuseSettings = DEFAULT_FUSION,
) -> dict[int, float]:
    """The score of every thread, by number; ``cosines`` holds the closest message of a user in
    each.
    """
    best, spread = max(words.values(), default=0.0), Spread.of(cosines.values())
    low = min(cosines.values(), default=0.0)
    scores = {}
    for thread in words.keys() | cosines.keys():
        if thread not in words and cosines[thread] <= settings.floor:
            continue
        score = root_share(words.get(thread, 0.0), best)
        if cosines:
            score += settings.thread_meaning * spread.standard(cosines.get(thread, low))
        if thread in in_days:
            score += settings.days_bonus
        scores[thread] = max(score, 1e-6)
    return scores


if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smara.database.vectors import Floats
    from smara.meaning.models import Vector
    from smara.meaning.query import Meaning, RowVectors

    Array = NDArray[Any]

NEAREST = 100
"""How many rows are looked at because of their meaning."""
THREAD_NEAREST = 800
"""The same when threads are ranked, where of these only what users said is kept."""
_CODE_ROWS = 20


class Closeness:
    """The cosines of rows with a question, for as long as one search takes."""

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

    def nearest_besides(self, known: Iterable[int]) -> list[int]:
        """The rows nearest to the question that are not known yet."""
        if self._vector is None or self._meaning is None:
            return []
        there = set(known)
        found = self._meaning.nearest(
            self._session, "message", self._vector, self._nearest, self._within
        )
        return [row for row, _ in found if row not in there]

    def look_up(self, rows: Sequence[int]) -> None:
        """Learn the cosines of these rows."""
        if self._vector is not None and self._meaning is not None:
            self._loaded = self._meaning.load(self._session, "message", rows, self._vector)
            self.cosines = self._loaded.scores(self._vector)

    def ask_again(self, best: Sequence[int], share: float) -> None:
        """Move the question towards the best rows, and learn all cosines anew."""
        if self._loaded is not None and self._vector is not None:
            moved = self._loaded.moved(self._vector, best, share)
            if moved is not None:
                self._vector = moved
                self.cosines = self._loaded.scores(moved)


class Near(NamedTuple):
    """One message on its way into the answer: of its pieces the best."""

    message_no: int
    score: float
    words: float
    cosine: float | None
    beside: float | None
    is_in_days: bool
    why: tuple[str, ...]


class MessageFusion:
    """The candidates of one search, each with its words, its cosine and that of its neighbors."""

    def __init__(
        self,
        ranking: Ranking,
        rows: Sequence[MessageCandidate],
        close: Closeness,
        days: Days | None,
        settings: FuseSettings = DEFAULT_FUSION,
    ) -> None:
        self._ranking = ranking
        self._rows = list({each.no: each for each in rows}.values())
        self._words: dict[int, Rated] = {each[1].row.no: each for each in ranking.rated}
        self._close = close
        self._days = days
        self._settings = settings
        self.code_share = self._code_share()
        self._base = self._by_words()

    def ask_again(self) -> None:
        """A second round with the best messages of the first."""
        if self._close.cosines:
            settings = self._settings
            best = [self._rows[place].no for place, _, _ in self._order()[: settings.feedback_rows]]
            self._close.ask_again(best, settings.feedback)

    def best(self, limit: int | None) -> list[Near]:
        """The best messages, each once, with reasons."""
        found: dict[int, Near] = {}
        for place, score, beside in self._order():
            candidate = self._rows[place]
            message_no = no_of(candidate.no)
            if message_no in found:
                continue
            words, evidence = self._words.get(candidate.no, (0.0, None))
            why = self._ranking.why(evidence) if evidence is not None else ()
            is_in_days = self._is_in_days(candidate)
            if is_in_days and self._days is not None:
                why = (*why, f"from {self._days.render()}")
            cosine = self._close.cosines.get(candidate.no)
            found[message_no] = Near(
                message_no,
                score,
                words / self._ranking.ideal,
                cosine=cosine,
                beside=beside,
                is_in_days=is_in_days,
                why=why,
            )
            if len(found) == limit:
                break
        return list(found.values())

    def _by_words(self) -> list[float | None]:
        """What each row is worth before its meaning is known; ``None`` when it holds no word of the
        query.
        """
        best = max((score for score, _ in self._words.values()), default=0.0)
        nothing: tuple[float | None, None] = (None, None)
        found = [self._words.get(each.no, nothing)[0] for each in self._rows]
        base = [None if score is None else root_share(score, best) for score in found]
        if self._days is None:
            return base
        bonus = self._settings.days_bonus
        return [
            score + bonus if score is not None and self._is_in_days(each) else score
            for score, each in zip(base, self._rows, strict=True)
        ]

    def _order(self) -> list[tuple[int, float, float | None]]:
        """The place of every row with its score and its neighbors' cosine, best first; of equals
        the newer.
        """
        if self._close.cosines:
            return self._by_meaning()
        rows = self._rows
        found = [(place, score) for place, score in enumerate(self._base) if score is not None]
        found.sort(key=lambda each: (-each[1], -rows[each[0]].created_at, -rows[each[0]].no))
        return [(place, score, None) for place, score in found]

    def _by_meaning(self) -> list[tuple[int, float, float | None]]:
        import numpy as np

        settings, known = self._settings, self._close.cosines
        unknown = -np.inf
        cosines = np.array([known.get(each.no, unknown) for each in self._rows])
        beside = self._beside(cosines)
        spread = Spread.of(known.values())
        weight = settings.message_meaning + self.code_share * (
            settings.code_meaning - settings.message_meaning
        )
        has_words, base, newest, latest = self._columns
        scores = (
            base
            + weight * spread.standards(cosines)
            + settings.neighbor_meaning * spread.standards(beside)
        )
        kept = np.flatnonzero(has_words | (cosines > settings.floor))
        order = kept[np.lexsort((latest[kept], newest[kept], -scores[kept]))]
        near = zip(order.tolist(), scores[order].tolist(), beside[order].tolist(), strict=True)
        return [
            (place, score, None if cosine == unknown else cosine) for place, score, cosine in near
        ]

    @cached_property
    def _columns(self) -> tuple[Array, Array, Array, Array]:
        """Of every row whether it has words, what it is worth by them, and its time and number, the
        newest first.
        """
        import numpy as np

        bonus = self._settings.days_bonus
        base = [
            score if score is not None else bonus * self._is_in_days(each)
            for score, each in zip(self._base, self._rows, strict=True)
        ]
        has_words = np.array([score is not None for score in self._base])
        newest = np.array([-each.created_at for each in self._rows], dtype=np.int64)
        latest = np.array([-each.no for each in self._rows], dtype=np.int64)
        return has_words, np.array(base), newest, latest

    def _beside(self, cosines: Floats) -> Floats:
        """For each row, the cosine of the closer of the messages before and after it; -inf where
        none is known.
        """
        import numpy as np

        numbers, of_row, before, after = self._places
        best = np.full(len(numbers) + 1, -np.inf)
        np.maximum.at(best, of_row, cosines)  # of a message in several pieces, the closest
        best[-1] = -np.inf
        return np.maximum(best[before], best[after])[of_row]  # type: ignore[no-any-return]

    @cached_property
    def _places(self) -> tuple[dict[int, int], list[int], list[int], list[int]]:
        """The messages of the rows, each row's message, and of each message the one before and the
        one after it.
        """
        numbers: dict[int, int] = {}
        of_row = [numbers.setdefault(each.place, len(numbers)) for each in self._rows]
        before = [numbers.get(place - 1, -1) for place in numbers]
        after = [numbers.get(place + 1, -1) for place in numbers]
        return numbers, of_row, before, after

    def _is_in_days(self, candidate: MessageCandidate) -> bool:
        return self._days is not None and self._days.contains(candidate.created_at)

    def _code_share(self) -> float:
        """How many of the best rows by words are code: a tenth or more of their terms."""
        best = nlargest(_CODE_ROWS, self._words.values(), key=lambda each: each[0])
        rows = [each.row for _, each in best]
        if not rows:
            return 0.0
        return sum(map(is_code, rows)) / len(rows)


class ThreadFusion:
    """The threads of one search, each with its words and the closest message of a user in it."""

    def __init__(
        self,
        ranking: Ranking,
        close: Closeness,
        days: Days | None,
        stats: Stats,
        settings: FuseSettings = DEFAULT_FUSION,
    ) -> None:
        self._ranking = ranking
        self._close = close
        self._settings = settings
        self._rated = ranking.rated_threads(stats)
        self._rows = {each.row.no: each for each in ranking.found}
        self._in_days = {
            each.row.thread_no
            for each in ranking.found
            if days is not None and days.contains(each.row.created_at)
        }

    def best(self, limit: int) -> list[MessageScore]:
        """The best threads, with the reasons of their best messages."""
        if self._close.cosines:
            self._close.ask_again(self._best_rows(), self._settings.feedback)
        words = {thread: score for thread, (score, _) in self._rated.items()}
        closest = self._closest()
        cosines = {thread: cosine for thread, (cosine, _) in closest.items()}
        scores = fuse_threads(words, cosines, self._in_days, settings=self._settings)
        newest = {thread: self._evidence(thread, closest).row.created_at for thread in scores}
        order = sorted(scores, key=lambda thread: (-scores[thread], -newest[thread], -thread))[
            :limit
        ]
        top = scores[order[0]] if order else 1.0
        return [
            MessageScore(thread, scores[thread] / top, self._why(thread, closest))
            for thread in order
        ]

    def _best_rows(self) -> list[int]:
        """The best messages of users in the first round."""
        rated = {
            each.row.no: score for score, each in self._ranking.rated if each.row.role == "user"
        }
        best, spread = max(rated.values(), default=0.0), Spread.of(self._close.cosines.values())
        rows = [
            row
            for row in self._close.cosines
            if row in self._rows and self._rows[row].row.role == "user"
        ]

        def merit(row: int) -> tuple[float, int]:
            standard = spread.standard(self._close.cosines[row])
            return root_share(
                rated.get(row, 0.0), best
            ) + self._settings.thread_meaning * standard, row

        return sorted(rows, key=merit, reverse=True)[: self._settings.feedback_rows]

    def _closest(self) -> dict[int, tuple[float, TermEvidence]]:
        found: dict[int, tuple[float, TermEvidence]] = {}
        for row, cosine in self._close.cosines.items():
            each = self._rows.get(row)
            if (
                each is not None
                and each.row.role == "user"
                and cosine > found.get(each.row.thread_no, (-2.0, each))[0]
            ):
                found[each.row.thread_no] = (cosine, each)
        return found

    def _evidence(
        self, thread: int, closest: dict[int, tuple[float, TermEvidence]]
    ) -> TermEvidence:
        return self._rated[thread][1] if thread in self._rated else closest[thread][1]

    def _why(self, thread: int, closest: dict[int, tuple[float, TermEvidence]]) -> tuple[str, ...]:
        if thread not in self._rated:
            return ("close in meaning",)
        return self._ranking.why(self._rated[thread][1])
