"""The text index on PostgreSQL: a table of terms with a GIN index over them.

``array_to_tsvector`` takes our terms as they are, so no dictionary of the server decides
what is found. No ranking function of the server is used either.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session
from smara.database.fulltext import CHUNK_BITS, IndexRow, Matching, Within, joined, no_of
from smara.database.fulltext_sqlite import record_conditions

_CHUNK_MASK = (1 << CHUNK_BITS) - 1


class PostgresFullText:
    """A tsvector per row, asked for rows and never for an order of merit."""

    def add(self, session: Session, rows: Sequence[IndexRow]) -> None:
        session.run_many(
            "INSERT INTO message_index (no, chunk, project_no, thread_no, resource, role, prose, "
            "code, terms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, array_to_tsvector(string_to_array(?, ' ')))",
            [
                (
                    no_of(r.row),
                    r.row & _CHUNK_MASK,
                    r.project_no,
                    r.thread_no,
                    r.resource_id,
                    r.role,
                    r.prose,
                    r.code,
                    distinct_terms(r.prose, r.code),
                )
                for r in rows
            ],
        )

    def remove(self, session: Session, no: int) -> None:
        session.run("DELETE FROM message_index WHERE no = ?", (no,))

    def match(
        self,
        session: Session,
        terms: Sequence[str],
        within: Within,
        limit: int,
        prefix: bool = False,
    ) -> list[int]:
        query = " & ".join(quoted(term) for term in terms) + (":*" if prefix else "")
        conditions, values = record_conditions(within)
        scope: tuple[tuple[str, object], ...] = (
            ("project_no", within.project_no),
            ("thread_no", within.thread_no),
            ("resource", within.resource_id),
        )
        for column, value in scope:
            if value is not None:
                conditions.append(f"i.{column} = ?")
                values.append(value)
        if within.roles:
            conditions.append("i.role = ANY(?)")
            values.append(list(within.roles))
        join = " JOIN messages m ON m.no = i.no" if within.needs_records else ""
        sql = (
            f"SELECT i.no * {1 << CHUNK_BITS} + i.chunk FROM message_index i{join}"
            f" WHERE i.terms @@ ?::tsquery{joined(conditions)} ORDER BY i.no DESC, i.chunk DESC "
            "LIMIT ?"
        )
        return [row[0] for row in session.all(sql, (query, *values, limit))]

    def matching(self, term: str, within: Within) -> Matching:
        row = f"f.no * {1 << CHUNK_BITS} + f.chunk"
        source = "message_index f JOIN messages m ON m.no = f.no"
        return Matching(
            row,
            source,
            "f.terms @@ ?::tsquery",
            order="f.no DESC, f.chunk DESC",
            values=(quoted(term),),
        )

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        if not rows:
            return {}
        sql = (
            "SELECT i.no, i.chunk, i.prose, i.code FROM message_index i"
            " JOIN unnest(?::bigint[], ?::int[]) AS wanted (no, chunk) ON i.no = wanted.no AND "
            "i.chunk = wanted.chunk"
        )
        values = ([no_of(row) for row in rows], [row & _CHUNK_MASK for row in rows])
        return {row[0] << CHUNK_BITS | row[1]: (row[2], row[3]) for row in session.all(sql, values)}

    def problems(self, session: Session, deep: bool) -> list[str]:
        if not deep:
            row = session.one(
                "SELECT EXISTS (SELECT 1 FROM messages) AND NOT EXISTS (SELECT 1 FROM "
                "message_index)"
            )
            return ["The search index is empty, and there are messages."] if row and row[0] else []
        row = session.one(
            "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM message_index i "
            "WHERE i.no = m.no)"
        )
        missing = int(row[0]) if row else 0
        return [f"The search index lacks {missing} messages."] if missing else []

    def is_sound(self, session: Session) -> bool:
        return True

    def recreate(self, session: Session, is_damaged: bool) -> None:
        session.run("TRUNCATE message_index")

    def optimize(self, session: Session) -> None:
        session.run("ANALYZE message_index")


def quoted(term: str) -> str:
    """A term as a tsquery operand, in which nothing is an operator."""
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def distinct_terms(prose: str, code: str) -> str:
    """Each term of two streams once."""
    return " ".join(dict.fromkeys(f"{prose} {code}".split()))
