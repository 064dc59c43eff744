"""Wire a project's rooms, each built on first use."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from smara.core.git import find_repository
from smara.core.startup.record import dataclass, replace
from smara.database.projects import ProjectContext, Projects
from smara.messages.store import MessageStore

if TYPE_CHECKING:
    from smara.actions.intake import Intake
    from smara.behavior.behavior import Behavior
    from smara.browse.browse import Browse
    from smara.codegraph.anchors.anchors import Anchors
    from smara.codegraph.graph import CodeGraph
    from smara.commits.commits import Commits
    from smara.config import Settings
    from smara.context.moments.moments import Moments
    from smara.core.background import Background
    from smara.core.freshness import Freshness
    from smara.core.scope import Scope
    from smara.database.database import Session
    from smara.database.leases import Leases
    from smara.database.probe import SessionProbe
    from smara.decisions.decisions import Decisions
    from smara.feed.feed import Feed
    from smara.frameworks.frameworks import Frameworks
    from smara.jobs.jobs import BackgroundJobs
    from smara.knowledge.memories import Memories
    from smara.knowledge.store import KnowledgeStore
    from smara.links.code import CodeKnowledge, CodeUpkeep
    from smara.links.links import Links
    from smara.meaning.embeddings import Embeddings
    from smara.meaning.query import Meaning
    from smara.meaning.room import BackgroundEmbedding, MeaningRoom
    from smara.messages.compaction import Compactions, Summarizer
    from smara.messages.messages import History, Messages
    from smara.messages.threads import Threads
    from smara.models.caller import Models
    from smara.models.chat import ChatModel
    from smara.models.embedder import Embedder
    from smara.models.reranker import Reranker
    from smara.observations.models import Extractor
    from smara.observations.observations import Observations
    from smara.observations.retries import OutageGate
    from smara.observations.store import ObservationStore
    from smara.observations.worker import StoreWorker, Worker
    from smara.privacy.pointers import Keeper
    from smara.privacy.privacy import Privacy
    from smara.privacy.retention import Retention
    from smara.privacy.transcripts import TranscriptTexts
    from smara.prompt.processors import Processors
    from smara.requests.requests import Requests
    from smara.search.code import CodeTrees
    from smara.search.index import Index
    from smara.search.locate import CodeLocator
    from smara.search.patterns import PatternSearch
    from smara.search.record_search import MemorySearch, ObservationSearch, TaskSearch
    from smara.search.search import Search
    from smara.tasks.change import TaskJournal
    from smara.tasks.tasks import Tasks
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
    """The rooms of one project, wired to each other."""

    def __init__(self, project: ProjectContext, overrides: Overrides) -> None:
        self.project = Projects(project.database, project.clock, project.new_id).settle(project)
        self.overrides = overrides
        self.database = project.database
        self.scope = project.scope
        self.given, self.settings = project.settings, self.project.settings
        self.store = MessageStore(project.database, project.scope)
        self.background_embeddings: list[BackgroundEmbedding] = []
        self._closing = threading.Lock()

    def sibling(self, scope: Scope, settings: Settings) -> Rooms:
        """Return the rooms of another project or settings, same store."""
        other = Rooms(replace(self.project, scope=scope, settings=settings), self.overrides)
        other.outages = self.outages  # the model is the same one
        # Whichever is closed, nothing goes on in the background.
        other.background_embeddings = self.background_embeddings
        return other

    def start(self) -> None:
        """Refuse invalid rules, and start embedding in the background."""
        if self.settings.retention:
            self.retention  # noqa: B018 - what is misspelled there would be kept for ever
        if self.settings.embed_in_background and self.settings.embedder != "off":
            self.database.on_write = lambda: self.vectors.background.wake()

    def close(self) -> None:
        """Stop what works in the background, then close the database."""
        with self._closing:
            if "observing" in self.__dict__:
                self.observing[2].close()
            if "behavior" in self.__dict__:
                self.behavior.close()
            for embedding in self.background_embeddings:
                embedding.close()
            self.database.close()

    @contextmanager
    def probe(self) -> Iterator[SessionProbe]:
        """Open a view that answers single numbers, for precomputed briefs."""
        from smara.database.probe import SessionProbe

        with self.database.read() as session:
            yield SessionProbe(session, self.scope, self.database)

    # Modules are imported inside: a search pays for nothing that writes. `Memory` describes rooms.

    @cached_property
    def threads(self) -> Threads:
        from smara.messages.threads import Threads

        return Threads(self.project, self.store)

    @cached_property
    def messages(self) -> Messages:
        from smara.messages.append import Appender
        from smara.messages.messages import Messages

        return Messages(
            self.project,
            self.reading,
            self.threads,
            appender=Appender(self.store, self.project.new_id, self._active_task),
            compactions=self.compactions,
            withhold=self.keeper.withhold if self.settings.keep == "vectors" else None,
        )

    @cached_property
    def keeper(self) -> Keeper:
        from smara.privacy.pointers import Keeper

        return Keeper(self.project, self.store, lambda: self.embeddings)

    @cached_property
    def reading(self) -> MessageStore:
        has_texts = self.settings.keep == "text" and not self.projects.has_pointers(self.scope)
        return self.store if has_texts else self.keeper.store

    @cached_property
    def compactions(self) -> Compactions:
        from smara.messages.compaction import Compactions, OfflineSummarizer
        from smara.observations.summarizer import ObservedSummarizer

        summarizer = self.overrides.summarizer or ObservedSummarizer(
            self.database, self.scope, OfflineSummarizer(), timezone=self.project.timezone
        )
        return Compactions(self.project, self.store, summarizer)

    @cached_property
    def history(self) -> History:
        from smara.messages.messages import History

        return History(self.messages, self.project.counter)

    @cached_property
    def tasks(self) -> Tasks:
        from smara.links.links import linked_message_ids
        from smara.tasks.tasks import Tasks

        return Tasks(self.task_journal, partial(linked_message_ids, self.task_journal.store))

    @cached_property
    def memories(self) -> Memories:
        from smara.links.code import MemoryCode
        from smara.links.provenance import TreeFiles, make_memories

        return make_memories(
            self.project,
            self.store,
            find_meaning=lambda: self.meaning,
            code=MemoryCode(self.anchors),
            files=TreeFiles(self._code_root),
        )

    @cached_property
    def anchors(self) -> Anchors:
        from smara.codegraph.anchors.anchors import Anchors

        return Anchors(self.project, self._code_root, lambda: self.code)

    def _judge_code(
        self, session: Session, owner: Literal["memory", "observation"], numbers: Sequence[int]
    ) -> Mapping[int, Freshness]:
        # Loaded when the first record is shown that names code.
        return self.anchors.judge(session, owner, numbers)

    def _code_root(self) -> str | None:
        repository = find_repository(os.getcwd())
        return repository.root if repository is not None else None

    @cached_property
    def upkeep(self) -> CodeUpkeep:
        from smara.links.code import CodeUpkeep

        return CodeUpkeep(
            self.anchors, self.database, self.scope, find_memories=lambda: self.memories
        )

    @cached_property
    def code(self) -> CodeGraph:
        from smara.codegraph.graph import CodeGraph

        graph = CodeGraph(
            self.project, on_indexed=lambda root, paths: self.upkeep.indexed(root, paths)
        )
        graph.locator = self._locator
        return graph

    def _locator(self, tree_no: int) -> CodeLocator:
        from smara.search.locate import CodeLocator

        return CodeLocator(
            self.code_trees,
            tree_no,
            self.store.is_alone,
            seconds=self.settings.search_deadline_seconds,
        )

    @cached_property
    def code_trees(self) -> CodeTrees:
        from smara.search.code import CodeTrees

        return CodeTrees(self.database, self.scope, self._code_root)

    @cached_property
    def frameworks(self) -> Frameworks:
        from smara.frameworks.frameworks import Frameworks

        return Frameworks(self.project, self.messages, self.threads)

    @cached_property
    def code_knowledge(self) -> CodeKnowledge:
        from smara.links.code import CodeKnowledge

        return CodeKnowledge(lambda: self.anchors, self.knowledge_store)

    @cached_property
    def commits(self) -> Commits:
        from smara.commits.commits import Commits
        from smara.commits.store import CommitStore

        return Commits(
            CommitStore(self.database, self.scope),
            self._own_root,
            self.project.clock,
            leases=self.leases,
        )

    def _own_root(self) -> str | None:
        """The repository around the current folder, if it is the one of this project."""
        root = self._code_root()
        place = self.projects.at(root, self.settings.project, may_add=False) if root else None
        return root if place == self.scope else None

    @cached_property
    def decisions(self) -> Decisions:
        from smara.decisions.decisions import Decisions
        from smara.decisions.store import DecisionStore
        from smara.links.provenance import Provenance

        return Decisions(
            self.project,
            DecisionStore(self.database, self.scope),
            self.store,
            lambda: self.memories,
            knowledge=self.knowledge_store,
            sources=Provenance(self.store),
            root=self._code_root,
            commits=lambda: self.commits,
            models=lambda: self.models,
        )

    @cached_property
    def knowledge_store(self) -> KnowledgeStore:
        from smara.knowledge.store import KnowledgeStore

        return KnowledgeStore.seen_by(self.project)

    @cached_property
    def observation_store(self) -> ObservationStore:
        from smara.observations.store import ObservationStore

        return ObservationStore(self.database, self.scope)

    @cached_property
    def behavior(self) -> Behavior:
        from smara.behavior.behavior import Behavior
        from smara.behavior.store import BehaviorStore

        return Behavior(
            BehaviorStore(self.database, self.scope),
            self.memories,
            self.project.clock,
            new_id=self.project.new_id,
            counter=self.project.counter,
            models=lambda: self.models,
            deadline_seconds=self.settings.model_deadline_seconds,
            evict=lambda: 0 if self.settings.embedder == "off" else self.embeddings.evict_cache(),
            is_watching=self.settings.keep == "text",
        )

    @cached_property
    def observations(self) -> Observations:
        return self.observing[0]

    @cached_property
    def worker(self) -> Worker:
        return self.observing[1]

    @cached_property
    def workers(self) -> StoreWorker:
        from smara.observations.factory import due_rules
        from smara.observations.worker import StoreWorker

        return StoreWorker(
            self.database,
            self.project.clock,
            due_rules(self.settings),
            worker_of=lambda name: self.sibling(self.projects.named(name), self.given).worker,
        )

    @cached_property
    def outages(self) -> OutageGate:
        from smara.observations.retries import OutageGate

        return OutageGate()

    @cached_property
    def observing(self) -> tuple[Observations, Worker, Background]:
        from smara.observations.factory import make_observations

        return make_observations(
            self.project,
            self.store,
            self.threads,
            models=self.models,
            extractors=self.overrides.extractors,
            embed=self._embed_a_while,
            gate=self.outages,
            learn=lambda: self.behavior.run_due().total + self.retention.run_due(),
            judge_code=lambda session, numbers: self._judge_code(session, "observation", numbers),
            note=lambda done: self.jobs.add("worker", done),
        )

    @cached_property
    def context(self) -> Processors:
        from smara.prompt.processors import ContextSettings, Processors

        return Processors(
            self.messages,
            self.threads,
            self.observations,
            working=self.working,
            counter=self.project.counter,
            clock=self.project.clock,
            settings=ContextSettings.of(self.project),
        )

    @cached_property
    def moments(self) -> Moments:
        from smara.behavior.habits import Habits
        from smara.behavior.store import BehaviorStore
        from smara.context.moments.moments import MomentParts, Moments
        from smara.context.moments.start import RecentWork
        from smara.context.moments.store import MomentStore

        behavior = BehaviorStore(self.database, self.scope)
        recent = RecentWork(
            lambda: self.threads,
            self.store,
            lambda: self.tasks,
            working=lambda: self.working,
            behavior=behavior,
            observations=self.observation_store,
        )
        return Moments(
            MomentParts(
                MomentStore(self.database, self.scope),
                self.project.clock,
                self.project.new_id,
                memories=lambda: self.memories,
                behavior=lambda: self.behavior,
                habits=lambda: Habits(behavior),
                lately=recent,
                tasks=lambda: self.tasks,
                commits=lambda: self.commits,
                decisions=lambda: self.decisions,
                search_pattern=lambda pattern: getattr(
                    self.pattern_search.find(pattern), "id", None
                ),
                root=self._code_root,
                actor=self.project.actor,
                settings=self.settings,
            )
        )

    @cached_property
    def links(self) -> Links:
        from smara.links.links import Links

        return Links(self.tasks, self.task_journal, self.threads, messages=self.reading)

    @cached_property
    def task_journal(self) -> TaskJournal:
        from smara.journal import ChangeJournal
        from smara.tasks.change import TaskChange
        from smara.tasks.store import TaskStore

        return ChangeJournal(self.project, TaskStore(self.database, self.scope), TaskChange)

    def _active_task(
        self, session: Session, metadata: str, session_id: str | None, now_ms: int
    ) -> str | None:
        # A thread without a task should not even load what knows about tasks.
        if "activeTaskId" not in metadata:
            return None
        from smara.links.links import active_task_id

        writer, store = session_id or self.settings.session, self.task_journal.store
        return active_task_id(store, session, metadata, session_id=writer, now_ms=now_ms)

    @cached_property
    def working(self) -> Working:
        from smara.working.working import Working

        return Working(
            self.project,
            lambda thread_id: getattr(self.threads.find(thread_id), "resource_id", None),
        )

    @cached_property
    def models(self) -> Models:
        from smara.models.caller import Models

        return Models(
            self.project,
            redact=redacted,
            model=self.overrides.chat_model,
            reranker=self.overrides.rerank_model,
            embedder=self.overrides.embedding_model,
        )

    @cached_property
    def index(self) -> Index:
        from smara.search.index import Index

        return Index(self.store)

    @cached_property
    def leases(self) -> Leases:
        return self.project.leases

    @cached_property
    def requests(self) -> Requests:
        from smara.requests.requests import Requests

        return Requests(self.project)

    @cached_property
    def browse(self) -> Browse:
        from smara.browse.browse import Browse

        return Browse(self.project, self)

    @cached_property
    def jobs(self) -> BackgroundJobs:
        from smara.jobs.jobs import BackgroundJobs

        return BackgroundJobs(self.project)

    @cached_property
    def feed(self) -> Feed:
        from smara.feed.feed import Feed

        return Feed(self.project)

    @cached_property
    def intake(self) -> Intake:
        from smara.actions.intake import Intake, IntakeStore

        return Intake(IntakeStore(self.database, self.scope), self.project.clock, self.leases)

    @cached_property
    def projects(self) -> Projects:
        return Projects(self.database, self.project.clock, self.project.new_id)

    @cached_property
    def privacy(self) -> Privacy:
        from smara.privacy.foreign.importer import ImportRooms
        from smara.privacy.privacy import Privacy

        return Privacy(
            self.project,
            self.projects,
            self.index,
            rooms=lambda: ImportRooms(self.memories, self.messages, self.threads, self.tasks),
            rooms_of=lambda scope: self.sibling(scope, self.given),
        )

    @cached_property
    def transcripts(self) -> TranscriptTexts:
        from smara.privacy.transcripts import TranscriptTexts

        return TranscriptTexts(self.project, self.keeper, self.privacy.scrub)

    @cached_property
    def retention(self) -> Retention:
        from smara.privacy.retention import Retention

        return Retention(self.project, self.index)

    @cached_property
    def embeddings(self) -> Embeddings:
        return self.vectors.embeddings

    @cached_property
    def meaning(self) -> Meaning | None:
        return None if self.settings.embedder == "off" else self.vectors.meaning

    @cached_property
    def vectors(self) -> MeaningRoom:
        from smara.meaning.room import MeaningRoom

        return MeaningRoom(
            self.project,
            lambda: self.models,
            self.overrides.embedding_model,
            backgrounds=self.background_embeddings,
            messages=lambda: self.reading,
        )

    def _embed_a_while(self) -> int:
        """Anchor and embed a worker's share of one round; return how many were embedded."""
        self.upkeep.anchor_pending(_ANCHORED_A_ROUND)
        if self.settings.embedder == "off":
            return 0
        return self.embeddings.embed_pending(deadline_seconds=30.0).embedded

    @cached_property
    def search(self) -> Search:
        from smara.search.search import Search, record_finders

        def imagine(query: str, deadline_seconds: float) -> str | None:
            from smara.search.hyde import hypothetical

            return hypothetical(self.models, query, deadline_seconds)

        return Search(
            self.project,
            self.reading,
            meaning=self.meaning,
            finders=record_finders(
                self.project,
                meaning=self.meaning,
                find_trees=lambda: self.code_trees,
                freshness=self._judge_code,
            ),
            reranker=self._reranker,
            imagine=imagine,
            code_note=lambda session, is_asked_for: self.code_trees.note(session, is_asked_for),
        )

    @cached_property
    def pattern_search(self) -> PatternSearch:
        from smara.search.patterns import PatternSearch
        from smara.search.records import memory_source

        return PatternSearch(
            self.store,
            self.database.records,
            memory_source(self.knowledge_store, self.project.clock, self._judge_code),
            deadline_seconds=self.settings.search_deadline_seconds,
        )

    def _reranker(self) -> Reranker | None:
        # Most stores rank by features alone: they should not load what talks to models.
        if self.settings.reranker in ("features", "off") and self.overrides.rerank_model is None:
            return None
        return self.models.reranker

    @cached_property
    def task_search(self) -> TaskSearch:
        from smara.search.record_search import TaskSearch

        seconds = self.settings.search_deadline_seconds
        tasks = self.task_journal.store
        return TaskSearch(tasks, self.reading, self.search, deadline_seconds=seconds)

    @cached_property
    def memory_search(self) -> MemorySearch:
        from smara.search.record_search import MemorySearch

        return MemorySearch(
            self.knowledge_store,
            self.store,
            self.project.clock,
            deadline_seconds=self.settings.search_deadline_seconds,
            freshness=self._judge_code,
        )

    @cached_property
    def observation_search(self) -> ObservationSearch:
        from smara.search.record_search import ObservationSearch

        return ObservationSearch(
            self.observation_store, self.store, self.settings.search_deadline_seconds
        )


def redacted(line: str) -> str:
    """Return the line without secrets."""
    from smara.secrets import redact

    return redact(line).text
