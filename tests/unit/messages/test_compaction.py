"""When to compact: pure arithmetic with worked numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.messages.compaction import FOLD, folds_due, runs_due

SEQS = st.sets(st.integers(1, 200)).map(sorted)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []), (29, []), (30, [(1, 10)]), (31, [(1, 10)]), (39, [(1, 10)]), (40, [(1, 10), (11,
        20)]),
        (59, [(1, 10), (11, 20), (21, 30)]), (60, [(1, 10), (11, 20), (21, 30), (31, 40)]),
    ],
)  # fmt: skip
def test_ten_are_taken_while_thirty_are_whole(count, expected):
    assert runs_due(range(1, count + 1), 30, 10) == expected


def test_a_run_never_spans_a_gap():
    assert runs_due([1, 2, 5, 6, 7], 1, 10) == [(1, 2), (5, 7)]


def test_a_command_takes_the_rest_in_a_shorter_run():
    assert runs_due(range(1, 13), 1, 10) == [(1, 10), (11, 12)]


@given(SEQS, st.integers(0, 50), st.integers(1, 20))
def test_runs_are_apart_in_order_and_made_of_whole_messages(whole, after, length):
    taken = [
        seq for first, last in runs_due(whole, after, length) for seq in range(first, last + 1)
    ]
    assert taken == whole[: len(taken)]


@given(SEQS, st.integers(1, 50), st.integers(1, 20))
def test_fewer_than_the_threshold_stay_whole(whole, after, length):
    taken = sum(last - first + 1 for first, last in runs_due(whole, after, length))
    assert len(whole) - taken < after


@given(SEQS, st.integers(1, 50), st.integers(1, 20))
def test_no_run_is_longer_than_it_may_be(whole, after, length):
    assert all(last - first < length for first, last in runs_due(whole, after, length))


@pytest.mark.parametrize(
    ("last", "expected"),
    [(119, []), (120, [(1, 30)]), (149, [(1, 30)]), (150, [(1, 30), (31, 60)])],
)
def test_three_summaries_are_folded_once_they_lie_ninety_back(last, expected):
    runs = [(first, first + 9) for first in range(1, 140, 10)]
    assert folds_due(runs, last, 90) == expected


def test_summaries_that_are_not_adjacent_are_not_folded():
    assert folds_due([(1, 10), (11, 20), (31, 40)], 500, 90) == []
    assert folds_due([(1, 10), (21, 30), (31, 40), (41, 50)], 500, 90) == [(21, 50)]


@given(st.lists(st.integers(1, 5), max_size=20), st.integers(0, 200), st.integers(0, 100))
def test_every_fold_is_three_neighbors_that_are_old_enough(lengths, last, after):
    runs, at = [], 1
    for length in lengths:
        runs.append((at, at + length - 1))
        at += length
    for first, end in folds_due(runs, last, after):
        assert len([run for run in runs if first <= run[0] and run[1] <= end]) == FOLD
        assert end <= last - after
