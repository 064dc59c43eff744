"""Show people what is remembered: one door for those who look around.

Nothing is decided here and nothing is written: counts, coverage, the window of a thread, where a
search lost a record, and answers with their citations are read from the rooms below.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from smara.browse.ask import quote, write
from smara.browse.coverage import Coverage, grouped
from smara.browse.facets import MOST_VALUES, Facets
from smara.browse.health import MemoryHealth, score_health
from smara.browse.miss import MissTarget, trace_miss
from smara.browse.models import (
    KINDS,
    BrowsedMessage,
    DayOfGrowth,
    FacetCount,
    FacetCounts,
    FileSession,
    Kind,
    Miss,
    ModuleCoverage,
    ModuleGroup,
    Reply,
    TestFailure,
    WholeGraph,
    WorkingPage,
)
from smara.browse.sessions import DAY_MS, SessionViews
from smara.core.escape import from_storable, to_storable
from smara.core.validate import check_page, one_of
from smara.errors import NotFoundError
from smara.knowledge.store import searched_text

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
    from smara.prompt.window import ThreadWindow
    from smara.search.search import Search
    from smara.tasks.tasks import Tasks

MOST_NODES = 30_000
_ASK_SECONDS = 30.0
_MOST_NOTES = 10
_MOST_REPLIES = 32


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
    def context(self) -> Processors: ...
    @property
    def threads(self) -> Threads: ...


class Browse(SessionViews):
    """The views of one project that people look at."""

    def __init__(self, project: ProjectContext, rooms: BrowseRooms) -> None:
        super().__init__(project)
        self._rooms = rooms
        self._facets = Facets(self._store, rooms.knowledge_store, project.clock)
        self._replies: dict[Any, Reply] = {}
        self._coverage = Coverage(
            self._store, rooms.knowledge_store, self._facets, lambda: rooms.code.asking()
        )

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
        return self._store.ask(self._facets.count, kind, filters or {})

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
            " AND +m.project_no = k.project_no WHERE k.project_no = :project"
            " AND k.kind = 'module' AND m.deprecated_at IS NULL"
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
        return self._store.ask(
            self._store.number,
            "SELECT count(*) FROM memories m WHERE m.project_no = :project"
            " AND m.last_verified_use_at >= ? AND m.deprecated_at IS NULL"
            f"{knowledge.WALL if knowledge.viewer else ''}",
            since,
            *knowledge.viewer,
        )

    def growth(self, days: int = 30) -> builtins.list[DayOfGrowth]:
        """Return how the memories in force became more and fewer, today last.

        Args:
            days: How many days, at most 366.

        Returns:
            Every day, those without a change too.
        """
        check_page(days)
        knowledge = self._rooms.knowledge_store
        today = self._project.clock.now_ms() // DAY_MS
        first = today - min(days, 366) + 1
        wall = knowledge.WALL if knowledge.viewer else ""

        def count(column: str) -> dict[int, int]:
            statement = (
                f"SELECT m.{column} / {DAY_MS}, count(*) FROM memories m"
                f" WHERE m.project_no = :project AND m.{column} >= ?{wall} GROUP BY 1"
            )
            rows = self._store.rows(session, statement, first * DAY_MS, *knowledge.viewer)
            return {int(row[0]): int(row[1]) for row in rows}

        with self._store.database.read() as session:
            added, retired = self._facets.remembered(
                session, ("growth", first), lambda: (count("created_at"), count("deprecated_at"))
            )
        in_force, found = self._rooms.memories.totals().active, []
        for day in range(today, first - 1, -1):
            came, went = added.get(day, 0), retired.get(day, 0)
            found.append(DayOfGrowth(day * DAY_MS, came, went, in_force))
            in_force += went - came
        return found[::-1]

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

    def health(self) -> MemoryHealth:
        """Score the memory of the project from 0 to 100.

        Returns:
            The score with its parts: what waits for a review, what the code contradicts, and what
            failed in the background.
        """
        totals = self._rooms.memories.totals()
        return score_health(
            active=totals.active,
            to_review=totals.to_review,
            stale=self.facets("memories", {"is_stale": "yes"}).total,
            failures=self.failures(),
        )

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
            (
                " AND s.thread_no = (SELECT t.no FROM threads t WHERE t.project_no = :project"
                " AND t.id = ?)",
                thread_id and to_storable(thread_id),
            ),
            (" AND s.no < ?", before),
        ):
            if value is not None:
                joined += condition
                values.append(value)
        rows = self._store.ask(
            self._store.rows,
            f"SELECT s.no, s.id FROM messages s WHERE s.project_no = :project{joined}"
            " ORDER BY s.no DESC LIMIT ?",
            *values,
            limit,
        )
        found = ((int(no), self._rooms.messages.find(str(name))) for no, name in rows)
        return [BrowsedMessage(no, message) for no, message in found if message is not None]

    def edits(self, path: str, limit: int = 10) -> builtins.list[FileSession]:
        """Return the sessions that changed a file, the last one first.

        Args:
            path: The file, from the root of the repository, with slashes.
            limit: The most sessions.

        Returns:
            Each session with its last change; calls that failed do not count.
        """
        from smara.browse.edits import editing_sessions

        check_page(limit)
        return editing_sessions(self._project, self._rooms.threads, path, limit)

    def test_failures(self, paths: Collection[str], limit: int = 10) -> builtins.list[TestFailure]:
        """Return the tests that failed in sessions, the last failure first.

        Args:
            paths: The files of tests, from the root of the repository, with slashes.
            limit: The most tests.

        Returns:
            Each test with its last error and the message that reports it.
        """
        from smara.browse.edits import failed_in_sessions

        check_page(limit)
        return failed_in_sessions(self._project, paths, limit)

    def working(self, limit: int = 50, offset: int = 0) -> builtins.list[WorkingPage]:
        """Return the pages of working memory, the last changed first.

        Args:
            limit: The most pages.
            offset: How many to skip.

        Returns:
            Where each page is, and its text.
        """
        check_page(limit, offset)
        rows = self._store.ask(
            self._store.rows,
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
        return self._coverage.modules()

    def groups(self, under: str = "") -> builtins.list[ModuleGroup]:
        """Return the modules of the code by folder.

        Args:
            under: Only what is below this folder; everything by default.

        Returns:
            The group of the most central module first; empty if there is no such folder.
        """
        return grouped(self.coverage(), under.strip("/"))

    def code_graph(self, limit: int = MOST_NODES) -> WholeGraph:
        """Return the whole graph of the code, to be drawn.

        Args:
            limit: The most nodes, at most 30,000; the most used ones come first.

        Returns:
            Files, names and who uses what; empty if the code is not indexed.
        """
        return self._coverage.graph(max(1, min(limit, MOST_NODES)))

    def window(self, thread_id: str) -> ThreadWindow:
        """Return what fills the window of a thread, and what happens next.

        Args:
            thread_id: The thread.

        Returns:
            Sections and messages with their tokens, the limits and what they call for.

        Raises:
            NotFoundError: If there is no such thread.
        """
        return self._rooms.context.window(thread_id)

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
