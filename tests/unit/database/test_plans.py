"""Records whose numbers are known are looked up, however many others a project has.

SQLite has no statistics of a store: a list of forty numbers looks dearer to it than a project.
"""

from __future__ import annotations

from typing import Any

import pytest

from smara.commits.store import CommitStore
from smara.database.database import Row, Session
from smara.decisions.store import DecisionStore
from smara.knowledge.store import KnowledgeStore
from smara.observations.store import ObservationStore
from smara.tasks.store import TaskStore
from smara.testing import open_temporary
from smara.working.store import WorkingStore


class PlannedSession:
    """A session that shows how SQLite reads instead of reading."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.plans: list[Row] = []

    def all(self, statement: str, values: Any = ()) -> list[Row]:
        self.plans += self._session.all(f"EXPLAIN QUERY PLAN {statement}", values)
        return []


@pytest.mark.parametrize("kind", [CommitStore, DecisionStore, ObservationStore, WorkingStore])
def test_records_by_number_do_not_read_the_whole_project(kind):
    with open_temporary() as memory:
        rooms = memory.internals
        with rooms.database.read() as session:
            planned = PlannedSession(session)
            kind(rooms.database, rooms.scope).by_numbers(planned, list(range(1, 61)))
    assert planned.plans
    assert "(project_no=?)" not in str(planned.plans)


@pytest.mark.parametrize("kind", [TaskStore, KnowledgeStore])
def test_the_history_of_a_record_does_not_read_that_of_the_whole_project(kind):
    with open_temporary() as memory:
        rooms = memory.internals
        with rooms.database.read() as session:
            planned = PlannedSession(session)
            kind(rooms.database, rooms.scope).history(planned, 7, 50)
    assert planned.plans
    assert "(project_no=?)" not in str(planned.plans)
