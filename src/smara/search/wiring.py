"""Which kinds of records a search looks through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smara.core.clock import Clock
from smara.core.scope import Scope
from smara.database.database import Database
from smara.knowledge.store import KnowledgeStore
from smara.observations.store import ObservationStore
from smara.search.code_freshness import CodeJudge, no_code
from smara.search.code_source import CodeFinder
from smara.search.code_trees import CodeTrees
from smara.search.record_sources import (
    Finder,
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
    database: Database, scope: Scope, clock: Clock, meaning: Meaning | None, freshness: CodeJudge = no_code,
    code: CodeTrees | None = None,
) -> list[tuple[tuple[str, ...], Finder]]:  # fmt: skip
    """What finds each kind of record, with the sources its hits say they are."""
    sources: list[RecordSource] = [
        TaskSource(TaskStore(database, scope)),
        ObservationSource(ObservationStore(database, scope), freshness),
        MemorySource(KnowledgeStore(database, scope), clock, freshness),
        WorkingSource(WorkingStore(database, scope)),
    ]
    found: list[tuple[tuple[str, ...], Finder]] = [
        (source.sources, RecordFinder(database, source, meaning)) for source in sources
    ]
    return [*found, (("code",), CodeFinder(code or CodeTrees(database, scope), meaning))]
