"""A lease paused past its expiry cannot write: real processes under SIGSTOP, and every state of a
small model.

Each detector is proved by a mutant, the fence taken away: then it must find a double write.
"""

from __future__ import annotations

import os
import random
import signal
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

import smara
from smara.database.database import Session
from smara.database.leases import Lease, Leases
from smara.errors import LeaseLostError
from smara.testing import CountingIds, FakeClock
from tests.faults import workers
from tests.faults.conftest import Start, Worker
from tests.faults.sizes import SEED, count

RESULTS = "CREATE TABLE IF NOT EXISTS results (worker TEXT NOT NULL, fence INTEGER NOT NULL)"


def stop(worker: Worker) -> None:
    """SIGSTOP, and wait until the kernel says that it stands still."""
    number = worker.process.pid
    assert number is not None
    os.kill(number, signal.SIGSTOP)
    while Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        os.sched_yield()


def go_on(worker: Worker) -> None:
    assert worker.process.pid is not None
    os.kill(worker.process.pid, signal.SIGCONT)


def takes_over(memory: smara.Memory) -> Lease:
    """The lease, asked for until its holder's time is up."""
    while (lease := memory.internals.leases.acquire("work", "second", lease_seconds=60)) is None:
        os.sched_yield()
    return lease


def paused_holder(where: str, start: Start, is_fenced: bool) -> tuple[str, list[str]]:
    """Pause a holder past its expiry, let another take over and write, wake the first; what came of
    its write.

    1. The holder takes a lease of 50 ms and is stopped. 2. Another process is granted it after it
    expired, and writes. 3. The holder goes on and tries to write what it has.
    """
    with smara.open(where) as memory:
        with memory._rooms.database.write() as session:
            session.run(RESULTS)
        holder = start(workers.hold, where, is_fenced)
        assert holder.pipe.recv() is True
        stop(holder)
        lease = takes_over(memory)
        assert lease.taken_over_from is not None
        workers.write_under(memory, lease, "second", is_fenced=True)
        go_on(holder)
        holder.pipe.send("write now")
        outcome = holder.pipe.recv()
        holder.rest()
        with memory._rooms.database.read() as session:
            return outcome, [row[0] for row in session.all("SELECT worker FROM results")]


def test_holder_stopped_past_its_expiry_cannot_write(tmp_path: Path, start: Start) -> None:
    for trial in range(count(3, 60)):
        assert paused_holder(str(tmp_path / f"{trial}.db"), start, is_fenced=True) == (
            "refused",
            ["second"],
        )


def test_pause_detector_sees_a_double_write_when_the_fence_is_off(store: str, start: Start) -> None:
    """The mutant: a worker that trusts the time it was told when the lease was granted."""
    outcome, written = paused_holder(store, start, is_fenced=False)
    assert outcome == "written"
    assert len(written) == 2


@pytest.mark.postgres
def test_holder_stopped_past_its_expiry_cannot_write_on_postgres(
    postgres_url: str, start: Start
) -> None:
    assert paused_holder(postgres_url, start, is_fenced=True) == ("refused", ["second"])


@pytest.mark.postgres
def test_pause_detector_sees_a_double_write_when_the_fence_is_off_on_postgres(
    postgres_url: str, start: Start
) -> None:
    assert len(paused_holder(postgres_url, start, is_fenced=False)[1]) == 2


def test_lease_of_a_killed_holder_is_taken_over_and_named(store: str, start: Start) -> None:
    holder = start(workers.hold, store, True)
    assert holder.pipe.recv() is True
    name = f"holder-{holder.process.pid}"
    holder.kill()
    with smara.open(store) as memory:
        assert takes_over(memory).taken_over_from == name


def test_many_processes_that_ask_at_once_are_granted_one_lease(store: str, start: Start) -> None:
    smara.open(store).close()
    holders = [start(workers.hold_long, store) for _ in range(count(4, 12))]
    granted = [holder.pipe.recv() for holder in holders]
    assert sorted(granted) == [False] * (len(holders) - 1) + [True]


# The model: the real Leases on a real database, driven through every order of a few steps.

TICK = 1.0
LEASE_TICKS = 2
MOST_TICKS = count(5, 8)


class Waiting(NamedTuple):
    """A worker without a lease."""


class Holding(NamedTuple):
    """A worker with a lease: its fence, and until which tick it believes in it."""

    fence: int
    believes_until: int


class Ready(NamedTuple):
    """A worker that has looked at its clock, found its lease good, and is about to write (or is
    paused there).
    """

    fence: int


WorkerState = Waiting | Holding | Ready | None  # None: crashed


class State(NamedTuple):
    """Everything: the tick, the lease's row (fence, holder, expiry), the workers, the fences of the
    writes so far.
    """

    tick: int
    fence: int
    holder: int | None
    expires_at: int
    workers: tuple[WorkerState, ...]
    writes: tuple[int, ...]


def steps(state: State, is_fenced: bool) -> Iterator[tuple[str, State]]:
    """Every next state: time passes, a worker asks, renews, looks at its clock, writes, gives back,
    crashes.

    A pause is a worker that takes no step while others do; in a search over all orders, any can be
    paused anywhere.
    """
    if state.tick < MOST_TICKS:
        yield "tick", state._replace(tick=state.tick + 1)
    for number, worker in enumerate(state.workers):
        if worker is None:
            continue
        yield f"{number} crashes", _with(state, number, None)
        is_held = (
            state.holder == number
            and not isinstance(worker, Waiting)
            and state.fence == worker.fence
        )
        is_valid = is_held and state.tick < state.expires_at
        if isinstance(worker, Waiting):
            if state.holder is None or state.expires_at <= state.tick:
                until = state.tick + LEASE_TICKS
                granted = state._replace(fence=state.fence + 1, holder=number, expires_at=until)
                yield f"{number} acquires", _with(granted, number, Holding(state.fence + 1, until))
        elif isinstance(worker, Holding):
            if is_valid:
                until = state.tick + LEASE_TICKS
                yield (
                    f"{number} renews",
                    _with(state._replace(expires_at=until), number, Holding(worker.fence, until)),
                )
            if state.tick < worker.believes_until:
                yield f"{number} looks at its clock", _with(state, number, Ready(worker.fence))
            else:
                yield f"{number} gives up", _with(state, number, Waiting())
        elif is_valid or not is_fenced:
            released = state._replace(holder=None, expires_at=0) if is_held else state
            yield (
                f"{number} writes",
                _with(released._replace(writes=(*state.writes, worker.fence)), number, Waiting()),
            )
        else:
            yield f"{number} is refused", _with(state, number, Waiting())


def _with(state: State, number: int, worker: WorkerState) -> State:
    return state._replace(workers=(*state.workers[:number], worker, *state.workers[number + 1 :]))


def is_violated(state: State) -> bool:
    """A write came after that of a later grant: the late worker wrote over the new holder's
    work.
    """
    return any(later < earlier for earlier, later in pairwise(state.writes))


def explore(is_fenced: bool, most_writes: int = 3) -> tuple[int, list[str] | None]:
    """How many states there are, and the shortest way to a violation."""
    first = State(0, 0, None, expires_at=0, workers=(Waiting(),) * 3, writes=())
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        if is_violated(state):
            return len(came_from), _way_to(state, came_from)
        if len(state.writes) >= most_writes:
            continue
        for name, following in steps(state, is_fenced):
            if following not in came_from:
                came_from[following] = (state, name)
                queue.append(following)
    return len(came_from), None


def _way_to(state: State, came_from: dict[State, tuple[State, str] | None]) -> list[str]:
    way = []
    while (before := came_from[state]) is not None:
        state = before[0]
        way.append(before[1])
    return way[::-1]


def test_no_order_of_steps_lets_a_late_worker_write() -> None:
    states, way = explore(is_fenced=True)
    assert way is None
    assert states > 10_000


def test_model_finds_the_late_write_when_the_fence_is_off() -> None:
    """The mutant; the shortest way is the story of every such bug: grant, look, pause, expiry,
    second grant.
    """
    _, way = explore(is_fenced=False)
    assert way is not None
    assert [step.split(" ", 1)[1] if step != "tick" else step for step in way].count("writes") == 2


class NoFence(Leases):
    """The mutant: the check inside the transaction is gone."""

    def guard(self, session: Session, lease: Lease) -> None:
        return None


@pytest.mark.parametrize("kind", [Leases, NoFence])
def test_real_leases_follow_the_model_through_random_steps(
    rng: random.Random, store: str, kind: type[Leases]
) -> None:
    """The same rule on the real table with a clock that is told; the mutant must be seen to break
    it.
    """
    clock = FakeClock()
    violations = 0
    with smara.open(store, clock=clock) as memory:
        leases = kind(memory._rooms.database, clock, CountingIds("operation"))
        for _ in range(count(40, 600)):
            violations += _random_story(memory, leases, clock, rng=rng)
    assert (violations > 0) == (kind is NoFence), f"{violations} violations, seed {SEED}"


def _random_story(
    memory: smara.Memory, leases: Leases, clock: FakeClock, rng: random.Random
) -> bool:
    """Three workers take random steps; whether a late one wrote."""
    held: dict[int, Lease] = {}
    name = f"story-{rng.random()}"
    writes: list[int] = []
    kinds, weights = ("acquire", "write", "tick", "renew", "release", "crash"), (8, 8, 4, 1, 1, 1)
    for step in rng.choices(kinds, weights, k=60):
        worker = rng.randrange(3)
        lease = held.get(worker)
        try:
            if step == "tick":
                clock.advance(rng.choice((0.2, 1.0, 3.0)))
            elif step == "acquire" and lease is None:
                granted = leases.acquire(name, f"w{worker}", lease_seconds=1.0)
                if granted is not None:
                    held[worker] = granted
            elif lease is not None and step == "renew":
                held[worker] = leases.renew(lease, 1.0)
            elif lease is not None and step == "release":
                leases.release(held.pop(worker))
            elif lease is not None and step == "crash":
                del held[worker]
            elif lease is not None and step == "write":
                with memory._rooms.database.write() as session:
                    leases.guard(session, lease)
                writes.append(lease.fence)
        except LeaseLostError:
            held.pop(worker, None)
    return any(later < earlier for earlier, later in pairwise(writes))
