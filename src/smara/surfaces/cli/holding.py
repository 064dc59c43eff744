"""A place that one process of a machine holds: kept while the process lives, free soon after it
dies.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from smara.core import log
from smara.errors import BusyError, DatabaseError, LeaseLostError
from smara.memory import Memory
from smara.surfaces.cli import output

LEASE_SECONDS = 60.0


@contextmanager
def held(memory: Memory, kind: str, stop: threading.Event, project: str | None) -> Iterator[None]:
    """Hold the place of this kind for this machine and project, ``None`` for all; ``BusyError``
    says who has it.

    ``stop`` is set when the place went to somebody else, as it may when a machine has slept.
    """
    name = (
        f"{kind}:{socket.gethostname()}"
        if project is None
        else f"{kind}:{socket.gethostname()}:{project}"
    )
    owner = f"{socket.gethostname()}:{os.getpid()}"
    lease = memory.leases.acquire(name, owner, LEASE_SECONDS)
    if lease is None:
        holder = memory.leases.find(name)
        until = f", and is known to live until {output.moment(holder.expires_at)}" if holder else ""
        whose = "all projects of this store" if project is None else f"the project {project!r}"
        raise BusyError(
            f"A {kind} for {whose} runs on this machine already"
            f" ({holder.owner if holder else 'just started'}{until}). One is enough; a second "
            "would only wait for it."
        )
    left = threading.Event()

    def beat() -> None:
        nonlocal lease
        while lease is not None and not left.wait(LEASE_SECONDS / 3):
            try:
                lease = memory.leases.renew(lease, LEASE_SECONDS)
            except LeaseLostError:
                lease = _again(memory, name, owner)
                if lease is None:
                    stop.set()
            except DatabaseError as error:
                log.warning("lease.not_renewed", error=error.code)  # the next beat may do

    heart = threading.Thread(target=beat, name="smara-holding", daemon=True)
    heart.start()
    try:
        yield
    finally:
        left.set()
        heart.join(timeout=5)
        try:
            if lease is not None:
                memory.leases.release(lease)
        except DatabaseError as error:
            log.warning("lease.not_released", error=error.code)  # it expires by itself


def _again(memory: Memory, name: str, owner: str) -> Any:
    """The place once more, when it was lost to nobody; ``None`` when somebody else has it or nobody
    can tell.
    """
    try:
        return memory.leases.acquire(name, owner, LEASE_SECONDS)
    except DatabaseError:
        return None
