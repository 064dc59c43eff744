"""Processes that observe, buffer, activate and reflect, now and ahead, until they are killed or
told to stop.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from multiprocessing.connection import Connection
from typing import Any

import smara
from smara.database.leases import Leases
from smara.errors import DatabaseError
from smara.observations import cycle, reflection
from smara.testing import FakeClock
from tests.contract.observing import SMALL, Condenser, Watcher, watch
from tests.faults.workers import READY

SETTINGS: dict[str, Any] = {
    **SMALL,
    "token_model": "estimate",
    "durability": "normal",
    "compact_every_messages": 0,
}
ACTS = (
    "observe",
    "buffer",
    "activate",
    "reflect",
    "buffer",
    "observe",
    "reflect_ahead",
    "activate_reflection",
)
_GIVEN: dict[str, dict[str, bool]] = {
    "activate": {"is_forced": True}, "reflect": {"is_forced": True},
    "activate_reflection": {"is_early": True},
    "reflect_ahead": {"is_forced": True, "is_buffered": True},
}  # fmt: skip
FENCE = "fence"
CURSOR = "cursor"


def set_lease_seconds(seconds: float) -> None:
    """Leases of this process end so soon."""
    cycle.LEASE_SECONDS = reflection.LEASE_SECONDS = seconds  # type: ignore[misc]  # a constant for everybody else


def without(checks: tuple[str, ...]) -> None:
    """The mutants: a worker that does not look before it writes."""
    if FENCE in checks:
        Leases.guard = lambda *_: None  # type: ignore[method-assign]
    if CURSOR in checks:
        cycle.ObservationCycle._expect = lambda *_: None  # type: ignore[method-assign]


def do(room: Any, act: str) -> Any:
    """One of the acts; a reflection ahead is one that is kept aside."""
    return getattr(room, "reflect" if act == "reflect_ahead" else act)("t", **_GIVEN.get(act, {}))


def go_on_forever(pipe: Connection, where: str, seed: str, lease_seconds: float) -> None:
    """Add messages and do everything that can be done with them, in a random order, until
    killed.
    """
    set_lease_seconds(lease_seconds)
    rng = random.Random(seed)
    with smara.open(where, **SETTINGS) as memory:
        room = watch(memory, Watcher(), Condenser(), owner=seed)
        pipe.send(READY)
        for number in itertools.count():
            if rng.random() < 0.6:
                memory.messages.add(
                    thread_id="t",
                    role="user",
                    content=f"{seed} {number}: " + "words and words " * 9,
                )
            act = rng.choice(ACTS)
            do(room, act)
            pipe.send(act)


def think(
    pipe: Connection,
    where: str,
    act: str,
    lease_seconds: float,
    seconds: float,
    off: tuple[str, ...],
) -> None:
    """Observe or reflect once; say when the thinking begins, think for so long, and say what came
    of it.
    """
    set_lease_seconds(lease_seconds)
    without(off)

    mused: list[bool] = []

    def muse() -> None:
        if mused:
            return
        mused.append(True)
        pipe.send("thinking")
        if pipe.poll(seconds):
            pipe.recv()

    with smara.open(where, **SETTINGS) as memory:
        room = watch(memory, Watcher(meanwhile=muse), Condenser(meanwhile=muse), owner="thinker")
        try:
            outcome = do(room, act)
            pipe.send((outcome.success, outcome.code))
        except DatabaseError as error:
            pipe.send((False, error.code))


def think_on(pipe: Connection, where: str, now_ms: int, lease_seconds: float, steps: int) -> None:
    """Observe once, and think for many steps of most of a lease; each is told, and taken when the
    lease was renewed.

    The clock of this process moves only by its steps, so that standing still costs it nothing.
    """
    set_lease_seconds(lease_seconds)
    clock = FakeClock(now_ms)

    def renewed_at() -> int:
        with memory._rooms.database.read() as session:
            return int(session.one("SELECT max(heartbeat_at) FROM leases")[0])

    def muse() -> None:
        ends_at = time.monotonic() + 600  # one that is never renewed is not waited for without end
        for _ in range(steps):
            while renewed_at() < clock.now_ms() and time.monotonic() < ends_at:
                os.sched_yield()
            clock.advance(lease_seconds * 0.8)
            pipe.send(clock.now_ms())
            pipe.recv()

    with smara.open(where, clock=clock, **SETTINGS) as memory:
        room = watch(memory, Watcher(meanwhile=muse), Condenser(), owner="thinker")
        outcome = room.observe("t")
        pipe.send((outcome.success, outcome.code))
