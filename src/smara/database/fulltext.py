"""The text index as the rooms see it: rows of terms, matched by term, inside a scope.

The terms come ready-made from ``core.text``; a database only keeps and finds them. It
answers *which* rows hold a term; how well they answer a question is decided above, by
the same code for both databases. A long text is several rows: the row number is the
number of the record and the chunk within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from smara.database.database import Session

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
    """Which rows may be found. The project is always given; the rest narrows it."""

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
        """Whether the messages themselves must be looked at, not the index alone."""
        return self.since_ms is not None or self.until_ms is not None or self.task_id is not None

    @property
    def is_filtered(self) -> bool:
        """Whether more than the project is asked for."""
        return (
            self.needs_records
            or self.thread_no is not None
            or self.resource_id is not None
            or bool(self.roles)
        )


class Matching(NamedTuple):
    """Pieces of SQL over index rows ``f`` and messages ``m``: one statement for what two would do.

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
        """Rows that hold all the terms, newest first, at most ``limit``; with ``prefix`` the last
        term may go on.
        """
        ...

    def matching(self, term: str, within: Within) -> Matching:
        """The pieces of a statement that joins the rows holding a term with their messages."""
        ...

    def texts(self, session: Session, rows: Sequence[int]) -> dict[int, tuple[str, str]]:
        """The stored terms of rows: prose and code."""
        ...

    def problems(self, session: Session, deep: bool) -> list[str]:
        """What is wrong with the index; quick checks at every open, ``deep`` reads all of it."""
        ...

    def is_sound(self, session: Session) -> bool:
        """Whether its tables can be read at all, whatever they hold."""
        ...

    def recreate(self, session: Session, is_damaged: bool) -> None:
        """Empty the index; the caller adds every row again.

        A damaged one leaves unused pages behind: the caller has the file written anew.
        """
        ...

    def optimize(self, session: Session) -> None:
        """Merge the index into its most compact form."""
        ...


def joined(conditions: Iterable[str]) -> str:
    """Conditions as the tail of a ``WHERE``."""
    return "".join(f" AND {condition}" for condition in conditions)
