"""Implement the full-text indexes on PostgreSQL with GIN indexes.

Terms are stored as arrays; the vocabulary keeps trigrams, so that no extension is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from smara.database.fulltext import (
    CHUNK_BITS,
    IndexRow,
    Matching,
    RecordKind,
    RecordTerms,
    Within,
    after,
    index_table,
    join_terms,
    no_of,
    record_conditions,
    record_kind,
    record_no,
    record_row,
    shortest,
    trigrams,
)
from smara.database.session import Session, number

_CHUNK_MASK = (1 << CHUNK_BITS) - 1
_PART_OF_PROJECT = (
    "SELECT k FROM generate_series(0, 15) AS k"
    " WHERE satisfies_hash_partition('message_index'::regclass, 16, k, ?::bigint)"
)
_IN_PROJECT = " AND i.project_no = ?"
"""Names the project, so that its partition alone is read."""
_EXPECTED: tuple[tuple[RecordKind, str, str, str], ...] = (
    ("task", "tasks", "true", "tasks lacks {} of them"),
    (
        "memory",
        "memories",
        "(r.deprecated_at IS NULL OR r.deprecated_because = 'superseded')",
        "memories lacks {} of them",
    ),
    ("code", "code_chunks", "true", "code lacks {} pieces"),
    ("commit", "commits", "true", "commits lacks {} of them"),
    (
        "item",
        "framework_items",
        "(r.searched_fields IS NULL OR r.searched_fields <> '[]')",
        "items of frameworks lacks {} of them",
    ),
    (
        "decision",
        "(SELECT m.no FROM decisions d JOIN memories m ON m.no = d.memory_no"
        " WHERE m.deprecated_at IS NULL)",
        "true",
        "decisions lacks {} of them",
    ),
)
"""The records that the index must have: kind, table, condition, and how a lack is reported."""


class _PostgresIndex:
    """Tables of an index that can be made again from the records.

    Each term names its project. Asked for the project as well, the server takes it for a
    two-hundredth of the part that holds it, and intersects all its rows with those of a common
    term. So a look for terms names the part, and compares the project in a way that the server
    does not estimate.
    """

    tables: ClassVar[Sequence[str]]

    def __init__(self) -> None:
        self._parts: dict[int, int] = {}

    def part(self, session: Session, project_no: int) -> int:
        """Return which part holds a project; it never changes."""
        if project_no not in self._parts:
            self._parts[project_no] = number(session, _PART_OF_PROJECT, (project_no,))
        return self._parts[project_no]

    def is_sound(self, session: Session) -> bool:
        return True

    def recreate(self, session: Session, is_damaged: bool) -> None:
        for table in self.tables:
            session.run(f"TRUNCATE {table}")

    def optimize(self, session: Session) -> None:
        for table in self.tables:
            session.run(f"ANALYZE {table}")


class PostgresFullText(_PostgresIndex):
    """A tsvector per row, queried for rows without ranking."""

    tables = ("message_index",)

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
                    distinct_terms(r.project_no, r.prose, r.code),
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
        is_any: bool = False,
    ) -> list[int]:
        operator = " | " if is_any else " & "
        query = operator.join(quoted(within.project_no, term) for term in terms)
        query += ":*" if prefix else ""
        conditions, values = record_conditions(within)
        scope: tuple[tuple[str, object], ...] = (
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
        join = ""
        if within.needs_records:
            join = " JOIN messages m ON m.no = i.no"
            conditions.append("m.project_no = ?")
            values.append(within.project_no)
        sql = (
            f"SELECT i.no * {1 << CHUNK_BITS} + i.chunk"
            f" FROM message_index_{int(self.part(session, within.project_no))} i{join}"
            " WHERE i.terms @@ ?::tsquery AND coalesce(i.project_no = ?, false)"
            f"{join_terms(conditions)} ORDER BY i.no DESC, i.chunk DESC LIMIT ?"
        )
        values = [query, within.project_no, *values, limit]
        return [row[0] for row in session.all(sql, values)]

    def matching(self, term: str, within: Within) -> Matching:
        row = f"f.no * {1 << CHUNK_BITS} + f.chunk"
        source = "message_index f JOIN messages m ON m.no = f.no AND m.project_no = f.project_no"
        return Matching(
            row,
            source,
            "f.terms @@ ?::tsquery",
            # In the order of an index the server would walk the project for a name that stands in
            # one message.
            order="f.no + 0 DESC, f.chunk DESC",
            values=(quoted(within.project_no, term),),
        )

    def texts(
        self, session: Session, rows: Sequence[int], project_no: int | None = None
    ) -> dict[int, tuple[str, str]]:
        if not rows:
            return {}
        sql = (
            "SELECT i.no, i.chunk, i.prose, i.code FROM message_index i"
            " JOIN unnest(?::bigint[], ?::int[]) AS wanted (no, chunk) ON i.no = wanted.no AND "
            "i.chunk = wanted.chunk" + ("" if project_no is None else _IN_PROJECT)
        )
        values: list[Any] = [[no_of(row) for row in rows], [row & _CHUNK_MASK for row in rows]]
        values += [] if project_no is None else [project_no]
        return {row[0] << CHUNK_BITS | row[1]: (row[2], row[3]) for row in session.all(sql, values)}

    def problems(self, session: Session, deep: bool) -> list[str]:
        if not deep:
            row = session.one(
                "SELECT EXISTS (SELECT 1 FROM messages) AND NOT EXISTS (SELECT 1 FROM "
                "message_index)"
            )
            return ["The search index is empty, and there are messages."] if row and row[0] else []
        missing = number(
            session,
            "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM message_index i "
            "WHERE i.no = m.no)",
        )
        if missing:
            return [f"The search index lacks {missing} messages."]
        row = session.one(
            "SELECT 1 FROM message_index WHERE prose || code <> '' AND"
            " (tsvector_to_array(terms))[1] NOT LIKE project_no || ':%' LIMIT 1"
        )
        return ["The search index has rows of an older Smara."] if row else []


def quoted(project_no: int, term: str) -> str:
    """A term of a project as a tsquery operand, without operators."""
    return "'" + f"{project_no}:{term}".replace("\\", "\\\\").replace("'", "''") + "'"


def distinct_terms(project_no: int, prose: str, code: str) -> str:
    """Each term of two streams once, with its project.

    >>> distinct_terms(12, "log in", "log")
    '12:log 12:in'
    """
    return " ".join(f"{project_no}:{term}" for term in dict.fromkeys(f"{prose} {code}".split()))


class PostgresRecordIndex(_PostgresIndex):
    """A tsvector per row, queried for rows without ranking."""

    tables = ("record_index", "code_index")

    def put(
        self,
        session: Session,
        kind: RecordKind,
        project_no: int,
        records: Sequence[tuple[int, RecordTerms]],
        is_new: bool = False,
    ) -> None:
        if not is_new:
            session.run(
                f"DELETE FROM {index_table(kind)} WHERE kind = ? AND no = ANY(?::bigint[])"
                " AND project_no = ?",
                (kind, [no for no, _ in records], project_no),
            )
        session.run_many(
            f"INSERT INTO {index_table(kind)} (kind, no, piece, project_no, head, body, terms)"
            " VALUES (?, ?, ?, ?, ?, ?, array_to_tsvector(string_to_array(?, ' ')))",
            [
                (kind, no, piece, project_no, head, body, distinct_terms(project_no, head, body))
                for no, terms in records
                for piece, body in enumerate(terms.bodies)
                for head in (terms.head if piece == 0 else "",)
            ],
        )

    def remove(self, session: Session, kind: RecordKind, numbers: Sequence[int]) -> None:
        if numbers:
            session.run(
                f"DELETE FROM {index_table(kind)} WHERE kind = ? AND no = ANY(?::bigint[])",
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
        if project_no is None:
            raise AssertionError("a term stands with its project")
        rows = session.all(
            f"SELECT no, piece FROM {index_table(kind)}"
            " WHERE terms @@ ?::tsquery AND kind = ? AND project_no = ?"
            " ORDER BY no DESC, piece DESC LIMIT ?",
            (quoted(project_no, term) + (":*" if prefix else ""), kind, project_no, limit),
        )
        return [record_row(kind, row[0], row[1]) for row in rows]

    def texts(
        self, session: Session, rows: Sequence[int], project_no: int | None = None
    ) -> dict[int, tuple[str, str]]:
        found: dict[int, tuple[str, str]] = {}
        for table in self.tables:
            places = [row for row in rows if index_table(record_kind(row)) == table]
            there = (
                session.all(
                    f"SELECT i.kind, i.no, i.piece, i.head, i.body FROM {table} i"
                    " JOIN unnest(?::text[], ?::bigint[], ?::int[]) AS place (kind, no, piece)"
                    " ON i.kind = place.kind AND i.no = place.no AND i.piece = place.piece"
                    f"{'' if project_no is None else _IN_PROJECT}",
                    (
                        [record_kind(row) for row in places],
                        [record_no(row) for row in places],
                        [row & 0xFF for row in places],
                        *(() if project_no is None else (project_no,)),
                    ),
                )
                if places
                else []
            )
            found.update((record_row(row[0], row[1], row[2]), (row[3], row[4])) for row in there)
        return found

    def problems(self, session: Session, deep: bool) -> list[str]:
        row = session.one(
            "SELECT EXISTS (SELECT 1 FROM tasks) AND NOT EXISTS (SELECT 1 FROM record_index)"
        )
        if row and row[0]:
            return ["The index of tasks is empty, and there are tasks."]
        for kind, source, where, what in _EXPECTED if deep else ():
            row = session.one(
                f"SELECT count(*) FROM {source} r WHERE {where} AND NOT EXISTS"
                f" (SELECT 1 FROM {index_table(kind)} i WHERE i.kind = ? AND i.no = r.no)",
                (kind,),
            )
            if row and row[0]:
                return [f"The index of {what.format(row[0])}."]
        return []


class PostgresWords(_PostgresIndex):
    """Words in a table, their trigrams under a GIN index."""

    tables = ("words",)

    def add(self, session: Session, project_no: int, words: Sequence[str]) -> None:
        # In one order everywhere: two writers that add the same new words in different
        # orders would wait for each other for ever.
        session.run(
            "INSERT INTO words (project_no, word, trigrams) SELECT ?, w.word, ARRAY(SELECT DISTINCT"
            " ? || ':' || substr(w.word, i, 3) FROM generate_series(1, length(w.word) - 2) AS i)"
            " FROM unnest(?::text[]) AS w (word) ON CONFLICT DO NOTHING",
            (project_no, str(project_no), sorted(words)),
        )

    def remove(self, session: Session, project_no: int, words: Sequence[str]) -> None:
        session.run_many(
            "DELETE FROM words WHERE project_no = ? AND word = ?",
            [(project_no, word) for word in sorted(words)],
        )

    def starting(self, session: Session, project_no: int, prefix: str, limit: int) -> list[str]:
        rows = session.all(
            "SELECT word FROM words WHERE project_no = ? AND word >= ? AND word < ? LIMIT ?",
            (project_no, prefix, after(prefix), limit * 20),
        )
        return shortest(rows, limit)

    def containing(self, session: Session, project_no: int, fragment: str, limit: int) -> list[str]:
        rows = session.all(
            f"SELECT word FROM words_{int(self.part(session, project_no))} WHERE"
            " trigrams @> ?::text[] AND coalesce(project_no = ?, false) AND strpos(word, ?) > 0"
            " LIMIT ?",
            (
                [f"{project_no}:{each}" for each in trigrams(fragment)],
                project_no,
                fragment,
                limit * 20,
            ),
        )
        return shortest(rows, limit)

    def problems(self, session: Session, deep: bool) -> list[str]:
        return []
