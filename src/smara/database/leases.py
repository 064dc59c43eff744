"""Leases with a fence: one worker at a time, and a late one can never write.

A lease saves work; it does not by itself make writing safe, because its holder may be
paused past its expiry and wake up believing. Safety comes from the fence: every grant
gets a higher number, and :meth:`Leases.guard` checks it *inside* the transaction that
writes. A worker whose lease has expired or gone to somebody else gets
``LeaseLostError`` and its transaction is undone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from smara.core.clock import Clock
from smara.core.ids import IdMaker
from smara.database.database import Database, Session
from smara.errors import LeaseLostError


@dataclass(frozen=True, slots=True)
class Lease:
    """A grant: who may do the named work, until when, and the fence that proves it."""

    name: str
    owner: str
    operation_id: str
    fence: int
    expires_at: int
    taken_over_from: str | None = None


class Leases:
    """Grants leases by name. Any number of processes may ask; at most one is told yes."""

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
        """Give the lease back; ``False`` when it was no longer ours. Safe to repeat."""
        with self._database.write() as session:
            return bool(
                session.run(
                    "UPDATE leases SET owner = NULL, operation_id = NULL, expires_at = 0"
                    " WHERE name = ? AND operation_id = ? AND fence = ?",
                    (lease.name, lease.operation_id, lease.fence),
                )
            )

    def guard(self, session: Session, lease: Lease) -> None:
        """Refuse to write under a lost lease; call it inside the transaction that writes.

        The check is a write of the lease's own row, so on PostgreSQL it also locks it
        until the commit: nobody can be granted the lease in between.
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
        """Who holds the lease now, expired ones included; ``None`` when nobody does."""
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
    """Whether an owner, ``HOST:PID`` and what may follow, is a process of this machine that is no
    more.

    Nobody has to wait for the end of its lease.
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
