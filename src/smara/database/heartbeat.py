"""A heartbeat: a slow worker that is alive is never robbed of its lease.

While a holder works, a thread renews the lease three times per term. When renewing
fails the holder has lost it, and learns so at the next check, or at the latest from the
fence when it tries to write.
"""

from __future__ import annotations

import threading
from types import TracebackType

from smara.core import log
from smara.database.leases import Lease, Leases
from smara.errors import DatabaseError, LeaseLostError


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
