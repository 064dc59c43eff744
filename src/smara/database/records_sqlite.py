"""The index of records on SQLite: one FTS5 table, with the wall and the kind as terms."""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session, marks
from smara.database.fulltext_sqlite import first_varint, quoted
from smara.database.records import KIND_BITS, MAX_PIECES, PIECE_BITS, RecordKind, RecordTerms, kind_code, record_row
from smara.database.sqlite_repair import are_sound, remake
from smara.errors import CorruptError

_DEFINITION = (
    "CREATE VIRTUAL TABLE record_index USING fts5 (head, body, scope,"
    " tokenize = \"ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'\")"
)

_KIND_OF_ROW = f"(rowid >> {PIECE_BITS} & {(1 << KIND_BITS) - 1})"


class SqliteRecordIndex:
    """FTS5, asked for rows and never for an order of merit."""

    def put(self, session: Session, kind: RecordKind, no: int, project_no: int, terms: RecordTerms) -> None:
        first = record_row(kind, no)
        removed = session.run(
            "DELETE FROM record_index WHERE rowid BETWEEN ? AND ?", (first, record_row(kind, no, MAX_PIECES - 1))
        )
        scope = f"^p{project_no}"
        session.run_many(
            "INSERT INTO record_index (rowid, head, body, scope) VALUES (?, ?, ?, ?)",
            [(first + piece, terms.head if piece == 0 else "", body, scope) for piece, body in enumerate(terms.bodies)],
        )
        if len(terms.bodies) != removed:
            session.run(
                "UPDATE index_state SET rows = rows + ? WHERE name = 'record_index'", (len(terms.bodies) - removed,)
            )

    def match(
        self, session: Session, term: str, project_no: int | None, kind: RecordKind, limit: int, prefix: bool = False
    ) -> list[int]:
        expression = quoted(term) + (" *" if prefix else "") + ("" if project_no is None else f' AND "^p{project_no}"')
        # The kind is read off the row number, which costs less than one more list to meet. A bound
        # limit would make SQLite prepare the statement anew at every call.
        sql = (
            f"SELECT rowid FROM record_index WHERE record_index MATCH ? AND {_KIND_OF_ROW} = ?"
            f" ORDER BY rowid DESC LIMIT {int(limit)}"
        )
        return [row[0] for row in session.all(sql, (expression, kind_code(kind)))]

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        found: dict[int, tuple[str, str]] = {}
        for start in range(0, len(rows), 500):
            part = rows[start : start + 500]
            sql = f"SELECT id, c0, c1 FROM record_index_content WHERE id IN ({marks(len(part))})"
            found.update((row[0], (row[1], row[2])) for row in session.all(sql, part))
        return found

    def problems(self, session: Session, deep: bool) -> list[str]:
        try:
            expected = session.one("SELECT rows FROM index_state WHERE name = 'record_index'")
            averages = session.one("SELECT block FROM record_index_data WHERE id = 1")
            if expected is None or averages is None:
                return ["The index of tasks has lost its own records."]
            there = first_varint(averages[0]) if averages[0] else 0
            if there != expected[0]:
                return [f"The index of tasks holds {there} rows, and {expected[0]} were put in."]
            session.all("SELECT rowid FROM record_index WHERE record_index MATCH '\"^p1\"' LIMIT 1")
            if deep:
                session.run("INSERT INTO record_index (record_index, rank) VALUES ('integrity-check', 1)")
        except CorruptError as error:
            return [f"The index of tasks is damaged ({error.facts.get('reason')})."]
        return []

    def is_sound(self, session: Session) -> bool:
        return are_sound(session, ("record_index",))

    def recreate(self, session: Session, is_damaged: bool) -> None:
        remake(session, ("record_index",), _DEFINITION, is_damaged)
        session.run(
            "INSERT INTO index_state (name, rows, analysis) VALUES ('record_index', 0, 1)"
            " ON CONFLICT (name) DO UPDATE SET rows = 0"
        )

    def optimize(self, session: Session) -> None:
        session.run("INSERT INTO record_index (record_index) VALUES ('optimize')")
