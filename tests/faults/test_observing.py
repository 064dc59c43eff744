"""Whoever dies or stands still while observing: every message is observed exactly once, and nobody
waits for ever.

Real processes under SIGKILL and SIGSTOP on both databases. The detectors are proved by mutants:
workers that do not look before they write, on a store that does not refuse what is there twice.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import smara
from smara.errors import BusyError
from smara.testing import FakeClock
from tests.contract.observing import Condenser, Watcher, cursors, fill, leases, problems, watch
from tests.faults import observing_workers as workers
from tests.faults.conftest import Start
from tests.faults.sizes import SEED, count
from tests.faults.test_leases import go_on, stop

LEASE_SECONDS = 0.2
REFLECTS = ("reflect", "reflect_ahead")


@contextmanager
def opened(where: str, **settings: Any) -> Iterator[Any]:
    with smara.open(where, **{**workers.SETTINGS, **settings}) as memory:
        yield memory


def wrong(memory: Any) -> list[str]:
    """Everything that is not as it must be, whatever happened before."""
    found = problems(memory)
    room = memory.observations
    record = room.record("t")
    if record is None:
        return found
    stored = room.list(limit=100_000)
    noted = Counter(row.first_seq for row in stored if row.kind == "observation")
    observed, tokens, buffered, _ = cursors(memory).get("t", (0, 0, 0, 0))
    if noted != Counter(range(1, max(observed, buffered) + 1)):
        found.append(f"noted {sorted(noted.items())}, cursor {observed} and {buffered}")
    if record.observed_tokens != tokens:
        found.append(f"the record counts {record.observed_tokens} tokens, the cursor {tokens}")
    found += wrong_reflections(memory, stored, record.generation)
    if any(
        row.reflected_into is None or row.reflected_into > record.generation
        for row in stored
        if row.state == "reflected"
    ):
        found.append("condensed into nothing")
    return found


def wrong_reflections(memory: Any, stored: list[Any], generation: int) -> list[str]:
    """Each generation is there once; one that waits is the next, whole, and stands for what is
    still shown.
    """
    found = []
    made = Counter(
        row.generation for row in stored if row.kind == "reflection" and row.state != "buffered"
    )
    if made != Counter(range(1, generation + 1)):
        found.append(f"reflections {made} of {generation} generations")
    ahead = [
        row.generation for row in stored if row.kind == "reflection" and row.state == "buffered"
    ]
    with memory._rooms.database.read() as session:
        kept = session.all("SELECT generation, sources FROM buffered_reflections")
        active = {
            row[0] for row in session.all("SELECT no FROM observations WHERE state = 'active'")
        }
    if ahead != [row[0] for row in kept] or ahead not in ([], [generation + 1]):
        found.append(
            f"waiting {ahead}, kept {[row[0] for row in kept]}, behind generation {generation}"
        )
    if not all(active.issuperset(json.loads(row[1])) for row in kept):
        found.append("what waits stands for something that is shown no more")
    return found


def finish(memory: Any) -> None:
    """Observe what is left; a dead worker's lease holds it up for no longer than it lasts."""
    room = memory.observations
    deadline = time.monotonic() + LEASE_SECONDS + 600
    while (outcome := room.observe("t")).code in ("in_progress", "lease_lost"):
        assert time.monotonic() < deadline, f"stuck: {leases(memory)}"
        os.sched_yield()
    assert outcome.success, outcome
    assert room.pending("t") == (0, 0)
    assert cursors(memory)["t"][0] == memory.threads.get("t").message_count


def settle(memory: Any) -> None:
    """What waits comes into force; a dead worker's lease holds it up for no longer than it
    lasts.
    """
    deadline = time.monotonic() + LEASE_SECONDS + 600
    while (
        outcome := memory.observations.activate_reflection("t", is_early=True)
    ).code == "in_progress":
        assert time.monotonic() < deadline, f"stuck: {leases(memory)}"
        os.sched_yield()
    assert outcome.success, outcome
    assert memory.observations.status("t")["bufferedReflectionTokens"] == 0


def test_every_message_is_observed_exactly_once_whenever_a_worker_is_killed(
    where: str, start: Start, rng: random.Random
) -> None:
    """Each trial kills two workers at random moments over observe, buffer, activate and reflect,
    now and ahead.
    """
    acts: Counter[str] = Counter()
    with opened(where) as memory:
        watch(memory, Watcher(), Condenser(), owner="the survivor")
        fill(memory, 3)
        for trial in range(count(5, 100)):
            pair = [
                start(workers.go_on_forever, where, f"{SEED}-{trial}-{number}", LEASE_SECONDS)
                for number in range(2)
            ]
            for worker in pair:
                worker.first(1 + rng.randrange(6))
            pair[0].process.join(rng.uniform(0, 0.05))
            for worker in rng.sample(pair, 2):
                acts.update(worker.kill())
            assert wrong(memory) == [], f"trial {trial}, seed {SEED}"
            if trial % 3 == 2:
                finish(memory)
                assert wrong(memory) == [], f"trial {trial}, seed {SEED}"
        finish(memory)
        assert wrong(memory) == [], f"seed {SEED}"
        assert not [
            name
            for name, owner in leases(memory)
            if name.startswith("observations") and owner != "the survivor"
        ]
        settle(memory)
        assert wrong(memory) == [], f"seed {SEED}"


def paused(
    where: str, start: Start, act: str, off: tuple[str, ...] = (), moment: float | None = None
) -> tuple[Any, list[str]]:
    """A worker stands still past its lease while another does its work; what came of it, and what
    is wrong now.

    1. The worker thinks and is stopped. 2. The survivor waits for the lease to expire and observes
      or reflects. 3. The worker goes on and tries to write what it has.
    """
    with opened(where, busy_timeout_seconds=2.0) as memory:
        room = watch(memory, Watcher(), Condenser(), owner="the survivor")
        fill(memory, 6)
        if act in REFLECTS:
            room.observe("t")
        worker = start(workers.think, where, act, LEASE_SECONDS, 30.0, off)
        assert worker.pipe.recv() == "thinking"
        if moment is not None:
            worker.pipe.send("write now")
            worker.process.join(moment)
        with suppress(ProcessLookupError, FileNotFoundError):  # it may have ended by itself
            stop(worker)
        try:
            fill(memory, 1)
            if act in REFLECTS:
                while room.reflect("t", is_forced=True).code == "in_progress":
                    os.sched_yield()
            else:
                finish(memory)
        except BusyError:
            # it was stopped in the middle of writing: nobody can write, and nothing can go wrong
            pass
        with suppress(ProcessLookupError):
            go_on(worker)
        if moment is None:
            worker.pipe.send("write now")
        outcome = [each for each in worker.rest() if each != "thinking"]
        broken = wrong(memory)
        if not broken:
            finish(memory)
            broken = wrong(memory)
        return outcome[-1], broken


@pytest.mark.parametrize("act", ["observe", "buffer", *REFLECTS])
def test_worker_stopped_past_its_lease_while_thinking_writes_nothing(
    where: str, start: Start, act: str
) -> None:
    for _ in range(count(1, 12)):
        assert paused(where, start, act) == ((False, "lease_lost"), [])


@pytest.mark.parametrize("act", ["observe", "buffer", *REFLECTS])
def test_every_message_is_observed_exactly_once_whenever_a_worker_is_stopped(
    where: str, start: Start, rng: random.Random, act: str
) -> None:
    for trial in range(count(2, 25)):
        _, broken = paused(where, start, act, moment=rng.uniform(0, 0.012))
        assert broken == [], f"trial {trial}, seed {SEED}"


@pytest.mark.parametrize("act", ["observe", "buffer", *REFLECTS])
def test_cursor_holds_even_without_the_fence(where: str, start: Start, act: str) -> None:
    """The second line: rows are written only where the reader found the cursor, or the rows, still
    as they were.
    """
    outcome, broken = paused(where, start, act, off=(workers.FENCE,))
    assert (outcome, broken) == ((False, "lease_lost"), [])


@pytest.mark.parametrize("act", ["observe", "buffer"])
def test_detector_sees_a_message_observed_twice_when_nobody_looks_before_writing(
    where: str, start: Start, act: str
) -> None:
    """The mutant: no fence, no look at the cursor, no key on the batches."""
    with opened(where) as memory:
        drop_key(memory)
    _, broken = paused(where, start, act, off=(workers.FENCE, workers.CURSOR))
    assert any(each.startswith("noted") for each in broken)


def drop_key(memory: Any) -> None:
    """Let a store take the same batch twice; it has none yet."""
    key = "UNIQUE (record_no, thread_no, first_seq)"
    with memory._rooms.database.write() as session:
        if memory._rooms.database.facts()["engine"] == "postgres":
            [name] = session.one(
                "SELECT conname FROM pg_constraint WHERE conrelid = 'observation_batches'::regclass"
                " AND pg_get_constraintdef(oid) = ?",
                (key,),
            )
            session.run(f"ALTER TABLE observation_batches DROP CONSTRAINT {name}")
            return
        [made] = session.one("SELECT sql FROM sqlite_master WHERE name = 'observation_batches'")
        session.run("DROP TABLE observation_batches")
        session.run(made.replace(f",\n  {key}", ""))


def test_slow_but_living_worker_is_not_robbed(where: str, start: Start) -> None:
    """It thinks for four terms of its lease; whoever asks meanwhile is told to come again."""
    clock, steps = FakeClock(), 5
    with opened(where, clock=clock) as memory:
        room = watch(memory, Watcher(), Condenser(), owner="the survivor")
        fill(memory, 4)
        worker = start(workers.think_on, where, clock.now_ms(), LEASE_SECONDS, steps)
        for _ in range(steps):
            clock.set(worker.pipe.recv())
            assert room.observe("t").code == "in_progress"
            worker.pipe.send("asked")
        assert worker.pipe.recv() == (True, None)
        assert wrong(memory) == []


def test_lease_of_a_killed_worker_is_cleared_and_reported(where: str, start: Start) -> None:
    with opened(where) as memory:
        room = watch(memory, Watcher(), Condenser(), owner="the survivor")
        fill(memory, 4)
        worker = start(workers.think, where, "observe", LEASE_SECONDS, 30.0, ())
        assert worker.pipe.recv() == "thinking"
        worker.kill()
        while (outcome := room.observe("t")).code == "in_progress":
            os.sched_yield()
        assert outcome.success
        assert outcome.recovered["owner"] == "thinker"
        assert outcome.recovered["lastKnownState"]["threads"]["t"]["observedSeq"] == 0
        assert leases(memory) == []
