"""An observer that fails: nothing moves, the failure is recorded, and the messages wait until
somebody can be asked.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from smara.errors import (
    BadReplyError,
    BudgetSpentError,
    ModelAbortedError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import SMALL, Watcher, cursors, fill, leases, problems, rows, watch

pytestmark = EACH_DATABASE

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"

TROUBLES = [
    ModelUnavailableError,
    ModelRefusedError,
    BadReplyError,
    BudgetSpentError,
    ModelAbortedError,
    ModelError,
]


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(**SMALL)


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("act", ["buffer", "observe"])
def test_failure_moves_nothing_and_is_recorded_with_the_time_to_try_again(
    memory: Any, clock: FakeClock, trouble: type[ModelError], act: str
) -> None:
    watcher = Watcher([trouble(f"no luck with {SECRET}")])
    room = watch(memory, watcher)
    fill(memory, 3)
    outcome = getattr(room, act)("t")
    assert (outcome.success, outcome.code, outcome.is_retryable) == (
        False,
        trouble.code,
        # A model that answered badly may answer well: it is asked again.
        trouble.is_retryable or trouble is BadReplyError,
    )
    assert cursors(memory) == {}
    assert rows(memory)["observations"] == rows(memory)["batches"] == 0
    assert leases(memory) == []
    [failure] = room.failures()
    assert (failure.thread_id, failure.attempts, failure.code) == ("t", 1, trouble.code)
    assert failure.operation == (
        "observe" if trouble in (BadReplyError, ModelRefusedError) else "outage"
    )
    assert failure.is_dead is False
    assert failure.retry_at > clock.now_ms()
    assert SECRET not in failure.message


@pytest.mark.parametrize("act", ["buffer", "observe"])
def test_job_that_failed_waits_for_its_time_and_then_succeeds(
    memory: Any, clock: FakeClock, act: str
) -> None:
    watcher = Watcher([ModelUnavailableError("overloaded"), ModelUnavailableError("overloaded")])
    room = watch(memory, watcher)
    fill(memory, 3)
    try_it: Callable[[], Any] = lambda: getattr(room, act)("t")  # noqa: E731
    try_it()
    assert try_it().is_retryable
    assert len(watcher.requests) == 1, "it is not asked again before its time"
    clock.advance((room.failures()[0].retry_at - clock.now_ms()) / 1000)
    try_it()
    first, second = 15_000, room.failures()[0].retry_at - clock.now_ms()
    assert second > first
    clock.advance(second / 1000)
    assert try_it().messages == 3
    assert room.failures() == []
    assert problems(memory) == []


def test_job_that_failed_five_times_is_observed_offline_and_stays_visible(
    memory: Any, clock: FakeClock
) -> None:
    watcher = Watcher([BadReplyError("gibberish")] * 5)
    room = watch(memory, watcher, fallback=Watcher(method="offline"))
    fill(memory, 3)
    for _ in range(5):
        assert room.observe("t").success is False
        clock.advance(3_600)
    assert room.observe("t").messages == 3
    assert len(watcher.requests) == 5
    assert {row.method for row in room.list()} == {"offline"}
    [dead] = room.failures()
    assert (dead.is_dead, dead.attempts, dead.code) == (True, 5, "bad_reply")
    fill(memory, 1)
    assert room.observe("t").success
    assert room.list()[0].method == "watcher", "the next job has its model again"
    assert problems(memory) == []


OUTAGES = [
    ModelUnavailableError("overloaded"),
    ModelRefusedError("no credit", reason="quota"),
    ModelRefusedError("a wrong key", reason="key"),
    ModelRefusedError("paused", reason="paused"),
    BadReplyError("a page of a proxy", reason="unreadable"),
    BudgetSpentError("spent"),
]


@pytest.mark.parametrize(
    "outage", OUTAGES, ids=lambda error: f"{error.code} {error.facts.get('reason', '')}".strip()
)
def test_outage_of_hours_is_no_poison(memory: Any, clock: FakeClock, outage: ModelError) -> None:
    """However long nobody can be asked, the messages wait, are seen to wait, and the model observes
    them after all.
    """
    watcher = Watcher([outage] * 10_000)
    room = watch(memory, watcher)
    fill(memory, 3)
    asked_at: list[int] = []
    for _ in range(150):
        before = len(watcher.requests)
        assert room.observe("t").success is False
        asked_at += [clock.now_ms()] * (len(watcher.requests) - before)
        clock.advance(60)
    waits = [(later - earlier) / 60_000 for earlier, later in pairwise(asked_at)]
    assert 15 <= max(waits) <= 16, "the server that comes back is not left alone for longer"
    assert len(asked_at) < 20, "and the one that does not is not asked without end"
    [failure] = room.failures()
    assert (failure.operation, failure.is_dead, failure.attempts) == (
        "outage",
        False,
        len(asked_at),
    )
    assert room.status("t")["waiting"]["code"] == outage.code
    assert memory.status()["observations"]["threadsWaiting"] == 1
    assert [message.seq for message in memory.context.process_input("t").messages] == [1, 2, 3]
    watcher._errors.clear()
    clock.advance(900)
    assert room.observe("t").messages == 3
    assert {row.method for row in room.list()} == {"watcher"}
    assert (room.failures(), room.status("t")["waiting"], room.warned()) == ([], None, [])
    assert problems(memory) == []


@pytest.mark.parametrize(
    "trouble", [ModelUnavailableError("away"), BadReplyError("gibberish")], ids=["away", "bad"]
)
@pytest.mark.parametrize("act", ["buffer", "observe"])
def test_what_failed_is_tried_at_once_when_somebody_wants_it_now(
    memory: Any, act: str, trouble: ModelError
) -> None:
    watcher = Watcher([trouble])
    room = watch(memory, watcher)
    fill(memory, 3)
    assert getattr(room, act)("t").success is False
    assert getattr(room, act)("t").success is False
    assert len(watcher.requests) == 1
    assert getattr(room, act)("t", is_now=True).messages == 3
    assert room.failures() == []


def test_nobody_waits_for_a_model_that_is_no_longer_configured(memory: Any) -> None:
    fill(memory, 3)
    assert watch(memory, Watcher([ModelUnavailableError("away")])).observe("t").success is False
    room = watch(memory, Watcher(method="offline"), fallback=Watcher(method="offline"))
    assert room.observe("t").messages == 3
    assert (room.failures(), room.status("t")["waiting"]) == ([], None)


def test_what_the_server_or_the_budget_asks_for_is_waited_for(
    memory: Any, clock: FakeClock
) -> None:
    opens_at = clock.now_ms() + 400_000
    room = watch(memory, Watcher([ModelUnavailableError("busy", retry_after_seconds=120.0)]))
    other = watch(memory, Watcher([BudgetSpentError("spent", opens_at=opens_at)]))
    fill(memory, 2, "a")
    fill(memory, 2, "b")
    began = clock.now_ms()
    other.observe("b")
    room.observe("a")
    assert {failure.thread_id: failure.retry_at for failure in room.failures()} == {
        "a": began + 120_000,
        "b": opens_at,
    }


def test_bad_replies_are_counted_apart_from_outages(memory: Any, clock: FakeClock) -> None:
    errors = [ModelUnavailableError("away"), BadReplyError("gibberish")] * 5
    watcher = Watcher(errors)
    room = watch(memory, watcher)
    fill(memory, 3)
    for _ in range(10):
        assert room.observe("t").success is False
        clock.advance(3_600)
    assert room.observe("t").success
    assert len(watcher.requests) == 10
    [dead] = room.failures()
    assert (dead.operation, dead.attempts, dead.is_dead) == ("observe", 5, True)
    assert {row.method for row in room.list()} == {"offline"}


def test_in_an_outage_nothing_falls_out_of_the_agents_sight(memory: Any, clock: FakeClock) -> None:
    """What no longer fits as it was said is observed without the model, and says so; the rest waits
    for it.
    """
    watcher = Watcher([ModelUnavailableError("away")] * 10_000)
    room = watch(memory, watcher)
    for _ in range(60):
        fill(memory, 1)
        context = memory.context.process_input("t")
        assert room.settled()
        shown = {message.seq for message in context.messages if message.seq}
        observed = {
            seq for row in room.active("t") for seq in range(row.first_seq, row.last_seq + 1)
        }
        assert shown | observed >= set(range(1, memory.threads.get("t").message_count + 1))
        assert context.receipt.left_out_messages == 0
    assert {row.method for row in room.list(limit=1_000) if row.kind == "observation"} == {
        "offline"
    }
    assert room.pending("t").unbuffered > 0, "the newest wait"
    assert all("out of reach (model_unavailable)" in each.warnings[0] for each in room.warned())
    assert room.warnings(room.list()[0].id) == room.warned()[0].warnings
    watcher._errors.clear()
    clock.advance(900)
    assert room.observe("t").success
    assert room.list()[0].method == "watcher"
    assert problems(memory) == []


def test_other_threads_do_not_each_wait_for_a_server_that_hangs(
    memory: Any, clock: FakeClock
) -> None:
    watcher = Watcher([ModelUnavailableError("timeout")], meanwhile=lambda: clock.advance(50))
    room = watch(memory, watcher)
    for number in range(8):
        fill(memory, 3, f"t{number}")
    done = memory.worker.run_once()
    assert (done.looked_at, done.failed, len(watcher.requests)) == (8, 8, 1)
    assert [failure.thread_id for failure in room.failures()] == ["t0"], (
        "the others have not failed, they wait"
    )
    clock.advance(60)
    assert memory.worker.run_once().failed == 0
    assert problems(memory) == []


def test_unexpected_error_of_an_observer_leaves_no_lease_and_no_row(memory: Any) -> None:
    room = watch(memory, Watcher([KeyError("a bug")]))
    fill(memory, 3)
    with pytest.raises(KeyError):
        room.observe("t")
    assert leases(memory) == []
    assert cursors(memory) == {}
    assert room.observe("t").messages == 3
    assert problems(memory) == []


def test_failure_in_the_middle_keeps_what_was_done_before(memory: Any) -> None:
    class Second(Watcher):
        def observe(self, request: Any) -> Any:
            if self.requests:
                self.requests.append(request)
                raise ModelUnavailableError("overloaded")
            return super().observe(request)

    room = watch(memory, Second())
    fill(memory, 30)
    outcome = room.observe("t")
    assert outcome.success is False
    assert 0 < outcome.messages < 30
    assert cursors(memory)["t"][0] == outcome.messages
    assert problems(memory) == []
