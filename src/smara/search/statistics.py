"""How large the index is, remembered for a while.

The sums change slowly and a ranking hardly notices, so they are read again only after
half a minute, or at once while a project is still small.
"""

from __future__ import annotations

from collections.abc import Mapping

from smara.core.clock import Clock
from smara.database.database import Session
from smara.errors import DeadlineError
from smara.messages.store import MessageStore
from smara.search.evidence import Stats

_KEPT_SECONDS = 30.0
_SMALL_ROWS = 2_000


class Statistics:
    """Rows, threads and the average length of one project."""

    def __init__(self, store: MessageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: tuple[int, int, int] = (0, 0, 0)
        self._read_at = float("-inf")

    def _current(self, session: Session) -> tuple[int, int, int]:
        now = self._clock.monotonic()
        if self._known[0] < _SMALL_ROWS or now - self._read_at > _KEPT_SECONDS:
            try:
                self._known = self._store.index_size(session)
                self._read_at = now
            except DeadlineError:
                pass  # an older sum, or none, ranks nearly as well
        return self._known

    def rows(self, session: Session) -> int:
        """How many rows the index holds for this project."""
        return self._current(session)[0]

    def of(self, session: Session, frequencies: Mapping[str, int]) -> Stats:
        """The statistics a ranking needs."""
        rows, terms, threads = self._current(session)
        return Stats(max(rows, 1), max(threads, 1), terms / rows if rows else 1.0, frequencies)
