"""The nearest messages inside a scope: one thread, some roles, a time.

A narrow scope is listed, and its rows are compared one by one. In a wide one the nearest rows of
all are taken and those outside left out, more and more of them until enough are inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smara.core.text import CHUNK_CHARACTERS
from smara.database.database import Session, marks, parts
from smara.database.fulltext import Within, joined, no_of, row_of
from smara.database.fulltext_sqlite import record_conditions
from smara.database.vectors import Shelf
from smara.meaning.nearest import Nearest
from smara.meaning.store import VectorStore

if TYPE_CHECKING:
    from smara.database.vectors import Floats

NARROW = 4_000
"""A scope of so many messages is listed: comparing their rows one by one takes about 20 ms."""


def allowed_rows(
    session: Session,
    store: VectorStore,
    nearest: Nearest,
    shelf: Shelf,
    query: Floats,
    limit: int,
    within: Within,
) -> list[tuple[int, float]]:
    """The nearest rows of messages inside a scope, best first."""
    inside = _listed(session, store, within, limit=NARROW + 1)
    if len(inside) <= NARROW:
        rows = [row for no, pieces in inside for row in range(row_of(no), row_of(no, pieces))]
        return nearest.find(session, shelf, query, limit, among=rows)
    answer: list[tuple[int, float]] = []
    for wanted in (limit * 4, limit * 32, limit * 256):
        found = nearest.find(session, shelf, query, wanted)
        kept = _kept(session, store, {no_of(row) for row, _ in found}, within=within)
        answer = [each for each in found if no_of(each[0]) in kept]
        if len(answer) >= limit or len(found) < wanted:
            break
    return answer[:limit]


def _listed(
    session: Session, store: VectorStore, within: Within, limit: int
) -> list[tuple[int, int]]:
    """Messages inside the scope, with the number of their pieces at most; no more than
    ``limit``.
    """
    conditions, values = _conditions(within)
    rows = session.all(
        store.sql(
            "SELECT m.no, length(m.raw_content) FROM messages m JOIN threads t ON t.no = "
            "m.thread_no"
            f" WHERE m.project_no = :project{joined(conditions)} LIMIT ?"
        ),
        (*values, limit),
    )
    # Two pieces that follow each other are longer than one may be, or the first would have gone on.
    return [(int(row[0]), 2 + 2 * int(row[1]) // CHUNK_CHARACTERS) for row in rows]


def _kept(session: Session, store: VectorStore, numbers: set[int], within: Within) -> set[int]:
    conditions, values = _conditions(within)
    wanted, found = sorted(numbers), set[int]()
    for part in parts(wanted):
        rows = session.all(
            store.sql(
                "SELECT m.no FROM messages m JOIN threads t ON t.no = m.thread_no"
                f" WHERE m.project_no = :project{joined(conditions)} AND m.no IN "
                f"({marks(len(part))})"
            ),
            (*values, *part),
        )
        found.update(int(row[0]) for row in rows)
    return found


def _conditions(within: Within) -> tuple[list[str], list[object]]:
    conditions, values = record_conditions(within)
    if within.thread_no is not None:
        conditions.append("m.thread_no = ?")
        values.append(within.thread_no)
    if within.resource_id is not None:
        conditions.append("t.resource_id = ?")
        values.append(within.resource_id)
    # Threads have an index by time, messages have none.
    if within.since_ms is not None:
        conditions.append("t.updated_at >= ?")
        values.append(within.since_ms)
    if within.until_ms is not None:
        conditions.append("t.created_at < ?")
        values.append(within.until_ms)
    if within.roles:
        conditions.append(f"m.role IN ({marks(len(within.roles))})")
        values += within.roles
    return conditions, values
