"""Processes that work on tasks. Each reports through its pipe only after a call has returned."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

import smara
from smara.errors import ConflictError, DependencyCycleError, TaskClaimedError, UsageError
from tests.faults.workers import READY, watched

SUMMARY = "done by"


@contextmanager
def at_once(pipe: Connection, where: str) -> Iterator[smara.Memory]:
    """A memory that is open when the word to begin comes; an error is told instead of raised."""
    try:
        with smara.open(where, durability="normal") as memory:
            pipe.send(READY)
            pipe.recv()
            yield memory
    except Exception as error:
        pipe.send(("error", repr(error)))


def claim_next_until_none(pipe: Connection, where: str, name: str) -> None:
    """Take what is next until nothing is left; tell what was taken."""
    with at_once(pipe, where) as memory:
        taken = []
        while (task := memory.tasks.claim_next(actor=name, session_id=name)) is not None:
            taken.append(task.id)
        pipe.send(("done", taken))


def claim_what_is_ready(pipe: Connection, where: str, name: str) -> None:
    """Look at what is ready, then claim it; that another was quicker is an answer, not an error."""
    with at_once(pipe, where) as memory:
        taken = []
        while ready := memory.tasks.ready(limit=8):
            for task in ready:
                try:
                    taken.append(memory.tasks.claim(task.id, actor=name, session_id=name).id)
                except TaskClaimedError as error:
                    if error.holder == name:
                        raise
        pipe.send(("done", taken))


def claim_by_force(pipe: Connection, where: str, name: str) -> None:
    """The mutant: what was ready a moment ago is taken, whoever has it now."""
    with smara.open(where, durability="normal") as memory:
        seen = memory.tasks.ready(limit=100)
        pipe.send(READY)
        pipe.recv()
        for task in seen:
            memory.tasks.release(task.id, force=True, actor=name, session_id=name)
            with suppress(TaskClaimedError):
                memory.tasks.claim(task.id, actor=name, session_id=name)
    pipe.send(("done", [task.id for task in seen]))


def work_off(pipe: Connection, where: str, name: str, expected: int) -> None:
    """Claim and close until everything is closed, whoever closed it; a claim finds nothing in its
    way.
    """
    with at_once(pipe, where) as memory:
        done = []
        while memory.tasks.totals().closed < expected:
            task = memory.tasks.claim_next(actor=name, session_id=name)
            if task is None:
                os.sched_yield()  # the others have yet to finish what this waits for
                continue
            in_the_way = memory.tasks.show(task.id).blocking_tasks
            assert in_the_way == (), f"{task.short_id} was claimed and waits for {in_the_way}"
            memory.tasks.close(task.id, f"{SUMMARY} {name}", actor=name, session_id=name)
            done.append(task.id)
        pipe.send(("done", done))


def depend_when_told(pipe: Connection, where: str) -> None:
    """For each pair that comes in: make the one depend on the other; tell whether it was refused as
    a circle.
    """
    with at_once(pipe, where) as memory:
        while (wanted := pipe.recv()) is not None:
            task_id, other_id, kind = wanted
            try:
                memory.tasks.depend(task_id, other_id, type=kind)
                pipe.send("added")
            except DependencyCycleError as error:
                pipe.send(
                    "refused"
                    if error.path[0] == error.path[-1]
                    else f"a path that is no circle: {error.path}"
                )
    pipe.close()


def update_some(pipe: Connection, where: str, name: str, task_ids: list[str], count: int) -> None:
    """Change the same tasks as others do, each time something that only this process writes, and
    the title.
    """
    with at_once(pipe, where) as memory:
        for number in range(count):
            task_id = task_ids[number % len(task_ids)]
            memory.tasks.update(
                task_id,
                title=f"{name} {number}",
                metadata={f"{name}-{number}": number},
                actor=name,
                session_id=name,
            )
        pipe.send(("done", count))


def live_wildly(pipe: Connection, where: str, name: str, seed: str, count: int) -> None:
    """Anything that can be done to a task, in a random order; a refusal is an answer, anything else
    an error.
    """
    rng = random.Random(f"{seed}:{name}")
    with at_once(pipe, where) as memory:
        tasks = memory.tasks
        me: dict[str, Any] = {"actor": name, "session_id": name}
        ids = [task.id for task in tasks.export()]

        def anything() -> Callable[[], Any]:
            one, other = rng.sample(ids, 2)
            return rng.choice(
                [
                    lambda: tasks.claim(one, **me),
                    lambda: tasks.claim_next(**me),
                    lambda: tasks.release(one, **me),
                    lambda: tasks.hand_over(one, to_session=f"w{rng.randrange(3)}", **me),
                    lambda: tasks.close(one, f"{SUMMARY} {name}", **me),
                    lambda: tasks.reopen(one, **me),
                    lambda: tasks.update(one, priority=rng.randrange(5), **me),
                    lambda: tasks.update(one, title=f"{name} {rng.random()}", **me),
                    lambda: tasks.depend(
                        one, other, type=rng.choice(["blocks", "parent-child", "related"]), **me
                    ),
                    lambda: tasks.undepend(one, other, **me),
                    lambda: tasks.undo(one, **me),
                    lambda: tasks.ready(),
                    lambda: tasks.end_session(name),
                    lambda: tasks.tree(),
                    lambda: tasks.critical_path(one),
                ]
            )

        refusals = 0
        for _ in range(count):
            try:
                anything()()
            except UsageError:
                refusals += 1
        pipe.send(("done", refusals))


def live(
    pipe: Connection, where: str, first: int, durability: str, kill_at: int | None = None
) -> None:
    """Add, claim, update, depend and close tasks one after the other until killed; each step told
    when it is done.
    """
    pipe.send(READY)
    me: dict[str, Any] = {"actor": "worker", "session_id": f"session-{first}"}
    with smara.open(where, durability=durability, vfs=watched(kill_at)) as memory:
        tasks = memory.tasks
        before: str | None = None
        for number in itertools.count(first):
            name = f"zebrafinch number{number}"
            task = tasks.add(
                name, description=f"open src/cage{number}.py", labels=[f"l{number % 3}"], **me
            )
            pipe.send((task.id, "created", name))
            if before is not None:
                tasks.depend(task.id, before, **me)
                pipe.send((task.id, "dependency_added", name))
            tasks.update(task.id, priority=number % 2, **me)
            pipe.send((task.id, "updated", name))
            try:
                tasks.claim(task.id, **me)
                pipe.send((task.id, "claimed", name))
                tasks.close(task.id, f"{SUMMARY} handle{number}", **me)
                pipe.send((task.id, "closed", name))
                before = task.id
            except ConflictError:
                pipe.send((task.id, "refused", name))


def claim_and_hang(pipe: Connection, where: str, name: str, count: int) -> None:
    """Claim some tasks, say so, and never come back."""
    with at_once(pipe, where) as memory:
        for _ in range(count):
            task = memory.tasks.claim_next(actor=name, session_id=name)
            assert task is not None
            pipe.send(task.id)
        pipe.recv()
