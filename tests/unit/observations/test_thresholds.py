"""The arithmetic of observing, by worked numbers and by what holds for all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.observations.models import MODES
from smara.observations.thresholds import (
    MODE_THRESHOLDS,
    Pending,
    Plan,
    Thresholds,
    chunks_to_activate,
    for_mode,
    plan,
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


def pending(chunks: list[int], unbuffered: int) -> Pending:
    return Pending(sum(chunks) + unbuffered, unbuffered)


def test_defaults_are_those_of_the_rulings() -> None:
    assert (DEFAULT.buffer_after, DEFAULT.activate_after, DEFAULT.retain, DEFAULT.block_after) == (
        6_000, 24_000, 6_000, 36_000,
    )  # fmt: skip
    assert (DEFAULT.reflect_after, DEFAULT.reflect_ahead, DEFAULT.reflections_limit) == (40_000, 32_000, 80_000)


@pytest.mark.parametrize(
    ("tokens", "unbuffered", "expected"),
    [
        (0, 0, Plan(False, False, False)),
        (5_999, 5_999, Plan(False, False, False)),
        (6_000, 6_000, Plan(True, False, False)),
        (23_999, 0, Plan(False, False, False)),
        (24_000, 0, Plan(False, True, False)),
        (24_000, 24_000, Plan(True, False, False)),
        (30_000, 6_000, Plan(True, True, False)),
        (35_999, 35_999, Plan(True, False, False)),
        (36_000, 36_000, Plan(True, False, True)),
        (60_000, 36_000, Plan(True, True, True)),
        (60_000, 35_999, Plan(True, True, False)),
    ],
)
def test_plan_by_worked_numbers(tokens: int, unbuffered: int, expected: Plan) -> None:
    assert plan(Pending(tokens, unbuffered), DEFAULT) == expected


@pytest.mark.parametrize(
    ("chunks", "unbuffered", "expected"),
    [
        ([], 30_000, 0),
        ([6_000] * 4, 0, 3),
        ([6_000] * 4, 6_000, 4),
        ([6_000] * 4, 5_999, 3),
        ([24_000], 0, 1),
        ([20_000, 4_000], 0, 1),
        ([1_000] * 24, 0, 18),
        ([100_000, 1], 0, 1),
    ],
)
def test_chunks_to_activate_by_worked_numbers(chunks: list[int], unbuffered: int, expected: int) -> None:
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
    before, after = (plan(Pending(each, each), limits) for each in (tokens, tokens + more))
    assert after >= before
    assert all(now >= then for now, then in zip(after, before, strict=True))


@given(LIMITS, st.lists(st.integers(1, 50_000), max_size=12), TOKENS)
def test_activation_keeps_the_newest_raw_and_always_makes_progress(
    limits: Thresholds, chunks: list[int], unbuffered: int
) -> None:
    waiting = pending(chunks, unbuffered)
    taken = chunks_to_activate(chunks, waiting, limits)
    left = waiting.tokens - sum(chunks[:taken])
    assert 0 <= taken <= len(chunks)
    assert (taken > 0) == bool(chunks)
    assert taken <= 1 or left >= limits.retain
    if taken < len(chunks):
        assert left <= limits.retain or left - chunks[taken] < limits.retain, "one more would have been too many"
    assert chunks_to_activate(chunks, waiting, limits, is_forced=True) == len(chunks)


@given(LIMITS, TOKENS, TOKENS)
def test_nothing_is_activated_that_was_not_buffered(limits: Thresholds, tokens: int, buffered: int) -> None:
    wanted = plan(Pending(tokens + buffered, tokens), limits)
    assert not (wanted.activates and not buffered)


@given(LIMITS, st.lists(st.integers(1, 3_000), min_size=1, max_size=60))
def test_session_of_any_messages_never_lets_pending_grow_past_the_limit_for_long(
    limits: Thresholds, messages: list[int]
) -> None:
    """A cycle that follows the plan at once: after each message pending is below the limit, or is one giant."""
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
