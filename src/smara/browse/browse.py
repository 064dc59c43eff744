"""Show people what is remembered: one door for those who look around.

Nothing is decided here and nothing is written: counts, coverage, the window of a thread, where a
search lost a record, and answers with their citations are read from the rooms below.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from smara.browse.ask import quote, write
from smara.browse.facets import MOST_VALUES, Facets
from smara.browse.miss import MissTarget, trace_miss
from smara.browse.models import (
    KINDS,
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
from smara.core.escape import from_storable, to_storable
from smara.core.validate import check_page, one_of
from smara.database.project_store import ProjectStore
from smara.errors import NotFoundError
from smara.knowledge.store import searched_text
from smara.prompt.models import LATE

if TYPE_CHECKING:
    from smara.codegraph.graph import CodeGraph
    from smara.database.projects import ProjectContext
    from smara.knowledge.memories import Memories
    from smara.knowledge.store import KnowledgeStore
    from smara.messages.messages import Messages
    from smara.messages.threads import Threads
    from smara.models.caller import Models
    from smara.observations.observations import Observations
    from smara.prompt.processors import Processors
    from smara.search.search import Search
    from smara.tasks.tasks import Tasks
    from smara.working.working import Working

TRAPS = ("gotcha", "dead_end", "error_pattern")
DAY_MS = 86_400_000
_ASK_SECONDS = 30.0
_MOST_NOTES = 10
_MOST_REPLIES = 32
_MOST_FILES = 200_000
# To see a difference of 10 points between two shares, four times in five, at the usual 5 %.
_POINTS, _POWER = 0.10, 15.7
_LEAST_SESSIONS = 20
_OF_SESSION = "FROM moment_receipts r WHERE r.project_no = t.project_no AND r.session_id = t.id"


class BrowseRooms(Protocol):
    """The rooms that are read for people."""

    @property
    def knowledge_store(self) -> KnowledgeStore: ...
    @property
    def memories(self) -> Memories: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def observations(self) -> Observations: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def code(self) -> CodeGraph: ...
    @property
    def search(self) -> Search: ...
    @property
    def models(self) -> Models: ...
    @property
    def threads(self) -> Threads: ...
    @property
    def working(self) -> Working: ...


class Browse:
    """The views of one project that people look at."""

    def __init__(self, project: ProjectContext, rooms: BrowseRooms) -> None:
        self._project = project
        self._rooms = rooms
        self._store = ProjectStore(project.database, project.scope)
        self._facets = Facets(self._store, rooms.knowledge_store, project.clock)
        self._replies: dict[Any, Reply] = {}
        self._modules: tuple[tuple[Any, Any], builtins.list[ModuleCoverage]] = ((None, None), [])

    def facets(
        self, kind: Kind = "memories", filters: Mapping[str, str] | None = None
    ) -> FacetCounts:
        """Count the records of a kind by each of their facets.

        Args:
            kind: The kind of record.
            filters: The value of each facet that is chosen; of memories also ``module``, ``file``,
                ``tag`` and ``session``; of messages ``thread_id``.

        Returns:
            The number of records that meet the filters, and the counts.

        Raises:
            InvalidInputError: If there is no such kind or facet.
        """
        one_of(kind, KINDS, "kind")
        with self._store.database.read() as session:
            return self._facets.count(session, kind, filters or {})

    def modules_named(self, limit: int = MOST_VALUES) -> builtins.list[FacetCount]:
        """Return the modules that memories name most, with their counts.

        Args:
            limit: The most modules.

        Returns:
            Modules with the number of memories in force that name each.
        """
        check_page(limit)
        knowledge = self._rooms.knowledge_store
        statement = (
            "SELECT k.value, count(*) FROM memory_keys k JOIN memories m ON m.no = k.memory_no"
            " WHERE k.project_no = :project AND k.kind = 'module' AND m.deprecated_at IS NULL"
            f"{knowledge.WALL if knowledge.viewer else ''} GROUP BY k.value"
            " ORDER BY count(*) DESC, k.value LIMIT ?"
        )
        with self._store.database.read() as session:
            return self._facets.remembered(
                session,
                ("modules", limit),
                lambda: [
                    FacetCount(from_storable(row[0]), int(row[1]))
                    for row in self._store.rows(session, statement, *knowledge.viewer, limit)
                ],
            )

    def used_since(self, days: int = 30) -> int:
        """Count the memories in force whose use was verified lately.

        Args:
            days: How many days back.

        Returns:
            The number of memories.
        """
        knowledge = self._rooms.knowledge_store
        since = self._project.clock.now_ms() - days * DAY_MS
        with self._store.database.read() as session:
            return self._store.number(
                session,
                "SELECT count(*) FROM memories m WHERE m.project_no = :project"
                " AND m.last_verified_use_at >= ? AND m.deprecated_at IS NULL"
                f"{knowledge.WALL if knowledge.viewer else ''}",
                since,
                *knowledge.viewer,
            )

    def failures(self) -> dict[str, int]:
        """Count the work in the background that failed.

        Returns:
            The failures of ``observations`` and of ``vectors``.
        """
        with self._store.database.read() as session:
            return {
                name: self._store.number(
                    session, f"SELECT count(*) FROM {table} WHERE project_no = :project"
                )
                for name, table in (
                    ("observations", "observation_failures"),
                    ("vectors", "embedding_failures"),
                )
            }

    def messages(
        self,
        *,
        role: str | None = None,
        thread_id: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> builtins.list[BrowsedMessage]:
        """Return the newest messages of all threads, newest first.

        Args:
            role: Only messages of this role.
            thread_id: Only messages of this thread.
            before: Only messages with a smaller number.
            limit: The most messages.

        Returns:
            Each message with its number in the store, for the next page.
        """
        check_page(limit)
        joined, values = "", builtins.list[Any]()
        for condition, value in (
            (" AND s.role = ?", role),
            (" AND s.thread_no = (SELECT t.no FROM threads t WHERE t.project_no = :project"
             " AND t.id = ?)", thread_id and to_storable(thread_id)),
            (" AND s.no < ?", before),
        ):  # fmt: skip
            if value is not None:
                joined += condition
                values.append(value)
        with self._store.database.read() as session:
            rows = self._store.rows(
                session,
                f"SELECT s.no, s.id FROM messages s WHERE s.project_no = :project{joined}"
                " ORDER BY s.no DESC LIMIT ?",
                *values,
                limit,
            )
        found = ((int(no), self._rooms.messages.find(str(name))) for no, name in rows)
        return [BrowsedMessage(no, message) for no, message in found if message is not None]

    def working(self, limit: int = 50, offset: int = 0) -> builtins.list[WorkingPage]:
        """Return the pages of working memory, the last changed first.

        Args:
            limit: The most pages.
            offset: How many to skip.

        Returns:
            Where each page is, and its text.
        """
        check_page(limit, offset)
        with self._store.database.read() as session:
            rows = self._store.rows(
                session,
                "SELECT scope, resource_id, thread_id, version, content, updated_at"
                " FROM working_memory WHERE project_no = :project"
                " ORDER BY updated_at DESC, no DESC LIMIT ? OFFSET ?",
                limit,
                offset,
            )
        return [
            WorkingPage(
                row[0],
                from_storable(row[1]),
                from_storable(row[2]) or None,
                version=int(row[3]),
                content=from_storable(row[4]),
                updated_at=int(row[5]),
            )
            for row in rows
        ]

    def coverage(self) -> builtins.list[ModuleCoverage]:
        """Return the modules of the code with what is known of each.

        Returns:
            The most central module first; empty if the code is not indexed.
        """
        try:
            queries = self._rooms.code.asking()
        except NotFoundError:
            return []
        knowledge = self._rooms.knowledge_store
        statement = (
            "SELECT k.memory_no, k.kind, k.value, m.type, m.stale_at FROM memory_keys k"
            " JOIN memories m ON m.no = k.memory_no WHERE k.project_no = :project"
            " AND k.kind IN ('file', 'module') AND m.deprecated_at IS NULL"
            f"{knowledge.WALL if knowledge.viewer else ''} LIMIT ?"
        )
        with self._store.database.read() as session:
            rows = self._facets.remembered(
                session,
                "coverage",
                lambda: self._store.rows(session, statement, *knowledge.viewer, _MOST_FILES),
            )
        graph = queries.graph()  # another one as soon as the code is indexed again
        (drawn, of), modules = self._modules
        if drawn is not graph or of is not rows:
            modules = _covered(queries.modules(), rows)
            self._modules = ((graph, rows), modules)
        return modules

    def hosts(self) -> builtins.list[HostLife]:
        """Return the agents that were seen at work, the last one first.

        Returns:
            Each host with its sessions and its last sign of life.
        """
        with self._store.database.read() as session:
            rows = self._store.rows(
                session,
                "SELECT agent, count(*), max(last_event_at), sum(events) FROM behavior_sessions"
                " WHERE project_no = :project GROUP BY agent ORDER BY 3 DESC",
            )
        return [HostLife(str(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in rows]

    def timeline(self, limit: int = 50, offset: int = 0) -> builtins.list[SessionLine]:
        """Return the sessions, the last used first, with what came of each.

        Args:
            limit: The most sessions.
            offset: How many to skip.

        Returns:
            Each session with its outcome, and how much it was told, used and learned.
        """
        check_page(limit, offset)
        with self._store.database.read() as session:
            rows = self._store.rows(
                session,
                "SELECT t.id, t.title, t.kind, t.last_seq, t.tokens, t.updated_at, b.agent,"
                " b.outcome, coalesce(b.steps, 0),"
                f" (SELECT count(nullif(r.is_said, 0)) {_OF_SESSION}),"
                f" (SELECT count(r.used_at) {_OF_SESSION}), (SELECT count(*) FROM memory_keys k"
                " WHERE k.project_no = t.project_no AND k.kind = 'session' AND k.value = t.id)"
                " FROM threads t LEFT JOIN behavior_sessions b ON b.project_no = t.project_no"
                " AND b.session_id = t.id WHERE t.project_no = :project"
                " ORDER BY t.updated_at DESC LIMIT ? OFFSET ?",
                limit,
                offset,
            )
        return [
            SessionLine(
                from_storable(row[0]),
                None if row[1] is None else from_storable(row[1]),
                *row[2:],
            )
            for row in rows
        ]

    def arms(self) -> ArmReport:
        """Return what the arms of the experiment show so far.

        Returns:
            Each arm with its sessions, and how many more are needed before a difference of ten
            points would show.
        """
        good = "('tested', 'committed', 'accepted')"
        with self._store.database.read() as session:
            is_on = bool(
                self._store.number(
                    session, "SELECT has_arms FROM moment_state WHERE project_no = :project"
                )
            )
            rows = self._store.rows(
                session,
                "SELECT s.arm, count(*), sum(CASE WHEN b.outcome IS NOT NULL"
                " AND b.outcome <> 'unknown' THEN 1 ELSE 0 END),"
                f" sum(CASE WHEN b.outcome IN {good} THEN 1 ELSE 0 END)"
                " FROM moment_sessions s LEFT JOIN behavior_sessions b"
                " ON b.project_no = s.project_no AND b.session_id = s.session_id"
                " WHERE s.project_no = :project AND s.arm IS NOT NULL GROUP BY s.arm",
            )
        arms = {str(row[0]): (int(row[1]), int(row[2] or 0), int(row[3] or 0)) for row in rows}
        return arm_report(is_on, arms)

    def window(self, thread_id: str) -> ThreadWindow:
        """Return what fills the window of a thread, and what happens next.

        Args:
            thread_id: The thread.

        Returns:
            Sections and messages with their tokens, the limits and what they call for.

        Raises:
            NotFoundError: If there is no such thread.
        """
        observations = self._rooms.observations
        state = observations.status(thread_id)
        limits = observations.limits()
        plan, reflection = (
            observations.planned(thread_id),
            observations.planned_reflection(thread_id),
        )
        context = self._context().process_input(thread_id)
        late = sum(each.tokens for each in context.sections if each.name in LATE)
        sections = [
            {
                "name": each.name,
                "tokens": each.tokens,
                "isLate": each.name in LATE,
                "text": each.text,
            }
            for each in context.sections
        ]
        steady = sum(each.tokens for each in context.sections) - late
        receipt = context.receipt
        return ThreadWindow(
            thread_id,
            tuple(sections),
            messages=len(context.messages),
            message_tokens=receipt.message_tokens,
            prefix_tokens=steady,
            late_tokens=late,
            tokens=steady + late + receipt.message_tokens,
            left_out=receipt.left_out_messages,
            limits={
                "observeAfter": limits.observe_after,
                "bufferAfter": limits.buffer_after,
                "activateAfter": limits.activate_after,
                "blockAfter": limits.block_after,
                "retain": limits.retain,
                "reflectAfter": limits.reflect_after,
                "showMost": limits.show_most,
            },
            state=state,
            plan={
                **plan._asdict(),
                **{f"reflection_{k}": v for k, v in reflection._asdict().items()},
            },
            notes=receipt.notes,
        )

    def _context(self) -> Processors:
        """Return contexts that start no observation."""
        from smara.prompt.processors import ContextSettings, Processors

        rooms, project = self._rooms, self._project
        return Processors(
            rooms.messages,
            rooms.threads,
            rooms.observations,
            working=rooms.working,
            counter=project.counter,
            clock=project.clock,
            settings=replace(ContextSettings.of(project), is_read_only=True),
        )

    def why_not(self, query: str, record_id: str, limit: int = 20) -> Miss:
        """Return where a search lost a record.

        Args:
            query: What was searched for.
            record_id: The id of a memory, message, observation or task.
            limit: How many hits were shown.

        Returns:
            The stage at which it fell out, or its rank.
        """
        target = self._target(record_id.strip())
        if target is None:
            return Miss(record_id, "unknown", query, limit=limit)
        return trace_miss(self._rooms.search.search, query, record_id, target, limit)

    def _target(self, record_id: str) -> MissTarget | None:
        rooms = self._rooms
        if memory := rooms.memories.find(record_id):
            is_findable = memory.is_active or memory.deprecated_because == "superseded"
            return MissTarget(
                frozenset((memory.id, memory.short_id)),
                "memories",
                searched_text(memory),
                is_findable=is_findable,
            )
        if task := rooms.tasks.find(record_id):
            text = f"{task.title}\n{task.full_description}"
            return MissTarget(frozenset((task.id, task.short_id)), "tasks", text)
        if message := rooms.messages.find(record_id):
            return MissTarget(
                frozenset((message.id,)), "messages", message.content, message.thread_id
            )
        try:
            observation = rooms.observations.get(record_id)
        except NotFoundError:
            return None
        return MissTarget(frozenset((observation.id,)), "observations", observation.text)

    def ask(self, question: str, sources: Collection[str] | None = None) -> Reply:
        """Answer a question from what is remembered, with citations.

        Args:
            question: The question.
            sources: Where to look; everywhere by default.

        Returns:
            What a model wrote, or the best places if there is no model.

        Raises:
            InvalidInputError: If the question is empty or too long.
        """
        answer = self._rooms.search.search(question, _MOST_NOTES, sources=sources)
        hits = answer.hits
        if not hits:
            return Reply(question, "", "none", trace=answer.trace)
        models = self._rooms.models
        if models.is_offline:
            return quote(question, hits)
        # The page is drawn again whenever something changed: the same notes are not paid for twice.
        key = (question, *(hit.content for hit in hits))
        if key not in self._replies:
            reply = write(models, question, hits, _ASK_SECONDS)
            if reply.note:
                return reply
            if len(self._replies) >= _MOST_REPLIES:
                self._replies.clear()
            self._replies[key] = reply
        return self._replies[key]


def _covered(modules: Any, rows: Any) -> list[ModuleCoverage]:
    """Return each module with the memories of its files."""
    folders = {module.path for module in modules}
    files: dict[str, set[str]] = {path: set() for path in folders}
    memories: dict[str, dict[int, tuple[str, bool]]] = {path: {} for path in folders}
    for no, kind, value, type_, stale_at in rows:
        path = from_storable(value)
        place = path if kind == "module" else path.rpartition("/")[0] or "."
        while place not in folders and place not in ("", "."):
            place = place.rpartition("/")[0] or "."
        if place in folders:
            memories[place][no] = (str(type_), stale_at is not None)
            if kind == "file":
                files[place].add(path)
    return [
        ModuleCoverage(
            each.path,
            each.purpose,
            each.files,
            covered=min(each.files, len(files[each.path])),
            memories=len(memories[each.path]),
            traps=sum(type_ in TRAPS for type_, _ in memories[each.path].values()),
            decisions=sum(type_ == "decision" for type_, _ in memories[each.path].values()),
            stale=sum(is_stale for _, is_stale in memories[each.path].values()),
            uses=each.uses,
        )
        for each in modules
    ]


def arm_report(is_on: bool, arms: Mapping[str, tuple[int, int, int]]) -> ArmReport:
    """Return what arms show: sessions, those with an outcome, and good ones.

    With one session in three that ends well, a difference of ten points needs about
    15.7 × 0.33 × 0.67 / 0.01 = 350 sessions with an outcome in each arm.

    >>> arm_report(True, {"control": (40, 30, 10), "full": (600, 400, 133)}).more
    320
    """
    outcomes = {name: counts[1] for name, counts in arms.items()}
    control, full = arms.get("control", (0, 0, 0)), arms.get("full", (0, 0, 0))
    total, good = control[1] + full[1], control[2] + full[2]
    share = good / total if total else 0.5
    needed = max(_LEAST_SESSIONS, math.ceil(_POWER * share * (1 - share) / _POINTS**2 / 10) * 10)
    more = max(0, needed - min(outcomes.get("control", 0), outcomes.get("full", 0)))
    difference = error = None
    if not more and control[1] and full[1]:
        first, second = control[2] / control[1], full[2] / full[1]
        difference = second - first
        error = 1.96 * math.sqrt(first * (1 - first) / control[1] + second * (1 - second) / full[1])
    return ArmReport(is_on, dict(arms), more, difference, error)
