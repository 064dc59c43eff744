"""The types of the async face. Written by ``python -m tests.async_stub``."""

import builtins
import os
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from datetime import datetime
from types import TracebackType
from typing import Any, Literal

from smara.behavior.habits import Calibration, FilePair, KnownFailure, Prefetch
from smara.behavior.methodology import (
    ExecutionContext,
    Phase,
    PlannerContext,
    PrefetchedFile,
    WorkUnitResult,
)
from smara.behavior.models import (
    BehaviorStatus,
    Finalized,
    JobsDone,
    Noticed,
    Outcome,
    QaReportResult,
    WatchedSession,
)
from smara.behavior.scratchpad import Pad
from smara.behavior.sessions import WatchResult
from smara.behavior.synthesis import Synthesized
from smara.browse.models import (
    ArmReport,
    BrowsedMessage,
    FacetCount,
    FacetCounts,
    HostLife,
    Kind,
    Miss,
    ModuleCoverage,
    Reply,
    SessionLine,
    ThreadWindow,
    WorkingPage,
)
from smara.codegraph.index.indexer import IndexTree
from smara.codegraph.index.indexer import Progress as CodegraphProgress
from smara.codegraph.memory_graph import Graph
from smara.codegraph.models import (
    CoChange,
    CodeLocation,
    CodeMap,
    CodeModule,
    CodePiece,
    Edge,
    EntryPoint,
    HotSpot,
    ImpactWalk,
    ImportCycle,
    IndexReport,
    Node,
    SymbolCard,
    TreeStatus,
)
from smara.commits.commits import Progress as CommitsProgress
from smara.commits.models import Commit, CommitReport, CommitStatus, LineReason
from smara.config import Settings
from smara.context.models import Injection, Point, PrecomputedInjections, Receipt, ReceiptTotals
from smara.context.moments.draft import InjectionDraft
from smara.context.moments.receipts import SessionState
from smara.core.clock import Clock
from smara.core.deadline import Abort
from smara.core.events import HostEvent
from smara.core.freshness import Freshness
from smara.core.git import Repository
from smara.core.ids import IdMaker
from smara.core.scope import Scope
from smara.database.projects import Project, ProjectContext
from smara.database.session import Session
from smara.decisions.decisions import Progress
from smara.decisions.models import Decision, DecisionPage, DecisionReport
from smara.feed.models import FeedPage
from smara.frameworks.items import FrameworkItems
from smara.frameworks.models import EntryReader, StreamReader
from smara.frameworks.states import RunStates
from smara.frameworks.streams import Streams
from smara.knowledge.audit import Audit
from smara.knowledge.decay import ConfidenceNow, FileHistory, Staleness
from smara.knowledge.gate import SessionType
from smara.knowledge.models import (
    AcceptResult,
    AddResult,
    By,
    MemoryEvent,
    MemoryPage,
    MemoryTotals,
    MemoryType,
    NewMemory,
    Order,
    PruneResult,
    Relation,
    State,
    TrustTier,
    TypedMemory,
    UseOutcome,
    Visibility,
    WorkUnit,
)
from smara.knowledge.provenance import Why
from smara.knowledge.trust import Tellable, TrustStatus, Verdict
from smara.links.models import CodeLink, Link, LinkedMessage
from smara.meaning.models import EmbeddingProgress, Space, Status
from smara.memory import Memory
from smara.messages.append import AppendResult
from smara.messages.compaction import CompactionResult, Summarizer
from smara.messages.messages import HistoryEntry, MessageList
from smara.messages.models import (
    Compaction,
    Message,
    NewMessage,
    NewThread,
    Part,
    Role,
    Thread,
    ThreadKind,
)
from smara.models.caller import Models
from smara.models.chat import ChatModel, ChatReply, ChatRequest
from smara.models.embedder import Embedder
from smara.models.models import ModelCall, Pause, Remaining, WindowUsage
from smara.models.reranker import Reranker
from smara.observations.models import (
    AgentMode,
    CycleOutcome,
    Extractor,
    Observation,
    ObservationFailure,
    ObservationRecord,
    ObservationWarning,
    RecordKey,
    WorkerRound,
)
from smara.observations.observations import CompactedThread
from smara.observations.thresholds import ObservationPlan, PendingTokens, ReflectionPlan, Thresholds
from smara.privacy.models import (
    ArchiveReport,
    BackupReport,
    ErasePlan,
    EraseReceipt,
    ExportFormat,
    ExportReport,
    ForeignReport,
    KindReport,
    MarkdownReport,
    RestoreReport,
)
from smara.privacy.pointers import KeepStatus
from smara.privacy.retention import ExpiredRows
from smara.privacy.transcripts import WithholdReport
from smara.prompt.models import Context
from smara.rooms import Rooms
from smara.search.models import (
    Answer,
    Hit,
    MemoryAnswer,
    ObservationAnswer,
    PackedAnswer,
    TaskAnswer,
    ThreadAnswer,
)
from smara.tasks.models import (
    CloseReason,
    DependencyType,
    NewTask,
    ReadyTasks,
    Task,
    TaskDetails,
    TaskEvent,
    TaskImportReport,
    TaskPage,
    TaskProgress,
    TaskStatus,
    TaskTotals,
    TaskType,
    TreeNode,
)
from smara.tasks.models import Relation as TasksRelation
from smara.working.models import WorkingFormat, WorkingMemory, WorkingScope, WorkingVersion

class AsyncThreads:
    async def add(
        self,
        thread_id: str | None = ...,
        *,
        resource_id: str | None = ...,
        title: str | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        kind: ThreadKind = ...,
        parent_id: str | None = ...,
        created_at: int | None = ...,
    ) -> Thread: ...
    async def put(self, new: NewThread) -> Thread: ...
    async def row_for(self, new: NewThread) -> tuple[Any, ...]: ...
    async def planned(self, thread_id: str, resource_id: str | None = ...) -> Thread: ...
    async def get(self, thread_id: str) -> Thread: ...
    async def find(self, thread_id: str) -> Thread | None: ...
    async def list(
        self,
        *,
        resource_id: str | None = ...,
        kind: ThreadKind | None = ...,
        parent_id: str | None = ...,
        limit: int | None = ...,
        offset: int = ...,
    ) -> list[Thread]: ...
    async def beginning(self, start: str) -> builtins.list[str]: ...
    async def update(
        self, thread_id: str, *, title: str | None = ..., metadata: Mapping[str, Any] | None = ...
    ) -> Thread: ...
    async def totals(self) -> dict[str, int]: ...

class AsyncMessages:
    async def add(
        self,
        *,
        thread_id: str,
        role: Role,
        content: str | Sequence[Part] | Sequence[Mapping[str, Any]],
        client_id: str | None = ...,
        created_at: int | None = ...,
        task_id: str | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        resource_id: str | None = ...,
        session_id: str | None = ...,
    ) -> Message: ...
    async def add_many(
        self,
        *,
        thread_id: str,
        messages: Iterable[NewMessage | Mapping[str, Any]],
        resource_id: str | None = ...,
        session_id: str | None = ...,
    ) -> MessageList: ...
    async def append_batch(
        self,
        thread: NewThread,
        batch: Sequence[NewMessage | Mapping[str, Any]],
        first: int = ...,
        may_differ: bool = ...,
        compact: bool = ...,
        session_id: str | None = ...,
    ) -> AppendResult: ...
    async def known_client_ids(self, thread_id: str, client_ids: Sequence[str]) -> set[str]: ...
    async def get(self, message_id: str) -> Message: ...
    async def find(self, message_id: str) -> Message | None: ...
    async def list(
        self,
        *,
        thread_id: str,
        limit: int | None = ...,
        after: int | None = ...,
        before: int | None = ...,
    ) -> MessageList: ...
    def stream(self, *, thread_id: str, after: int = ...) -> AsyncIterator[Message]: ...
    async def last_tokens(
        self, *, thread_id: str, tokens: int, before: int | None = ..., after: int = ...
    ) -> MessageList: ...
    async def around(
        self, message_id: str, *, before: int = ..., after: int = ...
    ) -> MessageList: ...
    async def seal(self, *, thread_id: str, up_to_seq: int | None = ...) -> int: ...
    async def extend(self, message_id: str, content: str | Sequence[Part]) -> Message: ...

class AsyncCompactions:
    async def compact_when_due(
        self, thread_id: str, newest: Sequence[Message] = ...
    ) -> CompactionResult: ...
    async def compact(self, thread_id: str, keep: int = ...) -> CompactionResult: ...
    async def end_session(self, thread_id: str) -> CompactionResult: ...
    async def reaches_to(self, thread_id: str, keep: int = ..., is_when_due: bool = ...) -> int: ...
    async def renew(self, thread_id: str, method: str) -> int: ...
    async def list(self, thread_id: str) -> list[Compaction]: ...
    async def undo(self, compaction_id: str) -> Compaction: ...

class AsyncHistory:
    async def window(
        self,
        thread_id: str,
        *,
        last: int | None = ...,
        tokens: int | None = ...,
        before: int | None = ...,
    ) -> list[HistoryEntry]: ...

class AsyncTasks:
    async def get(self, task_id: str) -> Task: ...
    async def find(self, task_id: str) -> Task | None: ...
    async def show(self, task_id: str) -> TaskDetails: ...
    async def ready(
        self,
        *,
        limit: int = ...,
        offset: int = ...,
        type: TaskType | None = ...,
        label: str | None = ...,
        assignee: str | None = ...,
    ) -> ReadyTasks: ...
    async def list(
        self,
        *,
        status: TaskStatus | None = ...,
        type: TaskType | None = ...,
        label: str | None = ...,
        assignee: str | None = ...,
        priority: int | None = ...,
        parent: str | None = ...,
        limit: int = ...,
        offset: int = ...,
    ) -> TaskPage: ...
    async def blocked(self, tasks: Iterable[Task]) -> set[str]: ...
    async def tree(self, task_id: str | None = ...) -> builtins.list[TreeNode]: ...
    async def critical_path(self, task_id: str | None = ...) -> builtins.list[Task]: ...
    async def progress(self, task_id: str) -> TaskProgress: ...
    async def totals(self) -> TaskTotals: ...
    async def problems(self) -> builtins.list[str]: ...
    async def history(self, task_id: str, *, limit: int = ...) -> builtins.list[TaskEvent]: ...
    async def author(self, task_id: str) -> str: ...
    def export(self) -> AsyncIterator[Task]: ...
    async def expire(self) -> builtins.list[Task]: ...
    async def add(
        self,
        title: str,
        *,
        description: str = ...,
        type: TaskType = ...,
        priority: int = ...,
        labels: Sequence[str] = ...,
        assignee: str | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        parent: str | None = ...,
        depends_on: Sequence[str] = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def update(
        self,
        task_id: str,
        *,
        title: str | None = ...,
        description: str | None = ...,
        priority: int | None = ...,
        type: TaskType | None = ...,
        labels: Sequence[str] | None = ...,
        assignee: str | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def claim(
        self, task_id: str, *, actor: str | None = ..., session_id: str | None = ...
    ) -> Task: ...
    async def claim_next(
        self,
        *,
        type: TaskType | None = ...,
        label: str | None = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task | None: ...
    async def release(
        self,
        task_id: str,
        *,
        force: bool = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def hand_over(
        self,
        task_id: str,
        *,
        to_session: str | None = ...,
        to_assignee: str | None = ...,
        force: bool = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def close(
        self,
        task_id: str,
        summary: str,
        *,
        reason: CloseReason = ...,
        force: bool = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def reopen(
        self, task_id: str, *, actor: str | None = ..., session_id: str | None = ...
    ) -> Task: ...
    async def depend(
        self,
        task_id: str,
        depends_on: str,
        *,
        type: DependencyType = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def undepend(
        self,
        task_id: str,
        depends_on: str,
        *,
        type: DependencyType | None = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def undo(
        self,
        task_id: str,
        *,
        force: bool = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def recount(self) -> TaskTotals: ...
    async def seen(self, session_id: str) -> None: ...
    async def end_session(self, session_id: str) -> builtins.list[Task]: ...
    async def compact(self, *, now: int | None = ..., is_asked: bool = ...) -> int: ...
    async def restore(
        self, task_id: str, *, actor: str | None = ..., session_id: str | None = ...
    ) -> Task: ...
    async def put_many(
        self, tasks: Iterable[NewTask], *, actor: str | None = ...
    ) -> TaskImportReport: ...

class AsyncWorking:
    async def get(
        self,
        scope: WorkingScope | None = ...,
        resource_id: str | None = ...,
        thread_id: str | None = ...,
    ) -> WorkingMemory: ...
    async def find(
        self,
        scope: WorkingScope | None = ...,
        resource_id: str | None = ...,
        thread_id: str | None = ...,
    ) -> WorkingMemory | None: ...
    async def put(
        self,
        content: str | Mapping[str, Any] | None = ...,
        *,
        scope: WorkingScope | None = ...,
        resource_id: str | None = ...,
        thread_id: str | None = ...,
        expected_version: int | None = ...,
        template: str | None = ...,
        schema: Mapping[str, Any] | str | None = ...,
        format: WorkingFormat | None = ...,
        actor: str | None = ...,
        reason: str | None = ...,
    ) -> WorkingMemory: ...
    async def update(
        self,
        section: str | Mapping[str, Any],
        content: Any = ...,
        *,
        scope: WorkingScope | None = ...,
        resource_id: str | None = ...,
        thread_id: str | None = ...,
        expected_version: int | None = ...,
        actor: str | None = ...,
        reason: str | None = ...,
    ) -> WorkingMemory: ...
    async def history(
        self,
        scope: WorkingScope | None = ...,
        resource_id: str | None = ...,
        thread_id: str | None = ...,
        *,
        limit: int = ...,
        before: int | None = ...,
    ) -> list[WorkingVersion]: ...
    async def get_version(
        self,
        version: int,
        *,
        scope: WorkingScope | None = ...,
        resource_id: str | None = ...,
        thread_id: str | None = ...,
    ) -> WorkingVersion: ...
    async def restore(
        self,
        version: int,
        *,
        scope: WorkingScope | None = ...,
        resource_id: str | None = ...,
        thread_id: str | None = ...,
        expected_version: int | None = ...,
        actor: str | None = ...,
        reason: str | None = ...,
    ) -> WorkingMemory: ...
    async def render(
        self,
        scope: WorkingScope | None = ...,
        resource_id: str | None = ...,
        thread_id: str | None = ...,
        *,
        limit: int = ...,
    ) -> str: ...
    async def render_by_author(self, limits: Mapping[str, int]) -> str: ...

class AsyncDecisions:
    async def update(
        self,
        limit: int = ...,
        *,
        idle_seconds: float = ...,
        has_time: Callable[[], bool] = ...,
        progress: Progress | None = ...,
    ) -> DecisionReport: ...
    async def read(self, thread_id: str) -> DecisionReport: ...
    async def list(
        self, *, state: State = ..., path: str | None = ..., limit: int = ..., offset: int = ...
    ) -> DecisionPage: ...
    async def get(self, decision_id: str) -> Decision: ...
    async def why(self, decision_id: str) -> Why: ...
    async def search(self, text: str, limit: int = ...) -> builtins.list[Decision]: ...
    async def about(self, text: str) -> builtins.list[dict[str, Any]]: ...
    async def subjects(self) -> builtins.list[dict[str, Any]]: ...
    async def reasons(self, question: str) -> builtins.list[str]: ...

class AsyncCommits:
    async def keep_up(
        self, seconds: float = ..., progress: CommitsProgress | None = ...
    ) -> CommitReport: ...
    async def update(
        self, limit: int = ..., progress: CommitsProgress | None = ...
    ) -> CommitReport: ...
    async def status(self) -> CommitStatus: ...
    async def name_functions(self, limit: int = ...) -> int: ...
    async def get(self, sha: str) -> Commit: ...
    async def why(self, path: str, function: str | None = ...) -> list[LineReason]: ...
    async def write_notes(self, is_going_on: Callable[[], bool] = ...) -> int: ...
    async def noted_files(self) -> tuple[str, dict[str, bool]]: ...
    async def notes_at(
        self, path: str, given: Mapping[str, Any] | None
    ) -> list[Mapping[str, Any]]: ...
    async def noted_terms(self, limit: int) -> builtins.list[tuple[str, str]]: ...
    async def lines_named(self, text: str) -> builtins.list[str]: ...
    async def list(self, *, path: str | None = ..., limit: int = ...) -> list[Commit]: ...

class AsyncMemories:
    async def get(self, memory_id: str) -> TypedMemory: ...
    async def find(self, memory_id: str) -> TypedMemory | None: ...
    async def list(
        self,
        *,
        state: State = ...,
        order: Order = ...,
        limit: int = ...,
        offset: int = ...,
        **filters: Any,
    ) -> MemoryPage: ...
    async def for_files(
        self,
        paths: Sequence[str],
        *,
        types: Sequence[MemoryType] | None = ...,
        limit: int = ...,
        min_confidence: float = ...,
        root: str | None = ...,
        is_injectable_only: bool = ...,
    ) -> builtins.list[TypedMemory]: ...
    async def to_review(
        self,
        *,
        session_id: str | None = ...,
        type: MemoryType | None = ...,
        limit: int = ...,
        offset: int = ...,
    ) -> MemoryPage: ...
    async def history(self, memory_id: str, *, limit: int = ...) -> builtins.list[MemoryEvent]: ...
    async def chain(self, memory_id: str) -> builtins.list[TypedMemory]: ...
    async def why(self, memory_id: str) -> Why: ...
    async def confidence(self, memory: TypedMemory) -> ConfidenceNow: ...
    async def staleness(self, memory: TypedMemory) -> Staleness: ...
    async def freshness(self, memories: Iterable[TypedMemory]) -> dict[str, Freshness]: ...
    async def may_inject(self, memory: TypedMemory) -> Verdict: ...
    async def tellable(
        self,
        memories: Sequence[TypedMemory],
        *,
        is_requested: bool = ...,
        places: Sequence[str] | None = ...,
        trust_level: int | None = ...,
    ) -> builtins.list[Tellable]: ...
    async def audit(self, *, examples: int = ...) -> Audit: ...
    async def totals(self) -> MemoryTotals: ...
    def export(self) -> AsyncIterator[TypedMemory]: ...
    async def problems(self) -> builtins.list[str]: ...
    async def trust(self) -> TrustStatus: ...
    async def update(
        self,
        memory_id: str,
        *,
        version: int | None = ...,
        by: By = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
        thread_id: str | None = ...,
        taint: Sequence[str] = ...,
        **changes: Any,
    ) -> TypedMemory: ...
    async def pin(
        self, memory_id: str, *, by: By = ..., is_pinned: bool = ..., **who: Any
    ) -> TypedMemory: ...
    async def unpin(self, memory_id: str, *, by: By = ..., **who: Any) -> TypedMemory: ...
    async def verify(self, memory_id: str, *, by: By = ..., **who: Any) -> TypedMemory: ...
    async def forget(
        self, memory_id: str, why: str = ..., *, by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def retire(
        self, memory_id: str, why: str = ..., *, at: int | None = ..., by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def restore(self, memory_id: str, *, by: By = ..., **who: Any) -> TypedMemory: ...
    async def supersede(
        self, old_id: str, new_id: str, *, why: str = ..., by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def merge(
        self, keep_id: str, other_ids: Sequence[str], *, by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def relate(
        self, memory_id: str, relation: Relation, *, by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def unrelate(
        self, memory_id: str, relation: Relation, *, by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def mark_stale(
        self, memory_id: str, why: str, *, by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def mark_fresh(self, memory_id: str, *, by: By = ..., **who: Any) -> TypedMemory: ...
    async def undo(self, memory_id: str, *, by: By = ..., **who: Any) -> TypedMemory: ...
    async def check_files(self, files: FileHistory | None = ...) -> builtins.list[TypedMemory]: ...
    async def check_code(self, paths: Sequence[str] | None = ...) -> builtins.list[TypedMemory]: ...
    async def used(
        self, memory_id: str, outcome: UseOutcome, *, note: str = ..., by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def accept(
        self,
        memory_id: str,
        *,
        version: int | None = ...,
        by: By = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
        **changes: Any,
    ) -> TypedMemory: ...
    async def accept_all(
        self,
        *,
        session_id: str | None = ...,
        memory_ids: Sequence[str] | None = ...,
        dry_run: bool = ...,
        by: By = ...,
        actor: str | None = ...,
    ) -> AcceptResult: ...
    async def reject(
        self, memory_id: str, why: str = ..., *, by: By = ..., **who: Any
    ) -> TypedMemory: ...
    async def recount(self) -> MemoryTotals: ...
    async def set_trust_level(
        self, level: int, *, by: By = ..., actor: str | None = ...
    ) -> TrustStatus: ...
    async def decline_offer(self, *, by: By = ..., actor: str | None = ...) -> TrustStatus: ...
    async def end_session(self, session_id: str) -> TrustStatus: ...
    async def prune(self, *, dry_run: bool = ...) -> PruneResult: ...
    async def remember(
        self,
        text: str,
        *,
        type: MemoryType | None = ...,
        files: Sequence[str] = ...,
        modules: Sequence[str] = ...,
        tags: Sequence[str] = ...,
        citation: str | None = ...,
        visibility: Visibility = ...,
        is_pinned: bool = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> AddResult: ...
    async def add(
        self,
        content: str,
        *,
        type: MemoryType,
        by: By = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
        session_type: SessionType = ...,
        thread_id: str | None = ...,
        already_told: Sequence[str] = ...,
        **fields: Any,
    ) -> AddResult: ...
    async def add_many(
        self,
        new: Iterable[NewMemory],
        *,
        by: By = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
        session_type: SessionType = ...,
        thread_id: str | None = ...,
        already_told: Sequence[str] = ...,
        put_aside: Mapping[str, str] | None = ...,
        also: Callable[[Session, Sequence[AddResult]], object] | None = ...,
    ) -> builtins.list[AddResult]: ...
    async def guess_type(self, text: str) -> MemoryType: ...

class AsyncObservations:
    async def place(self, thread_id: str, resource_id: str | None = ...) -> RecordKey: ...
    async def pending(self, thread_id: str) -> PendingTokens: ...
    async def record(
        self, thread_id: str, resource_id: str | None = ...
    ) -> ObservationRecord | None: ...
    async def active(
        self, thread_id: str, resource_id: str | None = ...
    ) -> builtins.list[Observation]: ...
    async def observed_seq(self, thread_id: str) -> int: ...
    async def covered_seq(self, thread_id: str) -> int: ...
    async def unobserved_elsewhere(
        self, thread_id: str, resource_id: str | None = ..., *, limit: int = ...
    ) -> builtins.list[Message]: ...
    async def rendered(self, thread_id: str, is_marked: bool = ...) -> str: ...
    async def render(
        self, observations: builtins.list[Observation], is_marked: bool = ...
    ) -> str: ...
    async def list(
        self,
        *,
        thread_id: str | None = ...,
        state: str | None = ...,
        category: str | None = ...,
        priority: str | None = ...,
        limit: int = ...,
        offset: int = ...,
    ) -> builtins.list[Observation]: ...
    async def get(self, observation_id: str) -> Observation: ...
    async def freshness(self, observations: Iterable[Observation]) -> dict[str, Freshness]: ...
    async def why(
        self, observation_id: str, *, limit: int = ..., offset: int = ...
    ) -> builtins.list[Message]: ...
    async def extracted(
        self, thread_id: str, *, limit: int = ...
    ) -> builtins.list[dict[str, Any]]: ...
    async def failures(self, *, limit: int = ...) -> builtins.list[ObservationFailure]: ...
    async def warnings(self, observation_id: str) -> tuple[str, ...]: ...
    async def warned(self, *, limit: int = ...) -> builtins.list[ObservationWarning]: ...
    async def status(self, thread_id: str) -> dict[str, Any]: ...
    async def observe(
        self, thread_id: str, *, mode: AgentMode = ..., retain_tokens: int = ..., is_now: bool = ...
    ) -> CycleOutcome: ...
    async def buffer(
        self, thread_id: str, *, mode: AgentMode = ..., is_now: bool = ...
    ) -> CycleOutcome: ...
    async def activate(
        self, thread_id: str, *, mode: AgentMode = ..., is_forced: bool = ...
    ) -> CycleOutcome: ...
    async def reflect(
        self, thread_id: str, *, is_forced: bool = ..., is_buffered: bool = ...
    ) -> CycleOutcome: ...
    async def activate_reflection(
        self, thread_id: str, *, is_early: bool = ...
    ) -> CycleOutcome: ...
    async def end_session(self, thread_id: str, *, mode: AgentMode = ...) -> CycleOutcome: ...
    async def merge(self, resource_id: str) -> int: ...
    async def limits(self, mode: AgentMode = ...) -> Thresholds: ...
    async def planned(self, thread_id: str, *, mode: AgentMode = ...) -> ObservationPlan: ...
    async def look_after(self, thread_id: str, *, mode: AgentMode = ...) -> ObservationPlan: ...
    async def planned_reflection(self, thread_id: str) -> ReflectionPlan: ...
    async def is_reflection_due(self, thread_id: str) -> bool: ...
    async def settled(self, timeout_seconds: float = ...) -> bool: ...

class AsyncBehavior:
    async def failures_of(self, command: str, limit: int = ...) -> list[KnownFailure]: ...
    async def failures_lacking(self, command: str) -> list[KnownFailure]: ...
    async def failures_like(self, command: str, output: str) -> list[KnownFailure]: ...
    async def failures(self, limit: int = ...) -> list[KnownFailure]: ...
    async def module_files(self, module: str, limit: int) -> tuple[int, list[tuple[str, int]]]: ...
    async def prefetch(self, module: str) -> Prefetch | None: ...
    async def calibration(self, module: str, methodology: str = ...) -> Calibration | None: ...
    async def modules(self, limit: int = ...) -> list[tuple[str, int]]: ...
    async def edges(self, path: str | None = ..., limit: int = ...) -> list[FilePair]: ...
    async def observe(self, event: HostEvent) -> None: ...
    async def observe_batch(
        self, events: Iterable[HostEvent], also: Callable[[Session], None] | None = ...
    ) -> WatchResult: ...
    async def checkpoint(self, session_id: str, work_unit: WorkUnit | None = ...) -> None: ...
    async def restore(self, session_id: str) -> WatchedSession: ...
    async def pads(self, session_id: str) -> builtins.list[Pad]: ...
    async def phase(self, session_id: str | None) -> Phase | None: ...
    async def state_type(self, session_id: str, type: SessionType) -> None: ...
    async def finalize(
        self,
        session_id: str,
        outcome: Outcome | None = ...,
        *,
        type: SessionType | None = ...,
        work_unit: WorkUnit | None = ...,
    ) -> Finalized | None: ...
    async def subtask_done(
        self, session_id: str, work_unit: WorkUnit, *, is_success: bool = ...
    ) -> Finalized | None: ...
    async def work_unit_done(
        self, methodology: str, context: ExecutionContext, result: WorkUnitResult
    ) -> AddResult: ...
    async def keep_work_state(
        self,
        session_id: str,
        output: str,
        *,
        methodology: str = ...,
        work_unit: WorkUnit | None = ...,
    ) -> AddResult | None: ...
    async def relay(
        self,
        methodology: str,
        source: str,
        target: str,
        *,
        modules: Sequence[str] = ...,
        session_id: str | None = ...,
        limit: int = ...,
    ) -> str: ...
    async def remember_as(
        self, methodology: str, name: str, content: str, *, session_id: str, **fields: Any
    ) -> AddResult: ...
    async def run_due(self, limit: int = ...) -> JobsDone: ...
    async def qa_report(
        self, text: str, *, session_id: str, work_unit: WorkUnit | None = ...
    ) -> QaReportResult: ...
    async def planner_context(
        self, modules: Sequence[str], task: str = ..., methodology: str = ...
    ) -> PlannerContext: ...
    async def coder_files(
        self, modules: Sequence[str], read: Callable[[str], str | None]
    ) -> builtins.list[PrefetchedFile]: ...
    async def qa_memories(
        self, modules: Sequence[str] = ...
    ) -> dict[str, builtins.list[TypedMemory]]: ...
    async def qa_context(self, modules: Sequence[str] = ...) -> str: ...
    async def step_limit(self, base: int, module: str, methodology: str = ...) -> int: ...
    async def session(self, session_id: str, *, is_whole: bool = ...) -> WatchedSession: ...
    async def sessions(
        self, limit: int = ..., offset: int = ...
    ) -> builtins.list[WatchedSession]: ...
    async def noticed(self, session_id: str) -> builtins.list[Noticed]: ...
    async def status(self) -> BehaviorStatus: ...
    async def synthesis_log(self, limit: int = ...) -> builtins.list[Synthesized]: ...
    async def close(self) -> None: ...

class AsyncCodeGraph:
    async def index(
        self,
        root: str | os.PathLike[str] | None = ...,
        *,
        full: bool = ...,
        progress: CodegraphProgress | None = ...,
        wait_seconds: float = ...,
        workers: int | None = ...,
        scip: str | os.PathLike[str] | None = ...,
    ) -> IndexReport: ...
    async def update(
        self, paths: Sequence[str | os.PathLike[str]], root: str | os.PathLike[str] | None = ...
    ) -> IndexReport: ...
    async def get_ready(self, root: str | os.PathLike[str] | None = ...) -> None: ...
    async def watch(
        self,
        stop: threading.Event | None = ...,
        root: str | os.PathLike[str] | None = ...,
        on_update: Callable[[IndexReport], None] | None = ...,
    ) -> None: ...
    async def count_languages(self, paths: Iterable[str]) -> list[tuple[str, int]]: ...
    async def status(self, root: str | os.PathLike[str] | None = ...) -> TreeStatus: ...
    async def trees(self) -> list[TreeStatus]: ...
    async def changed_paths(
        self, root: str | os.PathLike[str] | None = ...
    ) -> tuple[list[str], list[str], list[str]]: ...
    async def forget(self, root: str | os.PathLike[str]) -> bool: ...
    async def forget_gone(self) -> list[str]: ...
    @property
    def note(self) -> str | None: ...
    async def catch_up(self) -> str | None: ...
    async def asking(self, root: str | os.PathLike[str] | None = ...) -> AsyncCodeQueries: ...
    async def locate(
        self, text: str, limit: int = ..., *, tests: bool = ..., graph: bool = ...
    ) -> list[CodeLocation]: ...
    async def piece(self, place: str) -> CodePiece | None: ...
    async def tree(self, root: str | os.PathLike[str]) -> IndexTree: ...

class AsyncCodeKnowledge:
    async def about(self, nodes: Sequence[Node], limit: int = ...) -> list[CodeLink]: ...
    async def links(self, limit: int = ...) -> list[CodeLink]: ...

class AsyncFrameworks:
    async def streams(
        self, framework: str, read: EntryReader | StreamReader, *, is_redacted: bool = ...
    ) -> Streams: ...
    async def holders(self, threads: Sequence[str]) -> dict[str, set[tuple[str, str]]]: ...
    async def items(self, framework: str, *, is_redacted: bool = ...) -> FrameworkItems: ...
    async def states(self, framework: str) -> RunStates: ...

class AsyncLinks:
    async def claim(
        self,
        task_id: str,
        *,
        thread_id: str | None = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Task: ...
    async def active(self, thread_id: str, *, session_id: str | None = ...) -> Task | None: ...
    async def add(
        self,
        task_id: str,
        message_id: str,
        *,
        relation: TasksRelation = ...,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> Link: ...
    async def remove(
        self,
        task_id: str,
        message_id: str,
        *,
        actor: str | None = ...,
        session_id: str | None = ...,
    ) -> bool: ...
    async def messages(
        self, task_id: str, *, limit: int = ..., offset: int = ...
    ) -> list[LinkedMessage]: ...
    async def tasks(self, message_id: str) -> list[Task]: ...

class AsyncProcessors:
    async def process_input(
        self,
        thread_id: str,
        incoming: Sequence[Mapping[str, Any] | NewMessage] = ...,
        *,
        step: int = ...,
        mode: AgentMode = ...,
        model: str | None = ...,
        resource_id: str | None = ...,
        deadline_seconds: float | None = ...,
    ) -> Context: ...
    async def process_output(
        self,
        thread_id: str,
        messages: Sequence[Mapping[str, Any] | NewMessage],
        *,
        mode: AgentMode = ...,
        resource_id: str | None = ...,
        session_id: str | None = ...,
    ) -> list[Message]: ...

class AsyncMoments:
    async def standing(self, session_id: str, is_emptied: bool = ...) -> SessionState: ...
    @property
    def has_arms(self) -> bool: ...
    async def set_arms(self, is_on: bool, *, actor: str | None = ...) -> None: ...
    async def keep(
        self,
        point: Point,
        session_id: str,
        draft: InjectionDraft,
        standing: SessionState,
        *,
        source: str = ...,
        agent: str = ...,
        elapsed_ms: int = ...,
    ) -> Injection | None: ...
    async def empty(self, session_id: str, standing: SessionState) -> None: ...
    async def deliver(
        self,
        injection: Mapping[str, Any] | Injection,
        *,
        session_id: str,
        source: str = ...,
        at_ms: int,
        is_said: bool = ...,
    ) -> bool: ...
    async def mark_delivered(self, receipt_id: str) -> bool: ...
    async def reached(self, session_id: str, words: Sequence[tuple[int, str]]) -> int: ...
    async def mark_used(self, receipt_id: str, how: str) -> Receipt: ...
    async def receipt(self, receipt_id: str) -> Receipt: ...
    async def receipts(
        self, session_id: str | None = ..., limit: int = ..., offset: int = ...
    ) -> list[Receipt]: ...
    async def totals(self) -> ReceiptTotals: ...
    async def start(
        self,
        session_id: str,
        *,
        source: str = ...,
        agent: str = ...,
        cwd: str = ...,
        files: Sequence[str] = ...,
        known_texts: Sequence[str] = ...,
    ) -> Injection | None: ...
    async def first_message(
        self, session_id: str, text: str, *, is_first: bool = ...
    ) -> Injection | None: ...
    async def before_tool(
        self,
        session_id: str,
        tool: str,
        tool_input: Mapping[str, Any],
        *,
        known_texts: Sequence[str] = ...,
    ) -> Injection | None: ...
    async def after_tool(
        self,
        session_id: str,
        tool: str,
        tool_input: Mapping[str, Any],
        output: str = ...,
        error: str | None = ...,
        *,
        known_texts: Sequence[str] = ...,
    ) -> Injection | None: ...
    async def between_steps(
        self,
        session_id: str,
        step: int,
        recent: Sequence[Mapping[str, Any] | HostEvent] = ...,
        *,
        known_texts: Sequence[str] = ...,
    ) -> Injection | None: ...
    async def preview(
        self,
        *,
        agent: str = ...,
        cwd: str = ...,
        files: Sequence[str] = ...,
        known_texts: Sequence[str] = ...,
        accepted: Sequence[str] = ...,
        trust_level: int | None = ...,
    ) -> Injection: ...
    async def prepared(
        self, *, agent: str = ..., cwd: str = ..., known_texts: Sequence[str] = ...
    ) -> PrecomputedInjections: ...
    async def heed(self, events: Sequence[HostEvent]) -> int: ...
    async def for_planner(
        self,
        modules: Sequence[str],
        task: str = ...,
        *,
        methodology: str = ...,
        session_id: str | None = ...,
    ) -> PlannerContext: ...
    async def for_coder(
        self,
        modules: Sequence[str],
        read: Callable[[str], str | None],
        *,
        session_id: str | None = ...,
    ) -> list[PrefetchedFile]: ...
    async def for_qa(
        self, modules: Sequence[str] = ..., *, session_id: str | None = ...
    ) -> str: ...
    async def step_limit(self, base: int, module: str, methodology: str = ...) -> int: ...

class AsyncEmbeddings:
    async def embed_pending(
        self,
        limit: int | None = ...,
        deadline_seconds: float | None = ...,
        *,
        stop: threading.Event | None = ...,
        tell: Callable[[EmbeddingProgress], object] | None = ...,
    ) -> EmbeddingProgress: ...
    async def evict_cache(self) -> int: ...
    async def status(self) -> Status: ...
    async def switch(self, setting: str) -> Space: ...
    async def is_kept(self, setting: str) -> bool: ...
    async def drop(self, model_id: str) -> int: ...
    async def retry(self) -> int: ...
    async def is_begun(self) -> bool: ...
    async def problems(self) -> list[str]: ...
    async def mend(self) -> int: ...

class AsyncModels:
    @property
    def is_offline(self) -> bool: ...
    @property
    def names(self) -> list[str]: ...
    async def names_for(self, purpose: str) -> list[str]: ...
    async def complete(
        self, request: ChatRequest, purpose: str = ..., abort: Abort | None = ...
    ) -> ChatReply: ...
    @property
    def reranker(self) -> Reranker | None: ...
    @property
    def embedder(self) -> Embedder | None: ...
    async def open_embedder(self, setting: str | None = ...) -> Embedder | None: ...
    async def embedder_status(self) -> dict[str, Any]: ...
    async def pause(self, reason: str = ...) -> Pause: ...
    async def resume(self) -> bool: ...
    async def find_pause(self) -> Pause | None: ...
    async def spent(self, window_ms: int = ...) -> WindowUsage: ...
    async def remaining(self) -> list[Remaining]: ...
    async def calls(self, limit: int = ...) -> list[ModelCall]: ...
    async def status(self) -> dict[str, Any]: ...

class AsyncPrivacy:
    async def backup(self, path: str | os.PathLike[str]) -> BackupReport: ...
    async def restore(self, path: str | os.PathLike[str]) -> RestoreReport: ...
    async def export(
        self,
        path: str | os.PathLike[str],
        format: ExportFormat = ...,
        *,
        projects: Sequence[str] | None = ...,
        is_all: bool = ...,
        person: str | None = ...,
        since: int | str | datetime | None = ...,
        until: int | str | datetime | None = ...,
    ) -> ExportReport: ...
    def render(self, format: ExportFormat = ...) -> AsyncIterator[str]: ...
    async def import_archive(
        self, path: str | os.PathLike[str], *, project: str | None = ...
    ) -> ArchiveReport: ...
    async def import_foreign(
        self,
        path: str | os.PathLike[str],
        format: str | None = ...,
        *,
        only: str | None = ...,
        is_dry_run: bool = ...,
        progress: Callable[[int, int], None] | None = ...,
    ) -> ForeignReport: ...
    async def import_markdown(
        self, path: str | os.PathLike[str], *, is_dry_run: bool = ...
    ) -> MarkdownReport: ...
    async def erase(
        self,
        *,
        messages: Sequence[str] = ...,
        threads: Sequence[str] = ...,
        memories: Sequence[str] = ...,
        tasks: Sequence[str] = ...,
        person: str | None = ...,
        path: str | None = ...,
        text: str | None = ...,
        since: int | str | datetime | None = ...,
        until: int | str | datetime | None = ...,
        is_project: bool = ...,
        is_everything: bool = ...,
    ) -> EraseReceipt: ...
    async def plan_erase(
        self,
        *,
        messages: Sequence[str] = ...,
        threads: Sequence[str] = ...,
        memories: Sequence[str] = ...,
        tasks: Sequence[str] = ...,
        person: str | None = ...,
        path: str | None = ...,
        text: str | None = ...,
        since: int | str | datetime | None = ...,
        until: int | str | datetime | None = ...,
        is_project: bool = ...,
        is_everything: bool = ...,
    ) -> ErasePlan: ...
    async def problems(self) -> list[str]: ...
    async def finish_erase(self) -> bool: ...
    async def scrub(self, samples: Sequence[str]) -> list[str]: ...

class AsyncRetention:
    async def list(self, deadline_seconds: float = ...) -> list[KindReport]: ...
    async def plan(self) -> dict[str, ExpiredRows]: ...
    async def run_due(self, seconds: float = ..., *, is_patient: bool = ...) -> int: ...
    async def erase(self) -> dict[str, int]: ...

class AsyncBrowse:
    async def facets(
        self, kind: Kind = ..., filters: Mapping[str, str] | None = ...
    ) -> FacetCounts: ...
    async def modules_named(self, limit: int = ...) -> builtins.list[FacetCount]: ...
    async def used_since(self, days: int = ...) -> int: ...
    async def failures(self) -> dict[str, int]: ...
    async def messages(
        self,
        *,
        role: str | None = ...,
        thread_id: str | None = ...,
        before: int | None = ...,
        limit: int = ...,
    ) -> builtins.list[BrowsedMessage]: ...
    async def working(self, limit: int = ..., offset: int = ...) -> builtins.list[WorkingPage]: ...
    async def coverage(self) -> builtins.list[ModuleCoverage]: ...
    async def hosts(self) -> builtins.list[HostLife]: ...
    async def timeline(self, limit: int = ..., offset: int = ...) -> builtins.list[SessionLine]: ...
    async def arms(self) -> ArmReport: ...
    async def window(self, thread_id: str) -> ThreadWindow: ...
    async def why_not(self, query: str, record_id: str, limit: int = ...) -> Miss: ...
    async def ask(self, question: str, sources: Collection[str] | None = ...) -> Reply: ...

class AsyncFeed:
    async def newest(self) -> str: ...
    async def list(self, after: str = ..., limit: int = ...) -> FeedPage: ...

class AsyncTranscriptTexts:
    async def status(self) -> KeepStatus: ...
    async def keep(self, what: Literal["text", "vectors"]) -> KeepStatus: ...
    async def plan(self, files: Iterable[tuple[str, str, str | None]]) -> WithholdReport: ...
    async def withhold(self, files: Iterable[tuple[str, str, str | None]]) -> WithholdReport: ...

class AsyncProjects:
    async def named(self, project_id: str) -> Scope: ...
    async def at(
        self, folder: str, name: str | None = ..., may_add: bool = ...
    ) -> Scope | None: ...
    async def of_repository(self, repository: Repository, may_add: bool = ...) -> Scope | None: ...
    async def add_folder(self, folder: str) -> Scope: ...
    async def adopt(self, project_id: str, folder: str) -> Scope: ...
    async def notes(self, project_id: str) -> list[str]: ...
    async def key_of(self, scope: Scope) -> str | None: ...
    async def has_pointers(self, scope: Scope) -> bool: ...
    async def settle(self, project: ProjectContext) -> ProjectContext: ...
    async def list(self) -> list[Project]: ...

class AsyncWorker:
    async def run_once(self) -> WorkerRound: ...
    async def run(
        self,
        stop: threading.Event,
        poll_seconds: float = ...,
        leave_after_idle_seconds: float | None = ...,
        tell: Callable[[WorkerRound], None] | None = ...,
    ) -> int: ...
    def steps(self, is_due: bool = ...) -> AsyncIterator[WorkerRound]: ...

class AsyncCodeQueries:
    async def graph(self) -> Graph: ...
    async def find(self, target: str) -> list[Node]: ...
    async def resolve(self, target: str) -> tuple[Node, ...]: ...
    async def impact(self, target: str, depth: int = ..., limit: int = ...) -> ImpactWalk: ...
    async def deps(self, target: str, depth: int = ..., limit: int = ...) -> ImpactWalk: ...
    async def callers(self, target: str, depth: int = ..., limit: int = ...) -> ImpactWalk: ...
    async def tests_for(self, target: str, depth: int = ..., limit: int = ...) -> ImpactWalk: ...
    async def symbol(self, target: str) -> SymbolCard: ...
    async def edges(self, path: str) -> list[tuple[Node, Edge, Node]]: ...
    async def map(
        self, budget: int = ..., files: Collection[str] = ..., names: Collection[str] = ...
    ) -> CodeMap: ...
    async def cycles(self, limit: int = ..., *, with_lazy: bool = ...) -> list[ImportCycle]: ...
    async def entry_points(self, limit: int = ...) -> list[EntryPoint]: ...
    async def hotspots(self, limit: int = ...) -> list[HotSpot]: ...
    async def modules(self, only: Collection[str] = ...) -> list[CodeModule]: ...
    async def describe(self, models: Models, limit: int = ...) -> list[CodeModule]: ...
    async def draw(self, walk: ImpactWalk, picture: str) -> str: ...
    async def fingerprint(self, folder: str) -> str: ...
    async def cochange(self, path: str, limit: int = ...) -> list[CoChange]: ...

class AsyncMemory:
    threads: AsyncThreads
    messages: AsyncMessages
    compactions: AsyncCompactions
    history: AsyncHistory
    tasks: AsyncTasks
    working: AsyncWorking
    decisions: AsyncDecisions
    commits: AsyncCommits
    memories: AsyncMemories
    observations: AsyncObservations
    behavior: AsyncBehavior
    code: AsyncCodeGraph
    code_knowledge: AsyncCodeKnowledge
    frameworks: AsyncFrameworks
    links: AsyncLinks
    context: AsyncProcessors
    moments: AsyncMoments
    embeddings: AsyncEmbeddings
    models: AsyncModels
    privacy: AsyncPrivacy
    retention: AsyncRetention
    browse: AsyncBrowse
    feed: AsyncFeed
    transcripts: AsyncTranscriptTexts
    projects: AsyncProjects
    worker: AsyncWorker
    def __init__(self, memory: Memory) -> None: ...
    async def __aenter__(self) -> AsyncMemory: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    @property
    def project(self) -> str: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def path(self) -> str | None: ...
    @property
    def internals(self) -> Rooms: ...
    @property
    def used_rooms(self) -> frozenset[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    async def search(
        self,
        query: str,
        limit: int = ...,
        *,
        sources: Collection[str] | None = ...,
        thread_id: str | None = ...,
        resource_id: str | None = ...,
        role: str | Collection[str] | None = ...,
        since: int | str | datetime | None = ...,
        until: int | str | datetime | None = ...,
        task_id: str | None = ...,
        neighbors: int = ...,
        phase: str | None = ...,
        recent_tools: Sequence[str] = ...,
        files: Sequence[str] = ...,
        min_score: float | None = ...,
        deep: bool = ...,
        may_imagine: bool = ...,
    ) -> Answer: ...
    async def search_threads(
        self,
        query: str,
        limit: int = ...,
        *,
        resource_id: str | None = ...,
        role: str | Collection[str] | None = ...,
        since: int | str | datetime | None = ...,
        until: int | str | datetime | None = ...,
        min_score: float | None = ...,
        deep: bool = ...,
    ) -> ThreadAnswer: ...
    async def search_tasks(
        self,
        query: str,
        limit: int = ...,
        *,
        offset: int = ...,
        status: str | None = ...,
        include_messages: bool = ...,
    ) -> TaskAnswer: ...
    async def search_memories(
        self,
        query: str,
        limit: int = ...,
        *,
        offset: int = ...,
        types: Sequence[str] | None = ...,
        files: Sequence[str] | None = ...,
        tags: Sequence[str] | None = ...,
        modules: Sequence[str] | None = ...,
        min_confidence: float = ...,
        min_tier: TrustTier | None = ...,
        state: State = ...,
    ) -> MemoryAnswer: ...
    async def search_observations(
        self, query: str, limit: int = ..., *, thread_id: str | None = ...
    ) -> ObservationAnswer: ...
    async def search_pattern(self, pattern: str) -> Hit | None: ...
    async def complete(self, prefix: str, limit: int = ...) -> list[str]: ...
    async def pack(
        self,
        answer: Answer,
        budget_tokens: int | None = ...,
        *,
        phase: str | None = ...,
        is_unasked: bool = ...,
    ) -> PackedAnswer: ...
    async def status(self) -> dict[str, Any]: ...
    async def compact(
        self, thread_id: str, keep: int = ..., *, is_when_due: bool = ...
    ) -> CompactedThread: ...
    async def with_settings(self, **changes: Any) -> AsyncMemory: ...
    async def in_project(self, project_id: str) -> AsyncMemory: ...
    async def close(self) -> None: ...

class OpeningMemory:
    def __await__(self) -> Generator[Any, None, AsyncMemory]: ...
    async def __aenter__(self) -> AsyncMemory: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

def open_async(
    path_or_url: str | os.PathLike[str] | None = ...,
    *,
    project: str | None = ...,
    clock: Clock | None = ...,
    new_id: IdMaker | None = ...,
    summarizer: Summarizer | None = ...,
    chat_model: ChatModel | None = ...,
    extractors: Sequence[Extractor] = ...,
    rerank_model: Reranker | None = ...,
    embedding_model: Embedder | None = ...,
    vfs: str | None = ...,
    check_index: bool = ...,
    **settings: Any,
) -> OpeningMemory: ...
