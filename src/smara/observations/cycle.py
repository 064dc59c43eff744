"""Run the observation cycle: observe, buffer, activate, reflect.

The cycle takes a lease, calls the observer outside any transaction, and writes once.
A process that dies midway moves no cursor, so messages are observed exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import to_storable
from smara.core.ids import IdMaker
from smara.core.tokens import TokenCounter
from smara.database.database import Session
from smara.database.leases import Heartbeat, Lease, Leases
from smara.errors import DatabaseError, LeaseLostError, SmaraError
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.observations.buffer import BufferedReflections
from smara.observations.models import (
    AgentMode,
    CycleOutcome,
    Extractor,
    Note,
    ObservationDraft,
    Observer,
    ObserveRequest,
    RecordKey,
    taint_of,
)
from smara.observations.render import render_note
from smara.observations.retries import MOST_ATTEMPTS, FailureLog, JobKey, is_outage
from smara.observations.store import Cursor, ObservationBatch, ObservationStore, StoredRecord
from smara.observations.thresholds import PendingTokens, Thresholds, chunks_to_activate
from smara.secrets import redact, redact_value

LEASE_SECONDS = 60.0
IN_PROGRESS = "Observation already in progress, please retry"
_MOST_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class CycleSettings:
    """How the cycle runs."""

    limits: Thresholds = field(default_factory=Thresholds)
    timezone: str = "UTC"
    flavor: Any = "coding"
    instructions: str = ""
    wants_suggested_response: bool = False
    extractors: Sequence[Extractor] = ()
    most_batch_tokens: int = 30_000
    """One call of the observer sees at most so many tokens of messages (but always one message)."""
    most_waiting_tokens: int = 60_000
    """In an outage so many tokens of a thread wait for the model; more would fall out of the
    agent's sight.
    """


class ObserveJob(NamedTuple):
    """Messages of one thread that are to be observed in one go."""

    record: StoredRecord
    cursor: Cursor
    messages: Sequence[Message]
    tokens: int

    @property
    def first_seq(self) -> int:
        return self.messages[0].seq

    @property
    def last_seq(self) -> int:
        return self.messages[-1].seq

    @property
    def key(self) -> JobKey:
        return JobKey(self.record.no, self.cursor.thread_no, self.first_seq)


class ObservationCycle:
    """Observes the threads of one project."""

    def __init__(
        self,
        store: ObservationStore,
        messages: MessageStore,
        leases: Leases,
        clock: Clock,
        new_id: IdMaker,
        counter: TokenCounter,
        observer: Observer,
        fallback: Observer,
        settings: CycleSettings,
        owner: str,
        known: Callable[[Session, int], str],
        failing: FailureLog | None = None,
    ) -> None:
        self._failing = failing or FailureLog(store, clock)
        self._store = store
        self._messages = messages
        self._leases = leases
        self._clock = clock
        self._new_id = new_id
        self._counter = counter
        self._observer = observer
        self._fallback = fallback
        self._settings = settings
        self._owner = owner
        self._known = known

    # what is pending

    def cursors(
        self, session: Session, place: RecordKey, is_pending_only: bool = True
    ) -> tuple[StoredRecord | None, list[Cursor]]:
        """The record of a place, if there is one, and how far its threads are."""
        record = self._store.find_record(session, place.lookup_key)
        is_thread = place.scope == "thread"
        cursors = self._store.cursors(
            session,
            record.no if record else 0,
            place.thread_id if is_thread else None,
            place.resource_id,
            is_pending_only,
        )
        return record, cursors

    def pending(self, session: Session, place: RecordKey) -> PendingTokens:
        """The tokens that no active observation covers, over all threads of the place."""
        _, cursors = self.cursors(session, place)
        return PendingTokens(
            sum(cursor.tokens - cursor.observed_tokens for cursor in cursors),
            sum(cursor.tokens - cursor.covered_tokens for cursor in cursors),
        )

    # observing

    def observe(
        self,
        place: RecordKey,
        mode: AgentMode,
        *,
        is_buffered: bool,
        retain_tokens: int = 0,
        is_now: bool = False,
    ) -> CycleOutcome:
        """Observe what is pending, the oldest first, until nothing is left but the retained newest
        tokens.

        Buffered observations are not shown yet; otherwise they are active at once. When another
        worker is at it already, an outcome that says so: trying again later can help. What failed
        before waits for its time, unless somebody wants it tried ``is_now``.
        """
        action: Literal["buffer", "observe"] = "buffer" if is_buffered else "observe"
        lease = self._leases.acquire(self._lease_name(place), self._owner, LEASE_SECONDS)
        if lease is None:
            return CycleOutcome(
                action, False, error=IN_PROGRESS, code="in_progress", is_retryable=True
            )
        recovered = self._recovered(lease, place)
        try:
            with Heartbeat(self._leases, lease, LEASE_SECONDS) as beat:
                if not is_buffered:
                    self._activate_all(place, lease)
                done = self._observe_all(
                    place,
                    mode,
                    lease,
                    is_buffered=is_buffered,
                    retain_tokens=retain_tokens,
                    beat=beat,
                    is_now=is_now,
                )
            return CycleOutcome(
                action,
                done.error is None,
                done.messages,
                notes=done.notes,
                error=done.error,
                code=done.code,
                is_retryable=done.is_retryable,
                recovered=recovered,
            )
        except LeaseLostError as error:
            return CycleOutcome(
                action,
                False,
                error=str(error),
                code=error.code,
                is_retryable=True,
                recovered=recovered,
            )
        finally:
            self._release(lease)

    def _observe_all(
        self,
        place: RecordKey,
        mode: AgentMode,
        lease: Lease,
        is_buffered: bool,
        retain_tokens: int,
        beat: Heartbeat,
        is_now: bool,
    ) -> _CycleResult:
        done = _CycleResult()
        for thread_id in self._threads(place):
            while job := self._next_job(
                place, thread_id, retain_tokens, is_first=done.messages == 0
            ):
                beat.check()
                noted = self._observe_job(job, mode, lease, is_buffered=is_buffered, is_now=is_now)
                if not isinstance(noted, int):
                    done.error, done.code, done.is_retryable = noted
                    break
                done.messages += len(job.messages)
                done.notes += noted
        return done

    def _threads(self, place: RecordKey) -> list[str]:
        if place.scope == "thread":
            return [place.thread_id]
        with self._store.database.read() as session:
            return [cursor.thread_id for cursor in self.cursors(session, place)[1]]

    def _next_job(
        self, place: RecordKey, thread_id: str, retain_tokens: int, is_first: bool = True
    ) -> ObserveJob | None:
        """The next messages of a thread, sealed from now on: what arrives later for them is a
        message of its own.
        """
        with self._store.database.write() as session:
            record = self._ensure(session, place)
            # What is added to a message between reading and sealing it would never be observed.
            self._messages.hold_thread(session, thread_id)
            found = self._store.cursors(session, record.no, thread_id, None, True)
            if not found:
                return None
            cursor = found[0]
            budget = cursor.tokens - cursor.covered_tokens - retain_tokens
            if cursor.last_seq <= cursor.covered_seq or (retain_tokens and budget <= 0):
                return None
            batch = self._read(session, cursor, budget if retain_tokens else None, is_first)
            if batch:
                self._messages.seal(session, cursor.thread_no, batch[-1].seq, self._clock.now_ms())
        return (
            ObserveJob(record, cursor, batch, tokens=sum(message.token_count for message in batch))
            if batch
            else None
        )

    def _read(
        self, session: Session, cursor: Cursor, budget: int | None, is_first: bool = True
    ) -> list[Message]:
        """Messages behind the cursor, as many as one call takes; with a budget, only what fits into
        it whole.

        When nothing was observed yet, one message is taken that does not fit, or a giant would
        never be.
        """
        most = self._settings.most_batch_tokens
        batch: list[Message] = []
        used = 0
        after = cursor.covered_seq
        while page := self._messages.between(session, cursor.thread_no, after, 2**62, 200):
            for message in page:
                over = used + message.token_count
                if (batch and over > most) or (
                    budget is not None and over > budget and (batch or not is_first)
                ):
                    return batch
                batch.append(message)
                used = over
            after = page[-1].seq
        return batch

    def _observe_job(
        self, job: ObserveJob, mode: AgentMode, lease: Lease, is_buffered: bool, is_now: bool
    ) -> int | tuple[str, str, bool]:
        """Let the observer think and write what it found; how many notes, or what went wrong."""
        failure, outage = self._failing.found(job.key)
        # Who thinks without a model need not wait for one that is no longer configured.
        is_now = is_now or self._observer.method == self._fallback.method
        is_early = (
            failure is not None and not failure.is_dead and failure.retry_at > self._clock.now_ms()
        )
        if failure is not None and is_early and not is_now:
            return f"waiting to try again: {failure.message}", failure.code, True
        is_dead = failure is not None and (failure.is_dead or failure.attempts >= MOST_ATTEMPTS)
        if outage is not None and not is_dead and not is_now:
            done = self._without_model(job, mode, lease, is_buffered=is_buffered, code=outage.code)
            return (
                (f"waiting to try again: {outage.message}", outage.code, True)
                if done is None
                else done
            )
        observer = self._fallback if is_dead else self._observer
        try:
            draft = observer.observe(self._request(job, mode))
        except SmaraError as error:
            self._failing.record(job.key, error)
            done = (
                self._without_model(job, mode, lease, is_buffered=is_buffered, code=error.code)
                if is_outage(error)
                else None
            )
            return (str(error), error.code, error.is_retryable) if done is None else done
        self._commit(
            job, mode, draft, observer.method, lease, is_buffered, "dead" if is_dead else "done"
        )
        return len(draft.notes)

    def _without_model(
        self, job: ObserveJob, mode: AgentMode, lease: Lease, is_buffered: bool, code: str
    ) -> int | None:
        """In an outage, observe without the model what would fall out of the agent's sight;
        ``None`` while it waits.
        """
        if job.cursor.tokens - job.cursor.covered_tokens <= self._settings.most_waiting_tokens:
            return None
        draft = self._fallback.observe(self._request(job, mode))
        told = f"These messages were observed without the model, which was out of reach ({code})."
        draft = replace(draft, warnings=(told, *draft.warnings))
        self._commit(job, mode, draft, self._fallback.method, lease, is_buffered, "without")
        return len(draft.notes)

    def _request(self, job: ObserveJob, mode: AgentMode) -> ObserveRequest:
        with self._store.database.read() as session:
            known = self._known(session, job.record.no)
            thread = self._messages.find_thread(session, job.cursor.thread_id)
        settings = self._settings
        folder = thread.metadata.get("cwd") if thread is not None else None
        return ObserveRequest(
            job.messages,
            known,
            mode,
            flavor=settings.flavor,
            timezone=settings.timezone,
            instructions=settings.instructions,
            wants_suggested_response=settings.wants_suggested_response,
            extractors=settings.extractors,
            root=folder if isinstance(folder, str) else "",
        )

    def _commit(
        self,
        job: ObserveJob,
        mode: AgentMode,
        draft: ObservationDraft,
        method: str,
        lease: Lease,
        is_buffered: bool,
        how: Literal["done", "dead", "without"],
    ) -> None:
        """The rows and the cursor, together, behind the fence.

        ``how`` it came about: by the observer; without it, after too many bad replies; or
        without it because it was out of reach, which goes on being waited for.
        """
        now = self._clock.now_ms()
        state = "buffered" if is_buffered else "active"
        taint = " ".join(taint_of(job.messages))
        record_no, cursor = job.record.no, job.cursor
        notes = [clean_note(note, job.messages) for note in draft.notes]
        tokens_before = cursor.covered_tokens
        with self._store.database.write() as session:
            self._leases.guard(session, lease)
            if not is_buffered:
                self._store.take_record(session, record_no, now)
            self._expect(session, job)
            batch_no = self._store.add_batch(
                session,
                (
                    record_no,
                    cursor.thread_no,
                    self._new_id(),
                    state,
                    job.first_seq,
                    job.last_seq,
                    job.tokens,
                    mode,
                    method,
                    taint,
                    _said(draft.current_task),
                    _said(draft.suggested_response),
                    _said(draft.thread_title),
                    json.dumps(redact_value(dict(draft.extracted))[0], default=str),
                    now,
                    json.dumps([_said(each) for each in draft.warnings[:_MOST_WARNINGS]]),
                ),
            )
            rows = [
                self._row(
                    note,
                    record_no,
                    cursor.thread_no,
                    batch_no,
                    "observation",
                    state,
                    job.record.record.generation,
                    mode,
                    taint,
                    job.first_seq,
                    job.last_seq,
                    method,
                    now,
                )
                for note in notes
            ]
            self._store.add(session, rows)
            self._store.index(session, [row[3] for row in rows])
            column = "buffered" if is_buffered else "observed"
            self._store.move_cursor(
                session,
                record_no,
                cursor.thread_no,
                column=column,
                seq=job.last_seq,
                tokens=tokens_before + job.tokens,
            )
            if not is_buffered:
                self._store.note_observed(session, record_no, job.tokens, now_ms=now)
                self._tell_thread(
                    session,
                    cursor.thread_id,
                    draft.current_task,
                    response=draft.suggested_response,
                    title=draft.thread_title,
                )
            if how == "done":
                self._failing.overcome(session, job.key)
            elif how == "dead":
                self._failing.bury(session, job.key)
        log.event("observations.added", notes=len(notes), messages=len(job.messages), state=state)

    def _expect(self, session: Session, job: ObserveJob) -> None:
        """The cursor still stands where it stood when the messages were read."""
        found = self._store.cursors(session, job.record.no, job.cursor.thread_id, None, False)
        if not found or found[0].covered_seq != job.cursor.covered_seq:
            raise LeaseLostError(
                "Somebody else observed these messages meanwhile; nothing was written twice. Read "
                "again and go on.",
                thread_id=job.cursor.thread_id,
            )

    def _row(
        self,
        note: Note,
        record_no: int,
        thread_no: int | None,
        batch_no: int | None,
        kind: str,
        state: str,
        generation: int,
        mode: str,
        taint: str,
        first_seq: int,
        last_seq: int,
        method: str,
        now: int,
    ) -> tuple[Any, ...]:
        line = render_note(note, self._settings.timezone)
        return (
            record_no,
            thread_no,
            batch_no,
            self._new_id(),
            kind,
            state,
            generation,
            mode,
            note.priority,
            note.category,
            to_storable(note.text),
            json.dumps(note.details),
            json.dumps(note.files),
            json.dumps(note.lines),
            json.dumps(dict(note.mode_specific), default=str),
            taint,
            note.said_at,
            note.refers_to,
            self._counter.count(line).tokens,
            note.first_seq or first_seq,
            note.last_seq or last_seq,
            method,
            now,
        )

    # activating

    def activate(self, place: RecordKey, *, is_forced: bool = False) -> CycleOutcome:
        """Make buffered observations active, leaving the newest messages raw; all of them when
        forced.
        """
        now = self._clock.now_ms()
        done = _CycleResult()
        with self._store.database.write() as session:
            record, cursors = self.cursors(session, place)
            if record is None or not any(
                cursor.buffered_seq > cursor.observed_seq for cursor in cursors
            ):
                return CycleOutcome("activate", True)
            self._store.take_record(session, record.no, now)
            for cursor in self.cursors(session, place)[
                1
            ]:  # read again: the record is ours only now
                batches = self._store.buffered_batches(session, record.no, cursor.thread_no)
                pending = PendingTokens(
                    cursor.tokens - cursor.observed_tokens, cursor.tokens - cursor.covered_tokens
                )
                count = chunks_to_activate(
                    [batch.message_tokens for batch in batches],
                    pending,
                    self._settings.limits,
                    is_forced=is_forced,
                )
                self._activate(session, record, cursor, batches=batches[:count], done=done, now=now)
        return CycleOutcome("activate", True, done.messages, notes=done.notes)

    def _activate(
        self,
        session: Session,
        record: StoredRecord,
        cursor: Cursor,
        batches: Sequence[ObservationBatch],
        done: _CycleResult,
        now: int,
    ) -> None:
        if not batches:
            return
        done.notes += self._store.activate_batches(session, [batch.no for batch in batches])
        tokens = sum(batch.message_tokens for batch in batches)
        last = batches[-1]
        done.messages += last.last_seq - cursor.observed_seq
        self._store.move_cursor(
            session,
            record.no,
            cursor.thread_no,
            column="observed",
            seq=last.last_seq,
            tokens=cursor.observed_tokens + tokens,
        )
        self._store.note_observed(session, record.no, tokens, now_ms=now)
        self._tell_thread(
            session,
            cursor.thread_id,
            last.current_task,
            response=last.suggested_response,
            title=last.thread_title,
        )

    def _activate_all(self, place: RecordKey, lease: Lease) -> None:
        """What was buffered comes first: the cursor must not step over it."""
        now = self._clock.now_ms()
        with self._store.database.write() as session:
            self._leases.guard(session, lease)
            record, _ = self.cursors(session, place)
            if record is None:
                return
            self._store.take_record(session, record.no, now)
            for cursor in self.cursors(session, place)[
                1
            ]:  # read again: somebody may have activated meanwhile
                batches = self._store.buffered_batches(session, record.no, cursor.thread_no)
                self._activate(
                    session, record, cursor, batches=batches, done=_CycleResult(), now=now
                )

    def merge(self, place: RecordKey) -> int:
        """Move what threads observed on their own into the pool of their resource; how many
        observations.
        """
        now = self._clock.now_ms()
        moved = 0
        with self._store.database.write() as session:
            pool = self._ensure(session, place)
            self._store.take_record(session, pool.no, now)
            newest = pool.record.generation
            self._drop_buffered(session, pool.no, now)  # of a generation that may be taken now
            for record_no, thread_no, generation in self._store.thread_records(
                session, place.resource_id
            ):
                self._store.take_record(session, record_no, now)
                self._drop_buffered(session, record_no, now)
                count = self._store.move_thread(session, thread_no, record_no, to_no=pool.no)
                if count is not None:
                    moved += count
                    newest = max(newest, generation)
            if newest != pool.record.generation:
                self._store.note_reflected(session, pool.no, newest, now_ms=now)
        return moved

    def _drop_buffered(self, session: Session, record_no: int, now: int) -> None:
        ahead = BufferedReflections(self._store)
        if (buffered := ahead.find(session, record_no)) is not None:
            ahead.drop(
                session, buffered, "the observations of threads were brought into one pool", now
            )

    # pieces

    def _ensure(self, session: Session, place: RecordKey) -> StoredRecord:
        found = self._store.find_record(session, place.lookup_key)
        if found is not None:
            return found
        thread_no = (
            self._messages.thread_no(session, place.thread_id) if place.scope == "thread" else None
        )
        return self._store.ensure_record(
            session,
            self._new_id(),
            place.scope,
            resource_id=place.resource_id,
            thread_no=thread_no,
            lookup_key=place.lookup_key,
            now_ms=self._clock.now_ms(),
        )

    def _tell_thread(
        self,
        session: Session,
        thread_id: str,
        current_task: str | None,
        response: str | None,
        title: str | None,
    ) -> None:
        """What the thread itself keeps: its task, the next answer, and a title when it has none."""
        self._messages.hold_thread(
            session, thread_id
        )  # what somebody else puts into it meanwhile must stay
        thread = self._messages.find_thread(session, thread_id)
        if thread is None:
            return
        kept = dict(thread.metadata.get("observations") or {})
        if current_task:
            kept["currentTask"] = current_task
        if response:
            kept["suggestedResponse"] = response
        else:
            kept.pop("suggestedResponse", None)
        metadata = {**thread.metadata, "observations": kept} if kept else dict(thread.metadata)
        new_title = thread.title or (title or None)
        if (metadata, new_title) != (dict(thread.metadata), thread.title):
            self._messages.update_thread(
                session,
                thread_id,
                _said(new_title),
                json.dumps(redact_value(metadata)[0]),
                thread.updated_at,
            )

    def _lease_name(self, place: RecordKey) -> str:
        return f"observations:{self._store.scope.project_no}:{place.lookup_key}"

    def _recovered(self, lease: Lease, place: RecordKey) -> Mapping[str, Any] | None:
        """What a worker that died had left: who it was, and how far things were."""
        if lease.taken_over_from is None:
            return None
        with self._store.database.read() as session:
            record, cursors = self.cursors(session, place, is_pending_only=False)
        state = {
            "threads": {
                cursor.thread_id: {
                    "observedSeq": cursor.observed_seq,
                    "bufferedSeq": cursor.buffered_seq,
                }
                for cursor in cursors
            },
            "generation": record.record.generation if record else 0,
        }
        log.warning("observations.recovered", owner=lease.taken_over_from)
        return {
            "clearedFlags": ["isObserving"],
            "owner": lease.taken_over_from,
            "lastKnownState": state,
        }

    def _release(self, lease: Lease) -> None:
        try:
            self._leases.release(lease)
        except DatabaseError as error:
            log.warning("observations.lease_not_released", error=error.code)  # it expires by itself


@dataclass(slots=True)
class _CycleResult:
    messages: int = 0
    notes: int = 0
    error: str | None = None
    code: str | None = None
    is_retryable: bool = False


def clean_note(note: Note, messages: Sequence[Message]) -> Note:
    """A note as it may be stored: redacted, and within the times and the range of its source."""
    earliest, latest = min(m.created_at for m in messages), max(m.created_at for m in messages)
    first, last = messages[0].seq, messages[-1].seq
    begin = (
        note.first_seq if note.first_seq is not None and first <= note.first_seq <= last else first
    )
    end = note.last_seq if note.last_seq is not None and begin <= note.last_seq <= last else last
    return replace(
        note,
        text=redact(note.text).text,
        details=tuple(redact(each).text for each in note.details),
        files=tuple(redact(each).text for each in note.files),
        said_at=min(max(note.said_at, earliest), latest),
        first_seq=begin,
        last_seq=end,
        mode_specific=redact_value(dict(note.mode_specific))[0],
    )


def _said(text: str | None) -> str | None:
    return (
        None if text is None or not text.strip() else to_storable(redact(text.strip()).text[:2_000])
    )
