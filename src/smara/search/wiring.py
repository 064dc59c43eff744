"""Which kinds of records a search looks through."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from smara.core.clock import Clock
from smara.core.scope import Scope
from smara.database.database import Database, Session
from smara.knowledge.store import KnowledgeStore
from smara.observations.store import ObservationStore
from smara.search.code_freshness import CodeJudge, no_code
from smara.search.found import Found, Wanted
from smara.search.record_sources import (
    Finder,
    MemorySource,
    ObservationSource,
    RecordFinder,
    RecordSource,
    TaskSource,
    WorkingSource,
)
from smara.search.understanding import Understanding
from smara.tasks.store import TaskStore
from smara.working.store import WorkingStore

if TYPE_CHECKING:
    from smara.meaning.models import Vector
    from smara.meaning.reading import Meaning
    from smara.search.code_source import CodeFinder
    from smara.search.code_trees import CodeTrees


def record_finders(
    database: Database,
    scope: Scope,
    clock: Clock,
    meaning: Meaning | None,
    find_trees: Callable[[], CodeTrees],
    freshness: CodeJudge = no_code,
) -> list[tuple[tuple[str, ...], Finder]]:
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
    return [*found, (("code",), _CodeWhenAsked(find_trees, meaning))]


class _CodeWhenAsked:
    """Finds code, and is loaded when code is first looked for: most questions are not about it."""

    def __init__(self, find_trees: Callable[[], CodeTrees], meaning: Meaning | None) -> None:
        self._find_trees = find_trees
        self._meaning = meaning

    @cached_property
    def _finder(self) -> CodeFinder:
        from smara.search.code_source import CodeFinder

        return CodeFinder(self._find_trees(), self._meaning)

    def find(
        self,
        session: Session,
        asked: Understanding,
        vector: Vector | None,
        wall: int | None,
        wanted: Wanted,
    ) -> list[Found]:
        """The best of the pieces of code, not yet in order."""
        return self._finder.find(session, asked, vector, wall, wanted)
