"""A copy that is killed at any statement goes on, and ends equal to its source."""

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
        return [(no, bytes(v)) for no, v in session.all("SELECT * FROM vectors ORDER BY no")]


def test_a_copy_killed_at_any_statement_ends_equal(
    way: Way, start: Start, rng: random.Random, tmp_path: Path
) -> None:
    """1. Measure. 2. Kill it at random statements; the source goes on. 3. Finish and compare."""
    with open_at(way.source) as memory:
        for number in range(count(30, 3_000)):
            text = workers.text_of(f"m{number}")
            memory.messages.add(thread_id=f"t{number % 5}", role="user", content=text)
        for number in range(count(5, 200)):
            task = memory.tasks.add(f"Task {number}", labels=["some"])
            memory.memories.remember(f"Fact {number} is so", type="gotcha", files=[f"{number}.py"])
            memory.tasks.update(task.id, priority=1)
        memory.embeddings.embed_pending()
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


def compare(source: str, target: str, tmp_path: Path) -> None:
    with open_at(source) as before, open_at(target) as after:
        assert exported(after, tmp_path / "b.zip") == exported(before, tmp_path / "a.zip")
        assert vectors(after) == vectors(before)
        assert recount.problems(after) == []
        hits = [[hit.id for hit in each.search(workers.MARK, 50).hits] for each in (before, after)]
        assert hits[0] == hits[1]
        assert after.tasks.totals() == before.tasks.totals()
