"""Values that frameworks keep: whole labels, expiry, revisions, one transaction, and search."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.frameworks.states import RunState
from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE, refused
from tests.stores import empty_store

pytestmark = EACH_DATABASE


@pytest.fixture
def items(memory: Any) -> Any:
    """The values of a framework."""
    return memory.frameworks.items("langgraph")


def test_a_value_comes_back_as_it_was_put_and_is_replaced_as_a_whole(items: Any) -> None:
    value = {"text": "這是\x00é\ud800", "n": [1, 2.5, None, True, {"deep": []}], "": 10**30}
    first = items.put(("users", "ana"), "taste", value)
    second = items.put(("users", "ana"), "taste", {"text": "tea"})

    assert (first.value, first.revision) == (value, 1)
    assert (second.value, second.revision, second.id) == ({"text": "tea"}, 2, first.id)
    assert items.get(("users", "ana"), "taste") == second
    assert items.find(("users",), "taste") is None
    refused(lambda: items.get(("users", "ana"), "no"), NotFoundError)


def test_a_prefix_matches_whole_labels_whatever_stands_in_them(items: Any) -> None:
    labels = [("foo",), ("foo", "bar"), ("foobar",), ("Foo",), ("foo\x1f",), ("foo\x1fbar",),
              ("foo\n",), ("a%",), ("a_",), ("fo",), ("foo", ""), ("\U0010ffff",)]  # fmt: skip
    for each in labels:
        items.put(each, "k", 1)

    assert items.namespaces(("foo",)) == [("foo",), ("foo", ""), ("foo", "bar")]
    assert items.namespaces(("foo\x1f",)) == [("foo\x1f",)]
    assert items.namespaces(("\U0010ffff",)) == [("\U0010ffff",)]
    assert {each.namespace for each in items.list(("a_",))} == {("a_",)}
    assert set(items.namespaces()) == set(labels)


def test_a_list_is_by_name_and_a_batch_lists_the_newest_first(items: Any, clock: FakeClock) -> None:
    for name in ("b", "a", "c"):
        clock.advance(1)
        items.put(("n",), name, {"name": name})

    assert [each.name for each in items.list(("n",))] == ["a", "b", "c"]
    assert [each.name for each in items.list(("n",), limit=1, offset=1)] == ["b"]
    with items.read() as batch:
        assert [each.name for each in batch.list(("n",), limit=2)] == ["c", "a"]
        odd = batch.list(("n",), includes=lambda each: each.value["name"] != "c", offset=1)
        assert [each.name for each in odd] == ["b"]


def test_more_items_than_one_part_are_all_listed_once(items: Any) -> None:
    with items.write() as batch:
        for number in range(1_001):
            batch.put(("n",), str(number), items.prepare(number, fields=()))

    with items.read() as batch:
        assert sorted(each.value for each in batch.iterate(("n",))) == list(range(1_001))


def test_a_value_whose_time_is_over_is_gone_and_swept(items: Any, clock: FakeClock) -> None:
    items.put(("n",), "short", 1, ttl_seconds=60)
    items.put(("n",), "long", 2, ttl_seconds=600)
    clock.advance(59)
    with items.write() as batch:
        batch.renew(batch.list(("n",)))
    clock.advance(59)
    assert items.find(("n",), "short") is not None

    clock.advance(2)

    assert items.find(("n",), "short") is None
    assert [each.name for each in items.list()] == ["long"]
    assert items.sweep() == 1
    assert items.sweep() == 0
    assert items.put(("n",), "short", 3).expires_at is None


def test_what_expired_and_is_put_again_is_new(items: Any, clock: FakeClock) -> None:
    items.put(("n",), "k", 1, ttl_seconds=1)
    clock.advance(5)

    again = items.put(("n",), "k", 2)
    later = items.put(("n",), "k", 3)

    assert again.created_at == clock.now_ms()
    assert later.created_at == again.created_at


def test_a_writer_with_an_old_revision_is_refused_and_changes_nothing(items: Any) -> None:
    items.put(("n",), "k", "first", revision=0)
    items.put(("n",), "k", "second", revision=1)

    refused(lambda: items.put(("n",), "k", "third", revision=1), ConflictError)
    refused(lambda: items.put(("n",), "k", "third", revision=0), ConflictError)
    refused(lambda: items.delete(("n",), "k", revision=1), ConflictError)

    assert items.get(("n",), "k").value == "second"
    assert items.delete(("n",), "k", revision=2)
    assert not items.delete(("n",), "k")


def test_a_batch_that_fails_leaves_nothing(items: Any) -> None:
    def write() -> None:
        with items.write() as batch:
            batch.put(("n",), "k", items.prepare(1))
            batch.put(("n",), "k", items.prepare(2), revision=9)

    refused(write, ConflictError)
    assert items.list() == []


def test_what_is_no_json_is_refused_and_secrets_are_redacted(items: Any, memory: Any) -> None:
    refused(lambda: items.put(("n",), "k", {1, 2}), InvalidInputError)
    refused(lambda: items.put(("n",), "k", float("nan")), InvalidInputError)
    refused(lambda: items.put(("n",), "k", 1, ttl_seconds=0), InvalidInputError)
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

    items.put(("n",), "k", {"note": f"the token is {secret}"})
    memory.frameworks.items("raw", is_redacted=False).put(("n",), "k", {"note": secret})

    assert secret not in str(items.get(("n",), "k").value)
    assert memory.frameworks.items("raw").get(("n",), "k").value == {"note": secret}


def test_frameworks_and_projects_do_not_see_each_other(items: Any, memory: Any, place: Any) -> None:
    items.put(("n",), "k", {"text": "of the first project alone"})

    assert memory.frameworks.items("other").list() == []
    other = place.open(project="other")
    assert other.frameworks.items("langgraph").list() == []
    assert list(other.search("first project alone", sources=["items"])) == []


def test_an_agents_value_is_found_by_search_as_words_of_an_agent(items: Any, memory: Any) -> None:
    item = items.put(
        ("memories", "ana"), "drink", {"content": {"likes": "Darjeeling in the morning"}}
    )
    items.put(("memories", "ana"), "hidden", {"text": "Darjeeling is not searched"}, fields=())

    (hit,) = memory.search("Darjeeling morning", sources=["items"])

    assert (hit.id, hit.source, hit.resource_id) == (item.id, "item", "memories/ana")
    assert hit.content == "Darjeeling in the morning"
    assert dict(hit.metadata) == {"framework": "langgraph", "name": "drink", "by": "agent"}
    assert not hit.is_trusted
    assert not hit.is_confirmed
    assert item.id in [each.id for each in memory.search("Darjeeling")]
    answer = memory.search("Darjeeling", sources=["items"])
    assert memory.pack(answer).hits == answer.hits
    assert memory.pack(answer, is_unasked=True).withheld == answer.hits


def test_a_value_that_was_replaced_or_deleted_is_not_found(items: Any, memory: Any) -> None:
    items.put(("n",), "k", {"text": "Darjeeling"})
    items.put(("n",), "k", {"text": "Assam"})
    assert list(memory.search("Darjeeling", sources=["items"])) == []
    assert len(memory.search("Assam", sources=["items"])) == 1

    items.delete(("n",), "k")

    assert list(memory.search("Assam", sources=["items"])) == []


def test_the_index_made_again_has_the_same_values(items: Any, memory: Any) -> None:
    items.put(("n",), "k", {"text": "Darjeeling"})
    items.put(("n",), "hidden", {"text": "Darjeeling"}, fields=())

    memory.internals.index.rebuild()

    assert [each.title for each in memory.search("Darjeeling", sources=["items"])] == ["k"]


def test_export_and_copy_bring_values_and_states_along(
    items: Any, memory: Any, place: Any, tmp_path: Path
) -> None:
    items.put(("n", "\x1f"), "k", {"text": "Darjeeling", "n": [1, None]}, ttl_seconds=60)
    items.put(("n",), "hidden", {"text": "Darjeeling"}, fields=())
    memory.frameworks.states("langgraph").put("t", [RunState("checkpoint", "", "1", "", {"a": 1})])
    memory.privacy.export(tmp_path / "archive.zip")

    def check(other: Any) -> None:
        there = other.frameworks.items("langgraph")
        assert [replace(each, no=0) for each in there.list()] == [
            replace(each, no=0) for each in items.list()
        ]
        assert [each.title for each in other.search("Darjeeling", sources=["items"])] == ["k"]
        with other.frameworks.states("langgraph").read() as batch:
            assert [each.body for each in batch.list(key="t")] == [{"a": 1}]

    settings = {"project": memory.project, "clock": place.clock}
    with empty_store("sqlite") as address, smara.open(address, **settings) as other:
        for _ in range(2):
            other.privacy.import_archive(tmp_path / "archive.zip")
        check(other)
    with empty_store("sqlite") as target:
        smara.copy_store(str(place.address), str(target))
        with smara.open(target, **settings) as other:
            check(other)


def test_vectors_of_another_embedder_are_kept_apart(items: Any) -> None:
    with items.write() as batch:
        item = batch.put(("n",), "k", items.prepare({"text": "a"}))
        batch.put_vectors(item, "theirs@2", [("$", 0, b"12345678"), ("text", 0, b"87654321")])
        assert batch.vectors("ours@2") == []
        assert [each.name for each in batch.without_vectors("ours@2", (), 9)] == ["k"]
        assert sorted(batch.vectors("theirs@2", ("n",))) == [
            (item.no, b"12345678"),
            (item.no, b"87654321"),
        ]
        assert batch.without_vectors("theirs@2", (), 9) == []

        batch.put(("n",), "k", items.prepare({"text": "b"}))
        assert batch.vectors("theirs@2") == []
