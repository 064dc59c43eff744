"""Search over tasks: titles, descriptions, summaries and labels, whatever became of the task; no
query raises.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smara.errors import InvalidInputError
from tests.contract.both import EACH_DATABASE
from tests.contract.task_place import titles
from tests.contract.test_search import HOSTILE

pytestmark = EACH_DATABASE

TOKENS = "Mend refresh_tokens in src/auth.ts"


def found(memory, query, **given_filter):
    return titles(hit.task for hit in memory.search_tasks(query, **given_filter).hits)


@pytest.fixture
def trackers(memory):
    """Four tasks, each about something else."""
    tasks = memory.tasks
    tasks.add(TOKENS, description="The walrus token expires too early.", type="bug")
    tasks.add("Paint the door", labels=["carpentry"])
    closed = tasks.add("Hang the gate", description="It stands in the garden.")
    tasks.close(closed.id, "The pelican hinge was upside down.")
    tasks.add("重跑测试", description="Nach dem Umzug sind alle Prüfungen rot: Größenänderung.")
    return memory


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("refresh tokens", TOKENS), ("refreshTokens", TOKENS), ("auth.ts", TOKENS), ("walrus",
        TOKENS),
        ("painting doors", "Paint the door"), ("carpentry", "Paint the door"), ("garden",
        "Hang the gate"),
        ("pelican", "Hang the gate"), ("重跑", "重跑测试"), ("grossenanderung", "重跑测试"), ("Prüfungen",  # noqa: E501
        "重跑测试"),
    ],
)  # fmt: skip
def test_a_task_is_found_by_the_words_of_its_title_description_labels_and_summary(
    trackers, query, title
):
    assert found(trackers, query)[0] == title


def test_a_hit_has_its_task_its_rank_and_reasons(trackers):
    answer = trackers.search_tasks("walrus door gate")
    assert [hit.rank for hit in answer.hits] == [1, 2, 3]
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    for hit in answer.hits:
        assert hit.task == trackers.tasks.get(hit.task.id)
        assert hit.why
        assert hit.snippet.strip()
        assert tuple(hit.messages) == ()


def test_a_snippet_shows_the_words(memory):
    memory.tasks.add(
        "Long", description="nothing here. " * 500 + "the walrus sings. " + "nothing there. " * 500
    )
    (hit,) = memory.search_tasks("walrus").hits
    assert "walrus" in hit.snippet
    assert len(hit.snippet) < 1_000


def test_three_hits_are_shown_and_all_are_counted(memory):
    for number in range(7):
        memory.tasks.add(f"the walrus number {number}")
    answer = memory.search_tasks("walrus")
    assert (len(answer.hits), answer.total_hits) == (3, 7)
    assert len(memory.search_tasks("walrus", limit=5).hits) == 5
    assert len(memory.search_tasks("walrus", limit=100).hits) == 7


def test_a_search_can_be_narrowed_to_a_status(memory):
    tasks = memory.tasks
    tasks.add("walrus open")
    tasks.claim(tasks.add("walrus held").id, session_id="s1")
    tasks.close(tasks.add("walrus closed").id, "done")
    for status, title in (
        ("open", "walrus open"),
        ("in_progress", "walrus held"),
        ("closed", "walrus closed"),
    ):
        answer = memory.search_tasks("walrus", status=status)
        assert (titles(hit.task for hit in answer.hits), answer.total_hits) == ([title], 1)
    assert len(found(memory, "walrus")) == 3


def test_a_match_in_the_title_comes_before_one_far_down_in_a_text(memory):
    memory.tasks.add("Something else", description="word " * 400 + "the walrus")
    memory.tasks.add("The walrus")
    assert found(memory, "walrus") == ["The walrus", "Something else"]


def test_more_of_the_question_ranks_higher(memory):
    memory.tasks.add("the walrus")
    memory.tasks.add("the walrus sings at midnight")
    memory.tasks.add("midnight")
    assert found(memory, "walrus midnight")[0] == "the walrus sings at midnight"


def test_a_task_is_found_by_its_short_id(memory):
    added = memory.tasks.add("Mend the door")
    memory.tasks.add("Another")
    assert found(memory, added.short_id)[:1] == ["Mend the door"]


def test_a_task_is_found_by_its_new_words_and_no_longer_by_the_old(memory):
    added = memory.tasks.add("the walrus", description="a pelican", labels=["zebra"])
    memory.tasks.update(added.id, title="the heron", description="an otter", labels=["lynx"])
    assert [found(memory, word) for word in ("heron", "otter", "lynx")] == [["the heron"]] * 3
    assert [found(memory, word) for word in ("walrus", "pelican", "zebra")] == [[]] * 3
    memory.tasks.undo(added.id)
    assert found(memory, "walrus") == ["the walrus"]
    assert found(memory, "heron") == []


def test_a_task_is_found_as_soon_as_it_is_added_and_after_reopening(memory, open_again):
    memory.tasks.add("the walrus")
    assert found(open_again(), "walrus") == ["the walrus"]
    memory.close()
    assert found(open_again(), "walrus") == ["the walrus"]


def test_a_word_at_the_end_of_a_very_long_description_is_found(memory):
    memory.tasks.add("x", description="filling words " * 70_000 + "zebrafinch")
    assert found(memory, "zebrafinch") == ["x"]


def test_messages_of_a_task_are_shown_when_they_are_asked_for(memory, say):
    added = memory.links.claim(memory.tasks.add("Mend the door").id, thread_id="t", session_id="s1")
    said = say("the hinge of the door is bent")
    say("something elsewhere about the door", thread_id="u")
    assert tuple(memory.search_tasks("door").hits[0].messages) == ()
    (hit,) = memory.search_tasks("door", include_messages=True).hits
    assert hit.task.id == added.id
    assert said.id in repr(hit.messages)
    assert "something elsewhere" not in repr(hit.messages)


def test_tasks_are_no_messages(memory, say):
    memory.tasks.add("the walrus task")
    said = say("the walrus message")
    assert [hit.id for hit in memory.search("walrus") if hit.source == "raw"] == [said.id]
    assert found(memory, "walrus") == ["the walrus task"]


def test_no_hostile_query_raises_or_finds_what_is_not_there(memory):
    memory.tasks.add("the walrus")
    for query in HOSTILE:
        assert len(memory.search_tasks(query).hits) <= 1


def test_a_query_without_words_finds_nothing(memory):
    memory.tasks.add("the walrus")
    for query in ("", "   ", "!?", '""', "()"):
        answer = memory.search_tasks(query)
        assert (list(answer.hits), answer.total_hits) == ([], 0)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_is_a_query(memory, query):
    assert memory.search_tasks(query).total_hits == 0


def test_a_limit_that_is_no_number_from_one_is_refused(memory):
    for wrong in (0, -1):
        with pytest.raises(InvalidInputError):
            memory.search_tasks("walrus", limit=wrong)


def test_the_same_question_gives_the_same_answer(memory):
    for number in range(12):
        memory.tasks.add(f"the walrus {number % 3}")
    answers = [
        [hit.task.id for hit in memory.search_tasks("walrus", limit=12).hits] for _ in range(3)
    ]
    assert answers[0] == answers[1] == answers[2]
