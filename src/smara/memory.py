"""Open a memory: its rooms and the search over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from smara.config import Settings, default_store, load_settings
from smara.core import log
from smara.core.clock import Clock, SystemClock
from smara.core.ids import IdMaker, Uuid7
from smara.core.scope import DEFAULT_PROJECT, set_id_cleaner
from smara.core.tokens import counter_for
from smara.database.database import Database
from smara.database.migrate import migrate
from smara.database.projects import ProjectContext, Projects
from smara.environment import store_file
from smara.rooms import Overrides, Rooms, redacted
from smara.secrets.redact import clean_id

if TYPE_CHECKING:
    from datetime import datetime

    from smara.knowledge.models import State, TrustTier
    from smara.messages.compaction import Summarizer
    from smara.models.chat import ChatModel
    from smara.models.embedder import Embedder
    from smara.models.reranker import Reranker
    from smara.observations.models import Extractor
    from smara.observations.observations import CompactedThread
    from smara.privacy.models import CopyReport
    from smara.search.models import (
        Answer,
        Hit,
        MemoryAnswer,
        ObservationAnswer,
        PackedAnswer,
        TaskAnswer,
        ThreadAnswer,
    )

T = TypeVar("T")


class Room(Generic[T]):
    """An attribute that is a room, built at first use."""

    def __init__(self, room: Callable[[Rooms], T], doc: str) -> None:
        self.room: Any = room  # a cached property of `Rooms`, which has its function's type
        self.__doc__ = doc

    def __get__(self, memory: Memory | None, owner: type) -> T:
        room: Any = self if memory is None else self.room.__get__(memory._rooms)
        return room  # type: ignore[no-any-return]  # the property's annotation says it


class Memory:
    """One memory: a project's threads and messages, and the search over them.

    A context manager. Safe to use from several threads; many processes may open the same
    store at once.
    """

    threads = Room(Rooms.threads, "Conversations.")
    messages = Room(Rooms.messages, "What was said.")
    compactions = Room(Rooms.compactions, "Summaries that are shown in place of old messages.")
    history = Room(Rooms.history, "Windows over threads, to show to a model.")
    tasks = Room(Rooms.tasks, "What is to be done, with dependencies and claims.")
    working = Room(Rooms.working, "Working memory: small pages that are always shown.")
    decisions = Room(Rooms.decisions, "Decisions: what people settled in their sessions.")
    commits = Room(Rooms.commits, "Commits: every change of the history, with its reason.")
    memories = Room(Rooms.memories, "What is known: typed statements with evidence and trust.")
    observations = Room(Rooms.observations, "What was noticed in conversations.")
    behavior = Room(Rooms.behavior, "What agents do, the signals in it, and what it teaches.")
    code = Room(Rooms.code, "What the code is: indexed, kept up to date, queried.")
    code_knowledge = Room(Rooms.code_knowledge, "Memories as nodes that are linked to the code.")
    frameworks = Room(Rooms.frameworks, "What agent frameworks keep, as they handed it over.")
    links = Room(Rooms.links, "Where tasks and messages meet.")
    context = Room(Rooms.context, "What an agent gets, step by step.")
    moments = Room(Rooms.moments, "What agents are told unasked, when, and what came of it.")
    embeddings = Room(Rooms.embeddings, "The vectors: their state, making them, changing models.")
    models = Room(Rooms.models, "Language models, within their budget.")
    privacy = Room(Rooms.privacy, "Yours to take along: backup, export and import.")
    retention = Room(Rooms.retention, "How long each kind of record is kept.")
    browse = Room(Rooms.browse, "What people look at: counts, coverage, windows and answers.")
    jobs = Room(Rooms.jobs, "Work in the background: imports, and rounds of the worker.")
    feed = Room(Rooms.feed, "What happened, in order, for those who follow along.")
    transcripts = Room(Rooms.transcripts, "Where texts are kept: here, or in transcripts alone.")
    projects = Room(Rooms.projects, "The projects of this store.")
    worker = Room(Rooms.worker, "Observes the idle threads of this project.")

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    @property
    def project(self) -> str:
        """The name of the project this memory works in."""
        return self._rooms.scope.project_id

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._rooms.settings

    @property
    def path(self) -> str | None:
        """The file of the store; ``None`` for a server."""
        return getattr(self._rooms.database, "path", None)

    @property
    def internals(self) -> Rooms:
        """The wiring of the rooms, for the doors alone."""
        return self._rooms

    @property
    def used_rooms(self) -> frozenset[str]:
        """The names of the rooms that were used so far."""
        return frozenset(vars(self._rooms))

    @property
    def warnings(self) -> list[str]:
        """The warnings about this store."""
        return self._rooms.database.warnings

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        sources: Collection[str] | None = None,
        thread_id: str | None = None,
        resource_id: str | None = None,
        role: str | Collection[str] | None = None,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        task_id: str | None = None,
        neighbors: int = 0,
        phase: str | None = None,
        recent_tools: Sequence[str] = (),
        files: Sequence[str] = (),
        min_score: float | None = None,
        deep: bool = False,
        may_imagine: bool = False,
    ) -> Answer:
        """Find anything that is remembered, by words and meaning, best first.

        Any text is a query: words, questions, names, paths, parts of names; ``"words in quotes"``
        stand together. No query can hang: it is bounded in terms, rows and time, and an answer
        that was cut short says so.

        Args:
            query: What to look for.
            limit: The most hits to return, from 1 to 1,000.
            sources: Where to look: any of ``messages``, ``observations``, ``memories``,
                ``tasks``, ``working``, ``code``, ``commits``, ``items``. Without it, code is
                searched only if the query names code or nothing else answers.
            thread_id: Only what belongs to this thread.
            resource_id: Only what belongs to this resource.
            role: Only messages of this role or these roles.
            since: Only what is not older: milliseconds, an ISO 8601 text or a datetime.
            until: Only what is not newer, in the same forms.
            task_id: Only what belongs to this task.
            neighbors: How many messages before and after each hit to return, at most 2.
            phase: What the agent is doing, such as ``define`` or ``refine``; ranks what helps then.
            recent_tools: The tools it used last.
            files: The files it works on.
            min_score: Only hits of this score or more; 0 for all that was ranked.
            deep: Wait for an embedder that is not loaded yet.
            may_imagine: Let a model write what an answer might say if little was found.

        Returns:
            The hits with their reasons, a count of all matches, a trace and warnings.

        Raises:
            InvalidInputError: If an argument is not of its kind or outside its range.
        """
        return self._rooms.search.search(
            query,
            limit,
            sources=sources,
            thread_id=thread_id,
            resource_id=resource_id,
            role=role,
            since=since,
            until=until,
            task_id=task_id,
            neighbors=neighbors,
            phase=phase,
            recent_tools=recent_tools,
            files=files,
            min_score=min_score,
            deep=deep,
            may_imagine=may_imagine,
        )

    def search_threads(
        self,
        query: str,
        limit: int = 10,
        *,
        resource_id: str | None = None,
        role: str | Collection[str] | None = None,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        min_score: float | None = None,
        deep: bool = False,
    ) -> ThreadAnswer:
        """Find conversations, each ranked by everything in it that answers the query.

        Args:
            query: What to look for.
            limit: The most threads to return.
            resource_id: Only threads of this resource.
            role: Only messages of this role or these roles count.
            since: Only messages that are not older count.
            until: Only messages that are not newer count.
            min_score: Only hits of this score or more; 0 for all that was ranked.
            deep: Wait for an embedder that is not loaded yet.

        Returns:
            Threads, best first; ``nearest`` if none is relevant enough.

        Raises:
            InvalidInputError: If an argument is not of its kind or outside its range.
        """
        return self._rooms.search.search_threads(
            query,
            limit,
            resource_id=resource_id,
            role=role,
            since=since,
            until=until,
            min_score=min_score,
            deep=deep,
        )

    def search_tasks(
        self,
        query: str,
        limit: int = 3,
        *,
        offset: int = 0,
        status: str | None = None,
        include_messages: bool = False,
    ) -> TaskAnswer:
        """Find tasks by words of their titles and descriptions, best first.

        Args:
            query: What to look for; an id finds its task.
            limit: The most tasks to return.
            offset: How many of the best to skip.
            status: Only tasks of this status.
            include_messages: Return the newest messages of each task too, and what was said
                about the query anywhere.

        Returns:
            The tasks, a count of all matches, and the messages if they were asked for.

        Raises:
            InvalidInputError: If an argument is not of its kind or outside its range.
        """
        return self._rooms.task_search.search(
            query, limit, offset=offset, status=status, include_messages=include_messages
        )

    def search_memories(
        self,
        query: str,
        limit: int = 10,
        *,
        offset: int = 0,
        types: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        modules: Sequence[str] | None = None,
        min_confidence: float = 0.0,
        min_tier: TrustTier | None = None,
        state: State = "active",
    ) -> MemoryAnswer:
        """Find memories by their words, best first.

        Args:
            query: What to look for; an id finds its memory.
            limit: The most memories to return.
            offset: How many of the best to skip.
            types: Only memories of these types.
            files: Only memories that name any of these files.
            tags: Only memories that have any of these tags.
            modules: Only memories of any of these modules.
            min_confidence: Only memories that are at least so sure, from 0 to 1.
            min_tier: Only memories that are trusted at least so far.
            state: ``active``, or a state that includes what was superseded.

        Returns:
            The memories, a count of all matches, and warnings.

        Raises:
            InvalidInputError: If an argument is not of its kind or outside its range.
        """
        return self._rooms.memory_search.search(
            query,
            limit,
            offset=offset,
            types=types,
            files=files,
            tags=tags,
            modules=modules,
            min_confidence=min_confidence,
            min_tier=min_tier,
            state=state,
        )

    def search_observations(
        self, query: str, limit: int = 10, *, thread_id: str | None = None
    ) -> ObservationAnswer:
        """Find observations and reflections by their words, condensed ones too.

        Args:
            query: What to look for.
            limit: The most to return.
            thread_id: Only observations of this thread.

        Returns:
            Observations, best first; ``nearest`` if none is relevant enough.

        Raises:
            InvalidInputError: If an argument is not of its kind or outside its range.
        """
        return self._rooms.observation_search.search(query, limit, thread_id=thread_id)

    def search_pattern(self, pattern: str) -> Hit | None:
        """Return what is known of a pattern about to be searched.

        Args:
            pattern: What the agent would search the files for.

        Returns:
            The newest trusted memory that has every word of it, or ``None``.
        """
        return self._rooms.pattern_search.find(pattern)

    def complete(self, prefix: str, limit: int = 10) -> list[str]:
        """Return words and names of this project that begin with a prefix.

        Args:
            prefix: How they begin.
            limit: The most to return.

        Returns:
            Words, the most frequent first.
        """
        return self._rooms.search.complete(prefix, limit)

    def pack(
        self,
        answer: Answer,
        budget_tokens: int | None = None,
        *,
        phase: str | None = None,
        is_unasked: bool = False,
    ) -> PackedAnswer:
        """Pack an answer into one cited text within a budget.

        Args:
            answer: What a search returned; without hits, what is nearest is packed and named so.
            budget_tokens: The most tokens; the budget of the phase, or 2,000, without it.
            phase: What the agent is doing; it sets the shares of the sources.
            is_unasked: Leave out what is not trusted, however well it answers.

        Returns:
            The text, its tokens, and which hits are in it.

        Raises:
            InvalidInputError: If the budget is too small or the phase unknown.
        """
        from smara.search.pack import pack

        return pack(
            answer.hits,
            self._rooms.project.counter,
            budget_tokens,
            phase=phase,
            is_unasked=is_unasked,
            around=self._rooms.search.messages.around,
            nearest=answer.nearest,
        )

    def status(self) -> dict[str, Any]:
        """Return what this project remembers, and the store's facts.

        Returns:
            Totals by room, the state of the models, and facts of the store; ready for JSON.
        """
        # The stores alone: their rooms would load all that observes and learns.
        rooms, tasks = self._rooms, self.tasks.totals()
        observations = rooms.observation_store
        with rooms.database.read() as session:
            total, active, generations = observations.totals(session)
            waiting, given_up = observations.troubles(session)
            memories = rooms.knowledge_store.totals(session)
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
            "retention": [each.as_json() for each in self.retention.list()],
            "keep": self.transcripts.status().as_json(),
            "store": rooms.database.facts(),
        }

    def compact(
        self, thread_id: str, keep: int = 0, *, is_when_due: bool = False
    ) -> CompactedThread:
        """Show a thread's old messages as what was observed of them.

        No message is changed.

        Args:
            thread_id: The thread.
            keep: How many of the newest messages stay as they are.
            is_when_due: Compact only what is old enough by the settings.

        Returns:
            What was observed and what was compacted.

        Raises:
            NotFoundError: If there is no such thread.
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

    def with_settings(self, **changes: Any) -> Memory:
        """Return the same store under other settings; closing either closes both.

        Args:
            **changes: Settings by name.

        Returns:
            Another memory over the same database.
        """
        return Memory(self._rooms.sibling(self._rooms.scope, replace(self._rooms.given, **changes)))

    def in_project(self, project_id: str) -> Memory:
        """Return another project of the same store; closing either closes both.

        Args:
            project_id: Its name; it is created on first use.

        Returns:
            Another memory over the same database.

        Raises:
            InvalidInputError: If the name is not a valid id.
        """
        return Memory(self._rooms.sibling(self.projects.named(project_id), self._rooms.given))

    def close(self) -> None:
        """Close the database; safe to call twice."""
        self._rooms.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *error: object) -> None:
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
    """Open a memory; the store is created on first use.

    Args:
        path_or_url: A SQLite file, ``":memory:"``, or a PostgreSQL URL; without it, the store
            named by ``SMARA_DB``, or the per-user store.
        project: The project to work in. Without it, or with ``"auto"``, the one of the git
            repository around the current folder, or of a folder that was named; ``default``
            elsewhere.
        clock: The clock to read; the machine's without it.
        new_id: Makes ids; UUID version 7 without it.
        summarizer: Summarizes old messages, in place of the observations.
        chat_model: Thinks, in place of the one that the setting ``model`` names.
        extractors: Values of your own that a model takes out of the messages.
        rerank_model: Judges hits, in place of the one that the setting ``reranker`` names.
        embedding_model: Makes vectors, in place of the one that ``embedder`` names.
        vfs: The SQLite virtual file system to use, for tests.
        check_index: Check the search index, and repair it where that is quick.
        **settings: Any setting by name; see :class:`smara.config.Settings`.

    Returns:
        An open memory; use it as a context manager, or close it.

    Raises:
        ConfigError: If a setting is unknown or invalid.
        DatabaseError: If the store cannot be opened, or its schema is too new.
    """
    given = os.fspath(path_or_url) if path_or_url is not None else None
    chosen = load_settings(db=given, project=project, **settings)
    clock = clock or SystemClock()
    new_id = new_id or Uuid7(clock)
    log.set_redactor(redacted)
    set_id_cleaner(clean_id)
    database = open_database(chosen, vfs)
    try:
        migrate(database, clock)
        projects = Projects(database, clock, new_id)
        context = ProjectContext(
            database,
            scope=projects.at(os.getcwd(), chosen.project) or projects.named(DEFAULT_PROJECT),
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
        rooms = Rooms(context, overrides)
        if check_index:
            rooms.index.check_at_open()
        rooms.start()
    except BaseException:
        database.close()
        raise
    return Memory(rooms)


def copy_store(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    projects: Sequence[str] | None = None,
    into: str | None = None,
    clock: Clock | None = None,
) -> CopyReport:
    """Copy a store, or some of its projects, into another.

    A target that has projects is merged with: what is the same is one, of what differs the later
    change is taken, and what cannot be decided stays as it is there and is reported. Twice is the
    same as once, and a copy that was interrupted goes on.

    Args:
        source: A SQLite file or a PostgreSQL URL; it is only read.
        target: A SQLite file or a PostgreSQL URL; a file is created, for its owner alone.
        projects: The projects by name; all by default.
        into: The project of the target to merge a single one into; by default the one of the
            same name or of the same repository.
        clock: The clock to read; the machine's without it.

    Returns:
        What was copied with the checksums of both stores, or what was merged.

    Raises:
        NotFoundError: If there is no such store or project.
        InvalidInputError: If both are one store, or the source needs a migration.
        ConflictError: If the target holds other words under the id of a message.
    """
    from smara.privacy.copy import copy_between

    return copy_between(
        (load_settings(db=os.fspath(source)), load_settings(db=os.fspath(target))),
        open_database,
        open_memory,
        projects=projects,
        into=into,
        clock=clock or SystemClock(),
    )


def open_database(settings: Settings, vfs: str | None = None) -> Database:
    """Open the database that the settings name; it is not migrated yet.

    Args:
        settings: The settings; those of storage are used.
        vfs: The SQLite virtual file system to use, for tests.

    Returns:
        An open database.

    Raises:
        DatabaseError: If the database cannot be opened.
    """
    address = settings.db or str(default_store())
    path = store_file(address)
    if path is None:
        from smara.database.postgres import PostgresDatabase

        replica = settings.replica_url or "", settings.replica_lag_seconds
        return PostgresDatabase(
            address, settings.durability, settings.busy_timeout_seconds, replica=replica
        )
    from smara.database.sqlite import SqliteDatabase

    return SqliteDatabase(path, settings.durability, settings.busy_timeout_seconds, vfs=vfs)
