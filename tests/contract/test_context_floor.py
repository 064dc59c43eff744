"""What an agent is shown of its own conversation: the newest messages as they were said, and of the
rest nothing that is neither raw nor observed.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import smara
from smara.observations.models import AgentMode
from smara.testing import FakeClock
from tests.contract.both import ON_BOTH
from tests.contract.observing import SMALL, Condenser, Watcher, fill, watch
from tests.stores import new_file

HELLO = [{"role": "user", "content": "hello"}]


def raw(context: Any) -> list[int]:
    return [message.seq for message in context.messages if message.seq]


def raw_tokens(memory: Any, context: Any) -> int:
    shown = {message.message_id for message in context.messages}
    every = memory.messages.stream(thread_id=context.receipt.thread_id)
    return sum(each.token_count for each in every if each.id in shown)


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_silence_leaves_the_newest_messages_raw(place: Any, clock: FakeClock) -> None:
    """A chunk of 6,177 of 6,390 pending tokens waits, though nothing is cached after lunch."""
    memory = place.open(observe_timezone="UTC")
    room = watch(memory)
    fill(memory, 78)
    room.buffer("t")
    before = memory.context.process_input("t", HELLO, model="one")
    clock.advance(31 * 60)
    assert raw(memory.context.process_input("t", HELLO, model="one")) == raw(before)
    assert raw(memory.context.process_input("t", HELLO, model="two")) == raw(before)
    assert raw_tokens(memory, before) > 6_000


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_end_of_a_thread_leaves_its_newest_messages_and_other_threads_as_they_are(
    place: Any, clock: FakeClock
) -> None:
    memory = place.open(**SMALL, observe_scope="resource")
    room = watch(memory)
    fill(memory, 8, "live")
    fill(memory, 8, "done")
    assert room.end_session("done").messages == 8
    live = memory.context.process_input("live", HELLO)
    assert raw(live) == list(range(1, 9))
    assert "done number 8" in live.system, "what ended is observed for all"
    again = memory.context.process_input("done", HELLO)
    assert raw_tokens(memory, again) >= room.limits().retain
    assert raw(again)[-1] == 8
    assert len(raw(again)) < 8
    clock.advance(200 * 60)
    memory.worker.run_once()
    resumed = memory.context.process_input("live", HELLO)
    assert raw_tokens(memory, resumed) >= room.limits().retain
    fill(memory, 3, "done")
    longer = memory.context.process_input("done", HELLO)
    assert raw(longer)[: len(raw(again))] == raw(again), "the prompt's beginning stays as it was"


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_what_other_threads_said_is_shown_once_the_pool_is_full_and_stays_raw_in_theirs(
    place: Any,
) -> None:
    memory = place.open(**SMALL, observe_scope="resource")
    room = watch(memory)
    for thread in ("a", "b", "c"):
        fill(memory, 4, thread)
        room.buffer(thread)
    assert room.activate("c").success
    assert {row.thread_id for row in room.active("c")} >= {"a", "b"}
    assert room.pending("c").tokens < 1_000
    for thread in ("a", "b", "c"):
        context = memory.context.process_input(thread, HELLO)
        assert raw_tokens(memory, context) >= room.limits().retain


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_undone_compaction_shows_every_message_again(place: Any) -> None:
    memory = place.open(**{**SMALL, "observe_after_tokens": 30_000})
    watch(memory)
    fill(memory, 60)
    memory.compact("t", keep=20)
    assert raw(memory.context.process_input("t")) == list(range(41, 61))
    for each in memory.compactions.list("t"):
        memory.compactions.undo(each.id)
    assert raw(memory.context.process_input("t")) == list(range(1, 61))


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_compaction_reaches_an_agent_that_is_not_observed(place: Any) -> None:
    memory = place.open(**SMALL, observe_enabled=False, last_messages=4)
    watch(memory)
    fill(memory, 60)
    context = memory.context.process_input("t")
    assert raw(context) == [57, 58, 59, 60]
    [section] = context.sections
    assert section.name == "summaries"
    assert "[Compacted 10 messages]" in section.text
    assert "handle_39" in section.text


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_mode_with_a_threshold_of_its_own_leaves_no_message_out(place: Any) -> None:
    memory = place.open(**SMALL, observe_modes="explore=4000")
    room = watch(memory)
    for _ in range(40):
        fill(memory, 1)
        context = memory.context.process_input("t", HELLO, mode="explore")
        assert context.receipt.left_out_messages == 0
        assert set(raw(context)) | set(range(1, room.observed_seq("t") + 1)) == set(
            range(1, memory.threads.get("t").message_count + 1)
        )
        memory.context.process_output("t", HELLO, mode="explore")
        room.settled()


# the current task


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_task_of_an_earlier_chunk_stays_when_later_ones_name_none(place: Any) -> None:
    memory = place.open(**SMALL)
    room = watch(memory, Watcher(current_task="add retries"))
    fill(memory, 3)
    room.buffer("t")
    assert memory.threads.get("t").current_task == "add retries", "at most one chunk behind"
    watch(memory, Watcher())
    for _ in range(4):
        fill(memory, 3)
        memory.observations.buffer("t")
    memory.observations.activate("t")
    assert "add retries" in memory.context.process_input("t").reminder
    assert memory.threads.get("t").current_task == "add retries"
    watch(memory, Watcher(current_task="write the tests"))
    fill(memory, 3)
    memory.observations.buffer("t")
    assert "write the tests" in memory.context.process_input("t").reminder


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_a_task_that_is_not_named_again_grows_older(place: Any) -> None:
    memory = place.open(**SMALL)
    watch(memory, Watcher(current_task="add retries"))
    fill(memory, 3)
    memory.observations.observe("t")
    assert "noted before" not in memory.context.process_input("t").reminder
    watch(memory, Watcher())
    fill(memory, 3)
    memory.observations.observe("t")
    assert "(noted before the newest 3 messages)" in memory.context.process_input("t").reminder


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_a_task_says_how_many_messages_came_after_it(place: Any) -> None:
    """A task noted at message 40 is not told as if nothing had been said since."""
    memory = place.open()
    for number in range(30):
        memory.messages.add(thread_id="t", role="user", content=f"Please rename fn_{number}().")
        memory.messages.add(thread_id="t", role="assistant", content=f"I renamed fn_{number}().")
    memory.compact("t", keep=20)
    reminder = memory.context.process_input("t").reminder
    assert "fn_19()" in reminder
    assert "(noted before the newest 20 messages)" in reminder
    memory.observations.end_session("t")
    reminder = memory.context.process_input("t").reminder
    assert "fn_29()" in reminder
    assert "noted before" not in reminder


@pytest.mark.usefixtures("uuids")
@ON_BOTH
def test_task_that_a_reflection_names_is_taken_unless_a_newer_one_came(place: Any) -> None:
    memory = place.open(**SMALL)

    class Drifted(Condenser):
        def reflect(self, request: Any) -> Any:
            assert request.current_task == "mend the door"
            return replace(super().reflect(request), current_task="go back to the door")

    room = watch(memory, Watcher(current_task="mend the door"), Drifted())
    fill(memory, 10)
    room.observe("t")
    assert room.reflect("t", is_forced=True).success
    assert memory.threads.get("t").current_task == "go back to the door"

    def notes_another() -> None:
        memory.threads.update("t", metadata={"observations": {"currentTask": "paint it"}})

    memory.threads.update("t", metadata={"observations": {"currentTask": "mend the door"}})
    room = watch(memory, Watcher(), Drifted(meanwhile=notes_another))
    fill(memory, 10)
    room.observe("t")
    assert room.reflect("t", is_forced=True).success
    assert memory.threads.get("t").current_task == "paint it"


# the property


@st.composite
def sessions(draw: st.DrawFn) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    settings = {
        "observe_after_tokens": draw(st.sampled_from([300, 700, 1_500])),
        "buffer_fraction": draw(st.sampled_from([0.1, 0.2, 0.5, 0.9])),
        "activate_fraction": draw(st.sampled_from([0.3, 0.8, 1.0])),
        "retain_fraction": draw(st.sampled_from([0.0, 0.2, 0.6])),
        "block_fraction": draw(st.sampled_from([0.5, 1.2, 2.0])),
        "observe_scope": draw(st.sampled_from(["thread", "resource"])),
        "reflect_after_tokens": 10_000,
        "observe_timezone": "UTC",
    }
    step = st.one_of(
        st.tuples(st.just("say"), st.integers(1, 150)),
        st.tuples(st.just("say"), st.integers(1, 150)),
        st.tuples(st.just("wait"), st.sampled_from([1, 31, 200])),
        st.tuples(st.just("mode"), st.sampled_from(["default", "explore", "testing"])),
        st.tuples(st.just("model"), st.sampled_from(["one", "two"])),
        st.tuples(st.just("thread"), st.sampled_from(["a", "b"])),
        st.tuples(st.just("end"), st.sampled_from(["a", "b"])),
        st.tuples(st.just("work"), st.none()),
        st.tuples(st.just("settle"), st.none()),
    )
    return settings, draw(st.lists(step, min_size=5, max_size=40))


@given(sessions())
def test_every_message_is_raw_or_observed_whatever_the_thresholds(
    session: tuple[dict[str, Any], list[tuple[str, Any]]],
) -> None:
    """And the newest stay raw, through silence, other models, modes, ends and a worker."""
    settings, steps = session
    clock = FakeClock(1_760_000_000_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        smara.open(
            new_file(Path(folder) / "m.db"), clock=clock, token_model="estimate", **settings
        ) as memory,
    ):
        room = watch(memory)
        thread, mode, model = "a", "default", "one"
        for name, value in [*steps, ("say", 5)]:
            if name == "say":
                said = {"role": "user", "content": "word " * value}
                memory.context.process_output(thread, [said], mode=cast(AgentMode, mode))
            elif name == "wait":
                clock.advance(value * 60)
            elif name == "mode":
                mode = value
            elif name == "model":
                model = value
            elif name == "thread":
                thread = value
            elif name == "end" and memory.threads.find(value):
                room.settled()
                room.end_session(value)
            elif name == "work":
                room.settled()
                memory.worker.run_once()
            else:
                room.settled()
            context = memory.context.process_input(
                thread, HELLO, mode=cast(AgentMode, mode), model=model
            )
            found = memory.threads.find(thread)
            if found is None:
                continue
            observed = {
                seq
                for row in room.active(thread)
                if row.thread_id == thread
                for seq in range(row.first_seq, row.last_seq + 1)
            }
            shown = set(raw(context))
            assert shown | observed == set(range(1, found.message_count + 1))
            assert context.receipt.left_out_messages == 0
            floor = min(room.limits().retain, found.token_count)
            assert raw_tokens(memory, context) >= floor
        room.settled()
