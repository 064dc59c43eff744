"""Read the observations of a project: lists, sources, failures, progress.

A reading changes nothing. `Observations` adds what observes and reflects.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smara.core import log
from smara.core.freshness import Freshness
from smara.core.scope import require_id
from smara.core.validate import one_of
from smara.database.database import Session, marks
from smara.database.projects import ProjectContext
from smara.errors import NotFoundError, SmaraError
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.messages.threads import Threads
from smara.observations.buffer import BufferedReflections
from smara.observations.cycle import ObservationCycle
from smara.observations.models import (
    STATES,
    Observation,
    ObservationFailure,
    ObservationRecord,
    ObservationWarning,
    RecordKey,
    Scope,
)
from smara.observations.render import render, render_by_thread
from smara.observations.retries import OUTAGE
from smara.observations.store import Cursor, FailureKey, ObservationStore
from smara.observations.thresholds import PendingTokens

_MOST_REMEMBERED = 10_000

JudgeCode = Callable[[Session, Sequence[int]], Mapping[int, Freshness]]


class ObservationReader:
    """The observations of one project, as they are."""

    def __init__(
        self,
        project: ProjectContext,
        store: ObservationStore,
        messages: MessageStore,
        *,
        threads: Threads,
        cycle: ObservationCycle,
        judge_code: JudgeCode | None = None,
    ) -> None:
        self._store = store
        self._buffered = BufferedReflections(store)
        self._messages = messages
        self._threads = threads
        self._cycle = cycle
        self._scope: Scope = project.settings.observe_scope
        self._timezone = project.timezone
        self._judge_code = judge_code
        self._resources: dict[str, str] = {}

    def place(self, thread_id: str, resource_id: str | None = None) -> RecordKey:
        """Return the place of a thread's observations.

        Args:
            thread_id: The thread.
            resource_id: Whose thread it is, for one that is not stored yet.

        Returns:
            The scope with the ids by which the record is found.

        Raises:
            NotFoundError: The project has no such thread.
        """
        resource_id = resource_id or self._resources.get(thread_id)
        if resource_id is None:
            resource_id = self._threads.get(thread_id).resource_id
            if len(self._resources) >= _MOST_REMEMBERED:
                self._resources.clear()
            self._resources[thread_id] = resource_id  # a thread never changes its resource
        return RecordKey(self._scope, resource_id, thread_id)

    def pending(self, thread_id: str) -> PendingTokens:
        """Count the tokens that no active observation covers.

        Args:
            thread_id: The thread.

        Returns:
            All pending tokens, and those that are not buffered either; 0 for an unknown thread.

        Raises:
            InvalidInputError: The id is not one.
        """
        if (
            thread_id not in self._resources
            and self._threads.find(require_id(thread_id, "thread_id")) is None
        ):
            return PendingTokens(0, 0)
        return self._store.ask(self._cycle.pending, self.place(thread_id))

    def record(self, thread_id: str, resource_id: str | None = None) -> ObservationRecord | None:
        """Return the record of a thread's scope; None before the first observation.

        Args:
            thread_id: The thread.
            resource_id: Whose thread it is, for one that is not stored yet.

        Returns:
            The record with its version, its generation and its times.

        Raises:
            NotFoundError: The project has no such thread.
        """
        found = self._store.ask(
            self._store.find_record, self.place(thread_id, resource_id).lookup_key
        )
        return found.record if found else None

    def active(self, thread_id: str, resource_id: str | None = None) -> builtins.list[Observation]:
        """Return what an agent is shown: reflections, then observations, oldest first.

        Args:
            thread_id: The thread.
            resource_id: Whose thread it is, for one that is not stored yet.

        Returns:
            The observations.

        Raises:
            NotFoundError: The project has no such thread.
        """
        with self._store.database.read() as session:
            found = self._store.find_record(session, self.place(thread_id, resource_id).lookup_key)
            return [row for _, row in self._store.active(session, found.no)] if found else []

    def observed_seq(self, thread_id: str) -> int:
        """Return the last message that active observations stand for.

        Args:
            thread_id: The thread.

        Returns:
            The number of the message; 0 before the first observation.

        Raises:
            NotFoundError: The project has no such thread.
        """
        cursor = self._cursor(thread_id)
        return cursor.observed_seq if cursor else 0

    def covered_seq(self, thread_id: str) -> int:
        """Return the last message that any observation stands for, buffered ones too.

        Args:
            thread_id: The thread.

        Returns:
            The number of the message; 0 before the first observation.

        Raises:
            NotFoundError: The project has no such thread.
        """
        cursor = self._cursor(thread_id)
        return cursor.covered_seq if cursor else 0

    def _cursor(self, thread_id: str) -> Cursor | None:
        with self._store.database.read() as session:
            record, _ = self._cycle.cursors(session, self.place(thread_id))
            return self._store.cursor(session, record.no, thread_id) if record else None

    def unobserved_elsewhere(
        self, thread_id: str, resource_id: str | None = None, *, limit: int = 20
    ) -> builtins.list[Message]:
        """Return the newest unobserved messages of the resource's other threads.

        Args:
            thread_id: The thread.
            resource_id: Whose thread it is, for one that is not stored yet.
            limit: At most so many messages.

        Returns:
            The messages, oldest first.

        Raises:
            NotFoundError: The project has no such thread.
        """
        place = self.place(thread_id, resource_id)
        found: builtins.list[Message] = []
        with self._store.database.read() as session:
            record, _ = self._cycle.cursors(session, place)
            cursors = self._store.cursors(
                session,
                record.no if record else 0,
                None,
                resource_id=place.resource_id,
                is_pending_only=True,
            )
            for cursor in cursors[-limit:]:
                if cursor.thread_id != thread_id:
                    found += self._messages.between(
                        session,
                        cursor.thread_no,
                        cursor.observed_seq,
                        2**62,
                        limit,
                        newest_first=True,
                    )
        return sorted(found, key=lambda message: message.created_at)[-limit:]

    def rendered(self, thread_id: str, is_marked: bool = True) -> str:
        """Render the active observations as text.

        Args:
            thread_id: The thread.
            is_marked: False to leave the marks of priority out, but for the high ones.

        Returns:
            The text; empty without observations.

        Raises:
            NotFoundError: The project has no such thread.
        """
        return self.render(self.active(thread_id), is_marked)

    def render(self, observations: builtins.list[Observation], is_marked: bool = True) -> str:
        """Render observations by date; those of several threads under headings.

        Args:
            observations: The observations, in the order in which they are to stand.
            is_marked: False to leave the marks of priority out, but for the high ones.

        Returns:
            The text; empty without observations.
        """
        if self._scope == "resource":
            return render_by_thread(observations, self._timezone, is_marked)
        return render(observations, self._timezone, is_marked)

    def list(
        self,
        *,
        thread_id: str | None = None,
        state: str | None = None,
        category: str | None = None,
        priority: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> builtins.list[Observation]:
        """Return observations, newest first.

        Args:
            thread_id: Only those of this thread.
            state: Only ``buffered``, ``active`` or ``reflected`` ones.
            category: Only those of this category.
            priority: Only those of this priority.
            limit: At most so many.
            offset: How many to skip.

        Returns:
            One page of observations.

        Raises:
            InvalidInputError: There is no such state.
        """
        if state is not None:
            one_of(state, STATES, "state")
        conditions = [
            ("o.state = ?", state),
            ("o.category = ?", category),
            ("o.priority = ?", priority),
            (
                "o.thread_no = (SELECT t.no FROM threads t WHERE t.project_no = :project"
                " AND t.id = ?)",
                thread_id,
            ),
        ]
        given = [(condition, value) for condition, value in conditions if value is not None]
        rest = "".join(f" AND {condition}" for condition, _ in given)
        rows = self._store.ask(
            self._store.select,
            # Without the sign an index by time would be walked for the few of a thread.
            f"{rest} ORDER BY {'+' if thread_id else ''}o.said_at DESC, o.no DESC LIMIT ? OFFSET ?",
            (*(value for _, value in given), limit, offset),
        )
        return [row for _, row in rows]

    def get(self, observation_id: str) -> Observation:
        """Return an observation.

        Args:
            observation_id: The id of the observation, or the short one of a line.

        Returns:
            The observation, whatever its state.

        Raises:
            NotFoundError: The project has no such observation, or several are meant.
        """
        wanted_id = require_id(observation_id, "observation_id")
        kind, _, end = wanted_id.rpartition("-")
        where, value = ("substr(o.id, 29)", end) if kind == "o" else ("o.id", wanted_id)
        rows = self._store.ask(self._store.select, f" AND {where} = ?", (value,))
        if len(rows) != 1:
            raise NotFoundError(
                f"There is no observation {wanted_id!r} in this project. `smara observations list` "
                "shows what there is.",
                observation_id=wanted_id,
            )
        return rows[0][1]

    def freshness(self, observations: Iterable[Observation]) -> dict[str, Freshness]:
        """Return how observations stand to the code they name, by id.

        A reading: it changes nothing. Trouble with the code takes no observation away.

        Args:
            observations: The observations to judge.

        Returns:
            Their freshness by id; those that name no code are left out.
        """
        ids = [each.id for each in observations]
        if self._judge_code is None or not ids:
            return {}
        with self._store.database.read() as session:
            id_of = {
                no: each.id
                for no, each in self._store.select(
                    session, f" AND o.id IN ({marks(len(ids))})", ids
                )
            }
            try:
                return {
                    id_of[no]: found for no, found in self._judge_code(session, list(id_of)).items()
                }
            except (SmaraError, OSError) as error:
                log.warning("observations.code_not_judged", error=str(error))
                return {}

    def why(
        self, observation_id: str, *, limit: int = 20, offset: int = 0
    ) -> builtins.list[Message]:
        """Return the messages an observation stands for, oldest first, by page.

        Args:
            observation_id: The id of the observation.
            limit: At most so many messages.
            offset: How many to skip.

        Returns:
            One page of messages.

        Raises:
            NotFoundError: The project has no such observation.
        """
        found = self.get(observation_id)
        with self._store.database.read() as session:
            sources = {0: found}
            if found.thread_id is None:  # what a reflection over several threads stands for
                rows = (
                    self._buffered.sources_of(session, found.id)
                    if found.state == "buffered"
                    else self._store.merged(session, found.id, found.generation)
                )
                sources = dict(rows)
                for _ in range(found.generation):  # and what it condensed again
                    again = {
                        row.generation
                        for _, row in rows
                        if row.kind == "reflection" and row.thread_id is None
                    }
                    rows = [
                        row
                        for generation in sorted(again)
                        for row in self._store.merged(session, found.id, generation)
                    ]
                    sources.update(rows)
            messages: dict[str, Message] = {}
            for _, source in sorted(sources.items(), key=lambda row: (row[1].said_at, row[0])):
                no = (
                    self._messages.thread_no(session, source.thread_id)
                    if source.thread_id
                    else None
                )
                left = offset + limit - len(messages)
                if no is not None and left > 0:
                    page = self._messages.between(
                        session, no, source.first_seq - 1, source.last_seq + 1, left
                    )
                    messages.update((message.id, message) for message in page)
        return builtins.list(messages.values())[offset : offset + limit]

    def extracted(self, thread_id: str, *, limit: int = 20) -> builtins.list[dict[str, Any]]:
        """Return what extractors found in a thread, newest first.

        Args:
            thread_id: The thread.
            limit: At most so many batches.

        Returns:
            The values of each batch by the name of their extractor.
        """
        return self._store.ask(self._store.extracted, thread_id, limit)

    def failures(self, *, limit: int = 50) -> builtins.list[ObservationFailure]:
        """Return what went wrong and is tried again or was given up.

        Args:
            limit: At most so many.

        Returns:
            The failures, newest first.
        """
        return self._store.ask(self._store.failures, limit)

    def warnings(self, observation_id: str) -> tuple[str, ...]:
        """Return what was left out where an observation was made, and why.

        Args:
            observation_id: The id of the observation.

        Returns:
            One sentence for each omission.

        Raises:
            InvalidInputError: The id is not one.
        """
        return self._store.ask(
            self._store.warnings_of, require_id(observation_id, "observation_id")
        )

    def warned(self, *, limit: int = 50) -> builtins.list[ObservationWarning]:
        """Return where something was left out or done without the model.

        Args:
            limit: At most so many.

        Returns:
            The warnings by run of messages, newest first.
        """
        return self._store.ask(self._store.warned, limit)

    def status(self, thread_id: str) -> dict[str, Any]:
        """Return how far a thread is observed, in numbers.

        ``waiting`` tells of a model that cannot be reached.

        Args:
            thread_id: The thread.

        Returns:
            The numbers by name, as every door shows them.

        Raises:
            NotFoundError: The project has no such thread.
        """
        pending = self.pending(thread_id)
        outage = ahead = None
        tokens = 0
        with self._store.database.read() as session:
            found = self._store.find_record(session, self.place(thread_id).lookup_key)
            thread_no = self._messages.thread_no(session, thread_id)
            if found is not None:
                tokens = self._store.active_tokens(session, found.no)
                ahead = self._buffered.find(session, found.no)
                key = FailureKey(found.no, thread_no or 0, OUTAGE, first_seq=0)
                outage = self._store.failure(session, key)
        record = found.record if found else None
        return {
            "scope": self._scope,
            "pendingTokens": pending.tokens,
            "bufferedTokens": pending.buffered,
            "observationTokens": tokens,
            "bufferedReflectionTokens": ahead.tokens if ahead else 0,
            "generation": record.generation if record else 0,
            "observedTokens": record.observed_tokens if record else 0,
            "lastObservedAt": record.last_observed_at if record else None,
            "lastReflectedAt": record.last_reflected_at if record else None,
            "waiting": {
                "code": outage.code,
                "message": outage.message,
                "attempts": outage.attempts,
                "failedAt": outage.failed_at,
                "retryAt": outage.retry_at,
            }
            if outage
            else None,
        }
