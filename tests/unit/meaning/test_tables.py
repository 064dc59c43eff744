"""What a process keeps of a shelf: blocks replaced in place, and the nearest rows found by
signs.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.database.vectors import decode, encode, rough_cosines, signs_of
from smara.meaning import nearest as tables
from smara.meaning.nearest import Table, best_by_codes, best_by_signs


def block(number: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that tell their block and place, and values that tell the row."""
    rows = np.arange(size, dtype=np.int64) + number * 1_000
    return rows, np.repeat(rows[:, None] % 100, 4, axis=1).astype(np.int8)


def alive(table: Table) -> dict[int, list[int]]:
    rows, values = table.snapshot()
    return {int(row): value.tolist() for row, value in zip(rows, values, strict=True) if row >= 0}


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=60), st.booleans())
@settings(max_examples=60)
def test_a_table_holds_the_last_of_each_block_and_nothing_else(changes, is_by_column):
    table, expected = Table(4, np.int8, is_by_column), {}
    for number, size in changes:
        expected[number] = size
        table.put(number, *block(number, size))
        held = {
            row: [row % 100] * 4
            for which, count in expected.items()
            for row in block(which, count)[0].tolist()
        }
        assert alive(table) == held
        assert len(table) == len(held)


def test_gaps_are_closed_when_there_are_many_and_a_reader_keeps_what_it_had():
    table = Table(4, np.int8, False)
    for number in range(40):
        table.put(number, *block(number, 200))
    rows, values = table.snapshot()
    for number in range(30):
        table.put(number, *block(number, 201))
    assert len(table) == 30 * 201 + 10 * 200
    assert table.size < len(table) + 4_200
    assert (values[:, 0] == rows % 100)[rows >= 0].all()


def random_codes(count: int, dims: int) -> np.ndarray:
    drawn = np.random.default_rng(3).standard_normal((count, dims)).astype(np.float32)
    return decode(encode(drawn), dims)


@pytest.mark.parametrize("dims", [64, 100, 256])
def test_the_nearest_by_signs_hold_the_nearest_by_everything(monkeypatch, dims):
    monkeypatch.setattr(tables, "FIRST_ROUND", 2_000)
    codes = random_codes(6_000, dims)
    rows = np.arange(6_000, dtype=np.int64)
    signs = np.ascontiguousarray(signs_of(codes).view(np.uint64).T).T
    query = codes[17].astype(np.float32) / 100 + codes[18].astype(np.float32) / 200
    query /= np.linalg.norm(query)
    nearest = set(np.argsort(-rough_cosines(codes, query))[:10].tolist())
    assert len(nearest & set(best_by_signs(rows, signs, query, limit=10).tolist())) >= 9
    assert nearest <= set(best_by_codes(rows, codes, query, limit=10).tolist())


def test_rows_that_are_gone_are_never_among_the_nearest():
    codes = random_codes(50, 64)
    rows = np.arange(50, dtype=np.int64)
    rows[::2] = -1
    signs = np.ascontiguousarray(signs_of(codes).view(np.uint64).T).T
    query = codes[0].astype(np.float32)
    for found in (
        best_by_codes(rows, codes, query, limit=40),
        best_by_signs(rows, signs, query, limit=40),
    ):
        assert set(found.tolist()) == set(range(1, 50, 2))


def test_all_that_are_equal_to_the_last_are_in_so_that_their_order_means_nothing():
    codes = np.repeat(random_codes(1, 64), 30, axis=0)
    found = best_by_codes(
        np.arange(30, dtype=np.int64), codes, codes[0].astype(np.float32), limit=5
    )
    assert len(found) == 30
