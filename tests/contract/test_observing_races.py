"""Two processes at the same moment: what one writes between two steps of the other is neither lost
nor counted twice.

On PostgreSQL alone: on SQLite whoever writes is alone from the first step to the last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from smara.core.ids import Uuid7
from tests import stores
from tests.contract.conftest import Place
from tests.contract.observing import SMALL, Watcher, fill, problems, watch

pytestmark = pytest.mark.postgres
PATIENCE_SECONDS = 0.5
"""How long the other is given; when it has to wait for a lock, as it should, it is done right
afterwards.
"""


@pytest.fixture
def two(clock: Any) -> Iterator[tuple[Any, Any]]:
    """Two memories over one store."""
    with stores.empty_store("postgres") as url:
        place = Place("postgres", url, clock)
        place.new_id = Uuid7(clock)
        try:
            yield place.open(**SMALL), place.open(**SMALL)
        finally:
            place.close()


@contextmanager
def just_before(thing: Any, name: str, happens: Callable[[], object]) -> Iterator[None]:
    """Something happens in another process just before the next call of ``thing.name``; it may have
    to wait.
    """
    real = getattr(thing, name)
    started: list[threading.Thread] = []

    def call(*arguments: Any, **named: Any) -> Any:
        if not started:
            started.append(threading.Thread(target=happens))
            started[0].start()
            started[0].join(PATIENCE_SECONDS)
        return real(*arguments, **named)

    setattr(thing, name, call)
    try:
        yield
    finally:
        setattr(thing, name, real)
        assert started, f"{name} was not called"
        started[0].join()


def test_activation_by_another_while_observing_is_not_counted_twice(two: tuple[Any, Any]) -> None:
    memory, other = two
    room, second = watch(memory), watch(other, owner="second")
    for _ in range(3):
        fill(memory, 3)
        room.buffer("t")
    with just_before(
        room._store, "update_record", lambda: second.activate("t")
    ):  # two of the three chunks
        assert room.observe("t").success
    assert problems(memory) == []
    assert room.record("t").observed_tokens == memory.threads.get("t").token_count
    assert room.pending("t") == (0, 0)


def test_words_that_arrive_between_reading_and_sealing_are_observed(two: tuple[Any, Any]) -> None:
    memory, other = two
    watcher = Watcher(text="{whole}")
    room = watch(memory, watcher)
    fill(memory, 2)
    last = memory.messages.list(thread_id="t")[-1]
    with just_before(
        memory._rooms.store, "seal", lambda: other.messages.extend(last.id, "and a very last word")
    ):
        room.observe("t")
    room.observe("t")
    assert any("a very last word" in row.text for row in room.active("t"))
    assert room.pending("t") == (0, 0)
    assert problems(memory) == []


def test_what_another_writes_into_the_thread_while_its_task_is_told_stays(
    two: tuple[Any, Any],
) -> None:
    memory, other = two
    room = watch(memory, Watcher(current_task="mend the door"))
    fill(memory, 2)
    with just_before(
        memory._rooms.store,
        "update_thread",
        lambda: other.threads.update("t", metadata={"color": "red"}),
    ):
        room.observe("t")
    metadata = memory.threads.get("t").metadata
    assert (metadata.get("color"), metadata["observations"]["currentTask"]) == (
        "red",
        "mend the door",
    )


def test_two_processes_that_do_everything_at_once_observe_each_message_once(
    two: tuple[Any, Any],
) -> None:
    memory, other = two
    rooms = [watch(memory), watch(other, owner="second")]
    errors: list[BaseException] = []
    fill(memory, 4)

    def work(each: Any, room: Any) -> None:
        try:
            for number in range(12):
                each.messages.add(thread_id="t", role="user", content=f"{number} " + "word " * 60)
                room.buffer("t")
                room.activate("t", is_forced=number % 2 == 0)
                room.observe("t")
                room.reflect("t", is_forced=True)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=pair) for pair in zip(two, rooms, strict=True)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []
    rooms[0].observe("t")
    assert problems(memory) == []
    assert rooms[0].pending("t") == (0, 0)
    noted = sorted(
        row.first_seq for row in rooms[0].list(limit=10_000) if row.kind == "observation"
    )
    assert noted == list(range(1, 29))
