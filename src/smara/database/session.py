"""Define the sessions and transactions of either database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Session(Protocol):
    """Runs statements on one connection."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; the number of rows it changed."""
        ...

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        ...

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Every row of the answer."""
        ...

    def one(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row of the answer, or ``None``."""
        ...
