"""The vocabulary on SQLite: a table, and a trigram index over it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from smara.database.database import Session
from smara.database.fulltext_sqlite import quoted
from smara.database.words import after, trigrams


class SqliteWords:
    """Words in a table, their trigrams in FTS5."""

    def add(self, session: Session, project_no: int, words: Sequence[str]) -> None:
        fresh = session.all(
            "INSERT INTO words (project_no, word) SELECT ?, value FROM json_each(?) WHERE true"
            " ON CONFLICT DO NOTHING RETURNING no, word",
            (project_no, json.dumps(list(words))),
        )
        if fresh:
            session.run_many("INSERT INTO word_trigrams (rowid, word) VALUES (?, ?)", fresh)

    def starting(self, session: Session, project_no: int, prefix: str, limit: int) -> list[str]:
        rows = session.all(
            "SELECT word FROM words WHERE project_no = ? AND word >= ? AND word < ? LIMIT ?",
            (project_no, prefix, after(prefix), limit * 20),
        )
        return sorted((row[0] for row in rows), key=lambda word: (len(word), word))[:limit]

    def containing(self, session: Session, project_no: int, fragment: str, limit: int) -> list[str]:
        expression = " AND ".join(quoted(piece) for piece in trigrams(fragment))
        rows = session.all(
            "SELECT w.word FROM word_trigrams t JOIN words w ON w.no = t.rowid"
            " WHERE word_trigrams MATCH ? AND w.project_no = ? AND instr(w.word, ?) > 0 LIMIT ?",
            (expression, project_no, fragment, limit * 20),
        )
        return sorted((row[0] for row in rows), key=lambda word: (len(word), word))[:limit]

    def recreate(self, session: Session) -> None:
        session.run("INSERT INTO word_trigrams (word_trigrams) VALUES ('delete-all')")
        session.run("DELETE FROM words")
