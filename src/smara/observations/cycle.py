"""Run the observation cycle: observe, buffer, activate.

The cycle takes a lease, calls the observer outside any transaction, and writes once.
A process that dies midway moves no cursor, so messages are observed exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

from smara.core import log
from smara.core.escape import to_storable
from smara.database.database import Session
from smara.database.leases import Heartbeat, Lease
from smara.database.projects import ProjectContext
from smara.errors import LeaseLostError, SmaraError
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.observations.buffer import BufferedReflections
from smara.observations.models import (
    AgentMode,
    CycleOutcome,
    Extractor,
    Note,
    ObservationDraft,
    ObservationFailure,
    Observer,
    ObserveRequest,
    RecordKey,
    taint_of,
)
from smara.observations.render import render, render_note
from smara.observations.retries import MOST_ATTEMPTS, FailureLog, Outage, is_outage
from smara.observations.store import (
    Cursor,
    FailureKey,
    ObservationStore,
    StoredRecord,
)
from smara.observations.thresholds import (
    PendingTokens,
    Thresholds,
    chunk_size,
    chunks_to_activate,
)
from smara.secrets import redact, redact_value

LEASE_SECONDS = 60.0
_MOST_WARNINGS = 20
# So many of the newest observations an observer is shown, to repeat none.
_MOST_KNOWN = 40


class LeasedCycle:
    """A cycle that works on a record under a lease."""

    LEASE: ClassVar[str]
    """What its leases and log events are named after: ``observations``."""
    FLAG: ClassVar[str]
    """What a crashed worker seems to be doing: ``isObserving``."""

    def __init__(self, project: ProjectContext, store: ObservationStore, owner: str) -> None:
        self._project = project
        self._clock = project.clock
        self._store = store
        self._leases = project.leases
        self._owner = owner

    def _leased(
        self,
        place: RecordKey,
        action: Literal["observe", "buffer", "reflect", "activate"],
        work: Callable[[Lease, Heartbeat], CycleOutcome],
    ) -> CycleOutcome:
        """Do work under the lease of a place; a refusal says if trying again can help."""
        name = f"{self.LEASE}:{self._store.scope.project_no}:{place.lookup_key}"
        lease = self._leases.acquire(name, self._owner, LEASE_SECONDS)
        if lease is None:
            error = f"{self.LEASE.capitalize()[:-1]} already in progress, please retry"
            return CycleOutcome(action, False, error=error, code="in_progress", is_retryable=True)
        recovered: Mapping[str, Any] | None = None
        if lease.taken_over_from is not None:
            log.warning(f"{self.LEASE}.recovered", owner=lease.taken_over_from)
            recovered = {
                "clearedFlags": [self.FLAG],
                "owner": lease.taken_over_from,
                "lastKnownState": self._state(place),
            }
        try:
            with self._leases.hold(lease, LEASE_SECONDS) as beat:
                outcome = work(lease, beat)
        except LeaseLostError as error:
            outcome = CycleOutcome(
                action, False, error=str(error), code=error.code, is_retryable=True
            )
        return replace(outcome, recovered=recovered)

    def _state(self, place: RecordKey) -> dict[str, Any]:
        """Return how far things were when a worker died."""
        raise NotImplementedError

    def _rows(self, notes: Sequence[Note], **columns: Any) -> list[dict[str, Any]]:
        """Return the rows of notes; the columns are what they have in common."""
        timezone, count = self._project.timezone, self._project.counter.count
        return [
            {
                **columns,
                "id": self._project.new_id(),
                "priority": note.priority,
                "category": note.category,
                "text": to_storable(note.text),
                "details": json.dumps(note.details),
                "files": json.dumps(note.files),
                "lines": json.dumps(note.lines),
                "mode_specific": json.dumps(dict(note.mode_specific), default=str),
                "said_at": note.said_at,
                "refers_to": note.refers_to,
                "tokens": count(render_note(note, timezone)).tokens,
                "first_seq": note.first_seq,
                "last_seq": note.last_seq,
                "created_at": self._clock.now_ms(),
            }
            for note in notes
        ]


class ObserveTurn(NamedTuple):
    """One run of the observer over a place."""

    mode: AgentMode
    lease: Lease
    is_buffered: bool
    is_now: bool


class ObserveJob(NamedTuple):
    """Messages of one thread that are to be observed in one go."""

    record: StoredRecord
    cursor: Cursor
    messages: Sequence[Message]

    @property
    def tokens(self) -> int:
        return sum(message.token_count for message in self.messages)

    @property
    def key(self) -> FailureKey:
        """The job among the failures."""
        return FailureKey(
            self.record.no, self.cursor.thread_no, "observe", first_seq=self.messages[0].seq
        )


class ObservationCycle(LeasedCycle):
    """Observes the threads of one project."""

    LEASE = "observations"
    FLAG = "isObserving"

    def __init__(
        self,
        project: ProjectContext,
        store: ObservationStore,
        messages: MessageStore,
        *,
        observer: Observer,
        fallback: Observer,
        limits_for: Callable[[AgentMode], Thresholds],
        failures: FailureLog,
        owner: str,
        extractors: Sequence[Extractor] = (),
    ) -> None:
        super().__init__(project, store, owner)
        self._messages = messages
        self._observer = observer
        self._fallback = fallback
        self._limits_for = limits_for
        self._failures = failures
        self._extractors = extractors

    # what is pending

    def cursors(
        self, session: Session, place: RecordKey, is_pending_only: bool = True
    ) -> tuple[StoredRecord | None, list[Cursor]]:
        """Return the record of a place, and the cursors of its threads."""
        record = self._store.find_record(session, place.lookup_key)
        cursors = self._store.cursors(
            session,
            record.no if record else 0,
            place.thread_id if place.scope == "thread" else None,
            resource_id=place.resource_id,
            is_pending_only=is_pending_only,
        )
        return record, cursors

    def pending(self, session: Session, place: RecordKey) -> PendingTokens:
        """Count the tokens that no active observation covers, over all threads."""
        _, cursors = self.cursors(session, place)
        return PendingTokens(
            sum(cursor.tokens - cursor.observed_tokens for cursor in cursors),
            sum(cursor.tokens - cursor.covered_tokens for cursor in cursors),
        )

    def _state(self, place: RecordKey) -> dict[str, Any]:
        record, cursors = self._store.ask(self.cursors, place, is_pending_only=False)
        return {
            "threads": {
                cursor.thread_id: {
                    "observedSeq": cursor.observed_seq,
                    "bufferedSeq": cursor.buffered_seq,
                }
                for cursor in cursors
            },
            "generation": record.record.generation if record else 0,
        }

    # observing

    def observe(
        self,
        place: RecordKey,
        mode: AgentMode,
        *,
        is_buffered: bool,
        retain_tokens: int = 0,
        is_now: bool = False,
        is_alone: bool = False,
    ) -> CycleOutcome:
        """Observe what is pending, oldest first, but for the retained tokens.

        Buffered observations are not shown yet; otherwise they are active at once. If another
        worker is at it already, the outcome says so: trying again later can help. What failed
        before waits for its time, unless ``is_now``. ``is_alone`` leaves the other threads of a
        resource as they are.
        """
        action: Literal["buffer", "observe"] = "buffer" if is_buffered else "observe"

        def work(lease: Lease, beat: Heartbeat) -> CycleOutcome:
            turn = ObserveTurn(mode, lease, is_buffered, is_now=is_now)
            if not is_buffered:
                self._activate_all(place, lease, is_alone)
            threads = [place.thread_id]
            if place.scope == "resource" and not is_alone:
                threads = [cursor.thread_id for cursor in self._store.ask(self.cursors, place)[1]]
            done = CycleOutcome(action, True)
            for thread_id in threads:
                while job := self._next_job(
                    place,
                    thread_id,
                    retain_tokens,
                    is_first=done.messages == 0,
                    turn=turn,
                ):
                    beat.check()
                    step = self._observe_job(job, turn)
                    if not step.success:
                        done = replace(
                            step, action=action, messages=done.messages, notes=done.notes
                        )
                        break
                    done = replace(
                        done,
                        messages=done.messages + len(job.messages),
                        notes=done.notes + step.notes,
                    )
            return done

        return self._leased(place, action, work)

    def _next_job(
        self,
        place: RecordKey,
        thread_id: str,
        retain_tokens: int,
        *,
        is_first: bool,
        turn: ObserveTurn,
    ) -> ObserveJob | None:
        """Return the next messages of a thread, sealed from now on.

        What arrives later for a sealed message is a message of its own. With tokens to retain,
        only messages that fit whole before them are taken; but the first may be a giant.
        """
        with self._store.database.write() as session:
            record = self._ensure(session, place)
            # What is added to a message between reading and sealing it would never be observed.
            self._messages.hold_thread(session, thread_id)
            cursor = self._store.cursor(session, record.no, thread_id)
            if cursor is None or cursor.last_seq <= cursor.covered_seq:
                return None
            waiting, limits = cursor.tokens - cursor.covered_tokens, self._limits_for(turn.mode)
            budget = waiting - retain_tokens
            if retain_tokens and budget <= 0:
                return None
            most = chunk_size(waiting, limits) if turn.is_buffered else limits.observe_after
            batch: list[Message] = []
            used, after, is_full = 0, cursor.covered_seq, False
            while not is_full and (
                page := self._messages.between(session, cursor.thread_no, after, 2**62, 200)
            ):
                for message in page:
                    used += message.token_count
                    is_over = bool(retain_tokens) and used > budget
                    is_full = (bool(batch) and used > most) or (
                        is_over and (bool(batch) or not is_first)
                    )
                    if is_full:
                        break
                    batch.append(message)
                after = page[-1].seq
            if not batch:
                return None
            self._messages.seal(session, cursor.thread_no, batch[-1].seq, self._clock.now_ms())
        return ObserveJob(record, cursor, batch)

    def _observe_job(self, job: ObserveJob, turn: ObserveTurn) -> CycleOutcome:
        """Let the observer think, and write what it found."""
        failure, outage = self._failures.look_up(job.key)
        is_dead = failure is not None and (failure.is_dead or failure.attempts >= MOST_ATTEMPTS)
        # An observer without a model need not wait for one that is no longer configured.
        if not (turn.is_now or self._observer.method == self._fallback.method):
            now = self._clock.now_ms()
            if failure is not None and not failure.is_dead and failure.retry_at > now:
                return waiting_for(failure, "observe")
            if outage is not None and not is_dead:
                done = self._without_model(job, turn, outage.code)
                return done or waiting_for(outage, "observe")
        observer = self._fallback if is_dead else self._observer
        try:
            draft = observer.observe(self._request(job, turn.mode))
        except SmaraError as error:
            self._failures.record(job.key, error)
            done = self._without_model(job, turn, error.code) if is_outage(error) else None
            return done or CycleOutcome.failed("observe", error)
        method = draft.method or observer.method
        return self._commit(job, turn, draft, method, how="dead" if is_dead else "done")

    def _without_model(self, job: ObserveJob, turn: ObserveTurn, code: str) -> CycleOutcome | None:
        """In an outage, observe what would fall out of sight; None while it can wait."""
        waiting = job.cursor.tokens - job.cursor.covered_tokens
        if waiting <= 2 * self._project.settings.observe_after_tokens:
            return None
        draft = self._fallback.observe(self._request(job, turn.mode))
        why = f"These messages were observed without the model, which was out of reach ({code})."
        draft = replace(draft, warnings=(why, *draft.warnings))
        return self._commit(job, turn, draft, self._fallback.method, how="without")

    def _request(self, job: ObserveJob, mode: AgentMode) -> ObserveRequest:
        settings, timezone = self._project.settings, self._project.timezone
        with self._store.database.read() as session:
            newest = self._store.newest(session, job.record.no, _MOST_KNOWN)
            thread = self._messages.find_thread(session, job.cursor.thread_id)
        folder = thread.metadata.get("cwd") if thread is not None else None
        return ObserveRequest(
            job.messages,
            render(newest, timezone),
            mode,
            flavor=settings.observe_flavor,
            timezone=timezone,
            instructions=settings.observe_instructions or "",
            wants_suggested_response=settings.suggest_response,
            extractors=self._extractors,
            root=folder if isinstance(folder, str) else "",
            current_task=(thread and thread.current_task) or "",
        )

    def _commit(
        self,
        job: ObserveJob,
        turn: ObserveTurn,
        draft: ObservationDraft,
        method: str,
        *,
        how: Literal["done", "dead", "without"],
    ) -> CycleOutcome:
        """Write the rows and the cursor together, behind the fence.

        ``how`` it came about: by the observer; without it, after too many bad replies; or
        without it because it was out of reach, which goes on being waited for.
        """
        now, store = self._clock.now_ms(), self._store
        record_no, cursor = job.record.no, job.cursor
        first, last = job.messages[0].seq, job.messages[-1].seq
        times = [message.created_at for message in job.messages]
        notes = [clean_note(note, times, first, last=last) for note in draft.notes]
        batch = {
            "record_no": record_no,
            "thread_no": cursor.thread_no,
            "state": "buffered" if turn.is_buffered else "active",
            "mode": turn.mode,
            "method": method,
            "taint": " ".join(taint_of(job.messages)),
        }
        with store.database.write() as session:
            self._leases.guard(session, turn.lease)
            if not turn.is_buffered:
                store.update_record(session, record_no, now, observed_tokens=job.tokens)
            self._expect(session, job)
            batch_no = store.add_batch(
                session,
                **batch,
                id=self._project.new_id(),
                first_seq=first,
                last_seq=last,
                message_tokens=job.tokens,
                current_task=_storable(draft.current_task),
                suggested_response=_storable(draft.suggested_response),
                thread_title=_storable(draft.thread_title),
                extracted=json.dumps(redact_value(dict(draft.extracted))[0], default=str),
                warnings=json.dumps(list(map(_storable, draft.warnings[:_MOST_WARNINGS]))),
                created_at=now,
            )
            generation = job.record.record.generation
            rows = self._rows(
                notes, **batch, batch_no=batch_no, kind="observation", generation=generation
            )
            store.add(session, rows)
            store.move_cursor(
                session,
                record_no,
                cursor.thread_no,
                column="buffered" if turn.is_buffered else "observed",
                seq=last,
                tokens=cursor.covered_tokens + job.tokens,
            )
            # At once, so that a thread's task is never more than one chunk behind.
            self._update_thread(session, cursor.thread_id, draft, last)
            if not turn.is_buffered:
                self._messages.put_outlook(session, cursor.thread_id, rawAfter=None)
            if how == "done":
                self._failures.overcome(session, job.key)
            elif how == "dead":
                store.bury_failure(session, job.key)
        log.event(
            "observations.added",
            notes=len(notes),
            messages=len(job.messages),
            state=batch["state"],
        )
        return CycleOutcome("observe", True, notes=len(notes))

    def _expect(self, session: Session, job: ObserveJob) -> None:
        """Refuse to go on if the cursor has moved since the messages were read."""
        cursor = self._store.cursor(session, job.record.no, job.cursor.thread_id)
        if cursor is None or cursor.covered_seq != job.cursor.covered_seq:
            raise LeaseLostError(
                "Another process observed these messages meanwhile; nothing was written twice. "
                "Read again and go on.",
                thread_id=job.cursor.thread_id,
            )

    # activating

    def activate(
        self, place: RecordKey, mode: AgentMode, *, is_forced: bool = False
    ) -> CycleOutcome:
        """Make buffered observations active, but for the newest messages unless forced."""
        with self._store.database.write() as session:
            record, cursors = self.cursors(session, place)
            if record is None or all(
                cursor.buffered_seq <= cursor.observed_seq for cursor in cursors
            ):
                return CycleOutcome("activate", True)
            limits = None if is_forced else self._limits_for(mode)
            return self._activate(session, place, record, limits)

    def _activate_all(self, place: RecordKey, lease: Lease, is_alone: bool) -> None:
        """Activate what was buffered: the cursor must not step over it."""
        with self._store.database.write() as session:
            self._leases.guard(session, lease)
            record = self._store.find_record(session, place.lookup_key)
            if record is not None:
                self._activate(session, place, record, None, is_alone=is_alone)

    def _activate(
        self,
        session: Session,
        place: RecordKey,
        record: StoredRecord,
        limits: Thresholds | None,
        is_alone: bool = False,
    ) -> CycleOutcome:
        """Activate as many chunks as the limits call for; without limits all."""
        now, store, messages, notes = self._clock.now_ms(), self._store, 0, 0
        store.update_record(session, record.no, now, is_changed=False)
        # Read again: only now no other worker can change the record.
        for cursor in self.cursors(session, place)[1]:
            if is_alone and cursor.thread_id != place.thread_id:
                continue
            batches = store.buffered_batches(session, record.no, cursor.thread_no)
            pending = PendingTokens(
                cursor.tokens - cursor.observed_tokens, cursor.tokens - cursor.covered_tokens
            )
            sizes = [batch.message_tokens for batch in batches]
            # What other threads of a resource said is shown here by its observations alone.
            is_other = place.scope == "resource" and cursor.thread_id != place.thread_id
            count = len(sizes)
            if limits is not None and not is_other:
                count = chunks_to_activate(sizes, pending, limits)
            if not count:
                continue
            last, tokens = batches[count - 1], sum(sizes[:count])
            notes += store.activate_batches(session, [batch.no for batch in batches[:count]])
            messages += last.last_seq - cursor.observed_seq
            store.move_cursor(
                session,
                record.no,
                cursor.thread_no,
                column="observed",
                seq=last.last_seq,
                tokens=cursor.observed_tokens + tokens,
            )
            store.update_record(session, record.no, now, observed_tokens=tokens)
            if limits is not None and is_other:
                self._retain(session, cursor.thread_id, limits.retain)
            else:
                self._messages.put_outlook(session, cursor.thread_id, rawAfter=None)
        return CycleOutcome("activate", True, messages, notes=notes)

    def merge(self, place: RecordKey) -> int:
        """Move what threads observed alone into the pool of their resource.

        Returns:
            The number of observations that were moved.
        """
        now, store, moved = self._clock.now_ms(), self._store, 0
        with store.database.write() as session:
            pool = self._ensure(session, place)
            store.update_record(session, pool.no, now)
            newest = pool.record.generation
            self._drop_buffered(session, pool.no, now)  # of a generation that may be taken now
            for record_no, thread_no, generation in store.thread_records(
                session, place.resource_id
            ):
                store.update_record(session, record_no, now)
                self._drop_buffered(session, record_no, now)
                count = store.move_thread(session, thread_no, record_no, to_no=pool.no)
                if count is not None:
                    moved += count
                    newest = max(newest, generation)
            if newest != pool.record.generation:
                store.update_record(session, pool.no, now, is_changed=False, generation=newest)
        return moved

    def _drop_buffered(self, session: Session, record_no: int, now: int) -> None:
        reflections = BufferedReflections(self._store)
        if (buffered := reflections.find(session, record_no)) is not None:
            reflections.drop(
                session, buffered, "the observations of threads were brought into one pool", now
            )

    def _ensure(self, session: Session, place: RecordKey) -> StoredRecord:
        record = self._store.find_record(session, place.lookup_key)
        if record is not None:
            return record
        is_thread = place.scope == "thread"
        return self._store.ensure_record(
            session,
            self._project.new_id(),
            place,
            thread_no=self._messages.thread_no(session, place.thread_id) if is_thread else None,
            now_ms=self._clock.now_ms(),
        )

    def retain(self, thread_id: str, mode: AgentMode) -> None:
        """Keep showing the newest messages of a thread that is observed."""
        with self._store.database.write() as session:
            self._retain(session, thread_id, self._limits_for(mode).retain)

    def _retain(self, session: Session, thread_id: str, tokens: int) -> None:
        thread_no, seq = self._messages.thread_no(session, thread_id) or 0, 2**62
        while tokens > 0 and (
            page := self._messages.between(session, thread_no, 0, seq, 100, newest_first=True)
        ):
            for message in page:
                seq, tokens = message.seq, tokens - message.token_count
                if tokens <= 0:
                    break
        self._messages.put_outlook(session, thread_id, rawAfter=seq - 1)

    def _update_thread(
        self, session: Session, thread_id: str, source: ObservationDraft, last: int
    ) -> None:
        """Give a thread its task, the next answer, and a title if it has none."""
        # What another process puts into the thread meanwhile must stay.
        self._messages.hold_thread(session, thread_id)
        thread = self._messages.find_thread(session, thread_id)
        if thread is None:
            return
        outlook = dict(thread.metadata.get("observations") or {})
        outlook.pop("suggestedResponse", None)
        if source.current_task:
            outlook |= {"currentTask": source.current_task, "taskSeq": last}
        if source.suggested_response:
            outlook["suggestedResponse"] = source.suggested_response
        metadata = {**thread.metadata, "observations": outlook} if outlook else thread.metadata
        title = thread.title or (source.thread_title or None)
        if (metadata, title) != (thread.metadata, thread.title):
            self._messages.update_thread(
                session,
                thread_id,
                _storable(title),
                json.dumps(redact_value(dict(metadata))[0]),
                thread.updated_at,
            )


def clean_note(note: Note, times: Sequence[int], first: int, last: int) -> Note:
    """Redact a note, and keep it within its source."""
    begin = note.first_seq if note.first_seq and first <= note.first_seq <= last else first
    return replace(
        note,
        text=redact(note.text).text,
        details=tuple(redact(each).text for each in note.details),
        files=tuple(redact(each).text for each in note.files),
        said_at=min(max(note.said_at, min(times)), max(times)),
        first_seq=begin,
        last_seq=note.last_seq if note.last_seq and begin <= note.last_seq <= last else last,
        mode_specific=redact_value(dict(note.mode_specific))[0],
    )


def _storable(text: str | None) -> str | None:
    return (
        None if text is None or not text.strip() else to_storable(redact(text.strip()).text[:2_000])
    )


def waiting_for(
    failure: ObservationFailure | Outage, action: Literal["observe", "reflect"]
) -> CycleOutcome:
    """Tell that an action waits for its time to be tried again."""
    error = f"waiting to try again: {failure.message}"
    return CycleOutcome(action, False, error=error, code=failure.code, is_retryable=True)
