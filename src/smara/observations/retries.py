"""Decide whether and when a failed observation job runs again.

After five unusable replies the messages are observed without the model. An outage
counts against no message: the job waits 15 seconds, then 30, up to 15 minutes. Other
threads of the process wait a minute, so that they do not all try a server that hangs.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from smara.core import log
from smara.core.clock import Clock
from smara.core.startup.record import dataclass
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
from smara.observations.store import FailureKey, ObservationStore

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
    """Return True if no model could be asked about the messages.

    A timeout, a rate limit, a failing server, a spent budget, an empty account, models that
    are paused. A reply that cannot be used, and a refusal of these very words, are none.
    """
    if isinstance(error, BadReplyError | ModelRefusedError):
        return error.facts.get("reason") in _NOT_THE_MESSAGES
    return not isinstance(error, UsageError)


def retry_wait_ms(failed_before: int, asked_seconds: float | None = None) -> int:
    """Return the wait after a failure: doubled, 15 minutes at most.

    At least as long as the server asks for.

    >>> [retry_wait_ms(n) // 1000 for n in range(8)]
    [15, 30, 60, 120, 240, 480, 900, 900]
    >>> retry_wait_ms(0, 100.0), retry_wait_ms(0, 7_200.0)
    (100000, 900000)
    """
    doubled: int = FIRST_RETRY_MS * 2 ** min(failed_before, 10)
    return min(LONGEST_RETRY_MS, max(doubled, int((asked_seconds or 0) * 1000)))


class Outage(NamedTuple):
    """An outage of the model."""

    code: str
    message: str


class OutageGate:
    """The outage that all threads of a process wait for.

    Its projects share it. Until when, by the monotonic clock, comes with the outage.
    """

    closed: tuple[float, Outage] | None = None


@dataclass(frozen=True, eq=False)
class FailureLog:
    """The failures of jobs, and when each is tried again.

    Safe to use from several threads.
    """

    clock: Clock
    store: ObservationStore
    gate: OutageGate

    def look_up(self, job: FailureKey) -> tuple[ObservationFailure | None, Outage | None]:
        """Return a job's past failure, and the outage waited for."""
        now = self.clock.now_ms()
        with self.store.database.read() as session:
            failure = self.store.failure(session, job)
            outage = self.store.failure(session, outage_of(job))
        if outage is not None:
            is_waiting = outage.retry_at > now
            return failure, Outage(outage.code, outage.message) if is_waiting else None
        until, shared = self.gate.closed or (0.0, None)
        return failure, shared if until > self.clock.monotonic() else None

    def record(self, job: FailureKey, error: SmaraError) -> None:
        """Record what went wrong and when to try again.

        Trouble with the database is logged: it must not hide the first trouble.
        """
        now, is_out = self.clock.now_ms(), is_outage(error)
        log.warning("observations.failed", code=error.code, outage=is_out)
        if isinstance(error, ModelUnavailableError):  # other outages fail at once, at no cost
            outage = Outage(error.code, str(error))
            self.gate.closed = (self.clock.monotonic() + OTHERS_WAIT_SECONDS, outage)
        elif not is_out:  # it did answer, so it can be reached
            self.gate.closed = None
        key = outage_of(job) if is_out else job
        # How many seconds the server, or the budget, wants to be left alone.
        seconds, opens_at = error.facts.get("retry_after_seconds"), error.facts.get("opens_at")
        if isinstance(opens_at, int):
            seconds = max(0.0, (opens_at - now) / 1000)
        pause = float(seconds) if is_out and isinstance(seconds, int | float) else None
        try:
            with self.store.database.write() as session:
                self.store.put_failure(
                    session,
                    key,
                    code=error.code,
                    message=str(error),
                    now_ms=now,
                    wait_ms=partial(retry_wait_ms, asked_seconds=pause),
                )
                if not is_out:
                    self.store.clear_failure(session, outage_of(job))
        except DatabaseError as trouble:
            log.warning("observations.failure_not_recorded", error=trouble.code)

    def overcome(self, session: Session, job: FailureKey) -> None:
        """Forget what failed before: the model has answered for this job."""
        self.store.clear_failure(session, job)
        self.store.clear_failure(session, outage_of(job))
        self.gate.closed = None


def outage_of(job: FailureKey) -> FailureKey:
    """Return the key of a thread's outage."""
    return job._replace(operation=OUTAGE, first_seq=0)
