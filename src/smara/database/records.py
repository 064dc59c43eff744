"""The second text index: small records of every kind that is no message.

Tasks, and later observations, memories and code, are found by the same terms as messages
(``core.text``). A record has a *head* (a title, a name), which says more than its *body*.
A long body is several rows; the row number holds the record's number, its kind and the
piece. As with messages, the database answers which rows hold a term, and nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from smara.database.database import Session

RecordKind = Literal["task", "observation", "memory", "working", "code"]
_CODES: dict[RecordKind, int] = {"task": 1, "observation": 2, "memory": 3, "working": 4, "code": 5}
_KINDS: dict[int, RecordKind] = {code: kind for kind, code in _CODES.items()}
PIECE_BITS = 8
KIND_BITS = 8
MAX_PIECES = 1 << PIECE_BITS


class RecordTerms(NamedTuple):
    """A record as terms: its head, and its body in one piece or several."""

    head: str
    bodies: tuple[str, ...]


def terms_of(head: str, body: str) -> RecordTerms:
    """The terms of a record's texts."""
    from smara.core.text import analyze, analyze_chunks  # not needed by those who only open a store

    pieces = analyze_chunks(body)[:MAX_PIECES]
    title = analyze(head)
    return RecordTerms(
        _joined(title.prose, title.code),
        tuple(_joined(piece.prose, piece.code) for piece in pieces),
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
        """Index a record in the place of what was there; part of the caller's transaction."""
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
        """Take records out of the index; those that are not in it are left alone. Part of the
        caller's transaction.
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
        """Rows that hold a term, newest record first, at most ``limit``; with ``prefix`` the term
        may go on.

        ``None`` for the project is for a store with a single one, where the wall would only cost
        time.
        """
        ...

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        """The stored terms of rows: head and body."""
        ...

    def problems(self, session: Session, deep: bool) -> list[str]:
        """What is wrong with the index; quick checks at every open, ``deep`` reads all of it."""
        ...

    def is_sound(self, session: Session) -> bool:
        """Whether its tables can be read at all."""
        ...

    def recreate(self, session: Session, is_damaged: bool) -> None:
        """Empty the index; the caller puts every record in again."""
        ...

    def optimize(self, session: Session) -> None:
        """Merge the index into its most compact form."""
        ...


def _joined(prose: str, code: str) -> str:
    return f"{prose} {code}".strip()
