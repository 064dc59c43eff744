"""A copy, a merge or an import that is killed at any statement ends as if it had not been."""

from __future__ import annotations

import itertools
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

import smara
from smara.testing import HashEmbedder
from tests import stores
from tests.contract.embedding import OTHER
from tests.faults import copy_workers, recount, workers
from tests.faults.conftest import Start
from tests.faults.sizes import count

POSTGRES = pytest.mark.postgres
WAYS = [
    pytest.param(("sqlite", "postgres"), marks=POSTGRES),
    pytest.param(("postgres", "sqlite"), marks=POSTGRES),
    pytest.param(("sqlite", "sqlite")),
]


@dataclass
class Way:
    """A store with its tables, and new places to copy it to."""

    source: str
    new_target: Callable[[], str]


@pytest.fixture(params=WAYS, ids="-".join)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    first, second = request.param
    numbers = itertools.count()
    with ExitStack() as stack:

        def new_target() -> str:
            if second == "sqlite":
                return str(tmp_path / f"new{next(numbers)}.db")
            return stack.enter_context(stores.empty_store(second))

        yield Way(stack.enter_context(stores.empty_store(first, tmp_path)), new_target)


def open_at(address: str) -> smara.Memory:
    return smara.open(
        address,
        project="shop",
        embedding_model=HashEmbedder(),
        embed_in_background=False,
        durability="normal",
        token_model="estimate",
        **OTHER,
    )


def exported(memory: smara.Memory, path: Path) -> dict[str, str]:
    """The checksums of all files of an export, which shares no code with a copy's."""
    memory.privacy.export(path)
    manifest = json.loads(zipfile.ZipFile(path).read("manifest.json"))
    path.unlink()
    return {each["path"]: each["sha256"] for each in manifest["files"]}


def vectors(memory: smara.Memory) -> list[tuple[int, bytes]]:
    with memory.internals.database.read() as session:
        rows = session.all("SELECT no, vector FROM vectors ORDER BY no")
    return [(no, bytes(vector)) for no, vector in rows]


def fill(address: str, name: str, messages: int) -> None:
    """Messages in five threads, a few tasks with events and labels, memories, vectors."""
    with open_at(address) as memory:
        for number in range(messages):
            text = workers.text_of(f"{name}{number}")
            memory.messages.add(thread_id=f"t{number % 5}", role="user", content=text)
        for number in range(max(5, messages // 15)):
            task = memory.tasks.add(f"Task {name}{number}", labels=["some"])
            memory.memories.remember(f"Fact {name}{number} is so", type="gotcha", files=["a.py"])
            memory.tasks.update(task.id, priority=1)
        memory.embeddings.embed_pending()


def test_a_copy_killed_at_any_statement_ends_equal(
    way: Way, start: Start, rng: random.Random, tmp_path: Path
) -> None:
    """1. Measure. 2. Kill it at random statements; the source goes on. 3. Finish and compare."""
    fill(way.source, "a", count(30, 600))
    ((total, is_resumed, _),) = start(copy_workers.copy, way.source, way.new_target(), 0).rest()
    assert not is_resumed

    kills, target = 0, way.new_target()
    while kills < count(4, 50):
        if rng.random() < 0.5:
            with open_at(way.source) as memory:
                memory.messages.add(thread_id="t0", role="user", content=f"meanwhile {kills}")
        if start(copy_workers.copy, way.source, target, rng.randint(1, total)).rest():
            compare(way.source, target, tmp_path)
            target = way.new_target()
        else:
            kills += 1
    assert len(start(copy_workers.copy, way.source, target, 0).rest()) == 1
    compare(way.source, target, tmp_path)


def compare(source: str, target: str, tmp_path: Path, *, has_same_numbers: bool = True) -> None:
    with open_at(source) as before, open_at(target) as after:
        assert exported(after, tmp_path / "b.zip") == exported(before, tmp_path / "a.zip")
        # A server counts on, although what was killed is undone.
        of_each = [
            [pair if has_same_numbers else pair[1:] for pair in vectors(memory)]
            for memory in (before, after)
        ]
        assert of_each[0] == of_each[1]
        assert recount.problems(after) == []
        hits = [[hit.id for hit in each.search(workers.MARK, 50).hits] for each in (before, after)]
        assert hits[0] == hits[1]
        assert after.tasks.totals() == before.tasks.totals()
        assert after.tasks.problems() == after.memories.problems() == []


def diverged(way: Way, tmp_path: Path) -> tuple[str, str]:
    """Two equal stores that share some records with the source and have others of their own."""
    fill(way.source, "a", count(15, 150))
    first, second = way.new_target(), way.new_target()
    smara.copy_store(way.source, first)
    with open_at(way.source) as memory:
        memory.tasks.update(memory.tasks.list()[0].id, labels=["new"], priority=2)
    fill(way.source, "b", count(15, 150))
    fill(first, "c", count(10, 100))
    smara.copy_store(first, second)
    compare(first, second, tmp_path)
    return first, second


def killed_until_done(start: Start, act: Callable[..., None], given: tuple[str, str], kills: int,
                      steps: Iterator[int]) -> None:  # fmt: skip
    """Kill it some times, wherever it then begins again; at last let it come to its end."""
    for _ in range(kills):
        start(act, *given, next(steps)).rest()
    assert len(start(act, *given, 0).rest()) == 1


def test_a_merge_killed_at_any_statement_ends_as_one_that_was_not(
    way: Way, start: Start, rng: random.Random, tmp_path: Path
) -> None:
    whole, killed = diverged(way, tmp_path)
    (total,) = start(copy_workers.merge, way.source, whole, 0).rest()
    steps = iter(lambda: rng.randint(1, total), 0)

    killed_until_done(start, copy_workers.merge, (way.source, killed), count(4, 50), steps)

    compare(whole, killed, tmp_path, has_same_numbers=False)


def test_an_import_killed_at_any_statement_ends_as_one_that_was_not(
    way: Way, start: Start, rng: random.Random, tmp_path: Path
) -> None:
    whole, killed = diverged(way, tmp_path)
    archive = tmp_path / "all.zip"
    with open_at(way.source) as memory:
        memory.privacy.export(archive)
    (total,) = start(copy_workers.load, str(archive), whole, 0).rest()
    steps = iter(lambda: rng.randint(1, total), 0)

    killed_until_done(start, copy_workers.load, (str(archive), killed), count(4, 50), steps)

    for each in (whole, killed):
        with open_at(each) as memory:
            memory.embeddings.embed_pending()
    compare(whole, killed, tmp_path, has_same_numbers=False)
