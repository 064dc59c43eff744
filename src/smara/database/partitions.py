"""Move PostgreSQL's text indexes into tables divided by project.

A large table is moved in many transactions: a process that ends meanwhile leaves the rest to the
next one. Step 41 of the migrations makes the tables; step 42 moves what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from smara.database.session import Session

if TYPE_CHECKING:
    from smara.database.postgres import PostgresDatabase

MOVED = 42
"""The step before which rows are moved."""
_TERMS = "array_to_tsvector(terms_of_project(project_no, tsvector_to_array(terms)))"
_RECORD_TERMS = f"kind, no, piece, project_no, head, body, {_TERMS}"
_MOVES = {
    "message_index": "no, chunk, project_no, thread_no, resource, role, prose, code, " + _TERMS,
    "record_index": _RECORD_TERMS,
    "code_index": _RECORD_TERMS,
    "words": "project_no, word, terms_of_project(project_no, trigrams)",
}
_MOVED_ROWS = 5_000


def move_rows(database: PostgresDatabase, is_moved: Callable[[Session], bool]) -> None:
    """Move all rows, unless another process was faster."""
    for table, columns in _MOVES.items():
        count = 1
        while count:
            with database.write(is_derived=True) as session:
                session.run(database.lock_statement)
                count = 0 if is_moved(session) else _move_batch(session, table, columns)


def _move_batch(session: Session, table: str, columns: str) -> int:
    return session.run(
        f"WITH batch AS (SELECT ctid FROM {table}_whole LIMIT {_MOVED_ROWS}), moved AS"
        f" (DELETE FROM {table}_whole w USING batch WHERE w.ctid = batch.ctid RETURNING w.*)"
        f" INSERT INTO {table} SELECT {columns} FROM moved ON CONFLICT DO NOTHING"
    )
