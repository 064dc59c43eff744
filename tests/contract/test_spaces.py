"""Changing the model: the old space answers until the new one is complete, nothing is mixed, and
back is as easy.
"""

from __future__ import annotations

from typing import Any

import pytest

from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.models.embedders.offline import OfflineEmbedder
from smara.testing import FakeClock, HashEmbedder
from tests.contract.both import EACH_DATABASE
from tests.contract.embedding import OTHER, Restless, near, texts, vectors, waiting

pytestmark = EACH_DATABASE

OFFLINE = OfflineEmbedder.model_id


@pytest.fixture
def memory(place: Any) -> Any:
    """A project with ten messages that have their vectors of the offline embedder."""
    memory = place.open()
    add(memory, 10)
    assert memory.embeddings.embed_pending().embedded == 10
    return memory


@pytest.fixture
def renewed(place: Any) -> Any:
    """The same project for a process that is set to another embedder."""
    return place.open(embedding_model=HashEmbedder(), **OTHER)


def add(memory: Any, count: int = 1, text: str = "a cat sleeps") -> None:
    for number in range(count):
        memory.messages.add(thread_id="t", role="user", content=f"{text} {number}")


def answering(memory: Any) -> str | None:
    found: str | None = memory.embeddings.status().answering
    return found


def states(memory: Any) -> dict[str, str]:
    return {each.space.model_id: each.space.state for each in memory.embeddings.status().spaces}


def test_the_old_space_answers_until_the_new_one_is_complete(memory: Any, renewed: Any) -> None:
    assert answering(renewed) == OFFLINE
    assert renewed.embeddings.embed_pending(limit=4).embedded == 4
    assert answering(renewed) == OFFLINE
    vector, note = renewed._rooms.meaning.query_vector("kittens", deep=True)
    assert (vector.model_id, "until those of hash-64 are complete" in note) == (OFFLINE, True)
    assert renewed.embeddings.embed_pending().embedded == 6
    assert answering(renewed) == "hash-64"
    assert answering(memory) == OFFLINE


def test_a_filling_that_was_cut_short_is_gone_on_with_by_whoever_comes(
    memory: Any, renewed: Any, place: Any
) -> None:
    renewed.embeddings.embed_pending(limit=3)
    again = place.open(embedding_model=HashEmbedder(), **OTHER)
    assert again.embeddings.embed_pending().embedded == 7
    assert len(vectors(memory)) == 10


def test_what_is_written_meanwhile_gets_the_vectors_of_both(memory: Any, renewed: Any) -> None:
    renewed.embeddings.embed_pending(limit=4)
    add(memory, 2, "a dog barks")
    memory.embeddings.embed_pending()
    renewed.embeddings.embed_pending()
    add(memory, 3, "a fox runs")
    renewed.embeddings.embed_pending()
    memory.embeddings.embed_pending()
    assert len(vectors(memory)) == len(vectors(memory, model_id=OFFLINE)) == 15
    assert waiting(memory) == []


def test_what_changes_is_renewed_in_both(memory: Any, renewed: Any) -> None:
    renewed.embeddings.embed_pending()
    task = memory.tasks.add("paint the house")
    memory.embeddings.embed_pending()
    renewed.embeddings.embed_pending()
    memory.tasks.update(task.id, title="feed the horse")
    renewed.embeddings.embed_pending()
    assert memory.embeddings.embed_pending().embedded == 1
    assert len(near(renewed, "horse", kind="task")) == 1


def test_vectors_of_two_spaces_are_never_compared(memory: Any, renewed: Any) -> None:
    renewed.embeddings.embed_pending()
    vector, _ = renewed._rooms.meaning.query_vector("a cat", deep=True)
    with memory._rooms.database.read() as session:
        rows = [row for row, _ in renewed._rooms.meaning.nearest(session, "message", vector, 50)]
        scores = renewed._rooms.meaning.scores(session, "message", rows, vector)
    assert (len(rows), len(scores), vector.dims) == (10, 10, 64)


def test_switching_by_name_is_remembered_for_processes_with_the_default_setting(
    memory: Any, place: Any
) -> None:
    renewed = place.open(embedding_model=HashEmbedder(), **OTHER)
    renewed.embeddings.embed_pending()
    assert memory.embeddings.switch("offline").model_id == OFFLINE
    assert memory.embeddings.embed_pending().is_done
    assert answering(place.open()) == OFFLINE
    assert answering(renewed) == "hash-64"


def test_switching_to_nothing_or_to_what_cannot_be_opened_is_refused(memory: Any) -> None:
    for setting in ("off", "auto", ""):
        with pytest.raises(InvalidInputError):
            memory.embeddings.switch(setting)
    with pytest.raises(Exception, match="embedder"):
        memory.embeddings.switch("abacus")
    assert answering(memory) == OFFLINE


def test_dropping_takes_one_models_vectors_and_leaves_the_others(memory: Any, renewed: Any) -> None:
    renewed.embeddings.embed_pending()
    assert near(renewed, "a cat sleeps", 3)
    assert memory.embeddings.drop("hash-64") == 10
    assert vectors(memory) == {}
    assert len(vectors(memory, model_id=OFFLINE)) == 10
    assert states(memory) == {OFFLINE: "ready"}
    with pytest.raises(NotFoundError, match=OFFLINE):
        memory.embeddings.drop("hash-64")
    assert renewed.embeddings.embed_pending().embedded == 10
    assert len(near(renewed, "a cat sleeps", 50)) == 10


def test_vectors_that_are_being_made_are_not_dropped(place: Any) -> None:
    embedder = Restless()
    memory = place.open(embedding_model=embedder)
    other = place.open(embedding_model=HashEmbedder())
    add(memory)
    told: list[BaseException] = []

    def drop() -> None:
        with pytest.raises(ConflictError) as refused:
            other.embeddings.drop("hash-64")
        told.append(refused.value)

    embedder.meanwhile = drop
    memory.embeddings.embed_pending()
    assert len(told) == 1


def test_a_space_that_nobody_renewed_for_a_week_is_retired_and_comes_back_complete(
    memory: Any, renewed: Any, clock: FakeClock, place: Any
) -> None:
    task = memory.tasks.add("paint the house")
    memory.embeddings.embed_pending()
    renewed.embeddings.embed_pending()
    clock.advance(8 * 86_400)
    memory.tasks.update(task.id, title="feed the horse")
    add(memory, 1, "after a week")
    renewed.embeddings.embed_pending()
    assert states(memory) == {"hash-64": "ready", OFFLINE: "retired"}
    assert vectors(memory, "task", OFFLINE) == {}
    assert len(vectors(memory, model_id=OFFLINE)) == 10
    add(memory, 1, "nobody waits for this")
    renewed.embeddings.embed_pending()
    assert [each for each in waiting(memory) if each[0]] == []
    again = place.open()
    assert again.embeddings.embed_pending().embedded == 3
    assert states(again)[OFFLINE] == "ready"
    assert again.embeddings.problems() == []


def test_a_record_that_changes_while_its_space_is_retired_has_no_vector_left_there(
    memory: Any, renewed: Any, clock: FakeClock
) -> None:
    task = memory.tasks.add("paint the house")
    memory.embeddings.embed_pending()
    renewed.embeddings.embed_pending()
    clock.advance(8 * 86_400)
    add(memory)
    renewed.embeddings.embed_pending()
    assert len(vectors(memory, "task", OFFLINE)) == 1
    memory.tasks.update(task.id, title="feed the horse")
    renewed.embeddings.embed_pending()
    assert vectors(memory, "task", OFFLINE) == {}


def test_an_embedder_under_a_known_name_with_other_dimensions_is_refused(
    memory: Any, place: Any
) -> None:
    first = place.open(embedding_model=HashEmbedder(64, "mine"), **OTHER)
    first.embeddings.embed_pending()
    second = place.open(embedding_model=HashEmbedder(32, "mine"), **OTHER)
    with pytest.raises(ConflictError, match="64 dimensions"):
        second.embeddings.embed_pending()


def test_a_new_version_of_the_same_embedder_is_another_space(place: Any) -> None:
    old, new = HashEmbedder(model_id="v1"), HashEmbedder(model_id="v2")
    before = place.open(embedding_model=old)
    add(before, 3)
    before.embeddings.embed_pending()
    after = place.open(embedding_model=new)
    assert answering(after) is None  # nobody can make questions of v1 any more
    after.embeddings.embed_pending(limit=1)
    assert answering(after) == "v2"
    after.embeddings.embed_pending()
    assert len(texts(new)) == 3
