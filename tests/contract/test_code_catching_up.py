"""Whoever asks about code is answered of the code as it is, or told that the index is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import smara
from smara.codegraph.index import update
from smara.codegraph.index.update import MOST_FILES, UNSURE
from smara.errors import NotFoundError
from smara.testing import FakeClock
from tests.contract.code_place import git, write
from tests.stores import BOTH, empty_store

FILES = {
    "shop/prices.py": "def price():\n    return 2\n",
    "shop/cli.py": "from shop.prices import price\n",
}


class SlowClock(FakeClock):
    """Every look at it takes a second."""

    def monotonic(self) -> float:
        self.advance(1.0)
        return super().monotonic()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=BOTH)
def memory(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> Iterator[smara.Memory]:
    with (
        empty_store(request.param, tmp_path) as where,
        smara.open(where, durability="normal", embedder="off", clock=clock) as opened,
    ):
        yield opened


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = (tmp_path / "tree").resolve()
    write(root, FILES)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    monkeypatch.chdir(root)
    return root


def callers(memory: smara.Memory, name: str) -> list[str]:
    return [each.node.label for each in memory.code.asking().callers(name).reached]


def test_what_was_saved_since_is_read_before_a_question(memory, root):
    memory.code.index(root)
    write(
        root, {"shop/sale.py": "from shop.prices import price\n\ndef sale():\n    return price()\n"}
    )
    assert memory.code.catch_up() is None
    assert callers(memory, "price") == ["shop/sale.py:sale"]
    write(root, {"shop/sale.py": None})
    assert memory.code.catch_up() is None
    assert callers(memory, "price") == []


def test_a_branch_that_was_switched_to_is_read_before_a_question(memory, root):
    memory.code.index(root)
    git(root, "switch", "-qc", "other")
    write(root, {"shop/prices.py": "def cost():\n    return 2\n"})
    git(root, "commit", "-qam", "two")
    assert memory.code.catch_up() is None
    assert memory.code.asking().find("price") == []
    status = memory.code.status()
    assert (status.branch, status.commit) == ("other", git(root, "rev-parse", "HEAD"))
    git(root, "switch", "-q", "main")
    assert memory.code.catch_up() is None
    assert [node.label for node in memory.code.asking().find("price")] == ["shop/prices.py:price"]


def test_much_that_has_changed_is_told_and_left_to_an_index(memory, root):
    memory.code.index(root)
    write(root, {f"shop/part{number}.py": "" for number in range(MOST_FILES + 1)})
    assert "files have changed since the code was indexed" in memory.code.catch_up()
    assert memory.code.status().files == len(FILES)
    memory.code.index(root)
    assert memory.code.catch_up() is None


def test_of_a_very_large_tree_only_the_commit_is_compared(memory, root, monkeypatch):
    monkeypatch.setattr(update, "MOST_LOOKED_AT", 1)
    memory.code.index(root)
    write(root, {"shop/late.py": "def late(): ...\n"})
    assert memory.code.catch_up() is None
    git(root, "add", "-A")
    git(root, "commit", "-qm", "two")
    assert memory.code.catch_up().startswith("another commit is checked out than was indexed")
    assert memory.code.asking().find("late") == []


@pytest.mark.parametrize("clock", [SlowClock()])
def test_a_tree_is_not_looked_through_again_at_once(memory, root, clock):
    memory.code.index(root)
    assert memory.code.catch_up() is None
    write(root, {"shop/late.py": "def late(): ...\n"})
    memory.code.catch_up()
    assert memory.code.asking().find("late") == []
    clock.advance(1_000)
    memory.code.catch_up()
    assert memory.code.asking().find("late")


def test_a_comparison_that_fails_is_told_and_breaks_no_answer(memory, root):
    memory.code.index(root)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/unborn\n")
    lease = memory.internals.leases.acquire(memory.code.tree(root).lease_name, "elsewhere:1:x", 600)
    assert lease is not None
    assert memory.code.catch_up() == UNSURE
    assert memory.code.asking().find("price")


def test_an_index_of_another_version_is_not_made_again_during_a_question(memory, root):
    memory.code.index(root)
    with memory._rooms.database.write() as session:
        session.run("UPDATE code_trees SET version = 1")
    assert "made by another version" in memory.code.catch_up()
    assert memory.code.asking().find("price")


def test_a_folder_that_is_gone_still_answers_and_says_so(memory, root, monkeypatch, tmp_path):
    memory.code.index(root)
    root.rename(tmp_path / "away")
    monkeypatch.chdir(tmp_path)
    assert "is gone" in memory.code.catch_up()
    assert memory.code.asking().find("price")


def test_another_working_folder_that_answers_is_named(memory, root, monkeypatch, tmp_path):
    memory.code.index(root)
    git(root, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "beside")
    monkeypatch.chdir(tmp_path / "beside")
    assert memory.code.catch_up().startswith(f"this folder is not indexed: answers are of {root}")
    memory.code.index(tmp_path / "beside")
    assert memory.code.catch_up() is None
    monkeypatch.chdir(tmp_path)
    assert memory.code.note is None, "elsewhere there is no folder that was meant instead"


def test_the_index_of_a_folder_that_is_gone_is_asked_last_and_can_be_removed(
    memory, root, monkeypatch, tmp_path
):
    memory.code.index(root)
    git(root, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "beside")
    memory.code.index(tmp_path / "beside")
    git(root, "worktree", "remove", "--force", str(tmp_path / "beside"))
    monkeypatch.chdir(tmp_path)
    assert memory.code.status().root == str(root), "the other was indexed later"
    assert memory.code.forget_gone() == [str(tmp_path.resolve() / "beside")]
    assert [status.root for status in memory.code.trees()] == [str(root)]
    assert memory.code.asking().find("price")
    assert memory.code.forget_gone() == []


def test_a_path_up_from_the_folder_we_are_in_is_understood(memory, root, monkeypatch):
    memory.code.index(root)
    (root / "docs").mkdir()
    monkeypatch.chdir(root / "docs")
    assert [node.label for node in memory.code.asking().find("../shop/prices.py:price")] == [
        "shop/prices.py:price"
    ]
    assert memory.code.asking().find("../../elsewhere.py") == []


def test_everybody_who_asks_during_the_first_index_is_told(memory, root):
    """1. A question that finds nothing. 2. A search. 3. Nothing is called changed that was read
    just now.
    """
    memory.code.index(root)
    with memory._rooms.database.write() as session:
        session.run("UPDATE code_trees SET state = 'building'")
        session.run("UPDATE code_files SET stale_at = 1")
    with pytest.raises(NotFoundError, match="being indexed: it may not have been read yet"):
        memory.code.asking().impact("no_such_name")
    answer = memory.search("price", sources=["code"])
    assert answer.warnings == ("The code is being indexed: answers may be incomplete.",)
    assert answer.hits
    assert not any(hit.metadata["isStale"] or "hedge" in hit.metadata for hit in answer.hits)


def test_a_search_for_code_says_that_none_is_indexed(memory, root):
    assert memory.search("price", sources=["code"]).warnings == (
        "The code is not indexed yet; `smara code index` does it.",
    )
    assert memory.search("price").warnings == ()


def test_a_hit_in_a_file_that_was_saved_since_says_so(memory, root, tmp_path):
    def found() -> list[tuple[str, bool, str | None]]:
        hits = memory.search("price", sources=["code"]).hits
        return [(hit.files[0], hit.metadata["isStale"], hit.metadata.get("hedge")) for hit in hits]

    memory.code.index(root)
    assert {is_stale for _, is_stale, _ in found()} == {False}
    write(root, {"shop/cli.py": "from shop.prices import price as cost\n"})
    assert sorted(found()) == [
        ("shop/cli.py", True, "its file has changed since it was read"),
        ("shop/prices.py", False, None),
    ]
    root.rename(tmp_path / "away")
    assert {is_stale for _, is_stale, _ in found()} == {False}, (
        "where the tree is not, there is nothing to compare"
    )


def test_a_file_is_spoken_of_by_all_that_speaks_of_something_in_it(memory, root):
    memory.code.index(root)
    memory.memories.add(
        "`price` is doubled on purpose",
        type="decision",
        source="user_taught",
        by="person",
        files=["shop/prices.py"],
    )
    for target in ("shop/prices.py", "shop/prices.py:price"):
        nodes = memory.code.asking().resolve(target)
        assert [link.symbol for link in memory.code_knowledge.about(nodes)] == ["price"], target
    assert memory.code_knowledge.about(memory.code.asking().resolve("shop/cli.py")) == []
