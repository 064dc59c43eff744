"""Ranking records of the second index: tasks, observations. BM25 over a head and a body, a head
counting for more.

The same words and terms as for messages, gathered newest first up to a limit, and ranked
here, so that both databases answer alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from smara.database.database import Session
from smara.database.records import RecordIndex, RecordKind, record_no
from smara.search.query import Query, QueryTerm

TERM_LIMIT = 1_000
"""How many rows of one term are read, newest first."""
CANDIDATES = 150
"""How many rows are ranked, and more where more are asked for."""
_HEAD_WEIGHT = 3.0
_K1, _B = 1.2, 0.6

Scores = dict[int, tuple[float, tuple[str, ...]]]
"""Number of a record → its score and the reasons for it."""


class GatheredRecords:
    """The rows that hold terms of a query, and what each term tells."""

    def __init__(
        self,
        session: Session,
        records: RecordIndex,
        kind: RecordKind,
        wall: int | None,
        total: int,
        query: Query,
    ) -> None:
        self._session = session
        self._records = records
        self._kind: RecordKind = kind
        self._wall = wall
        self._total = max(total, 1)
        self._weights: dict[str, float] = {}
        self._terms: dict[str, QueryTerm] = {}
        self._rows: dict[int, float] = {}
        for term in query.wanted:
            self._look_up(term)
        self.numbers = {record_no(row) for row in self._rows}

    def _look_up(self, term: QueryTerm) -> None:
        rows = self._records.match(
            self._session, term.text, self._wall, self._kind, TERM_LIMIT, term.is_prefix
        )
        count = len(rows)
        weight = math.log(1 + (max(self._total - count, 0) + 0.5) / (count + 0.5))
        weight *= (0.3 if term.is_weak else 1.0) * (0.5 if term.kind == "part" else 1.0)
        self._weights[term.text] = weight
        self._terms[term.text] = term
        known = self._rows
        for row in rows:
            known[row] = known.get(row, 0.0) + weight

    @property
    def ideal(self) -> float:
        """The score of a record of usual length that holds every term once in its body."""
        return sum(self._weights.values())

    def scored(self, most: int = CANDIDATES) -> Scores:
        """The best candidates; of a long record, its best piece."""
        best = sorted(zip(self._rows.values(), self._rows, strict=True), reverse=True)[:most]
        texts = self._records.texts(self._session, [row for _, row in best])
        split = {row: (head.split(), body.split()) for row, (head, body) in texts.items()}
        average = (
            sum(len(head) + len(body) for head, body in split.values()) / len(split)
            if split
            else 1.0
        )
        found: Scores = {}
        for row, (head, body) in split.items():
            score, why = self._score(head, body, average or 1.0)
            no = record_no(row)
            if score > found.get(no, (0.0, ()))[0]:
                found[no] = (score, why)
        return found

    def _score(
        self, head: Sequence[str], body: Sequence[str], average: float
    ) -> tuple[float, tuple[str, ...]]:
        norm = _K1 * (1 - _B + _B * (len(head) + len(body)) / average)
        score = 0.0
        why: dict[str, None] = {}
        for text, weight in self._weights.items():
            heads = _count(head, text, self._terms[text].is_prefix)
            frequency = _HEAD_WEIGHT * heads + _count(body, text, self._terms[text].is_prefix)
            if frequency:
                score += weight * frequency * (_K1 + 1) / (frequency + norm)
                why[f"{self._terms[text].word} in the {'title' if heads else 'text'}"] = None
        return score, tuple(why)


def _count(terms: Sequence[str], text: str, is_prefix: bool) -> int:
    return sum(term.startswith(text) for term in terms) if is_prefix else terms.count(text)
