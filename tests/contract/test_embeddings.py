"""Everything that is written gets its vector, once, whatever happens meanwhile; what is removed
keeps none.
"""

from __future__ import annotations

from typing import Any

import pytest

from smara.errors import InvalidInputError, ModelUnavailableError
from smara.testing import FakeClock, HashEmbedder
from tests.contract.both import EACH_DATABASE
from tests.contract.embedding import (
    OTHER,
    Choosy,
    Restless,
    blocks_hold,
    near,
    shelf_of,
    texts,
    unavailable,
    vectors,
    waiting,
)

pytestmark = EACH_DATABASE


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def memory(place: Any, embedder: HashEmbedder) -> Any:
    return place.open(embedding_model=embedder)


def add(memory: Any, *said: str, thread_id: str = "t") -> list[Any]:
    return [memory.messages.add(thread_id=thread_id, role="user", content=text) for text in said]


def sql(memory: Any, statement: str, values: Any = ()) -> None:
    with memory._rooms.database.write() as session:
        session.run(statement, values)


# everything, once


def test_every_kind_of_record_gets_a_vector_and_is_found_by_it(memory: Any) -> None:
    add(memory, "Please always deploy on Monday: the red fox sleeps")
    memory.tasks.add("mend the blue door", labels=["house"])
    memory.memories.remember("deploys run on green fridays only")
    memory.working.put("# Now\nthinking about yellow submarines")
    memory.observations.observe("t")
    assert memory.embeddings.embed_pending().is_done
    for kind, words in (
        ("message", "red fox"),
        ("task", "blue door house"),
        ("memory", "green fridays"),
        ("working", "yellow submarines"),
    ):
        assert len(near(memory, words, kind=kind)) == 1, kind
    assert len(vectors(memory, "observation")) == len(memory.observations.list(thread_id="t")) > 0


def test_what_has_its_vector_is_not_embedded_again(memory: Any, embedder: HashEmbedder) -> None:
    add(memory, "one", "two", "three")
    assert memory.embeddings.embed_pending().embedded == 3
    assert memory.embeddings.embed_pending().embedded == 0
    assert sorted(texts(embedder)) == ["one", "three", "two"]
    assert waiting(memory) == []


def test_a_long_message_has_a_vector_for_each_of_its_pieces(memory: Any) -> None:
    add(memory, "short", "word " * 6_000)
    memory.embeddings.embed_pending()
    assert [row & 0xFFFF for row in vectors(memory)] == [0, 0, 1, 2]


def test_a_text_of_which_the_model_knows_nothing_is_done_and_never_found(
    memory: Any, embedder: HashEmbedder
) -> None:
    add(memory, "words", "   ", "!!!")
    assert memory.embeddings.embed_pending().embedded == 3
    assert sorted(vectors(memory).values()) == [0, 0, 64]
    assert len(near(memory, "words")) == 1
    assert "   " not in texts(embedder)


def test_records_that_were_there_before_the_queue_are_reached_newest_first(
    memory: Any, embedder: HashEmbedder
) -> None:
    add(memory, "oldest", "middle", "newest")
    memory.tasks.add("a task")
    sql(memory, "DELETE FROM embedding_queue")
    assert memory.embeddings.embed_pending(limit=1).embedded == 1
    assert memory.embeddings.embed_pending().embedded == 3
    assert texts(embedder)[:3] == ["newest", "middle", "oldest"]
    assert memory.embeddings.status().spaces[0].space.state == "ready"


# changes


def test_a_message_that_grew_has_its_vector_renewed(memory: Any) -> None:
    [message] = add(memory, "cats")
    memory.embeddings.embed_pending()
    memory.messages.extend(message.id, " and " + "dogs " * 5_000)
    assert memory.embeddings.embed_pending().embedded == 1
    assert len(vectors(memory)) > 1
    assert len(near(memory, "dogs")) == len(vectors(memory))


def test_a_task_is_embedded_again_when_its_text_or_its_labels_change_and_not_otherwise(
    memory: Any, embedder: HashEmbedder
) -> None:
    task = memory.tasks.add("mend the door")
    memory.embeddings.embed_pending()
    embedder.asked.clear()
    memory.tasks.update(task.id, priority=0)
    memory.tasks.claim(task.id, session_id="s")
    assert memory.embeddings.embed_pending().embedded == 0
    memory.tasks.update(task.id, title="paint the door")
    memory.embeddings.embed_pending()
    memory.tasks.update(task.id, labels=["blue"])
    memory.embeddings.embed_pending()
    assert texts(embedder) == ["task: paint the door", "task | blue: paint the door"]


def test_a_memory_is_embedded_with_its_files_modules_and_type_before_it(
    memory: Any, embedder: HashEmbedder
) -> None:
    memory.memories.add(
        "never call it twice",
        type="gotcha",
        files=["src/auth.ts"],
        modules=["login"],
        evidence=["x"],
    )
    memory.embeddings.embed_pending()
    assert texts(embedder) == ["src/auth.ts | login | gotcha: never call it twice"]


def test_a_record_that_changes_while_the_model_thinks_is_embedded_again(place: Any) -> None:
    embedder = Restless()
    memory = place.open(embedding_model=embedder)
    task = memory.tasks.add("old title")
    embedder.meanwhile = lambda: memory.tasks.update(task.id, title="new title")
    assert memory.embeddings.embed_pending().is_done
    assert texts(embedder) == ["task: old title", "task: new title"]
    assert len(near(memory, "new", kind="task")) == 1
    assert waiting(memory) == []


def test_a_record_removed_while_the_model_thinks_leaves_no_vector(place: Any) -> None:
    embedder = Restless()
    memory = place.open(embedding_model=embedder)
    add(memory, "stays", "goes")
    embedder.meanwhile = lambda: sql(memory, "DELETE FROM messages WHERE raw_content = 'goes'")
    assert memory.embeddings.embed_pending().embedded == 1
    assert len(vectors(memory)) == 1
    assert memory.embeddings.problems() == []


@pytest.mark.parametrize("by_walk", [False, True])
def test_what_is_removed_takes_its_vectors_with_it_in_the_same_transaction(
    memory: Any, by_walk: bool
) -> None:
    add(memory, *(f"message {number}" for number in range(9)))
    if by_walk:
        sql(memory, "DELETE FROM embedding_queue")
    memory.embeddings.embed_pending()
    assert near(memory, "message 4", limit=1)
    gone = next(iter(vectors(memory)))
    sql(memory, "DELETE FROM messages WHERE no = ?", (gone >> 16,))
    left = sorted(vectors(memory))
    assert gone not in left
    assert blocks_hold(memory, shelf_of(memory)) == left
    assert gone not in near(memory, "message 0", limit=20)
    assert memory.embeddings.embed_pending().is_done
    assert blocks_hold(memory, shelf_of(memory)) == left
    assert memory.embeddings.problems() == []


# limits, trouble


def test_a_limit_and_a_stop_are_kept_and_the_rest_is_done_later(memory: Any) -> None:
    add(memory, *(f"message {number}" for number in range(20)))
    done = memory.embeddings.embed_pending(limit=7)
    assert (done.embedded, done.waiting, done.stopped) == (7, 13, "limit")
    assert memory.embeddings.embed_pending().embedded == 13
    with pytest.raises(InvalidInputError):
        memory.embeddings.embed_pending(limit=0)


def test_it_stops_at_the_deadline_after_the_batch_at_hand(place: Any, clock: FakeClock) -> None:
    memory = place.open(embedding_model=Restless(clock=clock, seconds=4))
    add(memory, *(f"message {number}" for number in range(600)))
    done = memory.embeddings.embed_pending(deadline_seconds=5)
    assert (done.embedded, done.stopped) == (512, "deadline")
    assert memory.embeddings.embed_pending().embedded == 88


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_record_the_model_refuses_is_passed_over_and_told(place: Any, is_silent: bool) -> None:
    memory = place.open(embedding_model=Choosy(is_silent=is_silent))
    add(
        memory,
        *(f"message {number}" + (" poison" if number in (3, 11) else "") for number in range(16)),
    )
    done = memory.embeddings.embed_pending()
    assert (done.embedded, done.failed, done.stopped) == (14, 2, "done")
    failures = memory.embeddings.status().spaces[0].failures
    assert len(failures) == 2
    assert memory.embeddings.problems() == []
    assert memory.embeddings.embed_pending().failed == 0
    assert memory.embeddings.retry() == 2
    assert memory.embeddings.embed_pending().failed == 2


def test_a_refused_record_is_tried_again_when_its_text_changes(place: Any) -> None:
    memory = place.open(embedding_model=Choosy())
    task = memory.tasks.add("poison")
    assert memory.embeddings.embed_pending().failed == 1
    memory.tasks.update(task.id, title="honey")
    assert memory.embeddings.embed_pending().embedded == 1
    assert memory.embeddings.status().spaces[0].failures == ()


def test_a_model_that_refuses_everything_blames_no_record(place: Any) -> None:
    memory = place.open(embedding_model=Choosy(word=""))
    add(memory, "one", "two")
    done = memory.embeddings.embed_pending()
    assert (done.embedded, done.failed, done.stopped) == (0, 0, "unavailable")
    assert len(waiting(memory)) == 2


def test_an_embedder_with_a_bug_costs_the_record_that_shows_it_and_no_other(place: Any) -> None:
    class Brittle(HashEmbedder):
        def embed(
            self, texts: Any, kind: Any = "document", *, deadline_seconds: float | None = None
        ) -> Any:
            assert not any("\u200d" in text for text in texts)
            return super().embed(texts, kind)

    memory = place.open(embedding_model=Brittle())
    add(memory, "one", "two \u200d", "three")
    done = memory.embeddings.embed_pending()
    assert (done.embedded, done.failed, done.stopped) == (2, 1, "done")
    [failure] = memory.embeddings.status().spaces[0].failures
    assert (failure.code, "AssertionError" in failure.message) == ("bad_reply", True)


def test_a_setting_that_cannot_be_opened_is_told_and_not_raised(place: Any) -> None:
    memory = place.open(embedder="onnx:/nowhere/at/all")
    add(memory, "one")
    done = memory.embeddings.embed_pending()
    assert (done.stopped, bool(done.note)) == ("unavailable", True)
    assert memory.embeddings.status().answering is None
    assert memory.search("one")[0].content == "one"


def test_a_model_that_is_away_changes_nothing_and_is_told(
    memory: Any, embedder: HashEmbedder
) -> None:
    add(memory, "one")
    embedder.error = unavailable()
    done = memory.embeddings.embed_pending()
    assert (done.stopped, done.note) == ("unavailable", str(unavailable()))
    assert isinstance(embedder.error, ModelUnavailableError)
    embedder.error = None
    assert memory.embeddings.embed_pending().embedded == 1


def test_an_embedder_that_is_off_makes_and_needs_nothing(place: Any) -> None:
    memory = place.open(embedder="off")
    add(memory, "one")
    assert memory.embeddings.embed_pending().stopped == "off"
    assert memory.embeddings.status().answering is None


# one at a time


def test_a_second_worker_is_told_that_somebody_is_at_it(place: Any) -> None:
    embedder = Restless()
    memory = place.open(embedding_model=embedder)
    other = place.open(embedding_model=HashEmbedder())
    told: list[Any] = []
    embedder.meanwhile = lambda: told.append(other.embeddings.embed_pending())
    add(memory, "one")
    assert memory.embeddings.embed_pending().embedded == 1
    assert [each.stopped for each in told] == ["busy"]


def test_a_worker_that_lost_its_lease_writes_nothing(place: Any, clock: FakeClock) -> None:
    embedder = Restless(clock=clock, seconds=90)
    memory = place.open(embedding_model=embedder)
    other = place.open(embedding_model=HashEmbedder())
    add(memory, "one", "two")
    told: list[Any] = []
    embedder.meanwhile = lambda: told.append(other.embeddings.embed_pending(limit=1))
    lost = memory.embeddings.embed_pending()
    assert (lost.stopped, lost.embedded) == ("lease_lost", 0)
    assert [(each.stopped, each.embedded) for each in told] == [("limit", 1)]
    assert len(vectors(memory)) == 1


def test_what_is_written_in_another_project_is_neither_embedded_nor_found(place: Any) -> None:
    here = place.open(project="here", embedding_model=HashEmbedder())
    there = place.open(project="there", embedding_model=HashEmbedder())
    add(here, "a secret plan")
    add(there, "a secret meal")
    assert here.embeddings.embed_pending().embedded == 1
    assert vectors(there) == {}
    there.embeddings.embed_pending()
    assert near(here, "secret", limit=9) == list(vectors(here))
    assert near(there, "secret", limit=9) == list(vectors(there))


# looking after them


def test_vectors_of_nothing_and_records_without_vectors_are_found_and_mended(memory: Any) -> None:
    add(memory, *(f"message {number}" for number in range(5)))
    memory.embeddings.embed_pending()
    shelf = shelf_of(memory)
    rows = sorted(vectors(memory))
    sql(memory, "DELETE FROM vectors WHERE no = ?", (shelf.base + rows[0],))
    sql(memory, "DELETE FROM embedding_queue")
    with memory._rooms.database.write() as session:
        memory._rooms.database.vectors.put(session, shelf, {999: [bytes(range(64))]})
    assert len(memory.embeddings.problems()) == 3
    assert memory.embeddings.mend() > 0
    memory.embeddings.embed_pending()
    assert memory.embeddings.problems() == []
    assert sorted(vectors(memory)) == rows
    assert blocks_hold(memory, shelf) == rows


def test_a_block_that_lost_its_signs_is_made_again_from_the_vectors(memory: Any) -> None:
    add(memory, *(f"message {number}" for number in range(5)))
    memory.embeddings.embed_pending()
    sql(memory, "UPDATE vector_blocks SET offsets = NULL, signs = NULL")
    assert blocks_hold(memory, shelf_of(memory)) == sorted(vectors(memory))
    assert len(near(memory, "message 3", limit=9)) == 5


# the cache


def test_the_same_text_is_asked_for_once_of_a_model_that_costs_something(
    place: Any, clock: FakeClock
) -> None:
    embedder = HashEmbedder()
    memory = place.open(embedding_model=embedder, **OTHER)
    add(memory, "ok", "ok", "ok")
    assert memory.embeddings.embed_pending().embedded == 3
    add(memory, "ok")
    done = memory.embeddings.embed_pending()
    assert (done.embedded, done.cached) == (1, 1)
    assert texts(embedder) == ["ok"]
    clock.advance(8 * 86_400)
    add(memory, "ok")
    assert memory.embeddings.embed_pending().cached == 0


def test_what_is_removed_for_good_empties_the_cache(place: Any) -> None:
    memory = place.open(embedding_model=HashEmbedder(), **OTHER)
    add(memory, "a password")
    memory.embeddings.embed_pending()
    memory._rooms.meaning.query_vector("password?", deep=True)
    sql(memory, "DELETE FROM messages")
    with memory._rooms.database.read() as session:
        assert session.one("SELECT count(*) FROM embedding_cache") == (0,)


def test_the_offline_embedder_needs_no_cache(memory: Any) -> None:
    add(memory, "one")
    memory.embeddings.embed_pending()
    near(memory, "one")
    with memory._rooms.database.read() as session:
        assert session.one("SELECT count(*) FROM embedding_cache") == (0,)
        assert memory._rooms.database.vectors.count(session, shelf_of(memory)) == 1
