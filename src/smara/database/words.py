"""The words of a project: every distinct word and name that was ever said in it.

It serves completion (words that start with …) and partial names (words that contain …);
what it finds is then looked up in the text index. It grows with the vocabulary, not with
the number of messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from smara.database.database import Row, Session


class Words(Protocol):
    """The vocabulary tables of one database."""

    def add(self, session: Session, project_no: int, words: Sequence[str]) -> None:
        """Add words; those already known are left alone."""
        ...

    def starting(self, session: Session, project_no: int, prefix: str, limit: int) -> list[str]:
        """Words that start with ``prefix``, shortest first."""
        ...

    def containing(self, session: Session, project_no: int, fragment: str, limit: int) -> list[str]:
        """Words that contain ``fragment`` (three characters or more), shortest first."""
        ...

    def problems(self, session: Session, deep: bool) -> list[str]:
        """What is wrong with the vocabulary."""
        ...

    def is_sound(self, session: Session) -> bool:
        """Whether its tables can be read at all, whatever they hold."""
        ...

    def recreate(self, session: Session, is_damaged: bool) -> None:
        """Empty the vocabulary; the caller adds every word again; see ``FullText.recreate``."""
        ...


def trigrams(word: str) -> list[str]:
    """The distinct runs of three characters in a word.

    >>> trigrams("banana")
    ['ban', 'ana', 'nan']
    """
    return list(dict.fromkeys(word[i : i + 3] for i in range(len(word) - 2)))


def shortest(rows: Sequence[Row], limit: int) -> list[str]:
    """The words of one-column rows, shortest first."""
    return sorted({row[0] for row in rows}, key=lambda word: (len(word), word))[:limit]


def after(prefix: str) -> str:
    """The smallest text greater than every text that starts with ``prefix``."""
    return (
        prefix[:-1] + chr(ord(prefix[-1]) + 1)
        if ord(prefix[-1]) < 0xD7FF
        else prefix + "\U0010ffff"
    )
