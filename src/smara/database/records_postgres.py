"""The index of records on PostgreSQL: tables of terms with a GIN index over them; code has one of
its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session
from smara.database.fulltext_postgres import distinct_terms, quoted
from smara.database.records import RecordKind, RecordTerms, record_kind, record_no, record_row


class PostgresRecordIndex:
    """A tsvector per row, asked for rows and never for an order of merit."""

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
        table = _table_of(kind)
        session.run_many(
            f"INSERT INTO {table} (kind, no, piece, project_no, head, body, terms)"
            " VALUES (?, ?, ?, ?, ?, ?, array_to_tsvector(string_to_array(?, ' ')))",
            [
                (kind, no, piece, project_no, head, body, distinct_terms(head, body))
                for no, terms in records
                for piece, body in enumerate(terms.bodies)
                for head in (terms.head if piece == 0 else "",)
            ],
        )

    def remove(self, session: Session, kind: RecordKind, numbers: Sequence[int]) -> None:
        if numbers:
            table = _table_of(kind)
            session.run(
                f"DELETE FROM {table} WHERE kind = ? AND no = ANY(?::bigint[])",
                (kind, list(numbers)),
            )

    def match(
        self,
        session: Session,
        term: str,
        project_no: int | None,
        kind: RecordKind,
        limit: int,
        prefix: bool = False,
    ) -> list[int]:
        table = _table_of(kind)
        rows = session.all(
            f"SELECT no, piece FROM {table}"
            " WHERE terms @@ ?::tsquery AND kind = ? AND (?::bigint IS NULL OR project_no = ?)"
            " ORDER BY no DESC, piece DESC LIMIT ?",
            (quoted(term) + (":*" if prefix else ""), kind, project_no, project_no, limit),
        )
        return [record_row(kind, row[0], row[1]) for row in rows]

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        found: dict[int, tuple[str, str]] = {}
        for table in sorted({_table_of(record_kind(row)) for row in rows}):
            wanted = [row for row in rows if _table_of(record_kind(row)) == table]
            there = session.all(
                f"SELECT i.kind, i.no, i.piece, i.head, i.body FROM {table} i"
                " JOIN unnest(?::text[], ?::bigint[], ?::int[]) AS wanted (kind, no, piece)"
                " ON i.kind = wanted.kind AND i.no = wanted.no AND i.piece = wanted.piece",
                (
                    [record_kind(row) for row in wanted],
                    [record_no(row) for row in wanted],
                    [row & 0xFF for row in wanted],
                ),
            )
            found.update((record_row(row[0], row[1], row[2]), (row[3], row[4])) for row in there)
        return found

    def problems(self, session: Session, deep: bool) -> list[str]:
        row = session.one(
            "SELECT EXISTS (SELECT 1 FROM tasks) AND NOT EXISTS (SELECT 1 FROM record_index)"
        )
        if row and row[0]:
            return ["The index of tasks is empty, and there are tasks."]
        if not deep:
            return []
        row = session.one(
            "SELECT count(*) FROM tasks t"
            " WHERE NOT EXISTS (SELECT 1 FROM record_index i WHERE i.kind = 'task' AND i.no = t.no)"
        )
        missing = int(row[0]) if row else 0
        if missing:
            return [f"The index of tasks lacks {missing} of them."]
        row = session.one(
            "SELECT count(*) FROM memories m WHERE (m.deprecated_at IS NULL OR "
            "m.deprecated_because = 'superseded')"
            " AND NOT EXISTS (SELECT 1 FROM record_index i WHERE i.kind = 'memory' AND i.no = m.no)"
        )
        missing = int(row[0]) if row else 0
        if missing:
            return [f"The index of memories lacks {missing} of them."]
        row = session.one(
            "SELECT count(*) FROM code_chunks c"
            " WHERE NOT EXISTS (SELECT 1 FROM code_index i WHERE i.kind = 'code' AND i.no = c.no)"
        )
        missing = int(row[0]) if row else 0
        return [f"The index of code lacks {missing} pieces."] if missing else []

    def is_sound(self, session: Session) -> bool:
        return True

    def recreate(self, session: Session, is_damaged: bool) -> None:
        session.run("TRUNCATE record_index, code_index")

    def optimize(self, session: Session) -> None:
        session.run("ANALYZE record_index")
        session.run("ANALYZE code_index")


def _table_of(kind: RecordKind) -> str:
    return "code_index" if kind == "code" else "record_index"
