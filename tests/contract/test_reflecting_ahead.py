"""A reflection made ahead changes nothing that is shown, comes into force when it is needed, and is
dropped when it no longer fits.
"""

from __future__ import annotations

from typing import Any

import pytest

from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import SMALL, Condenser, Watcher, fill, leases, problems, rows, watch

pytestmark = EACH_DATABASE
AHEAD, NEEDED = 320, 400


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(**SMALL)


def observed(
    memory: Any, tokens: int, reflector: Any = None, observer: Any = None, **others: Any
) -> Any:
    """A room with so many tokens of active observations, or a few more; a note has about 18."""
    room = watch(memory, observer or Watcher(), reflector or Condenser(), **others)
    grow(memory, room, tokens)
    return room


def grow(memory: Any, room: Any, tokens: int, thread_id: str = "t") -> None:
    """Observe until so many tokens of observations are active."""
    while memory.threads.find(thread_id) is None or size(room, thread_id) < tokens:
        fill(memory, 1, thread_id)
        assert room.observe(thread_id).success


def size(room: Any, thread_id: str = "t") -> int:
    return int(room.status(thread_id)["observationTokens"])


def ahead(room: Any) -> list[Any]:
    return [row for row in room.list(state="buffered", limit=1_000) if row.kind == "reflection"]


def shown(memory: Any, thread_id: str = "t") -> str:
    return str(memory.context.process_input(thread_id).system)


def run(memory: Any, statement: str, *values: Any) -> None:
    with memory._rooms.database.write() as session:
        assert session.run(statement, values) == 1


# making it


def test_reflection_is_made_in_the_background_before_it_is_needed_and_nothing_shown_changes(
    memory: Any,
) -> None:
    condenser = Condenser()
    room = observed(memory, AHEAD, condenser)
    before, version = shown(memory), room.record("t").version
    assert room.settled()
    assert len(condenser.requests) == 1
    [note] = ahead(room)
    assert (note.kind, note.state, note.generation) == ("reflection", "buffered", 1)
    assert (room.record("t").generation, room.record("t").version) == (0, version)
    assert room.status("t")["bufferedReflectionTokens"] == note.tokens
    for _ in range(3):
        assert shown(memory) == before
    assert room.settled()
    assert len(condenser.requests) == 1, "one is enough"
    assert problems(memory) == []


def test_nothing_is_made_ahead_below_its_fraction(memory: Any) -> None:
    room = watch(memory, Watcher(), Condenser())
    grow(memory, room, AHEAD - 40)
    shown(memory)
    assert room.settled()
    assert size(room) < AHEAD
    assert ahead(room) == []


def test_window_left_out_is_smaller_by_what_will_have_come(memory: Any) -> None:
    condenser = Condenser()
    room = observed(memory, AHEAD, condenser)
    assert room.reflect("t", is_buffered=True).success
    sizes = [row.tokens for row in room.active("t")]
    kept = sizes[len(condenser.requests[0].notes) :]
    assert 0 < sum(kept) <= 80, "a fifth of the threshold"
    grow(memory, room, NEEDED)
    shown(memory)
    reflection, *newest = room.active("t")
    assert reflection.kind == "reflection"
    assert 80 < sum(row.tokens for row in newest) <= 180, "about four tenths of it"


def test_second_one_is_not_made_while_one_waits(memory: Any) -> None:
    condenser = Condenser()
    room = observed(memory, AHEAD, condenser)
    assert room.reflect("t", is_buffered=True).notes == 1
    assert room.reflect("t", is_buffered=True).notes == 0
    assert len(condenser.requests) == 1
    assert len(ahead(room)) == 1


def test_result_that_is_no_smaller_is_not_kept_and_not_tried_again_at_once(
    memory: Any, clock: FakeClock
) -> None:
    condenser = Condenser(is_smaller=False)
    room = observed(memory, AHEAD, condenser)
    assert room.reflect("t", is_buffered=True).code == "no_progress"
    assert ahead(room) == []
    assert not any(room.planned_reflection("t"))
    clock.advance(3_600)
    assert room.planned_reflection("t").buffers


def test_observer_is_not_told_what_waits(memory: Any) -> None:
    watcher = Watcher()
    room = observed(memory, AHEAD, Condenser(text="much happened indeed"), observer=watcher)
    room.reflect("t", is_buffered=True)
    fill(memory, 1)
    room.observe("t")
    assert "much happened indeed" not in watcher.requests[-1].known
    assert "message" in watcher.requests[-1].known


# coming into force


def test_it_comes_into_force_at_the_threshold_without_being_thought_again(memory: Any) -> None:
    condenser = Condenser()
    room = observed(memory, AHEAD, condenser)
    room.reflect("t", is_buffered=True)
    condensed = len(condenser.requests[0].notes)
    before = [row.id for row in room.active("t")]
    [note] = ahead(room)
    grow(memory, room, NEEDED)
    everything = [row.id for row in room.active("t")]
    text = shown(memory)
    assert note.text in text
    reflection, *newest = room.active("t")
    assert (reflection.id, reflection.state) == (note.id, "active")
    assert [row.id for row in newest] == everything[condensed:]
    merged = room.list(state="reflected", limit=1_000)
    assert {row.id for row in merged} == set(before[:condensed])
    assert {row.reflected_into for row in merged} == {1}
    assert (room.record("t").generation, ahead(room), len(condenser.requests)) == (1, [], 1)
    assert (problems(memory), leases(memory)) == ([], [])


def test_text_is_the_same_byte_for_byte_until_it_comes_into_force(memory: Any) -> None:
    """A step changes the text where something is observed, and once more where the reflection comes
    into force.
    """
    room = observed(memory, AHEAD)
    room.reflect("t", is_buffered=True)
    text = shown(memory)
    assert room.activate_reflection("t").notes == 0
    assert shown(memory) == text
    assert room.activate_reflection("t", is_early=True).notes == 1
    assert shown(memory) != text
    assert shown(memory) == shown(memory)


def test_it_comes_into_force_early_after_a_silence(memory: Any, clock: FakeClock) -> None:
    room = observed(memory, AHEAD)
    room.reflect("t", is_buffered=True)
    clock.advance(29 * 60)
    shown(memory)
    assert len(ahead(room)) == 1
    clock.advance(31 * 60)
    shown(memory)
    assert (ahead(room), room.record("t").generation) == ([], 1)


def test_it_comes_into_force_early_when_another_model_reads(memory: Any) -> None:
    room = observed(memory, AHEAD)
    room.reflect("t", is_buffered=True)
    for model, generation in (("one", 0), ("one", 0), ("another", 1)):
        memory.context.process_input("t", model=model)
        assert room.record("t").generation == generation


def test_it_comes_into_force_when_the_session_ends(memory: Any) -> None:
    room = observed(memory, AHEAD)
    room.reflect("t", is_buffered=True)
    fill(memory, 1)
    assert room.end_session("t").messages == 1
    assert (ahead(room), room.record("t").generation) == ([], 1)
    assert room.active("t")[-1].kind == "observation"


def test_worker_makes_one_ahead_and_lets_it_come_into_force(memory: Any, clock: FakeClock) -> None:
    room = observed(memory, AHEAD)
    fill(memory, 3)
    assert memory.worker.run_once().reflected == 1
    assert len(ahead(room)) == 1
    clock.advance(121 * 60)
    fill(memory, 1)
    clock.advance(121 * 60)
    memory.worker.run_once()
    assert (ahead(room), room.record("t").generation) == ([], 1)
    assert problems(memory) == []


def test_asking_for_a_reflection_takes_the_one_that_waits(memory: Any) -> None:
    condenser = Condenser()
    room = observed(memory, AHEAD, condenser)
    made = room.reflect("t", is_buffered=True)
    taken = room.reflect("t")
    assert (taken.messages, taken.notes) == (made.messages, made.notes)
    assert len(condenser.requests) == 1
    assert room.record("t").generation == 1


def test_forced_reflection_condenses_everything_at_once_and_takes_its_place(memory: Any) -> None:
    condenser = Condenser()
    room = observed(memory, AHEAD, condenser)
    room.reflect("t", is_buffered=True)
    everything = len(room.active("t"))
    assert room.reflect("t", is_forced=True).messages == everything
    assert len(room.active("t")) == 1
    assert (ahead(room), room.record("t").generation, room.failures()) == ([], 1, [])
    assert len([row for row in room.list(limit=1_000) if row.kind == "reflection"]) == 1


def test_what_is_observed_and_activated_meanwhile_survives_untouched(memory: Any) -> None:
    room = observed(memory, AHEAD)
    made = room.reflect("t", is_buffered=True).messages
    last = len(room.active("t"))
    fill(memory, 2)
    room.observe("t")
    fill(memory, 2)
    room.buffer("t")
    room.activate("t", is_forced=True)
    assert room.activate_reflection("t", is_early=True).messages == made
    assert [row.first_seq for row in room.active("t")[1:]] == list(range(made + 1, last + 5))
    assert problems(memory) == []


def test_generations_follow_each_other(memory: Any) -> None:
    room = observed(memory, AHEAD)
    for generation in (1, 2, 3):
        grow(memory, room, AHEAD)
        assert room.reflect("t", is_buffered=True).notes == 1
        assert ahead(room)[0].generation == generation
        grow(memory, room, NEEDED)
        assert room.activate_reflection("t").notes == 1
    assert room.record("t").generation == 3
    made = [row.generation for row in room.list(limit=1_000) if row.kind == "reflection"]
    assert sorted(made) == [1, 2, 3]


# when it no longer fits


@pytest.mark.parametrize(
    "change", ["UPDATE observations SET text = 'gone'", "DELETE FROM observations"]
)
def test_one_whose_source_was_changed_or_erased_is_dropped_and_made_again(
    memory: Any, change: str
) -> None:
    condenser = Condenser(text="a walrus was here")
    room = observed(memory, AHEAD, condenser)
    room.reflect("t", is_buffered=True)
    source = room.active("t")[0]
    run(memory, f"{change} WHERE id = ?", source.id)
    grow(memory, room, NEEDED)
    active = [row.id for row in room.active("t")]
    context = memory.context.process_input("t")
    assert any("was dropped" in note for note in context.receipt.notes)
    assert [row.id for row in room.active("t")] == active
    assert (ahead(room), room.record("t").generation) == ([], 0)
    assert not memory.search_observations("walrus"), (
        "nothing of it is left, not in the index either"
    )
    [failure] = room.failures()
    assert (failure.operation, failure.code, failure.is_dead) == (
        "buffer_reflection",
        "stale_reflection",
        True,
    )
    assert room.planned_reflection("t").reflects
    assert room.reflect("t").notes == 1
    assert memory.search_observations("walrus")
    assert room.failures() == [failure], "it stays to be seen"


def test_asking_for_a_reflection_when_the_one_that_waits_no_longer_fits_makes_another_at_once(
    memory: Any,
) -> None:
    condenser = Condenser()
    room = observed(memory, AHEAD, condenser)
    room.reflect("t", is_buffered=True)
    run(memory, "DELETE FROM observations WHERE id = ?", room.active("t")[0].id)
    assert room.reflect("t").notes == 1
    assert len(condenser.requests) == 2
    assert (ahead(room), room.record("t").generation) == ([], 1)
    assert [failure.code for failure in room.failures()] == ["stale_reflection"]


def test_one_whose_own_words_were_changed_is_dropped(memory: Any) -> None:
    room = observed(memory, AHEAD)
    room.reflect("t", is_buffered=True)
    run(memory, "UPDATE observations SET text = 'something else' WHERE id = ?", ahead(room)[0].id)
    outcome = room.activate_reflection("t", is_early=True)
    assert (outcome.success, outcome.code, outcome.is_retryable) == (
        False,
        "stale_reflection",
        True,
    )
    assert ahead(room) == []


def test_bringing_threads_into_one_pool_drops_what_was_made_ahead(place: Any) -> None:
    alone = place.open(**SMALL)
    room = observed(alone, AHEAD)
    assert room.reflect("t", is_buffered=True).notes
    pooled = place.open(**{**SMALL, "observe_scope": "resource"})
    pool = watch(pooled)
    assert pool.merge("default") > 0
    assert ahead(pool) == []
    assert [failure.code for failure in pool.failures()] == ["stale_reflection"]
    assert {row.thread_id for row in pool.active("t")} == {"t"}
    assert pool.reflect("t", is_forced=True).success


def test_switching_the_scope_and_back_finds_it_as_it_was(place: Any) -> None:
    alone = place.open(**SMALL)
    room = observed(alone, AHEAD)
    room.reflect("t", is_buffered=True)
    pooled = watch(place.open(**{**SMALL, "observe_scope": "resource"}))
    pooled.observe("t")
    assert pooled.activate_reflection("t", is_early=True).notes == 0
    assert room.activate_reflection("t", is_early=True).notes == 1


# others at the same time


def test_one_who_lost_the_lease_while_thinking_ahead_keeps_nothing(
    memory: Any, clock: FakeClock
) -> None:
    second = watch(memory, reflector=Condenser(text="by the second"), owner="second")

    def pause() -> None:
        clock.advance(61)
        assert second.reflect("t", is_buffered=True).recovered["owner"] == "first"

    room = observed(memory, AHEAD, Condenser(meanwhile=pause))
    outcome = room.reflect("t", is_buffered=True)
    assert (outcome.success, outcome.code, outcome.is_retryable) == (False, "lease_lost", True)
    assert [note.text for note in ahead(room)] == ["by the second"]
    assert leases(memory) == []


def test_source_that_changes_while_the_reflector_thinks_ahead_lets_nothing_be_kept(
    memory: Any,
) -> None:
    changes: list[str] = []

    def change() -> None:
        run(memory, "UPDATE observations SET text = 'gone' WHERE id = ?", changes.pop())

    room = observed(memory, AHEAD, Condenser(meanwhile=change))
    changes.append(room.active("t")[0].id)
    before = rows(memory)
    assert room.reflect("t", is_buffered=True).code == "lease_lost"
    assert rows(memory) == before


def test_it_does_not_come_into_force_while_somebody_condenses_everything(memory: Any) -> None:
    told: list[Any] = []
    second = watch(memory, owner="second")
    room = observed(memory, AHEAD)
    room.reflect("t", is_buffered=True)
    forced = watch(
        memory,
        reflector=Condenser(
            meanwhile=lambda: told.append(second.activate_reflection("t", is_early=True))
        ),
    )
    assert forced.reflect("t", is_forced=True).success
    assert (told[0].code, told[0].is_retryable) == ("in_progress", True)
    assert (ahead(room), room.record("t").generation) == ([], 1)


def test_two_who_activate_at_once_do_it_once(memory: Any) -> None:
    room = observed(memory, AHEAD)
    second = watch(memory, owner="second")
    room.reflect("t", is_buffered=True)
    assert [each.activate_reflection("t", is_early=True).notes for each in (room, second)] == [1, 0]
    assert room.record("t").generation == 1


def test_read_only_memory_lets_nothing_come_into_force(place: Any) -> None:
    room = observed(place.open(**SMALL), AHEAD)
    room.reflect("t", is_buffered=True)
    reader = place.open(**SMALL, observe_read_only=True).observations
    assert reader.activate_reflection("t", is_early=True).code == "read_only"
    assert reader.reflect("t", is_buffered=True).code == "read_only"
    assert len(ahead(room)) == 1


# over several threads


def test_one_of_a_pool_is_explained_by_its_thread_before_and_after(place: Any) -> None:
    memory = place.open(**{**SMALL, "observe_scope": "resource"})
    room = watch(memory, Watcher(), Condenser())
    for _ in range(2):
        for thread in ("a", "b"):
            fill(memory, 2, thread)
        room.observe("a")
        room.reflect("a", is_forced=True, is_buffered=True)
        notes = ahead(room)
        assert sorted(str(note.thread_id) for note in notes) == ["a", "b"]
        waiting = [room.why(note.id, limit=100) for note in notes]
        assert room.activate_reflection("b", is_early=True).notes == 2
        assert [room.why(note.id, limit=100) for note in notes] == waiting
    assert [len(each) for each in waiting] == [4, 4], "the first generation stands for two of each"
    assert sorted({message.thread_id for each in waiting for message in each}) == ["a", "b"]
