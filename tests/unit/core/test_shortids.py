"""Short ids: readable, long enough, and of one's own."""

from __future__ import annotations

import pytest

from smara.core.ids import ALPHABET, Uuid7, bare_key_of, code_of, length_for


def test_a_longer_id_goes_on_where_the_shorter_ended():
    assert code_of("some-uuid", 9).startswith(code_of("some-uuid", 4))


def test_codes_have_no_letters_that_are_misread():
    assert set("ilou").isdisjoint(ALPHABET)
    assert set(code_of(Uuid7()(), 40)) <= set(ALPHABET)


@pytest.mark.parametrize("count", [100, 1_000, 3_000])
def test_people_who_work_apart_draw_different_ids(count):
    """One project's worth of ids, drawn by several makers, at the length that this many tasks
    get.
    """
    makers = [Uuid7() for _ in range(5)]
    codes = [code_of(makers[number % 5](), length_for(count)) for number in range(count)]
    assert count - len(set(codes)) <= 1  # the chance of any collision is one in two hundred


def test_ids_grow_slowly_and_never_shrink():
    lengths = [length_for(count) for count in (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)]
    assert lengths == sorted(lengths)
    assert lengths[0] == 4
    assert lengths[-1] <= 10


def test_an_id_without_a_hyphen_is_its_own_end():
    assert bare_key_of("plain") == "plain"
