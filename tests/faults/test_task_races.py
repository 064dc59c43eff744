"""Many processes at the same tasks, some of them killed: one holder each, no circle, no change
lost, counts exact.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.tasks.models import NewTask, Task, TaskEvent, TaskTotals
from tests.faults import recount, task_workers
from tests.faults.conftest import Start, Worker
from tests.faults.sizes import SEED, count
from tests.faults.test_kills import Assassin
from tests.faults.workers import READY

KINDS = [pytest.param("sqlite"), pytest.param("postgres", marks=pytest.mark.postgres)]
TRIALS_PER_STORE = 8


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, store: str) -> str:
    """The address of an empty store of each kind, brought up to date."""
    address = store if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    smara.open(address).close()
    return str(address)


def fill(where: str, tasks: Iterable[NewTask]) -> list[str]:
    """Put tasks into a store; their ids by age."""
    with smara.open(where) as memory:
        assert memory.tasks.put_many(tasks).refused == ()
        return [task.id for task in memory.tasks.export()]


def many(how_many: int) -> list[NewTask]:
    return [
        NewTask(
            f"task {number}",
            short_id=f"x-{number:05}",
            priority=number % 5,
            created_at=1_000 + number,
        )
        for number in range(how_many)
    ]


def race(
    start: Start, function: Callable[..., None], where: str, processes: int, *arguments: Any
) -> dict[str, Any]:
    """Let many begin at the same moment; what each told at its end, by its name."""
    runners = {
        f"w{number}": start(function, where, f"w{number}", *arguments)
        for number in range(processes)
    }
    assert [each.pipe.recv() for each in runners.values()] == [READY] * processes
    for each in runners.values():
        each.pipe.send("go")
    told = {name: each.rest() for name, each in runners.items()}
    assert [
        (name, said) for name, said in told.items() if len(said) != 1 or said[0][0] != "done"
    ] == []
    return {name: said[0][1] for name, said in told.items()}


# What must be true of every store, whoever did what to it.


def waiting(tasks: Iterable[Task]) -> dict[str, set[str]]:
    """What each task waits for."""
    waits: dict[str, set[str]] = {task.id: set() for task in tasks}
    for task in tasks:
        for needed in task.dependencies:
            if needed.type == "blocks":
                waits[task.id].add(needed.depends_on_id)
            elif needed.type == "parent-child":
                waits[needed.depends_on_id].add(task.id)
    return waits


def circle(waits: dict[str, set[str]]) -> bool:
    """Whether anything waits for itself: what waits for nothing is taken away until only circles
    are left.
    """
    left = {task: set(needed) for task, needed in waits.items()}
    while free := [task for task, needed in left.items() if not needed & left.keys()]:
        for task in free:
            del left[task]
    return bool(left)


def recounted(tasks: list[Task]) -> TaskTotals:
    waits = waiting(tasks)
    unfinished = {task.id for task in tasks if task.status != "closed"}
    blocked = {each for each in unfinished if waits[each] & unfinished}
    status = Counter(task.status for task in tasks)
    ready = sum(task.status == "open" and task.id not in blocked for task in tasks)
    return TaskTotals(
        status["open"], status["in_progress"], status["closed"], ready=ready, blocked=len(blocked)
    )


def broken_history(task: Task, history: list[TaskEvent]) -> list[str]:
    """What in a history does not follow from what stands before it, or does not lead to the task as
    it is.
    """
    found = []
    state: dict[str, Any] = {}
    for event in reversed(history):
        for name in ("title", "priority", "status", "session_id"):
            if name in event.before and name in state and state[name] != event.before[name]:
                found.append(
                    f"{event.kind}: {name} was {state[name]!r}, the event says "
                    f"{event.before[name]!r}"
                )
            if name in event.after:
                state[name] = event.after[name]
    return found + [
        f"{name} is {getattr(task, name)!r}; its history ends with {state[name]!r}"
        for name in ("title", "priority", "status")
        if name in state and state[name] != getattr(task, name)
    ]


def wrong(memory: smara.Memory) -> list[str]:
    """Everything that does not add up; empty for a store that is whole."""
    tasks = list(memory.tasks.export())
    found = memory.internals.database.integrity()
    if memory.tasks.totals() != recounted(tasks):
        found.append(f"totals say {memory.tasks.totals()}, a recount {recounted(tasks)}")
    if circle(waiting(tasks)):
        found.append("tasks wait for each other in a circle")
    for task in tasks:
        if (task.status == "in_progress") != (task.holder is not None):
            found.append(f"{task.short_id} is {task.status} and held by {task.holder}")
        history = memory.tasks.history(task.id, limit=100_000)
        found += [f"{task.short_id}: {each}" for each in broken_history(task, history)]
        if not history or history[-1].kind not in ("created", "imported"):
            found.append(f"{task.short_id} has no beginning")
    return found


# Races for claims.


def assert_each_is_held_once(where: str, ids: list[str], taken: dict[str, list[str]]) -> None:
    holders = {task_id: name for name, own in taken.items() for task_id in own}
    assert sorted(task_id for own in taken.values() for task_id in own) == sorted(ids)
    with smara.open(where) as memory:
        assert {task.id: task.holder for task in memory.tasks.export()} == holders
        assert memory.tasks.totals() == TaskTotals(in_progress=len(ids))
        for task_id in ids:
            assert [event.kind for event in memory.tasks.history(task_id)] == [
                "claimed",
                "imported",
            ]
        assert wrong(memory) == []


def test_many_processes_that_take_what_is_next_take_every_task_exactly_once(
    where: str, start: Start
) -> None:
    ids = fill(where, many(count(60, 1_000)))
    taken = race(start, task_workers.claim_next_until_none, where, count(4, 16))
    assert_each_is_held_once(where, ids, taken)


def test_many_processes_that_look_first_and_then_claim_take_every_task_exactly_once(
    where: str, start: Start
) -> None:
    ids = fill(where, many(count(60, 1_000)))
    taken = race(start, task_workers.claim_what_is_ready, where, count(4, 16))
    assert_each_is_held_once(where, ids, taken)


def test_race_sees_a_task_that_two_have_taken(where: str, start: Start) -> None:
    """The mutant: processes that take what was ready when they looked."""
    ids = fill(where, many(5))
    taken = race(start, task_workers.claim_by_force, where, 2)
    with pytest.raises(AssertionError):
        assert_each_is_held_once(where, ids, taken)


def test_many_processes_work_off_a_plan_and_nothing_is_begun_before_its_time(
    where: str, start: Start
) -> None:
    """Ten chains below one epic: every claim finds nothing in its way, and everything is closed
    once.
    """
    length = count(4, 30)
    chains = [
        NewTask(
            f"{chain}.{step}",
            short_id=f"x-{chain}s{step}",
            created_at=1_000 + step,
            depends_on=[
                ("x-epic", "parent-child"),
                *([(f"x-{chain}s{step - 1}", "blocks")] if step else []),
            ],
        )
        for chain in range(10)
        for step in range(length)
    ]
    ids = fill(where, [NewTask("epic", short_id="x-epic", type="epic", created_at=1), *chains])
    done = race(start, task_workers.work_off, where, count(3, 12), len(ids))
    assert sorted(task_id for own in done.values() for task_id in own) == sorted(ids)
    with smara.open(where) as memory:
        assert memory.tasks.totals() == TaskTotals(closed=len(ids))
        summaries = {task.id: task.summary for task in memory.tasks.export()}
        assert summaries == {
            task_id: f"{task_workers.SUMMARY} {name}"
            for name, own in done.items()
            for task_id in own
        }
        assert wrong(memory) == []


def test_work_of_a_killed_process_is_taken_over_and_everything_is_done_once(
    where: str, start: Start
) -> None:
    """1. One claims five and is killed. 2. Its session is ended. 3. The others do everything."""
    ids = fill(where, many(count(20, 200)))
    victim = start(task_workers.claim_and_hang, where, "victim", 5)
    assert victim.first(1) == [READY]
    victim.pipe.send("go")
    held = victim.first(5)
    victim.kill()
    with smara.open(where) as memory:
        assert {task.id for task in memory.tasks.list(status="in_progress")} == set(held)
        assert {task.id for task in memory.tasks.end_session("victim")} == set(held)
    done = race(start, task_workers.work_off, where, count(3, 8), len(ids))
    assert sorted(task_id for own in done.values() for task_id in own) == sorted(ids)
    with smara.open(where) as memory:
        kinds = [event.kind for event in memory.tasks.history(held[0])]
        assert kinds == ["closed", "claimed", "expired", "claimed", "imported"]
        assert wrong(memory) == []


# Dependencies at once.


def ask_at_once(workers: list[Worker], wanted: list[tuple[str, str, str]]) -> list[str]:
    for worker, each in zip(workers, wanted, strict=True):
        worker.pipe.send(each)
    return [worker.pipe.recv() for worker in workers]


def test_dependencies_added_at_once_never_make_a_circle(
    where: str, start: Start, rng: random.Random
) -> None:
    """Two or three processes, each told to add one edge of a circle at once: exactly one of them is
    refused.
    """
    rounds = count(15, 400)
    ids = fill(where, many(3 * rounds))
    workers = [start(task_workers.depend_when_told, where) for _ in range(3)]
    assert [each.pipe.recv() for each in workers] == [READY] * 3
    for each in workers:
        each.pipe.send("go")
    for number in range(rounds):
        three = ids[3 * number : 3 * number + 3]
        members = three[: rng.choice((2, 3))]
        wanted = []
        for place, task_id in enumerate(members):
            needed = members[(place + 1) % len(members)]
            # "task_id waits for needed", said in one of the two ways
            wanted.append(
                rng.choice([(task_id, needed, "blocks"), (needed, task_id, "parent-child")])
            )
        answers = ask_at_once(workers[: len(members)], wanted)
        assert sorted(answers) == ["added"] * (len(members) - 1) + ["refused"], (
            f"round {number}, seed {SEED}: {wanted}"
        )
    for each in workers:
        each.pipe.send(None)
        assert each.rest() == []
    with smara.open(where) as memory:
        assert wrong(memory) == []


# Changes at once.


def test_changes_of_many_processes_to_the_same_tasks_are_all_there(
    where: str, start: Start
) -> None:
    ids = fill(where, many(3))
    processes, each = count(4, 16), count(15, 150)
    race(start, task_workers.update_some, where, processes, ids, each)
    with smara.open(where) as memory:
        events = [
            event for task_id in ids for event in memory.tasks.history(task_id, limit=100_000)
        ]
        assert Counter(event.kind for event in events) == {
            "imported": 3,
            "updated": processes * each,
        }
        merged = {key for task in memory.tasks.export() for key in task.metadata}
        assert merged == {
            f"w{name}-{number}" for name in range(processes) for number in range(each)
        }
        assert wrong(memory) == []


def test_anything_done_by_many_processes_leaves_tasks_that_add_up(where: str, start: Start) -> None:
    fill(where, many(8))
    race(start, task_workers.live_wildly, where, count(3, 8), SEED, count(80, 1_000))
    with smara.open(where) as memory:
        assert wrong(memory) == [], f"seed {SEED}"
        assert {task.id for task in memory.tasks.ready(limit=100)} == {
            task.id
            for task in memory.tasks.list(status="open")
            if not memory.tasks.show(task.id).is_blocked
        }


# Kills.


def missing(memory: smara.Memory, told: dict[str, list[str]]) -> list[str]:
    """Steps that were acknowledged and are not in the history, or steps that nobody took."""
    found = []
    for task_id, steps in told.items():
        history = [event.kind for event in memory.tasks.history(task_id)][::-1]
        if history[: len(steps)] != steps or len(history) > len(steps) + 1:
            found.append(f"{task_id}: acknowledged {steps}, stored {history}")
    return found


class Book:
    """What is known of a store: the steps of each task that were acknowledged, or seen after a
    death.
    """

    def __init__(self) -> None:
        self.told: dict[str, list[str]] = {}
        self.names: dict[str, str] = {}

    def write(self, acknowledged: list[Any]) -> None:
        for task_id, kind, name in acknowledged:
            assert kind != "refused"
            self.told.setdefault(task_id, []).append(kind)
            self.names[task_id] = name

    def compare(self, memory: smara.Memory, session_id: str, trial: str) -> None:
        """Nothing acknowledged is missing, at most one step more was taken, and everything adds
        up.
        """
        assert missing(memory, self.told) == [], trial
        assert wrong(memory) == [], trial
        unheard = {task.id for task in memory.tasks.export()} - self.told.keys()
        assert len(unheard) <= 1, trial
        for task_id in list(self.names)[-2:]:
            assert task_id in [
                hit.task.id for hit in memory.search_tasks(self.names[task_id]).hits
            ], trial
        # What the dead one held is given back; all that is there now must be there ever after.
        memory.tasks.end_session(session_id)
        self.told = {task.id: history_of(memory, task.id) for task in memory.tasks.export()}


def history_of(memory: smara.Memory, task_id: str) -> list[str]:
    return [event.kind for event in memory.tasks.history(task_id)][::-1]


@pytest.mark.parametrize(("durability", "small", "large"), [("full", 5, 120), ("normal", 3, 60)])
def test_killed_worker_loses_no_acknowledged_change_of_a_task(
    tmp_path: Path, start: Start, rng: random.Random, durability: str, small: int, large: int
) -> None:
    assassin = Assassin(rng, start, task_workers.live)
    assassin.measure(str(tmp_path / "measured.db"), 0, durability)
    book = Book()
    for trial in takewhile(lambda _: assassin.kills < count(small, large), itertools.count()):
        path = str(tmp_path / f"{trial // TRIALS_PER_STORE}.db")
        if trial % TRIALS_PER_STORE == 0:
            book = Book()
        book.write(assassin.trial(path, trial * 100_000, durability))
        with smara.open(path) as memory:
            assert recount.problems(memory) == [], f"trial {trial}, seed {SEED}"
            assert memory.warnings == [], f"trial {trial}, seed {SEED}"
            book.compare(memory, f"session-{trial * 100_000}", f"trial {trial}, seed {SEED}")


@pytest.mark.postgres
def test_killed_worker_on_postgres_loses_no_acknowledged_change_of_a_task(
    postgres_url: str, start: Start, rng: random.Random
) -> None:
    smara.open(postgres_url).close()
    book = Book()
    for trial in range(count(3, 40)):
        worker = start(task_workers.live, postgres_url, trial * 100_000, "normal")
        acknowledged = worker.first(1 + rng.randint(1, 12)) + worker.kill()
        book.write([each for each in acknowledged if each != READY])
        with smara.open(postgres_url) as memory:
            book.compare(memory, f"session-{trial * 100_000}", f"trial {trial}, seed {SEED}")


def test_the_checks_see_what_they_are_for(store: str) -> None:
    """The mutants: a count that is off, a circle, a change without an event, an acknowledged step
    that is not there.
    """
    with smara.open(store) as memory:
        door, hinge = memory.tasks.add("door"), memory.tasks.add("hinge")
        assert wrong(memory) == []
        history = memory.tasks.history(door.id)
        assert missing(memory, {door.id: ["created", "claimed"]}) != []
        assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()}) is True
        assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is False
        assert recounted([door, hinge]) == TaskTotals(open=2, ready=2)
        with memory._rooms.database.write() as session:
            session.run(
                "UPDATE tasks SET title = 'changed behind its back' WHERE id = ?", (door.id,)
            )
        assert broken_history(memory.tasks.get(door.id), history) != []
        assert wrong(memory) != []
