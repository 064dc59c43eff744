"""Offer the observations room: observe, reflect, list and compact.

Reads come from the store. Observing that must not delay a turn goes to the background
thread. Compacting a thread observes it first, so that its summary is made of observations.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smara.core import log
from smara.core.background import Background
from smara.core.freshness import Freshness
from smara.core.scope import require_id
from smara.database.database import Session, marks
from smara.database.projects import ProjectContext
from smara.errors import InvalidInputError, NotFoundError, SmaraError
from smara.messages.compaction import CompactionResult, Compactions, OfflineSummarizer
from smara.messages.messages import Messages
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.messages.threads import Threads
from smara.observations.buffer import BufferedReflections
from smara.observations.cycle import ObservationCycle
from smara.observations.models import (
    MODES,
    STATES,
    AgentMode,
    CycleOutcome,
    Observation,
    ObservationFailure,
    ObservationRecord,
    ObservationWarning,
    RecordKey,
    Scope,
)
from smara.observations.reflection import ReflectionCycle
from smara.observations.render import render, render_by_thread
from smara.observations.retries import OUTAGE
from smara.observations.store import Cursor, FailureKey, ObservationStore
from smara.observations.thresholds import (
    ObservationPlan,
    PendingTokens,
    ReflectionPlan,
    Thresholds,
    plan,
)

_MOST_REMEMBERED = 10_000
_OFF = CycleOutcome("observe", False, error="Observing is off or read-only here.", code="read_only")

JudgeCode = Callable[[Session, Sequence[int]], Mapping[int, Freshness]]


class Observations:
    """The observations of one project."""

    def __init__(
        self,
        project: ProjectContext,
        store: ObservationStore,
        messages: MessageStore,
        *,
        threads: Threads,
        cycle_for: Callable[[AgentMode], ObservationCycle],
        reflecting: ReflectionCycle,
        background: Background,
        limits_for: Callable[[AgentMode], Thresholds],
        judge_code: JudgeCode | None = None,
    ) -> None:
        settings = project.settings
        self._store = store
        self._buffered = BufferedReflections(store)
        self._messages = messages
        self._threads = threads
        self._cycle_for = cycle_for
        self._reflecting = reflecting
        self._background = background
        self._scope: Scope = settings.observe_scope
        self._limits_for = limits_for
        self._timezone = project.timezone
        self._is_writing = settings.observe_enabled and not settings.observe_read_only
        self._judge_code = judge_code
        self._resources: dict[str, str] = {}

    # doing

    def observe(
        self,
        thread_id: str,
        *,
        mode: AgentMode = "default",
        retain_tokens: int = 0,
        is_now: bool = False,
    ) -> CycleOutcome:
        """Observe what is pending now, and show it from now on.

        What failed before is tried again when its time has come, or ``is_now``.
        """
        if not self._is_writing:
            return _OFF
        place = self.place(thread_id)
        return self._cycle_for(check_mode(mode)).observe(
            place, mode, is_buffered=False, retain_tokens=retain_tokens, is_now=is_now
        )

    def buffer(
        self, thread_id: str, *, mode: AgentMode = "default", is_now: bool = False
    ) -> CycleOutcome:
        """Observe what is pending, to be shown when it is activated."""
        if not self._is_writing:
            return _OFF
        return self._cycle_for(check_mode(mode)).observe(
            self.place(thread_id), mode, is_buffered=True, is_now=is_now
        )

    def activate(
        self, thread_id: str, *, mode: AgentMode = "default", is_forced: bool = False
    ) -> CycleOutcome:
        """Show what was buffered, but for the newest messages unless forced."""
        if not self._is_writing:
            return _OFF
        return self._cycle_for(check_mode(mode)).activate(
            self.place(thread_id), is_forced=is_forced
        )

    def reflect(
        self, thread_id: str, *, is_forced: bool = False, is_buffered: bool = False
    ) -> CycleOutcome:
        """Condense older observations into a new generation.

        One that was made ahead is taken.

        With ``is_buffered`` one is made ahead: nothing changes for the agent until it is activated.
        """
        if not self._is_writing:
            return CycleOutcome("reflect", False, error=_OFF.error, code=_OFF.code)
        return self._reflecting.reflect(
            self.place(thread_id), is_forced=is_forced, is_buffered=is_buffered
        )

    def activate_reflection(self, thread_id: str, *, is_early: bool = False) -> CycleOutcome:
        """Show a reflection that was made ahead, at its threshold or early."""
        if not self._is_writing:
            return CycleOutcome("activate", False, error=_OFF.error, code=_OFF.code)
        return self._reflecting.activate(self.place(thread_id), is_early=is_early)

    def end_session(self, thread_id: str, *, mode: AgentMode = "default") -> CycleOutcome:
        """Observe and activate whatever is pending: a session is over."""
        outcome = self.observe(thread_id, mode=mode)
        self.activate_reflection(thread_id, is_early=True)
        return outcome

    def merge(self, resource_id: str) -> int:
        """Bring observations of single threads into the pool of their resource.

        For when the scope was switched from thread to resource: until then the old records stay
        as they are, and are not shown. A thread that the pool has observed itself is left out.
        """
        place = RecordKey("resource", require_id(resource_id, "resource_id"), "")
        return self._cycle_for("default").merge(place) if self._is_writing else 0

    # in the background

    def planned(self, thread_id: str, *, mode: AgentMode = "default") -> ObservationPlan:
        """Return what the pending tokens call for; start nothing."""
        return plan(self.pending(thread_id), self._limits_for(check_mode(mode)))

    def look_after(self, thread_id: str, *, mode: AgentMode = "default") -> ObservationPlan:
        """Start in the background what the pending tokens call for; never wait."""
        plan_now = self.planned(thread_id, mode=mode)
        if not self._is_writing:
            return ObservationPlan(False, False, False)
        if plan_now.buffers:
            self._background.submit(
                f"buffer {thread_id}", lambda: self.buffer(thread_id, mode=mode)
            )
        reflection = self.planned_reflection(thread_id)
        if reflection.buffers or reflection.reflects:
            self._background.submit(
                f"reflect {self.place(thread_id).lookup_key}",
                lambda: self.reflect(thread_id, is_buffered=reflection.buffers),
            )
        return plan_now

    def planned_reflection(self, thread_id: str) -> ReflectionPlan:
        """Return what the active observations call for; start nothing."""
        return self._reflecting.planned(self.place(thread_id))

    def is_reflection_due(self, thread_id: str) -> bool:
        """Return True if active observations should be condensed."""
        reflection = self.planned_reflection(thread_id)
        return reflection.activates or reflection.reflects

    def settled(self, timeout_seconds: float = 30.0) -> bool:
        """Wait until the background has nothing left to do."""
        return self._background.settled(timeout_seconds)

    # asking

    def place(self, thread_id: str) -> RecordKey:
        """Return the place of a thread's observations."""
        resource_id = self._resources.get(thread_id)
        if resource_id is None:
            resource_id = self._threads.get(thread_id).resource_id
            if len(self._resources) >= _MOST_REMEMBERED:
                self._resources.clear()
            self._resources[thread_id] = resource_id  # a thread never changes its resource
        return RecordKey(self._scope, resource_id, thread_id)

    def pending(self, thread_id: str) -> PendingTokens:
        """Count the tokens that no active observation covers."""
        if (
            thread_id not in self._resources
            and self._threads.find(require_id(thread_id, "thread_id")) is None
        ):
            return PendingTokens(0, 0)
        with self._store.database.read() as session:
            return self._cycle_for("default").pending(session, self.place(thread_id))

    def record(self, thread_id: str) -> ObservationRecord | None:
        """Return the record of a thread's scope; None before the first observation."""
        with self._store.database.read() as session:
            found = self._store.find_record(session, self.place(thread_id).lookup_key)
        return found.record if found else None

    def active(self, thread_id: str) -> builtins.list[Observation]:
        """Return what an agent is shown: reflections, then observations, oldest first."""
        with self._store.database.read() as session:
            found = self._store.find_record(session, self.place(thread_id).lookup_key)
            return [row for _, row in self._store.active(session, found.no)] if found else []

    def observed_seq(self, thread_id: str) -> int:
        """Return the last message that active observations stand for."""
        cursor = self._cursor(thread_id)
        return cursor.observed_seq if cursor else 0

    def covered_seq(self, thread_id: str) -> int:
        """Return the last message that any observation stands for, buffered ones too."""
        cursor = self._cursor(thread_id)
        return cursor.covered_seq if cursor else 0

    def _cursor(self, thread_id: str) -> Cursor | None:
        with self._store.database.read() as session:
            record, _ = self._cycle_for("default").cursors(session, self.place(thread_id))
            return self._store.cursor(session, record.no, thread_id) if record else None

    def unobserved_elsewhere(self, thread_id: str, *, limit: int = 20) -> builtins.list[Message]:
        """Return the newest unobserved messages of the resource's other threads."""
        place = self.place(thread_id)
        found: builtins.list[Message] = []
        with self._store.database.read() as session:
            record, _ = self._cycle_for("default").cursors(session, place)
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
        """Render the active observations as text."""
        return self.render(self.active(thread_id), is_marked)

    def render(self, observations: builtins.list[Observation], is_marked: bool = True) -> str:
        """Render observations by date; those of several threads under headings."""
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
        """Return observations, newest first."""
        if state is not None and state not in STATES:
            raise InvalidInputError(f"state must be one of {', '.join(STATES)}; got {state!r}.")
        conditions = [
            ("o.state = ?", state),
            ("o.category = ?", category),
            ("o.priority = ?", priority),
        ]
        if thread_id is not None:
            conditions.append(("h.id = ?", thread_id))
        given = [(condition, value) for condition, value in conditions if value is not None]
        rest = "".join(f" AND {condition}" for condition, _ in given)
        with self._store.database.read() as session:
            rows = self._store.select(
                session,
                f"{rest} ORDER BY o.said_at DESC, o.no DESC LIMIT ? OFFSET ?",
                (*(value for _, value in given), limit, offset),
            )
        return [row for _, row in rows]

    def get(self, observation_id: str) -> Observation:
        """Return an observation.

        Raises:
            NotFoundError: The project has no such observation.
        """
        wanted_id = require_id(observation_id, "observation_id")
        with self._store.database.read() as session:
            rows = self._store.select(session, " AND o.id = ?", (wanted_id,))
        if not rows:
            raise NotFoundError(
                f"There is no observation {wanted_id!r} in this project. `smara observations list` "
                "shows what there is.",
                observation_id=wanted_id,
            )
        return rows[0][1]

    def freshness(self, observations: Iterable[Observation]) -> dict[str, Freshness]:
        """Return how observations stand to the code they name, by id.

        A reading: it changes nothing. Trouble with the code takes no observation away.
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
        """Return the messages an observation stands for, oldest first, by page."""
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
        """Return what extractors found in a thread, newest first."""
        with self._store.database.read() as session:
            return self._store.extracted(session, thread_id, limit)

    def failures(self, *, limit: int = 50) -> builtins.list[ObservationFailure]:
        """Return what went wrong and is tried again or was given up."""
        with self._store.database.read() as session:
            return self._store.failures(session, limit)

    def warnings(self, observation_id: str) -> tuple[str, ...]:
        """Return what was left out where an observation was made, and why."""
        with self._store.database.read() as session:
            return self._store.warnings_of(session, require_id(observation_id, "observation_id"))

    def warned(self, *, limit: int = 50) -> builtins.list[ObservationWarning]:
        """Return where something was left out or done without the model."""
        with self._store.database.read() as session:
            return self._store.warned(session, limit)

    def status(self, thread_id: str) -> dict[str, Any]:
        """Return how far a thread is observed, in numbers.

        ``waiting`` tells of a model that cannot be reached.
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


def check_mode(mode: AgentMode) -> AgentMode:
    """Return a mode if it exists."""
    if mode not in MODES:
        raise InvalidInputError(f"mode must be one of {', '.join(MODES)}; got {mode!r}.")
    return mode


@dataclass(frozen=True, slots=True)
class CompactedThread:
    """The outcome of compacting a thread: summaries, observing, renewed summaries."""

    compacted: CompactionResult
    observed: CycleOutcome
    renewed: int = 0


def compact_thread(
    compactions: Compactions,
    observations: Observations,
    messages: Messages,
    thread_id: str,
    keep: int = 0,
    is_when_due: bool = False,
) -> CompactedThread:
    """Observe what is summarized, summarize it, and renew older summaries."""
    last = compactions.reaches_to(thread_id, keep, is_when_due)
    observed = CycleOutcome("observe", True)
    if last and observations.covered_seq(thread_id) < last:
        # What is behind the last message that is summarized stays as it is.
        behind = messages.stream(thread_id=thread_id, after=last)
        tokens = sum(message.token_count for message in behind)
        observed = observations.observe(thread_id, retain_tokens=tokens)
    if is_when_due:
        done = compactions.compact_when_due(thread_id)
    else:
        done = compactions.compact(thread_id, keep)
    return CompactedThread(done, observed, compactions.renew(thread_id, OfflineSummarizer.method))
