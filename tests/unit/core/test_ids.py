"""Ids: UUID version 7, increasing within a process whatever the clock does."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

from smara.core.ids import Uuid7, format_uuid7
from smara.testing import CountingIds, FakeClock


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front():
    clock = FakeClock(0x0190_1234_5678)
    made = uuid.UUID(Uuid7(clock)())
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == 0x0190_1234_5678


def test_ids_increase_while_the_clock_stands_still():
    new_id = Uuid7(FakeClock())
    made = [new_id() for _ in range(10_000)]
    assert made == sorted(set(made))


def test_ids_increase_while_the_clock_goes_back():
    clock = FakeClock()
    new_id = Uuid7(clock)
    made = [new_id()]
    for _ in range(5):
        clock.advance(-3_600)
        made.append(new_id())
    assert made == sorted(set(made))


def test_ids_follow_a_clock_that_goes_on():
    clock = FakeClock()
    new_id = Uuid7(clock)
    new_id()
    clock.advance(1)
    assert uuid.UUID(new_id()).int >> 80 == clock.now_ms()


def test_ids_made_by_many_threads_are_all_different():
    new_id = Uuid7(FakeClock())
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_id(), range(4_000)))
    assert len(set(made)) == 4_000


def test_two_makers_at_the_same_moment_make_different_ids():
    clock = FakeClock()
    assert Uuid7(clock)() != Uuid7(clock)()


def test_the_random_part_is_drawn_from_the_source_given():
    assert Uuid7(FakeClock(), lambda count: b"\xff" * count)()[19:] == "bfff-ffffffffffff"


def test_the_text_is_canonical():
    assert format_uuid7(0x0190_0000_0000, 0xABC, 1) == "01900000-0000-7abc-8000-000000000001"


def test_counting_ids_are_easy_to_read():
    new_id = CountingIds("m")
    assert [new_id(), new_id()] == ["m-000001", "m-000002"]
