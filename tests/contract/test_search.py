"""Search over messages: any spelling finds it, nothing raises, newer wins only between equals."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smara.errors import InvalidInputError

DAY_MS = 86_400_000


def contents(answer):
    return [hit.content for hit in answer]


# Ruling 14: spellings


SPELLINGS = [
    "refresh_tokens",
    "refreshTokens",
    "RefreshTokens",
    "refresh-tokens",
    "REFRESH_TOKENS",
    "refresh tokens",
]


@pytest.mark.parametrize("written", SPELLINGS)
def test_every_spelling_of_a_name_is_found_by_every_other(memory, say, written):
    added = say(f"we rotate the {written} hourly")
    say("nothing of the kind here", thread_id="other")
    missed = [
        asked for asked in SPELLINGS if [hit.id for hit in memory.search(asked)] != [added.id]
    ]
    assert missed == []


@pytest.mark.parametrize(
    "asked", ["refresh", "tokens", "token", "Refresh", "refreshed", "refreshing"]
)
def test_a_name_is_found_by_its_parts_and_their_forms(memory, say, asked):
    added = say("call refreshTokens() again")
    assert [hit.id for hit in memory.search(asked)] == [added.id]


@pytest.mark.parametrize(
    "asked",
    ["auth.ts", "src/lib/auth.ts", "lib/auth.ts", "auth", "lib", "AUTH.TS", "src\\lib\\auth.ts"],
)
def test_a_path_is_found_whole_and_by_its_parts(memory, say, asked):
    added = say("look at src/lib/auth.ts:42 first")
    assert added.id in [hit.id for hit in memory.search(asked)]


@pytest.mark.parametrize(
    "asked",
    [
        "smara.core.text",
        "core.text",
        "HTTPServer",
        "http server",
        "E0382",
        "v3.11.7",
        "3.11.7",
        "3.11",
    ],
)
def test_dotted_names_acronyms_codes_and_versions_are_found(memory, say, asked):
    added = say("smara.core.text and HTTPServer fail with E0382 on Python v3.11.7")
    assert [hit.id for hit in memory.search(asked)] == [added.id]


@pytest.mark.parametrize("asked", ["重跑", "测试", "跑测", "重跑测试", "重", "テスト", "테스트"])
def test_words_of_scripts_without_spaces_are_found_inside_a_sentence(memory, say, asked):
    added = say("请重跑测试 テストを実行する 테스트를 실행")
    assert [hit.id for hit in memory.search(asked)] == [added.id]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("café", "cafe"),
        ("cafe", "café"),
        ("naïve", "naive"),
        ("Straße", "strasse"),
        ("Ｆｕｌｌ", "full"),
        ("E\u0301cole", "école"),
    ],
)
def test_accents_width_and_composition_make_no_difference(memory, say, written, asked):
    added = say(f"the {written} parser")
    assert [hit.id for hit in memory.search(asked)] == [added.id]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("parsing", "parse"),
        ("migrations", "migration"),
        ("failed", "failing"),
        ("queries", "query"),
    ],
)
def test_prose_is_found_by_another_form_of_the_word(memory, say, written, asked):
    added = say(f"about {written} again")
    assert [hit.id for hit in memory.search(asked)] == [added.id]


@pytest.mark.parametrize("asked", ["fresh_tok", "RefreshTok", "authenticat", "thenticateUs"])
def test_a_fragment_of_a_name_finds_it(memory, say, asked):
    added = say("refresh_tokens and authenticateUser")
    assert added.id in [hit.id for hit in memory.search(asked)]


def test_a_question_finds_the_message_that_answers_it(memory, say):
    say("Lunch was nice, thanks for asking.")
    added = say(
        "The session cookie expires after 15 minutes because of SESSION_TTL.", role="assistant"
    )
    say("Let us talk about the weather instead.")
    assert memory.search("When does the session cookie expire, and why?")[0].id == added.id


def test_the_arguments_and_results_of_tools_are_found(memory, say):
    call = say(
        [{"type": "tool_call", "name": "Bash", "arguments": {"command": "pytest --walrus"}}],
        role="assistant",
    )
    result = say([{"type": "tool_result", "text": "2 zebras failed"}], role="tool")
    assert [memory.search("walrus")[0].id, memory.search("zebra")[0].id] == [call.id, result.id]


def test_a_word_at_the_end_of_a_very_long_message_is_found(memory, say):
    added = say("padding words here " * 5_000 + "walrus")
    hit = memory.search("walrus")[0]
    assert hit.id == added.id
    assert "walrus" in hit.snippet
    assert len(memory.search("walrus padding")) == 1


# order


def test_more_of_the_question_ranks_higher(memory, say):
    say("the walrus")
    both = say("the walrus and the zebra")
    say("the zebra")
    assert memory.search("walrus zebra")[0].id == both.id


def test_a_rare_word_counts_for_more_than_a_common_one(memory, say):
    for number in range(12):
        say(f"the parser again, part {number}")
    rare = say("the walrus again")
    say("the parser once more")
    assert memory.search("parser walrus")[0].id == rare.id


def test_a_phrase_in_quotes_ranks_the_words_that_stand_together_first(memory, say):
    say("the pool has no connection to the server; connection refused, pool empty")
    phrase = say("use a connection pool here")
    say("a pool, and far from it a lonely connection")
    assert memory.search('"connection pool"')[0].id == phrase.id


def test_between_equal_matches_the_newer_comes_first(memory, say, clock):
    say("the walrus sings", thread_id="a")
    clock.advance(40 * 86_400)
    newer = say("the walrus sings", thread_id="b")
    clock.advance(86_400)
    assert memory.search("walrus sings")[0].id == newer.id


def test_a_clear_match_from_last_year_beats_a_vague_one_from_today(memory, say, clock):
    old = say("refresh_tokens rotate in src/auth/session.ts after login", thread_id="old")
    clock.advance(365 * 86_400)
    for number in range(5):
        say(f"a login today, number {number}", thread_id="new")
    assert memory.search("how do refresh_tokens rotate after login")[0].id == old.id


def test_a_message_from_the_future_does_not_break_the_order(memory, say, clock):
    say("the walrus sings", thread_id="a", created_at=clock.now_ms() + 3_650 * DAY_MS)
    strong = say("the walrus sings to the zebra", thread_id="b")
    assert memory.search("walrus zebra")[0].id == strong.id


def test_the_same_question_gives_the_same_answer(memory, fill):
    fill(40)
    assert list(memory.search("message number 7")) == list(memory.search("message number 7"))


# shape


def test_a_hit_has_the_shape_of_the_specification(memory, say, clock):
    say("before")
    added = say(
        "the walrus in `parse_header`",
        role="assistant",
        task_id="T1",
        client_id="c1",
        metadata={"k": 1},
        resource_id=None,
    )
    say("after")
    hit = memory.search("walrus")[0]
    assert (hit.id, hit.source, hit.content, hit.rank) == (added.id, "raw", added.raw_content, 1)
    assert (hit.thread_id, hit.resource_id, hit.role, hit.seq) == ("t", "default", "assistant", 2)
    assert (hit.task_id, hit.client_id, hit.metadata, hit.created_at) == (
        "T1",
        "c1",
        {"k": 1},
        clock.now_ms(),
    )


def test_ranks_count_from_one_and_scores_fall_from_at_most_one_to_above_zero(memory, fill):
    fill(20)
    answer = memory.search("message number 3", limit=20)
    scores = [hit.score for hit in answer]
    assert [hit.rank for hit in answer] == list(range(1, len(answer) + 1))
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[-1] <= scores[0] <= 1


def test_every_hit_says_why_in_words(memory, say):
    say("the walrus in parse_header")
    hit = memory.search("walrus parse_header")[0]
    assert hit.why
    assert all(isinstance(reason, str) and reason for reason in hit.why)
    assert "walrus" in " ".join(hit.why)


def test_a_snippet_is_short_and_shows_the_words(memory, say):
    say("padding " * 300 + "the walrus sings " + "padding " * 300)
    hit = memory.search("walrus sings")[0]
    assert "walrus sings" in hit.snippet
    assert len(hit.snippet) < 400


def test_highlights_are_the_places_of_the_words_in_the_content(memory, say):
    say("a walrus, refreshTokens and a Walrus")
    hit = memory.search("walrus refresh_tokens")[0]
    assert [hit.content[start:end] for start, end in hit.highlights] == [
        "walrus",
        "refreshTokens",
        "Walrus",
    ]


def test_a_hit_comes_with_its_neighbors_when_they_are_asked_for(memory, say):
    say("what about it?")
    say("the walrus", role="assistant")
    say("thanks")
    hit = memory.search("walrus", neighbors=1)[0]
    assert [neighbor.content for neighbor in (*hit.before, *hit.after)] == [
        "what about it?",
        "thanks",
    ]


def test_neighbors_stay_within_the_thread(memory, say):
    say("elsewhere", thread_id="other")
    say("the walrus", thread_id="t")
    say("elsewhere again", thread_id="other")
    hit = memory.search("walrus", neighbors=2)[0]
    assert (hit.before, hit.after) == ((), ())


def test_a_message_that_answers_only_through_its_neighbor_is_beside_it_not_instead_of_it(
    memory, say
):
    question = say("where does the walrus live?")
    say("In the sea.", role="assistant")
    assert memory.search("walrus")[0].id == question.id


def test_limit_bounds_the_hits_and_not_the_total(memory, fill):
    fill(25)
    answer = memory.search("message", limit=3)
    assert (len(answer), answer.total_hits) == (3, 25)


def test_an_answer_is_a_sequence(memory, fill):
    fill(5)
    answer = memory.search("message")
    assert (len(answer), answer[0].rank, [hit.rank for hit in answer[1:3]]) == (5, 1, [2, 3])
    assert list(memory.search("walrus")) == []


def test_a_limit_that_is_no_number_from_one_is_refused(memory):
    for bad in (0, -1, 10**6, "ten"):
        with pytest.raises(InvalidInputError, match="limit"):
            memory.search("walrus", limit=bad)


# filters


@pytest.fixture
def zoo(memory, say, clock):
    """Six messages about a walrus, each different in one thing."""
    start = clock.now_ms()
    say("walrus one", thread_id="a", resource_id="ann", created_at=start)
    say("walrus two", thread_id="a", role="assistant", created_at=start + DAY_MS)
    say(
        "walrus three",
        thread_id="b",
        resource_id="bob",
        task_id="T1",
        created_at=start + 2 * DAY_MS,
    )
    say("walrus four", thread_id="b", role="tool", created_at=start + 3 * DAY_MS)
    clock.advance(4 * 86_400)
    return start


def found(memory, **filters):
    return {hit.content.removeprefix("walrus ") for hit in memory.search("walrus", **filters)}


def test_search_filters_by_thread_resource_and_task(memory, zoo):
    assert found(memory, thread_id="a") == {"one", "two"}
    assert found(memory, resource_id="bob") == {"three", "four"}
    assert found(memory, task_id="T1") == {"three"}
    assert found(memory, thread_id="nowhere") == found(memory, task_id="T9") == set()


def test_search_filters_by_one_role_or_several(memory, zoo):
    assert found(memory, role="assistant") == {"two"}
    assert found(memory, role=["assistant", "tool"]) == {"two", "four"}


def test_search_filters_by_time(memory, zoo):
    assert found(memory, since=zoo + DAY_MS // 2) == {"two", "three", "four"}
    assert found(memory, until=zoo + DAY_MS + 1) == {"one", "two"}
    assert found(memory, since=zoo + DAY_MS // 2, until=zoo + 2 * DAY_MS + 1) == {"two", "three"}


def test_a_filter_that_nothing_can_match_finds_nothing_or_is_refused(memory, zoo):
    for odd in ("\x00", "lone \ud800", "x" * 10_000, "'", "%", '"'):
        for name in ("thread_id", "resource_id", "task_id"):
            with suppress(InvalidInputError):
                assert found(memory, **{name: odd}) == set()


def test_filters_are_combined(memory, zoo):
    assert found(memory, thread_id="b", role="user", since=zoo) == {"three"}
    assert found(memory, thread_id="a", resource_id="bob") == set()


def test_a_filter_narrows_the_total_too(memory, zoo):
    assert memory.search("walrus", thread_id="a").total_hits == 2


def test_sources_choose_between_whole_and_compacted_messages(memory, zoo):
    memory.compactions.compact("a")
    assert found(memory, sources=["compacted"]) == {"one", "two"}
    assert found(memory, sources=["raw"]) == {"three", "four"}
    assert (
        found(memory, sources=["messages"])
        == found(memory, sources=["raw", "compacted"])
        == found(memory)
    )


def test_an_unknown_source_is_refused_with_the_known_ones(memory):
    with pytest.raises(InvalidInputError, match="messages"):
        memory.search("walrus", sources=["dreams"])


def test_a_filter_finds_an_old_message_among_many_newer_ones(memory, say, fill):
    old = say("the walrus message", thread_id="old", resource_id="ann", task_id="T1")
    fill(300, "new")
    assert [hit.id for hit in memory.search("message", resource_id="ann")] == [old.id]
    assert [hit.id for hit in memory.search("message", task_id="T1")] == [old.id]
    assert [hit.id for hit in memory.search("message", thread_id="old")] == [old.id]


# threads and completion


def test_threads_are_found_by_what_was_said_in_them(memory, say):
    say("about the zebra", thread_id="a")
    say("the walrus sings", thread_id="b")
    say("the walrus sleeps", thread_id="b")
    hits = memory.search_threads("walrus")
    assert [(hit.thread_id, hit.rank) for hit in hits] == [("b", 1)]
    assert hits[0].score > 0
    assert hits[0].why


def test_threads_are_ranked_and_limited(memory, say):
    for number in range(6):
        say(f"the walrus {number}", thread_id=f"t{number}")
    say("the walrus and the zebra", thread_id="best")
    hits = memory.search_threads("walrus zebra", limit=3)
    assert (len(hits), hits[0].thread_id) == (3, "best")


def test_a_prefix_is_completed_to_the_words_and_names_that_were_said(memory, say):
    say("refresh_tokens in src/auth.ts, and refreshing it")
    assert set(memory.complete("refr")) == {"refreshing", "refresh_tokens"}
    assert memory.complete("REFRESH_T") == ["refresh_tokens"]
    assert memory.complete("zzz") == []


def test_completion_is_limited_and_shows_the_shortest_first(memory, say):
    say("walrus walruses walnut walnuts wallaby")
    assert memory.complete("wal", limit=2) == ["walnut", "walrus"]


def test_completion_takes_any_text(memory, say):
    say("50% of a_b")
    for prefix in ("", " ", "%", "_", "'", '"', "\\", "\x00", "\ud800", "重", "x" * 1_000):
        assert isinstance(memory.complete(prefix), list)


# Ruling 16: no query can raise


HOSTILE = [
    "", " ", "\n", '"', '""', '"unclosed', "'", "''", "*", "a*", "^a", "(", ")", "()", "a AND",
    "AND", "OR", "NOT",
    "NEAR(a b)",
    "a NEAR/2 b", "content:walrus", "{a b}: c", "-walrus", "+walrus", "walrus;",
    "'; DROP TABLE messages; --", "%",
    "_", "\\",
    "\x00", "wal\x00rus", "\ud800", "walrus \udfff", "👩‍👩‍👧", "\u202e", "a:b:c", "&", "|", "!",
    "<->", "a & b | !c", ":*",
    "walrus:*",
    "$1", "?", "%s", ":project", "0", "-1", "1e309", "NULL", "true", "x" * 10_000,
    "walrus " * 5_000,
    " ".join(f"w{number}" for number in range(500)), "重" * 2_000, "a.b" * 3_000, "((((" * 500,
    "\ufdd0",
    "e\u0301" * 500,
]  # fmt: skip


def test_no_hostile_query_raises_or_finds_what_is_not_there(memory, say):
    say("the walrus")
    for query in HOSTILE:
        answer = memory.search(query)
        assert len(answer) <= 1
        assert len(memory.search_threads(query)) <= 1


def test_a_query_without_words_finds_nothing(memory, say):
    say("the walrus")
    for query in ("", "   ", "!?", '""', "()"):
        assert list(memory.search(query)) == []


def test_operators_are_words_and_nothing_else(memory, say):
    added = say("the walrus")
    for query in (
        "walrus OR",
        "walrus AND nothing",
        "walrus NOT walrus",
        "walrus NEAR(zebra)",
        "walrus*",
        "content : walrus",
        "^walrus",
    ):
        assert added.id in [hit.id for hit in memory.search(query)]


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text_is_a_query(memory, query):
    answer = memory.search(query)
    assert answer.total_hits == len(answer) == 0


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.text(st.characters(categories=("Ll", "Lu", "Nd")), min_size=3, max_size=12))
def test_any_word_that_was_said_is_found(memory, say, word):
    added = say(f"{word} was said", thread_id="words")
    assert added.id in [hit.id for hit in memory.search(word, limit=1_000)]


def test_a_query_of_very_many_words_still_finds(memory, say):
    added = say("the walrus of parse_header")
    query = "walrus parse_header " + " ".join(f"other{number}" for number in range(300))
    assert [hit.id for hit in memory.search(query)] == [added.id]


def test_stop_words_alone_find_what_holds_them(memory, say):
    added = say("to be or not to be")
    assert [hit.id for hit in memory.search("to be or not to be")] == [added.id]


# always up to date


def test_a_message_is_found_as_soon_as_it_is_added(memory, say, open_again):
    other = open_again()
    assert list(other.search("walrus")) == []
    added = say("the walrus")
    assert [hit.id for hit in other.search("walrus")] == [added.id]


def test_a_message_is_found_after_reopening(memory, say, open_again):
    added = say("the walrus")
    memory.close()
    again = open_again()
    assert [hit.id for hit in again.search("walrus")] == [added.id]
    assert again.complete("walr") == ["walrus"]


def test_a_refused_batch_is_not_found(memory, say):
    with pytest.raises(InvalidInputError):
        memory.messages.add_many(
            thread_id="t",
            messages=[{"role": "user", "content": "walrus"}, {"role": "robot", "content": "x"}],
        )
    assert (list(memory.search("walrus")), memory.complete("walr")) == ([], [])


def test_an_empty_memory_finds_nothing(memory):
    answer = memory.search("walrus")
    assert (
        list(answer),
        answer.total_hits,
        list(memory.search_threads("walrus")),
        memory.complete("wal"),
    ) == ([], 0, [], [])
