"""Observe, reflect and compact the threads of a project.

Observing that must not delay a turn goes to the background thread. Compacting a thread
observes it first, so that its summary is made of observations.
"""

from __future__ import annotations

from collections.abc import Callable

from smara.core.background import Background
from smara.core.scope import require_id
from smara.core.startup.record import dataclass
from smara.core.validate import one_of
from smara.database.projects import ProjectContext
from smara.messages.compaction import CompactionResult, Compactions, OfflineSummarizer
from smara.messages.messages import Messages
from smara.messages.store import MessageStore
from smara.messages.threads import Threads
from smara.observations.cycle import ObservationCycle
from smara.observations.models import (
    MODES,
    AgentMode,
    CycleOutcome,
    RecordKey,
)
from smara.observations.reader import JudgeCode, ObservationReader
from smara.observations.reflection import ReflectionCycle
from smara.observations.store import ObservationStore
from smara.observations.thresholds import (
    ObservationPlan,
    ReflectionPlan,
    Thresholds,
    plan,
)

_OFF = CycleOutcome("observe", False, error="Observing is off or read-only here.", code="read_only")


class Observations(ObservationReader):
    """The observations of one project."""

    def __init__(
        self,
        project: ProjectContext,
        store: ObservationStore,
        messages: MessageStore,
        *,
        threads: Threads,
        cycle: ObservationCycle,
        reflecting: ReflectionCycle,
        background: Background,
        limits_for: Callable[[AgentMode], Thresholds],
        judge_code: JudgeCode | None = None,
    ) -> None:
        super().__init__(
            project, store, messages, threads=threads, cycle=cycle, judge_code=judge_code
        )
        settings = project.settings
        self._reflecting = reflecting
        self._background = background
        self._limits_for = limits_for
        self._is_writing = settings.observe_enabled and not settings.observe_read_only

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

        Args:
            thread_id: The thread.
            mode: How to look, which also sets the thresholds.
            retain_tokens: Tokens of the newest messages that are left for later.
            is_now: True to try again what failed before its time has come.

        Returns:
            The outcome; a refusal says if trying again can help.

        Raises:
            NotFoundError: The project has no such thread.
            InvalidInputError: There is no such mode.
        """
        if not self._is_writing:
            return _OFF
        return self._cycle.observe(
            self.place(thread_id),
            one_of(mode, MODES, "mode"),
            is_buffered=False,
            retain_tokens=retain_tokens,
            is_now=is_now,
        )

    def buffer(
        self, thread_id: str, *, mode: AgentMode = "default", is_now: bool = False
    ) -> CycleOutcome:
        """Observe what is pending, to be shown when it is activated.

        Args:
            thread_id: The thread.
            mode: How to look, which also sets the thresholds.
            is_now: True to try again what failed before its time has come.

        Returns:
            The outcome; a refusal says if trying again can help.

        Raises:
            NotFoundError: The project has no such thread.
            InvalidInputError: There is no such mode.
        """
        if not self._is_writing:
            return _OFF
        return self._cycle.observe(
            self.place(thread_id), one_of(mode, MODES, "mode"), is_buffered=True, is_now=is_now
        )

    def activate(
        self, thread_id: str, *, mode: AgentMode = "default", is_forced: bool = False
    ) -> CycleOutcome:
        """Show what was buffered, but for the newest messages unless forced.

        Args:
            thread_id: The thread.
            mode: How to look, which also sets the thresholds.
            is_forced: True to show all that was buffered.

        Returns:
            The outcome; a refusal says if trying again can help.

        Raises:
            NotFoundError: The project has no such thread.
            InvalidInputError: There is no such mode.
        """
        if not self._is_writing:
            return _OFF
        return self._cycle.activate(
            self.place(thread_id), one_of(mode, MODES, "mode"), is_forced=is_forced
        )

    def reflect(
        self, thread_id: str, *, is_forced: bool = False, is_buffered: bool = False
    ) -> CycleOutcome:
        """Condense older observations into a new generation.

        One that was made ahead is taken.

        With ``is_buffered`` one is made ahead: nothing changes for the agent until it is activated.

        Args:
            thread_id: The thread.
            is_forced: True to condense all observations, old and new.
            is_buffered: True to make one ahead: nothing changes for the agent until it is
                activated.

        Returns:
            The outcome; a refusal says if trying again can help.

        Raises:
            NotFoundError: The project has no such thread.
        """
        if not self._is_writing:
            return CycleOutcome("reflect", False, error=_OFF.error, code=_OFF.code)
        return self._reflecting.reflect(
            self.place(thread_id), is_forced=is_forced, is_buffered=is_buffered
        )

    def activate_reflection(self, thread_id: str, *, is_early: bool = False) -> CycleOutcome:
        """Show a reflection that was made ahead, at its threshold or early.

        Args:
            thread_id: The thread.
            is_early: True to show it before the threshold is reached.

        Returns:
            The outcome; a refusal says if trying again can help.

        Raises:
            NotFoundError: The project has no such thread.
        """
        if not self._is_writing:
            return CycleOutcome("activate", False, error=_OFF.error, code=_OFF.code)
        return self._reflecting.activate(self.place(thread_id), is_early=is_early)

    def end_session(self, thread_id: str, *, mode: AgentMode = "default") -> CycleOutcome:
        """Observe and activate whatever is pending: a session is over.

        The other threads of its resource stay as they are. Its newest messages are shown still,
        should it go on.

        Args:
            thread_id: The thread.
            mode: How to look, which also sets the thresholds.

        Returns:
            The outcome of observing.

        Raises:
            NotFoundError: The project has no such thread.
            InvalidInputError: There is no such mode.
        """
        if not self._is_writing:
            return _OFF
        place, before = self.place(thread_id), self.observed_seq(thread_id)
        outcome = self._cycle.observe(
            place, one_of(mode, MODES, "mode"), is_buffered=False, is_alone=True
        )
        if self.observed_seq(thread_id) > before:
            self._cycle.retain(thread_id, mode)
        self.activate_reflection(thread_id, is_early=True)
        return outcome

    def merge(self, resource_id: str) -> int:
        """Bring observations of single threads into the pool of their resource.

        For when the scope was switched from thread to resource: until then the old records stay
        as they are, and are not shown. A thread that the pool has observed itself is left out.

        Args:
            resource_id: The resource whose threads are brought together.

        Returns:
            The number of observations that were moved.

        Raises:
            InvalidInputError: The id is not one.
        """
        place = RecordKey("resource", require_id(resource_id, "resource_id"), "")
        return self._cycle.merge(place) if self._is_writing else 0

    # in the background

    def limits(self, mode: AgentMode = "default") -> Thresholds:
        """Return the limits in force, in tokens.

        Args:
            mode: How to look, which sets them.

        Raises:
            InvalidInputError: There is no such mode.
        """
        return self._limits_for(one_of(mode, MODES, "mode"))

    def planned(self, thread_id: str, *, mode: AgentMode = "default") -> ObservationPlan:
        """Return what the pending tokens call for; start nothing.

        Args:
            thread_id: The thread.
            mode: How to look, which also sets the thresholds.

        Returns:
            What is due: to buffer, to activate, to wait.

        Raises:
            InvalidInputError: There is no such mode.
        """
        return plan(self.pending(thread_id), self.limits(mode))

    def look_after(self, thread_id: str, *, mode: AgentMode = "default") -> ObservationPlan:
        """Start in the background what the pending tokens call for; never wait.

        Args:
            thread_id: The thread.
            mode: How to look, which also sets the thresholds.

        Returns:
            What is due; all False if observing is off.

        Raises:
            InvalidInputError: There is no such mode.
        """
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
        """Return what the active observations call for; start nothing.

        Args:
            thread_id: The thread.

        Returns:
            The one thing that is due for reflections, if any.

        Raises:
            NotFoundError: The project has no such thread.
        """
        return self._reflecting.planned(self.place(thread_id))

    def is_reflection_due(self, thread_id: str) -> bool:
        """Return True if active observations should be condensed.

        Args:
            thread_id: The thread.

        Returns:
            True if a reflection is to be made or activated now.

        Raises:
            NotFoundError: The project has no such thread.
        """
        reflection = self.planned_reflection(thread_id)
        return reflection.activates or reflection.reflects

    def settled(self, timeout_seconds: float = 30.0) -> bool:
        """Wait until the background has nothing left to do.

        Args:
            timeout_seconds: How long to wait.

        Returns:
            False if something was still running when the time was over.
        """
        return self._background.settled(timeout_seconds)


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
