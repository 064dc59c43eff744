"""The second stage of a search: fetch what the ranking needs to know about each row.

For every row its terms, role, time and place, and what stands around it.
The wall and the filters are checked here once more, against the records themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from smara.core.storable import from_storable
from smara.core.text import analyze
from smara.database.database import Session, marks
from smara.database.fulltext import Within, no_of, row_of
from smara.messages.store import MessageStore
from smara.search.rank import Candidate

REACH = 2
"""How far away a message may stand and still lend its words."""
_SCANNED = 2_000


class _Record(NamedTuple):
    """Where a message stands, who said it and when, and how long it is."""

    no: int
    thread_no: int
    seq: int
    role: str
    created_at: int
    term_count: int


class Pool:
    """Candidates, and the messages around them."""

    def __init__(self, candidates: list[Candidate], neighbors: list[Candidate], records: dict[int, _Record]) -> None:
        self.candidates = candidates
        self.neighbors = neighbors
        self._records = records
        self._by_place: dict[tuple[int, int], int] | None = None

    def beside(self, no: int, count: int) -> tuple[list[int], list[int]]:
        """The messages before and after one, in order."""
        if self._by_place is None:
            self._by_place = {(record.thread_no, record.seq): record.no for record in self._records.values()}
        thread_no, seq = self._records[no].thread_no, self._records[no].seq
        steps = range(1, min(count, REACH) + 1)
        before = [found for step in steps if (found := self._by_place.get((thread_no, seq - step))) is not None]
        after = [found for step in steps if (found := self._by_place.get((thread_no, seq + step))) is not None]
        return before[::-1], after


def fetch_pool(session: Session, store: MessageStore, rows: Sequence[int], within: Within) -> Pool:
    """What the ranking needs for these rows.

    Of a neighbor only its length is fetched: one that holds a term of the query is a
    candidate itself.
    """
    if not rows:
        return Pool([], [], {})
    numbers = {no_of(row) for row in rows}
    records = _records(session, store, sorted(numbers), within.resource_id)
    texts = store.database.fulltext.texts(session, rows)
    beside = [
        Candidate(row_of(no), record.thread_no, record.seq, record.role, record.created_at, "", "", record.term_count)
        for no, record in records.items()
        if no not in numbers
    ]
    return Pool(_candidates(rows, texts, records), beside, records)


def scan_pool(session: Session, store: MessageStore, within: Within) -> Pool:
    """The newest messages, read without the index."""
    found = session.all(
        store.sql("SELECT no, raw_content FROM messages WHERE project_no = :project ORDER BY no DESC LIMIT ?"),
        (_SCANNED,),
    )
    records = _records(session, store, sorted(row[0] for row in found), within.resource_id)
    texts: dict[int, tuple[str, str]] = {}
    for no, stored in found:
        terms = analyze(from_storable(stored)[:20_000])
        texts[row_of(no)] = (terms.prose, terms.code)
    allowed = [row for row in texts if no_of(row) in records and _is_within(records[no_of(row)], within)]
    return Pool(_candidates(allowed, texts, records), [], records)


def _is_within(record: _Record, within: Within) -> bool:
    return (
        within.thread_no in (None, record.thread_no)
        and (not within.roles or record.role in within.roles)
        and (within.since_ms is None or record.created_at >= within.since_ms)
        and (within.until_ms is None or record.created_at < within.until_ms)
    )


def _records(
    session: Session, store: MessageStore, numbers: Sequence[int], resource_id: str | None
) -> dict[int, _Record]:
    """The records of messages and of those around them."""
    join, where, values = "", "", []  # type: tuple[str, str, list[object]]
    if resource_id is not None:
        join, where, values = " JOIN threads t ON t.no = m.thread_no", " AND t.resource_id = ?", [resource_id]
    found: dict[int, _Record] = {}
    for start in range(0, len(numbers), 500):
        part = numbers[start : start + 500]
        sql = store.sql(
            "SELECT n.no, n.thread_no, n.seq, n.role, n.created_at, n.term_count"
            f" FROM messages m{join} JOIN messages n ON n.thread_no = m.thread_no"
            f" AND n.seq BETWEEN m.seq - {REACH} AND m.seq + {REACH}"
            f" WHERE m.project_no = :project AND m.no IN ({marks(len(part))}){where}"
        )
        for row in session.all(sql, (*part, *values)):
            found[row[0]] = _Record._make(row)
    return found


def _candidates(rows: Iterable[int], texts: dict[int, tuple[str, str]], records: dict[int, _Record]) -> list[Candidate]:
    found = []
    for row in rows:
        record, text = records.get(no_of(row)), texts.get(row)
        if record is None or text is None:
            continue  # outside the resource, or gone since it was matched
        prose, code = text
        length = (prose.count(" ") + 1 if prose else 0) + (code.count(" ") + 1 if code else 0)
        found.append(Candidate(row, record.thread_no, record.seq, record.role, record.created_at, prose, code, length))
    return found
