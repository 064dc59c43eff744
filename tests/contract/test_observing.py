"""Every message is observed exactly once and in order: one at a time, buffered, by a worker."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from smara.errors import (
    InvalidInputError,
    ModelRefusedError,
    NotFoundError,
)
from smara.messages.models import NewThread, Part
from smara.observations.models import MODES
from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import (
    SMALL,
    Watcher,
    batches,
    cursors,
    fill,
    leases,
    problems,
    rows,
    watch,
)

pytestmark = EACH_DATABASE


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


def test_batches_join_without_gap_or_overlap_when_buffering_and_observing_take_turns(
    memory: Any,
) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    for act in (
        room.buffer,
        room.buffer,
        room.observe,
        room.buffer,
        room.activate,
        room.buffer,
        room.observe,
    ):
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
    project = memory._rooms.project
    memory._rooms.project = replace(project, new_id=lambda: taken)
    broken = watch(memory)
    memory._rooms.project = project
    memory.internals.leases._new_id = project.new_id
    with pytest.raises(Exception, match=r"(?i)unique|duplicate|exists"):
        broken.observe("t")
    assert (rows(memory), cursors(memory)) == before
    assert watch(memory).observe("t").messages == 3
    assert problems(memory) == []


def test_worker_that_lost_its_lease_while_thinking_writes_nothing(
    memory: Any, clock: FakeClock
) -> None:
    """1. The first is paused past its expiry. 2. The second observes everything. 3. The first wakes
    up and writes.
    """
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


def test_takeover_of_an_expired_lease_reports_what_it_cleared(
    memory: Any, clock: FakeClock
) -> None:
    fill(memory, 3)
    room = watch(memory)
    room.buffer("t")
    fill(memory, 2)
    name = f"observations:{memory._rooms.scope.project_no}:thread:t"
    assert memory.internals.leases.acquire(name, "the dead one", 60)
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
    first = watch(
        memory, Watcher(meanwhile=lambda: told.extend([second.observe("t"), second.buffer("t")]))
    )
    fill(memory, 3)
    assert first.observe("t").success
    assert [(each.success, each.code, each.is_retryable) for each in told] == [
        (False, "in_progress", True)
    ] * 2
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


def test_buffering_changes_nothing_the_agent_sees_but_its_task(memory: Any) -> None:
    room = watch(memory, Watcher(current_task="mend the door", thread_title="A door"))
    fill(memory, 2)  # too few for the context to begin buffering by itself
    before = memory.context.process_input("t")
    assert room.buffer("t").success
    after = memory.context.process_input("t")
    assert (after.system, after.messages) == (before.system, before.messages)
    assert (before.reminder, "mend the door" in after.reminder) == ("", True)
    assert memory.threads.get("t").title == "A door"
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
    assert 200 <= left < 200 + 3 * 90, (
        "a chunk is three messages: one more would have left less than a fifth"
    )
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


# the worker


def test_worker_buffers_busy_threads_and_observes_silent_ones_to_their_end(
    memory: Any, clock: FakeClock
) -> None:
    room = watch(memory)
    fill(memory, 1, "silent")
    clock.advance(121 * 60)
    fill(memory, 3, "busy")
    fill(memory, 1, "fresh")
    done = memory.worker.run_once()
    assert (done.looked_at, done.observed, done.failed) == (2, 2, 0)
    assert (
        room.observed_seq("silent"),
        room.observed_seq("busy"),
        room.pending("busy").unbuffered,
    ) == (1, 0, 0)
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
