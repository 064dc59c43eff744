"""What a memory is worth today: arithmetic that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.knowledge.decay import DAY_MS, confidence_now, fading, staleness_of, used_at
from smara.knowledge.models import TYPES, TypedMemory
from tests.contract.memory_place import Files

MADE = 1_760_000_000_000


def memory(**fields):
    made = TypedMemory(
        "id",
        "m-1",
        "gotcha",
        content="x",
        confidence=0.8,
        tags=(),
        files=(),
        modules=(),
        scope="module",
        source="agent_explicit",
        visibility="project",
        created_at=MADE,
        created_by="ann",
        updated_at=MADE,
        version=1,
    )
    return replace(made, **fields)


@pytest.mark.parametrize(("days", "value"), [(0, 0.8), (60, 0.4), (90, 0.2828), (120, 0.2)])
def test_a_gotcha_is_worth_half_after_sixty_days(days, value):
    assert confidence_now(memory(), MADE + days * DAY_MS).value == pytest.approx(value, abs=1e-4)


def test_it_fades_from_its_last_verified_use():
    used = memory(last_verified_use_at=MADE + 60 * DAY_MS)
    assert confidence_now(used, MADE + 60 * DAY_MS).value == 0.8
    assert confidence_now(used, MADE + 120 * DAY_MS).value == pytest.approx(0.4)
    assert used_at(used) == MADE + 60 * DAY_MS


def test_pinned_ones_decisions_and_requirements_do_not_fade():
    later = MADE + 10_000 * DAY_MS
    for lasting in (
        memory(is_pinned=True),
        memory(type="decision"),
        memory(type="requirement", half_life_days=1.0),
    ):
        assert fading(lasting, later) == 1.0


def test_an_own_half_life_counts():
    assert confidence_now(memory(half_life_days=10.0), MADE + 10 * DAY_MS).value == pytest.approx(
        0.4
    )


def test_a_clock_that_was_set_back_adds_nothing():
    assert confidence_now(memory(), MADE - 500 * DAY_MS).value == 0.8


def test_the_steps_tell_how_it_came_about():
    found = confidence_now(memory(), MADE + 60 * DAY_MS, ("half of its files changed", 0.75))
    assert [step.value for step in found.steps] == [0.8, 0.4, 0.3]
    assert "60 days since it was made, half-life 60 days" in found.steps[1].text
    assert found.value == found.steps[-1].value


@given(st.sampled_from(TYPES), st.integers(0, 4_000), st.integers(0, 4_000))
def test_worth_never_grows_with_time(type_, one, other):
    early, late = sorted((one, other))
    each = memory(type=type_)
    assert 0 <= fading(each, MADE + late * DAY_MS) <= fading(each, MADE + early * DAY_MS) <= 1


def layers(found):
    return [reason.layer for reason in found.reasons]


def test_a_fresh_memory_is_not_stale():
    found = staleness_of(memory(files=("a.py",), commit="abc1234"), MADE, Files())
    assert (found.is_stale, found.is_gone, found.needs_review, found.reasons) == (
        False,
        False,
        False,
        (),
    )


def test_layer_one_is_a_mark_or_files_that_are_all_gone():
    assert layers(staleness_of(memory(stale_at=1, stale_because="rewritten"), MADE)) == [1]
    assert staleness_of(memory(files=("a", "b")), MADE, Files(gone=("a", "b"))).is_gone
    assert not staleness_of(memory(files=("a", "b")), MADE, Files(gone=("a",))).is_gone


def test_layer_two_is_a_half_life_without_use():
    assert layers(staleness_of(memory(), MADE + 60 * DAY_MS)) == []
    assert layers(staleness_of(memory(), MADE + 61 * DAY_MS)) == [2]
    assert layers(staleness_of(memory(is_pinned=True), MADE + 999 * DAY_MS)) == []


@pytest.mark.parametrize(
    ("changed", "factor"), [(("a",), 0.875), (("a", "b"), 0.75), (("a", "b", "c", "d"), 0.5)]
)
def test_layer_three_takes_in_proportion_to_the_files_that_changed(changed, factor):
    found = staleness_of(
        memory(files=("a", "b", "c", "d"), commit="abc1234"), MADE, Files(changed=changed)
    )
    assert layers(found) == [3]
    assert found.factors == ((found.reasons[0].text, factor),)


def test_without_a_commit_nobody_knows_what_changed_since():
    assert layers(staleness_of(memory(files=("a",)), MADE, Files(changed=("a",)))) == []


def test_layer_four_asks_for_another_look():
    files = Files(written={"a": MADE + 31 * DAY_MS})
    found = staleness_of(memory(files=("a",)), MADE + 31 * DAY_MS, files)
    assert layers(found) == [4]
    assert found.needs_review
    seen = memory(files=("a",), last_verified_use_at=MADE + 20 * DAY_MS)
    assert layers(staleness_of(seen, MADE + 31 * DAY_MS, files)) == []
