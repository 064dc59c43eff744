"""Every message is observed exactly once and in order, whatever fails, and a failure changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from smara.errors import (
    BadReplyError,
    BudgetSpentError,
    InvalidInputError,
    ModelAbortedError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
    NotFoundError,
)
from smara.messages.models import NewThread, Part
from smara.observations.models import MODES, Extractor
from smara.testing import FakeClock
from tests.contract.observing import SMALL, Watcher, batches, cursors, fill, leases, problems, rows, watch
from tests.contract.task_place import EACH_DATABASE

pytestmark = EACH_DATABASE

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"

TROUBLES = [ModelUnavailableError, ModelRefusedError, BadReplyError, BudgetSpentError, ModelAbortedError, ModelError]


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(**SMALL)


# in order, once


def test_every_message_is_observed_exactly_once_and_in_order(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    for count in (5, 20, 1, 13):
        fill(memory, count)
        assert room.observe("t").success
    assert watcher.seen == [("t", seq) for seq in range(1, 40)]
    assert problems(memory) == []


def test_batches_join_without_gap_or_overlap_when_buffering_and_observing_take_turns(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    for act in (room.buffer, room.buffer, room.observe, room.buffer, room.activate, room.buffer, room.observe):
        fill(memory, 7)
        assert act("t").success
        assert problems(memory) == []
    assert watcher.seen == [("t", seq) for seq in range(1, 50)]


def test_no_call_of_the_observer_gets_more_than_the_threshold(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 40)
    assert room.observe("t").messages == 40
    sizes = [sum(message.token_count for message in asked.messages) for asked in watcher.requests]
    assert len(sizes) > 2
    assert max(sizes) <= 1_000


def test_observing_again_without_new_messages_asks_nobody_and_changes_nothing(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 5)
    room.observe("t")
    before = rows(memory), cursors(memory)
    outcome = room.observe("t")
    assert (outcome.success, outcome.messages, outcome.notes) == (True, 0, 0)
    assert (rows(memory), cursors(memory)) == before
    assert len(watcher.requests) == 1


def test_observer_is_told_what_is_known_already(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 2)
    room.buffer("t")
    fill(memory, 2)
    room.buffer("t")
    assert "message 1 says" in watcher.requests[1].known


def test_message_that_arrives_while_the_observer_thinks_is_observed_next(memory: Any) -> None:
    late = Watcher(meanwhile=lambda: fill(memory, 1) if len(late.requests) == 1 else None)
    room = watch(memory, late)
    fill(memory, 3)
    assert room.observe("t").messages == 4
    assert [len(asked.messages) for asked in late.requests] == [3, 1]
    assert problems(memory) == []


def test_giant_message_is_observed_alone_and_once(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 2)
    memory.messages.add(thread_id="t", role="tool", content="line of a long log\n" * 4_000)
    fill(memory, 2)
    assert room.observe("t").success
    assert [3] in [[message.seq for message in asked.messages] for asked in watcher.requests]
    assert watcher.seen == [("t", seq) for seq in range(1, 6)]
    assert problems(memory) == []


def test_message_with_many_parts_is_observed_with_all_of_them(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    parts = [Part("text", f"part {number}") for number in range(300)]
    parts += [
        Part("tool_call", name="Bash", arguments={"command": "make test"}, call_id="c"),
        Part("image", name="a.png"),
    ]
    memory.messages.add(thread_id="t", role="assistant", content=parts)
    assert room.observe("t").messages == 1
    assert len(watcher.requests[0].messages[0].parts) == 302


def test_empty_thread_and_unknown_thread_are_told_apart(memory: Any) -> None:
    room = watch(memory)
    memory.threads.put(NewThread("empty", "default"))
    assert room.observe("empty").success
    with pytest.raises(NotFoundError):
        room.observe("nowhere")
    assert rows(memory)["observations"] == 0


def test_unknown_mode_is_refused_and_every_known_one_is_recorded(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 1)
    with pytest.raises(InvalidInputError, match="mode must be one of"):
        room.observe("t", mode="dreaming")
    for mode in MODES:
        fill(memory, 1)
        room.observe("t", mode=mode)
    assert {row.mode for row in room.list()} == set(MODES)


# the cursor


def test_cursor_moves_only_with_the_rows(memory: Any) -> None:
    """When the commit fails, neither is there; seen by an id that exists already."""
    room = watch(memory)
    fill(memory, 3)
    room.observe("t")
    before = rows(memory), cursors(memory)
    fill(memory, 3)
    taken = room.list()[0].id
    memory._new_id, ids = (lambda: taken), memory._new_id
    broken = watch(memory)
    memory._new_id = ids
    memory.leases._new_id = ids
    with pytest.raises(Exception, match=r"(?i)unique|duplicate|exists"):
        broken.observe("t")
    assert (rows(memory), cursors(memory)) == before
    assert watch(memory).observe("t").messages == 3
    assert problems(memory) == []


def test_worker_that_lost_its_lease_while_thinking_writes_nothing(memory: Any, clock: FakeClock) -> None:
    """1. The first is paused past its expiry. 2. The second observes everything. 3. The first wakes up and writes."""
    second = watch(memory, owner="second")

    def pause() -> None:
        clock.advance(61)
        assert second.observe("t").messages == 3

    first = watch(memory, Watcher(meanwhile=pause), owner="first")
    fill(memory, 3)
    outcome = first.observe("t")
    assert (outcome.success, outcome.code, outcome.is_retryable) == (False, "lease_lost", True)
    assert len(room_rows(first)) == 3
    assert problems(memory) == []


def room_rows(room: Any) -> list[Any]:
    return room.list(limit=10_000)


def test_takeover_of_an_expired_lease_reports_what_it_cleared(memory: Any, clock: FakeClock) -> None:
    fill(memory, 3)
    room = watch(memory)
    room.buffer("t")
    fill(memory, 2)
    name = f"observations:{memory.scope.project_no}:thread:t"
    assert memory.leases.acquire(name, "the dead one", 60)
    assert room.observe("t").code == "in_progress"
    clock.advance(61)
    recovered = room.observe("t").recovered
    assert recovered is not None
    assert recovered["owner"] == "the dead one"
    assert recovered["clearedFlags"] == ["isObserving"]
    assert recovered["lastKnownState"]["threads"]["t"] == {"observedSeq": 0, "bufferedSeq": 3}
    assert leases(memory) == []


def test_second_worker_is_told_that_one_is_at_it_and_that_trying_again_helps(memory: Any) -> None:
    told: list[Any] = []
    second = watch(memory, owner="second")
    first = watch(memory, Watcher(meanwhile=lambda: told.extend([second.observe("t"), second.buffer("t")])))
    fill(memory, 3)
    assert first.observe("t").success
    assert [(each.success, each.code, each.is_retryable) for each in told] == [(False, "in_progress", True)] * 2
    assert all("already in progress" in each.error for each in told)
    assert second.observe("t").success
    assert problems(memory) == []


def test_threads_of_one_project_are_observed_at_the_same_time(memory: Any) -> None:
    told: list[Any] = []
    second = watch(memory, owner="second")
    first = watch(memory, Watcher(meanwhile=lambda: told.append(second.observe("other"))))
    fill(memory, 2)
    fill(memory, 2, "other")
    assert first.observe("t").success
    assert told[0].success
    assert problems(memory) == []


# buffering and activating


def test_buffering_changes_nothing_the_agent_sees(memory: Any) -> None:
    room = watch(memory, Watcher(current_task="mend the door", thread_title="A door"))
    fill(memory, 2)  # too few for the context to begin buffering by itself
    before = memory.context.process_input("t"), memory.threads.get("t")
    assert room.buffer("t").success
    assert (memory.context.process_input("t"), memory.threads.get("t")) == before
    assert room.active("t") == []
    assert room.rendered("t") == ""
    assert room.observed_seq("t") == 0


def test_activation_at_four_fifths_keeps_the_newest_fifth_raw(memory: Any) -> None:
    room = watch(memory)
    while room.pending("t").tokens < 800 if memory.threads.find("t") else True:
        fill(memory, 1)
        if room.pending("t").unbuffered >= 200:
            room.buffer("t")
    fill(memory, 1)
    room.buffer("t")
    assert len(batches(memory)) >= 4
    assert room.activate("t").success
    left = room.pending("t").tokens
    assert 200 <= left < 200 + 3 * 90, "a chunk is three messages: one more would have left less than a fifth"
    assert problems(memory) == []


def test_activation_tells_the_thread_its_task_and_title(memory: Any) -> None:
    room = watch(memory, Watcher(current_task="mend the door", thread_title="A door"))
    fill(memory, 4)
    room.buffer("t")
    room.activate("t", is_forced=True)
    thread = memory.threads.get("t")
    assert thread.metadata["observations"]["currentTask"] == "mend the door"
    assert thread.title == "A door"


def test_title_that_a_person_gave_stays(memory: Any) -> None:
    room = watch(memory, Watcher(thread_title="A door"))
    fill(memory, 1)
    memory.threads.update("t", title="Mine", metadata={"color": "red"})
    room.observe("t")
    thread = memory.threads.get("t")
    assert thread.title == "Mine"
    assert thread.metadata["color"] == "red"


def test_observing_does_not_make_a_thread_look_used(memory: Any, clock: FakeClock) -> None:
    room = watch(memory, Watcher(current_task="mend the door"))
    fill(memory, 1)
    before = memory.threads.get("t").updated_at
    clock.advance(3_600)
    room.observe("t")
    assert memory.threads.get("t").updated_at == before


def test_observing_activates_what_was_buffered_first(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 3)
    room.buffer("t")
    fill(memory, 3)
    assert room.observe("t").messages == 3
    assert [batch[1:4] for batch in batches(memory)] == [("active", 1, 3), ("active", 4, 6)]
    assert [row.first_seq for row in room.active("t")] == [1, 2, 3, 4, 5, 6]
    assert problems(memory) == []


def test_forced_activation_shows_all_of_it(memory: Any) -> None:
    room = watch(memory)
    for _ in range(3):
        fill(memory, 3)
        room.buffer("t")
    outcome = room.activate("t", is_forced=True)
    assert (outcome.messages, outcome.notes) == (9, 9)
    assert room.pending("t").tokens == 0
    assert problems(memory) == []


def test_end_of_a_session_leaves_nothing_pending(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 3)
    room.buffer("t")
    fill(memory, 3)
    assert room.end_session("t").success
    assert room.pending("t") == (0, 0)


def test_retained_tokens_stay_unobserved(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 10)
    room.observe("t", retain_tokens=200)
    assert 200 <= room.pending("t").tokens < 290
    assert problems(memory) == []


def test_looking_after_a_thread_buffers_behind_the_scenes(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 3)
    assert room.look_after("t").buffers
    assert room.settled()
    assert room.pending("t").unbuffered == 0
    assert room.pending("t").tokens > 0


# failures


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("act", ["buffer", "observe"])
def test_failure_moves_nothing_and_is_recorded_with_the_time_to_try_again(
    memory: Any, clock: FakeClock, trouble: type[ModelError], act: str
) -> None:
    watcher = Watcher([trouble(f"no luck with {SECRET}")])
    room = watch(memory, watcher)
    fill(memory, 3)
    outcome = getattr(room, act)("t")
    assert (outcome.success, outcome.code, outcome.is_retryable) == (False, trouble.code, trouble.is_retryable)
    assert cursors(memory) == {}
    assert rows(memory)["observations"] == rows(memory)["batches"] == 0
    assert leases(memory) == []
    [failure] = room.failures()
    assert (failure.thread_id, failure.attempts, failure.code) == ("t", 1, trouble.code)
    assert failure.operation == ("observe" if trouble in (BadReplyError, ModelRefusedError) else "outage")
    assert failure.is_dead is False
    assert failure.retry_at > clock.now_ms()
    assert SECRET not in failure.message


@pytest.mark.parametrize("act", ["buffer", "observe"])
def test_job_that_failed_waits_for_its_time_and_then_succeeds(memory: Any, clock: FakeClock, act: str) -> None:
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


def test_job_that_failed_five_times_is_observed_offline_and_stays_visible(memory: Any, clock: FakeClock) -> None:
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


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda error: f"{error.code} {error.facts.get('reason', '')}".strip())
def test_outage_of_hours_is_no_poison(memory: Any, clock: FakeClock, outage: ModelError) -> None:
    """However long nobody can be asked, the messages wait, are seen to wait, and the model observes them after all."""
    watcher = Watcher([outage] * 10_000)
    room = watch(memory, watcher)
    fill(memory, 3)
    asked_at: list[int] = []
    for _ in range(6 * 60):
        before = len(watcher.requests)
        assert room.observe("t").success is False
        asked_at += [clock.now_ms()] * (len(watcher.requests) - before)
        clock.advance(60)
    waits = [(later - earlier) / 60_000 for earlier, later in pairwise(asked_at)]
    assert 15 <= max(waits) <= 16, "the server that comes back is not left alone for longer"
    assert len(asked_at) < 40, "and the one that does not is not asked without end"
    [failure] = room.failures()
    assert (failure.operation, failure.is_dead, failure.attempts) == ("outage", False, len(asked_at))
    assert room.status("t")["waiting"]["code"] == outage.code
    assert memory.status()["observations"]["threadsWaiting"] == 1
    assert [message.seq for message in memory.context.process_input("t").messages] == [1, 2, 3]
    watcher._errors.clear()
    clock.advance(900)
    assert room.observe("t").messages == 3
    assert {row.method for row in room.list()} == {"watcher"}
    assert (room.failures(), room.status("t")["waiting"], room.warned()) == ([], None, [])
    assert problems(memory) == []


@pytest.mark.parametrize("trouble", [ModelUnavailableError("away"), BadReplyError("gibberish")], ids=["away", "bad"])
@pytest.mark.parametrize("act", ["buffer", "observe"])
def test_what_failed_is_tried_at_once_when_somebody_wants_it_now(memory: Any, act: str, trouble: ModelError) -> None:
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


def test_what_the_server_or_the_budget_asks_for_is_waited_for(memory: Any, clock: FakeClock) -> None:
    opens_at = clock.now_ms() + 400_000
    room = watch(memory, Watcher([ModelUnavailableError("busy", retry_after_seconds=120.0)]))
    other = watch(memory, Watcher([BudgetSpentError("spent", opens_at=opens_at)]))
    fill(memory, 2, "a")
    fill(memory, 2, "b")
    began = clock.now_ms()
    other.observe("b")
    room.observe("a")
    assert {failure.thread_id: failure.retry_at for failure in room.failures()} == {"a": began + 120_000, "b": opens_at}


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
    """What no longer fits as it was said is observed without the model, and says so; the rest waits for it."""
    watcher = Watcher([ModelUnavailableError("away")] * 10_000)
    room = watch(memory, watcher)
    for _ in range(60):
        fill(memory, 1)
        context = memory.context.process_input("t")
        assert room.settled()
        shown = {message.seq for message in context.messages if message.seq}
        observed = {seq for row in room.active("t") for seq in range(row.first_seq, row.last_seq + 1)}
        assert shown | observed >= set(range(1, memory.threads.get("t").message_count + 1))
        assert context.receipt.left_out_messages == 0
    assert {row.method for row in room.list(limit=1_000) if row.kind == "observation"} == {"offline"}
    assert room.pending("t").unbuffered > 0, "the newest wait"
    assert all("out of reach (model_unavailable)" in each.warnings[0] for each in room.warned())
    assert room.warnings(room.list()[0].id) == room.warned()[0].warnings
    watcher._errors.clear()
    clock.advance(900)
    assert room.observe("t").success
    assert room.list()[0].method == "watcher"
    assert problems(memory) == []


def test_other_threads_do_not_each_wait_for_a_server_that_hangs(memory: Any, clock: FakeClock) -> None:
    watcher = Watcher([ModelUnavailableError("timeout")], meanwhile=lambda: clock.advance(50))
    room = watch(memory, watcher)
    for number in range(8):
        fill(memory, 3, f"t{number}")
    done = memory.worker.run_once()
    assert (done.looked_at, done.failed, len(watcher.requests)) == (8, 8, 1)
    assert [failure.thread_id for failure in room.failures()] == ["t0"], "the others have not failed, they wait"
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


# read-only, disabled


@pytest.mark.parametrize("settings", [{"observe_read_only": True}, {"observe_enabled": False}])
def test_read_only_and_disabled_write_nothing(place: Any, memory: Any, settings: dict[str, bool]) -> None:
    fill(memory, 3)
    quiet = place.open(**SMALL, **settings)
    watcher = Watcher()
    room = watch(quiet, watcher)
    for act in (room.observe, room.buffer, room.activate, room.reflect, room.end_session):
        outcome = act("t")
        assert (outcome.success, outcome.code, outcome.is_retryable) == (False, "read_only", False)
    room.look_after("t")
    assert room.settled()
    quiet.context.process_input("t", [{"role": "user", "content": "hello"}])
    assert set(rows(quiet).values()) == {0}
    assert watcher.requests == []
    with quiet.database.read() as session:
        assert int(session.one("SELECT count(*) FROM messages WHERE sealed_at IS NOT NULL")[0]) == 0


def test_read_only_shows_what_another_observed(place: Any, memory: Any) -> None:
    fill(memory, 3)
    watch(memory).observe("t")
    quiet = place.open(**SMALL, observe_read_only=True)
    room = watch(quiet)
    assert len(room.active("t")) == 3
    assert "message 1 says" in quiet.context.process_input("t").system


# sealing


def test_content_that_arrives_after_an_observation_has_started_is_a_new_message_and_observed(memory: Any) -> None:
    added: list[Any] = []

    def arrive() -> None:
        if not added:
            added.append(memory.messages.extend(memory.messages.list(thread_id="t")[-1].id, "and then some more"))

    watcher = Watcher(meanwhile=arrive)
    room = watch(memory, watcher)
    fill(memory, 2)
    assert room.observe("t").messages == 3
    assert added[0].seq == 3
    assert added[0].metadata["continues"] == memory.messages.list(thread_id="t")[1].id
    assert watcher.seen == [("t", 1), ("t", 2), ("t", 3)]
    assert problems(memory) == []


def test_content_that_arrives_before_is_part_of_the_message_and_counted_once(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 2)
    last = memory.messages.list(thread_id="t")[-1]
    memory.messages.extend(last.id, "and then some more " * 20)
    assert room.observe("t").messages == 2
    assert "some more" in watcher.requests[0].messages[1].raw_content
    assert room.pending("t") == (0, 0)
    assert problems(memory) == []


def test_sealing_holds_even_when_the_observation_fails(memory: Any) -> None:
    """What the observer has seen must be what is stored, also when it is asked again."""
    room = watch(memory, Watcher([ModelUnavailableError("overloaded")]))
    fill(memory, 1)
    room.observe("t")
    later = memory.messages.extend(memory.messages.list(thread_id="t")[0].id, "more")
    assert later.seq == 2


# walls, taint, secrets, why


def test_projects_do_not_see_each_other(place: Any, memory: Any) -> None:
    other = place.open(**SMALL, project="other")
    mine, theirs = watch(memory), watch(other)
    for each in (memory, other):
        fill(each, 3)
    mine.observe("t")
    assert theirs.list() == []
    assert theirs.active("t") == []
    assert theirs.pending("t").tokens > 0
    assert theirs.record("t") is None
    with pytest.raises(NotFoundError):
        theirs.get(mine.list()[0].id)
    with pytest.raises(NotFoundError):
        theirs.why(mine.list()[0].id)
    assert theirs.observe("t").messages == 3
    assert len(mine.list()) == len(theirs.list()) == 3


def test_projects_are_observed_at_the_same_time(place: Any, memory: Any) -> None:
    other = place.open(**SMALL, project="other")
    fill(other, 2)
    theirs, told = watch(other), []
    mine = watch(memory, Watcher(meanwhile=lambda: told.append(theirs.observe("t"))))
    fill(memory, 2)
    assert mine.observe("t").success
    assert told[0].success


def test_threads_keep_to_themselves(memory: Any) -> None:
    watcher = Watcher(text="{whole}")
    room = watch(memory, watcher)
    fill(memory, 3, "one")
    fill(memory, 3, "two")
    room.observe("one")
    room.observe("two")
    assert all("one number" in row.text for row in room.active("one"))
    assert all("two number" in row.text for row in room.active("two"))
    assert all(len({message.thread_id for message in asked.messages}) == 1 for asked in watcher.requests)
    assert "one number" not in watcher.requests[1].known
    assert "one number" not in memory.context.process_input("two").system


@pytest.mark.parametrize(
    ("part", "metadata", "expected"),
    [
        (Part("text", "plain words"), {}, ()),
        (Part("tool_result", "output", name="Bash", call_id="c"), {}, ("tool",)),
        (Part("tool_result", "a page", name="WebFetch", call_id="c"), {}, ("web",)),
        (Part("tool_result", "rows", name="mcp__db__query", call_id="c"), {}, ("mcp",)),
        (Part("file", name="notes.pdf"), {}, ("file",)),
        (Part("text", "old words"), {"taint": "imported"}, ("imported",)),
        (Part("text", "old words"), {"taint": ["imported", "web"]}, ("imported", "web")),
    ],
)
def test_taint_of_the_messages_is_on_the_observation(
    memory: Any, part: Part, metadata: dict[str, Any], expected: tuple[str, ...]
) -> None:
    room = watch(memory)
    memory.messages.add(thread_id="t", role="assistant", content=[part], metadata=metadata)
    room.observe("t")
    assert [row.taint for row in room.list()] == [expected]


def test_secret_that_an_observer_writes_is_not_stored(memory: Any) -> None:
    key = SECRET
    watcher = Watcher(text=f"the key is {key}", current_task=f"use {key}", thread_title=f"{key}", extracted={"k": key})
    room = watch(memory, watcher)
    fill(memory, 2)
    room.observe("t")
    with memory.database.read() as session:
        kept = session.all("SELECT text FROM observations") + session.all(
            "SELECT coalesce(current_task, '') || coalesce(thread_title, '') || extracted FROM observation_batches"
        )
    assert not any(SECRET in row[0] for row in kept)
    thread = memory.threads.get("t")
    assert SECRET not in f"{thread.title} {thread.metadata}"


def test_why_gives_the_messages_an_observation_comes_from_page_by_page(memory: Any) -> None:
    class Whole(Watcher):
        def _note(self, message: Any) -> Any:
            from dataclasses import replace

            return replace(super()._note(message), first_seq=None, last_seq=None)

    room = watch(memory, Whole())
    fill(memory, 8)
    room.observe("t")
    row = room.list()[0]
    assert [message.seq for message in room.why(row.id)] == list(range(1, 9))
    assert [message.seq for message in room.why(row.id, limit=3, offset=3)] == [4, 5, 6]
    assert [message.seq for message in room.why(row.id, limit=3, offset=6)] == [7, 8]
    assert room.why(row.id, offset=8) == []


def test_range_that_an_observer_invents_is_brought_back_to_its_messages(memory: Any) -> None:
    class Liar(Watcher):
        def _note(self, message: Any) -> Any:
            from dataclasses import replace

            return replace(super()._note(message), first_seq=900, last_seq=1_000, said_at=4_000_000_000_000)

    room = watch(memory, Liar())
    fill(memory, 3)
    room.observe("t")
    messages = memory.messages.list(thread_id="t")
    assert {(row.first_seq, row.last_seq) for row in room.list()} == {(1, 3)}
    assert {row.said_at for row in room.list()} == {messages[-1].created_at}


def test_observer_is_told_the_folder_of_the_thread_in_every_batch(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    memory.threads.add("t", metadata={"cwd": "/home/ada/shop"})
    fill(memory, 30)
    fill(memory, 2, "elsewhere")
    room.observe("t")
    room.observe("elsewhere")
    assert {(asked.messages[0].thread_id, asked.root) for asked in watcher.requests} == {
        ("t", "/home/ada/shop"),
        ("elsewhere", ""),
    }
    assert len(watcher.requests) > 2


def test_paths_are_shortened_alike_in_every_batch(memory: Any) -> None:
    """Also where a batch speaks only of another folder, from which the root of the project would be guessed."""
    memory.threads.add("t", metadata={"cwd": "/home/ada/shop"})
    for path in ("/home/ada/shop/src/a.py", "/home/ada/shop/apps/web/src/b.py", "/home/ada/shop/apps/web/tests/c.py"):
        call = Part("tool_call", name="Write", call_id=path, arguments={"file_path": path, "content": "def f(): ..."})
        memory.messages.add(thread_id="t", role="assistant", content=[call])
        memory.messages.add(thread_id="t", role="tool", content=[Part("tool_result", "written", call_id=path)])
        memory.observations.observe("t")
    files = [file for row in memory.observations.list(thread_id="t") for file in row.files]
    assert sorted(files) == ["apps/web/src/b.py", "apps/web/tests/c.py", "src/a.py"]


def test_extractors_work_without_a_model_and_what_they_cannot_is_kept_as_a_warning(place: Any) -> None:
    ticket = Extractor(
        "tickets", "Every ticket.", {"type": "array", "items": {"type": "string", "pattern": "T-[0-9]+"}}
    )
    mood = Extractor("mood", f"How it goes with {SECRET}.", {"type": "object"})
    memory = place.open(**SMALL, extractors=[ticket, mood])
    memory.messages.add(thread_id="t", role="user", content="Please close T-12 and T-7.")
    assert memory.observations.observe("t").success
    assert memory.observations.extracted("t") == [{"tickets": ["T-12", "T-7"]}]
    (warned,) = memory.observations.warned()
    assert (warned.thread_id, warned.first_seq, warned.last_seq) == ("t", 1, 1)
    assert warned.warnings == ("extractor mood: mood cannot be found without a model; it was left out.",)
    assert memory.observations.warnings(memory.observations.list()[0].id) == warned.warnings


def test_warnings_are_stored_without_secrets(memory: Any) -> None:
    room = watch(memory, Watcher(warnings=(f"line with {SECRET} was left out",)))
    fill(memory, 2)
    room.observe("t")
    (warned,) = room.warned()
    assert SECRET not in warned.warnings[0]
    assert "was left out" in warned.warnings[0]


# the worker


def test_worker_buffers_busy_threads_and_observes_silent_ones_to_their_end(memory: Any, clock: FakeClock) -> None:
    room = watch(memory)
    fill(memory, 1, "silent")
    clock.advance(121 * 60)
    fill(memory, 3, "busy")
    fill(memory, 1, "fresh")
    done = memory.worker.run_once()
    assert (done.looked_at, done.observed, done.failed) == (2, 2, 0)
    assert (room.observed_seq("silent"), room.observed_seq("busy"), room.pending("busy").unbuffered) == (1, 0, 0)
    assert room.pending("fresh").unbuffered > 0
    assert memory.worker.run_once().is_idle
    assert problems(memory) == []


def test_trouble_with_one_thread_does_not_keep_the_others_waiting(memory: Any) -> None:
    class Choosy(Watcher):
        def observe(self, request: Any) -> Any:
            if request.messages[0].thread_id == "bad":
                raise ModelRefusedError("not this one")
            return super().observe(request)

    room = watch(memory, Choosy())
    for thread in ("a", "bad", "c"):
        fill(memory, 3, thread)
    done = memory.worker.run_once()
    assert (done.observed, done.failed) == (2, 1)
    assert [failure.thread_id for failure in room.failures()] == ["bad"]


def test_worker_leaves_when_there_was_nothing_to_do_for_long(memory: Any, clock: FakeClock) -> None:
    watch(memory)
    began = clock.monotonic()
    rounds = memory.worker.run(threading.Event(), poll_seconds=5, leave_after_idle_seconds=60)
    assert rounds == 13
    assert clock.monotonic() - began == 60
