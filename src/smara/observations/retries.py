"""Decide whether and when a failed observation job runs again.

After five unusable replies the messages are observed without the model. An outage
counts against no message: the job waits 15 seconds, then 30, up to 15 minutes. Other
threads of the process wait a minute, so that they do not all try a server that hangs.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import to_storable
from smara.database.database import Session
from smara.errors import (
    BadReplyError,
    DatabaseError,
    ModelRefusedError,
    ModelUnavailableError,
    SmaraError,
    UsageError,
)
from smara.observations.models import ObservationFailure
from smara.observations.store import ObservationStore
from smara.secrets import redact

MOST_ATTEMPTS = 5
FIRST_RETRY_MS = 15_000
LONGEST_RETRY_MS = 900_000
OTHERS_WAIT_SECONDS = 60.0
OUTAGE = "outage"
"""The operation under which an outage is listed among the failures."""

# Refusals that any messages would get: of the account, the key, the setting; and a server that
# talks nonsense.
_NOT_THE_MESSAGES = frozenset({"key", "quota", "unknown_model", "disabled", "paused", "unreadable"})


def is_outage(error: SmaraError) -> bool:
    """Whether nobody could think, so that nothing is known about the messages themselves.

    A timeout, a rate limit, a failing server, a spent budget, an empty account, models that
    are paused. A reply that cannot be used, and a refusal of these very words, are none.
    """
    if isinstance(error, BadReplyError | ModelRefusedError):
        return error.facts.get("reason") in _NOT_THE_MESSAGES
    return not isinstance(error, UsageError)


def retry_wait_ms(failed_before: int, asked_seconds: float | None = None) -> int:
    """How long to wait after a failure: doubled each time, at least what the server asks for, at
    most 15 minutes.

    >>> [retry_wait_ms(n) // 1000 for n in range(8)]
    [15, 30, 60, 120, 240, 480, 900, 900]
    >>> retry_wait_ms(0, 100.0), retry_wait_ms(0, 7_200.0)
    (100000, 900000)
    """
    doubled: int = FIRST_RETRY_MS * 2 ** min(failed_before, 10)
    return min(LONGEST_RETRY_MS, max(doubled, int((asked_seconds or 0) * 1000)))


class JobKey(NamedTuple):
    """The messages a failure is about: of one record's thread, from the first on."""

    record_no: int
    thread_no: int
    first_seq: int


class Outage(NamedTuple):
    """Nobody can think just now."""

    code: str
    message: str


class OutageGate:
    """What the threads of a process know of each other's outages. Projects of one process share
    it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._closed: tuple[float, Outage] | None = None

    def close(self, until: float, outage: Outage) -> None:
        with self._guard:
            self._closed = (until, outage)

    def open(self) -> None:
        with self._guard:
            self._closed = None

    def found(self, now: float) -> Outage | None:
        """The outage that is waited for, by the monotonic clock."""
        with self._guard:
            until, outage = self._closed or (now, None)
        return outage if until > now else None


class FailureLog:
    """Remembers failures, and says whether and when a job is tried again. Safe to use from several
    threads.
    """

    def __init__(
        self, store: ObservationStore, clock: Clock, gate: OutageGate | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._gate = gate or OutageGate()

    def found(self, job: JobKey) -> tuple[ObservationFailure | None, Outage | None]:
        """What failed before with this job, and the outage that is waited for now."""
        now = self._clock.now_ms()
        with self._store.database.read() as session:
            failure = self._store.failure(
                session, job.record_no, job.thread_no, operation="observe", first_seq=job.first_seq
            )
            row = self._store.failure(
                session, job.record_no, job.thread_no, operation=OUTAGE, first_seq=0
            )
        if row is not None:
            return failure, Outage(row.code, row.message) if row.retry_at > now else None
        return failure, self._gate.found(self._clock.monotonic())

    def record(self, job: JobKey, error: SmaraError) -> None:
        """Remember what went wrong and when to try again; trouble here must not hide the first
        trouble.
        """
        log.warning("observations.failed", code=error.code, outage=is_outage(error))
        try:
            with self._store.database.write() as session:
                if is_outage(error):
                    self._put_outage(session, job, error)
                else:
                    self._put_attempt(session, job, error)
        except DatabaseError as trouble:
            log.warning("observations.failure_not_recorded", error=trouble.code)

    def overcome(self, session: Session, job: JobKey) -> None:
        """The model has answered for this job: forget what failed before; a dead letter stays to be
        seen.
        """
        self._store.clear_failure(
            session, job.record_no, job.thread_no, operation="observe", first_seq=job.first_seq
        )
        self._store.clear_failure(
            session, job.record_no, job.thread_no, operation=OUTAGE, first_seq=0
        )
        self._gate.open()

    def bury(self, session: Session, job: JobKey) -> None:
        """The job is done without the model, for good; its failure stays as a dead letter."""
        failure = self._store.failure(
            session, job.record_no, job.thread_no, operation="observe", first_seq=job.first_seq
        )
        if failure is not None:
            self._put(
                session,
                job,
                "observe",
                job.first_seq,
                failure.attempts,
                failure.code,
                failure.message,
                True,
                failure.failed_at,
                failure.retry_at,
            )

    def _put_outage(self, session: Session, job: JobKey, error: SmaraError) -> None:
        now = self._clock.now_ms()
        before = self._store.failure(
            session, job.record_no, job.thread_no, operation=OUTAGE, first_seq=0
        )
        attempts = before.attempts if before is not None else 0
        retry_at = now + retry_wait_ms(attempts, _asked_seconds(error, now))
        if isinstance(error, ModelUnavailableError):  # the others fail at once and cost no time
            self._gate.close(
                self._clock.monotonic() + OTHERS_WAIT_SECONDS, Outage(error.code, str(error))
            )
        self._put(
            session, job, OUTAGE, 0, attempts + 1, error.code, str(error), False, now, retry_at
        )

    def _put_attempt(self, session: Session, job: JobKey, error: SmaraError) -> None:
        now = self._clock.now_ms()
        before = self._store.failure(
            session, job.record_no, job.thread_no, operation="observe", first_seq=job.first_seq
        )
        attempts = before.attempts if before is not None else 0
        retry_at = now + retry_wait_ms(attempts)
        self._put(
            session,
            job,
            "observe",
            job.first_seq,
            attempts + 1,
            error.code,
            str(error),
            False,
            now,
            retry_at,
        )
        # It did answer, so it can be reached.
        self._store.clear_failure(
            session, job.record_no, job.thread_no, operation=OUTAGE, first_seq=0
        )
        self._gate.open()

    def _put(
        self,
        session: Session,
        job: JobKey,
        operation: str,
        first_seq: int,
        attempts: int,
        code: str,
        message: str,
        is_dead: bool,
        failed_at: int,
        retry_at: int,
    ) -> None:
        values: tuple[Any, ...] = (
            job.record_no,
            job.thread_no,
            operation,
            first_seq,
            attempts,
            code,
            to_storable(redact(message).text[:1_000]),
            int(is_dead),
            failed_at,
            retry_at,
        )
        self._store.put_failure(session, values)


def _asked_seconds(error: SmaraError, now_ms: int) -> float | None:
    """How long the server, or the budget, asks to wait."""
    opens_at = error.facts.get("opens_at")
    if isinstance(opens_at, int):
        return max(0.0, (opens_at - now_ms) / 1000)
    asked = error.facts.get("retry_after_seconds")
    return float(asked) if isinstance(asked, int | float) else None
