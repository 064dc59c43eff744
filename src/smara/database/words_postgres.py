"""The vocabulary on PostgreSQL: a table with an array of trigrams, no extension needed."""

from __future__ import annotations

from collections.abc import Sequence

from smara.database.database import Session
from smara.database.words import after, shortest, trigrams


class PostgresWords:
    """Words in a table, their trigrams under a GIN index."""

    def add(self, session: Session, project_no: int, words: Sequence[str]) -> None:
        # In one order everywhere: two writers that add the same new words in different
        # orders would wait for each other for ever.
        session.run_many(
            "INSERT INTO words (project_no, word, trigrams) VALUES (?, ?, ?) ON CONFLICT DO "
            "NOTHING",
            [(project_no, word, trigrams(word)) for word in sorted(words)],
        )

    def starting(self, session: Session, project_no: int, prefix: str, limit: int) -> list[str]:
        rows = session.all(
            "SELECT word FROM words WHERE project_no = ? AND word >= ? AND word < ? LIMIT ?",
            (project_no, prefix, after(prefix), limit * 20),
        )
        return shortest(rows, limit)

    def containing(self, session: Session, project_no: int, fragment: str, limit: int) -> list[str]:
        rows = session.all(
            "SELECT word FROM words WHERE trigrams @> ?::text[] AND project_no = ? AND "
            "strpos(word, ?) > 0 LIMIT ?",
            (trigrams(fragment), project_no, fragment, limit * 20),
        )
        return shortest(rows, limit)

    def problems(self, session: Session, deep: bool) -> list[str]:
        return []

    def is_sound(self, session: Session) -> bool:
        return True

    def recreate(self, session: Session, is_damaged: bool) -> None:
        session.run("TRUNCATE words")
