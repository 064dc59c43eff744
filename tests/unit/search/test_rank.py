"""The order of an answer and the reasons given for it."""

from __future__ import annotations

import random
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from smara.core.text import analyze
from smara.database.database import Session
from smara.database.fulltext import Within
from smara.search.fuse import Closeness, rank_threads
from smara.search.query import analyze_query
from smara.search.rank import MessageCandidate, MessageScore, Ranking, Stats, rank_messages
from smara.search.weights import FusionWeights

DAY = 86_400_000
NOW = 1_800_000_000_000


def row(
    no: int,
    text: str,
    *,
    thread: int = 0,
    seq: int | None = None,
    role: str = "user",
    age_days: float = 0,
) -> MessageCandidate:
    """A row as the index keeps it. Without a thread of its own it stands alone, far from all
    others.
    """
    analysis = analyze(text)
    created_at = NOW - int(age_days * DAY)
    place = no * 10 if seq is None else seq
    return MessageCandidate(
        no,
        thread,
        place,
        role=role,
        created_at=created_at,
        prose=analysis.prose,
        code=analysis.code,
        length=analysis.length,
    )


def stats_of(rows: list[MessageCandidate], messages: int = 1_000) -> Stats:
    frequencies: dict[str, int] = {}
    for each in rows:
        for term in set(f"{each.prose} {each.code}".split()):
            frequencies[term] = frequencies.get(term, 0) + 1
    threads = len({each.thread_no for each in rows})
    average = sum(each.length for each in rows) / len(rows)
    return Stats(messages, max(threads, 50), average, frequencies=frequencies)


def ranked(
    query: str, rows: list[MessageCandidate], neighbors: list[MessageCandidate] | None = None
) -> list[MessageScore]:
    """The rows in order; ``neighbors`` lend their words and are left out of the answer."""
    beside = neighbors or []
    found = rank_messages(analyze_query(query), [*rows, *beside], stats_of(rows), now_ms=NOW)
    return [each for each in found if each.no not in {other.no for other in beside}]


def order(
    query: str, rows: list[MessageCandidate], neighbors: list[MessageCandidate] | None = None
) -> list[int]:
    return [each.no for each in ranked(query, rows, neighbors)]


def threads(query: str, rows: list[MessageCandidate], stats: Stats) -> list[MessageScore]:
    """The threads of the rows in order, by words alone."""
    ranking = Ranking(analyze_query(query), rows, stats, now_ms=NOW)
    unused = Closeness(cast("Session", None), None, None, within=Within(1))
    return rank_threads(ranking, unused, None, weights=FusionWeights(), limit=100)


def test_of_equal_matches_the_newer_comes_first() -> None:
    rows = [row(1, "the schema broke", age_days=20), row(2, "the schema broke", age_days=2)]
    assert order("schema", rows) == [2, 1]


def test_of_equal_matches_years_ago_the_newer_still_comes_first() -> None:
    rows = [row(1, "the schema broke", age_days=3000), row(2, "the schema broke", age_days=2999)]
    assert order("schema", rows) == [2, 1]


def test_clear_match_of_last_year_beats_vague_one_of_today() -> None:
    clear = row(1, "we decided to rotate refresh tokens in the login schema", age_days=365)
    vague = row(2, "let us rotate the picture", age_days=0)
    assert order("rotate refresh tokens login schema", [clear, vague]) == [1, 2]


def test_recency_never_adds_more_than_a_few_percent() -> None:
    first, second = ranked(
        "schema", [row(1, "the schema broke"), row(2, "the schema broke", age_days=3650)]
    )
    assert first.score == 1
    assert 0.95 < second.score < 1


def test_name_in_code_beats_the_word_in_prose() -> None:
    rows = [row(1, "use the schema here"), row(2, "use the `schema` here")]
    assert order("schema", rows) == [2, 1]


def test_whole_name_beats_its_parts() -> None:
    rows = [row(1, "a login needs some schema"), row(2, "a call of LoginSchema fails")]
    assert order("LoginSchema", rows) == [2, 1]


def test_user_comes_before_assistant_and_tool() -> None:
    rows = [row(1, "about the schema", role="tool"), row(2, "about the schema", role="assistant")]
    rows.append(row(3, "about the schema", role="user"))
    assert order("schema", rows) == [3, 2, 1]


def test_rare_word_tells_more_than_a_common_one() -> None:
    rows = [row(n, "deploy again") for n in range(1, 9)] + [row(9, "postgres again")]
    assert order("deploy postgres", rows)[0] == 9


def test_words_side_by_side_beat_words_apart() -> None:
    apart = row(1, "token for the long awaited refresh")
    beside = row(2, "for the long awaited refresh token")
    assert order("refresh token", [apart, beside]) == [2, 1]


def test_quoted_phrase_comes_first() -> None:
    apart, together = (
        row(1, "the schema of this login login"),
        row(2, "of this schema login and more", age_days=9),
    )
    first, second = ranked('"schema login"', [apart, together])
    assert (first.no, second.no) == (2, 1)
    assert "phrase 'schema login'" in first.why


def test_neighbor_helps_a_message() -> None:
    lonely = row(1, "it has three columns", thread=1, seq=5)
    answer = row(2, "it has three columns", thread=2, seq=5, age_days=1)
    question = row(3, "what does the login schema look like", thread=2, seq=4, age_days=1)
    assert order("columns of the login schema", [lonely, answer], [question])[0] == 2


def test_neighbor_of_another_thread_does_not_help() -> None:
    rows = [
        row(1, "three columns", thread=1, seq=5),
        row(2, "three columns", thread=2, seq=5, age_days=9),
    ]
    other = row(3, "login schema", thread=3, seq=4)
    assert order("columns login schema", rows, [other]) == [1, 2]


def test_message_without_a_term_of_its_own_is_no_hit() -> None:
    rows = [row(1, "login schema", thread=1, seq=1), row(2, "fine", thread=1, seq=2)]
    assert order("login schema", rows) == [1]


def test_message_of_the_named_date_comes_first() -> None:
    rows = [row(1, "went bowling", age_days=1), row(2, "went bowling", age_days=400)]
    assert order("bowling in January 2027", rows) == [1, 2]
    assert order("bowling in December 2025", rows) == [2, 1]


def test_same_rows_in_any_order_give_the_same_answer() -> None:
    texts = ["login schema", "schema", "the login", "login of the schema", "schema login schema"]
    rows = [row(n, texts[n % 5], thread=n % 4, seq=n // 4, age_days=n % 3) for n in range(40)]
    expected = ranked("login schema", rows)
    for seed in range(5):
        shuffled = random.Random(seed).sample(rows, len(rows))
        assert ranked("login schema", shuffled) == expected


def test_reasons_name_what_matched_and_where() -> None:
    hit = row(1, "`LoginSchema` has three columns", thread=1, seq=2)
    before = row(2, "about the users table", thread=1, seq=1)
    (first,) = ranked("LoginSchema columns users", [hit], [before])
    assert first.why == (
        "matches LoginSchema (name)",
        "matches columns",
        "near: users in the message before",
        "recent",
    )


def test_reasons_name_the_part_that_matched() -> None:
    (first,) = ranked("LoginSchema", [row(1, "the schema", age_days=100)])
    assert first.why == ("matches schema of LoginSchema",)


def test_limit_cuts_the_answer() -> None:
    rows = [row(n, "schema") for n in range(10)]
    query = analyze_query("schema")
    assert (
        rank_messages(query, rows, stats_of(rows), now_ms=NOW, limit=3)
        == ranked("schema", rows)[:3]
    )


def test_no_candidates_give_no_answer() -> None:
    stats = Stats(0, 0, 0.0, frequencies={})
    assert rank_messages(analyze_query("schema"), [], stats, now_ms=NOW) == []
    assert threads("", [], stats) == []


def test_thread_that_says_all_beats_thread_with_one_word_repeated() -> None:
    spread = [
        row(1, "a login problem", thread=1, seq=1),
        row(2, "the schema of tokens", thread=1, seq=4),
    ]
    narrow = [row(n, "login login", thread=2, seq=n) for n in range(3, 9)]
    answer = threads("login schema tokens", spread + narrow, stats_of(spread + narrow))
    assert [each.no for each in answer] == [1, 2]
    assert answer[0].score == 1


def test_newer_of_two_equal_threads_comes_first() -> None:
    rows = [
        row(1, "login schema", thread=1, age_days=9),
        row(2, "login schema", thread=2, age_days=1),
    ]
    answer = threads("login schema", rows, stats_of(rows))
    assert [each.no for each in answer] == [2, 1]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["login", "schema", "a b c", "LoginSchema", "重跑"]), st.integers(0, 3)
        ),
        max_size=20,
    )
)
@settings(max_examples=100)
def test_scores_lie_between_zero_and_one_and_fall(texts: list[tuple[str, int]]) -> None:
    rows = [row(n, text, thread=thread, seq=n) for n, (text, thread) in enumerate(texts)]
    query, stats = (
        analyze_query("login schema LoginSchema 重"),
        stats_of([*rows, row(99, "filler")]),
    )
    for answer in (
        rank_messages(query, rows, stats, now_ms=NOW),
        threads(query.text, rows, stats),
    ):
        scores = [each.score for each in answer]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)
