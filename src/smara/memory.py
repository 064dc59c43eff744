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
    from smara.links.links import Links
    from smara.messages.compaction import Compactions
    from smara.messages.history import History
    from smara.messages.messages import Messages
    from smara.messages.summarize import Summarizer
    from smara.messages.threads import Threads
    from smara.models.caller import Models
    from smara.models.chat import ChatModel
    from smara.observations.background import Background
    from smara.observations.models import Extractor
    from smara.observations.observations import Observations
    from smara.observations.worker import Worker
    from smara.search.index import Index
    from smara.search.models import Answer, ObservationHit, TaskAnswer, ThreadHit
    from smara.search.observations import ObservationSearch
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
        extractors: Sequence[Extractor] = (),
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

        settings = self.settings
        rules = CompactionRules(
            settings.compact_after_messages, settings.archive_after_messages, settings.compact_run_messages
        )
        summarizer = self._summarizer or OfflineSummarizer()
        return Compactions(self._store, summarizer, self._clock, self._new_id, rules)

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
    def observations(self) -> Observations:
        """What was noticed in conversations."""
        return self._observing[0]

    @cached_property
    def worker(self) -> Worker:
        """Observes the threads that nobody is talking in."""
        return self._observing[1]

    @cached_property
    def _observing(self) -> tuple[Observations, Worker, Background]:
        from smara.observations.wiring import Parts, make_observations

        return make_observations(
            Parts(
                self.database, self.scope, self._store, self.threads, self.leases, self.models, self._clock,
                self._new_id, self._counter, self.settings, self._timezone, self._extractors,
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
            self._chat_model,
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
    def _search(self) -> Search:
        from smara.search.search import Search

        return Search(self._store, self._clock, self.settings)

    @cached_property
    def _task_search(self) -> TaskSearch:
        from smara.search.tasks import TaskSearch

        return TaskSearch(self._turns.store, self._store, self._search, self.settings.search_deadline_seconds)

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
        """Find messages by words, names, paths and phrases; see :meth:`smara.search.search.Search.search`."""
        return self._search.search(query, limit, **filters)

    def search_threads(self, query: str, limit: int = 10, **filters: Any) -> list[ThreadHit]:
        """Find conversations: threads ranked by everything in them that answers the query."""
        return self._search.search_threads(query, limit, **filters)

    def search_tasks(self, query: str, limit: int = 3, **filters: Any) -> TaskAnswer:
        """Find tasks by words of their titles and descriptions; see :meth:`smara.search.tasks.TaskSearch.search`."""
        return self._task_search.search(query, limit, **filters)

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
            "observations": self._observation_totals(), "models": self.models.status(),
            "store": self.database.facts(),
        }  # fmt: skip

    def _observation_totals(self) -> dict[str, int]:
        from smara.observations.store import ObservationStore  # the room itself would load all that observes

        with self.database.read() as session:
            total, active, generations = ObservationStore(self.database, self.scope).totals(session)
        return {"total": total, "active": active, "generations": generations}

    def integrity(self) -> list[str]:
        """What is wrong with the store's file; empty when nothing is. Reads all of it."""
        return self.database.integrity()

    def shrink_log(self) -> bool:
        """Move SQLite's write-ahead log into the file; ``False`` while a reader holds it."""
        return self.database.shrink_log()

    def with_settings(self, **changes: Any) -> Memory:
        """The same store under other settings; closing either of the two closes both."""
        return Memory(
            self.database, self.scope, replace(self.settings, **changes), self._clock, self._new_id, self._counter,
            self._summarizer, self._chat_model, self._extractors,
        )  # fmt: skip

    def close(self) -> None:
        """Close the database; safe to call twice."""
        with self._closing:
            if "_observing" in self.__dict__:
                self._observing[2].close()
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
    own that it takes out of the messages. ``check_index`` looks at the
    search index and mends it where that is quick.
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
            counter_for(chosen.token_model), summarizer, chat_model, extractors,
        )  # fmt: skip
        if check_index:
            memory.index.check_at_open()
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
