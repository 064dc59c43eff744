"""Score texts by BM25, for messages, records and code alike.

A term tells more the fewer texts hold it (:func:`rarity`); repetition counts less and less, and in
a long text less than in a short one (:func:`length_norm`, :func:`term_scores`).
:class:`IndexMatches` applies this to the rows of the record index, which have a head and a body.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from smara.database.database import RecordIndex, Session
from smara.database.fulltext import RecordKind, record_no
from smara.search.query import Query
from smara.search.weights import WordWeights

if TYPE_CHECKING:
    from _typeshed import SupportsGetItem

K = TypeVar("K", int, str)


def rarity(frequency: int, total: int) -> float:
    """Return how much a term tells.

    Near 0 if all texts hold it.

    >>> [round(rarity(count, 1000), 1) for count in (1, 10, 500)]
    [6.5, 4.6, 0.7]
    """
    return math.log(1 + (max(total - frequency, 0) + 0.5) / (frequency + 0.5))


def length_norm(length: float, usual: float, weights: WordWeights) -> float:
    """Return what holds repetition back; more in a text longer than usual."""
    penalty = weights.length_penalty
    return weights.saturation * (1 - penalty + penalty * length / usual)


def term_scores(
    counts: Mapping[K, float],
    worths: SupportsGetItem[K, float],
    norm: float,
    saturation: float,
) -> list[float]:
    """Return the score of each term, in the order of counts.

    A term of worth 2 in a text of usual length brings 2 if it stands there once, 2.75 if twice.

    >>> [round(score, 2) for score in term_scores({0: 1, 1: 2}, [2, 2], 1.2, 1.2)]
    [2.0, 2.75]
    """
    most = saturation + 1
    return [worths[term] * count * most / (count + norm) for term, count in counts.items()]


class LookupTerm(NamedTuple):
    """A term to look up, with its share and its word."""

    share: float
    word: str
    is_prefix: bool = False


def lookup_terms(query: Query, weights: WordWeights) -> dict[str, LookupTerm]:
    """Return the terms of a query.

    Parts and weak words have lower shares.
    """
    return {
        term.text: LookupTerm(
            (weights.part_weight if term.kind == "part" else 1.0)
            * (weights.weak_weight if term.is_weak else 1.0),
            term.shown,
            term.is_prefix,
        )
        for term in query.telling
    }


class RowScore(NamedTuple):
    """A record's score, and what each of its terms brings."""

    score: float
    by_term: Mapping[str, float]


class IndexMatches:
    """The rows of the record index that hold terms of a query."""

    def __init__(
        self,
        session: Session,
        records: RecordIndex,
        kind: RecordKind,
        *,
        project_no: int | None,
        total: int,
        terms: Mapping[str, LookupTerm],
        weights: WordWeights,
        most_rows: int,
        within: Container[int] | None = None,
        most_terms: int | None = None,
        skips_common: bool = False,
    ) -> None:
        """Look up terms, each with the rarity it has among ``total`` records.

        Args:
            session: An open session.
            records: The index.
            kind: The kind of records.
            project_no: The project to which rows must belong; None if it is the only one.
            total: The number of records, for the rarity of terms.
            terms: The terms to look up, by text.
            weights: The weights of the source.
            most_rows: How many rows of one term are read, newest first.
            within: The numbers of the records that count; None for all.
            most_terms: How many terms are used, those that tell most; None for all.
            skips_common: Leave out terms that no row holds, and those that more than ``most_rows``
                hold: half of their rows would favor the records of one half.
        """
        self._session, self._records, self._weights = session, records, weights
        self._project_no = project_no
        self.frequencies: dict[str, int] = {}
        matches: list[tuple[float, str, list[int]]] = []
        for text, term in terms.items():
            limit = most_rows + 1 if skips_common else most_rows
            rows = records.match(session, text, project_no, kind, limit, term.is_prefix)
            self.frequencies[text] = len(rows)
            if skips_common and len(rows) > most_rows:
                continue
            if within is not None:
                rows = [row for row in rows if record_no(row) in within]
                self.frequencies[text] = len(rows)
            if rows or not skips_common:
                matches.append((term.share * rarity(len(rows), total), text, rows))
        if most_terms is not None:
            matches.sort(reverse=True, key=lambda match: match[0])
        self.worths = {text: worth for worth, text, _ in matches[:most_terms]}
        self._prefixes = [text for text in self.worths if terms[text].is_prefix]
        self._rows: dict[int, float] = {}
        for worth, _, rows in matches[:most_terms]:
            for row in rows:
                self._rows[row] = self._rows.get(row, 0.0) + worth
        self.numbers = {record_no(row) for row in self._rows}

    @property
    def ideal(self) -> float:
        """The score of a usual record that holds every term once."""
        return sum(self.worths.values())

    def scored(self, most: int, counts_head: bool) -> dict[int, RowScore]:
        """Score the best rows; of a long record, its best piece.

        Args:
            most: How many rows are read.
            counts_head: True if the length of a text includes its head.

        Returns:
            The score of each record, by number.
        """
        best = sorted(self._rows, key=lambda row: (self._rows[row], row), reverse=True)[:most]
        stored = self._records.texts(self._session, best, self._project_no)
        texts = {row: (head.split(), body.split()) for row, (head, body) in stored.items()}
        lengths = {
            row: len(body) + (len(head) if counts_head else 0)
            for row, (head, body) in texts.items()
        }
        usual = sum(lengths.values()) / len(lengths) if any(lengths.values()) else 1.0
        found: dict[int, RowScore] = {}
        for row, (head, body) in texts.items():
            score = self._score(head, body, length_norm(lengths[row], usual, self._weights))
            no = record_no(row)
            if score.score > (found[no].score if no in found else 0.0):
                found[no] = score
        return found

    def _score(self, head: Sequence[str], body: Sequence[str], norm: float) -> RowScore:
        worths, counts = self.worths, dict[str, float]()
        for words, weight in ((body, 1.0), (head, self._weights.head_weight)):
            for word in words:
                if word in worths:
                    counts[word] = counts.get(word, 0.0) + weight
        for prefix in self._prefixes:
            heads = sum(word.startswith(prefix) for word in head)
            bodies = sum(word.startswith(prefix) for word in body)
            if heads + bodies:
                counts[prefix] = self._weights.head_weight * heads + bodies
        scores = term_scores(counts, self.worths, norm, saturation=self._weights.saturation)
        return RowScore(math.fsum(scores), dict(zip(counts, scores, strict=True)))
