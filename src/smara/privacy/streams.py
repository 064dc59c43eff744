"""Read and write rows in one form on both databases.

A stream yields rows in the order of their keys, and both stores give equal rows for equal
content. So a copy is made from one, resumed behind the last key, and checked by reading both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

from smara.core.startup.record import dataclass
from smara.database.database import Database, Row, Session, marks
from smara.database.fulltext import (
    CHUNK_BITS,
    KIND_BITS,
    KIND_CODES,
    MAX_PIECES,
    PIECE_BITS,
    IndexRow,
    RecordKind,
    RecordTerms,
    no_of,
    record_kind,
    record_no,
    record_row,
    row_of,
)
from smara.database.fulltext_postgres import quoted
from smara.database.leases import host_name
from smara.database.partitions import DIVIDED, INDEXES
from smara.database.servers import PostgresSession, translated_errors
from smara.database.vectors import ROW_BITS
from smara.privacy.tables import TABLES, TableSpec

_OWN = frozenset(
    {"migrations", "leases", "copies", "index_state", "word_trigrams", "access", "access_projects"}
)
"""Tables of which each store has its own: a key of one opens no other."""
_KEYS = {
    "sqlite": (
        "SELECT l.name, c.name FROM pragma_table_list l JOIN pragma_table_info(l.name) c"
        " WHERE l.type = 'table' AND c.pk > 0 ORDER BY l.name, c.pk"
    ),
    "postgres": (
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number"
        " WHERE i.indisprimary AND n.nspname = current_schema() ORDER BY c.relname, k.place"
    ),
}


class Stream:
    """The rows of one table or index, in the order of keys."""

    name: str
    label: str
    key_width = 1
    is_numbered = True
    """True if the key is one number, so that a copy can go on behind it."""

    def read(self, database: Database, session: Session, after: int = 0) -> Iterator[Row]:
        """Yield the rows behind a number; a row begins with its key."""
        raise NotImplementedError

    def write(
        self, database: Database, session: Session, rows: Sequence[Row], is_new: bool = False
    ) -> None:
        """Add rows; ``is_new`` says that none of them is there."""
        raise NotImplementedError

    def remove(self, database: Database, session: Session, rows: Sequence[Row]) -> None:
        """Remove rows."""
        raise NotImplementedError

    def unit(self, row: Row) -> Any:
        """Return what rows share that must be written together."""
        return row[0]

    def finish(self, database: Database, session: Session) -> None:
        """Bring up to date what a table keeps of its rows elsewhere."""


@dataclass
class TableStream(Stream):
    """A table, with the numbers of its rows."""

    spec: TableSpec
    columns: tuple[str, ...]
    """Its columns, those of its key first."""
    key: tuple[str, ...]
    texts: frozenset[str]
    where: str

    def __post_init__(self) -> None:
        self.name, self.label = self.spec.name, self.spec.label
        self.key_width = len(self.key)
        # A new store has a switch already.
        self.is_numbered = self.key == ("no",) and self.name != "model_switch"
        self.loops = [name for name, to in self.spec.refs.items() if to == self.name]

    def read(self, database: Database, session: Session, after: int = 0) -> Iterator[Row]:
        rest = f"{self.where} AND t.no > {int(after)}" if self.is_numbered else self.where
        # Texts in the order of their bytes: that of a server depends on its language.
        byte_order = ' COLLATE "C"' if database.kind == "postgres" else ""
        order = ", ".join(
            f"t.{name}{byte_order if name in self.texts else ''}" for name in self.key
        )
        columns = ", ".join(f"t.{name}" for name in self.columns)
        yield from session.each(
            f"SELECT {columns} FROM {self.name} t WHERE {rest} ORDER BY {order}"
        )

    def write(
        self, database: Database, session: Session, rows: Sequence[Row], is_new: bool = False
    ) -> None:
        names, values = self.columns, rows
        if self.loops:
            places = {names.index(name) for name in self.loops}
            # They may name a row that comes later; see `close_loops`.
            values = [
                tuple(None if at in places else value for at, value in enumerate(row))
                for row in rows
            ]
        if is_new and self.is_numbered and database.kind == "postgres":
            load(session, self.name, names, values)
            return
        rest = [name for name in names if name not in self.key]
        changes = ", ".join(f"{name} = excluded.{name}" for name in rest)
        conflict = f"UPDATE SET {changes}" if rest else "NOTHING"
        columns, table = ", ".join(names), self.name
        statement = (
            f"INSERT INTO {table} ({columns}) VALUES ({marks(len(names))})"
            f" ON CONFLICT ({', '.join(self._unique(database))}) DO {conflict}"
        )
        session.run_many(statement, values)

    def _unique(self, database: Database) -> tuple[str, ...]:
        is_divided = database.kind == "postgres" and self.name in DIVIDED
        return (*self.key, "project_no") if is_divided else self.key

    def remove(self, database: Database, session: Session, rows: Sequence[Row]) -> None:
        condition = " AND ".join(f"{name} = ?" for name in self.key)
        keys = [row[: self.key_width] for row in rows]
        session.run_many(f"DELETE FROM {self.name} WHERE {condition}", keys)

    def close_loops(self, source: Session, target: Session) -> None:
        """Write the references between rows of this table."""
        for column in self.loops:
            rows = source.each(
                f"SELECT t.{column}, t.no FROM {self.name} t WHERE {self.where}"
                f" AND t.{column} IS NOT NULL"
            )
            target.run_many(f"UPDATE {self.name} SET {column} = ? WHERE no = ?", rows)

    def finish(self, database: Database, session: Session) -> None:
        if self.is_numbered and database.kind == "postgres":
            name = self.name
            # A table whose numbers are not the server's, or that is empty, changes nothing.
            session.all(
                f"SELECT setval(pg_get_serial_sequence('{name}', 'no'), max(no)) FROM {name}"
            )


class PlaceStream(TableStream):
    """The folders of projects.

    A file is on one machine, however that is called; a server is used by many.
    """

    def read(self, database: Database, session: Session, after: int = 0) -> Iterator[Row]:
        at, here = self.columns.index("host"), host_name()
        for row in super().read(database, session, after):
            yield (*row[:at], "" if row[at] == here else row[at], *row[at + 1 :])

    def write(
        self, database: Database, session: Session, rows: Sequence[Row], is_new: bool = False
    ) -> None:
        at, here = self.columns.index("host"), host_name()
        if database.kind == "postgres":
            rows = [(*row[:at], row[at] or here, *row[at + 1 :]) for row in rows]
        super().write(database, session, rows, is_new)


@dataclass
class WordStream(Stream):
    """The vocabulary; its numbers are each store's own."""

    where: str
    name = "words"
    label = "words"
    key_width = 2
    is_numbered = False

    def read(self, database: Database, session: Session, after: int = 0) -> Iterator[Row]:
        yield from session.each(
            f"SELECT t.project_no, t.word FROM words t WHERE {self.where} ORDER BY 1, 2"
        )

    def write(
        self, database: Database, session: Session, rows: Sequence[Row], is_new: bool = False
    ) -> None:
        for project_no, found in groupby(rows, itemgetter(0)):
            database.words.add(session, project_no, [row[1] for row in found])

    def remove(self, database: Database, session: Session, rows: Sequence[Row]) -> None:
        for project_no, found in groupby(rows, itemgetter(0)):
            database.words.remove(session, project_no, [row[1] for row in found])


@dataclass
class VectorStream(Stream):
    """The vectors, each with its project, by which PostgreSQL divides them."""

    where: str
    name = "vectors"
    label = "vectors"

    def read(self, database: Database, session: Session, after: int = 0) -> Iterator[Row]:
        if database.kind == "sqlite":
            yield from session.each(
                "SELECT t.no, t.vector, s.project_no FROM vectors t CROSS JOIN vector_shelves s"
                f" ON s.no = t.no >> {ROW_BITS} WHERE t.no > {int(after)}"
                f" AND s.project_no {self.where} ORDER BY t.no"
            )
        else:
            yield from session.each(
                "SELECT t.no, t.vector, t.project_no FROM vectors t"
                f" WHERE t.no > {int(after)} AND t.project_no {self.where} ORDER BY t.no"
            )

    def write(
        self, database: Database, session: Session, rows: Sequence[Row], is_new: bool = False
    ) -> None:
        if database.kind == "postgres":
            load(session, self.name, ("no", "vector", "project_no"), rows)
        else:
            session.run_many(
                "INSERT INTO vectors (no, vector) VALUES (?, ?)", [row[:2] for row in rows]
            )

    def remove(self, database: Database, session: Session, rows: Sequence[Row]) -> None:
        session.run_many("DELETE FROM vectors WHERE no = ?", [row[:1] for row in rows])


@dataclass
class MessageTermsStream(Stream):
    """The terms of messages in the full-text index."""

    where: str
    name = "message_index"
    label = "entries in the index of messages"

    def read(self, database: Database, session: Session, after: int = 0) -> Iterator[Row]:
        if database.kind == "sqlite":
            yield from session.each(
                "SELECT i.rowid, i.prose, i.code, t.project_no, t.thread_no, h.resource_id, t.role"
                f" FROM message_index i CROSS JOIN messages t ON t.no = i.rowid >> {CHUNK_BITS}"
                f" CROSS JOIN threads h ON h.no = t.thread_no WHERE i.rowid > {int(after)}"
                f" AND {self.where} ORDER BY i.rowid"
            )
        else:
            row = f"t.no * {1 << CHUNK_BITS} + t.chunk"
            yield from session.each(
                f"SELECT {row}, t.prose, t.code, t.project_no, t.thread_no, t.resource, t.role"
                f" FROM message_index t WHERE t.no >= {no_of(after)} AND {row} > {int(after)}"
                f" AND {self.where} ORDER BY t.no, t.chunk"
            )

    def write(
        self, database: Database, session: Session, rows: Sequence[Row], is_new: bool = False
    ) -> None:
        if database.kind == "sqlite":
            database.fulltext.add(session, [IndexRow(*row) for row in rows])
            return
        names = (
            "no", "chunk", "prose", "code", "project_no", "thread_no", "resource", "role", "terms"
        )  # fmt: skip
        values = [
            (
                no_of(row),
                row & (1 << CHUNK_BITS) - 1,
                prose,
                code,
                *rest,
                _vector(rest[0], prose, code),
            )
            for row, prose, code, *rest in rows
        ]
        load(session, "message_index", names, values)

    def remove(self, database: Database, session: Session, rows: Sequence[Row]) -> None:
        for no in sorted({no_of(row[0]) for row in rows}):
            database.fulltext.remove(session, no)

    def unit(self, row: Row) -> Any:
        return no_of(row[0])


@dataclass
class RecordTermsStream(Stream):
    """The terms of tasks, memories and other records, or of the code."""

    name: str
    projects: Sequence[int]

    def __post_init__(self) -> None:
        self.label = f"entries in the {self.name.replace('_', ' ')}"

    def read(self, database: Database, session: Session, after: int = 0) -> Iterator[Row]:
        if database.kind == "sqlite":
            rows = session.each(
                "SELECT i.rowid, i.head, i.body, CAST(substr(i.scope, 3) AS INTEGER)"
                f" FROM {self.name} i WHERE i.rowid > {int(after)} ORDER BY i.rowid"
            )
        else:
            codes = " ".join(f"WHEN '{kind}' THEN {code}" for kind, code in KIND_CODES.items())
            row = (
                f"(i.no * {1 << KIND_BITS} + CASE i.kind {codes} END) * {1 << PIECE_BITS} + i.piece"
            )
            rows = session.each(
                f"SELECT {row} AS place, i.head, i.body, i.project_no FROM {self.name} i"
                f" WHERE {row} > {int(after)} ORDER BY place"
            )
        yield from (row for row in rows if row[3] in self.projects)

    def write(
        self, database: Database, session: Session, rows: Sequence[Row], is_new: bool = False
    ) -> None:
        for (unit, project_no), pieces in groupby(rows, lambda row: (self.unit(row), row[3])):
            found, first = list(pieces), unit << PIECE_BITS
            terms = RecordTerms(found[0][1], tuple(row[2] for row in found))
            record = (record_no(first), terms)
            database.records.put(session, record_kind(first), project_no, [record], is_new=True)

    def remove(self, database: Database, session: Session, rows: Sequence[Row]) -> None:
        for unit in sorted({self.unit(row) for row in rows}):
            first = unit << PIECE_BITS
            database.records.remove(session, record_kind(first), [record_no(first)])

    def unit(self, row: Row) -> Any:
        return row[0] >> PIECE_BITS


def message_terms(
    database: Database, session: Session, numbers: Sequence[int]
) -> dict[int, list[tuple[int, str, str]]]:
    """Return the terms of messages in the index: chunk, prose and code."""
    statement = (
        "SELECT rowid, prose, code FROM message_index WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        if database.kind == "sqlite"
        else f"SELECT no * {1 << CHUNK_BITS} + chunk, prose, code FROM message_index"
        f" WHERE no BETWEEN ? >> {CHUNK_BITS} AND ? >> {CHUNK_BITS} ORDER BY chunk"
    )
    return {
        no: [
            (row & (1 << CHUNK_BITS) - 1, prose, code)
            for row, prose, code in session.all(statement, (row_of(no), row_of(no + 1) - 1))
        ]
        for no in numbers
    }


def record_terms(
    database: Database, session: Session, kind: RecordKind, numbers: Sequence[int]
) -> dict[int, RecordTerms]:
    """Return the terms of records that are in the index."""
    found: dict[int, RecordTerms] = {}
    for no in numbers:
        if database.kind == "sqlite":
            rows = session.all(
                "SELECT head, body FROM record_index WHERE rowid BETWEEN ? AND ? ORDER BY rowid",
                (record_row(kind, no), record_row(kind, no, MAX_PIECES - 1)),
            )
        else:
            rows = session.all(
                "SELECT head, body FROM record_index WHERE kind = ? AND no = ? ORDER BY piece",
                (kind, no),
            )
        if rows:
            found[no] = RecordTerms(rows[0][0], tuple(row[1] for row in rows))
    return found


def load(session: Session, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Insert rows into a table of PostgreSQL by COPY."""
    cursor = cast(PostgresSession, session).connection.cursor()
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with translated_errors(), cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _vector(project_no: int, prose: str, code: str) -> str:
    """Return the terms of a message as a tsvector is written."""
    terms = dict.fromkeys(f"{prose} {code}".split())
    return " ".join(quoted(project_no, term) for term in terms)


def streams(
    source: tuple[Database, Session], target: tuple[Database, Session], projects: Sequence[int]
) -> list[Stream]:
    """Return the streams of some projects, in an order to write them."""
    columns, there = (database.tables(session) for database, session in (source, target))
    keys: dict[str, list[str]] = {}
    for table, column in source[1].all(_KEYS[source[0].kind]):
        keys.setdefault(table, []).append(column)
    some = f"IN ({', '.join(str(int(no)) for no in projects)})"
    found: list[Stream] = []
    for spec in TABLES:
        if spec.name in _OWN:
            continue
        if spec.name in ("message_index", "words"):
            make = WordStream if spec.name == "words" else MessageTermsStream
            found.append(make(f"+t.project_no {some}"))
            continue
        if spec.name in ("record_index", "code_index"):
            found.append(RecordTermsStream(spec.name, projects))
            continue
        if spec.name == "vectors":
            found.append(VectorStream(some))
            continue
        shared = {each.name for each in columns[spec.name]} & {
            each.name for each in there[spec.name]
        }
        # PostgreSQL has the project in the key of what it divides.
        key = ("no",) if spec.name in DIVIDED else tuple(keys[spec.name])
        texts = {each.name for each in columns[spec.name] if each.type == "string"}
        rest = sorted(shared - set(key))
        table = PlaceStream if spec.name == "project_places" else TableStream
        where = _where(spec.name, shared, some)
        found.append(table(spec, (*key, *rest), key, frozenset(texts), where))
    return found


def left_out(source: tuple[Database, Session], target: tuple[Database, Session]) -> list[str]:
    """Return tables and columns of a newer source without a stream."""
    columns, there = (database.tables(session) for database, session in (source, target))
    found = sorted(columns.keys() - {spec.name for spec in TABLES})
    for name in sorted(columns.keys() & there.keys() - _OWN - set(INDEXES)):
        shared = {each.name for each in there[name]}
        found += [f"{name}.{each.name}" for each in columns[name] if each.name not in shared]
    return found


def _where(table: str, columns: set[str], some: str) -> str:
    """Return the condition for the rows of some projects."""
    if table == "projects":
        return f"t.no {some}"
    if "project_no" in columns:
        # A plus keeps SQLite from reading by an index and sorting all rows.
        return f"+t.project_no {some}"
    shelves = f"SELECT s.no FROM vector_shelves s WHERE s.project_no {some}"
    if table == "vector_blocks":
        return f"t.shelf_no IN ({shelves})"
    return "1 = 1"
