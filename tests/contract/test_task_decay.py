"""Decay: closed tasks grow short with age; what was written stays, is found, and comes back when
asked for.
"""

from __future__ import annotations

import pytest

from smara.tasks.models import TaskTotals
from tests.contract.both import EACH_DATABASE
from tests.contract.task_place import DAY, titles

pytestmark = EACH_DATABASE

LONG = (
    "The zebrafinch in src/store/cage.py does not sing when refresh_tokens() is called at night. "
    + " ".join(
        f"Step {number}: look at module_{number}, then call handle_{number}() again."
        for number in range(120)
    )
    + " At the very end somebody saw a capercaillie."
)


@pytest.fixture
def done(tasks):
    """A task with a long description, closed just now."""
    added = tasks.add("Make the bird sing", description=LONG, labels=["birds"], metadata={"k": 1})
    return tasks.close(added.id, "The cage was locked; opened it in open_cage().")


def test_a_task_closed_less_than_30_days_ago_stays_whole(tasks, done, clock):
    clock.advance(29 * DAY)
    assert tasks.compact() == 0
    assert tasks.get(done.id) == done


def test_a_task_closed_30_days_ago_is_summarized(tasks, done, clock):
    clock.advance(31 * DAY)
    assert tasks.compact() == 1
    kept = tasks.get(done.id)
    assert (kept.compaction_level, kept.is_compacted, kept.compacted_at) == (
        1,
        True,
        clock.now_ms(),
    )
    assert len(kept.description) < len(LONG) / 2
    assert (kept.original_content, kept.full_description) == (LONG, LONG)


def test_a_task_closed_90_days_ago_is_archived_and_shorter_still(tasks, done, clock):
    clock.advance(31 * DAY)
    tasks.compact()
    summarized = tasks.get(done.id)
    clock.advance(60 * DAY)
    assert tasks.compact() == 1
    kept = tasks.get(done.id)
    assert kept.compaction_level == 2
    assert len(kept.description) <= len(summarized.description)
    assert (kept.original_content, kept.full_description) == (LONG, LONG)


def test_a_task_that_nobody_looked_after_for_long_is_archived_with_its_original(tasks, done, clock):
    clock.advance(400 * DAY)
    while tasks.compact():
        pass
    kept = tasks.get(done.id)
    assert (kept.compaction_level, kept.full_description) == (2, LONG)


def test_the_time_can_be_given(tasks, done, clock):
    assert tasks.compact(now=clock.now_ms() + 31 * DAY * 1_000) == 1
    assert tasks.get(done.id).compaction_level == 1


def test_compacting_again_changes_nothing(tasks, done, clock):
    clock.advance(31 * DAY)
    tasks.compact()
    before, events = tasks.get(done.id), tasks.history(done.id)
    assert tasks.compact() == 0
    assert (tasks.get(done.id), tasks.history(done.id)) == (before, events)


@pytest.mark.parametrize("days", [31, 400])
def test_what_a_compacted_task_says_of_itself_is_kept(tasks, done, clock, days):
    clock.advance(days * DAY)
    while tasks.compact():
        pass
    kept = tasks.get(done.id)
    assert (kept.title, kept.status, kept.close_reason, kept.closed_at) == (
        done.title,
        "closed",
        "completed",
        done.closed_at,
    )
    assert (kept.labels, kept.metadata, kept.short_id) == (
        done.labels,
        done.metadata,
        done.short_id,
    )


@pytest.mark.parametrize("days", [31, 400])
def test_a_compacted_task_is_found_by_every_word_that_was_written(memory, tasks, done, clock, days):
    clock.advance(days * DAY)
    while tasks.compact():
        pass
    for word in ("zebrafinch", "capercaillie", "handle_77", "open_cage", "birds", "sing"):
        assert titles(hit.task for hit in memory.search_tasks(word).hits) == [done.title], word


@pytest.mark.parametrize("days", [31, 400])
def test_restore_gives_the_original_text_back(tasks, done, clock, days):
    clock.advance(days * DAY)
    while tasks.compact():
        pass
    restored = tasks.restore(done.id)
    assert restored == tasks.get(done.id)
    assert (restored.description, restored.full_description, restored.compaction_level) == (
        LONG,
        LONG,
        0,
    )
    assert (restored.is_compacted, restored.status, restored.summary) == (
        False,
        "closed",
        done.summary,
    )


def test_restore_of_what_is_whole_changes_nothing(tasks, done):
    events = tasks.history(done.id)
    assert tasks.restore(done.id) == done
    assert tasks.history(done.id) == events


@pytest.mark.parametrize("days", [31, 400])
def test_reopen_gives_the_original_text_back(tasks, done, clock, days):
    clock.advance(days * DAY)
    while tasks.compact():
        pass
    reopened = tasks.reopen(done.id)
    assert (reopened.status, reopened.description, reopened.compaction_level) == ("open", LONG, 0)
    assert reopened.summary == done.summary
    assert tasks.compact() == 0


def test_a_task_with_little_to_save_stays_whole(tasks, clock):
    added = tasks.add("Small", description="One line.")
    empty = tasks.add("Empty")
    for each in (added, empty):
        tasks.close(each.id, "done")
    clock.advance(400 * DAY)
    assert tasks.compact() == 0
    assert tasks.get(added.id).description == "One line."
    assert tasks.get(added.id).compaction_level == 0


def test_only_closed_tasks_decay(tasks, clock):
    tasks.add("open", description=LONG)
    tasks.claim(tasks.add("held", description=LONG).id, actor="ann")
    clock.advance(400 * DAY)
    assert tasks.compact() == 0
    assert {each.description for each in tasks.export()} == {LONG}


def test_the_age_counts_from_the_last_closing(tasks, done, clock):
    clock.advance(25 * DAY)
    tasks.reopen(done.id)
    tasks.close(done.id, "done again")
    clock.advance(25 * DAY)
    assert tasks.compact() == 0
    clock.advance(6 * DAY)
    assert tasks.compact() == 1


def test_a_compacted_task_counts_as_closed_like_any_other(tasks, done, clock):
    waiting = tasks.add("waiting", depends_on=[done.id])
    clock.advance(31 * DAY)
    tasks.compact()
    assert tasks.totals() == TaskTotals(open=1, closed=1, ready=1)
    assert titles(tasks.ready()) == [waiting.title]


def test_each_task_decays_on_its_own_day(tasks, clock):
    for number in range(6):
        tasks.close(tasks.add(f"{number}", description=f"{number} " + LONG).id, "done")
        clock.advance(11 * DAY)
    tasks.compact()
    assert sorted(each.title for each in tasks.export() if each.is_compacted) == [
        "0",
        "1",
        "2",
        "3",
    ]


def test_odd_texts_survive_decay(tasks, clock):
    text = "nul\x00 lone \ud800 重跑 👩‍👩‍👧 \u202e \ufdd0. " + LONG
    added = tasks.add("odd", description=text)
    tasks.close(added.id, "done")
    clock.advance(31 * DAY)
    assert tasks.compact() == 1
    assert tasks.get(added.id).full_description == text
    assert tasks.restore(added.id).description == text
