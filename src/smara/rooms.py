"""The rooms of a memory and how they are wired together. No logic of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from smara.core.git import find_repository
from smara.database.projects import ProjectContext, Projects
from smara.messages.store import MessageStore

if TYPE_CHECKING:
    from smara.behavior.behavior import Behavior
    from smara.codegraph.anchors.anchors import Anchors
    from smara.codegraph.graph import CodeGraph
    from smara.context.moments.moments import Moments
    from smara.context.moments.start import RecentWork
    from smara.context.processors import Processors
    from smara.core.freshness import Freshness
    from smara.database.database import Session
    from smara.database.leases import Leases
    from smara.intake.intake import Intake
    from smara.knowledge.memories import Memories
    from smara.links.code import CodeKnowledge, CodeUpkeep
    from smara.links.links import Links
    from smara.meaning.background import BackgroundEmbedding
    from smara.meaning.embeddings import Embeddings
    from smara.meaning.query import Meaning
    from smara.meaning.room import MeaningRoom
    from smara.messages.compaction import Compactions
    from smara.messages.messages import History, Messages
    from smara.messages.summarize import Summarizer
    from smara.messages.threads import Threads
    from smara.models.caller import Models
    from smara.models.chat import ChatModel
    from smara.models.embedder import Embedder
    from smara.models.reranker import Reranker
    from smara.observations.background import Background
    from smara.observations.models import Extractor
    from smara.observations.observations import Observations
    from smara.observations.retries import OutageGate
    from smara.observations.worker import Worker
    from smara.search.code import CodeTrees
    from smara.search.index import Index
    from smara.search.locate import CodeLocator
    from smara.search.patterns import PatternSearch
    from smara.search.record_search import MemorySearch, ObservationSearch, TaskSearch
    from smara.search.search import Search
    from smara.tasks.tasks import Tasks
    from smara.tasks.transaction import TaskTransactions
    from smara.working.working import Working

_ANCHORED_A_ROUND = 200


@dataclass(frozen=True, slots=True)
class Overrides:
    """Parts that the caller supplies in place of those the settings name."""

    summarizer: Summarizer | None = None
    chat_model: ChatModel | None = None
    extractors: Sequence[Extractor] = ()
    rerank_model: Reranker | None = None
    embedding_model: Embedder | None = None


class Rooms:
    """The rooms of one project, each with what it needs of the others."""

    def __init__(self, project: ProjectContext, overrides: Overrides) -> None:
        self._project = project
        self._overrides = overrides
        self.database = project.database
        self.scope = project.scope
        self.settings = project.settings
        self._store = MessageStore(project.database, project.scope)
        self._closing = threading.Lock()

    # Each room is loaded when it is first used: a search should not pay for what writes.

    @cached_property
    def threads(self) -> Threads:
        """Conversations."""
        from smara.messages.threads import Threads

        return Threads(self._project, self._store)

    @cached_property
    def messages(self) -> Messages:
        """What was said."""
        from smara.messages.append import Appender
        from smara.messages.messages import Messages

        return Messages(
            self._project,
            self._store,
            self.threads,
            appender=Appender(self._store, self._project.new_id, self._active_task),
            compactions=self.compactions,
        )

    @cached_property
    def compactions(self) -> Compactions:
        """Summaries that are shown in the place of old messages."""
        from smara.messages.compaction import Compactions
        from smara.messages.summarize import OfflineSummarizer
        from smara.observations.summarizer import ObservedSummarizer

        summarizer = self._overrides.summarizer or ObservedSummarizer(
            self.database, self.scope, OfflineSummarizer(), timezone=self._project.timezone
        )
        return Compactions(self._project, self._store, summarizer)

    @cached_property
    def history(self) -> History:
        """Windows over threads, for showing to a model."""
        from smara.messages.messages import History

        return History(self.messages, self._project.counter)

    @cached_property
    def tasks(self) -> Tasks:
        """What is to be done."""
        from smara.links.links import linked_message_ids
        from smara.tasks.tasks import Tasks

        linked = partial(linked_message_ids, self._turns.store)
        return Tasks(self.settings, self._turns, linked)

    @cached_property
    def memories(self) -> Memories:
        """What is known: typed statements with evidence and trust."""
        from smara.links.code import MemoryCode
        from smara.links.provenance import TreeFiles, make_memories

        return make_memories(
            self._project,
            self._store,
            find_meaning=lambda: self._meaning,
            code=MemoryCode(self._anchors),
            files=TreeFiles(self._code_root),
        )

    @cached_property
    def _anchors(self) -> Anchors:
        from smara.codegraph.anchors.anchors import make_anchors

        return make_anchors(self._project, self._code_root, lambda: self.code)

    def _judge_code(
        self, session: Session, owner: Literal["memory", "observation"], numbers: Sequence[int]
    ) -> Mapping[int, Freshness]:
        """How records stand to the code they name; loaded when the first of them is shown."""
        return self._anchors.judge(session, owner, numbers)

    def _code_root(self) -> str | None:
        """The folder whose code is meant: the repository around the one we are in."""
        found = find_repository(os.getcwd())
        return found.root if found is not None else None

    @cached_property
    def upkeep(self) -> CodeUpkeep:
        """Keeps what is remembered and the code it names together."""
        from smara.links.code import CodeUpkeep

        return CodeUpkeep(
            self._anchors, self.database, self.scope, find_memories=lambda: self.memories
        )

    @cached_property
    def code(self) -> CodeGraph:
        """What the code is: indexed, kept up to date, asked about."""
        from smara.codegraph.graph import CodeGraph

        graph = CodeGraph(
            self._project, on_indexed=lambda root, paths: self.upkeep.indexed(root, paths)
        )
        graph.locator = self._locator
        return graph

    def _locator(self, tree_no: int) -> CodeLocator:
        from smara.search.locate import CodeLocator

        return CodeLocator(
            self._code_trees,
            tree_no,
            self._store.is_alone,
            seconds=self.settings.search_deadline_seconds,
        )

    @cached_property
    def _code_trees(self) -> CodeTrees:
        from smara.search.code import CodeTrees

        return CodeTrees(self.database, self.scope, self._code_root)

    @cached_property
    def code_knowledge(self) -> CodeKnowledge:
        """What is known about the code: memories as nodes that are linked to it."""
        from smara.knowledge.store import KnowledgeStore
        from smara.links.code import CodeKnowledge

        return CodeKnowledge(lambda: self._anchors, KnowledgeStore(self.database, self.scope))

    @cached_property
    def behavior(self) -> Behavior:
        """What habits show: events of agents, the signals in them, and what is learned from
        these.
        """
        from smara.behavior.behavior import Behavior
        from smara.behavior.store import BehaviorStore

        return Behavior(
            BehaviorStore(self.database, self.scope),
            self.memories,
            self._project.clock,
            new_id=self._project.new_id,
            counter=self._project.counter,
            models=lambda: self.models,
            deadline_seconds=self.settings.model_deadline_seconds,
            evict=self._evict_vectors,
        )

    def _evict_vectors(self) -> int:
        """Drop cached vectors that have expired; without an embedder there are none."""
        return 0 if self.settings.embedder == "off" else self.embeddings.evict_cache()

    @cached_property
    def observations(self) -> Observations:
        """What was noticed in conversations."""
        return self._observing[0]

    @cached_property
    def worker(self) -> Worker:
        """Observes the threads that nobody is talking in."""
        return self._observing[1]

    @cached_property
    def _outages(self) -> OutageGate:
        from smara.observations.retries import OutageGate

        return OutageGate()

    @cached_property
    def _observing(self) -> tuple[Observations, Worker, Background]:
        from smara.observations.factory import ObservationParts, make_observations

        return make_observations(
            ObservationParts(
                self.database,
                self.scope,
                self._store,
                self.threads,
                self.leases,
                self.models,
                self._project.clock,
                self._project.new_id,
                self._project.counter,
                self.settings,
                self._project.timezone,
                self._overrides.extractors,
                self._embed_a_while,
                self._outages,
                lambda: self.behavior.run_due().total,
                lambda session, numbers: self._judge_code(session, "observation", numbers),
            )
        )

    @cached_property
    def context(self) -> Processors:
        """What an agent gets, step by step."""
        from smara.context.processors import ContextSettings, Processors

        return Processors(
            self.messages,
            self.threads,
            self.observations,
            working=self.working,
            counter=self._project.counter,
            clock=self._project.clock,
            settings=ContextSettings.of(self._project),
        )

    @cached_property
    def moments(self) -> Moments:
        """What agents are told unasked, when, and what came of it."""
        from smara.behavior.habits import Habits
        from smara.behavior.store import BehaviorStore
        from smara.context.moments.moments import MomentParts, Moments, MomentSettings
        from smara.context.moments.store import MomentStore

        return Moments(
            MomentParts(
                MomentStore(self.database, self.scope),
                self._project.clock,
                self._project.new_id,
                lambda: self.memories,
                lambda: self.behavior,
                lambda: Habits(BehaviorStore(self.database, self.scope)),
                self._lately,
                lambda: self.tasks,
                self._answering_memory,
                self._code_root,
                self._project.actor,
                MomentSettings.of(self.settings),
            )
        )

    def _lately(self) -> RecentWork:
        from smara.behavior.store import BehaviorStore
        from smara.context.moments.start import RecentRooms as Around
        from smara.context.moments.start import RecentWork
        from smara.observations.store import ObservationStore

        return RecentWork(
            Around(
                lambda: self.threads,
                self._store,
                lambda: self.tasks,
                working=lambda: self.working,
                behavior=BehaviorStore(self.database, self.scope),
                observations=ObservationStore(self.database, self.scope),
            )
        )

    def _answering_memory(self, pattern: str) -> str | None:
        found = self._pattern_search.find(pattern)
        return found.id if found is not None else None

    @cached_property
    def links(self) -> Links:
        """Where tasks and messages meet."""
        from smara.links.links import Links

        return Links(self.tasks, self._turns, self.threads, messages=self._store)

    @cached_property
    def _turns(self) -> TaskTransactions:
        from smara.tasks.transaction import TaskTransactions

        return TaskTransactions(self._project)

    def _active_task(
        self, session: Session, metadata: str, session_id: str | None, now_ms: int
    ) -> str | None:
        # A thread without a task should not even load what knows about tasks.
        if "activeTaskId" not in metadata:
            return None
        from smara.links.links import ActiveTask

        return ActiveTask(self._turns.store).of(
            session, metadata, session_id or self.settings.session, now_ms
        )

    @cached_property
    def working(self) -> Working:
        """What is held in mind."""
        from smara.working.working import Working

        def resource_of(thread_id: str) -> str | None:
            thread = self.threads.find(thread_id)
            return thread.resource_id if thread else None

        return Working(self._project, resource_of)

    @cached_property
    def models(self) -> Models:
        """What thinks, within its budget."""
        from smara.models.caller import Models

        return Models(
            self._project,
            redact=redacted,
            model=self._overrides.chat_model,
            reranker=self._overrides.rerank_model,
            embedder=self._overrides.embedding_model,
        )

    @cached_property
    def index(self) -> Index:
        """The search index, to be looked after."""
        from smara.search.index import Index

        return Index(self._store)

    @cached_property
    def leases(self) -> Leases:
        """The right to do a piece of work, granted to one at a time."""
        return self._project.leases

    @cached_property
    def intake(self) -> Intake:
        """What hosts told, taken in exactly once."""
        from smara.intake.intake import Intake, IntakeStore

        return Intake(IntakeStore(self.database, self.scope), self._project.clock, self.leases)

    @cached_property
    def projects(self) -> Projects:
        """The projects of this store."""
        return Projects(self.database, self._project.clock, self._project.new_id)

    @cached_property
    def embeddings(self) -> Embeddings:
        """The vectors of what is remembered: how they stand, making them, changing the model."""
        return self._vectors.embeddings

    @cached_property
    def _meaning(self) -> Meaning | None:
        return None if self.settings.embedder == "off" else self._vectors.meaning

    @cached_property
    def _vectors(self) -> MeaningRoom:
        from smara.meaning.room import MeaningParts, MeaningRoom

        return MeaningRoom(
            MeaningParts(
                self.database,
                self.scope,
                lambda: self.leases,
                self._project.clock,
                self._project.new_id,
                self.settings.embedder,
                self._open_embedder,
                self.settings.embed_query_seconds,
                self._overrides.embedding_model is not None,
                (lambda: self._filling.wake()) if self._fills_itself else None,
            )
        )

    def _embed_a_while(self) -> int:
        """A worker's share of the vectors in one round; it should not keep threads waiting."""
        self.upkeep.anchor_pending(_ANCHORED_A_ROUND)
        return (
            0
            if self.settings.embedder == "off"
            else self.embeddings.embed_pending(deadline_seconds=30.0).embedded
        )

    @property
    def _fills_itself(self) -> bool:
        return self.settings.embed_in_background and self.settings.embedder != "off"

    @cached_property
    def _filling(self) -> BackgroundEmbedding:
        from smara.meaning.background import BackgroundEmbedding

        filling = BackgroundEmbedding(lambda stop: self.embeddings.embed_pending(stop=stop))
        self._fillings.append(filling)
        return filling

    @cached_property
    def _fillings(self) -> list[BackgroundEmbedding]:
        return []

    def start(self) -> None:
        """Make vectors of what is written from now on, in the background, where that is wanted."""
        if self._fills_itself:
            self.database.on_write = lambda: self._filling.wake()

    def _open_embedder(self, setting: str) -> Embedder | None:
        # Most stores use the one that needs no server: they should not load what talks to models.
        if setting == "offline" and self._overrides.embedding_model is None:
            from smara.models.embedders.offline import OfflineEmbedder

            return OfflineEmbedder()
        return self.models.open_embedder(setting)

    @cached_property
    def _search(self) -> Search:
        from smara.search.search import Search, SearchParts, record_finders

        def imagine(query: str, deadline_seconds: float) -> str | None:
            from smara.search.hyde import hypothetical

            return hypothetical(self.models, query, deadline_seconds)

        meaning = self._meaning
        finders = record_finders(
            self.database,
            self.scope,
            self._project.clock,
            meaning=meaning,
            find_trees=lambda: self._code_trees,
            freshness=self._judge_code,
        )
        return Search(
            SearchParts(
                self._store,
                self._project.clock,
                self.settings,
                timezone=self._project.timezone,
                meaning=meaning,
                finders=finders,
                reranker=self._reranker,
                imagine=imagine,
                code_note=lambda session, is_asked_for: self._code_trees.note(
                    session, is_asked_for
                ),
            )
        )

    @cached_property
    def _pattern_search(self) -> PatternSearch:
        from smara.knowledge.store import KnowledgeStore
        from smara.search.patterns import PatternSearch
        from smara.search.records import MemorySource

        source = MemorySource(
            KnowledgeStore(self.database, self.scope), self._project.clock, self._judge_code
        )
        return PatternSearch(
            self._store,
            self.database.records,
            source,
            deadline_seconds=self.settings.search_deadline_seconds,
        )

    def _reranker(self) -> Reranker | None:
        # Most stores rank by features alone: they should not load what talks to models.
        is_plain = (
            self.settings.reranker in ("features", "off") and self._overrides.rerank_model is None
        )
        return None if is_plain else self.models.reranker

    @cached_property
    def _task_search(self) -> TaskSearch:
        from smara.search.record_search import TaskSearch

        return TaskSearch(
            self._turns.store,
            self._store,
            self._search,
            deadline_seconds=self.settings.search_deadline_seconds,
        )

    @cached_property
    def _memory_search(self) -> MemorySearch:
        from smara.knowledge.store import KnowledgeStore
        from smara.search.record_search import MemorySearch

        store = KnowledgeStore(self.database, self.scope)
        deadline = self.settings.search_deadline_seconds
        return MemorySearch(
            store,
            self._store,
            self._project.clock,
            deadline_seconds=deadline,
            freshness=self._judge_code,
        )

    @cached_property
    def _observation_search(self) -> ObservationSearch:
        from smara.observations.store import ObservationStore
        from smara.search.record_search import ObservationSearch

        store = ObservationStore(self.database, self.scope)
        return ObservationSearch(store, self._store, self.settings.search_deadline_seconds)


def redacted(line: str) -> str:
    from smara.secrets import redact

    return redact(line).text
