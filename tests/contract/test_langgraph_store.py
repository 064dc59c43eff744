"""LangGraph's store in a memory, beyond what its own tests ask."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, PutOp, SearchOp

from smara.adapters.sdk.langgraph import AsyncSmaraStore, SmaraStore, match
from smara.adapters.sdk.langgraph import store as lg_store
from smara.errors import InvalidInputError
from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE, refused

pytestmark = EACH_DATABASE
ANA = ("memories", "ana")
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Letters(Embeddings):
    """Counts three letters, and remembers what it was asked."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [[float(text.count(letter)) + 0.01 for letter in "abc"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class OtherLetters(Letters):
    """Another embedder with as many dimensions."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [row[::-1] for row in super().embed_documents(texts)]


@pytest.fixture
def store(memory: Any) -> SmaraStore:
    """A store without an embedder of its own."""
    return SmaraStore(memory)


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


def test_a_query_is_answered_by_words_and_meaning_without_an_embedder(store: SmaraStore) -> None:
    store.put(ANA, "work", {"text": "She welds frames for bicycles"})
    store.put(ANA, "tea", {"text": "She likes Darjeeling tea in the morning"})
    store.put(("memories", "bob"), "tea", {"text": "He likes Darjeeling tea"})
    store.put(ANA, "hidden", {"text": "Darjeeling"}, index=False)

    by_words = store.search(ANA, query="Darjeeling")
    by_meaning = store.search(ANA, query="what is her profession")

    assert keys(by_words) == ["tea", "work"]
    assert by_words[0].score is not None
    assert by_words[1].score is not None
    assert 1 >= by_words[0].score > by_words[1].score >= 0
    assert keys(by_meaning)[0] == "work"
    assert keys(store.search(ANA, query="tea", limit=1, offset=1)) == ["work"]
    assert keys(store.search(ANA, query="tea", filter={"text": {"$ne": "x"}}, limit=1)) == ["tea"]


def test_reads_of_a_batch_see_what_was_before_and_the_last_put_wins(store: SmaraStore) -> None:
    store.put(ANA, "k", {"n": 1})

    results = store.batch(
        [
            PutOp(ANA, "k", {"n": 2}),
            GetOp(ANA, "k"),
            PutOp(ANA, "k", {"n": 3}),
            SearchOp(ANA),
            PutOp(ANA, "gone", {"n": 9}),
            PutOp(ANA, "gone", None),
        ]
    )

    assert results[1].value == {"n": 1}  # type: ignore[union-attr]
    assert [item.value for item in results[3]] == [{"n": 1}]  # type: ignore[union-attr]
    assert [item.value for item in store.search(ANA)] == [{"n": 3}]


def test_a_batch_with_a_value_that_is_no_json_stores_nothing(store: SmaraStore) -> None:
    ops = [PutOp(ANA, "a", {"n": 1}), PutOp(ANA, "b", {"n": object()})]

    refused(lambda: store.batch(ops), InvalidInputError)

    assert store.search(ANA) == []


def test_items_without_vectors_are_embedded_at_the_first_search(
    store: SmaraStore, memory: Any
) -> None:
    store.put(ANA, "a", {"text": "aaa"})
    store.put(ANA, "b", {"text": "bbb"})
    store.put(ANA, "no text", {"other": "bbb"})
    store.put(ANA, "hidden", {"text": "aaa"}, index=False)
    letters = Letters()
    with_letters = SmaraStore(memory, index={"dims": 3, "embed": letters, "fields": ["text"]})

    assert keys(with_letters.search(ANA, query="b")) == ["b", "a"]
    asked = len(letters.texts)
    assert "hidden" not in keys(with_letters.search(ANA, query="a"))

    assert len(letters.texts) == asked + 1  # the query alone


def test_vectors_of_two_embedders_are_not_mixed(memory: Any) -> None:
    first = SmaraStore(memory, index={"dims": 3, "embed": Letters(), "fields": ["text"]})
    other = SmaraStore(memory, index={"dims": 3, "embed": OtherLetters(), "fields": ["text"]})
    first.put(ANA, "a", {"text": "aaa"})
    first.put(ANA, "c", {"text": "ccc"})

    assert keys(first.search(ANA, query="a"))[0] == "a"
    assert keys(other.search(ANA, query="a"))[0] == "a"
    assert keys(first.search(ANA, query="c"))[0] == "c"


def test_an_embedder_that_gives_other_dimensions_is_refused(memory: Any) -> None:
    store = SmaraStore(memory, index={"dims": 4, "embed": Letters()})

    refused(lambda: store.put(ANA, "a", {"text": "aaa"}), InvalidInputError)


def test_secrets_are_gone_before_an_embedder_sees_them(memory: Any) -> None:
    letters = Letters()
    store = SmaraStore(memory, index={"dims": 3, "embed": letters, "fields": ["$"]})

    store.put(ANA, "k", {"text": f"use {SECRET} to deploy"})

    assert SECRET not in str(letters.texts)
    assert SECRET not in str(store.get(ANA, "k"))


def test_values_live_as_long_as_minutes_say(memory: Any, clock: FakeClock) -> None:
    store = SmaraStore(memory, ttl={"default_ttl": 2, "refresh_on_read": True})
    store.put(ANA, "default", {})
    store.put(ANA, "short", {}, ttl=1)
    store.put(ANA, "ever", {}, ttl=None)
    clock.advance(50)
    assert store.get(ANA, "short") is not None  # and lives a minute again
    clock.advance(50)
    assert store.get(ANA, "short", refresh_ttl=False) is not None
    clock.advance(15)

    assert set(keys(store.search(ANA, refresh_ttl=False))) == {"default", "ever"}
    clock.advance(60)
    assert store.sweep_ttl() == 2
    assert keys(store.search(ANA)) == ["ever"]


def test_the_async_face_never_touches_the_database_on_the_loop(place: Any) -> None:
    threads: set[str] = set()

    class Spy(FakeClock):
        def now_ms(self) -> int:
            threads.add(threading.current_thread().name)
            return super().now_ms()

    place.clock = Spy()
    memory = place.open()

    async def use() -> Any:
        store, plain = AsyncSmaraStore(memory), SmaraStore(memory)
        threads.clear()
        await asyncio.gather(*(store.aput(ANA, str(n), {"n": n}) for n in range(5)))
        await plain.aput(ANA, "plain", {"n": 9})
        await store.aget(ANA, "plain")
        return await store.asearch(ANA, query="plain")

    assert len(asyncio.run(use())) == 6
    assert threads
    assert threading.current_thread().name not in threads


def test_an_erase_names_the_values_that_still_hold_the_words(
    store: SmaraStore, memory: Any
) -> None:
    words = "the walrus of Greenwich sleeps in the harbor every afternoon"
    memory.messages.add(thread_id="t", role="user", content=words)
    store.put(ANA, "k", {"text": words})

    plan = memory.privacy.plan_erase(threads=["t"])

    assert plan.elsewhere == {"framework_items": 1}


def test_an_erased_text_is_gone_from_the_store(store: SmaraStore, memory: Any) -> None:
    store.put(ANA, "k", {"text": "the walrus of Greenwich sleeps"})
    store.put(ANA, "other", {"text": "tea"})

    memory.privacy.erase(text="walrus of Greenwich")

    assert keys(store.search(ANA)) == ["other"]
    assert list(memory.search("walrus", sources=["items"])) == []


ODD = ("50%", "a_b", "~", "C:\\x", 'say "no"', "é", "\ud800", "long " * 300, "", "[1]")


def test_a_filter_by_a_text_reads_only_values_that_hold_it(
    store: SmaraStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, text in enumerate(ODD):
        store.put(ANA, str(number), {"is": text, "deep": {"at": text}})
        store.put(ANA, f"not {number}", {"is": f"{text}.", "deep": {"at": "else"}})
    read: list[str] = []
    for number, text in enumerate(ODD):
        assert keys(store.search(ANA, filter={"is": text})) == [str(number)]
        assert keys(store.search(ANA, filter={"deep.at": {"$eq": text}})) == [str(number)]
    original = match.matches
    monkeypatch.setattr(
        lg_store, "matches", lambda value, given: read.append(value["is"]) or original(value, given)
    )
    store.search(ANA, filter={"is": "50%"})
    assert sorted(read) == ["50%", "50%."]
