"""Reflection: older observations are condensed into a new generation; the newest stay as they are.

What is condensed is kept, marked with the generation it went into, and goes on being
found. What is written while the reflector thinks is not part of it and survives untouched.
A result that is not smaller than what it stands for is not taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smara.core import log
from smara.core.clock import Clock
from smara.core.ids import IdMaker
from smara.core.storable import to_storable
from smara.core.tokens import TokenCounter
from smara.database.database import Session
from smara.database.leases import Lease, Leases
from smara.errors import DatabaseError, LeaseLostError, SmaraError
from smara.observations.heartbeat import Heartbeat
from smara.observations.models import Failure, Note, Observation, Outcome, Reflector, ReflectRequest
from smara.observations.render import render_note
from smara.observations.scopes import Place
from smara.observations.store import ObservationStore, StoredRecord
from smara.observations.thresholds import Thresholds
from smara.secrets import redact, redact_value

LEASE_SECONDS = 60.0
IN_PROGRESS = "Reflection already in progress, please retry"
KEPT_OBSERVATIONS = 50
KEPT_MS = 86_400_000
_KEPT_SHARE = 0.4
_MOST_AT_ONCE = 2
"""One reflection takes at most so many times the threshold."""
_WORTH_SHARE = 0.25
_FIRST_RETRY_MS = 15_000
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class Chosen:
    """The observations that are to be condensed, with their numbers."""

    rows: tuple[tuple[int, Observation], ...]

    @property
    def tokens(self) -> int:
        return sum(observation.tokens for _, observation in self.rows)

    @property
    def numbers(self) -> list[int]:
        return [no for no, _ in self.rows]


def choose(active: Sequence[tuple[int, Observation]], now_ms: int, limits: Thresholds) -> Chosen:
    """What is old enough to be condensed: all but a sliding window of the newest.

    The newest fifty stay raw, and what is younger than a day as long as it is at most
    four tenths of the threshold; on a very busy day the window is the fifty alone.
    """
    newest_first = sorted(active, key=lambda row: (row[1].kind != "reflection", row[1].said_at, row[0]), reverse=True)
    room = limits.reflect_after * _KEPT_SHARE
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
    return Chosen(_first_of([row for row in active if row[0] not in kept], limits))


def _first_of(rows: Sequence[tuple[int, Observation]], limits: Thresholds) -> tuple[tuple[int, Observation], ...]:
    """The oldest rows, as many as one reflection takes: a long backlog is condensed a piece at a time."""
    taken: list[tuple[int, Observation]] = []
    used = 0
    for row in rows:
        used += row[1].tokens
        if taken and used > limits.reflect_after * _MOST_AT_ONCE:
            break
        taken.append(row)
    return tuple(taken)


class Reflecting:
    """Condenses the observations of one project's records."""

    def __init__(
        self, store: ObservationStore, leases: Leases, clock: Clock, new_id: IdMaker, counter: TokenCounter,
        reflector: Reflector, fallback: Reflector, limits: Thresholds, timezone: str, owner: str,
    ) -> None:  # fmt: skip
        self._store = store
        self._leases = leases
        self._clock = clock
        self._new_id = new_id
        self._counter = counter
        self._reflector = reflector
        self._fallback = fallback
        self._limits = limits
        self._timezone = timezone
        self._owner = owner

    def is_due(self, place: Place, is_ahead: bool = False) -> bool:
        """Whether there is so much active that a reflection should be made; ``is_ahead``, prepared."""
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            if record is None:
                return False
            if self._waiting(session, record) is not None:  # or every step would ask a model in vain
                return False
            tokens = self._store.active_tokens(session, record.no)
        return tokens >= (self._limits.reflect_ahead if is_ahead else self._limits.reflect_after)

    def reflect(self, place: Place, *, is_forced: bool = False) -> Outcome:
        """Condense what is old; a refusal says whether trying again can help."""
        name = f"reflections:{self._store.wall.project_no}:{place.lookup_key}"
        lease = self._leases.acquire(name, self._owner, LEASE_SECONDS)
        if lease is None:
            return Outcome("reflect", False, error=IN_PROGRESS, code="in_progress", is_retryable=True)
        try:
            with Heartbeat(self._leases, lease, LEASE_SECONDS):
                return self._reflect(place, lease, is_forced)
        except LeaseLostError as error:
            return Outcome("reflect", False, error=str(error), code=error.code, is_retryable=True)
        except SmaraError as error:
            log.warning("reflections.failed", code=error.code)
            return Outcome("reflect", False, error=str(error), code=error.code, is_retryable=error.is_retryable)
        finally:
            try:
                self._leases.release(lease)
            except DatabaseError as error:
                log.warning("reflections.lease_not_released", error=error.code)  # it expires by itself

    def _reflect(self, place: Place, lease: Lease, is_forced: bool) -> Outcome:
        with self._store.database.read() as session:
            record = self._store.find_record(session, place.lookup_key)
            active = self._store.active(session, record.no) if record else []
            waiting = self._waiting(session, record) if record and not is_forced else None
        if record is None:
            return Outcome("reflect", True)
        if waiting is not None:
            error = f"waiting to try again: {waiting.message}"
            return Outcome("reflect", False, error=error, code=waiting.code, is_retryable=True)
        chosen = Chosen(tuple(active)) if is_forced else choose(active, self._clock.now_ms(), self._limits)
        if not chosen.rows or (not is_forced and chosen.tokens < self._limits.reflect_after * _WORTH_SHARE):
            return Outcome("reflect", True)
        try:
            notes, method = self._think(chosen)
        except SmaraError as error:
            self._record_failure(record, error.code, str(error))
            raise
        rows = self._rows(record, chosen, notes, method)
        tokens = sum(row[18] for row in rows)
        if not rows or tokens >= chosen.tokens:
            told = "The reflection is no smaller than what it stands for; it was not taken."
            self._record_failure(record, "no_progress", told)
            return Outcome("reflect", False, error=told, code="no_progress")
        self._commit(record, chosen, rows, lease)
        log.event("reflections.added", merged=len(chosen.rows), notes=len(rows), tokens=tokens, before=chosen.tokens)
        return Outcome("reflect", True, messages=len(chosen.rows), notes=len(rows))

    def _think(self, chosen: Chosen) -> tuple[tuple[Note, ...], str]:
        """What the reflector makes of it; without the model when the model cannot."""
        is_over = sum(row.tokens for _, row in chosen.rows if row.kind == "reflection") > self._limits.reflections_limit
        request = ReflectRequest(
            tuple(as_note(row) for _, row in chosen.rows), 2 if is_over else 0, self._timezone,
            target_tokens=max(200, min(chosen.tokens, self._limits.reflect_after) // 2),
        )  # fmt: skip
        try:
            return self._reflector.reflect(request).notes, self._reflector.method
        except SmaraError as error:
            if self._reflector.method == self._fallback.method:
                raise
            log.warning("reflections.without_model", code=error.code)
            return self._fallback.reflect(request).notes, self._fallback.method

    def _rows(self, record: StoredRecord, chosen: Chosen, notes: Sequence[Note], method: str) -> list[tuple[Any, ...]]:
        now = self._clock.now_ms()
        generation = record.record.generation + 1
        taint = " ".join(sorted({each for _, row in chosen.rows for each in row.taint}))
        threads = {row.thread_id for _, row in chosen.rows}
        first = min(row.first_seq for _, row in chosen.rows)
        last = max(row.last_seq for _, row in chosen.rows)
        earliest = min(row.said_at for _, row in chosen.rows)
        latest = max(row.said_at for _, row in chosen.rows)
        thread_no = self._thread_no(record, threads)
        return [
            (
                record.no, thread_no, None, self._new_id(), "reflection", "active", generation, "default",
                note.priority, note.category, to_storable(redact(note.text).text),
                json.dumps([redact(each).text for each in note.details]),
                json.dumps([redact(each).text for each in note.files]), json.dumps(note.lines),
                json.dumps(redact_value(dict(note.mode_specific))[0], default=str),
                taint, min(max(note.said_at, earliest), latest), note.refers_to,
                self._counter.count(render_note(note, self._timezone)).tokens,
                first if note.first_seq is None else note.first_seq, last if note.last_seq is None else note.last_seq,
                method, now,
            )
            for note in notes
        ]  # fmt: skip

    def _thread_no(self, record: StoredRecord, threads: set[str | None]) -> int | None:
        """The thread of a reflection that stands for one thread alone."""
        only = next(iter(threads)) if len(threads) == 1 else None
        if only is None:
            return None
        with self._store.database.read() as session:
            row = session.one(self._store.sql("SELECT no FROM threads WHERE project_no = :project AND id = ?"), (only,))
        return int(row[0]) if row else None

    def _commit(self, record: StoredRecord, chosen: Chosen, rows: Sequence[tuple[Any, ...]], lease: Lease) -> None:
        """The new generation, and what it stands for put behind it, together, behind the fence."""
        now = self._clock.now_ms()
        generation = record.record.generation + 1
        with self._store.database.write() as session:
            self._leases.guard(session, lease)
            self._store.take_record(session, record.no, now)
            done = self._store.mark_reflected(session, chosen.numbers, generation)
            if done != len(chosen.rows):
                raise LeaseLostError("The observations were condensed by somebody else meanwhile; nothing was written.")
            self._store.add(session, rows)
            self._store.index(session, [row[3] for row in rows])
            self._store.note_reflected(session, record.no, generation, now)
            self._store.clear_failure(session, record.no, 0, "reflect", generation)

    # what went wrong

    def _waiting(self, session: Session, record: StoredRecord) -> Failure | None:
        """Why the next generation is not to be tried yet."""
        failure = self._store.failure(session, record.no, 0, "reflect", record.record.generation + 1)
        return failure if failure is not None and failure.retry_at > self._clock.now_ms() else None

    def _record_failure(self, record: StoredRecord, code: str, message: str) -> None:
        """Remember what went wrong and when to try again; the generation stands where a message would."""
        now, generation = self._clock.now_ms(), record.record.generation + 1
        try:
            with self._store.database.write() as session:
                before = self._store.failure(session, record.no, 0, "reflect", generation)
                attempts = before.attempts if before else 0
                wait = _FIRST_RETRY_MS * 2 ** min(attempts, _MOST_DOUBLINGS)
                self._store.put_failure(
                    session,
                    (record.no, 0, "reflect", generation, attempts + 1, code,
                     to_storable(redact(message).text[:1_000]), 0, now, now + wait),
                )  # fmt: skip
        except DatabaseError as trouble:
            log.warning("reflections.failure_not_recorded", error=trouble.code)


def as_note(row: Observation) -> Note:
    """A stored observation as an observer would have written it."""
    return Note(
        row.priority, row.category, row.text, row.said_at, row.refers_to, row.details, row.files, row.lines,
        row.first_seq, row.last_seq, row.mode_specific,
    )  # fmt: skip
