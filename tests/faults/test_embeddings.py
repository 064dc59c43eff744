"""Vectors under fire: many processes, writers and erasers among them, and ``kill -9`` at any
write.
"""

from __future__ import annotations

import itertools
import random
import shutil
import time
from itertools import takewhile
from pathlib import Path

import pytest

import smara
from smara.testing import FakeClock, HashEmbedder
from tests.faults import embedding_workers, recount
from tests.faults.conftest import Start
from tests.faults.sizes import SEED, count
from tests.faults.test_kills import Assassin
from tests.faults.workers import READY, text_of

KINDS = [pytest.param("sqlite"), pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, store: str) -> str:
    """The address of an empty store of each kind, brought up to date."""
    address = store if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    smara.open(address).close()
    return str(address)


def fill(where: str, how_many: int, **given: object) -> list[str]:
    """Put messages into a store; their texts."""
    texts = [text_of(f"m{number}") for number in range(how_many)]
    with smara.open(where, **given) as memory:
        for start in range(0, how_many, 100):
            batch = [{"role": "user", "content": text} for text in texts[start : start + 100]]
            memory.messages.add_many(thread_id="t", messages=batch)
    return texts


def later() -> FakeClock:
    """A clock by which every lease of a killed process has expired."""
    return FakeClock(time.time_ns() // 1_000_000 + 600_000)


def completed(where: str) -> None:
    """Make what is missing, and look at everything."""
    with smara.open(where, clock=later(), embedding_model=HashEmbedder()) as memory:
        assert memory.embeddings.embed_pending().is_done, f"seed {SEED}"
        assert memory.embeddings.problems() == [], f"seed {SEED}"
        [stand] = memory.embeddings.status().spaces
        assert (stand.waiting, stand.space.state) == (0, "ready"), f"seed {SEED}"
        with memory._rooms.database.read() as session:
            for kind, table in (("message", "messages"), ("task", "tasks")):
                [records] = session.one(f"SELECT count(*) FROM {table}")
                assert stand.vectors[kind] == records, f"{kind}, seed {SEED}"


@pytest.mark.parametrize("is_walked", [False, True])
def test_many_processes_embed_each_text_exactly_once(
    where: str, start: Start, is_walked: bool
) -> None:
    texts = fill(where, count(120, 3_000))
    if is_walked:
        with smara.open(where) as memory, memory._rooms.database.write() as session:
            session.run("DELETE FROM embedding_queue")
    runners = [
        start(embedding_workers.embed_until_none_wait, where, f"w{each}", len(texts))
        for each in range(4)
    ]
    assert [each.pipe.recv() for each in runners] == [READY] * 4
    for each in runners:
        each.pipe.send("go")
    told = [each.rest() for each in runners]
    asked = [text for [(what, mine)] in told for text in mine if what == "done"]
    assert sorted(asked) == sorted(texts)
    completed(where)


def test_writers_and_erasers_go_on_while_vectors_are_made_and_nothing_is_left_over(
    where: str, start: Start
) -> None:
    embedding = [start(embedding_workers.embed_until_told, where, f"e{each}") for each in range(2)]
    writing = [
        start(embedding_workers.write_some, where, f"w{each}", count(25, 400))
        for each in range(count(2, 4))
    ]
    for each in (*embedding, *writing):
        assert each.pipe.recv() == READY
        each.pipe.send("go")
    told = [each.rest()[0] for each in writing]
    assert [what for what, _ in told] == ["done"] * len(writing), told
    for each in embedding:
        each.pipe.send("stop")
    assert [each.rest()[-1][0] for each in embedding] == ["done"] * len(embedding)
    completed(where)


def test_killed_embedding_keeps_what_it_acknowledged_and_the_rest_is_made_by_the_next(
    tmp_path: Path, start: Start, rng: random.Random
) -> None:
    template = str(tmp_path / "template.db")
    texts = fill(template, 60)
    assassin = Assassin(rng, start, embedding_workers.embed)
    assassin.measure(shutil.copy(template, tmp_path / "measured.db"))
    for trial in takewhile(lambda _: assassin.kills < count(6, 150), itertools.count()):
        path = str(shutil.copy(template, tmp_path / f"{trial}.db"))
        acknowledged = sum(assassin.trial(path))
        with smara.open(path) as memory:
            assert memory.embeddings.problems() == [], f"trial {trial}, seed {SEED}"
            assert recount.problems(memory) == [], f"trial {trial}, seed {SEED}"
            stand = memory.embeddings.status().spaces
            assert sum(stand[0].vectors.values() if stand else ()) >= acknowledged, (
                f"trial {trial}, seed {SEED}"
            )
        completed(path)
        with smara.open(path) as memory:
            assert memory.threads.totals()["messages"] == len(texts), f"trial {trial}, seed {SEED}"
        Path(path).unlink()


def test_a_switch_of_models_that_is_killed_again_and_again_comes_to_an_end(
    tmp_path: Path, start: Start, rng: random.Random
) -> None:
    path = str(tmp_path / "store.db")
    fill(path, count(80, 400))
    with smara.open(path, embedding_model=HashEmbedder(32, "old"), embedder="onnx:/old") as memory:
        assert memory.embeddings.embed_pending().is_done
    assassin = Assassin(rng, start, embedding_workers.embed)
    assassin.measure(shutil.copy(path, tmp_path / "measured.db"))
    for _ in takewhile(lambda _: assassin.kills < count(3, 40), itertools.count()):
        assassin.trial(path)
        with (
            smara.open(path, clock=later(), embedding_model=HashEmbedder()) as memory,
            memory._rooms.database.write() as held,
        ):
            held.run("UPDATE leases SET expires_at = 0")
    with smara.open(path, clock=later(), embedding_model=HashEmbedder()) as memory:
        assert memory.embeddings.embed_pending().is_done
        assert memory.embeddings.problems() == []
        assert {each.space.model_id: each.total for each in memory.embeddings.status().spaces} == {
            "hash-64": count(80, 400),
            "old": count(80, 400),
        }


def test_a_copy_of_a_store_and_a_restored_one_go_on_where_they_were(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    fill(path, 40)
    with smara.open(path, embedding_model=HashEmbedder()) as memory:
        memory.embeddings.embed_pending(limit=15)
    copy = str(shutil.copy(path, tmp_path / "copy.db"))
    with smara.open(path, embedding_model=HashEmbedder()) as memory:
        memory.messages.add(thread_id="t", role="user", content="written after the copy")
        memory.embeddings.embed_pending()
    shutil.copy(copy, path)
    for each in (copy, path):
        completed(each)
