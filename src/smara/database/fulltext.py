"""Define the full-text indexes: messages, records and vocabulary.

`FullText` matches message chunks by term, inside a scope. `RecordIndex` does the same for
small records of every other kind. `Words` lists the distinct words of a project, for
completion and partial names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from smara.database.session import Row, Session

CHUNK_BITS = 16
MAX_CHUNKS = 1 << CHUNK_BITS


def row_of(no: int, chunk: int = 0) -> int:
    """The row number of one chunk of a record.

    >>> row_of(3, 2), no_of(row_of(3, 2))
    (196610, 3)
    """
    return no << CHUNK_BITS | chunk


def no_of(row: int) -> int:
    """The record a row belongs to."""
    return row >> CHUNK_BITS


class IndexRow(NamedTuple):
    """One row on its way into the index."""

    row: int
    prose: str
    code: str
    project_no: int
    thread_no: int
    resource_id: str
    role: str


@dataclass(frozen=True, slots=True)
class Within:
    """The rows a search may find: a project, narrowed by filters."""

    project_no: int
    thread_no: int | None = None
    resource_id: str | None = None
    roles: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    task_id: str | None = None

    is_only_project: bool = False

    @property
    def needs_records(self) -> bool:
        """True if the messages themselves must be read."""
        return self.since_ms is not None or self.until_ms is not None or self.task_id is not None

    @property
    def is_filtered(self) -> bool:
        """True if more than the project is filtered."""
        return (
            self.needs_records
            or self.thread_no is not None
            or self.resource_id is not None
            or bool(self.roles)
        )


class Matching(NamedTuple):
    """SQL pieces joining index rows ``f`` and messages ``m``.

    (A subquery instead of a join costs SQLite as much again as the match itself.)
    """

    row: str
    source: str
    where: str
    order: str
    values: tuple[object, ...]


class FullText(Protocol):
    """The message index of one database."""

    def add(self, session: Session, rows: Sequence[IndexRow]) -> None:
        """Index rows; part of the caller's transaction."""
        ...

    def remove(self, session: Session, no: int) -> None:
        """Take every chunk of a record out of the index."""
        ...

    def match(
        self,
        session: Session,
        terms: Sequence[str],
        within: Within,
        limit: int,
        prefix: bool = False,
    ) -> list[int]:
        """Return rows with all terms, newest first, up to ``limit``.

        With ``prefix`` the last term may go on.
        """
        ...

    def matching(self, term: str, within: Within) -> Matching:
        """Return SQL pieces that join a term's rows with messages."""
        ...

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        """The stored terms of rows: prose and code."""
        ...

    def problems(self, session: Session, deep: bool) -> list[str]:
        """Return what is wrong with the index.

        Quick checks at every open, ``deep`` reads all of it.
        """
        ...

    def is_sound(self, session: Session) -> bool:
        """Return True if its tables can be read."""
        ...

    def recreate(self, session: Session, is_damaged: bool) -> None:
        """Empty the index; the caller adds every row again.

        A damaged one leaves unused pages behind: the caller rewrites the file.
        """
        ...

    def optimize(self, session: Session) -> None:
        """Merge the index into its most compact form."""
        ...


def join_terms(conditions: Iterable[str]) -> str:
    """Conditions as the tail of a ``WHERE``."""
    return "".join(f" AND {condition}" for condition in conditions)


RecordKind = Literal["task", "observation", "memory", "working", "code"]
_CODES: dict[RecordKind, int] = {"task": 1, "observation": 2, "memory": 3, "working": 4, "code": 5}
_KINDS: dict[int, RecordKind] = {code: kind for kind, code in _CODES.items()}
PIECE_BITS = 8
KIND_BITS = 8
MAX_PIECES = 1 << PIECE_BITS


class RecordTerms(NamedTuple):
    """A record as terms: its head, and its body in pieces."""

    head: str
    bodies: tuple[str, ...]


def terms_of(head: str, body: str) -> RecordTerms:
    """The terms of a record's texts."""
    from smara.core.text import analyze, analyze_chunks  # not needed by those who only open a store

    pieces = analyze_chunks(body)[:MAX_PIECES]
    title = analyze(head)
    return RecordTerms(
        _join_record_terms(title.prose, title.code),
        tuple(_join_record_terms(piece.prose, piece.code) for piece in pieces),
    )


def record_row(kind: RecordKind, no: int, piece: int = 0) -> int:
    """The row number of one piece of a record.

    >>> record_kind(record_row("task", 7, 3)), record_no(record_row("task", 7, 3))
    ('task', 7)
    """
    return (no << KIND_BITS | _CODES[kind]) << PIECE_BITS | piece


def kind_code(kind: RecordKind) -> int:
    """The number that stands for a kind in a row number."""
    return _CODES[kind]


def record_no(row: int) -> int:
    """The number of the record a row belongs to."""
    return row >> (PIECE_BITS + KIND_BITS)


def record_kind(row: int) -> RecordKind:
    """The kind of the record a row belongs to."""
    return _KINDS[row >> PIECE_BITS & (1 << KIND_BITS) - 1]


class RecordIndex(Protocol):
    """The index of records of one database."""

    def put(
        self, session: Session, kind: RecordKind, no: int, project_no: int, terms: RecordTerms
    ) -> None:
        """Index a record, replacing the old one; in the caller's transaction."""
        ...

    def add(
        self,
        session: Session,
        kind: RecordKind,
        project_no: int,
        records: Sequence[tuple[int, RecordTerms]],
    ) -> None:
        """Index many records that are new; part of the caller's transaction."""
        ...

    def remove(self, session: Session, kind: RecordKind, numbers: Sequence[int]) -> None:
        """Remove records from the index; in the caller's transaction.

        Those that are not in it are left alone.
        """
        ...

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

        With ``prefix`` the term may go on.

        ``None`` for the project is for a store with a single one, where the wall would only cost
        time.
        """
        ...

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        """The stored terms of rows: head and body."""
        ...

    def problems(self, session: Session, deep: bool) -> list[str]:
        """Return what is wrong with the index.

        Quick checks at every open, ``deep`` reads all of it.
        """
        ...

    def is_sound(self, session: Session) -> bool:
        """Return True if its tables can be read."""
        ...

    def recreate(self, session: Session, is_damaged: bool) -> None:
        """Empty the index; the caller puts every record in again."""
        ...

    def optimize(self, session: Session) -> None:
        """Merge the index into its most compact form."""
        ...


def _join_record_terms(prose: str, code: str) -> str:
    return f"{prose} {code}".strip()


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
        """Return what is wrong with the vocabulary."""
        ...

    def is_sound(self, session: Session) -> bool:
        """Return True if its tables can be read."""
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
