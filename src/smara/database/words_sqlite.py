"""The vocabulary on SQLite: a table, and a trigram index that follows it at a distance.

Appending only writes the table. The words that are not in the trigram index yet are
scanned, and indexed by the first look-up that finds too many of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from smara.core import log
from smara.database.database import Session
from smara.database.fulltext_sqlite import quoted
from smara.database.sqlite_repair import are_sound, remake
from smara.database.words import after, shortest, trigrams
from smara.errors import CorruptError, DatabaseError

BACKLOG = 20_000
"""So many words may wait for the trigram index; scanning them takes about a millisecond."""

# As the newest migration leaves them; tests/migrations compares a rebuilt store with a fresh one.
_DEFINITION = """
CREATE TABLE words (
  no         INTEGER PRIMARY KEY,
  project_no INTEGER NOT NULL REFERENCES projects (no),
  word       TEXT NOT NULL,
  UNIQUE (project_no, word)
) STRICT;
CREATE VIRTUAL TABLE word_trigrams USING fts5 (
  word, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram'
);
"""


class SqliteWords:
    """Words in a table, their trigrams in FTS5."""

    def add(self, session: Session, project_no: int, words: Sequence[str]) -> None:
        session.run(
            "INSERT INTO words (project_no, word) SELECT ?, value FROM json_each(?) WHERE true ON "
            "CONFLICT DO NOTHING",
            (project_no, json.dumps(list(words))),
        )
        session.run(
            "UPDATE index_state SET rows = (SELECT coalesce(max(no), 0) FROM words) WHERE name = "
            "'words'"
        )

    def problems(self, session: Session, deep: bool) -> list[str]:
        """Compare the table with what was put in, and try the trigram index."""
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
        rows = session.all(
            "SELECT word FROM words WHERE project_no = ? AND word >= ? AND word < ? LIMIT ?",
            (project_no, prefix, after(prefix), limit * 20),
        )
        return shortest(rows, limit)

    def containing(self, session: Session, project_no: int, fragment: str, limit: int) -> list[str]:
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
        state = session.one("SELECT rows FROM index_state WHERE name = 'word_trigrams'")
        newest = session.one("SELECT max(no) FROM words")
        indexed, last = int(state[0] if state else 0), int((newest[0] if newest else None) or 0)
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

    def is_sound(self, session: Session) -> bool:
        return are_sound(session, ("word_trigrams", "words"))

    def recreate(self, session: Session, is_damaged: bool) -> None:
        remake(session, ("word_trigrams", "words"), _DEFINITION, is_damaged=is_damaged)
        session.run(
            "INSERT INTO index_state (name, rows, analysis) VALUES ('words', 0, 1), "
            "('word_trigrams', 0, 1)"
            " ON CONFLICT (name) DO UPDATE SET rows = 0"
        )
