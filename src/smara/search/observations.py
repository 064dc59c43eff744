"""Finding observations by words, whatever their state: what was condensed is found as it was first
noted.
"""

from __future__ import annotations

from smara.core.text import snippet
from smara.database.database import Session, marks
from smara.errors import DeadlineError, InvalidInputError
from smara.messages.store import MessageStore
from smara.observations.models import Observation
from smara.observations.store import ObservationStore
from smara.search.models import ObservationHit
from smara.search.query import analyze_query
from smara.search.records import GatheredRecords, Scores

_MOST = 1_000


class ObservationSearch:
    """Searches the observations of one project."""

    def __init__(
        self, store: ObservationStore, messages: MessageStore, deadline_seconds: float
    ) -> None:
        self._store = store
        self._messages = messages
        self._deadline_seconds = deadline_seconds

    def search(
        self, query: str, limit: int = 10, *, thread_id: str | None = None
    ) -> list[ObservationHit]:
        """Observations and reflections that answer a query, best first; never raises for what is
        asked.
        """
        if not isinstance(query, str):
            raise InvalidInputError(f"query must be a text, not {type(query).__name__}.")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST:
            raise InvalidInputError(
                f"limit must be a whole number from 1 to {_MOST}; got {limit!r}."
            )
        analyzed = analyze_query(query)
        try:
            with self._store.database.read(self._deadline_seconds) as session:
                wall = None if self._messages.is_alone(session) else self._store.scope.project_no
                records = self._store.database.records
                found = GatheredRecords(
                    session,
                    records,
                    "observation",
                    wall=wall,
                    total=self._total(session),
                    query=analyzed,
                )
                scores = found.scored()
                rows = self._rows(session, scores)
        except DeadlineError:
            return []
        wanted = [no for no in scores if no in rows and thread_id in (None, rows[no].thread_id)]
        wanted.sort(key=lambda no: (scores[no][0], no), reverse=True)
        top = scores[wanted[0]][0] if wanted else 1.0
        return [
            ObservationHit(
                rows[no],
                rank,
                round(scores[no][0] / top, 4),
                why=scores[no][1],
                snippet=snippet(_text(rows[no]), analyzed.texts),
            )
            for rank, no in enumerate(wanted[:limit], 1)
        ]

    def _rows(self, session: Session, scores: Scores) -> dict[int, Observation]:
        numbers = list(scores)
        return (
            dict(self._store.select(session, f" AND o.no IN ({marks(len(numbers))})", numbers))
            if numbers
            else {}
        )

    def _total(self, session: Session) -> int:
        row = session.one(
            self._store.sql("SELECT count(*) FROM observations WHERE project_no = :project")
        )
        return int(row[0]) if row else 0


def _text(observation: Observation) -> str:
    return "\n".join((observation.text, *observation.details))
