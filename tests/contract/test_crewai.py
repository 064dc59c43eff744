"""CrewAI's memory over our storage, in the environment that ``make conformance`` makes for it."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip(
    "crewai", reason="CrewAI excludes packages of this environment; see make conformance"
)
from crewai import Memory as TheirMemory
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.types import MemoryRecord

from smara.adapters.sdk.crewai import SmaraStorage
from tests.contract.both import EACH_DATABASE
from tests.contract.sdk import watch_threads

pytestmark = EACH_DATABASE
SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
NOON = datetime(2026, 11, 17, 12)


def record(name: str, scope: str = "/", vector: Any = (1.0, 0.0), **given: Any) -> MemoryRecord:
    content = given.pop("content", f"The {name} stands on rock")
    return MemoryRecord(id=name, content=content, scope=scope, embedding=list(vector), **given)


@pytest.fixture
def storage(memory: Any) -> SmaraStorage:
    return SmaraStorage(memory)


def test_it_is_a_storage_backend(storage: SmaraStorage) -> None:
    assert isinstance(storage, StorageBackend)


def test_a_record_comes_back_as_it_was(storage: SmaraStorage) -> None:
    given = record(
        "wall", "/house/cellar", (0.5, -0.25), categories=["stone"], importance=0.9,
        metadata={"floor": -1, "tags": ["old", None]}, source="ann", private=True,
        created_at=NOON + timedelta(microseconds=7),
    )  # fmt: skip
    storage.save([given])
    found = storage.get_record("wall")
    assert found is not None
    assert found.model_dump() == given.model_dump()
    assert found.embedding == [0.5, -0.25]
    assert storage.get_record("door") is None


def test_scopes_are_matched_by_whole_labels(storage: SmaraStorage) -> None:
    storage.save([record("a", "/team1"), record("b", "/team10"), record("c", "/team1/50%_x")])
    assert {each.id for each, _ in storage.search([1.0, 0.0], "/team1")} == {"a", "c"}
    assert storage.count("/team1") == 2
    assert storage.list_scopes() == ["/team1", "/team10"]
    assert storage.list_scopes("/team1/") == ["/team1/50%_x"]
    assert storage.delete(scope_prefix="team1") == 2
    assert [each.id for each in storage.list_records()] == ["b"]


def test_the_nearest_come_first_and_meet_every_condition(storage: SmaraStorage) -> None:
    storage.save([
        record("near", "/a", (1.0, 0.1), categories=["x"], metadata={"k": 1}),
        record("far", "/a", (0.0, 1.0), categories=["x"], metadata={"k": 1}),
        record("behind", "/a", (-1.0, 0.0)),
        record("other", "/a", (1.0, 0.0), categories=["y"], metadata={"k": 2}),
        MemoryRecord(id="blind", content="without a vector"),
    ])  # fmt: skip
    found = storage.search([1.0, 0.0], "/a", ["x"], {"k": 1})
    assert [each.id for each, _ in found] == ["near", "far"]
    assert [round(score, 3) for _, score in found] == [0.995, 0.0]
    assert [each.id for each, _ in storage.search([1.0, 0.0], limit=1)] == ["other"]
    assert storage.search([1.0, 0.0], min_score=0.999)[0][0].id == "other"
    assert len(storage.search([1.0, 0.0], min_score=0.999)) == 1


def test_vectors_of_another_size_are_refused_and_nothing_is_stored(storage: SmaraStorage) -> None:
    storage.save([record("a")])
    for act in (
        lambda: storage.save([record("b"), record("c", vector=(1.0, 0.0, 0.0))]),
        lambda: storage.search([1.0, 0.0, 0.0]),
        lambda: storage.update(record("a", vector=(1.0,))),
    ):
        with pytest.raises(EmbeddingDimensionMismatchError):
            act()
    assert [each.id for each in storage.list_records()] == ["a"]


def test_an_update_replaces_a_record_moves_it_and_keeps_its_vector(storage: SmaraStorage) -> None:
    storage.save([record("wall", "/house")])
    storage.update(
        MemoryRecord(id="wall", content="The wall is gone", scope="/past", created_at=NOON)
    )
    assert storage.count() == 1
    ((found, _),) = storage.search([1.0, 0.0])
    assert (found.content, found.scope, found.created_at) == ("The wall is gone", "/past", NOON)


def test_a_touched_record_stays_what_it_is(storage: SmaraStorage) -> None:
    storage.save([record("wall", last_accessed=NOON, created_at=NOON)])
    storage.touch_records(["wall", "missing"])
    ((found, _),) = storage.search([1.0, 0.0])
    assert found.created_at == NOON
    assert found.last_accessed > NOON
    assert storage.count() == 1


def test_times_with_a_zone_are_kept_in_utc_without_one(storage: SmaraStorage) -> None:
    storage.save([record("wall", created_at=NOON.replace(tzinfo=UTC))])
    assert storage.list_records()[0].created_at == NOON
    assert storage.delete(older_than=NOON.replace(tzinfo=UTC)) == 0
    assert storage.delete(older_than=NOON + timedelta(seconds=1)) == 1


def test_no_ids_delete_nothing_and_ids_are_no_patterns(storage: SmaraStorage) -> None:
    storage.save([record("a"), record("b' OR '1'='1")])
    assert storage.delete(record_ids=[]) == 0
    assert storage.delete(record_ids=["%", "a"]) == 1
    storage.reset()
    assert storage.count() == 0


def test_records_are_found_by_their_words_but_for_private_ones(
    memory: Any, storage: SmaraStorage
) -> None:
    storage.save([
        record("wall", content="The geranium hides the key"),
        record("safe", content="The geranium is Ann's secret", private=True, source="ann"),
    ])  # fmt: skip
    hits = memory.search("geranium").hits
    assert [hit.source for hit in hits] == ["item"]
    assert "hides the key" in hits[0].content


def test_secrets_are_redacted_and_projects_kept_apart(memory: Any, storage: SmaraStorage) -> None:
    storage.save([record("wall", content=f"The token is {SECRET}", metadata={"t": SECRET})])
    assert SECRET not in str(storage.get_record("wall"))
    with memory.in_project("other") as other:
        assert SmaraStorage(other).count() == 0


def test_their_memory_remembers_recalls_and_forgets(storage: SmaraStorage) -> None:
    """Each step names everything that a model would be asked for."""

    def embed(texts: list[str]) -> list[list[float]]:
        return [[float("key" in text), float("door" in text), 0.1] for text in texts]

    mind = TheirMemory(storage=storage, embedder=embed, llm="none")
    for text in ("The key lies under the geranium", "The door is blue"):
        mind.remember(text, scope="/house", categories=["things"], importance=0.5)
    (match, *_) = mind.recall("Where is the key?", scope="/house", depth="shallow")
    assert match.record.content == "The key lies under the geranium"
    assert mind.info("/house").record_count == 2
    assert mind.forget(scope="/house") == 2
    assert mind.recall("Where is the key?", depth="shallow") == []


def test_the_event_loop_never_touches_the_store(
    memory: Any, storage: SmaraStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = watch_threads(memory, monkeypatch)

    async def act() -> tuple[int, int]:
        await storage.asave([record("a")])
        found = await storage.asearch([1.0, 0.0])
        return len(found), await storage.adelete()

    assert asyncio.run(act()) == (1, 1)
    assert threads
    assert threading.get_ident() not in threads
