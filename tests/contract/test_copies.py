"""Copies of stores hold the same rows and give the same answers, from any database to any."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.privacy import copy as copying
from smara.privacy.tables import RECORDS
from smara.testing import FakeClock, HashEmbedder
from tests import stores
from tests.contract.embedding import OTHER
from tests.contract.filled_tables import fill
from tests.contract.test_decisions import PARKING, TASK, say
from tests.faults import recount
from tests.unit.codegraph.shop import write_shop

POSTGRES = pytest.mark.postgres
EACH_WAY = pytest.mark.parametrize(
    "way",
    [
        pytest.param(("sqlite", "postgres"), marks=POSTGRES),
        pytest.param(("postgres", "sqlite"), marks=POSTGRES),
        pytest.param(("sqlite", "sqlite")),
    ],
    ids="-".join,
    indirect=True,
)
QUESTIONS = ("walrus", "where do tokens live", "port 8080", "parking fee cap", "mend the door")


@pytest.fixture
def way(request, tmp_path) -> Iterator[tuple[str, str]]:
    """The addresses of two stores: one with its tables, and one that is not there yet."""
    first, second = request.param
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    with stores.empty_store(first, tmp_path / "from") as source:
        if second == "sqlite":
            yield source, str(tmp_path / "to" / "new.db")
        else:
            with stores.empty_store(second) as target:
                yield source, target


def open_at(address: str, clock: FakeClock, project: str = "shop", **settings: Any) -> smara.Memory:
    given = {"embedder": "off", "durability": "normal", "token_model": "estimate", **settings}
    return smara.open(address, project=project, clock=clock, **given)


def work(memory: smara.Memory) -> None:
    """A little of everything that people and agents do."""
    memory.messages.add(thread_id="t", role="user", content="The walrus sleeps in Redis.")
    memory.messages.add(thread_id="t", role="assistant", content="nul \x00 and \ud800 are kept")
    message = memory.messages.add(thread_id="u", role="user", content="Never use port 8080.")
    first = memory.tasks.add("Mend the door", labels=["house"])
    memory.tasks.add("Paint it", depends_on=[first.id])
    memory.tasks.close(first.id, "It is mended")
    memory.tasks.undo(first.id)
    memory.tasks.update(first.id, priority=1)
    old = memory.memories.remember("Tokens live for a day", type="gotcha")
    memory.memories.add(
        "Tokens live for two days",
        type="gotcha",
        source="user_taught",
        by="person",
        supersedes=[old.memory.id],
        evidence=[f"message:{message.id}"],
    )
    memory.observations.observe("t")
    memory.working.put("# Page\n- walrus", scope="thread", thread_id="t")
    say(memory, "garage", PARKING)
    memory.decisions.update()


def answers(memory: smara.Memory, root: Path) -> dict[str, Any]:
    """What the memory answers, by words, meaning and graph."""
    found: dict[str, Any] = {
        query: [
            replace(hit, metadata={}) for hit in memory.search(query, min_score=0, deep=True).hits
        ]
        for query in QUESTIONS
    }
    ask = memory.code.asking(root)
    return found | {
        "code": memory.search("discount price", sources=["code"]).hits,
        "impact": [each.node.label for each in ask.impact("Store.get").reached],
        "ready": memory.tasks.ready(),
        "totals": memory.tasks.totals(),
        "history": [memory.tasks.history(each.id) for each in memory.tasks.list()],
        "memories": memory.memories.list(),
        "why": [memory.memories.why(each.id) for each in memory.memories.list()],
        "decisions": memory.decisions.search(TASK),
        "observations": memory.search_observations("walrus").hits,
        "threads": memory.threads.list(),
        "words": memory.complete("wal"),
        "page": memory.working.get(scope="thread", thread_id="t"),
    }


@EACH_WAY
def test_a_copy_gives_the_same_answers(way, clock, tmp_path):
    source, target = way
    root = write_shop((tmp_path / "shop").resolve())
    embedder = HashEmbedder()
    given = {**OTHER, "embedding_model": embedder, "embed_in_background": False}
    with open_at(source, clock, **given) as memory:
        work(memory)
        memory.code.index(root)
        memory.embeddings.embed_pending()
        before = answers(memory, root)
        assert any(hit.stages.meaning for hit in before["walrus"])
    report = smara.copy_store(source, target)
    embedder.asked.clear()
    with open_at(target, clock, **given) as memory:
        assert answers(memory, root) == before
        memory.embeddings.embed_pending()
        assert not [text for text, kind in embedder.asked if kind == "document"], (
            "nothing is embedded again"
        )
        assert recount.problems(memory) == []
        task = memory.tasks.ready().tasks[0]
        assert (task.priority, memory.tasks.undo(task.id).priority) == (1, 2)
        assert memory.messages.add(thread_id="t", role="user", content="later").seq == 3
    assert report.tables["messages"].rows == len(PARKING) + 3
    assert not report.is_resumed


@EACH_WAY
def test_every_table_and_column_is_copied(way, clock, tmp_path):
    source, target = way
    with open_at(source, clock) as memory:
        fill(memory)
        fill(memory.in_project("bank"), seed=8)
    report = smara.copy_store(source, target)
    assert {table.name for table in RECORDS} <= report.tables.keys()
    third = str(tmp_path / "third.db")
    assert smara.copy_store(target, third).tables == report.tables, (
        "the checksums do not depend on it"
    )


@EACH_WAY
def test_only_the_projects_that_are_named_are_copied(way, clock):
    source, target = way
    with open_at(source, clock) as memory:
        memory.messages.add(thread_id="t", role="user", content="of shop")
        memory.in_project("bank").messages.add(thread_id="t", role="user", content="of bank")
    report = smara.copy_store(source, target, projects=["bank"])
    assert report.projects == {"bank": "bank"}
    with open_at(target, clock, "bank") as memory:
        assert [hit.content for hit in memory.search("of").hits] == ["of bank"]
        assert [each.id for each in memory.projects.list()] == ["bank"]
        assert recount.problems(memory) == []
    with pytest.raises(NotFoundError):
        smara.copy_store(source, target, projects=["nowhere"])


class Killed(BaseException):
    """As a process that ends in the middle."""


@EACH_WAY
@pytest.mark.parametrize("batches", [1, 20, 45])
def test_an_interrupted_copy_goes_on_and_sees_what_changed_meanwhile(
    way, clock, monkeypatch, batches
):
    source, target = way
    monkeypatch.setattr(copying, "_MOST_ROWS", 2)
    with open_at(source, clock) as memory:
        work(memory)
        left = batches

        def kill(*_: object) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(copying._WholeCopy, "_note", _before(copying._WholeCopy._note, kill))
            with pytest.raises(Killed):
                smara.copy_store(source, target)
        with pytest.raises(ConflictError, match="not finished"):
            open_at(target, clock)
        memory.messages.add(thread_id="t", role="user", content="Said between the attempts.")
        task = memory.tasks.ready().tasks[0]
        memory.tasks.update(task.id, title="Mend the gate")
        memory.privacy.erase(threads=["u"])
        report = smara.copy_store(source, target)
        assert report.is_resumed
        with open_at(target, clock) as copy:
            assert copy.tasks.get(task.id).title == "Mend the gate"
            assert copy.threads.list() == memory.threads.list()
            assert copy.search("attempts").hits[0].content == "Said between the attempts."
            assert recount.problems(copy) == []


def _before(function, act):
    def both(*given):
        act()
        return function(*given)

    return both


@EACH_WAY
def test_a_target_with_another_unfinished_copy_is_refused(way, clock, monkeypatch, tmp_path):
    source, target = way
    with open_at(source, clock) as memory:
        work(memory)
    with monkeypatch.context() as patch:
        patch.setattr(copying._WholeCopy, "make_equal", lambda _: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            smara.copy_store(source, target)
    other = str(tmp_path / "other.db")
    with open_at(other, clock) as memory:
        work(memory)
    with pytest.raises(ConflictError, match="unfinished copy"):
        smara.copy_store(other, target)
    assert smara.copy_store(source, target).is_resumed


def test_a_new_file_is_private_and_the_source_is_as_it_was(tmp_path, clock):
    source, target = str(tmp_path / "a.db"), str(tmp_path / "new" / "b.db")
    with open_at(source, clock) as memory:
        work(memory)
    before = Path(source).read_bytes()
    smara.copy_store(source, target)
    assert Path(source).read_bytes() == before
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(Path(target).parent).st_mode) == 0o700


def test_a_store_is_not_copied_onto_itself_nor_from_nowhere(tmp_path, clock):
    source = str(tmp_path / "a.db")
    with open_at(source, clock) as memory:
        work(memory)
    with pytest.raises(InvalidInputError, match="same store"):
        smara.copy_store(source, tmp_path / ".." / tmp_path.name / "a.db")
    with pytest.raises(NotFoundError):
        smara.copy_store(tmp_path / "nothing.db", tmp_path / "b.db")
    assert not (tmp_path / "nothing.db").exists()


def test_tombstones_and_the_record_of_an_erase_come_along(tmp_path, clock):
    source, target = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    with open_at(source, clock) as memory:
        work(memory)
        memory.privacy.erase(threads=["u"])
    report = smara.copy_store(source, target)
    assert report.tables["erasures"].rows == 1
    with open_at(target, clock) as memory, pytest.raises(InvalidInputError, match="erased"):
        memory.messages.add(thread_id="u", role="user", content="again", created_at=clock.now_ms())
