"""Clocks: the machine's, and one that stands still."""

from __future__ import annotations

import threading
import time

from smara.core.clock import SystemClock
from smara.testing import FakeClock


def test_the_machines_clock_tells_milliseconds_since_1970():
    before = int(time.time() * 1000)
    now = SystemClock().now_ms()
    assert before - 1 <= now <= int(time.time() * 1000) + 1


def test_the_machines_monotonic_clock_does_not_go_back():
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()


def test_a_fake_clock_moves_only_when_told_to():
    clock = FakeClock(1_000)
    assert (clock.now_ms(), clock.now_ms(), clock.monotonic()) == (1_000, 1_000, 0.0)
    clock.advance(1.5)
    assert (clock.now_ms(), clock.monotonic()) == (2_500, 1.5)


def test_the_time_of_day_may_be_set_back_and_durations_do_not_notice():
    clock = FakeClock(1_000)
    clock.advance(2)
    clock.set(500)
    assert (clock.now_ms(), clock.monotonic()) == (500, 2.0)


def test_the_machines_clock_does_not_wait_for_what_has_happened():
    happened = threading.Event()
    happened.set()
    SystemClock().wait(3_600, happened)


def test_a_fake_clock_waits_by_advancing():
    clock, happened = FakeClock(0), threading.Event()
    clock.wait(5)
    clock.wait(5, happened)
    happened.set()
    clock.wait(5, happened)
    assert (clock.now_ms(), clock.monotonic()) == (10_000, 10.0)


def test_the_machines_clock_says_whether_an_event_came():
    happened = threading.Event()
    assert not SystemClock().wait_for(happened, 0)
    happened.set()
    assert SystemClock().wait_for(happened, 3_600)


def test_a_fake_clock_waits_for_an_event_until_it_comes():
    clock, happened = FakeClock(0), threading.Event()
    answers = []
    waiter = threading.Thread(
        target=lambda: answers.append(clock.wait_for(happened, 5)), daemon=True
    )
    waiter.start()
    assert clock.awaited()
    happened.set()
    waiter.join()
    assert (answers, clock.monotonic(), clock.awaited(1, timeout_seconds=0)) == ([True], 0.0, False)


def test_a_fake_clock_waits_for_an_event_until_it_was_advanced_far_enough():
    clock, never = FakeClock(0), threading.Event()
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(clock.wait_for(never, 5)), daemon=True)
    waiter.start()
    assert clock.awaited()
    clock.advance(4.5)
    assert clock.awaited()
    clock.advance(0.5)
    waiter.join()
    assert answers == [False]
