"""Compaction through observations: what is shown of old messages is what was observed of them."""

from __future__ import annotations

from typing import Any

import pytest

from smara.errors import ModelUnavailableError, NotFoundError
from smara.observations.models import Note, ObservationDraft
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import SMALL, Condenser, Watcher, fill, problems, watch

pytestmark = EACH_DATABASE

ROOM = {**SMALL, "observe_after_tokens": 4_000, "compact_every_messages": 0}


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(**ROOM)


def methods(memory: Any) -> list[str]:
    return [each.method for each in memory.compactions.list("t")]


def shown(memory: Any) -> str:
    return "\n".join(entry.text for entry in memory.history.window("t"))


def test_run_is_shown_as_its_observations(memory: Any) -> None:
    watch(memory)
    fill(memory, 25)
    done = memory.compact("t", keep=5)
    assert (done.compacted.messages_compacted, done.compacted.messages_whole) == (20, 5)
    assert (done.observed.success, done.observed.messages) == (True, 20)
    assert memory.observations.covered_seq("t") == 20, "what is kept whole is not observed"
    assert methods(memory) == ["observations-1", "observations-1"]
    first, second = memory.compactions.list("t")
    assert [f"message {n} says" in first.summary for n in (1, 10, 11)] == [True, True, False]
    assert [f"message {n} says" in second.summary for n in (10, 11, 20)] == [False, True, True]
    assert first.summary.startswith("Date: 2025-10-09")
    assert problems(memory) == []


def test_every_word_stays_stored_and_found_and_the_summary_can_be_undone(memory: Any) -> None:
    watch(memory)
    fill(memory, 10)
    before = [message.raw_content for message in memory.messages.list(thread_id="t")]
    (made,) = memory.compact("t").compacted.compactions
    assert [message.raw_content for message in memory.messages.list(thread_id="t")] == before
    assert memory.search("handle_7", 1).hits[0].content == before[6]
    assert "message 7 says" in shown(memory)
    assert before[6] not in shown(memory)
    memory.compactions.undo(made.id)
    assert before[6] in shown(memory)
    assert len(memory.observations.list()) == 10, "observations are true either way"


def test_important_observations_are_told_first_when_there_is_little_room(memory: Any) -> None:
    class Ranked(Watcher):
        def observe(self, request: Any) -> ObservationDraft:
            told = [
                Note(
                    "high" if message.seq == 9 else "low",
                    "note",
                    f"note {message.seq} " + "x" * 300,
                    said_at=message.created_at,
                    first_seq=message.seq,
                    last_seq=message.seq,
                )
                for message in request.messages
            ]
            return ObservationDraft(tuple(told))

    watch(memory, Ranked())
    fill(memory, 10, words="and so on ")
    (made,) = memory.compact("t").compacted.compactions
    said = sum(len(message.raw_content) for message in memory.messages.list(thread_id="t"))
    assert "note 9 " in made.summary
    assert "note 8 " not in made.summary
    assert len(made.summary) <= said / 2 + 100


def test_what_was_condensed_since_still_stands_for_its_run(memory: Any) -> None:
    room = watch(memory, reflector=Condenser())
    fill(memory, 10)
    room.observe("t")
    assert room.reflect("t", is_forced=True).success
    (made,) = memory.compact("t").compacted.compactions
    assert "message 3 says" in made.summary
    assert "much happened" not in made.summary


def test_buffered_observations_are_enough(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 10)
    room.buffer("t")
    memory.compact("t")
    assert methods(memory) == ["observations-1"]
    assert len(watcher.requests) == 1
    assert room.observed_seq("t") == 0, "compacting does not activate what was buffered"


def test_note_over_several_runs_is_told_in_the_one_it_begins_in_or_in_one_that_has_no_other(
    memory: Any,
) -> None:
    class Wide(Watcher):
        def observe(self, request: Any) -> ObservationDraft:
            at = request.messages[0].created_at
            return ObservationDraft(
                (
                    Note("high", "note", "the long work", said_at=at, first_seq=2, last_seq=19),
                    Note("high", "note", "the end", said_at=at, first_seq=25, last_seq=25),
                )
            )

    watch(memory, Wide())
    fill(memory, 30)
    memory.compact("t")
    first, second, third = memory.compactions.list("t")
    assert "the long work" in first.summary
    assert "the long work" in second.summary
    assert "the end" in third.summary
    assert "the long work" not in third.summary


def test_run_that_was_observed_in_part_is_summarized_by_its_own_words(memory: Any) -> None:
    room = watch(memory)
    fill(memory, 5)
    room.observe("t")
    fill(memory, 5)
    memory.compactions.compact("t")
    assert methods(memory) == ["offline-1"]


@pytest.mark.parametrize("settings", [{"observe_read_only": True}, {"observe_enabled": False}])
def test_where_nothing_may_be_observed_the_words_themselves_are_summarized(
    place: Any, settings: dict[str, bool]
) -> None:
    memory = place.open(**ROOM, **settings)
    watch(memory)
    fill(memory, 10)
    done = memory.compact("t")
    assert (done.observed.code, done.compacted.messages_compacted) == ("read_only", 10)
    assert methods(memory) == ["offline-1"]


def test_model_that_is_away_does_not_keep_a_thread_from_being_compacted_and_later_the_summary_is_made_anew(  # noqa: E501
    memory: Any, clock: Any
) -> None:
    watch(memory, Watcher([ModelUnavailableError("away")]))
    fill(memory, 10)
    done = memory.compact("t")
    assert (done.observed.success, done.observed.code, done.renewed) == (
        False,
        "model_unavailable",
        0,
    )
    (before,) = memory.compactions.list("t")
    assert before.method == "offline-1"
    clock.advance(60)
    assert memory.compact("t").renewed == 1
    after = memory.compactions.list("t")[0]
    assert (after.id, after.method) == (before.id, "observations-1")
    assert "message 1 says" in after.summary
    assert memory.compact("t").renewed == 0
    memory.compactions.undo(after.id)
    assert memory.messages.list(thread_id="t")[0].raw_content in shown(memory)


def test_when_due_observes_and_compacts_only_what_the_rules_call_old(memory: Any) -> None:
    watch(memory)
    fill(memory, 29)
    done = memory.compact("t", is_when_due=True)
    assert (done.compacted.messages_compacted, done.observed.messages) == (0, 0)
    fill(memory, 3)
    done = memory.compact("t", is_when_due=True)
    assert (done.compacted.messages_compacted, done.observed.messages) == (10, 10)
    assert methods(memory) == ["observations-1"]


def test_messages_are_compacted_by_themselves_through_what_is_observed_already(place: Any) -> None:
    """On the way of a message nothing is observed: nobody waits there."""
    memory = place.open(**{**ROOM, "compact_every_messages": 10})
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 12)
    room.observe("t")
    fill(memory, 28)
    assert methods(memory) == ["observations-1", "offline-1"]
    assert len(watcher.requests) == 1


def test_archives_are_shorter_and_made_of_observations_too(memory: Any) -> None:
    watch(memory)
    fill(memory, 130)
    memory.compact("t")
    archived = [each for each in memory.compactions.list("t") if each.level == 2]
    assert archived
    assert {each.method for each in archived} == {"observations-1"}
    assert all(len(each.summary) <= 800 for each in archived)


def test_pool_of_a_resource_serves_as_well(place: Any) -> None:
    memory = place.open(**ROOM, observe_scope="resource")
    watch(memory)
    fill(memory, 10, "other")
    fill(memory, 10)
    memory.compact("t")
    assert methods(memory) == ["observations-1"]
    assert "other" not in memory.compactions.list("t")[0].summary


def test_unknown_thread_is_an_error(memory: Any) -> None:
    with pytest.raises(NotFoundError):
        memory.compact("nowhere")


def test_undo_keeps_a_title_that_no_database_can_store_as_it_is(memory):
    memory.messages.add(thread_id="t", role="user", content="Please rename the module.")
    memory.compact("t", keep=0)
    memory.threads.update("t", title="nul\x00 and \ud800")
    memory.compactions.undo(memory.compactions.list("t")[0].id)
    assert memory.threads.get("t").title == "nul\x00 and \ud800"
