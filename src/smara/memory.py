"""Memory: opens the database, wires the rooms, closes. No logic of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from smara.config import AUTO_PROJECT, Settings, default_actor, default_store, load_settings, local_timezone
from smara.core import log
from smara.core.clock import Clock, SystemClock
from smara.core.ids import IdMaker, Uuid7
from smara.core.repository import find_repository
from smara.core.scope import DEFAULT_PROJECT, Scope
from smara.core.tokens import TokenCounter, counter_for
from smara.database.database import Database
from smara.database.migrate import migrate
from smara.database.projects import Projects
from smara.messages.store import MessageStore

if TYPE_CHECKING:
    from smara.context.processors import Processors
    from smara.database.database import Session
    from smara.database.leases import Leases
    from smara.knowledge.memories import Memories
    from smara.links.links import Links
    from smara.meaning.background import Filling
    from smara.meaning.embeddings import Embeddings
    from smara.meaning.reading import Meaning
    from smara.meaning.wiring import Room
    from smara.messages.compaction import Compactions
    from smara.messages.history import History
    from smara.messages.messages import Messages
    from smara.messages.summarize import Summarizer
    from smara.messages.threads import Threads
    from smara.models.caller import Models
    from smara.models.chat import ChatModel
    from smara.models.embedding import Embedder
    from smara.models.rerank import Reranker
    from smara.observations.background import Background
    from smara.observations.compacting import CompactedThread
    from smara.observations.failing import OutageGate
    from smara.observations.models import Extractor
    from smara.observations.observations import Observations
    from smara.observations.rounds import StoreWorker
    from smara.observations.worker import Worker
    from smara.search.index import Index
    from smara.search.memories import MemorySearch
    from smara.search.models import Answer, Hit, MemoryAnswer, ObservationHit, Packed, TaskAnswer, ThreadHit
    from smara.search.observations import ObservationSearch
    from smara.search.patterns import PatternSearch
    from smara.search.search import Search
    from smara.search.tasks import TaskSearch
    from smara.tasks.tasks import Tasks
    from smara.tasks.turn import Turns
    from smara.working.working import Working

_POSTGRES = ("postgresql://", "postgres://")


class Memory:
    """One memory: a project's threads and messages, and the search over them.

    A context manager. Safe to use from several threads; many processes may open the same
    store at once.
    """

    def __init__(
        self, database: Database, scope: Scope, settings: Settings, clock: Clock, new_id: IdMaker,
        counter: TokenCounter, summarizer: Summarizer | None, chat_model: ChatModel | None = None,
        extractors: Sequence[Extractor] = (), rerank_model: Reranker | None = None,
        embedding_model: Embedder | None = None,
    ) -> None:  # fmt: skip
        self.database = database
        self.scope = scope
        self.settings = settings
        self._clock = clock
        self._new_id = new_id
        self._counter = counter
        self._summarizer = summarizer
        self._chat_model = chat_model
        self._extractors = extractors
        self._rerank_model = rerank_model
        self._embedding_model = embedding_model
        self._store = MessageStore(database, scope)
        self._closing = threading.Lock()

    # Each room is loaded when it is first used: a search should not pay for what writes.

    @cached_property
    def threads(self) -> Threads:
        """Conversations."""
        from smara.messages.threads import Threads

        return Threads(self._store, self._clock, self._new_id, self.settings.resource)

    @cached_property
    def messages(self) -> Messages:
        """What was said."""
        from smara.messages.append import Appender
        from smara.messages.messages import Messages

        return Messages(
            self._store, self.threads, Appender(self._store, self._new_id, self._active_task), self.compactions,
            self._counter,
            self._clock, self.settings.max_message_bytes, self.settings.compact_every_messages,
        )  # fmt: skip

    @cached_property
    def compactions(self) -> Compactions:
        """Summaries that are shown in the place of old messages."""
        from smara.messages.compaction import CompactionRules, Compactions
        from smara.messages.summarize import OfflineSummarizer
        from smara.observations.summarizing import ObservedSummarizer

        settings = self.settings
        rules = CompactionRules(
            settings.compact_after_messages, settings.archive_after_messages, settings.compact_run_messages
        )
        observed = ObservedSummarizer(self.database, self.scope, OfflineSummarizer(), self._timezone)
        return Compactions(self._store, self._summarizer or observed, self._clock, self._new_id, rules)

    @cached_property
    def history(self) -> History:
        """Windows over threads, for showing to a model."""
        from smara.messages.history import History

        return History(self.messages, self._counter)

    @cached_property
    def tasks(self) -> Tasks:
        """What is to be done."""
        from smara.links.links import linked_message_ids
        from smara.tasks.tasks import TaskRules, Tasks

        settings = self.settings
        rules = TaskRules(
            settings.task_prefix, settings.claim_expires_after_minutes, settings.compact_tasks_after_days,
            settings.archive_tasks_after_days,
        )  # fmt: skip
        return Tasks(self._turns, rules, partial(linked_message_ids, self._turns.store))

    @cached_property
    def memories(self) -> Memories:
        """What is known: typed statements with evidence and trust."""
        from smara.links.provenance import make_memories

        actor, session_id = self.settings.actor or default_actor(), self.settings.session
        return make_memories(self._store, self._clock, self._new_id, actor, session_id, lambda: self._meaning)

    @cached_property
    def observations(self) -> Observations:
        """What was noticed in conversations."""
        return self._observing[0]

    @cached_property
    def worker(self) -> Worker:
        """Observes the threads that nobody is talking in."""
        return self._observing[1]

    @cached_property
    def workers(self) -> StoreWorker:
        """Observes the threads of every project of this store that nobody is talking in."""
        from smara.observations.rounds import StoreWorker
        from smara.observations.wiring import due_rules

        rules = due_rules(self.settings)
        return StoreWorker(self.database, self._clock, rules, lambda project_id: self.in_project(project_id).worker)

    @cached_property
    def _outages(self) -> OutageGate:
        from smara.observations.failing import OutageGate

        return OutageGate()

    @cached_property
    def _observing(self) -> tuple[Observations, Worker, Background]:
        from smara.observations.wiring import Parts, make_observations

        return make_observations(
            Parts(
                self.database, self.scope, self._store, self.threads, self.leases, self.models, self._clock,
                self._new_id, self._counter, self.settings, self._timezone, self._extractors, self._embed_a_while,
                self._outages,
            )
        )  # fmt: skip

    @cached_property
    def _timezone(self) -> str:
        return self.settings.observe_timezone or local_timezone()

    @cached_property
    def context(self) -> Processors:
        """What an agent gets, step by step."""
        from smara.context.processors import ContextSettings, Processors

        chosen = self.settings
        settings = ContextSettings(
            chosen.observe_enabled, chosen.observe_read_only, chosen.observe_scope, self._timezone,
            chosen.last_messages, chosen.suggest_response, chosen.block_deadline_seconds,
            chosen.activate_after_idle_minutes * 60_000,
            most_message_tokens=int(2 * chosen.observe_after_tokens),
        )  # fmt: skip
        return Processors(
            self.messages, self.threads, self.observations, self.working, self._counter, self._clock, settings
        )

    @cached_property
    def links(self) -> Links:
        """Where tasks and messages meet."""
        from smara.links.links import Links

        return Links(self.tasks, self._turns, self.threads, self._store)

    @cached_property
    def _turns(self) -> Turns:
        from smara.tasks.store import TaskStore
        from smara.tasks.turn import Turns

        actor = self.settings.actor or default_actor()
        return Turns(TaskStore(self.database, self.scope), self._clock, self._new_id, actor, self.settings.session)

    def _active_task(self, session: Session, metadata: str, session_id: str | None, now_ms: int) -> str | None:
        if "activeTaskId" not in metadata:  # a thread without one should not even load what knows about tasks
            return None
        from smara.links.active import ActiveTask

        return ActiveTask(self._turns.store).of(session, metadata, session_id or self.settings.session, now_ms)

    @cached_property
    def working(self) -> Working:
        """What is held in mind."""
        from smara.working.store import WorkingStore
        from smara.working.working import Working

        settings = self.settings
        return Working(
            WorkingStore(self.database, self.scope), self._clock, self._new_id, settings.resource,
            settings.working_max_characters, settings.working_template, settings.actor or default_actor(),
            self._resource_of,
        )  # fmt: skip

    def _resource_of(self, thread_id: str) -> str | None:
        found = self.threads.find(thread_id)
        return found.resource_id if found else None

    @cached_property
    def models(self) -> Models:
        """What thinks, within its budget."""
        from smara.models.budget import Budget, limits_of
        from smara.models.caller import Models
        from smara.models.prices import Prices, parse_prices
        from smara.models.store import CallStore

        settings, store = self.settings, CallStore(self.database, self.scope)
        prices = Prices(parse_prices(settings.model_prices))
        budget = Budget(store, self._clock, self._new_id, limits_of(settings), prices)
        return Models(
            store, budget, self._clock, settings, counter_for(), _redacted, settings.actor or default_actor(),
            self._chat_model, self._rerank_model, self._embedding_model,
        )  # fmt: skip

    @cached_property
    def index(self) -> Index:
        """The search index, to be looked after."""
        from smara.search.index import Index

        return Index(self._store)

    @cached_property
    def leases(self) -> Leases:
        """The right to do a piece of work, granted to one at a time."""
        from smara.database.leases import Leases

        return Leases(self.database, self._clock, self._new_id)

    @cached_property
    def projects(self) -> Projects:
        """The projects of this store."""
        return Projects(self.database, self._clock, self._new_id)

    @cached_property
    def embeddings(self) -> Embeddings:
        """The vectors of what is remembered: how they stand, making them, changing the model."""
        return self._vectors.embeddings

    @cached_property
    def _meaning(self) -> Meaning | None:
        return None if self.settings.embedder == "off" else self._vectors.meaning

    @cached_property
    def _vectors(self) -> Room:
        from smara.meaning.wiring import Parts, Room

        return Room(
            Parts(
                self.database, self.scope, lambda: self.leases, self._clock, self._new_id, self.settings.embedder,
                self._open_embedder, self.settings.embed_query_seconds, self._embedding_model is not None,
                (lambda: self._filling.wake()) if self._fills_itself else None,
            )
        )  # fmt: skip

    def _embed_a_while(self) -> int:
        """A worker's share of the vectors in one round; it should not keep threads waiting."""
        return 0 if self.settings.embedder == "off" else self.embeddings.embed_pending(deadline_seconds=30.0).embedded

    @property
    def _fills_itself(self) -> bool:
        return self.settings.embed_in_background and self.settings.embedder != "off"

    @cached_property
    def _filling(self) -> Filling:
        from smara.meaning.background import Filling

        filling = Filling(lambda stop: self.embeddings.embed_pending(stop=stop))
        self._fillings.append(filling)
        return filling

    @cached_property
    def _fillings(self) -> list[Filling]:
        return []

    def start(self) -> None:
        """Make vectors of what is written from now on, in the background, where that is wanted."""
        if self._fills_itself:
            self.database.on_write = lambda: self._filling.wake()

    def _open_embedder(self, setting: str) -> Embedder | None:
        # Most stores use the one that needs no server: they should not load what talks to models.
        if setting == "offline" and self._embedding_model is None:
            from smara.models.embedders.offline import OfflineEmbedder

            return OfflineEmbedder()
        return self.models.open_embedder(setting)

    @cached_property
    def _search(self) -> Search:
        from smara.search.search import Parts, Search
        from smara.search.wiring import record_finders

        meaning = self._meaning
        finders = record_finders(self.database, self.scope, self._clock, meaning)
        return Search(
            Parts(
                self._store, self._clock, self.settings, self._timezone, meaning, finders, self._reranker,
                self._imagined_answer,
            )
        )  # fmt: skip

    @cached_property
    def _pattern_search(self) -> PatternSearch:
        from smara.knowledge.store import KnowledgeStore
        from smara.search.patterns import PatternSearch
        from smara.search.record_sources import MemorySource

        source = MemorySource(KnowledgeStore(self.database, self.scope), self._clock)
        return PatternSearch(self._store, self.database.records, source, self.settings.search_deadline_seconds)

    def _reranker(self) -> Reranker | None:
        # Most stores rank by features alone: they should not load what talks to models.
        is_plain = self.settings.reranker in ("features", "off") and self._rerank_model is None
        return None if is_plain else self.models.reranker

    def _imagined_answer(self, query: str, deadline_seconds: float) -> str | None:
        from smara.search.hyde import hypothetical

        return hypothetical(self.models, query, deadline_seconds)

    @cached_property
    def _task_search(self) -> TaskSearch:
        from smara.search.tasks import TaskSearch

        return TaskSearch(self._turns.store, self._store, self._search, self.settings.search_deadline_seconds)

    @cached_property
    def _memory_search(self) -> MemorySearch:
        from smara.knowledge.store import KnowledgeStore
        from smara.search.memories import MemorySearch

        store = KnowledgeStore(self.database, self.scope)
        return MemorySearch(store, self._store, self._clock, self.settings.search_deadline_seconds)

    @cached_property
    def _observation_search(self) -> ObservationSearch:
        from smara.observations.store import ObservationStore
        from smara.search.observations import ObservationSearch

        store = ObservationStore(self.database, self.scope)
        return ObservationSearch(store, self._store, self.settings.search_deadline_seconds)

    @property
    def project(self) -> str:
        """The project this memory works in."""
        return self.scope.project_id

    @property
    def warnings(self) -> list[str]:
        """What the user should know about this store."""
        return self.database.warnings

    def search(self, query: str, limit: int = 10, **filters: Any) -> Answer:
        """Find anything that is remembered, by words and meaning; see :meth:`smara.search.search.Search.search`."""
        return self._search.search(query, limit, **filters)

    def pack(
        self, answer: Answer, budget_tokens: int | None = None, *, phase: str | None = None, is_unasked: bool = False
    ) -> Packed:
        """An answer as one text within a budget of tokens, without repetition, each entry cited."""
        from smara.search.pack import pack

        return pack(answer.hits, self._counter, budget_tokens, phase, is_unasked)

    def search_pattern(self, pattern: str) -> Hit | None:
        """What is known about something one is about to search for; see :mod:`smara.search.patterns`."""
        return self._pattern_search.find(pattern)

    def search_threads(self, query: str, limit: int = 10, **filters: Any) -> list[ThreadHit]:
        """Find conversations: threads ranked by everything in them that answers the query."""
        return self._search.search_threads(query, limit, **filters)

    def search_tasks(self, query: str, limit: int = 3, **filters: Any) -> TaskAnswer:
        """Find tasks by words of their titles and descriptions; see :meth:`smara.search.tasks.TaskSearch.search`."""
        return self._task_search.search(query, limit, **filters)

    def search_memories(self, query: str, limit: int = 10, **filters: Any) -> MemoryAnswer:
        """Find memories by their words; see :meth:`smara.search.memories.MemorySearch.search`."""
        return self._memory_search.search(query, limit, **filters)

    def search_observations(self, query: str, limit: int = 10, *, thread_id: str | None = None) -> list[ObservationHit]:
        """Find observations and reflections by their words, also those that were condensed since."""
        return self._observation_search.search(query, limit, thread_id=thread_id)

    def complete(self, prefix: str, limit: int = 10) -> list[str]:
        """Words and names of this project that begin with ``prefix``."""
        return self._search.complete(prefix, limit)

    def status(self) -> dict[str, Any]:
        """What is remembered in this project, and what the store is."""
        totals = self.tasks.totals()
        tasks = {
            "open": totals.open, "inProgress": totals.in_progress, "closed": totals.closed, "ready": totals.ready,
            "blocked": totals.blocked,
        }  # fmt: skip
        return {
            "project": self.project, **self.threads.totals(), "tasks": tasks,
            "observations": self._observation_totals(), "memories": self._memory_totals(),
            "models": self.models.status(), "store": self.database.facts(),
        }  # fmt: skip

    def _observation_totals(self) -> dict[str, int]:
        from smara.observations.store import ObservationStore  # the room itself would load all that observes

        with self.database.read() as session:
            store = ObservationStore(self.database, self.scope)
            total, active, generations = store.totals(session)
            waiting, given_up = store.troubles(session)
        return {
            "total": total, "active": active, "generations": generations, "threadsWaiting": waiting,
            "givenUp": given_up,
        }  # fmt: skip

    def _memory_totals(self) -> dict[str, int]:
        from smara.knowledge.store import KnowledgeStore  # the room itself would load all that learns

        with self.database.read() as session:
            totals = KnowledgeStore(self.database, self.scope).totals(session)
        return {"total": totals.total, "active": totals.active, "toReview": totals.to_review}

    def compact(self, thread_id: str, keep: int = 0, *, is_when_due: bool = False) -> CompactedThread:
        """Show a thread's old messages as what was observed of them; see :mod:`smara.observations.compacting`."""
        from smara.observations.compacting import compact_thread

        return compact_thread(self.compactions, self.observations, self.messages, thread_id, keep, is_when_due)

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
        other = Memory(
            self.database, scope, settings, self._clock, self._new_id, self._counter, self._summarizer,
            self._chat_model, self._extractors, self._rerank_model, self._embedding_model,
        )  # fmt: skip
        other.__dict__["_outages"] = self._outages  # the model is the same one
        other.__dict__["_fillings"] = self._fillings  # whichever is closed, nothing goes on in the background
        return other

    def close(self) -> None:
        """Close the database; safe to call twice."""
        with self._closing:
            if "_observing" in self.__dict__:
                self._observing[2].close()
            for filling in self._fillings:
                filling.close()
            self.database.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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

    ``path_or_url`` is a SQLite file, ``":memory:"``, or a PostgreSQL URL; without it, the
    store named by ``SMARA_DB``, or the per-user store. ``project`` is the wall to stay
    behind: a store that is named starts in ``default``, the per-user store in the git
    repository around the current folder; ``"auto"`` asks for the latter anywhere. ``chat_model``
    thinks in the place of the one that the setting ``model`` names; ``extractors`` are values of your
    own that it takes out of the messages; ``rerank_model`` judges hits in the place of the one that the setting
    ``reranker`` names, ``embedding_model`` turns text into vectors in the place of ``embedder``.
    ``check_index`` looks at the search index and mends it where that is quick.
    """
    given = os.fspath(path_or_url) if path_or_url is not None else None
    chosen = load_settings(db=given, project=project, **settings)
    clock = clock or SystemClock()
    new_id = new_id or Uuid7(clock)
    log.set_redactor(_redacted)
    database = open_database(chosen, vfs)
    try:
        migrate(database, clock)
        memory = Memory(
            database, _scope(Projects(database, clock, new_id), chosen), chosen, clock, new_id,
            counter_for(chosen.token_model), summarizer, chat_model, extractors, rerank_model, embedding_model,
        )  # fmt: skip
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
        vfs,
    )


def _redacted(line: str) -> str:
    from smara.secrets import redact

    return redact(line).text


def _scope(projects: Projects, settings: Settings) -> Scope:
    name = settings.project or (AUTO_PROJECT if settings.db is None else DEFAULT_PROJECT)
    if name != AUTO_PROJECT:
        return projects.named(name)
    repository = find_repository(os.getcwd())
    return projects.of_repository(repository) if repository else projects.named(DEFAULT_PROJECT)
