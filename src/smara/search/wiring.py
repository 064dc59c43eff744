"""Which kinds of records a search looks through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smara.core.clock import Clock
from smara.core.scope import Scope
from smara.database.database import Database
from smara.knowledge.store import KnowledgeStore
from smara.observations.store import ObservationStore
from smara.search.record_sources import (
    MemorySource,
    ObservationSource,
    RecordFinder,
    RecordSource,
    TaskSource,
    WorkingSource,
)
from smara.tasks.store import TaskStore
from smara.working.store import WorkingStore

if TYPE_CHECKING:
    from smara.meaning.reading import Meaning


def record_finders(
    database: Database, scope: Scope, clock: Clock, meaning: Meaning | None
) -> list[tuple[tuple[str, ...], RecordFinder]]:
    """What finds each kind of record, with the sources its hits say they are."""
    sources: list[RecordSource] = [
        TaskSource(TaskStore(database, scope)),
        ObservationSource(ObservationStore(database, scope)),
        MemorySource(KnowledgeStore(database, scope), clock),
        WorkingSource(WorkingStore(database, scope)),
    ]
    return [(source.sources, RecordFinder(database, source, meaning)) for source in sources]
