"""The index of records on SQLite: an FTS5 table with the wall as a term, and a second one for code.

Code has a table of its own because there is so much of it: with 50,000 of its rows among the tasks
and memories, every look for one of those would pass over them, 18 ms for each common word.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session, marks, parts
from smara.database.fulltext_sqlite import first_varint, quoted
from smara.database.records import (
    KIND_BITS,
    MAX_PIECES,
    PIECE_BITS,
    RecordKind,
    RecordTerms,
    kind_code,
    record_kind,
    record_row,
)
from smara.database.sqlite_repair import are_sound, remake
from smara.errors import CorruptError

_COLUMNS = "(head, body, scope, tokenize = \"ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'\""
_DEFINITIONS = {
    "record_index": f"CREATE VIRTUAL TABLE record_index USING fts5 {_COLUMNS})",
    # Nobody asks where in a chunk a term stands, and without places the table is made a third
    # sooner.
    "code_index": f"CREATE VIRTUAL TABLE code_index USING fts5 {_COLUMNS}, detail = none)",
}
_TABLES: tuple[tuple[str, str], ...] = (("record_index", "tasks"), ("code_index", "code"))

_KIND_OF_ROW = f"(rowid >> {PIECE_BITS} & {(1 << KIND_BITS) - 1})"


class SqliteRecordIndex:
    """FTS5, asked for rows and never for an order of merit."""

    def put(
        self, session: Session, kind: RecordKind, no: int, project_no: int, terms: RecordTerms
    ) -> None:
        self.remove(session, kind, [no])
        self.add(session, kind, project_no, [(no, terms)])

    def add(
        self,
        session: Session,
        kind: RecordKind,
        project_no: int,
        records: Sequence[tuple[int, RecordTerms]],
    ) -> None:
        table, scope = _table_of(kind), f"^p{project_no}"
        rows = [
            (record_row(kind, no, piece), terms.head if piece == 0 else "", body, scope)
            for no, terms in records
            for piece, body in enumerate(terms.bodies)
        ]
        session.run_many(
            f"INSERT INTO {table} (rowid, head, body, scope) VALUES (?, ?, ?, ?)", rows
        )
        _count(session, table, len(rows))

    def remove(self, session: Session, kind: RecordKind, numbers: Sequence[int]) -> None:
        table = _table_of(kind)
        removed = 0
        for no in numbers:
            pieces = (record_row(kind, no), record_row(kind, no, MAX_PIECES - 1))
            removed += session.run(f"DELETE FROM {table} WHERE rowid BETWEEN ? AND ?", pieces)
        _count(session, table, -removed)

    def match(
        self,
        session: Session,
        term: str,
        project_no: int | None,
        kind: RecordKind,
        limit: int,
        prefix: bool = False,
    ) -> list[int]:
        expression = (
            quoted(term)
            + (" *" if prefix else "")
            + ("" if project_no is None else f' AND "^p{project_no}"')
        )
        # The kind is read off the row number, which costs less than one more list to meet. A bound
        # limit would make SQLite prepare the statement anew at every call.
        table = _table_of(kind)
        statement = (
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND {_KIND_OF_ROW} = ?"
            f" ORDER BY rowid DESC LIMIT {int(limit)}"
        )
        return [row[0] for row in session.all(statement, (expression, kind_code(kind)))]

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        found: dict[int, tuple[str, str]] = {}
        for table, wanted in _by_table(rows):
            for part in parts(wanted):
                statement = (
                    f"SELECT id, c0, c1 FROM {table}_content WHERE id IN ({marks(len(part))})"
                )
                found.update((row[0], (row[1], row[2])) for row in session.all(statement, part))
        return found

    def problems(self, session: Session, deep: bool) -> list[str]:
        return [
            problem
            for table, what in _TABLES
            for problem in _problems(session, table, what, deep=deep)
        ]

    def is_sound(self, session: Session) -> bool:
        return are_sound(session, tuple(_DEFINITIONS))

    def recreate(self, session: Session, is_damaged: bool) -> None:
        for table, definition in _DEFINITIONS.items():
            remake(session, (table,), definition, is_damaged=is_damaged)
            session.run(
                "INSERT INTO index_state (name, rows, analysis) VALUES (?, 0, 1)"
                " ON CONFLICT (name) DO UPDATE SET rows = 0",
                (table,),
            )

    def optimize(self, session: Session) -> None:
        for table in _DEFINITIONS:
            session.run(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def _table_of(kind: RecordKind) -> str:
    return "code_index" if kind == "code" else "record_index"


def _by_table(rows: Sequence[int]) -> list[tuple[str, list[int]]]:
    code = [row for row in rows if record_kind(row) == "code"]
    if not code:
        return [("record_index", list(rows))]
    return [
        ("code_index", code),
        ("record_index", [row for row in rows if record_kind(row) != "code"]),
    ]


def _count(session: Session, table: str, more: int) -> None:
    if more:
        session.run("UPDATE index_state SET rows = rows + ? WHERE name = ?", (more, table))


def _problems(session: Session, table: str, what: str, deep: bool) -> list[str]:
    try:
        expected = session.one("SELECT rows FROM index_state WHERE name = ?", (table,))
        averages = session.one(f"SELECT block FROM {table}_data WHERE id = 1")
        if expected is None or averages is None:
            return [f"The index of {what} has lost its own records."]
        there = first_varint(averages[0]) if averages[0] else 0
        if there != expected[0]:
            return [f"The index of {what} holds {there} rows, and {expected[0]} were put in."]
        session.all(f"SELECT rowid FROM {table} WHERE {table} MATCH '\"^p1\"' LIMIT 1")
        if deep:
            session.run(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    except CorruptError as error:
        return [f"The index of {what} is damaged ({error.facts.get('reason')})."]
    return []
