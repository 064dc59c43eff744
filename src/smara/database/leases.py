"""Lease work to one worker at a time, with a fence.

A worker whose lease expired cannot write: its fence number is too old. `Heartbeat` renews
a lease three times per term from a thread, and reports a lost lease at the next check.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from types import TracebackType

from smara.core import log
from smara.core.clock import Clock
from smara.core.ids import IdMaker
from smara.database.database import Database, Session
from smara.errors import DatabaseError, LeaseLostError


@dataclass(frozen=True, slots=True)
class Lease:
    """A grant of the named work: holder, expiry, and fence."""

    name: str
    owner: str
    operation_id: str
    fence: int
    expires_at: int
    taken_over_from: str | None = None


class Leases:
    """A grantor of leases by name.

    Any number of processes may ask; at most one gets it.
    """

    def __init__(self, database: Database, clock: Clock, new_id: IdMaker) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id

    def acquire(self, name: str, owner: str, lease_seconds: float = 30.0) -> Lease | None:
        """Take the lease, or ``None`` while another holder's has not expired.

        ``taken_over_from`` names the owner whose expired lease was cleared, so that
        recovery can be reported. An owner that asks again while it holds the lease gets
        ``None`` too: two workers of one process must not both believe.
        """
        now = self._clock.now_ms()
        operation_id = self._new_id()
        with self._database.write() as session:
            before = session.one("SELECT owner FROM leases WHERE name = ?", (name,))
            row = session.one(
                "INSERT INTO leases (name, owner, operation_id, fence, acquired_at, heartbeat_at, "
                "expires_at)"
                " VALUES (?, ?, ?, 1, ?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, operation_id = "
                "excluded.operation_id,"
                " fence = leases.fence + 1, acquired_at = excluded.acquired_at, heartbeat_at = "
                "excluded.heartbeat_at,"
                " expires_at = excluded.expires_at"
                " WHERE leases.owner IS NULL OR leases.expires_at <= ?"
                " RETURNING fence, expires_at",
                (name, owner, operation_id, now, now, now + int(lease_seconds * 1000), now),
            )
        if row is None:
            return None
        return Lease(
            name,
            owner,
            operation_id,
            fence=int(row[0]),
            expires_at=int(row[1]),
            taken_over_from=before[0] if before else None,
        )

    def renew(self, lease: Lease, lease_seconds: float = 30.0) -> Lease:
        """Prolong a lease that is still held; ``LeaseLostError`` when it is not."""
        now = self._clock.now_ms()
        expires_at = now + int(lease_seconds * 1000)
        with self._database.write() as session:
            changed = session.run(
                "UPDATE leases SET heartbeat_at = ?, expires_at = ?"
                " WHERE name = ? AND operation_id = ? AND fence = ? AND expires_at > ?",
                (now, expires_at, lease.name, lease.operation_id, lease.fence, now),
            )
        if not changed:
            raise _lost(lease)
        return Lease(
            lease.name,
            lease.owner,
            lease.operation_id,
            fence=lease.fence,
            expires_at=expires_at,
            taken_over_from=lease.taken_over_from,
        )

    def release(self, lease: Lease) -> bool:
        """Release the lease; ``False`` when it was lost.

        Safe to repeat.
        """
        with self._database.write() as session:
            return bool(
                session.run(
                    "UPDATE leases SET owner = NULL, operation_id = NULL, expires_at = 0"
                    " WHERE name = ? AND operation_id = ? AND fence = ?",
                    (lease.name, lease.operation_id, lease.fence),
                )
            )

    def guard(self, session: Session, lease: Lease) -> None:
        """Refuse to write under a lost lease.

        Call it inside the transaction that writes. The check is a write of the lease's own row, so
        on PostgreSQL it also locks it until the commit: no other process can be granted the lease
        in between.
        """
        now = self._clock.now_ms()
        changed = session.run(
            "UPDATE leases SET heartbeat_at = ? WHERE name = ? AND operation_id = ? AND fence = ? "
            "AND expires_at > ?",
            (now, lease.name, lease.operation_id, lease.fence, now),
        )
        if not changed:
            raise _lost(lease)

    def find(self, name: str) -> Lease | None:
        """Return a lease's holder, expired or not, or ``None``."""
        with self._database.read() as session:
            row = session.one(
                "SELECT owner, operation_id, fence, expires_at FROM leases WHERE name = ? AND "
                "owner IS NOT NULL",
                (name,),
            )
        return (
            Lease(name, row[0], row[1], fence=int(row[2]), expires_at=int(row[3])) if row else None
        )


def host_name() -> str:
    """This machine, as owners of leases name it."""
    import socket

    return socket.gethostname().replace(":", "_")


def is_gone(owner: str) -> bool:
    """Return True if an owner is a dead process of this machine.

    An owner is ``HOST:PID`` and what may follow. Then no process has to wait for the end of its
    lease.
    """
    host, _, rest = owner.partition(":")
    number = rest.partition(":")[0]
    if os.name != "posix" or host != host_name() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _lost(lease: Lease) -> LeaseLostError:
    return LeaseLostError(
        f"The lease {lease.name!r} of {lease.owner!r} has expired or went to another worker; "
        "nothing was written. "
        "Acquire it again and redo the work.",
        name=lease.name,
        owner=lease.owner,
    )


class Heartbeat:
    """Renews a lease until the block is left."""

    def __init__(self, leases: Leases, lease: Lease, lease_seconds: float) -> None:
        self._leases = leases
        self._lease = lease
        self._seconds = lease_seconds
        self._stopped = threading.Event()
        self._lost: LeaseLostError | None = None
        self._thread = threading.Thread(target=self._beat, name="smara-heartbeat", daemon=True)

    def check(self) -> None:
        """Raise ``LeaseLostError`` when the lease is known to be lost."""
        if self._lost is not None:
            raise self._lost

    def _beat(self) -> None:
        while not self._stopped.wait(self._seconds / 3):
            try:
                self._leases.renew(self._lease, self._seconds)
            except LeaseLostError as error:
                self._lost = error
                return
            except DatabaseError as error:
                log.warning("lease.not_renewed", error=error.code)  # the next beat may do

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join(timeout=5)
