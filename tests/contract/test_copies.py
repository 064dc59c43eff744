"""Copies of stores hold the same rows and give the same answers, from any database to any."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.privacy import copy as copying
from smara.privacy import merge as merging
from smara.privacy.tables import RECORDS
from smara.requests.models import Principal
from smara.testing import FakeClock, HashEmbedder
from tests import stores
from tests.contract import test_archives
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
    """A little of everything that people and agents do, and settle."""
    test_archives.work(memory)
    say(memory, "garage", PARKING)
    memory.decisions.update()


def answers(memory: smara.Memory) -> dict[str, Any]:
    """What the memory answers, by words and by meaning."""
    found: dict[str, Any] = {
        query: [
            replace(hit, metadata={}) for hit in memory.search(query, min_score=0, deep=True).hits
        ]
        for query in QUESTIONS
    }
    return found | {
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


def graph_answers(memory: smara.Memory, root: Path) -> tuple[Any, ...]:
    """What the memory answers about the code."""
    reached = memory.code.asking(root).impact("Store.get").reached
    hits = memory.search("discount price", sources=["code"]).hits
    return hits, [each.node.label for each in reached]


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
        before, of_code = answers(memory), graph_answers(memory, root)
        assert any(hit.stages.meaning for hit in before["walrus"])
    report = smara.copy_store(source, target)
    embedder.asked.clear()
    with open_at(target, clock, **given) as memory:
        assert answers(memory) == before
        assert graph_answers(memory, root) == of_code
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


def both_open(way, clock, **settings):
    """The two stores, each with its own machine's ids, opened on the same project."""
    source, target = way
    return open_at(source, clock, **settings), open_at(target, clock, **settings)


def texts(memory: smara.Memory, thread_id: str = "t") -> list[str]:
    return [each.raw_content for each in memory.messages.list(thread_id=thread_id)]


def test_code_that_only_the_source_has_indexed_is_indexed_after_a_merge(tmp_path, clock):
    """One folder is still there, of the other one the receipt tells."""
    way = str(tmp_path / "mine.db"), str(tmp_path / "other.db")
    here, gone = (write_shop((tmp_path / name).resolve()) for name in ("here", "gone"))
    mine, other = both_open(way, clock)
    with mine, other:
        for root in (here, gone):
            mine.code.index(root)
        before = graph_answers(mine, here)[1]
        shutil.rmtree(gone)
        other.messages.add(thread_id="t", role="user", content="Something of its own")
        report = smara.copy_store(*way)
        assert (report.code_indexed, report.code_left) == ((str(here),), (str(gone),))
        assert f"Indexed the code of {here}." in report.lines(lambda number, *noun: str(number))
        assert smara.copy_store(*way).code_indexed == ()
    with open_at(way[1], clock) as memory:
        assert graph_answers(memory, here)[1] == before


def unchanged(report) -> bool:
    """Whether a merge found nothing to do."""
    return not any(each.added or each.updated for each in report.merged.values())


@EACH_WAY
def test_two_stores_of_one_project_are_merged(way, clock):
    """1. Both machines work. 2. Merge. 3. All is there once, found and counted. 4. No-op."""
    mine, other = both_open(way, clock)
    with mine, other:
        for memory, name in ((mine, "mine"), (other, "theirs")):
            memory.messages.add(
                thread_id="shared", role="user", content="Imported twice", client_id="c1"
            )
            memory.messages.add(thread_id=name, role="user", content=f"Only {name} walrus")
            memory.tasks.add(f"Task of {name}", labels=[name])
            memory.memories.remember("Tokens live for a day", type="gotcha")
            memory.memories.remember(f"A fact of {name}", type="gotcha")
            memory.working.put(f"# Page of {name}", scope="thread", thread_id=name)
        report = smara.copy_store(*way)
        assert report.merged["messages"].added == 1
        assert report.merged["messages"].same == 1
        assert report.merged["memories"].added == 1
        assert not report.conflicts
    with open_at(way[1], clock) as memory:
        assert texts(memory, "shared") == ["Imported twice"]
        assert {hit.content for hit in memory.search("walrus").hits} == {
            "Only mine walrus", "Only theirs walrus"
        }  # fmt: skip
        assert {each.title for each in memory.tasks.ready().tasks} == {
            "Task of mine", "Task of theirs"
        }  # fmt: skip
        assert memory.tasks.totals().open == 2
        found = [each.content for each in memory.memories.list()]
        assert sorted(found) == ["A fact of mine", "A fact of theirs", "Tokens live for a day"]
        assert memory.search_memories("fact of mine").hits[0].memory.content == "A fact of mine"
        assert memory.memories.problems() == []
        assert memory.working.get(scope="thread", thread_id="mine").content == "# Page of mine"
        assert recount.problems(memory) == []
    assert unchanged(smara.copy_store(*way))


@EACH_WAY
def test_the_later_change_is_taken_and_its_journal_kept(way, clock):
    source, target = way
    with open_at(source, clock) as memory:
        first = memory.tasks.add("First", labels=["old"])
        second = memory.tasks.add("Second")
    smara.copy_store(source, target)
    clock.advance(60)
    with open_at(target, clock) as memory:
        memory.tasks.update(first.id, title="First, by the target")
    clock.advance(60)
    with open_at(source, clock) as memory:
        memory.tasks.update(first.id, title="First, by the source", labels=["new"])
        memory.tasks.update(second.id, title="Second, by the source")
    clock.advance(60)
    with open_at(target, clock) as memory:
        memory.tasks.update(second.id, title="Second, by the target")
    report = smara.copy_store(source, target)
    assert (report.merged["tasks"].updated, report.merged["tasks"].older) == (1, 1)
    with open_at(target, clock) as memory:
        assert memory.tasks.get(first.id).title == "First, by the source"
        assert memory.tasks.get(first.id).labels == ("new",)
        assert memory.tasks.get(second.id).title == "Second, by the target"
        titles = [
            event.after.get("title") for event in memory.tasks.history(second.id)
            if event.kind == "updated"
        ]  # fmt: skip
        assert titles == ["Second, by the target", "Second, by the source"], "newest first"
        assert memory.search_tasks("by the source").hits[0].task.title == "First, by the source"
    assert unchanged(smara.copy_store(source, target))


@EACH_WAY
def test_a_thread_that_went_on_in_both_keeps_all_messages(way, clock):
    source, target = way
    with open_at(source, clock) as memory:
        memory.messages.add(thread_id="t", role="user", content="Begun together")
    smara.copy_store(source, target)
    for address, text in ((source, "Said here"), (target, "Said there")):
        clock.advance(1)
        with open_at(address, clock) as memory:
            memory.messages.add(thread_id="t", role="user", content=text)
    smara.copy_store(source, target)
    with open_at(target, clock) as memory:
        assert texts(memory) == ["Begun together", "Said there", "Said here"]
        assert recount.problems(memory) == []
    assert unchanged(smara.copy_store(source, target))


@EACH_WAY
def test_a_target_with_other_words_for_a_message_is_refused(way, clock):
    source, target = way
    with open_at(source, clock) as memory:
        memory.messages.add(thread_id="t", role="user", content="As it was said")
    smara.copy_store(source, target)
    with open_at(target, clock) as memory, memory.internals.database.write() as session:
        session.run("UPDATE messages SET raw_content = 'As it was not said'")
    with pytest.raises(ConflictError, match="other words"):
        smara.copy_store(source, target)
    with open_at(target, clock) as memory:
        assert texts(memory) == ["As it was not said"], "nothing was changed"


@EACH_WAY
def test_what_was_erased_in_the_target_does_not_come_back(way, clock):
    source, target = way
    with open_at(source, clock) as memory:
        work(memory)
        kept = memory.messages.add(thread_id="t", role="user", content="To be erased in t")
    smara.copy_store(source, target)
    with open_at(target, clock) as memory:
        memory.privacy.erase(threads=["u"], messages=[kept.id])
    report = smara.copy_store(source, target)
    assert report.merged["messages"].erased
    with open_at(target, clock) as memory:
        assert memory.threads.find("u") is None
        assert not memory.search("8080").hits
        assert "To be erased in t" not in texts(memory)
        assert recount.problems(memory) == []


@EACH_WAY
def test_what_was_erased_in_the_source_is_named(way, clock):
    source, target = way
    with open_at(source, clock) as memory:
        work(memory)
    smara.copy_store(source, target)
    with open_at(source, clock) as memory:
        memory.privacy.erase(threads=["u"])
    report = smara.copy_store(source, target)
    assert "thread u" in report.erased_in_source
    with open_at(target, clock) as memory:
        memory.privacy.erase(threads=["u"])
    assert not smara.copy_store(source, target).erased_in_source


@EACH_WAY
def test_a_project_is_added_to_a_store_that_has_others(way, clock):
    source, target = way
    embedder = HashEmbedder()
    given = {**OTHER, "embedding_model": embedder, "embed_in_background": False}
    with open_at(source, clock, **given) as memory:
        work(memory)
        memory.embeddings.embed_pending()
        before = answers(memory)
        history = memory.observations.list(thread_id="t")
    with open_at(target, clock, "bank", **given) as memory:
        memory.messages.add(thread_id="t", role="user", content="of the bank, walrus")
    report = smara.copy_store(source, target)
    assert report.merged["messages"].added == len(PARKING) + 3
    embedder.asked.clear()
    with open_at(target, clock, **given) as memory:
        assert answers(memory) == before
        memory.embeddings.embed_pending()
        assert not [text for text, kind in embedder.asked if kind == "document"]
        assert memory.observations.list(thread_id="t") == history
        assert recount.problems(memory) == []
    assert unchanged(smara.copy_store(source, target))


def test_stores_of_one_repository_are_one_project(tmp_path, monkeypatch):
    """Two machines name the project of a repository each in their own way."""
    root = write_shop((tmp_path / "shop").resolve())
    git = ["git", "-C", str(root), "remote", "add", "origin", "https://example.org/shop.git"]
    subprocess.run(git, check=True)
    monkeypatch.chdir(root)
    names = []
    for name in ("a", "b"):
        with smara.open(tmp_path / f"{name}.db", project="auto", embedder="off") as memory:
            memory.messages.add(thread_id=name, role="user", content=f"of {name}")
            names.append(memory.project)
    assert names[0] != names[1]
    report = smara.copy_store(tmp_path / "a.db", tmp_path / "b.db")
    assert report.projects == {names[0]: names[1]}
    with smara.open(tmp_path / "b.db", project="auto", embedder="off") as memory:
        assert len(memory.threads.list()) == 2


def test_two_records_with_one_short_id_are_both_there(tmp_path, clock, monkeypatch):
    from smara.database.project_store import NamedStore

    monkeypatch.setattr(NamedStore, "new_short_id", lambda *_: "t-same")
    for name in ("a", "b"):
        with open_at(str(tmp_path / f"{name}.db"), clock) as memory:
            memory.tasks.add(f"Task of {name}")
    monkeypatch.undo()
    smara.copy_store(tmp_path / "a.db", tmp_path / "b.db")
    with open_at(str(tmp_path / "b.db"), clock) as memory:
        assert {each.title for each in memory.tasks.list()} == {"Task of a", "Task of b"}
        assert memory.tasks.get("t-same").title == "Task of b"
    assert unchanged(smara.copy_store(tmp_path / "a.db", tmp_path / "b.db"))


@EACH_WAY
def test_equal_words_said_twice_in_one_thread_stay_two_messages(way, clock):
    mine, other = both_open(way, clock)
    with mine, other:
        for memory in (mine, other):
            memory.messages.add(thread_id="t", role="user", content="yes", client_id="first")
        for _ in range(2):
            mine.messages.add(thread_id="t", role="user", content="again")
    smara.copy_store(*way)
    with open_at(way[1], clock) as memory:
        assert texts(memory) == ["yes", "again", "again"]
    assert unchanged(smara.copy_store(*way))


@EACH_WAY
def test_a_merge_that_is_cut_short_is_called_again(way, clock, monkeypatch):
    """The task's new labels are missing when it is killed; they are there in the end."""
    source, target = way
    with open_at(source, clock) as memory:
        work(memory)
        task = memory.tasks.add("Labeled", labels=["old"])
    smara.copy_store(source, target)
    clock.advance(60)
    with open_at(source, clock) as memory:
        memory.tasks.update(task.id, labels=["new"])
        memory.messages.add(thread_id="t", role="user", content="Said later")
    with monkeypatch.context() as patch:
        patch.setattr(merging._MergeBatch, "_insert", _killed_at("task_labels"))
        with pytest.raises(Killed):
            smara.copy_store(source, target)
    smara.copy_store(source, target)
    with open_at(target, clock) as memory:
        assert memory.tasks.get(task.id).labels == ("new",)
        assert texts(memory)[-1] == "Said later"
        assert recount.problems(memory) == []
    assert unchanged(smara.copy_store(source, target))


def _killed_at(name: str):
    insert = merging._MergeBatch._insert

    def both(self, table, rows):
        if rows and table.name == name:
            raise Killed
        insert(self, table, rows)

    return both


@pytest.mark.postgres
@pytest.mark.parametrize("way", [("sqlite", "postgres")], ids="-".join, indirect=True)
def test_a_server_knows_how_often_words_are_in_a_copy(way, clock):
    """Without statistics it reads every row for a rare word, until it makes some by itself."""
    source, target = way
    with open_at(source, clock) as memory:
        work(memory)
    smara.copy_store(source, target)
    with open_at(target, clock) as memory, memory.internals.database.read() as session:
        for table in ("message_index", "record_index"):
            (rows,) = session.one(
                "SELECT reltuples FROM pg_class WHERE oid = CAST(? AS regclass)", (table,)
            )
            assert rows > 0


@EACH_WAY
def test_a_copy_takes_no_keys_along(way: tuple[str, str], clock: FakeClock) -> None:
    """Neither those of other projects nor a code that opens the panel."""
    source, target = way
    with open_at(source, clock) as memory:
        memory.messages.add(thread_id="t", role="user", content="The walrus sleeps.")
        access = memory.internals.requests.access
        access.add(Principal("all"), 1)
        access.add(Principal("shop", projects=("shop",)), 1)
        access.add_code(Principal("root"), 1)
    smara.copy_store(source, target, projects=["shop"])
    with open_at(target, clock) as memory, memory.internals.database.read() as session:
        assert session.all("SELECT hash FROM access", ()) == []
        assert session.all("SELECT hash FROM access_projects", ()) == []
