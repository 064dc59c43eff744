"""The cycle against a model that is only lists: whatever is done in whatever order, and wherever a
worker dies.

The model knows the messages, how far they are observed and buffered, how many generations there
are, and whether one waits. After every step the store must say the same, and every message must be
noted once, with all of its words.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import smara
from smara.database.leases import Leases
from smara.errors import BadReplyError, ModelUnavailableError
from smara.observations.buffer import BufferedReflections
from smara.observations.cycle import ObservationCycle
from smara.testing import FakeClock
from tests import stores
from tests.contract.observing import SMALL, Condenser, Watcher, cursors, leases, problems, watch
from tests.faults.sizes import IS_LARGE

ACTS = st.sampled_from(["observe", "buffer"])
THREADS = st.sampled_from(["a", "b"])


class Thinking(Watcher):
    """An observer to which something can happen while it thinks, once."""

    def __init__(self) -> None:
        super().__init__(text="{whole}")
        self.happens: Any = None

    def observe(self, request: Any) -> Any:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        return super().observe(request)


class Observing(RuleBasedStateMachine):
    """Two threads, two workers, and a model of each thread: (messages, observed, buffered,
    generation, one ahead).
    """

    kind = "sqlite"

    @initialize()
    def open(self) -> None:
        self.stack = ExitStack()
        self.clock = FakeClock()
        address = self.stack.enter_context(stores.empty_store(self.kind))
        self.memory = self.stack.enter_context(
            smara.open(
                address, clock=self.clock, token_model="estimate", durability="normal", **SMALL
            )
        )
        self.observer, self.reflector = Thinking(), Condenser()
        offline = Watcher(text="{whole}", method="offline")
        self.room = watch(self.memory, self.observer, self.reflector, fallback=offline)
        self.second = watch(self.memory, Watcher(text="{whole}"), Condenser(), owner="second")
        self.messages = {"a": 0, "b": 0}
        self.observed = {"a": 0, "b": 0}
        self.buffered = {"a": 0, "b": 0}
        self.generation = {"a": 0, "b": 0}
        self.is_ahead = {"a": False, "b": False}
        self.append("a", [40, 80])
        self.append("b", [90])

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.stack.close()

    def covered(self, thread: str) -> int:
        return max(self.observed[thread], self.buffered[thread])

    def is_there(self, thread: str) -> bool:
        return self.messages[thread] > 0

    def is_waiting(self, thread: str) -> bool:
        """Whether the observer will be asked about something; it is no more after five failures."""
        if not self.is_there(thread) or self.covered(thread) == self.messages[thread]:
            return False
        first = self.covered(thread) + 1
        return not any(
            (failed.thread_id, failed.first_seq) == (thread, first) and failed.attempts >= 5
            for failed in self.room.failures(limit=1_000)
        )

    def did(self, act: str, thread: str, up_to: int) -> None:
        """What the model does when a worker has observed up to a message."""
        if act == "observe":
            self.observed[thread] = max(up_to, self.covered(thread))
        elif up_to > self.covered(thread):
            self.buffered[thread] = up_to

    @rule(thread=THREADS, words=st.lists(st.integers(1, 120), min_size=1, max_size=6))
    def append(self, thread: str, words: list[int]) -> None:
        said = [{"role": "user", "content": f"{thread} says " + "word " * count} for count in words]
        self.memory.messages.add_many(thread_id=thread, messages=said)
        self.messages[thread] += len(said)

    @rule(thread=THREADS)
    def extend(self, thread: str) -> None:
        if self.is_there(thread):
            self._extend(thread)

    def _extend(self, thread: str) -> None:
        last = self.memory.messages.list(thread_id=thread, limit=1)[-1]
        after = self.memory.messages.extend(last.id, "and more")
        self.messages[thread] = max(self.messages[thread], after.seq)

    @rule(thread=THREADS, act=ACTS)
    def look(self, thread: str, act: str) -> None:
        if self.is_there(thread):
            assert getattr(self.room, act)(thread).success
            self.did(act, thread, self.messages[thread])

    @rule(thread=THREADS, act=ACTS)
    def look_while_words_arrive(self, thread: str, act: str) -> None:
        if self.is_there(thread):
            self.observer.happens = lambda: self._extend(thread)
            assert getattr(self.room, act)(thread).success
            self.observer.happens = None
            self.did(act, thread, self.messages[thread])

    @rule(thread=THREADS, act=ACTS)
    def look_in_vain(self, thread: str, act: str) -> None:
        """The observer fails; what was buffered is active all the same when observing."""
        if not self.is_waiting(thread):
            return

        def fail() -> None:
            raise BadReplyError("gibberish")

        self.observer.happens = fail
        assert getattr(self.room, act)(thread).code == "bad_reply"
        self.clock.advance(3_600)
        if act == "observe":
            self.observed[thread] = self.covered(thread)

    @rule(thread=THREADS, act=ACTS)
    def look_in_an_outage(self, thread: str, act: str) -> None:
        """Nobody can be asked: however often, the messages wait (as long as an agent can still be
        shown them).
        """
        if (
            not self.is_waiting(thread)
            or self.room.pending(thread).unbuffered > 2 * SMALL["observe_after_tokens"]
        ):
            return

        def fail() -> None:
            raise ModelUnavailableError("away")

        self.observer.happens = fail
        assert getattr(self.room, act)(thread).code == "model_unavailable"
        self.clock.advance(3_600)
        if act == "observe":
            self.observed[thread] = self.covered(thread)

    @rule(thread=THREADS, act=ACTS, other=st.sampled_from(["observe", "buffer", None]))
    def look_and_die(self, thread: str, act: str, other: str | None) -> None:
        """The worker stands still past its lease; somebody else goes on, or nobody; then it tries
        to write.
        """
        if not self.is_waiting(thread):
            return
        before = self.covered(thread)

        def lose() -> None:
            self.clock.advance(61)
            if other is not None:
                outcome = getattr(self.second, other)(thread)
                assert outcome.success
                assert outcome.recovered is not None

        self.observer.happens = lose
        assert getattr(self.room, act)(thread).code == "lease_lost"
        if act == "observe":
            self.observed[thread] = before
        if other is not None:
            self.did(other, thread, self.messages[thread])
        self.clock.advance(61)

    @rule(thread=THREADS)
    def activate_all(self, thread: str) -> None:
        if self.is_there(thread):
            assert self.room.activate(thread, is_forced=True).success
            self.observed[thread] = self.covered(thread)

    @rule(thread=THREADS)
    def activate(self, thread: str) -> None:
        """How many chunks go is arithmetic of its own; here: some, and only from what was
        buffered.
        """
        if not self.is_there(thread):
            return
        before = self.observed[thread]
        assert self.room.activate(thread).success
        after = self.room.observed_seq(thread)
        assert before <= after <= self.covered(thread)
        assert after == before or self.room.pending(thread).tokens >= self.room.limits().retain
        self.observed[thread] = after

    @rule(thread=THREADS)
    def reflect(self, thread: str) -> None:
        """A forced one condenses everything, and takes the place of one that waits."""
        if not self.is_there(thread):
            return
        outcome = self.room.reflect(thread, is_forced=True)
        assert outcome.success or outcome.code == "no_progress"
        self.made(thread, outcome)

    def made(self, thread: str, outcome: Any) -> None:
        """What the model does when a reflection came into force."""
        if outcome.notes:
            self.generation[thread] += 1
            self.is_ahead[thread] = False

    @rule(thread=THREADS)
    def reflect_while_others_observe(self, thread: str) -> None:
        if not self.is_there(thread):
            return

        def meanwhile() -> None:
            self.reflector._meanwhile = None
            assert self.second.observe(thread).success
            self.did("observe", thread, self.messages[thread])

        self.reflector._meanwhile = meanwhile
        self.made(thread, self.room.reflect(thread, is_forced=True))
        self.reflector._meanwhile = None

    @rule(thread=THREADS, is_forced=st.booleans())
    def reflect_ahead(self, thread: str, is_forced: bool) -> None:
        if not self.is_there(thread):
            return
        outcome = self.room.reflect(thread, is_forced=is_forced, is_buffered=True)
        assert outcome.success or outcome.code == "no_progress"
        assert not (outcome.notes and self.is_ahead[thread] and not is_forced), "one is enough"
        self.is_ahead[thread] = self.is_ahead[thread] or outcome.notes > 0

    @rule(thread=THREADS, other=st.sampled_from(["now", "ahead", None]))
    def reflect_ahead_and_die(self, thread: str, other: str | None) -> None:
        """It stands still past its lease; somebody else reflects, now or ahead, or nobody; then it
        tries to write.
        """
        if not self.is_there(thread) or not self.room.active(thread):
            return

        def lose() -> None:
            self.reflector._meanwhile = None
            self.clock.advance(61)
            if other is not None:
                outcome = self.second.reflect(thread, is_forced=True, is_buffered=other == "ahead")
                assert outcome.recovered is not None
                if other == "now":
                    self.made(thread, outcome)
                elif outcome.notes:
                    self.is_ahead[thread] = True

        self.reflector._meanwhile = lose
        assert self.room.reflect(thread, is_forced=True, is_buffered=True).code in (
            "lease_lost",
            "no_progress",
        )
        self.reflector._meanwhile = None
        self.clock.advance(61)

    @rule(thread=THREADS)
    def activate_reflection(self, thread: str) -> None:
        if not self.is_there(thread):
            return
        outcome = self.second.activate_reflection(thread, is_early=True)
        assert outcome.success
        assert (outcome.notes > 0) == self.is_ahead[thread]
        self.made(thread, outcome)

    @invariant()
    def store_says_what_the_model_says(self) -> None:
        if not hasattr(self, "memory"):
            return
        assert problems(self.memory) == []
        stored = cursors(self.memory)
        for thread in ("a", "b"):
            observed, _, buffered, _ = stored.get(thread, (0, 0, 0, 0))
            assert (observed, max(observed, buffered)) == (
                self.observed[thread],
                self.covered(thread),
            )
            if self.is_there(thread):
                record = self.room.record(thread)
                assert (record.generation if record else 0) == self.generation[thread]
                made = [
                    row
                    for row in self.room.list(thread_id=thread, limit=10_000)
                    if row.kind == "reflection"
                ]
                shown = sorted(row.generation for row in made if row.state != "buffered")
                assert shown == list(range(1, self.generation[thread] + 1))
                ahead = [row.generation for row in made if row.state == "buffered"]
                assert ahead == [self.generation[thread] + 1] * self.is_ahead[thread]
        assert leases(self.memory) == []

    @invariant()
    def every_message_is_noted_once_with_all_of_its_words(self) -> None:
        for thread in ("a", "b") if hasattr(self, "memory") else ():
            if not self.is_there(thread):
                continue
            rows = [
                row
                for row in self.room.list(thread_id=thread, limit=10_000)
                if row.kind == "observation"
            ]
            noted = sorted((row.first_seq, row.text) for row in rows)
            said = self.memory.messages.list(thread_id=thread, limit=10_000)
            covered = self.covered(thread)
            assert noted == [
                (message.seq, message.raw_content) for message in said if message.seq <= covered
            ]
            assert all(
                (row.state == "buffered") == (row.first_seq > self.observed[thread]) for row in rows
            )
            assert all(
                (row.state == "reflected") == (row.reflected_into is not None) for row in rows
            )


def explore(kind: str, examples: int, steps: int, *, is_short: bool = False) -> None:
    machine = type("Machine", (Observing,), {"kind": kind})
    # Shrinking a failure may take minutes; a quick run shows it as it was found.
    phases = tuple(Phase) if IS_LARGE and not is_short else (Phase.generate,)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
            derandomize=is_short,
            report_multiple_bugs=False,
        ),
    )


def test_cycle_on_sqlite_does_what_the_model_does() -> None:
    explore("sqlite", 600 if IS_LARGE else 50, 60 if IS_LARGE else 40)


@pytest.mark.postgres
def test_cycle_on_postgresql_does_what_the_model_does() -> None:
    explore("postgres", 150 if IS_LARGE else 10, 60 if IS_LARGE else 40)


# The detector is proved by mutants: each must be seen.


def test_machine_sees_a_worker_that_does_not_look_before_it_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Leases, "guard", lambda *_: None)
    with pytest.raises(AssertionError):
        explore("sqlite", 60, 30, is_short=True)


def test_machine_sees_a_message_that_is_not_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smara.messages.store.MessageStore.seal", lambda *_: 0)
    with pytest.raises(AssertionError):
        explore("sqlite", 60, 30, is_short=True)


def test_machine_sees_a_reflection_that_waits_although_another_was_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(BufferedReflections, "find", lambda *_: None)
    with pytest.raises(AssertionError):
        explore("sqlite", 60, 30, is_short=True)


def test_machine_sees_an_observation_that_steps_over_what_is_buffered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ObservationCycle, "_activate_all", lambda *_: None)
    with pytest.raises(AssertionError):
        explore("sqlite", 60, 30, is_short=True)
