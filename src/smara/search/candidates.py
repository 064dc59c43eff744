"""The second stage of a search: fetch what the ranking needs to know about each row.

For every row its terms, role, time and place, and what stands around it.
The wall and the filters are checked here once more, against the records themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smara.core.storable import from_storable
from smara.core.text import analyze
from smara.database.database import Row, Session, marks
from smara.database.fulltext import Within, no_of, row_of
from smara.messages.store import MessageStore
from smara.search.rank import Candidate

REACH = 2
"""How far away a message may stand and still lend its words."""
_SCANNED = 2_000


class Pool:
    """Candidates, and what stands around them."""

    def __init__(
        self,
        candidates: list[Candidate],
        lengths: dict[tuple[int, int], int] | None = None,
        numbers: dict[tuple[int, int], int] | None = None,
    ) -> None:
        self.candidates = candidates
        self.lengths = lengths or {}
        self._numbers = numbers or {}
        self._places: dict[int, tuple[int, int]] = {}

    def joined(self, other: Pool) -> Pool:
        """This pool and another in one."""
        return Pool(self.candidates + other.candidates, self.lengths | other.lengths, self._numbers | other._numbers)

    def of_role(self, role: str | None) -> Pool:
        """The same pool with the messages of one role alone."""
        if role is None:
            return self
        return Pool([each for each in self.candidates if each.role == role], self.lengths, self._numbers)

    def beside(self, no: int, count: int) -> tuple[list[int], list[int]]:
        """The messages before and after one, in order."""
        if not self._places:
            self._places = {number: place for place, number in self._numbers.items()}
        thread_no, seq = self._places[no]
        steps = range(1, min(count, REACH) + 1)
        before = [found for step in steps if (found := self._numbers.get((thread_no, seq - step))) is not None]
        after = [found for step in steps if (found := self._numbers.get((thread_no, seq + step))) is not None]
        return before[::-1], after


def fetch_pool(session: Session, store: MessageStore, rows: Sequence[int], within: Within) -> Pool:
    """What the ranking needs for these rows.

    Of what stands around them only the length: a neighbor that holds a term of the query
    is a candidate itself.
    """
    if not rows:
        return Pool([])
    around = _around(session, store, sorted({no_of(row) for row in rows}), within.resource_id)
    texts = store.database.fulltext.texts(session, rows)
    records = {record[0]: record for record in around}
    lengths = {(record[1], record[2]): record[5] for record in around}
    numbers = {(record[1], record[2]): record[0] for record in around}
    return Pool(_candidates(rows, texts, records), lengths, numbers)


def scan_pool(session: Session, store: MessageStore, within: Within) -> Pool:
    """The newest messages, read without the index."""
    found = session.all(
        store.sql("SELECT no, raw_content FROM messages WHERE project_no = :project ORDER BY no DESC LIMIT ?"),
        (_SCANNED,),
    )
    around = _around(session, store, sorted(row[0] for row in found), within.resource_id)
    records = {record[0]: record for record in around if _is_within(record, within)}
    texts: dict[int, tuple[str, str]] = {}
    for no, stored in found:
        terms = analyze(from_storable(stored)[:20_000])
        texts[row_of(no)] = (terms.prose, terms.code)
    numbers = {(record[1], record[2]): record[0] for record in around}
    return Pool(_candidates(texts, texts, records), None, numbers)


def _is_within(record: Row, within: Within) -> bool:
    _, thread_no, _, role, created_at, _ = record
    return (
        within.thread_no in (None, thread_no)
        and (not within.roles or role in within.roles)
        and (within.since_ms is None or created_at >= within.since_ms)
        and (within.until_ms is None or created_at < within.until_ms)
    )


def _around(session: Session, store: MessageStore, numbers: Sequence[int], resource_id: str | None) -> list[Row]:
    """(number, thread, place, role, time, terms) of messages and of those around them."""
    join, where = "", ""
    values: list[object] = []
    if resource_id is not None:
        join, where, values = " JOIN threads t ON t.no = m.thread_no", " AND t.resource_id = ?", [resource_id]
    found: list[Row] = []
    for start in range(0, len(numbers), 500):
        part = numbers[start : start + 500]
        sql = store.sql(
            "SELECT DISTINCT n.no, n.thread_no, n.seq, n.role, n.created_at, n.term_count"
            f" FROM messages m{join} JOIN messages n ON n.thread_no = m.thread_no"
            f" AND n.seq BETWEEN m.seq - {REACH} AND m.seq + {REACH}"
            f" WHERE m.project_no = :project AND m.no IN ({marks(len(part))}){where}"
        )
        found += session.all(sql, (*part, *values))
    return found


def _candidates(rows: Iterable[int], texts: dict[int, tuple[str, str]], records: dict[int, Row]) -> list[Candidate]:
    found = []
    for row in rows:
        record, text = records.get(no_of(row)), texts.get(row)
        if record is None or text is None:
            continue  # outside the resource, or gone since it was matched
        prose, code = text
        length = (prose.count(" ") + 1 if prose else 0) + (code.count(" ") + 1 if code else 0)
        _, thread_no, seq, role, created_at, _ = record
        found.append(Candidate(row, thread_no, seq, role, created_at, prose, code, length))
    return found
