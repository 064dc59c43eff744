"""Work within a deadline: its result, its error, or the end of waiting; and no thread stays
behind.
"""

from __future__ import annotations

import asyncio
import threading

import pytest

from smara.core.deadline import Abort, run_coroutine_within, run_within

LONG = 60.0


pytestmark = pytest.mark.usefixtures("calls_under_way")


async def forever():
    await asyncio.Event().wait()


def test_the_result_comes_back():
    async def work():
        await asyncio.sleep(0)
        return 7

    assert run_coroutine_within(work, LONG) == 7


def test_an_error_comes_back_as_it_was():
    async def work():
        raise LookupError("walrus")

    with pytest.raises(LookupError, match="walrus"):
        run_coroutine_within(work, LONG)


def test_what_hangs_is_cancelled_at_the_deadline_and_cleans_up(calls_under_way):
    cleaned = []

    async def work():
        try:
            await forever()
        finally:
            cleaned.append(True)

    with pytest.raises(TimeoutError):
        run_coroutine_within(
            work, 2.0
        )  # long enough to begin, also on a machine that stands still for a while
    for thread in calls_under_way():
        thread.join(LONG)
    assert cleaned == [True]


def test_abort_from_another_thread_ends_the_wait():
    abort, begun = Abort(), threading.Event()

    async def work():
        begun.set()
        await forever()

    def take_back():
        begun.wait(LONG)
        abort.set()

    threading.Thread(target=take_back).start()
    with pytest.raises(InterruptedError):
        run_coroutine_within(work, LONG, abort)


def test_abort_before_the_call_ends_it_too():
    abort = Abort()
    abort.set()
    with pytest.raises(InterruptedError):
        run_coroutine_within(forever, LONG, abort)


@pytest.mark.parametrize("is_aborted", [False, True])
def test_what_cannot_be_cancelled_is_left_behind(is_aborted, calls_under_way):
    """As an import that takes long, or a name server that does not answer."""
    abort, begun, let_go = Abort(), threading.Event(), threading.Event()

    async def work():
        begun.set()
        let_go.wait(LONG)

    if is_aborted:
        threading.Thread(target=lambda: begun.wait(LONG) and abort.set()).start()
    with pytest.raises(InterruptedError if is_aborted else TimeoutError):
        run_coroutine_within(work, LONG if is_aborted else 0.05, abort)
    assert len(calls_under_way()) == 1
    let_go.set()


def test_it_works_inside_of_a_running_loop():
    async def inner():
        return "answer"

    async def outer():
        return run_coroutine_within(inner, LONG)

    assert asyncio.run(outer()) == "answer"


def test_many_at_once_do_not_mix():
    async def double(number):
        await asyncio.sleep(0)
        return number * 2

    found = {}
    each = [
        threading.Thread(
            target=lambda n=number: found.update({n: run_coroutine_within(lambda: double(n), LONG)})
        )
        for number in range(20)
    ]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    assert found == {number: number * 2 for number in range(20)}


def test_work_that_runs_out_of_time_is_told_and_left_behind(clock):
    told, ended = threading.Event(), threading.Event()

    def work(stop):
        stop.wait(LONG)
        told.set()
        ended.wait(LONG)

    with pytest.raises(TimeoutError):
        run_within(work, 0.0, clock, thread_name="late")
    assert told.wait(LONG)
    ended.set()


def test_result_of_work_comes_back_by_a_clock_that_stands_still(clock):
    assert run_within(lambda stop: 7, LONG, clock, thread_name="quick") == 7


def test_error_of_work_comes_back_as_it_was(clock):
    def work(stop):
        raise LookupError("walrus")

    with pytest.raises(LookupError, match="walrus"):
        run_within(work, LONG, clock, thread_name="broken")


def test_abort_ends_the_wait_for_work_that_does_not_listen(clock):
    abort, ended = Abort(), threading.Event()
    abort.set()
    with pytest.raises(InterruptedError):
        run_within(lambda stop: ended.wait(LONG), LONG, clock, thread_name="deaf", abort=abort)
    ended.set()
