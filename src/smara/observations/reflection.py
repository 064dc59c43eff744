"""Condense a record's older observations into a new generation.

The newest observations stay as they are. A reflection is made ahead and buffered, and
activated in one commit without a model. Condensed observations are marked with their
generation and remain searchable. A result that is not smaller is rejected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import to_storable
from smara.core.ids import IdMaker
from smara.core.tokens import TokenCounter
from smara.database.database import Session
from smara.database.leases import Heartbeat, Lease, Leases
from smara.errors import DatabaseError, LeaseLostError, SmaraError
from smara.observations.buffer import CODE, BufferedReflections
from smara.observations.models import (
    CycleOutcome,
    Flavor,
    Note,
    Observation,
    ObservationFailure,
    RecordKey,
    Reflector,
    ReflectRequest,
)
from smara.observations.render import render_note
from smara.observations.store import ObservationStore, StoredRecord
from smara.observations.thresholds import ReflectionPlan, Thresholds, plan_reflection
from smara.secrets import redact, redact_value

LEASE_SECONDS = 60.0
IN_PROGRESS = "Reflection already in progress, please retry"
KEPT_OBSERVATIONS = 50
KEPT_MS = 86_400_000
_MOST_AT_ONCE = 2
"""One reflection takes at most so many times the threshold."""
_WORTH_SHARE = 0.25
_FIRST_RETRY_MS = 15_000
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class ReflectionInput:
    """The observations that are to be condensed, with their numbers."""

    rows: tuple[tuple[int, Observation], ...]

    @property
    def tokens(self) -> int:
        return sum(observation.tokens for _, observation in self.rows)

    @property
    def numbers(self) -> list[int]:
        return [no for no, _ in self.rows]


class ReflectJob(NamedTuple):
    """What is condensed in one go: the record as it was, and the observations taken from it."""

    place: RecordKey
    record: StoredRecord
    chosen: ReflectionInput
    is_buffered: bool

    @property
    def generation(self) -> int:
        return self.record.record.generation + 1


def choose(
    active: Sequence[tuple[int, Observation]],
    now_ms: int,
    limits: Thresholds,
    is_ahead: bool = False,
) -> ReflectionInput:
    """What is old enough to be condensed: all but a sliding window of the newest.

    The newest fifty stay raw, and what is younger than a day, as long as it is at most four tenths
    of the threshold. ``is_ahead``: the window is smaller by what will have come when it is needed.
    """
    newest_first = sorted(
        active, key=lambda row: (row[1].kind != "reflection", row[1].said_at, row[0]), reverse=True
    )
    room = limits.reflect_ahead_keeps if is_ahead else limits.reflect_keeps
    kept: set[int] = set()
    used = 0
    for no, observation in newest_first:
        if observation.kind == "reflection":
            break
        is_recent = now_ms - observation.said_at < KEPT_MS
        used += observation.tokens
        if used > room or not (is_recent or len(kept) < KEPT_OBSERVATIONS):
            break
        kept.add(no)
    return ReflectionInput(_first_of([row for row in active if row[0] not in kept], limits))


def _first_of(
    rows: Sequence[tuple[int, Observation]], limits: Thresholds
) -> tuple[tuple[int, Observation], ...]:
    """The oldest rows, as many as one reflection takes: a long backlog is condensed a piece at a
    time.
    """
    taken: list[tuple[int, Observation]] = []
    used = 0
    for row in rows:
        used += row[1].tokens
        if taken and used > limits.reflect_after * _MOST_AT_ONCE:
            break
        taken.append(row)
    return tuple(taken)


class ReflectionCycle:
    """Condenses the observations of one project's records."""

    def __init__(
        self,
        store: ObservationStore,
        leases: Leases,
        clock: Clock,
        new_id: IdMaker,
        counter: TokenCounter,
        reflector: Reflector,
        fallback: Reflector,
        limits: Thresholds,
        timezone: str,
        owner: str,
        flavor: Flavor = "coding",
        instructions: str = "",
    ) -> None:
        self._store = store
        self._buffered = BufferedReflections(store)
        self._leases = leases
        self._clock = clock
        self._new_id = new_id
        self._counter = counter
        self._reflector = reflector
        self._fallback = fallback
        self._limits = limits
        self._timezone = timezone
        self._owner = owner
        self._flavor = flavor
        self._instructions = instructions

    def planned(self, place: RecordKey) -> ReflectionPlan:
        """What the active observations of a place ask for; nothing is started."""
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            if (
                record is None or self._waiting(session, record) is not None
            ):  # or every step would ask in vain
                return ReflectionPlan(False, False, False)
            tokens = self._store.active_tokens(session, record.no)
            is_near = tokens >= min(self._limits.reflect_ahead, self._limits.reflect_after)
            is_buffered = is_near and self._buffered.find(session, record.no) is not None
        return plan_reflection(tokens, is_buffered, self._limits)

    def reflect(
        self, place: RecordKey, *, is_forced: bool = False, is_buffered: bool = False
    ) -> CycleOutcome:
        """Condense what is old, all of it when forced; a refusal says whether trying again can
        help.

        One that was made ahead comes into force; otherwise one is made now. With ``is_buffered`` it
        is made and kept aside, and nothing that is shown changes. A forced one takes the place of
        one kept aside.
        """
        lease = self._leases.acquire(self._lease_name(place), self._owner, LEASE_SECONDS)
        if lease is None:
            return CycleOutcome(
                "reflect", False, error=IN_PROGRESS, code="in_progress", is_retryable=True
            )
        recovered = self._recovered(lease, place)
        try:
            with Heartbeat(self._leases, lease, LEASE_SECONDS):
                return replace(
                    self._reflect(place, lease, is_forced, is_buffered), recovered=recovered
                )
        except LeaseLostError as error:
            return CycleOutcome(
                "reflect",
                False,
                0,
                notes=0,
                error=str(error),
                code=error.code,
                is_retryable=True,
                recovered=recovered,
            )
        except SmaraError as error:
            log.warning("reflections.failed", code=error.code)
            return CycleOutcome(
                "reflect",
                False,
                0,
                notes=0,
                error=str(error),
                code=error.code,
                is_retryable=error.is_retryable,
                recovered=recovered,
            )
        finally:
            self._release(lease)

    def activate(self, place: RecordKey, *, is_early: bool = False) -> CycleOutcome:
        """Let the reflection that was made ahead come into force, if it is needed; ``is_early``, if
        there is one.

        One commit behind the fence. One that no longer fits what it stood for is dropped, and the
        outcome says so.
        """
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            if record is None or self._buffered.find(session, record.no) is None:
                return CycleOutcome("activate", True)
            if (
                not is_early
                and self._store.active_tokens(session, record.no) < self._limits.reflect_after
            ):
                return CycleOutcome("activate", True)
        lease = self._leases.acquire(self._lease_name(place), self._owner, LEASE_SECONDS)
        if lease is None:  # somebody condenses all of it, or is doing just this
            return CycleOutcome(
                "activate", False, error=IN_PROGRESS, code="in_progress", is_retryable=True
            )
        try:
            return replace(self._put_in_force(place, lease), action="activate")
        except LeaseLostError as error:
            return CycleOutcome(
                "activate", False, error=str(error), code=error.code, is_retryable=True
            )
        finally:
            self._release(lease)

    def _reflect(
        self, place: RecordKey, lease: Lease, is_forced: bool, is_buffered: bool
    ) -> CycleOutcome:
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            active = self._store.active(session, record.no) if record else []
            waiting = self._waiting(session, record) if record and not is_forced else None
            is_there = record is not None and self._buffered.find(session, record.no) is not None
        if record is None:
            return CycleOutcome("reflect", True)
        if is_there and not is_forced:
            taken = (
                CycleOutcome("reflect", True) if is_buffered else self._put_in_force(place, lease)
            )
            if taken.code != CODE:  # one that had to be dropped is made again, from what is there
                return taken
        if waiting is not None:
            error = f"waiting to try again: {waiting.message}"
            return CycleOutcome("reflect", False, error=error, code=waiting.code, is_retryable=True)
        chosen = ReflectionInput(tuple(active))
        if not is_forced:
            chosen = choose(active, self._clock.now_ms(), self._limits, is_ahead=is_buffered)
        if not chosen.rows or (
            not is_forced and chosen.tokens < self._limits.reflect_after * _WORTH_SHARE
        ):
            return CycleOutcome("reflect", True)
        return self._condense(ReflectJob(place, record, chosen, is_buffered=is_buffered), lease)

    def _condense(self, job: ReflectJob, lease: Lease) -> CycleOutcome:
        """Let the reflector think, and write what it found when that is smaller."""
        record, chosen = job.record, job.chosen
        try:
            notes, method = self._think(chosen)
        except SmaraError as error:
            self._record_failure(record, error.code, str(error))
            raise
        rows = self._rows(job, notes, method)
        tokens = sum(row[18] for row in rows)
        if not rows or tokens >= chosen.tokens:
            told = "The reflection is no smaller than what it stands for; it was not taken."
            self._record_failure(record, "no_progress", told)
            return CycleOutcome("reflect", False, error=told, code="no_progress")
        self._commit(job, rows, lease)
        state = "buffered" if job.is_buffered else "active"
        log.event(
            "reflections.added",
            merged=len(chosen.rows),
            notes=len(rows),
            tokens=tokens,
            before=chosen.tokens,
            state=state,
        )
        return CycleOutcome("reflect", True, messages=len(chosen.rows), notes=len(rows))

    def _think(self, chosen: ReflectionInput) -> tuple[tuple[Note, ...], str]:
        """What the reflector makes of it; without the model when the model cannot."""
        is_over = (
            sum(row.tokens for _, row in chosen.rows if row.kind == "reflection")
            > self._limits.reflections_limit
        )
        request = ReflectRequest(
            tuple(as_note(row) for _, row in chosen.rows),
            2 if is_over else 0,
            self._timezone,
            flavor=self._flavor,
            target_tokens=max(200, min(chosen.tokens, self._limits.reflect_after) // 2),
            instructions=self._instructions,
        )
        try:
            return self._reflector.reflect(request).notes, self._reflector.method
        except SmaraError as error:
            if self._reflector.method == self._fallback.method:
                raise
            log.warning("reflections.without_model", code=error.code)
            return self._fallback.reflect(request).notes, self._fallback.method

    def _rows(self, job: ReflectJob, notes: Sequence[Note], method: str) -> list[tuple[Any, ...]]:
        now = self._clock.now_ms()
        record, chosen = job.record, job.chosen
        state = "buffered" if job.is_buffered else "active"
        taint = " ".join(sorted({each for _, row in chosen.rows for each in row.taint}))
        threads = {row.thread_id for _, row in chosen.rows}
        first = min(row.first_seq for _, row in chosen.rows)
        last = max(row.last_seq for _, row in chosen.rows)
        earliest = min(row.said_at for _, row in chosen.rows)
        latest = max(row.said_at for _, row in chosen.rows)
        thread_no = self._thread_no(record, threads)
        return [
            (
                record.no,
                thread_no,
                None,
                self._new_id(),
                "reflection",
                state,
                job.generation,
                "default",
                note.priority,
                note.category,
                to_storable(redact(note.text).text),
                json.dumps([redact(each).text for each in note.details]),
                json.dumps([redact(each).text for each in note.files]),
                json.dumps(note.lines),
                json.dumps(redact_value(dict(note.mode_specific))[0], default=str),
                taint,
                min(max(note.said_at, earliest), latest),
                note.refers_to,
                self._counter.count(render_note(note, self._timezone)).tokens,
                first if note.first_seq is None else note.first_seq,
                last if note.last_seq is None else note.last_seq,
                method,
                now,
            )
            for note in notes
        ]

    def _thread_no(self, record: StoredRecord, threads: set[str | None]) -> int | None:
        """The thread of a reflection that stands for one thread alone."""
        only = next(iter(threads)) if len(threads) == 1 else None
        if only is None:
            return None
        with self._store.database.read() as session:
            row = session.one(
                self._store.sql("SELECT no FROM threads WHERE project_no = :project AND id = ?"),
                (only,),
            )
        return int(row[0]) if row else None

    def _commit(self, job: ReflectJob, rows: Sequence[tuple[Any, ...]], lease: Lease) -> None:
        """The new generation, and what it stands for put behind it or noted beside it, together,
        behind the fence.
        """
        now = self._clock.now_ms()
        record_no = job.record.no
        with self._store.database.write() as session:
            self._leases.guard(session, lease)
            self._store.hold_record(session, record_no, now)
            self._expect(session, job)
            before = self._buffered.find(session, record_no)
            if before is not None:  # made of less than this one, and of the same generation
                self._buffered.remove(session, before)
            if job.is_buffered:
                self._buffered.add(session, record_no, job.generation, job.chosen.rows, rows, now)
            else:
                self._show(session, job, rows, now)
            self._store.clear_failure(
                session, record_no, 0, operation="reflect", first_seq=job.generation
            )

    def _show(
        self, session: Session, job: ReflectJob, rows: Sequence[tuple[Any, ...]], now: int
    ) -> None:
        self._store.take_record(session, job.record.no, now)
        done = self._store.mark_reflected(
            session, job.record.no, job.chosen.numbers, generation=job.generation
        )
        if done != len(job.chosen.rows):
            raise LeaseLostError(
                "The observations were condensed by somebody else meanwhile; nothing was written."
            )
        self._store.add(session, rows)
        self._store.index(session, [row[3] for row in rows])
        self._store.note_reflected(session, job.record.no, job.generation, now_ms=now)

    def _expect(self, session: Session, job: ReflectJob) -> None:
        """The record is of the generation it was of when it was read."""
        found = self._store.find_record(session, job.place.lookup_key)
        if found is None or found.record.generation != job.record.record.generation:
            raise LeaseLostError(
                "Another generation was made meanwhile; nothing was written. Read again and go on."
            )

    def _put_in_force(self, place: RecordKey, lease: Lease) -> CycleOutcome:
        """What was kept aside is shown from now on, in the place of what it stands for; or it is
        dropped.
        """
        now = self._clock.now_ms()
        with self._store.database.write() as session:
            self._leases.guard(session, lease)
            record = self._store.find_record(session, place.lookup_key)
            if record is not None:
                self._store.hold_record(session, record.no, now)
                record = self._store.find_record(
                    session, place.lookup_key
                )  # read again: it is ours only now
            buffered = self._buffered.find(session, record.no) if record else None
            if record is None or buffered is None:
                return CycleOutcome("reflect", True)
            is_next = buffered.generation == record.record.generation + 1
            if not is_next or not self._buffered.is_as_it_was(session, buffered):
                told = self._buffered.drop(
                    session, buffered, "what it stood for has been changed or erased", now
                )
                return CycleOutcome("reflect", False, error=told, code=CODE, is_retryable=True)
            self._store.take_record(session, record.no, now)
            self._buffered.activate(session, buffered)
            self._store.note_reflected(session, record.no, buffered.generation, now_ms=now)
            self._store.clear_failure(
                session, record.no, 0, operation="reflect", first_seq=buffered.generation
            )
        log.event(
            "reflections.activated",
            merged=len(buffered.sources),
            notes=buffered.notes,
            tokens=buffered.tokens,
        )
        return CycleOutcome("reflect", True, messages=len(buffered.sources), notes=buffered.notes)

    # leases

    def _lease_name(self, place: RecordKey) -> str:
        return f"reflections:{self._store.scope.project_no}:{place.lookup_key}"

    def _recovered(self, lease: Lease, place: RecordKey) -> Mapping[str, Any] | None:
        """What a worker that died while it reflected had left: who it was, and how far things
        were.
        """
        if lease.taken_over_from is None:
            return None
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            buffered = self._buffered.find(session, record.no) if record else None
        state = {
            "generation": record.record.generation if record else 0,
            "bufferedGeneration": buffered.generation if buffered else None,
        }
        log.warning("reflections.recovered", owner=lease.taken_over_from)
        return {
            "clearedFlags": ["isReflecting"],
            "owner": lease.taken_over_from,
            "lastKnownState": state,
        }

    def _release(self, lease: Lease) -> None:
        try:
            self._leases.release(lease)
        except DatabaseError as error:
            log.warning("reflections.lease_not_released", error=error.code)  # it expires by itself

    # what went wrong

    def _waiting(self, session: Session, record: StoredRecord) -> ObservationFailure | None:
        """Why the next generation is not to be tried yet."""
        failure = self._store.failure(
            session, record.no, 0, operation="reflect", first_seq=record.record.generation + 1
        )
        return failure if failure is not None and failure.retry_at > self._clock.now_ms() else None

    def _record_failure(self, record: StoredRecord, code: str, message: str) -> None:
        """Remember what went wrong and when to try again; the generation stands where a message
        would.
        """
        now, generation = self._clock.now_ms(), record.record.generation + 1
        try:
            with self._store.database.write() as session:
                before = self._store.failure(
                    session, record.no, 0, operation="reflect", first_seq=generation
                )
                attempts = before.attempts if before else 0
                wait = _FIRST_RETRY_MS * 2 ** min(attempts, _MOST_DOUBLINGS)
                self._store.put_failure(
                    session,
                    (
                        record.no,
                        0,
                        "reflect",
                        generation,
                        attempts + 1,
                        code,
                        to_storable(redact(message).text[:1_000]),
                        0,
                        now,
                        now + wait,
                    ),
                )
        except DatabaseError as trouble:
            log.warning("reflections.failure_not_recorded", error=trouble.code)


def as_note(row: Observation) -> Note:
    """A stored observation as an observer would have written it."""
    return Note(
        row.priority,
        row.category,
        row.text,
        said_at=row.said_at,
        refers_to=row.refers_to,
        details=row.details,
        files=row.files,
        lines=row.lines,
        first_seq=row.first_seq,
        last_seq=row.last_seq,
        mode_specific=row.mode_specific,
    )
