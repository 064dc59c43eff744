"""BM25 over the chunks of one tree of code: a function, the head of a class, what stands beside
them.

Whole files are poor units: a long one holds every word of any issue somewhere. A chunk that holds
many of them together is about them. Its head, path and name, counts for more than its body. As with
messages, the database says which rows hold a term, and the ranking is done here, alike for both.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import NamedTuple

from smara.database.database import Session
from smara.database.records import RecordIndex, record_no

MOST_ROWS = 20_000
"""A term that more rows hold tells nothing; it is left out, as half a list would favor the files of
one half.
"""
_HEAD_WEIGHT = 3.0
_K1, _B = 1.2, 0.3


class Scored(NamedTuple):
    """How well a chunk answers, and what each term brought."""

    score: float
    brought: dict[str, float]


class CodeWords:
    """The chunks that hold some terms, with what each term tells."""

    def __init__(
        self,
        session: Session,
        records: RecordIndex,
        wall: int | None,
        chunks: Container[int] | None,
        total: int,
        terms: Mapping[str, float],
        most_terms: int,
        most_rows: int = MOST_ROWS,
    ) -> None:
        """``terms`` are what is looked for, each with how much it is meant; of them the
        ``most_terms`` that tell most are used, and none that more than ``most_rows`` hold. Only
        ``chunks`` are counted, or all, ``total`` in number.
        """
        self._session, self._records = session, records
        looked_up: list[tuple[float, str, list[int]]] = []
        for term, meant in terms.items():
            rows = records.match(session, term, wall, "code", most_rows + 1)
            if len(rows) > most_rows:
                continue
            if chunks is not None:
                rows = [row for row in rows if record_no(row) in chunks]
            count = len(rows)
            if count:
                looked_up.append(
                    (
                        meant * math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5)),
                        term,
                        rows,
                    )
                )
        looked_up.sort(reverse=True, key=lambda each: each[0])
        self.weights = {term: weight for weight, term, _ in looked_up[:most_terms]}
        self._rows: dict[int, float] = {}
        known = self._rows
        for weight, _, rows in looked_up[:most_terms]:
            for row in rows:
                known[row] = known.get(row, 0.0) + weight

    @property
    def ideal(self) -> float:
        """The score of a chunk of usual length that holds every term once in its body."""
        return sum(self.weights.values())

    def scored(self, candidates: int) -> dict[int, Scored]:
        """The best chunks by number, at most so many; of a long one, its best piece."""
        best = sorted(self._rows, key=lambda row: (-self._rows[row], -row))[:candidates]
        texts = self._records.texts(self._session, best)
        split = {row: (head.split(), body.split()) for row, (head, body) in texts.items()}
        average = sum(len(body) for _, body in split.values()) / len(split) if split else 1.0
        found: dict[int, Scored] = {}
        for row, (head, body) in split.items():
            scored = self._score(head, body, average or 1.0)
            no = record_no(row)
            if no not in found or scored.score > found[no].score:
                found[no] = scored
        return found

    def _score(self, head: list[str], body: list[str], average: float) -> Scored:
        weights = self.weights
        counts: dict[str, float] = {}
        for terms, each in ((body, 1.0), (head, _HEAD_WEIGHT)):
            for term in terms:
                if term in weights:
                    counts[term] = counts.get(term, 0.0) + each
        norm = _K1 * (1 - _B + _B * len(body) / average)
        brought = {
            term: weights[term] * count * (_K1 + 1) / (count + norm)
            for term, count in counts.items()
        }
        return Scored(math.fsum(brought.values()), brought)
