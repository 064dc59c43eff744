"""One pool of observations for all threads of a resource: the oldest first, each under its thread,
and none lost.
"""

from __future__ import annotations

from typing import Any

import pytest

from smara.errors import ModelRefusedError
from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import (
    SMALL,
    Condenser,
    Watcher,
    batches,
    cursors,
    fill,
    problems,
    watch,
)

pytestmark = EACH_DATABASE
POOLED = {**SMALL, "observe_scope": "resource"}


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(**POOLED)


def test_thread_with_the_oldest_unobserved_message_comes_first(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 2, "b")
    fill(memory, 2, "a")
    fill(memory, 2, "b")
    assert room.observe("a").messages == 6
    assert watcher.seen == [("b", 1), ("b", 2), ("b", 3), ("b", 4), ("a", 1), ("a", 2)]
    assert problems(memory) == []


def test_each_observation_is_shown_under_its_thread(memory: Any) -> None:
    room = watch(memory, Watcher(text="{whole}"))
    fill(memory, 2, "a")
    fill(memory, 2, "b")
    room.observe("a")
    text = room.rendered("b")
    a, b = text.index('<thread id="a">'), text.index('<thread id="b">')
    assert a < text.index("a number 1") < b < text.index("b number 1")
    assert text.count("</thread>") == 2
    assert room.rendered("a") == text


def test_pending_tokens_are_those_of_all_threads(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 2, "a")
    fill(memory, 3, "b")
    tokens = memory.threads.get("a").token_count + memory.threads.get("b").token_count
    assert room.pending("a") == room.pending("b") == (tokens, tokens)


def test_other_resource_is_left_alone(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 2, "mine")
    fill(memory, 2, "theirs", resource_id="somebody else")
    assert room.observe("mine").messages == 2
    assert room.active("theirs") == []
    assert "theirs" not in str(memory.context.process_input("mine"))


def test_unobserved_messages_of_other_threads_are_shown_and_then_observed(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 1, "a")
    fill(memory, 1, "b")
    [section] = [
        each
        for each in memory.context.process_input("a").sections
        if each.name == "other_conversations"
    ]
    assert '<unobserved-context thread="b">' in section.text
    assert "b number 1" in section.text
    assert "a number 1" not in section.text
    room.observe("a")
    assert not [
        each
        for each in memory.context.process_input("a").sections
        if each.name == "other_conversations"
    ]


def test_current_task_is_each_threads_own(memory: Any) -> None:
    class Tasked(Watcher):
        def observe(self, request: Any) -> Any:
            from dataclasses import replace

            return replace(
                super().observe(request),
                current_task=f"the task of {request.messages[0].thread_id}",
            )

    room = watch(memory, Tasked())
    for thread in ("a", "b"):
        fill(memory, 2, thread)
    room.observe("a")
    for thread in ("a", "b"):
        assert f"the task of {thread}" in memory.context.process_input(thread).reminder
        assert (
            memory.threads.get(thread).metadata["observations"]["currentTask"]
            == f"the task of {thread}"
        )


def test_buffering_and_activating_work_over_all_threads(memory: Any) -> None:
    room = watch(memory)
    for thread in ("a", "b", "c"):
        fill(memory, 4, thread)
    assert room.buffer("a").messages == 12
    assert room.active("a") == []
    assert room.activate("b", is_forced=True).messages == 12
    assert problems(memory) == []


def test_two_threads_of_one_resource_cannot_be_observed_at_once(memory: Any) -> None:
    told: list[Any] = []
    second = watch(memory, owner="second")
    room = watch(memory, Watcher(meanwhile=lambda: told.append(second.observe("b"))))
    fill(memory, 2, "a")
    fill(memory, 2, "b")
    room.observe("a")
    assert {each.code for each in told} == {"in_progress"}
    assert problems(memory) == []


def test_failure_of_one_thread_leaves_the_others_observed(memory: Any, clock: FakeClock) -> None:
    """Each thread's job fails on its own account: the other's first message is not the one that
    failed.
    """

    class Choosy(Watcher):
        def observe(self, request: Any) -> Any:
            if request.messages[0].thread_id == "bad":
                raise ModelRefusedError("not this one")
            return super().observe(request)

    room = watch(memory, Choosy())
    for thread in ("bad", "good"):
        fill(memory, 2, thread)
    assert room.observe("good").success is False
    assert cursors(memory) == {"good": (2, memory.threads.get("good").token_count, 0, 0)}
    assert [(failure.thread_id, failure.attempts) for failure in room.failures()] == [("bad", 1)]
    for _ in range(5):
        clock.advance(3_600)
        room.observe("good")
    assert cursors(memory)["bad"][0] == 2
    assert [(failure.thread_id, failure.is_dead) for failure in room.failures()] == [("bad", True)]
    assert problems(memory) == []


def test_switching_scope_keeps_the_old_records(place: Any, memory: Any) -> None:
    fill(memory, 2, "a")
    watch(memory).observe("a")
    alone = place.open(**SMALL)
    room = watch(alone)
    assert room.active("a") == []
    assert room.observe("a").messages == 2
    pooled = watch(memory)
    assert len(pooled.active("a")) == 2
    assert len(batches(memory)) == 2
    assert len(room.active("a")) == 2


def test_reflection_over_several_threads_keeps_each_line_with_its_thread(memory: Any) -> None:
    condenser = Condenser()
    room = watch(memory, Watcher(), condenser)
    for thread in ("a", "b"):
        fill(memory, 40, thread)
        memory.threads.update(thread, title=f"All about {thread}")
    room.observe("a")
    assert room.reflect("b", is_forced=True).messages == 80
    assert [row.thread_id for row in room.active("a")] == ["a", "b"]
    assert [request.conversation for request in condenser.requests] == [
        "All about a",
        "All about b",
    ]
    text = room.rendered("a")
    assert text.index('<thread id="a">') < text.index("</thread>") < text.index('<thread id="b">')


def test_thread_of_few_lines_is_condensed_without_a_call_of_its_own(memory: Any) -> None:
    condenser, rules = Condenser(), Condenser(method="offline")
    room = watch(memory, Watcher(), condenser, reflects_without=rules)
    fill(memory, 40, "a")
    fill(memory, 1, "b")
    room.observe("a")
    assert room.reflect("a", is_forced=True).notes == 2
    assert ([len(each.notes) for each in condenser.requests], len(rules.requests)) == ([40], 1)


def test_worker_observes_a_silent_thread_together_with_its_resource(
    memory: Any, clock: FakeClock
) -> None:
    room = watch(memory)
    fill(memory, 1, "a")
    fill(memory, 1, "b")
    clock.advance(121 * 60)
    done = memory.worker.run_once()
    assert done.failed == 0
    assert room.pending("a") == (0, 0)


def test_what_threads_observed_on_their_own_can_be_brought_into_the_pool(place: Any) -> None:
    """Switching the scope keeps the old records; merging shows them, once, and nothing is observed
    twice.
    """
    with place.open(observe_scope="thread", **SMALL) as memory:
        room = watch(memory)
        for thread in ("a", "b"):
            fill(memory, 2, thread)
            assert room.observe(thread).success
    with place.open(observe_scope="resource", **SMALL) as memory:
        room = watch(memory)
        assert room.active("a") == []
        assert room.merge("default") > 0
        assert {row.thread_id for row in room.active("a")} == {"a", "b"}
        assert room.pending("a").tokens == 0
        assert room.merge("default") == 0
        fill(memory, 1, "a")
        assert room.observe("a").messages == 1
        assert problems(memory) == []


def test_reflection_over_several_threads_is_explained_by_the_messages_of_its_own(
    memory: Any,
) -> None:
    room = watch(memory, reflector=Condenser())
    for thread in ("a", "b"):
        fill(memory, 2, thread)
    assert room.observe("a").success
    assert room.reflect("a", is_forced=True).notes
    for thread, row in zip(("a", "b"), room.active("a"), strict=True):
        behind = room.why(row.id, limit=100)
        assert [(message.thread_id, message.seq) for message in behind] == [
            (thread, 1),
            (thread, 2),
        ]
        assert room.why(row.id, limit=1, offset=1) == behind[1:2]
