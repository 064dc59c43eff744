"""Condense a record's older observations into a new generation.

The newest observations stay as they are. A reflection is made ahead and buffered, and
activated in one commit without a model. Condensed observations are marked with their
generation and remain searchable. A result that is not smaller is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from smara.core import log
from smara.core.items import grouped
from smara.database.database import Session
from smara.database.leases import Heartbeat, Lease
from smara.database.projects import ProjectContext
from smara.errors import DatabaseError, LeaseLostError, SmaraError
from smara.messages.models import Thread
from smara.messages.store import MessageStore
from smara.observations.buffer import CODE, BufferedReflections
from smara.observations.cycle import LeasedCycle, clean_note, waiting_for
from smara.observations.models import (
    CycleOutcome,
    Note,
    Observation,
    ObservationDraft,
    ObservationFailure,
    RecordKey,
    Reflector,
    ReflectRequest,
)
from smara.observations.store import FailureKey, ObservationStore, StoredRecord
from smara.observations.thresholds import ReflectionPlan, Thresholds, plan_reflection
from smara.secrets import redact

KEPT_OBSERVATIONS = 50
KEPT_MS = 86_400_000
# One reflection takes at most so many times the threshold.
_MOST_AT_ONCE = 2
_WORTH_SHARE = 0.25
_WORTH_A_CALL_TOKENS = 400
_MOST_TASK_CHARACTERS = 2_000
_FIRST_RETRY_MS = 15_000
_MOST_DOUBLINGS = 10
_NOTE_FIELDS = tuple(field.name for field in fields(Note))


Rows = Sequence[tuple[int, Observation]]
"""Observations with their numbers."""


class ReflectJob(NamedTuple):
    """A record as it was, and the observations to condense."""

    place: RecordKey
    record: StoredRecord
    sources: Rows
    is_buffered: bool

    @property
    def generation(self) -> int:
        return self.record.record.generation + 1

    @property
    def tokens(self) -> int:
        return sum(observation.tokens for _, observation in self.sources)


def choose(active: Rows, now_ms: int, limits: Thresholds, is_ahead: bool = False) -> Rows:
    """Choose what is old enough to be condensed.

    The newest fifty stay raw, and what is younger than a day, as long as it is at most four tenths
    of the threshold. ``is_ahead``: the window is smaller by what will have come when it is needed.
    A long backlog is condensed a piece at a time, the oldest first.
    """
    newest_first = sorted(
        active, key=lambda row: (row[1].kind != "reflection", row[1].said_at, row[0]), reverse=True
    )
    room = limits.reflect_ahead_keeps if is_ahead else limits.reflect_keeps
    window: set[int] = set()
    used = 0
    for no, observation in newest_first:
        is_recent = now_ms - observation.said_at < KEPT_MS
        used += observation.tokens
        is_kept = is_recent or len(window) < KEPT_OBSERVATIONS
        if observation.kind == "reflection" or used > room or not is_kept:
            break
        window.add(no)
    chosen: list[tuple[int, Observation]] = []
    used = 0
    for no, observation in active:
        if no not in window:
            used += observation.tokens
            if chosen and used > limits.reflect_after * _MOST_AT_ONCE:
                break
            chosen.append((no, observation))
    return chosen


class ReflectionCycle(LeasedCycle):
    """Condenses the observations of one project's records."""

    LEASE = "reflections"
    FLAG = "isReflecting"

    def __init__(
        self,
        project: ProjectContext,
        store: ObservationStore,
        *,
        reflector: Reflector,
        fallback: Reflector,
        limits: Thresholds,
        owner: str,
    ) -> None:
        super().__init__(project, store, owner)
        self._messages = MessageStore(project.database, project.scope)
        self._buffered = BufferedReflections(store)
        self._reflector = reflector
        self._fallback = fallback
        self._limits = limits

    def planned(self, place: RecordKey) -> ReflectionPlan:
        """Return what the active observations of a place need; start nothing."""
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            # While a failure waits for its time, every step would try in vain.
            if record is None or self._waiting(session, record) is not None:
                return ReflectionPlan(False, False, False)
            tokens = self._store.active_tokens(session, record.no)
            is_near = tokens >= min(self._limits.reflect_ahead, self._limits.reflect_after)
            is_buffered = is_near and self._buffered.find(session, record.no) is not None
        return plan_reflection(tokens, is_buffered, self._limits)

    def reflect(
        self, place: RecordKey, *, is_forced: bool = False, is_buffered: bool = False
    ) -> CycleOutcome:
        """Condense what is old, all of it if forced.

        One that was made ahead comes into force; otherwise one is made now. With ``is_buffered`` it
        is made and kept aside, and nothing that is shown changes. A forced one takes the place of
        one kept aside. A refusal says if trying again can help.
        """

        def work(lease: Lease, _: Heartbeat) -> CycleOutcome:
            try:
                return self._reflect(place, lease, is_forced, is_buffered=is_buffered)
            except LeaseLostError:
                raise
            except SmaraError as error:
                log.warning("reflections.failed", code=error.code)
                return CycleOutcome.failed("reflect", error)

        return self._leased(place, "reflect", work)

    def activate(self, place: RecordKey, *, is_early: bool = False) -> CycleOutcome:
        """Put the reflection made ahead in force, if needed or early.

        One commit behind the fence. One that no longer fits what it stood for is dropped, and the
        outcome says so.
        """
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            if record is None or self._buffered.find(session, record.no) is None:
                return CycleOutcome("activate", True)
            least = self._limits.reflect_after
            is_due = is_early or self._store.active_tokens(session, record.no) >= least
        if not is_due:
            return CycleOutcome("activate", True)
        return self._leased(
            place,
            "activate",
            lambda lease, _: replace(self._put_in_force(place, lease), action="activate"),
        )

    def _reflect(
        self, place: RecordKey, lease: Lease, is_forced: bool, is_buffered: bool
    ) -> CycleOutcome:
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            if record is None:
                return CycleOutcome("reflect", True)
            active = self._store.active(session, record.no)
            waiting = None if is_forced else self._waiting(session, record)
            is_there = self._buffered.find(session, record.no) is not None
        if is_there and not is_forced:
            done = CycleOutcome("reflect", True)
            if not is_buffered:
                done = self._put_in_force(place, lease)
            if done.code != CODE:  # one that had to be dropped is made again, from what is there
                return done
        if waiting is not None:
            return waiting_for(waiting, "reflect")
        sources: Rows = active
        if not is_forced:
            sources = choose(active, self._clock.now_ms(), self._limits, is_ahead=is_buffered)
        job = ReflectJob(place, record, sources, is_buffered=is_buffered)
        is_worth = is_forced or job.tokens >= self._limits.reflect_after * _WORTH_SHARE
        return self._condense(job, lease) if sources and is_worth else CycleOutcome("reflect", True)

    def _condense(self, job: ReflectJob, lease: Lease) -> CycleOutcome:
        """Let the reflector think, and write what it found if that is smaller."""
        rows: list[dict[str, Any]] = []
        tasks: dict[str, tuple[str, str]] = {}
        by_thread = grouped((row.thread_id, row) for _, row in job.sources)
        # Each thread is condensed apart, so that every line stays that of its thread.
        for thread_id, sources in by_thread.items():
            with self._store.database.read() as session:
                thread = self._messages.find_thread(session, thread_id or "")
                thread_no = self._messages.thread_no(session, thread_id or "")
            try:
                draft, method = self._think(
                    job,
                    sources,
                    thread if len(by_thread) > 1 else None,
                    task=(thread and thread.current_task) or "",
                )
            except SmaraError as error:
                self._record_failure(job, error.code, str(error))
                raise
            if thread is not None and draft.current_task:
                tasks[thread.id] = thread.current_task or "", draft.current_task
            times = [row.said_at for row in sources]
            first = min(row.first_seq for row in sources)
            last = max(row.last_seq for row in sources)
            rows += self._rows(
                [clean_note(note, times, first, last=last) for note in draft.notes],
                record_no=job.record.no,
                thread_no=thread_no,
                batch_no=None,
                kind="reflection",
                state="buffered" if job.is_buffered else "active",
                generation=job.generation,
                mode="default",
                taint=" ".join(sorted({each for row in sources for each in row.taint})),
                method=method,
            )
        tokens = sum(row["tokens"] for row in rows)
        if not rows or tokens >= job.tokens:
            why = "The reflection is no smaller than what it stands for; it was not taken."
            self._record_failure(job, "no_progress", why)
            return CycleOutcome("reflect", False, error=why, code="no_progress")
        self._commit(job, rows, lease, tasks)
        log.event(
            "reflections.added",
            merged=len(job.sources),
            notes=len(rows),
            tokens=tokens,
            before=job.tokens,
            state=rows[0]["state"],
        )
        return CycleOutcome("reflect", True, messages=len(job.sources), notes=len(rows))

    def _think(
        self, job: ReflectJob, rows: Sequence[Observation], thread: Thread | None, task: str
    ) -> tuple[ObservationDraft, str]:
        """Let the reflector condense; without the model if the model cannot.

        A thread of few lines among others is condensed by the rules alone.
        """
        reflections = sum(row.tokens for row in rows if row.kind == "reflection")
        settings, tokens = self._project.settings, sum(row.tokens for row in rows)
        target = max(200, min(job.tokens, self._limits.reflect_after) // 2)
        request = ReflectRequest(
            [Note(**{name: getattr(row, name) for name in _NOTE_FIELDS}) for row in rows],
            2 if reflections > self._limits.reflections_limit else 0,
            self._project.timezone,
            flavor=settings.observe_flavor,
            target_tokens=max(1, target * tokens // max(1, job.tokens)),
            instructions=settings.observe_instructions or "",
            conversation="" if thread is None else thread.title or thread.id,
            current_task=task,
        )
        is_small = thread is not None and tokens < _WORTH_A_CALL_TOKENS
        try:
            if is_small:
                return self._fallback.reflect(request), self._fallback.method
            draft = self._reflector.reflect(request)
            return draft, draft.method or self._reflector.method
        except SmaraError as error:
            if not is_small and self._reflector.method != self._fallback.method:
                log.warning("reflections.without_model", code=error.code)
                return self._fallback.reflect(request), self._fallback.method
            if thread is None:
                raise
            # Nothing of it can go: it stays word for word.
            return ObservationDraft(tuple(request.notes)), self._fallback.method

    def _commit(
        self,
        job: ReflectJob,
        rows: Sequence[Mapping[str, Any]],
        lease: Lease,
        tasks: Mapping[str, tuple[str, str]],
    ) -> None:
        """Write the new generation and what it stands for together, behind the fence.

        ``tasks`` are those of threads before and after it; a task that was noted meanwhile stays.
        """
        now, store, record_no = self._clock.now_ms(), self._store, job.record.no
        with store.database.write() as session:
            self._leases.guard(session, lease)
            store.update_record(session, record_no, now, is_changed=False)
            record = store.find_record(session, job.place.lookup_key)
            if record is None or record.record.generation != job.record.record.generation:
                raise LeaseLostError(
                    "Another generation was made meanwhile; nothing was written. Read again and "
                    "go on."
                )
            before = self._buffered.find(session, record_no)
            if before is not None:  # made of less than this one, and of the same generation
                self._buffered.remove(session, before)
            if job.is_buffered:
                self._buffered.add(
                    session, record_no, job.generation, sources=job.sources, rows=rows, now_ms=now
                )
            else:
                store.update_record(session, record_no, now, generation=job.generation)
                numbers = [no for no, _ in job.sources]
                done = store.mark_reflected(session, record_no, numbers, generation=job.generation)
                if done != len(numbers):
                    raise LeaseLostError(
                        "Another process condensed the observations meanwhile; nothing was written."
                    )
                store.add(session, rows)
            store.clear_failure(session, _failure_key(job.record))
            for thread_id, (before_task, task) in tasks.items():
                thread = self._messages.find_thread(session, thread_id)
                if thread is not None and (thread.current_task or "") == before_task:
                    text = redact(task.strip()).text[:_MOST_TASK_CHARACTERS]
                    self._messages.put_outlook(session, thread_id, currentTask=text)

    def _put_in_force(self, place: RecordKey, lease: Lease) -> CycleOutcome:
        """Show what was kept aside in the place of what it stands for, or drop it."""
        now, store = self._clock.now_ms(), self._store
        with store.database.write() as session:
            self._leases.guard(session, lease)
            record = store.find_record(session, place.lookup_key)
            if record is not None:
                store.update_record(session, record.no, now, is_changed=False)
                # Read again: only now no other worker can change it.
                record = store.find_record(session, place.lookup_key)
            buffered = self._buffered.find(session, record.no) if record else None
            if record is None or buffered is None:
                return CycleOutcome("reflect", True)
            is_next = buffered.generation == record.record.generation + 1
            if not is_next or not self._buffered.is_as_it_was(session, buffered):
                error = self._buffered.drop(
                    session, buffered, "what it stood for has been changed or erased", now
                )
                return CycleOutcome("reflect", False, error=error, code=CODE, is_retryable=True)
            store.update_record(session, record.no, now, generation=buffered.generation)
            self._buffered.activate(session, buffered)
            store.clear_failure(session, _failure_key(record))
        log.event(
            "reflections.activated",
            merged=len(buffered.sources),
            notes=buffered.notes,
            tokens=buffered.tokens,
        )
        return CycleOutcome("reflect", True, messages=len(buffered.sources), notes=buffered.notes)

    def _state(self, place: RecordKey) -> dict[str, Any]:
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            buffered = self._buffered.find(session, record.no) if record else None
        return {
            "generation": record.record.generation if record else 0,
            "bufferedGeneration": buffered.generation if buffered else None,
        }

    # what went wrong

    def _waiting(self, session: Session, record: StoredRecord) -> ObservationFailure | None:
        """Return why the next generation is not to be tried yet."""
        failure = self._store.failure(session, _failure_key(record))
        return failure if failure is not None and failure.retry_at > self._clock.now_ms() else None

    def _record_failure(self, job: ReflectJob, code: str, message: str) -> None:
        try:
            with self._store.database.write() as session:
                self._store.put_failure(
                    session,
                    _failure_key(job.record),
                    code=code,
                    message=message,
                    now_ms=self._clock.now_ms(),
                    wait_ms=lambda attempts: _FIRST_RETRY_MS * 2 ** min(attempts, _MOST_DOUBLINGS),
                )
        except DatabaseError as trouble:
            log.warning("reflections.failure_not_recorded", error=trouble.code)


def _failure_key(record: StoredRecord) -> FailureKey:
    """Return the next generation's key; it stands where a message would."""
    return FailureKey(record.no, 0, "reflect", first_seq=record.record.generation + 1)
