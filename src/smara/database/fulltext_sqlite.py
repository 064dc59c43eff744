"""Implement the full-text indexes on SQLite with FTS5.

The tokenizer only cuts at spaces; terms are made in Python. The project is a term of each
row, and a trigram index follows the vocabulary with some delay.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from smara.core import log
from smara.database.fulltext import (
    CHUNK_BITS,
    KIND_BITS,
    KIND_CODES,
    MAX_CHUNKS,
    MAX_PIECES,
    PIECE_BITS,
    IndexRow,
    Matching,
    RecordKind,
    RecordTerms,
    Within,
    after,
    index_table,
    join_terms,
    record_conditions,
    record_kind,
    record_row,
    row_of,
    shortest,
    trigrams,
)
from smara.database.session import Session, marks, number, parts
from smara.errors import CorruptError, DatabaseError

_TOKENIZE = "tokenize = \"ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'\""


class _SqliteIndex:
    """Tables of an index that can be made again from the records."""

    definitions: ClassVar[Mapping[str, str]]
    """The statement that makes each table, as the newest migration leaves it; tests/migrations
    compares a rebuilt store with a fresh one.
    """

    def is_sound(self, session: Session) -> bool:
        """Return True if its tables and their FTS5 shadows are sound.

        To be asked outside the transaction that repairs: meeting damage spoils a transaction.
        """
        names = set(_with_shadows(self.definitions))
        try:
            rows = session.all(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
            )
            there = sorted(names & {row[0] for row in rows})
            return all(session.all(f"PRAGMA quick_check('{name}')") == [("ok",)] for name in there)
        except CorruptError:
            return False

    def recreate(self, session: Session, is_damaged: bool) -> None:
        """Empty the index; the caller adds every record again.

        Dropping a damaged table is dangerous: broken pointers may lead to pages of another table.
        Its entry is removed from the schema instead; its pages stay unused until a vacuum.
        """
        names = _with_shadows(self.definitions)
        if is_damaged:
            _forget(session, names)
        else:
            for name in names:
                try:
                    session.run(f"DROP TABLE IF EXISTS {name}")
                except DatabaseError:
                    # An FTS5 table that has lost one of the tables behind it cannot be opened,
                    # and so not dropped.
                    _forget(session, [name])
        for name, definition in self.definitions.items():
            session.run(definition)
            session.run(
                "INSERT INTO index_state (name, rows, analysis) VALUES (?, 0, 1)"
                " ON CONFLICT (name) DO UPDATE SET rows = 0",
                (name,),
            )

    def optimize(self, session: Session) -> None:
        """Make the index compact, without terms of deleted rows."""
        for table in self.definitions:
            # A merge of all segments drops the terms of deleted rows only if no level above them
            # was ever used. Building the index again always does.
            session.run(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
            session.run(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


class SqliteFullText(_SqliteIndex):
    """Index message chunks with FTS5, without an order of merit."""

    definitions: ClassVar[Mapping[str, str]] = {
        "message_index": "CREATE VIRTUAL TABLE message_index USING fts5 (prose, code, scope,"
        f" {_TOKENIZE})"
    }

    def add(self, session: Session, rows: Sequence[IndexRow]) -> None:
        """Index rows; part of the caller's transaction."""
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
        _count(session, "message_index", len(rows))

    def remove(self, session: Session, no: int) -> None:
        """Take every chunk of a record out of the index."""
        removed = session.run(
            "DELETE FROM message_index WHERE rowid BETWEEN ? AND ?",
            (row_of(no), row_of(no, MAX_CHUNKS - 1)),
        )
        _count(session, "message_index", -removed)

    def match(
        self,
        session: Session,
        terms: Sequence[str],
        within: Within,
        limit: int,
        prefix: bool = False,
        is_any: bool = False,
    ) -> list[int]:
        """Return rows with all terms, newest first, up to ``limit``.

        With ``prefix`` the last term may go on; with ``is_any`` one of the terms is enough.
        """
        operator = " OR " if is_any else " AND "
        expression = operator.join([quoted(term) for term in terms]) + (" *" if prefix else "")
        expression = f"({expression})" if is_any else expression
        if not within.is_only_project:
            expression += f' AND "^p{within.project_no}"'
        if within.thread_no is not None:
            expression += f' AND "^t{within.thread_no}"'
        if within.resource_id is not None:
            expression += f' AND "{_resource_term(within.resource_id)}"'
        if within.roles:
            expression += " AND (" + " OR ".join(f'"^r{role}"' for role in within.roles) + ")"
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
            " WHERE message_index MATCH ? AND m.no = (i.rowid >> "
            f"{CHUNK_BITS}){join_terms(conditions)}"
            f" ORDER BY i.rowid DESC LIMIT {int(limit)}"
        )
        return [row[0] for row in session.all(sql, (expression, *values))]

    def matching(self, term: str, within: Within) -> Matching:
        """Return SQL pieces that join a term's rows with messages.

        The wall is put up by the statement, on the message itself, which costs less for a rare
        term.
        """
        return Matching(
            "f.rowid",
            f"message_index f CROSS JOIN messages m ON m.no = f.rowid >> {CHUNK_BITS}",
            "message_index MATCH ?",
            order="f.rowid DESC",
            values=(quoted(term),),
        )

    def texts(
        self, session: Session, rows: Sequence[int], project_no: int | None = None
    ) -> dict[int, tuple[str, str]]:
        """The stored terms of rows: prose and code."""
        found = _texts(session, "message_index", rows)
        if not all(isinstance(text, str) for pair in found.values() for text in pair):
            raise CorruptError(
                "The search index is damaged. Run `smara doctor --fix`.",
                reason="terms that are no text",
            )
        return found

    def problems(self, session: Session, deep: bool) -> list[str]:
        """Return what is wrong with the index.

        Quick checks at every open, ``deep`` reads all of it.
        """
        if problems := _problems(session, "message_index", "The search index", deep=deep):
            return problems
        try:
            # A few page reads: it must reach the newest message.
            newest, *ends = (
                (session.one(statement) or (None,))[0] or 0
                for statement in (
                    "SELECT max(no) FROM messages",
                    "SELECT max(id) FROM message_index_content",
                    "SELECT max(id) FROM message_index_docsize",
                )
            )
        except CorruptError as error:
            return [f"The search index is damaged ({error.facts.get('reason')})."]
        if ends[0] != ends[1] or ends[0] >> CHUNK_BITS != newest:
            return ["The search index does not reach the newest message."]
        return []


def quoted(term: str) -> str:
    """A term as an FTS5 string, in which nothing is an operator."""
    return '"' + term.replace('"', '""') + '"'


def _resource_term(resource_id: str) -> str:
    # A checksum, because a resource's name may hold anything; the records are checked
    # by name before anything is shown.
    return f"^u{zlib.crc32(resource_id.encode('utf-8', 'replace')):08x}"


def first_varint(block: bytes) -> int:
    """The number of rows, with which FTS5 begins its block of averages."""
    value = 0
    for byte in block[:9]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value


_KIND_OF_ROW = f"(rowid >> {PIECE_BITS} & {(1 << KIND_BITS) - 1})"


class SqliteRecordIndex(_SqliteIndex):
    """Index records with FTS5, without an order of merit."""

    definitions: ClassVar[Mapping[str, str]] = {
        "record_index": "CREATE VIRTUAL TABLE record_index USING fts5 (head, body, scope,"
        f" {_TOKENIZE})",
        # No query asks where in a chunk a term stands, and without places the table is made a
        # third sooner.
        "code_index": "CREATE VIRTUAL TABLE code_index USING fts5 (head, body, scope,"
        f" {_TOKENIZE}, detail = none)",
    }

    def put(
        self,
        session: Session,
        kind: RecordKind,
        project_no: int,
        records: Sequence[tuple[int, RecordTerms]],
        is_new: bool = False,
    ) -> None:
        """Index records; part of the caller's transaction.

        Those that may be in the index already are removed from it first.
        """
        if not is_new:
            self.remove(session, kind, [no for no, _ in records])
        table, scope = index_table(kind), f"^p{project_no}"
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
        """Remove records from the index; in the caller's transaction.

        Those that are not in it are left alone.
        """
        table = index_table(kind)
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
        """Return rows with a term, newest first, up to ``limit``.

        With ``prefix`` the term may go on. ``None`` for the project is for a store with a single
        one, where the wall would only cost time.
        """
        expression = (
            quoted(term)
            + (" *" if prefix else "")
            + ("" if project_no is None else f' AND "^p{project_no}"')
        )
        # The kind is read off the row number, which costs less than one more list to meet. A bound
        # limit would make SQLite prepare the statement anew at every call.
        table = index_table(kind)
        statement = (
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND {_KIND_OF_ROW} = ?"
            f" ORDER BY rowid DESC LIMIT {int(limit)}"
        )
        return [row[0] for row in session.all(statement, (expression, KIND_CODES[kind]))]

    def texts(
        self, session: Session, rows: Sequence[int], project_no: int | None = None
    ) -> dict[int, tuple[str, str]]:
        """The stored terms of rows: head and body."""
        code = [row for row in rows if record_kind(row) == "code"]
        others = [row for row in rows if record_kind(row) != "code"] if code else rows
        return _texts(session, "code_index", code) | _texts(session, "record_index", others)

    def problems(self, session: Session, deep: bool) -> list[str]:
        """Return what is wrong with the index; see `SqliteFullText.problems`."""
        return [
            problem
            for table, what in (("record_index", "tasks"), ("code_index", "code"))
            for problem in _problems(session, table, f"The index of {what}", deep=deep)
        ]


def _texts(session: Session, table: str, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
    return {
        row: (first, second)
        for part in parts(rows)
        for row, first, second in session.all(
            f"SELECT id, c0, c1 FROM {table}_content WHERE id IN ({marks(len(part))})", part
        )
    }


def _count(session: Session, table: str, more: int) -> None:
    if more:
        session.run("UPDATE index_state SET rows = rows + ? WHERE name = ?", (more, table))


def _problems(session: Session, table: str, name: str, deep: bool) -> list[str]:
    """Compare what an FTS5 table says of itself with what was put in."""
    try:
        expected = session.one("SELECT rows FROM index_state WHERE name = ?", (table,))
        averages = session.one(f"SELECT block FROM {table}_data WHERE id = 1")
        structure = session.one(f"SELECT length(block) FROM {table}_data WHERE id = 10")
        if expected is None or averages is None or structure is None:
            return [f"{name} has lost its own records."]
        there = first_varint(averages[0]) if averages[0] else 0
        if there != expected[0]:
            return [f"{name} holds {there} rows, and {expected[0]} were put in."]
        session.all(f"SELECT rowid FROM {table} WHERE {table} MATCH '\"^p1\"' LIMIT 1")
        if deep:
            session.run(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    except CorruptError as error:
        return [f"{name} is damaged ({error.facts.get('reason')})."]
    return []


BACKLOG = 20_000
"""So many words may wait for the trigram index; scanning them takes about a millisecond."""


class SqliteWords(_SqliteIndex):
    """Words in a table, their trigrams in FTS5."""

    definitions: ClassVar[Mapping[str, str]] = {
        "words": """CREATE TABLE words (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  word       TEXT NOT NULL,
  UNIQUE (project_no, word)
) STRICT""",
        "word_trigrams": """CREATE VIRTUAL TABLE word_trigrams USING fts5 (
  word, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram'
)""",
    }

    def add(self, session: Session, project_no: int, words: Sequence[str]) -> None:
        """Add words; those already in the vocabulary are left alone."""
        # One statement for all of them would copy every page it touches, to undo itself alone.
        session.run_many(
            "INSERT INTO words (project_no, word) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(project_no, word) for word in words],
        )
        session.run(
            "UPDATE index_state SET rows = (SELECT coalesce(max(no), 0) FROM words) WHERE name = "
            "'words'"
        )

    def remove(self, session: Session, project_no: int, words: Sequence[str]) -> None:
        """Remove words of a project; the others are numbered again, without gaps."""
        gone = set(words)
        rows = session.all("SELECT project_no, word FROM words ORDER BY no")
        self.recreate(session, is_damaged=False)
        staying: dict[int, list[str]] = {}
        for owner, word in rows:
            if owner != project_no or word not in gone:
                staying.setdefault(owner, []).append(word)
        for owner, found in staying.items():
            self.add(session, owner, found)

    def problems(self, session: Session, deep: bool) -> list[str]:
        """Compare the table with its source, and try the trigram index."""
        try:
            state = session.one("SELECT rows FROM index_state WHERE name = 'words'")
            found = session.one(
                "SELECT count(*) FROM words" if deep else "SELECT max(no) FROM words"
            )
            session.all(
                "SELECT rowid FROM word_trigrams WHERE word_trigrams MATCH '\"the\"' LIMIT 1"
            )
            if deep:
                session.run("INSERT INTO word_trigrams (word_trigrams) VALUES ('integrity-check')")
        except CorruptError as error:
            return [f"The vocabulary is damaged ({error.facts.get('reason')})."]
        expected, there = int(state[0]) if state else -1, int((found[0] if found else None) or 0)
        if expected != there:
            return [f"The vocabulary holds {there} words, and {max(expected, 0)} were put in."]
        return []

    def starting(self, session: Session, project_no: int, prefix: str, limit: int) -> list[str]:
        """Words that start with ``prefix``, shortest first."""
        rows = session.all(
            "SELECT word FROM words WHERE project_no = ? AND word >= ? AND word < ? LIMIT ?",
            (project_no, prefix, after(prefix), limit * 20),
        )
        return shortest(rows, limit)

    def containing(self, session: Session, project_no: int, fragment: str, limit: int) -> list[str]:
        """Words that contain ``fragment`` (three characters or more), shortest first."""
        indexed = self._catch_up(session)
        expression = " AND ".join(quoted(piece) for piece in trigrams(fragment))
        rows = session.all(
            "SELECT w.word FROM word_trigrams t JOIN words w ON w.no = t.rowid"
            " WHERE word_trigrams MATCH ? AND w.project_no = ? AND instr(w.word, ?) > 0 LIMIT ?",
            (expression, project_no, fragment, limit * 20),
        )
        rows += session.all(
            "SELECT word FROM words WHERE no > ? AND project_no = ? AND instr(word, ?) > 0 LIMIT ?",
            (indexed, project_no, fragment, limit * 20),
        )
        return shortest(rows, limit)

    def _catch_up(self, session: Session) -> int:
        """Index the waiting words when they are many; up to which word the index reaches."""
        indexed = number(session, "SELECT rows FROM index_state WHERE name = 'word_trigrams'")
        last = number(session, "SELECT coalesce(max(no), 0) FROM words")
        if last - indexed <= BACKLOG:
            return indexed
        try:
            session.run("BEGIN IMMEDIATE")
            try:
                session.run(
                    "INSERT INTO word_trigrams (rowid, word) SELECT no, word FROM words WHERE no "
                    "> ?",
                    (indexed,),
                )
                moved = session.run(
                    "UPDATE index_state SET rows = ? WHERE name = 'word_trigrams' AND rows = ?",
                    (last, indexed),
                )
            except DatabaseError:
                session.run("ROLLBACK")
                raise
            session.run("COMMIT" if moved else "ROLLBACK")
        except DatabaseError as error:
            # Read-only, busy or full: the words are scanned instead, which is slower and right.
            log.event("words.not_indexed", error=error.code)
            return indexed
        return last if moved else indexed


_SHADOWS = ("data", "idx", "content", "docsize", "config")


def _with_shadows(tables: Iterable[str]) -> list[str]:
    return [
        name for table in tables for name in (table, *(f"{table}_{suffix}" for suffix in _SHADOWS))
    ]


def _forget(session: Session, names: Sequence[str]) -> None:
    session.run("PRAGMA writable_schema = ON")
    try:
        for name in names:
            session.run("DELETE FROM sqlite_master WHERE name = ? OR tbl_name = ?", (name, name))
    finally:
        session.run("PRAGMA writable_schema = RESET")
