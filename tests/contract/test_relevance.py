"""A score means the same in every answer, and nothing found is an answer, with what is nearest
apart.
"""

from __future__ import annotations

import pytest

from smara.errors import InvalidInputError
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE

TALK = (
    "The session cookie expires after fifteen minutes.",
    "Compile log: gcc -O2 -c main.c, warning about an unused variable.",
    "Directory listing: src tests docs README.md",
    "We deploy to staging with docker compose every evening.",
    "cutoff_us is the cutoff in microseconds",
    "Retry three times, then give up.",
    "我们决定在连接失败时重试三次，然后放弃。",
    "データベースは毎晩バックアップされます",
    "Melanie wants the LoginForm in blue.",
)


@pytest.fixture
def talk(memory):
    messages = [
        {"role": "user" if place % 2 else "assistant", "content": text}
        for place, text in enumerate(TALK)
    ]
    fillers = [
        f"Lunch {number} was nice, the weather in week {number} too." for number in range(150)
    ]
    messages += [{"role": "user", "content": text} for text in fillers]
    memory.messages.add_many(thread_id="talk", messages=messages)
    memory.memories.remember("Redis must run before the tests start.")
    memory.tasks.add("Fix the login redirect", description="It loops after the cookie expires.")
    memory.embeddings.embed_pending()
    return memory


@pytest.mark.parametrize(
    "query",
    [
        "zxqvbnm",
        "enticateUs",
        "LoginSchema",
        "bitcoin wallet",
        "quantum chromodynamics lagrangian",
        "When did Caroline buy the sunrise painting in Paris?",
        "量子力学",
    ],
)
def test_what_is_not_here_is_not_found(talk, query):
    answer = talk.search(query)
    assert (list(answer), answer.total_hits) == ([], 0)
    assert len(answer.nearest) <= 3
    assert not talk.search_threads(query)


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("gcc", "Compile log"),
        ("cutoff", "cutoff_us"),
        ("docker", "docker compose"),
        ("when does the session cookie expire", "fifteen minutes"),
        ("重试", "重试三次"),
        ("连接失败怎么办", "连接失败"),
        ("データベースのバックアップはいつですか", "毎晩バックアップ"),
        ("redis", "Redis must run"),
        ("login redirect", "Fix the login"),
    ],
)
def test_what_is_here_is_found(talk, query, part):
    answer = talk.search(query)
    assert part in answer[0].content
    assert answer.nearest == ()
    assert answer.total_hits >= len(answer) > 0


def test_score_tells_a_good_answer_from_a_poor_one_of_another_query(talk):
    good = talk.search("session cookie expires")[0].score
    poor = talk.search("session keys of the payment gateway")
    assert good > 0.9
    assert all(hit.score < 0.5 for hit in (*poor, *poor.nearest))


def test_nearest_is_shown_apart_with_its_low_score(talk):
    answer = talk.search("LoginSchema")
    assert not answer
    assert any("LoginForm" in hit.content for hit in answer.nearest)
    assert all(hit.score < 0.04 for hit in answer.nearest)


def test_parts_of_a_name_in_different_texts_are_not_the_name(talk):
    """Of a store that says login here and schema there, nothing is about LoginSchema."""
    for text in ("The schema of the users table changed in May.", *["Lunch was late."] * 5):
        talk.messages.add(thread_id="talk", role="user", content=text)
    talk.messages.add(thread_id="talk", role="user", content="We login with a cookie.")
    talk.memories.remember("Schema changes need a migration.")
    talk.embeddings.embed_pending()
    for query in ("LoginSchema", "what does LoginSchema do", "LoginSchema.validate"):
        assert not talk.search(query)
        assert not talk.search_memories(query)
    assert "users table" in talk.search("UserSchema")[0].content


def test_score_is_that_of_the_hit_itself_whatever_ranks_below_it(talk):
    """A memory that ranks higher for its trust is not lent the score of a better hit below it."""
    said = "The nightly backup of the orders table runs at four."
    talk.messages.add(thread_id="talk", role="assistant", content=said)
    talk.memories.remember("The nightly backup of orders is slow.")
    talk.memories.remember("Backup of tables goes to the vault.")
    talk.embeddings.embed_pending()
    score = {hit.content: hit.score for hit in talk.search("nightly backup orders table")}
    assert score[said] > 0.95
    assert score["Backup of tables goes to the vault."] < 0.9


def test_threads_and_observations_name_what_is_nearest(talk):
    threads = talk.search_threads("LoginSchema")
    assert not threads
    assert [hit.thread_id for hit in threads.nearest] == ["talk"]
    assert all(hit.score < 0.04 for hit in threads.nearest)
    talk.messages.add(thread_id="notes", role="user", content="We decided: LoginForm stays blue.")
    talk.observations.observe("notes")
    notes = talk.search_observations("LoginSchema")
    assert not notes
    assert "LoginForm" in notes.nearest[0].observation.text


def test_everything_ranked_is_shown_if_it_is_asked_for(talk):
    assert len(talk.search("LoginSchema", min_score=0.0)) > 0
    assert len(talk.search("session cookie", min_score=1.0)) == 0
    with pytest.raises(InvalidInputError, match="min_score"):
        talk.search("walrus", min_score=2)


def test_total_counts_what_is_relevant_and_not_what_shares_a_word(talk):
    """The weather of 150 messages does not make them answers about the cookie."""
    answer = talk.search("session cookie expires, whatever the weather")
    assert "cookie" in answer[0].content
    assert answer.total_hits < 10


def test_records_of_one_kind_say_nothing_found_too(talk):
    tasks = talk.search_tasks("upgrade LoginSchema of the walrus redirect service in Paris")
    assert (list(tasks), tasks.total_hits) == ([], 0)
    assert [hit.task.title for hit in tasks.nearest] == ["Fix the login redirect"]
    memories = talk.search_memories("who paints tests in Paris with Caroline, the walrus of Rome")
    assert (list(memories), memories.total_hits) == ([], 0)
    assert [hit.memory.content for hit in memories.nearest] == [
        "Redis must run before the tests start."
    ]


def test_a_date_in_a_question_needs_not_be_said_in_its_answer(talk):
    answer = talk.search("When did we deploy to staging with docker on 3 March 2023?")
    assert "docker compose" in answer[0].content


def test_a_word_that_is_missing_weighs_little_among_few_texts(memory):
    memory.messages.add(thread_id="t", role="assistant", content="Retry three times, then give up.")
    memory.embeddings.embed_pending()
    assert len(memory.search("what is the retry policy?")) == 1


def test_code_is_looked_through_where_nothing_remembered_is_relevant(talk, tmp_path):
    (tmp_path / "wallet.py").write_text(
        'def bitcoin_wallet():\n    """Open the bitcoin wallet."""\n'
    )
    talk.code.index(tmp_path)
    assert [hit.source for hit in talk.search("bitcoin wallet")] == ["code"]
