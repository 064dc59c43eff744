"""The arithmetic of observing, by worked numbers and by what holds for all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.observations.models import MODES
from smara.observations.thresholds import (
    MODE_THRESHOLDS,
    ObservationPlan,
    PendingTokens,
    ReflectionPlan,
    Thresholds,
    chunk_size,
    chunks_to_activate,
    for_mode,
    plan,
    plan_reflection,
)

DEFAULT = Thresholds()
TOKENS = st.integers(0, 200_000)
LIMITS = st.builds(
    Thresholds,
    observe_after=st.integers(1, 100_000),
    buffer_fraction=st.floats(0.01, 1),
    activate_fraction=st.floats(0.1, 1),
    retain_fraction=st.floats(0, 0.9),
    block_fraction=st.floats(1, 3),
)


REFLECTION_LIMITS = st.builds(
    Thresholds, reflect_after=st.integers(1, 100_000), reflect_ahead_fraction=st.floats(0, 2)
)


def pending(chunks: list[int], unbuffered: int) -> PendingTokens:
    return PendingTokens(sum(chunks) + unbuffered, unbuffered)


def test_defaults_are_those_of_the_rulings() -> None:
    assert (DEFAULT.buffer_after, DEFAULT.activate_after, DEFAULT.retain, DEFAULT.block_after) == (
        6_000,
        24_000,
        6_000,
        36_000,
    )
    assert (DEFAULT.reflect_after, DEFAULT.reflect_ahead, DEFAULT.reflections_limit) == (
        40_000,
        32_000,
        80_000,
    )


@pytest.mark.parametrize(
    ("tokens", "unbuffered", "expected"),
    [
        (0, 0, ObservationPlan(False, False, False)),
        (5_999, 5_999, ObservationPlan(False, False, False)),
        (6_000, 6_000, ObservationPlan(True, False, False)),
        (23_999, 0, ObservationPlan(False, False, False)),
        (24_000, 0, ObservationPlan(False, True, False)),
        (24_000, 24_000, ObservationPlan(True, False, False)),
        (30_000, 6_000, ObservationPlan(True, True, False)),
        (35_999, 35_999, ObservationPlan(True, False, False)),
        (36_000, 36_000, ObservationPlan(True, False, True)),
        (60_000, 36_000, ObservationPlan(True, True, True)),
        (60_000, 35_999, ObservationPlan(True, True, False)),
    ],
)
def test_plan_by_worked_numbers(tokens: int, unbuffered: int, expected: ObservationPlan) -> None:
    assert plan(PendingTokens(tokens, unbuffered), DEFAULT) == expected


@pytest.mark.parametrize(
    ("chunks", "unbuffered", "expected"),
    [
        ([], 30_000, 0),
        ([6_000] * 4, 0, 3),
        ([6_000] * 4, 6_000, 4),
        ([6_000] * 4, 5_999, 3),
        ([24_000], 0, 0),
        ([24_000], 6_000, 1),
        ([20_000, 4_000], 0, 0),
        ([1_000] * 24, 0, 18),
        ([100_000, 1], 0, 1),
    ],
)
def test_chunks_to_activate_by_worked_numbers(
    chunks: list[int], unbuffered: int, expected: int
) -> None:
    assert chunks_to_activate(chunks, pending(chunks, unbuffered), DEFAULT) == expected


def test_modes_have_their_own_thresholds_while_nobody_has_set_any() -> None:
    assert set(MODE_THRESHOLDS) == set(MODES)
    assert {mode: for_mode(DEFAULT, mode, True).observe_after for mode in MODES} == MODE_THRESHOLDS


@pytest.mark.parametrize("mode", MODES)
def test_fractions_follow_the_threshold_in_force(mode: str) -> None:
    limits = for_mode(DEFAULT, mode, True)
    wanted = MODE_THRESHOLDS[mode]
    assert (limits.buffer_after, limits.block_after) == (wanted // 5, wanted * 6 // 5)


def test_modes_scale_with_what_was_set() -> None:
    base = Thresholds(observe_after=3_000, buffer_fraction=0.5)
    assert for_mode(base, "explore", False).observe_after == 6_000
    assert for_mode(base, "explore", False).buffer_after == 3_000
    assert for_mode(base, "default", False) == base


@given(LIMITS, TOKENS, TOKENS)
def test_more_pending_never_asks_for_less(limits: Thresholds, tokens: int, more: int) -> None:
    before, after = (plan(PendingTokens(each, each), limits) for each in (tokens, tokens + more))
    assert after >= before
    assert all(now >= then for now, then in zip(after, before, strict=True))


@given(LIMITS, st.lists(st.integers(1, 50_000), max_size=12), TOKENS)
def test_activation_keeps_the_newest_raw_unless_they_could_not_be_shown(
    limits: Thresholds, chunks: list[int], unbuffered: int
) -> None:
    waiting = pending(chunks, unbuffered)
    taken = chunks_to_activate(chunks, waiting, limits)
    left = waiting.tokens - sum(chunks[:taken])
    assert 0 <= taken <= len(chunks)
    if taken and left < limits.retain:
        assert left + chunks[taken - 1] > limits.show_most
    if taken < len(chunks):
        assert left <= limits.show_most
        assert left - chunks[taken] < limits.retain, "one more would have been too many"


@pytest.mark.parametrize(
    ("tokens", "is_buffered", "expected"),
    [
        (31_999, False, ReflectionPlan(False, False, False)),
        (32_000, False, ReflectionPlan(True, False, False)),
        (39_999, False, ReflectionPlan(True, False, False)),
        (39_999, True, ReflectionPlan(False, False, False)),
        (40_000, True, ReflectionPlan(False, True, False)),
        (40_000, False, ReflectionPlan(False, False, True)),
    ],
)
def test_plan_of_reflections_by_worked_numbers(
    tokens: int, is_buffered: bool, expected: ReflectionPlan
) -> None:
    assert plan_reflection(tokens, is_buffered, DEFAULT) == expected


def test_window_of_a_reflection_made_ahead_leaves_room_for_what_comes_until_it_is_needed() -> None:
    """24,000 become 12,000 at 32,000; at 40,000 there are 12,000 and the 16,000 behind them."""
    assert (DEFAULT.reflect_keeps, DEFAULT.reflect_ahead_keeps) == (16_000, 8_000)
    condensed = DEFAULT.reflect_ahead - DEFAULT.reflect_ahead_keeps
    assert DEFAULT.reflect_after - condensed == DEFAULT.reflect_keeps
    assert DEFAULT.reflect_after - condensed + condensed // 2 == 28_000


@given(REFLECTION_LIMITS, TOKENS, st.booleans())
def test_at_most_one_thing_is_done_about_reflections(
    limits: Thresholds, tokens: int, is_buffered: bool
) -> None:
    wanted = plan_reflection(tokens, is_buffered, limits)
    assert sum(wanted) <= 1
    assert sum(wanted) == 1 or tokens < limits.reflect_after
    assert is_buffered or not wanted.activates
    assert not (is_buffered and (wanted.buffers or wanted.reflects))
    assert 0 <= limits.reflect_ahead_keeps <= limits.reflect_after


@given(LIMITS, TOKENS, TOKENS)
def test_nothing_is_activated_that_was_not_buffered(
    limits: Thresholds, tokens: int, buffered: int
) -> None:
    wanted = plan(PendingTokens(tokens + buffered, tokens), limits)
    assert not (wanted.activates and not buffered)


@given(LIMITS, st.lists(st.integers(1, 3_000), min_size=1, max_size=60))
def test_session_of_any_messages_never_lets_pending_grow_past_the_limit_for_long(
    limits: Thresholds, messages: list[int]
) -> None:
    """A cycle that follows the plan at once: after each message pending is below the limit, or is
    one giant.
    """
    chunks: list[int] = []
    raw: list[int] = []
    for size in messages:
        raw.append(size)
        wanted = plan(pending(chunks, sum(raw)), limits)
        if wanted.buffers or wanted.blocks:
            chunks.append(sum(raw))
            raw.clear()
        if plan(pending(chunks, sum(raw)), limits).activates:
            del chunks[: chunks_to_activate(chunks, pending(chunks, sum(raw)), limits)]
        after = pending(chunks, sum(raw))
        assert not plan(after, limits).blocks


@given(LIMITS, TOKENS)
def test_chunks_are_cut_so_that_the_newest_can_stay_raw(limits: Thresholds, tokens: int) -> None:
    waiting, chunks = max(1, tokens), []
    while waiting > 0:
        chunks.append(chunk_size(waiting, limits))
        assert 0 < chunks[-1] <= max(1, limits.observe_after)
        waiting -= chunks[-1]
    assert not limits.retain or chunks[-1] <= limits.buffer_after + limits.retain
