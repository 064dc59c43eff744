"""The text index on SQLite: one FTS5 table with a tokenizer that only cuts at spaces.

The scope is indexed too, as terms that no text can contain (``^p1``, ``^t7``): the wall is
part of every match (but in a store with a single project, where there is nothing behind
it), and a search inside one thread of a large store costs no more than the thread.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from smara.database.database import Session, marks, parts
from smara.database.fulltext import (
    CHUNK_BITS,
    MAX_CHUNKS,
    IndexRow,
    Matching,
    Within,
    joined,
    row_of,
)
from smara.database.sqlite_repair import are_sound, remake
from smara.errors import CorruptError

_TABLE = "message_index"
_DEFINITION = (
    "CREATE VIRTUAL TABLE message_index USING fts5 (prose, code, scope,"
    " tokenize = \"ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'\")"
)


class SqliteFullText:
    """FTS5, asked for rows and never for an order of merit."""

    def add(self, session: Session, rows: Sequence[IndexRow]) -> None:
        session.run_many(
            "INSERT INTO message_index (rowid, prose, code, scope) VALUES (?, ?, ?, ?)",
            [
                (
                    r.row,
                    r.prose,
                    r.code,
                    f"^p{r.project_no} ^t{r.thread_no} ^r{r.role} {_resource_term(r.resource_id)}",
                )
                for r in rows
            ],
        )
        session.run(
            "UPDATE index_state SET rows = rows + ? WHERE name = 'message_index'", (len(rows),)
        )

    def remove(self, session: Session, no: int) -> None:
        removed = session.run(
            "DELETE FROM message_index WHERE rowid BETWEEN ? AND ?",
            (row_of(no), row_of(no, MAX_CHUNKS - 1)),
        )
        session.run(
            "UPDATE index_state SET rows = rows - ? WHERE name = 'message_index'", (removed,)
        )

    def match(
        self,
        session: Session,
        terms: Sequence[str],
        within: Within,
        limit: int,
        prefix: bool = False,
    ) -> list[int]:
        expression = " AND ".join([quoted(term) for term in terms])
        if prefix:
            expression += " *"
        expression += "".join([f" AND {condition}" for condition in _scope(within)])
        # The limit is written into the statement: as a bound value it would make SQLite
        # prepare the statement anew at every call, because FTS5 is told of it while planning.
        if not within.needs_records:
            # Thousands of numbers come as one text: taken out of the database one by one they cost
            # twice as much.
            sql = (
                "SELECT group_concat(row, ' ') FROM (SELECT rowid AS row FROM message_index WHERE "
                "message_index MATCH ?"
                f" ORDER BY rowid DESC LIMIT {int(limit)})"
            )
            found = session.all(sql, (expression,))
            return list(map(int, found[0][0].split())) if found[0][0] else []
        conditions, values = record_conditions(within)
        sql = (
            "SELECT i.rowid FROM message_index i CROSS JOIN messages m"
            f" WHERE message_index MATCH ? AND m.no = (i.rowid >> {CHUNK_BITS}){joined(conditions)}"
            f" ORDER BY i.rowid DESC LIMIT {int(limit)}"
        )
        return [row[0] for row in session.all(sql, (expression, *values))]

    def matching(self, term: str, within: Within) -> Matching:
        # The wall is put up by the statement, on the message itself, which costs less for a rare
        # term.
        expression = quoted(term)
        source = f"message_index f CROSS JOIN messages m ON m.no = f.rowid >> {CHUNK_BITS}"
        return Matching(
            "f.rowid", source, "message_index MATCH ?", order="f.rowid DESC", values=(expression,)
        )

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        found: dict[int, tuple[str, str]] = {}
        for part in parts(rows):
            sql = f"SELECT id, c0, c1 FROM message_index_content WHERE id IN ({marks(len(part))})"
            found.update((row[0], (row[1], row[2])) for row in session.all(sql, part))
        if not all(isinstance(text, str) for pair in found.values() for text in pair):
            raise CorruptError(
                "The search index is damaged. Run `smara doctor --fix`.",
                reason="terms that are no text",
            )
        return found

    def problems(self, session: Session, deep: bool) -> list[str]:
        try:
            found = _quick_problems(session)
            if deep and not found:
                session.run(
                    "INSERT INTO message_index (message_index, rank) VALUES ('integrity-check', 1)"
                )
        except CorruptError as error:
            return [f"The search index is damaged ({error.facts.get('reason')})."]
        return found

    def is_sound(self, session: Session) -> bool:
        return are_sound(session, ("message_index",))

    def recreate(self, session: Session, is_damaged: bool) -> None:
        remake(session, ("message_index",), _DEFINITION, is_damaged=is_damaged)
        session.run(
            "INSERT INTO index_state (name, rows, analysis) VALUES ('message_index', 0, 1)"
            " ON CONFLICT (name) DO UPDATE SET rows = 0"
        )

    def optimize(self, session: Session) -> None:
        session.run("INSERT INTO message_index (message_index) VALUES ('optimize')")


def quoted(term: str) -> str:
    """A term as an FTS5 string, in which nothing is an operator."""
    return '"' + term.replace('"', '""') + '"'


def record_conditions(within: Within) -> tuple[list[str], list[object]]:
    """Conditions on the records ``m`` that the index alone cannot answer."""
    conditions: list[str] = []
    values: list[object] = []
    for column, operator, value in (
        ("created_at", ">=", within.since_ms),
        ("created_at", "<", within.until_ms),
        ("task_id", "=", within.task_id),
    ):
        if value is not None:
            conditions.append(f"m.{column} {operator} ?")
            values.append(value)
    return conditions, values


def _scope(within: Within) -> list[str]:
    found = [] if within.is_only_project else [f'"^p{within.project_no}"']
    if within.thread_no is not None:
        found.append(f'"^t{within.thread_no}"')
    if within.resource_id is not None:
        found.append(f'"{_resource_term(within.resource_id)}"')
    if within.roles:
        found.append("(" + " OR ".join(f'"^r{role}"' for role in within.roles) + ")")
    return found


def _resource_term(resource_id: str) -> str:
    # A checksum, because a resource's name may hold anything; the records are checked
    # by name before anything is shown.
    return f"^u{zlib.crc32(resource_id.encode('utf-8', 'replace')):08x}"


def _quick_problems(session: Session) -> list[str]:
    """Compare what the index says of itself with what was put in; a few page reads."""
    expected = session.one("SELECT rows FROM index_state WHERE name = 'message_index'")
    averages = session.one("SELECT block FROM message_index_data WHERE id = 1")
    structure = session.one("SELECT length(block) FROM message_index_data WHERE id = 10")
    content = session.one("SELECT max(id) FROM message_index_content")
    sizes = session.one("SELECT max(id) FROM message_index_docsize")
    newest = session.one("SELECT max(no) FROM messages")
    if expected is None or averages is None or structure is None:
        return ["The search index has lost its own records."]
    rows = first_varint(averages[0]) if averages[0] else 0
    if rows != expected[0]:
        return [f"The search index holds {rows} rows, and {expected[0]} were put in."]
    last, last_size = (content or (None,))[0], (sizes or (None,))[0]
    if last != last_size or (last or 0) >> CHUNK_BITS != ((newest or (None,))[0] or 0):
        return ["The search index does not reach the newest message."]
    session.all("SELECT rowid FROM message_index WHERE message_index MATCH '\"^p1\"' LIMIT 1")
    return []


def first_varint(block: bytes) -> int:
    """The number of rows, with which FTS5 begins its block of averages."""
    value = 0
    for byte in block[:9]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value
