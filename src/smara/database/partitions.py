"""Divide PostgreSQL's large tables by project, and move former ones into them.

A large table is moved in many transactions: a process that ends meanwhile leaves the rest to the
next one. The step before makes the tables; the one named here moves what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from smara.database.session import Session

if TYPE_CHECKING:
    from smara.database.postgres import PostgresDatabase

INDEXES = ("message_index", "record_index", "code_index", "words", "vectors")
"""The divided tables that are made from records, and can be made again."""
_COPIED = {48: "commits", 50: "code_chunks", 52: "observations", 54: "memories", 56: "messages"}
DIVIDED = (*INDEXES, *_COPIED.values())
"""The tables of PostgreSQL that are divided by project."""
PART_OF_ROW = """(SELECT k FROM generate_series(0, 15) AS k
  WHERE satisfies_hash_partition('message_index'::regclass, 16, k, project_no))"""
"""The number of the part in which the project of a row lies."""
_MOVED_ROWS = 5_000
_TERMS = "array_to_tsvector(terms_of_project(project_no, tsvector_to_array(terms)))"
_RECORD_TERMS = f"SELECT kind, no, piece, project_no, head, body, {_TERMS} FROM moved"
_MOVES = {
    42: {
        "message_index": "SELECT no, chunk, project_no, thread_no, resource, role, prose, code,"
        f" {_TERMS} FROM moved",
        "record_index": _RECORD_TERMS,
        "code_index": _RECORD_TERMS,
        "words": "SELECT project_no, word, terms_of_project(project_no, trigrams) FROM moved",
    },
    45: {
        "vectors": "SELECT m.no, s.project_no, m.vector FROM moved m JOIN vector_shelves s"
        " ON s.no = m.no >> 47"
    },
}
_STATEMENTS = {
    step: [
        f"WITH batch AS (SELECT ctid FROM {table}_whole LIMIT {_MOVED_ROWS}), moved AS"
        f" (DELETE FROM {table}_whole w USING batch WHERE w.ctid = batch.ctid RETURNING w.*)"
        f" INSERT INTO {table} {source} ON CONFLICT DO NOTHING"
        for table, source in moves.items()
    ]
    for step, moves in _MOVES.items()
} | {
    # A row that a writer has locked is left out: if it is changed, a trigger copies it, and the
    # step copies what is missing.
    step: [
        f"WITH batch AS MATERIALIZED (SELECT * FROM {table} WHERE no > (SELECT last_no FROM"
        f" {table}_moved) ORDER BY no LIMIT {_MOVED_ROWS} FOR SHARE SKIP LOCKED), copied AS"
        f" (INSERT INTO {table}_parts SELECT * FROM batch ON CONFLICT DO NOTHING)"
        f" UPDATE {table}_moved SET last_no = (SELECT max(no) FROM batch)"
        " WHERE EXISTS (SELECT FROM batch)",
        f"ANALYZE {table}_parts",
    ]
    for step, table in _COPIED.items()
}
MOVED = tuple(_STATEMENTS)
"""The steps before which rows are moved."""


def move_rows(database: PostgresDatabase, step: int, is_moved: Callable[[Session], bool]) -> None:
    """Move all rows of a step, unless another process was faster."""
    for statement in _STATEMENTS[step]:
        count = 1
        while count > 0:
            with database.write(is_derived=True) as session:
                session.run(database.lock_statement)
                count = 0 if is_moved(session) else session.run(statement)
