"""Lease work to one worker at a time, with a fence.

A worker whose lease expired cannot write: its fence number is too old. `Leases.hold` renews
a lease from a thread while the work goes on, and reports a lost one at the next check.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from smara.core import log
from smara.core.clock import Clock
from smara.core.ids import IdMaker
from smara.core.startup.record import dataclass, replace
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


@dataclass(slots=True)
class Heartbeat:
    """A lease that a thread renews while its block runs."""

    lease: Lease
    is_lost: bool = False

    def check(self) -> None:
        """Raise ``LeaseLostError`` when the lease is lost."""
        if self.is_lost:
            raise LeaseLostError(
                f"The lease {self.lease.name!r} of {self.lease.owner!r} has expired or went to "
                "another worker; nothing was written. Acquire it again and redo the work.",
                name=self.lease.name,
                owner=self.lease.owner,
            )


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
                "INSERT INTO leases (name, owner, operation_id, fence, acquired_at, heartbeat_at,"
                " expires_at) VALUES (?, ?, ?, 1, ?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner,"
                " operation_id = excluded.operation_id, fence = leases.fence + 1,"
                " acquired_at = excluded.acquired_at, heartbeat_at = excluded.heartbeat_at,"
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
        Heartbeat(lease, is_lost=not changed).check()
        return replace(lease, expires_at=expires_at)

    def acquire_from_gone(self, name: str, owner: str, lease_seconds: float) -> Lease | None:
        """Take the lease, also from a process that has ended.

        Hosts that leave kill what runs in their background, so its lease is not waited for.

        Args:
            name: The lease.
            owner: The process that asks, as ``host:pid``.
            lease_seconds: How long it holds without being renewed.
        """
        lease = self.acquire(name, owner, lease_seconds)
        holder = self.find(name) if lease is None else None
        if holder is not None and is_gone(holder.owner):
            self.release(holder)
            lease = self.acquire(name, owner, lease_seconds)
        return lease

    @contextmanager
    def hold(
        self, lease: Lease, lease_seconds: float, on_lost: Callable[[], object] | None = None
    ) -> Iterator[Heartbeat]:
        """Renew a lease while the block runs, then release it.

        It is renewed three times per term.

        Args:
            lease: The lease that was acquired.
            lease_seconds: Its term.
            on_lost: Called when another process has taken it. An expired lease that no other
                process took is then acquired again, as after a machine slept; without it, the
                next `Heartbeat.check` raises.
        """
        beat, is_over = Heartbeat(lease), threading.Event()

        def renew() -> None:
            while not beat.is_lost and not is_over.wait(lease_seconds / 3):
                try:
                    try:
                        beat.lease = self.renew(beat.lease, lease_seconds)
                    except LeaseLostError:
                        again = on_lost and self.acquire(lease.name, lease.owner, lease_seconds)
                        beat.lease, beat.is_lost = again or beat.lease, not again
                        if on_lost and not again:
                            on_lost()
                except DatabaseError as error:
                    log.warning("lease.not_renewed", error=error.code)  # the next beat may do

        thread = threading.Thread(target=renew, name="smara-heartbeat", daemon=True)
        thread.start()
        try:
            yield beat
        finally:
            is_over.set()
            thread.join(timeout=5)
            try:
                self.release(beat.lease)
            except DatabaseError as error:  # it expires by itself
                log.warning("lease.not_released", error=error.code)

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
        Heartbeat(lease, is_lost=not changed).check()

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
