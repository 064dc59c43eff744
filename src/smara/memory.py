"""Memory: opens the database, answers, closes. No logic of its own; the rooms are wired in
``rooms``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from smara.config import AUTO_PROJECT, Settings, default_store, load_settings
from smara.core import log
from smara.core.clock import Clock, SystemClock
from smara.core.git import find_repository
from smara.core.ids import IdMaker, Uuid7
from smara.core.scope import DEFAULT_PROJECT, Scope
from smara.core.tokens import counter_for
from smara.database.database import Database
from smara.database.migrate import migrate
from smara.database.projects import ProjectContext, Projects
from smara.rooms import Overrides, Rooms, redacted

if TYPE_CHECKING:
    from smara.messages.summarize import Summarizer
    from smara.models.chat import ChatModel
    from smara.models.embedder import Embedder
    from smara.models.reranker import Reranker
    from smara.observations.models import Extractor
    from smara.observations.observations import CompactedThread
    from smara.observations.worker import StoreWorker
    from smara.search.models import (
        Answer,
        Hit,
        MemoryAnswer,
        ObservationHit,
        PackedAnswer,
        TaskAnswer,
        ThreadHit,
    )

_POSTGRES = ("postgresql://", "postgres://")


class Memory(Rooms):
    """One memory: a project's threads and messages, and the search over them.

    A context manager. Safe to use from several threads; many processes may open the same
    store at once.
    """

    @cached_property
    def workers(self) -> StoreWorker:
        """Observes the threads of every project of this store that nobody is talking in."""
        from smara.observations.factory import due_rules
        from smara.observations.worker import StoreWorker

        rules = due_rules(self.settings)
        return StoreWorker(
            self.database,
            self._project.clock,
            rules,
            worker_of=lambda project_id: self.in_project(project_id).worker,
        )

    @property
    def project(self) -> str:
        """The project this memory works in."""
        return self.scope.project_id

    @property
    def warnings(self) -> list[str]:
        """What the user should know about this store."""
        return self.database.warnings

    def search(self, query: str, limit: int = 10, **filters: Any) -> Answer:
        """Find anything that is remembered, by words and meaning; see
        :meth:`smara.search.search.Search.search`.
        """
        return self._search.search(query, limit, **filters)

    def pack(
        self,
        answer: Answer,
        budget_tokens: int | None = None,
        *,
        phase: str | None = None,
        is_unasked: bool = False,
    ) -> PackedAnswer:
        """An answer as one text within a budget of tokens, without repetition, each entry cited."""
        from smara.search.pack import pack

        return pack(
            answer.hits, self._project.counter, budget_tokens, phase=phase, is_unasked=is_unasked
        )

    def search_pattern(self, pattern: str) -> Hit | None:
        """What is known about something one is about to search for; see
        :mod:`smara.search.patterns`.
        """
        return self._pattern_search.find(pattern)

    def search_threads(self, query: str, limit: int = 10, **filters: Any) -> list[ThreadHit]:
        """Find conversations: threads ranked by everything in them that answers the query."""
        return self._search.search_threads(query, limit, **filters)

    def search_tasks(self, query: str, limit: int = 3, **filters: Any) -> TaskAnswer:
        """Find tasks by words of their titles and descriptions; see
        :meth:`smara.search.record_search.TaskSearch.search`.
        """
        return self._task_search.search(query, limit, **filters)

    def search_memories(self, query: str, limit: int = 10, **filters: Any) -> MemoryAnswer:
        """Find memories by their words; see
        :meth:`smara.search.record_search.MemorySearch.search`.
        """
        return self._memory_search.search(query, limit, **filters)

    def search_observations(
        self, query: str, limit: int = 10, *, thread_id: str | None = None
    ) -> list[ObservationHit]:
        """Find observations and reflections by their words, also those that were condensed
        since.
        """
        return self._observation_search.search(query, limit, thread_id=thread_id)

    def complete(self, prefix: str, limit: int = 10) -> list[str]:
        """Words and names of this project that begin with ``prefix``."""
        return self._search.complete(prefix, limit)

    def status(self) -> dict[str, Any]:
        """Return what is remembered in this project, and what the store is."""
        # The stores alone: their rooms would load all that observes and learns.
        from smara.knowledge.store import KnowledgeStore
        from smara.observations.store import ObservationStore

        tasks = self.tasks.totals()
        observations = ObservationStore(self.database, self.scope)
        with self.database.read() as session:
            total, active, generations = observations.totals(session)
            waiting, given_up = observations.troubles(session)
            memories = KnowledgeStore(self.database, self.scope).totals(session)
        return {
            "project": self.project,
            **self.threads.totals(),
            "tasks": {
                "open": tasks.open,
                "inProgress": tasks.in_progress,
                "closed": tasks.closed,
                "ready": tasks.ready,
                "blocked": tasks.blocked,
            },
            "observations": {
                "total": total,
                "active": active,
                "generations": generations,
                "threadsWaiting": waiting,
                "givenUp": given_up,
            },
            "memories": {
                "total": memories.total,
                "active": memories.active,
                "toReview": memories.to_review,
            },
            "models": self.models.status(),
            "store": self.database.facts(),
        }

    def compact(
        self, thread_id: str, keep: int = 0, *, is_when_due: bool = False
    ) -> CompactedThread:
        """Show a thread's old messages as what was observed of them; see
        :mod:`smara.observations.observations`.
        """
        from smara.observations.observations import compact_thread

        return compact_thread(
            self.compactions,
            self.observations,
            self.messages,
            thread_id=thread_id,
            keep=keep,
            is_when_due=is_when_due,
        )

    def integrity(self) -> list[str]:
        """What is wrong with the store's file; empty when nothing is. Reads all of it."""
        return self.database.integrity()

    def shrink_log(self) -> bool:
        """Move SQLite's write-ahead log into the file; ``False`` while a reader holds it."""
        return self.database.shrink_log()

    def with_settings(self, **changes: Any) -> Memory:
        """The same store under other settings; closing either of the two closes both."""
        return self._again(self.scope, replace(self.settings, **changes))

    def in_project(self, project_id: str) -> Memory:
        """Another project of the same store; closing either of the two closes both."""
        return self._again(self.projects.named(project_id), self.settings)

    def _again(self, scope: Scope, settings: Settings) -> Memory:
        project = replace(self._project, scope=scope, settings=settings)
        other = Memory(project, self._overrides)
        other.__dict__["_outages"] = self._outages  # the model is the same one
        other.__dict__["_fillings"] = (
            self._fillings
        )  # whichever is closed, nothing goes on in the background
        return other

    def close(self) -> None:
        """Close the database; safe to call twice."""
        with self._closing:
            if "_observing" in self.__dict__:
                self._observing[2].close()
            if "behavior" in self.__dict__:
                self.behavior.close()
            for filling in self._fillings:
                filling.close()
            self.database.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_memory(
    path_or_url: str | os.PathLike[str] | None = None,
    *,
    project: str | None = None,
    clock: Clock | None = None,
    new_id: IdMaker | None = None,
    summarizer: Summarizer | None = None,
    chat_model: ChatModel | None = None,
    extractors: Sequence[Extractor] = (),
    rerank_model: Reranker | None = None,
    embedding_model: Embedder | None = None,
    vfs: str | None = None,
    check_index: bool = True,
    **settings: Any,
) -> Memory:
    """Open a memory, made on first use.

    ``path_or_url`` is a SQLite file, ``":memory:"``, or a PostgreSQL URL; without it, the store
    named by ``SMARA_DB``, or the per-user store. ``project`` is the wall to stay behind: a store
    that is named starts in ``default``, the per-user store in the git repository around the current
    folder; ``"auto"`` asks for the latter anywhere. ``chat_model`` thinks in the place of the one
    that the setting ``model`` names; ``extractors`` are values of your own that it takes out of the
    messages; ``rerank_model`` judges hits in the place of the one that the setting ``reranker``
    names, ``embedding_model`` turns text into vectors in the place of ``embedder``. ``check_index``
    looks at the search index and mends it where that is quick.
    """
    given = os.fspath(path_or_url) if path_or_url is not None else None
    chosen = load_settings(db=given, project=project, **settings)
    clock = clock or SystemClock()
    new_id = new_id or Uuid7(clock)
    log.set_redactor(redacted)
    database = open_database(chosen, vfs)
    try:
        migrate(database, clock)
        context = ProjectContext(
            database,
            scope=_scope(Projects(database, clock, new_id), chosen),
            clock=clock,
            new_id=new_id,
            counter=counter_for(chosen.token_model),
            settings=chosen,
        )
        overrides = Overrides(
            summarizer=summarizer,
            chat_model=chat_model,
            extractors=extractors,
            rerank_model=rerank_model,
            embedding_model=embedding_model,
        )
        memory = Memory(context, overrides)
        if check_index:
            memory.index.check_at_open()
        memory.start()
    except BaseException:
        database.close()
        raise
    return memory


def open_database(settings: Settings, vfs: str | None = None) -> Database:
    """The database the settings name, not yet migrated."""
    if settings.db is not None and settings.db.startswith(_POSTGRES):
        from smara.database.postgres import PostgresDatabase

        return PostgresDatabase(settings.db, settings.durability, settings.busy_timeout_seconds)
    from smara.database.sqlite import SqliteDatabase

    path = settings.db if settings.db is not None else str(default_store())
    path = path.removeprefix("sqlite:///") if path.startswith("sqlite:///") else path
    return SqliteDatabase(
        path if path == ":memory:" else os.path.expanduser(path),
        settings.durability,
        settings.busy_timeout_seconds,
        vfs=vfs,
    )


def _scope(projects: Projects, settings: Settings) -> Scope:
    name = settings.project or (AUTO_PROJECT if settings.db is None else DEFAULT_PROJECT)
    if name != AUTO_PROJECT:
        return projects.named(name)
    repository = find_repository(os.getcwd())
    return projects.of_repository(repository) if repository else projects.named(DEFAULT_PROJECT)
