"""The rows nearest to a question: the same ones in the same order on every database, however many
there are.
"""

from __future__ import annotations

import random
import threading
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from smara.database.fulltext import Within
from smara.meaning.nearest import Nearest
from smara.testing import FakeClock, HashEmbedder
from tests.contract.both import EACH_DATABASE
from tests.contract.embedding import OTHER, contents, near, shelf_of, unavailable, vectors

pytestmark = EACH_DATABASE

WORDS = (
    "cat", "dog", "fox", "door", "window", "river", "stone", "tree", "cloud", "rain", "snow",
    "wind", "fire", "lamp",
    "chair", "table",
)  # fmt: skip


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def memory(place: Any, embedder: HashEmbedder) -> Any:
    return place.open(embedding_model=embedder)


def sentences(count: int) -> list[str]:
    """Texts of three or four words each, no two alike in a row, the same every time."""
    step = [1, 3, 5, 7]
    return [
        " ".join(
            WORDS[(number * factor + number // 16) % len(WORDS)]
            for factor in step[: 3 + number % 2]
        )
        for number in range(count)
    ]


def fill(memory: Any, texts: Sequence[str], **given: Any) -> None:
    wanted = [
        {"role": "user" if number % 2 else "assistant", "content": text}
        for number, text in enumerate(texts)
    ]
    memory.messages.add_many(**{"thread_id": "t", **given}, messages=wanted)
    assert memory.embeddings.embed_pending().is_done


def brute_force(
    embedder: HashEmbedder, texts: Sequence[str], question: str, limit: int
) -> list[str]:
    """The nearest texts by plain numbers, of equals the last written first."""
    scores = embedder.embed(list(texts)).astype(np.float64) @ embedder.embed([question])[0].astype(
        np.float64
    )
    order = sorted(range(len(texts)), key=lambda place: (-round(float(scores[place]), 3), -place))
    return [texts[place] for place in order[:limit]]


def test_the_nearest_rows_are_those_that_plain_arithmetic_finds(
    memory: Any, embedder: HashEmbedder
) -> None:
    texts = sentences(300)
    fill(memory, texts)
    for question in ("cat river", "snow and fire", "chair table lamp", "stone stone stone"):
        assert contents(memory, near(memory, question, 8)) == brute_force(
            embedder, texts, question, limit=8
        ), question


def test_equally_near_rows_come_newest_first(memory: Any) -> None:
    fill(memory, ["cat dog"] * 40)
    rows = near(memory, "cat", 40)
    assert rows == sorted(rows, reverse=True)
    assert near(memory, "cat", 7) == rows[:7]


def test_a_large_shelf_searched_by_signs_gives_the_answer_of_the_exact_search(memory: Any) -> None:
    fill(memory, sentences(700))
    exact = {
        question: near(memory, question, 10)
        for question in ("cat river", "wind", "door window tree")
    }
    memory._rooms.meaning._nearest = Nearest(memory._rooms.database, exact_up_to=0)
    assert {question: near(memory, question, 10) for question in exact} == exact


@pytest.mark.parametrize("exact_up_to", [0, 10**9])
def test_what_another_process_writes_changes_or_removes_is_seen_by_the_next_question(
    place: Any, memory: Any, exact_up_to: int
) -> None:
    fill(memory, ["cat one", "cat two", "dog three"])
    other = place.open(embedding_model=HashEmbedder())
    other._rooms.meaning._nearest = Nearest(other._rooms.database, exact_up_to=exact_up_to)
    assert len(near(other, "cat", 9)) == 3
    fill(memory, ["cat"], thread_id="u")
    assert contents(other, near(other, "cat", 1)) == ["cat"]
    with memory._rooms.database.write() as session:
        session.run("DELETE FROM messages WHERE raw_content = 'cat'")
    assert "cat" not in contents(other, near(other, "cat", 9))
    assert len(near(other, "cat", 9)) == 3


def test_scores_are_given_for_rows_that_have_vectors_alone(memory: Any) -> None:
    fill(memory, ["cat", "dog"])
    cat, dog = sorted(vectors(memory))
    vector, _ = memory._rooms.meaning.query_vector("cat", deep=True)
    with memory._rooms.database.read() as session:
        scores = memory._rooms.meaning.scores(session, "message", [cat, dog, 99 << 16], vector)
        assert memory._rooms.meaning.scores(session, "message", [], vector) == {}
    assert set(scores) == {cat, dog}
    assert scores[cat] == pytest.approx(1.0, abs=0.001)
    assert scores[dog] < 0.5


def test_vectors_that_are_loaded_once_can_be_compared_with_several_questions(memory: Any) -> None:
    fill(memory, ["cat", "dog"])
    cat, dog = sorted(vectors(memory))
    vector, _ = memory._rooms.meaning.query_vector("cat", deep=True)
    with memory._rooms.database.read() as session:
        loaded = memory._rooms.meaning.load(session, "message", [dog, 5 << 16, cat], vector)
    assert set(loaded.scores(vector)) == {cat, dog}


def test_a_question_of_plain_numbers_has_the_answer_of_an_array(memory: Any) -> None:
    fill(memory, sentences(300))
    meaning = memory._rooms.meaning
    vector, _ = meaning.query_vector("cat river", deep=True)
    plain = replace(vector, values=array("f", vector.values))
    within = Within(memory._rooms.scope.project_no, roles=("user",))
    with memory._rooms.database.read() as session:
        for scope in (None, within):
            found = meaning.nearest(session, "message", vector, 20, scope)
            assert meaning.nearest(session, "message", plain, 20, scope) == found
        rows = [row for row, _ in found]
        by_array = meaning.load(session, "message", rows, vector)
        by_bytes = meaning.load(session, "message", rows, plain)
    assert by_bytes.scores(plain) == by_array.scores(vector)
    moved, same = (
        loaded.moved(question, rows[:3], 0.5)
        for loaded, question in ((by_array, vector), (by_bytes, plain))
    )
    assert isinstance(same.values, array)
    assert list(same.values) == moved.values.tolist()


# inside a scope


@pytest.mark.parametrize("narrow", [0, 4_000])
def test_a_scope_is_kept_whether_it_is_listed_or_sieved(
    memory: Any, monkeypatch: Any, narrow: int
) -> None:
    monkeypatch.setattr("smara.meaning.query.NARROW", narrow)
    fill(memory, ["cat"] * 60, thread_id="a")
    fill(memory, ["cat", "cat", "dog"], thread_id="b", resource_id="ann")
    project = memory._rooms.scope.project_no
    with memory._rooms.database.read() as session:
        thread_no = memory._rooms.store.thread_no(session, "b")
    assert len(near(memory, "cat", 20, within=Within(project, thread_no=thread_no))) == 3
    assert len(near(memory, "cat", 20, within=Within(project, resource_id="ann"))) == 3
    assert len(near(memory, "cat", 99, within=Within(project, roles=("user",)))) == 31
    assert len(near(memory, "cat", 99, within=Within(project))) == 63


def test_times_are_kept(memory: Any, clock: FakeClock) -> None:
    fill(memory, ["cat", "dog"], thread_id="a")
    clock.advance(86_400)
    fill(memory, ["cat cat"], thread_id="b")
    project, now = memory._rooms.scope.project_no, clock.now_ms()
    assert contents(memory, near(memory, "cat", 9, within=Within(project, since_ms=now))) == [
        "cat cat"
    ]
    assert len(near(memory, "cat", 9, within=Within(project, until_ms=now))) == 2


# questions


def test_a_question_is_asked_of_the_model_once(memory: Any, embedder: HashEmbedder) -> None:
    fill(memory, ["cat"])
    for _ in range(3):
        near(memory, "where is the cat")
    assert [text for kind, text in embedder.asked if kind == "query"] == ["where is the cat"]


def test_a_question_is_remembered_for_other_processes_when_the_model_costs_something(
    place: Any,
) -> None:
    first, second = HashEmbedder(), HashEmbedder()
    memory, other = (place.open(embedding_model=each, **OTHER) for each in (first, second))
    fill(memory, ["cat", "dog"])
    assert near(memory, "a cat") == near(other, "a cat")
    assert ("query", "a cat") in first.asked
    assert second.asked == []


def test_without_vectors_without_embedder_and_without_words_it_says_so(
    place: Any, memory: Any
) -> None:
    assert memory._rooms.meaning.query_vector("cat")[0] is None
    assert "nothing has a vector yet" in memory._rooms.meaning.query_vector("cat", deep=True)[1]
    fill(memory, ["cat"])
    vector, note = memory._rooms.meaning.query_vector("?!")
    assert (vector, note) == (None, "not used: the model knows no word of the question")
    assert place.open(embedder="off")._rooms.meaning is None


def test_a_model_that_is_away_costs_the_answer_its_meaning_and_nothing_else(
    memory: Any, embedder: HashEmbedder
) -> None:
    fill(memory, ["cat"])
    embedder.error = unavailable()
    vector, note = memory._rooms.meaning.query_vector("a cat", deep=True)
    assert vector is None
    assert str(unavailable()) in note
    assert memory.search("cat")[0].content == "cat"


class Loading(HashEmbedder):
    """An embedder that is not loaded before it is told to be."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def embed(
        self, texts: Sequence[str], kind: Any = "document", *, deadline_seconds: float | None = None
    ) -> Any:
        assert kind == "document" or self.may_go_on.wait(600)
        return super().embed(texts, kind)


def test_a_question_does_not_wait_for_a_model_that_is_still_being_loaded(
    place: Any, clock: FakeClock
) -> None:
    embedder = Loading()
    memory = place.open(embedding_model=embedder, embed_query_seconds=0.5)
    fill(memory, ["cat"])
    answers: list[Any] = []
    asking = threading.Thread(
        target=lambda: answers.append(memory._rooms.meaning.query_vector("a cat"))
    )
    asking.start()
    assert clock.awaited()
    clock.advance(1)
    asking.join(600)
    assert answers == [(None, "not used: the embedder is still being loaded")]
    embedder.may_go_on.set()
    assert memory._rooms.meaning.query_vector("a cat", deep=True)[0] is not None


def test_vectors_that_cannot_be_read_cost_the_answer_its_meaning_and_nothing_else(
    place: Any, memory: Any
) -> None:
    fill(memory, ["a cat sleeps", "a dog barks"])
    with memory._rooms.database.write() as session:
        session.run("DROP TABLE vectors")
    other = place.open(embedding_model=HashEmbedder())
    assert next(hit.content for hit in other.search("cat sleeps")) == "a cat sleeps"


def test_a_secret_in_a_question_does_not_reach_the_model(
    memory: Any, embedder: HashEmbedder
) -> None:
    fill(memory, ["cat"])
    secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    memory._rooms.meaning.query_vector(f"who uses {secret}", deep=True)
    assert all(secret not in text for _, text in embedder.asked)


def test_a_search_finds_by_meaning_what_no_word_of_it_says(place: Any) -> None:
    memory = place.open()
    fill(
        memory,
        ["The cat sleeps on the sofa", "We deploy with docker containers", "Lunch is at noon"],
    )
    [first, *_] = memory.search("kittens that nap", deep=True)
    assert "cat" in first.content


def test_the_tables_of_a_shelf_that_outgrew_them_are_given_up(memory: Any) -> None:
    fill(memory, ["cat"] * 20)
    finder = Nearest(memory._rooms.database, exact_up_to=64 * 20, kept_up_to=0)
    vector, _ = memory._rooms.meaning.query_vector("cat", deep=True)
    with memory._rooms.database.read() as session:
        finder.find(session, shelf_of(memory), vector.values, 3)
        whole = finder.bytes()
    fill(memory, ["cat"])
    with memory._rooms.database.read() as session:
        assert len(finder.find(session, shelf_of(memory), vector.values, 30)) == 21
        assert len(finder._tables) == 1
        assert finder.bytes() < whole


def test_vectors_kept_in_memory_answer_as_those_in_the_database_do_whatever_happens_meanwhile(
    memory: Any,
) -> None:
    chance = random.Random(5)
    words = ["cat", "dog", "parser", "schema", "docker", "lunch", "noon", "token"]
    keeping = Nearest(memory._rooms.database, exact_up_to=0)
    reading = Nearest(memory._rooms.database, exact_up_to=0, kept_up_to=0)
    for _ in range(30):
        if chance.random() < 0.7:
            fill(
                memory, [" ".join(chance.sample(words, 3)) for _ in range(chance.randrange(1, 40))]
            )
        else:
            with memory._rooms.database.write() as session:
                session.run("DELETE FROM messages WHERE no % 7 = ?", (chance.randrange(7),))
        vector, _ = memory._rooms.meaning.query_vector(chance.choice(words), deep=True)
        with memory._rooms.database.read() as session:
            shelf = shelf_of(memory)
            wanted = [row << 16 for row in chance.sample(range(1, 400), 50)]
            assert keeping.find(session, shelf, vector.values, 20) == reading.find(
                session, shelf, vector.values, 20
            )
            assert keeping.scores(session, shelf, wanted, vector.values) == reading.scores(
                session, shelf, wanted, vector.values
            )
    assert memory._rooms.database.vectors.stamps_removals == any(
        is_whole for _, is_whole in keeping._tables
    )
    assert not any(is_whole for _, is_whole in reading._tables)
