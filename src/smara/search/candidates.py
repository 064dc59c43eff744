"""The second stage of a search: fetch what the ranking needs to know about each row.

For every row its terms, role, time and place, and how long the messages around it are.
The wall and the filters are checked here once more, against the records themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from smara.core.storable import from_storable
from smara.core.text import analyze
from smara.database.database import Row, Session, marks, parts
from smara.database.fulltext import Within, no_of, row_of
from smara.messages.store import MessageStore
from smara.search.evidence import AROUND, Candidate

REACH = 2
"""How far away a message may stand and still be shown beside another."""
_SCANNED = 2_000
_LENGTHS = ", ".join(
    "(SELECT n.term_count FROM messages n WHERE n.thread_no = m.thread_no AND n.seq = m.seq "
    f"{step:+d})"
    for step in AROUND
)


def fetch_candidates(
    session: Session, store: MessageStore, rows: Sequence[int], within: Within
) -> list[Candidate]:
    """What the ranking needs for these rows.

    Of what stands around them only the length: a neighbor that holds a term of the query
    is a candidate itself.
    """
    if not rows:
        return []
    records = _records(
        session,
        store,
        sorted({no_of(row) for row in rows}),
        resource_id=within.resource_id,
        has_lengths=True,
    )
    return _candidates(rows, store.database.fulltext.texts(session, rows), records)


def scan_candidates(session: Session, store: MessageStore, within: Within) -> list[Candidate]:
    """The newest messages, read without the index."""
    found = session.all(
        store.sql(
            "SELECT no, raw_content FROM messages WHERE project_no = :project ORDER BY no DESC "
            "LIMIT ?"
        ),
        (_SCANNED,),
    )
    numbers = sorted(row[0] for row in found)
    records = _records(session, store, numbers, resource_id=within.resource_id, has_lengths=False)
    texts: dict[int, tuple[str, str]] = {}
    for no, stored in found:
        terms = analyze(from_storable(stored)[:20_000])
        texts[row_of(no)] = (terms.prose, terms.code)
    return _candidates(
        texts, texts, {no: record for no, record in records.items() if _is_within(record, within)}
    )


def find_beside(
    session: Session, store: MessageStore, numbers: Sequence[int], count: int
) -> dict[int, tuple[list[int], list[int]]]:
    """For each message the numbers of those before and after it in its thread, in order."""
    found: dict[int, tuple[list[int], list[int]]] = {no: ([], []) for no in numbers}
    reach = min(count, REACH)
    for part in parts(numbers if reach > 0 else ()):
        sql = store.sql(
            "SELECT m.no, n.no, n.seq - m.seq FROM messages m JOIN messages n ON n.thread_no = "
            "m.thread_no"
            f" AND n.seq BETWEEN m.seq - {reach} AND m.seq + {reach} AND n.no <> m.no"
            f" WHERE m.project_no = :project AND m.no IN ({marks(len(part))}) ORDER BY n.seq"
        )
        for no, other, step in session.all(sql, part):
            found[no][step > 0].append(other)
    return found


def _is_within(record: Row, within: Within) -> bool:
    _, thread_no, _, role, created_at, *_ = record
    return (
        within.thread_no in (None, thread_no)
        and (not within.roles or role in within.roles)
        and (within.since_ms is None or created_at >= within.since_ms)
        and (within.until_ms is None or created_at < within.until_ms)
    )


def _records(
    session: Session,
    store: MessageStore,
    numbers: Sequence[int],
    resource_id: str | None,
    has_lengths: bool,
) -> dict[int, Row]:
    """(number, thread, place, role, time, and the lengths of those around it) of messages, by
    number.
    """
    lengths = f", {_LENGTHS}" if has_lengths else ""
    join, where = "", ""
    values: list[object] = []
    if resource_id is not None:
        join, where, values = (
            " JOIN threads t ON t.no = m.thread_no",
            " AND t.resource_id = ?",
            [resource_id],
        )
    found: dict[int, Row] = {}
    for part in parts(numbers):
        sql = store.sql(
            f"SELECT m.no, m.thread_no, m.seq, m.role, m.created_at{lengths} FROM messages m{join}"
            f" WHERE m.project_no = :project AND m.no IN ({marks(len(part))}){where}"
        )
        found.update([(record[0], record) for record in session.all(sql, (*part, *values))])
    return found


def _candidates(
    rows: Iterable[int], texts: Mapping[int, tuple[str, str]], records: Mapping[int, Row]
) -> list[Candidate]:
    found = []
    for row in rows:
        record, text = records.get(no_of(row)), texts.get(row)
        if record is None or text is None:
            continue  # outside the resource, or gone since it was matched
        prose, code = text
        length = (prose.count(" ") + 1 if prose else 0) + (code.count(" ") + 1 if code else 0)
        _, thread_no, seq, role, created_at = record[:5]
        found.append(
            Candidate(
                row,
                thread_no,
                seq,
                role=role,
                created_at=created_at,
                prose=prose,
                code=code,
                length=length,
                around=record[5:],
            )
        )
    return found
