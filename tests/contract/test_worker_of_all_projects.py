"""One worker for every project of a store: fair, safe beside others, and cheap when there is
nothing to do.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from smara.errors import ModelUnavailableError
from smara.observations.worker import StoreWorker
from smara.testing import FakeClock, ScriptedModel
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import SMALL, fill, problems

pytestmark = EACH_DATABASE

QUIET = {**SMALL, "embedder": "off"}


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(**QUIET)


def filled(memory: Any, **threads: int) -> dict[str, Any]:
    """Projects with so many threads each, every one of them due."""
    found = {}
    for project, count in threads.items():
        found[project] = memory.in_project(project)
        for number in range(count):
            fill(found[project], 3, f"{project}-{number}")
    return found


def looked_at(memory: Any, project: str, order: list[str]) -> None:
    """Note in which order the threads of a project are looked at."""
    room = memory.observations
    really = room.buffer

    def buffer(thread_id: str, **given: Any) -> Any:
        order.append(project)
        return really(thread_id, **given)

    room.buffer = buffer


def serving(memory: Any, projects: dict[str, Any]) -> StoreWorker:
    """The worker of all projects, with these memories in the place of its own."""
    workers = memory.internals.workers
    workers._worker_of = lambda project_id: (
        (projects.get(project_id) or memory.in_project(project_id)).worker
    )
    return workers


def test_round_observes_the_threads_of_every_project(memory: Any) -> None:
    projects = filled(memory, shop=2, blog=3, empty=0)
    done = memory.internals.workers.run_once()
    assert (done.looked_at, done.observed, done.failed, done.projects) == (5, 5, 0, 2)
    for each in projects.values():
        assert problems(each) == []
    assert {row.thread_id for row in projects["shop"].observations.list()} == {"shop-0", "shop-1"}
    assert memory.observations.list() == [], "the walls stand"
    assert memory.internals.workers.run_once().is_idle


def test_project_with_one_thread_does_not_wait_for_one_with_many(memory: Any) -> None:
    projects = filled(memory, many=9, few=1, some=2)
    order: list[str] = []
    for name, each in projects.items():
        looked_at(each, name, order)
    serving(memory, projects).run_once()
    assert len(order) == 12
    assert set(order[:3]) == {"many", "few", "some"}
    assert order[6:] == ["many"] * 6


def test_round_ends_after_a_while_to_see_what_else_is_due(memory: Any, clock: FakeClock) -> None:
    projects = filled(memory, many=30)
    room = projects["many"].observations
    really = room.buffer

    def slow(thread_id: str, **given: Any) -> Any:
        clock.advance(20)
        return really(thread_id, **given)

    room.buffer = slow
    workers = serving(memory, projects)
    first = workers.run_once()
    assert first.looked_at < 10
    while not workers.run_once().is_idle:
        pass
    assert all(room.pending(f"many-{number}").unbuffered == 0 for number in range(30))
    assert problems(projects["many"]) == []


def test_trouble_with_one_project_does_not_keep_the_others_waiting(memory: Any) -> None:
    projects = filled(memory, good=1, bad=1)

    def worker_of(project_id: str) -> Any:
        if project_id == "bad":
            raise ModelUnavailableError("away")
        return (projects.get(project_id) or memory.in_project(project_id)).worker

    memory.internals.workers._worker_of = worker_of
    done = memory.internals.workers.run_once()
    assert (done.observed, done.failed) == (1, 1)


def test_model_that_hangs_is_waited_for_once_and_not_by_each_project(
    place: Any, clock: FakeClock
) -> None:
    model = ScriptedModel([ModelUnavailableError("timeout", reason="timeout")])
    memory = place.open(**QUIET, chat_model=model)
    filled(memory, a=2, b=2, c=2)
    asked = len(model.requests)
    done = memory.internals.workers.run_once()
    assert (done.looked_at, done.failed) == (6, 6)
    assert len(model.requests) - asked <= 3, "one job with its retries"


def test_threads_of_two_workers_are_observed_once(place: Any, memory: Any) -> None:
    projects = filled(memory, shop=6, blog=6)
    other = place.open(**QUIET)
    done: list[Any] = []
    second = threading.Thread(
        target=lambda: done.append(other.internals.workers.run_once()), daemon=True
    )
    second.start()
    done.append(memory.internals.workers.run_once())
    second.join(600)
    assert len(done) == 2
    memory.internals.workers.run_once()
    for each in projects.values():
        assert problems(each) == []
        assert all(
            each.observations.pending(thread.id).unbuffered == 0 for thread in each.threads.list()
        )


def test_idle_round_asks_a_few_questions_however_many_projects_and_threads_there_are(
    memory: Any,
) -> None:
    for number in range(30):
        filled(memory, **{f"project-{number}": 2})
    while not memory.internals.workers.run_once().is_idle:
        pass
    reads: list[Any] = []
    really = memory._rooms.database.read

    def counted(*given: Any) -> Any:
        reads.append(given)
        return really(*given)

    memory._rooms.database.read = counted
    assert memory.internals.workers.run_once().is_idle
    assert len(reads) < 30
