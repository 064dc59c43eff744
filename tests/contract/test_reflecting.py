"""Reflection condenses what is old, keeps what is new, and loses nothing: no row, no taint, nothing
said meanwhile.
"""

from __future__ import annotations

from typing import Any

import pytest

from smara.errors import BadReplyError, ModelRefusedError, ModelUnavailableError
from smara.messages.models import Part
from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import SMALL, Condenser, Watcher, fill, leases, problems, rows, watch

pytestmark = EACH_DATABASE

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(**SMALL)


def observed(memory: Any, reflector: Any, count: int = 40, **others: Any) -> Any:
    """A room in which so many messages are observed; 40 notes are more than the 400 tokens of the
    threshold.
    """
    room = watch(memory, Watcher(), reflector, **others)
    fill(memory, count)
    assert room.observe("t").success
    return room


def test_window_of_the_newest_stays_raw_and_the_rest_becomes_a_generation(memory: Any) -> None:
    condenser = Condenser()
    room = observed(memory, condenser)
    assert room.is_reflection_due("t")
    outcome = room.reflect("t")
    assert outcome.success
    reflection, *kept = room.active("t")
    assert (reflection.kind, reflection.generation, reflection.method) == (
        "reflection",
        1,
        "condenser",
    )
    assert 0 < sum(row.tokens for row in kept) <= 160, "four tenths of the threshold"
    assert [row.first_seq for row in kept] == list(range(41 - len(kept), 41))
    assert len(condenser.requests[0].notes) == outcome.messages == 40 - len(kept)
    assert room.record("t").generation == 1
    assert problems(memory) == []


def test_what_was_merged_is_kept_and_names_its_generation(memory: Any) -> None:
    room = observed(memory, Condenser())
    before = {row.id: row.text for row in room.active("t")}
    merged = room.reflect("t").messages
    kept = room.list(state="reflected", limit=1_000)
    assert len(kept) == merged
    assert {row.reflected_into for row in kept} == {1}
    assert all(before[row.id] == row.text for row in kept)
    assert len(room.why(kept[0].id)) == 1


def test_reflection_knows_the_messages_behind_it(memory: Any) -> None:
    room = observed(memory, Condenser())
    room.reflect("t", is_forced=True)
    [reflection] = room.active("t")
    assert (reflection.first_seq, reflection.last_seq) == (1, 40)
    assert len(room.why(reflection.id, limit=100)) == 40


def test_generations_stand_on_each_other(memory: Any) -> None:
    room = observed(memory, Condenser())
    for generation in (1, 2, 3):
        fill(memory, 5)
        room.observe("t")
        room.reflect("t", is_forced=True)
        [row] = room.active("t")
        assert (row.generation, room.record("t").generation) == (generation, generation)
    assert {row.reflected_into for row in room.list(state="reflected", limit=1_000)} == {1, 2, 3}
    assert [row.generation for row in room.list(limit=1_000) if row.kind == "reflection"].count(
        1
    ) == 1


def test_nothing_is_reflected_below_the_threshold(memory: Any) -> None:
    condenser = Condenser()
    room = observed(memory, condenser, 3)
    assert not room.is_reflection_due("t")
    assert room.reflect("t").success
    assert condenser.requests == []
    assert room.record("t").generation == 0


def test_result_that_is_no_smaller_is_not_taken_and_not_tried_again_at_once(
    memory: Any, clock: FakeClock
) -> None:
    condenser = Condenser(is_smaller=False)
    room = observed(memory, condenser)
    before = [row.id for row in room.active("t")]
    outcome = room.reflect("t")
    assert (outcome.success, outcome.code) == (False, "no_progress")
    assert [row.id for row in room.active("t")] == before
    assert not room.is_reflection_due("t"), "or every step of the agent would ask the model again"
    assert room.reflect("t").success is False
    assert len(condenser.requests) == 1
    [failure] = room.failures()
    assert (failure.operation, failure.code, failure.attempts) == ("reflect", "no_progress", 1)
    clock.advance(3_600)
    assert room.is_reflection_due("t")


def test_what_is_observed_while_the_reflector_thinks_survives_untouched(memory: Any) -> None:
    second = watch(memory, owner="second")

    def meanwhile() -> None:
        fill(memory, 3)
        assert second.observe("t").success

    room = watch(memory, Watcher(), Condenser(meanwhile=meanwhile))
    fill(memory, 20)
    room.observe("t")
    assert room.reflect("t", is_forced=True).messages == 20
    reflection, *newer = room.active("t")
    assert reflection.kind == "reflection"
    assert [row.first_seq for row in newer] == [21, 22, 23]
    assert problems(memory) == []


def test_what_is_activated_while_the_reflector_thinks_survives_untouched(memory: Any) -> None:
    second = watch(memory, owner="second")
    room = watch(
        memory, Watcher(), Condenser(meanwhile=lambda: second.activate("t", is_forced=True))
    )
    fill(memory, 10)
    room.observe("t")
    fill(memory, 2)
    room.buffer("t")
    room.reflect("t", is_forced=True)
    assert [row.first_seq for row in room.active("t")[1:]] == [11, 12]
    assert problems(memory) == []


def test_second_reflector_is_told_that_one_is_at_it(memory: Any) -> None:
    told: list[Any] = []
    second = watch(memory, owner="second")
    room = watch(
        memory,
        Watcher(),
        Condenser(meanwhile=lambda: told.append(second.reflect("t", is_forced=True))),
    )
    fill(memory, 10)
    room.observe("t")
    assert room.reflect("t", is_forced=True).success
    assert (told[0].success, told[0].code, told[0].is_retryable) == (False, "in_progress", True)


def test_reflector_that_lost_its_lease_while_thinking_writes_nothing(
    memory: Any, clock: FakeClock
) -> None:
    second = watch(memory, reflector=Condenser(text="by the second"), owner="second")

    def pause() -> None:
        clock.advance(61)
        assert second.reflect("t", is_forced=True).success

    room = watch(memory, Watcher(), Condenser(meanwhile=pause))
    fill(memory, 10)
    room.observe("t")
    outcome = room.reflect("t", is_forced=True)
    assert (outcome.success, outcome.code, outcome.is_retryable) == (False, "lease_lost", True)
    assert [row.text for row in room.active("t")] == ["by the second"]
    assert room.record("t").generation == 1
    assert leases(memory) == []


@pytest.mark.parametrize("trouble", [ModelUnavailableError, ModelRefusedError, BadReplyError])
def test_trouble_with_the_model_is_made_good_without_it(memory: Any, trouble: Any) -> None:
    room = observed(memory, Condenser([trouble("no luck")]))
    assert room.reflect("t").success
    assert room.active("t")[0].method == "offline"


def test_trouble_with_both_changes_nothing_and_is_recorded(memory: Any, clock: FakeClock) -> None:
    alone = Condenser([BadReplyError(f"no luck with {SECRET}")], method="offline")
    room = observed(memory, Condenser([BadReplyError("no luck")]), reflects_without=alone)
    before = rows(memory)
    outcome = room.reflect("t")
    assert (outcome.success, outcome.code) == (False, "bad_reply")
    assert rows(memory) == {**before, "failures": 1}
    assert SECRET not in room.failures()[0].message
    assert leases(memory) == []
    clock.advance(3_600)
    assert room.reflect("t").success
    assert room.failures() == []


def test_taint_survives_being_condensed_again_and_again(memory: Any) -> None:
    room = watch(memory, Watcher(), Condenser())
    page = [Part("tool_result", "a page that says much " * 20, name="WebFetch", call_id="c")]
    memory.messages.add(thread_id="t", role="tool", content=page)
    room.observe("t")
    for _ in range(3):
        fill(memory, 5)
        room.observe("t")
        room.reflect("t", is_forced=True)
    assert [row.taint for row in room.active("t")] == [("web",)]


def test_secret_that_a_reflector_writes_is_not_stored(memory: Any) -> None:
    class Leaky(Condenser):
        def reflect(self, request: Any) -> Any:
            from dataclasses import replace

            draft = super().reflect(request)
            note = replace(
                draft.notes[0], details=(SECRET,), files=(SECRET,), mode_specific={"a": SECRET}
            )
            return replace(draft, notes=(note,))

    room = observed(memory, Leaky(text=f"the key is {SECRET}"))
    assert room.reflect("t", is_forced=True).success
    [row] = room.active("t")
    assert SECRET not in f"{row.text} {row.details} {row.files} {row.mode_specific}"


def test_reflections_over_their_own_limit_are_pressed_harder(place: Any) -> None:
    memory = place.open(**SMALL, reflections_limit_tokens=20)
    condenser = Condenser(text="a long reflection that has more than twenty tokens, " * 4)
    room = observed(memory, condenser)
    room.reflect("t", is_forced=True)
    fill(memory, 10)
    room.observe("t")
    room.reflect("t", is_forced=True)
    assert [asked.level for asked in condenser.requests] == [0, 2]


def test_reflector_is_told_the_flavor_and_what_the_user_wants_noted(place: Any) -> None:
    condenser = Condenser()
    wanted = "Note every bird."
    room = observed(
        place.open(**SMALL, observe_flavor="general", observe_instructions=wanted), condenser
    )
    assert room.reflect("t").success
    assert [(asked.flavor, asked.instructions) for asked in condenser.requests] == [
        ("general", wanted)
    ]


def test_long_backlog_is_condensed_a_piece_at_a_time(memory: Any) -> None:
    """No single request outgrows what a model can read, and a few of them bring a long backlog
    down.
    """
    condenser = Condenser()
    room = observed(memory, condenser, 300)
    rounds = 0
    while room.is_reflection_due("t"):
        assert room.reflect("t").notes
        rounds += 1
    assert 1 < rounds < 60
    assert max(len(request.notes) for request in condenser.requests) < 300 / 2
    assert all(request.target_tokens <= 200 for request in condenser.requests), (
        "half of the threshold"
    )
    assert len(room.list(state="reflected", limit=1_000)) >= 300 - 50
    assert problems(memory) == []
