"""Texts as terms: each spelling of a name finds the others, and no text is too strange."""

from __future__ import annotations

import re
import sys
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.core import text as text_module
from smara.core.terms import LONGEST_TERM, expand
from smara.core.text import analyze, best_window, find_words, snippet, spans, words

TEXTS = st.text(max_size=300)
CODE_LIKE = st.text(alphabet="aAbB01_-./\\:@#'`+, \n重跑é\u0301\ud800\x00", max_size=200)


def terms_of(text: str) -> set[str]:
    analysis = analyze(text)
    return set(f"{analysis.prose} {analysis.code}".split())


def finds(query: str, text: str) -> bool:
    """Whether every word of the query has a term in the text."""
    return all(
        {term.text for term in expand(word).terms} & terms_of(text) for word in query.split()
    )


SPELLINGS = [
    "refresh_tokens",
    "RefreshTokens",
    "refreshTokens",
    "refresh-tokens",
    "REFRESH_TOKENS",
    "refreshtokens",
]


@pytest.mark.parametrize("query", SPELLINGS)
@pytest.mark.parametrize("text", SPELLINGS)
def test_each_spelling_of_a_name_finds_the_others(query: str, text: str) -> None:
    assert expand(query).terms[0].text in terms_of(f"we call {text} here")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("refresh tokens", "the refresh_tokens table"),
        ("refresh token", "RefreshTokens"),
        ("auth.ts", "open src/auth.ts now"),
        ("auth", "open src/auth.ts now"),
        ("src/auth.ts", "open src/auth.ts now"),
        ("src", "open src/auth.ts now"),
        ("auth.ts", r"C:\work\auth.ts"),
        ("src/auth.ts", "auth.ts is open"),
        ("assertEqual", "self.assertEqual(a, b)"),
        ("http server", "HTTPServer2"),
        ("text.py", "src/smara/core/text.py:12:5: error"),
        ("12", "src/smara/core/text.py:12:5: error"),
        ("3.11.7", "Python 3.11.7"),
        ("3.11", "Python 3.11.7"),
        ("v1.2.3", "release 1.2.3"),
        ("E0382", "error[E0382]: use of moved value"),
        ("TS2345", "error TS2345: Argument"),
        ("--no-cache", "docker build --no-cache ."),
        ("no-cache", "docker build --no-cache ."),
        ("DATABASE_URL", "export DATABASE_URL=postgres"),
        ("database url", "export DATABASE_URL=postgres"),
        ("#1234", "fixes #1234"),
        ("1234", "fixes #1234"),
        ("docs.python.org", "see https://docs.python.org/3/library/re.html"),
        ("someone@example.com", "mail someone@example.com."),
        ("1200", "it cost $1,200 then"),
        ("1,200", "it cost 1200 then"),
        ("5GB", "a 5gb disk"),
        ("5 gb", "a 5GB disk"),
        ("15", "on May 15th"),
        ("2024-01-15", "2024-01-15T10:23:45.123Z INFO start"),
        ("youtube", "a YouTube video"),
        ("C++", "written in C++, mostly"),
        ("C#", "written in C#"),
        ("cafe", "at the Café"),
        ("CAFÉ", "at the cafe\u0301"),
        ("strasse", "Straße"),
        ("école", "à l’école"),
        ("user", "the user's name"),
        ("running", "she runs"),
        ("went", "we go"),
        ("重跑", "我们重跑测试"),
        ("ガンダム", "ｶﾞﾝﾀﾞﾑ"),
        ("ABC", "ＡＢＣ"),
        ("한국", "한국어"),
        ("हिन्दी", "यह हिन्दी है"),
        ("550e8400", "id 550e8400-e29b-41d4-a716-446655440000"),
        ("a3f9c2d", "commit a3f9c2d"),
    ],
)
def test_natural_spelling_finds_text(query: str, text: str) -> None:
    assert finds(query, text)


def test_names_go_to_code_and_sentences_to_prose() -> None:
    analysis = analyze("We changed LoginSchema in the well-known file")
    assert analysis.code == "loginschema login schema"
    assert analysis.prose == "we chang in the wellknown well know file"
    assert analysis.length == 11


def test_words_between_back_quotes_are_code() -> None:
    analysis = analyze("use `result set` and\n```python\nvalue = load(path)\n```\nthen stop")
    assert analysis.prose == "use and then stop"
    assert analysis.code == "result set python valu load path"


def test_parts_of_a_name_with_acronym_and_number() -> None:
    assert analyze("HTTPServer2").code == "httpserver2 http server 2"


def test_cjk_is_indexed_as_bigrams_and_its_last_character() -> None:
    assert analyze("重跑测试").prose == "重跑 跑测 测试 试"


def test_long_base64_gives_one_short_term() -> None:
    assert analyze("QUJD" * 5000).length == 1


def test_full_table_of_known_words_changes_no_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"word{n} snake_case_{n}, plain." for n in range(200))
    before = analyze(text)
    monkeypatch.setattr(text_module, "_CACHED_CHUNKS", 10)
    assert [analyze(text) for _ in range(3)] == [before] * 3


def test_threads_that_share_the_table_get_the_same_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "_CACHED_CHUNKS", 50)
    texts = [f"alpha_{n % 70} beta{n % 30}Gamma, delta {n % 11}" for n in range(400)]
    expected = [analyze(text) for text in texts]
    results: list[bool] = []

    def run() -> None:
        results.append([analyze(text) for text in texts] == expected)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


@given((TEXTS | CODE_LIKE).filter(lambda text: "`" not in text))
@settings(max_examples=200)
def test_both_streams_have_the_terms_of_each_word_in_order(text: str) -> None:
    expansions = [expand(word) for chunk in text.split() for word in find_words(chunk)]
    for stream, is_code in ((analyze(text).prose, False), (analyze(text).code, True)):
        assert stream.split() == [
            term.text for each in expansions if each.is_code is is_code for term in each.terms
        ]
        assert stream == " ".join(stream.split())


@given(TEXTS | CODE_LIKE)
@settings(max_examples=300)
def test_terms_are_clean_short_and_stable(text: str) -> None:
    analysis = analyze(text)
    terms = f"{analysis.prose} {analysis.code}".split()
    assert analysis == analyze(text)
    assert analysis.length == len(terms)
    for term in terms:
        assert len(term) <= LONGEST_TERM
        assert not re.search(r"[\s\"'\x00-\x1f\x7f]", term)
        term.encode("utf-8")


@given(CODE_LIKE, CODE_LIKE)
@settings(max_examples=150)
def test_a_text_holds_the_terms_of_its_lines(first: str, second: str) -> None:
    first, second = first.replace("`", ""), second.replace("`", "")
    assert terms_of(f"{first}\n{second}") == terms_of(first) | terms_of(second)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a" * 100_000,
            "a" + "\u0301" * 50_000,
            "a.b" * 30_000,
            "\ud800" * 1000,
            "\x00" * 1000,
            "x_" * 50_000,
        ),
        *(
            "重" * 70_000,
            "`" * 10_001,
            "```" * 5_001,
            "-" * 100_000,
            "a'" * 30_000,
            "1:" * 30_000,
            "ﷺ" * 1000,
        ),
    ],
    ids=lambda text: ascii(text[:4]),
)
def test_strange_texts_are_analyzed(text: str) -> None:
    assert analyze(text).length >= 0
    assert words(text) is not None
    assert len(snippet(text, ["a", "重跑"], 100)) <= 140


def test_words_are_surface_forms_for_completion() -> None:
    found = words("The LoginSchema in src/auth.ts is naïve; see LoginSchema, 42 重跑 _x")
    assert found == ["the", "loginschema", "src/auth.ts", "naive", "see"]


@given(CODE_LIKE)
@settings(max_examples=150)
def test_words_are_distinct_and_of_usable_length(text: str) -> None:
    found = words(text)
    assert len(found) == len(set(found))
    assert all(3 <= len(word) <= LONGEST_TERM for word in found)


def test_spans_mark_the_matching_words() -> None:
    text = "The LoginSchema and schemas, 我们重跑测试"
    marked = [text[start:end] for start, end in spans(text, ["schema", "重跑"])]
    assert marked == ["LoginSchema", "schemas", "重跑"]


@given(CODE_LIKE)
@settings(max_examples=150)
def test_spans_of_all_terms_lie_in_order_inside_the_text(text: str) -> None:
    places = spans(text, terms_of(text))
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert all(left[1] <= right[0] for left, right in pairwise(places))


def test_snippet_shows_the_densest_matches() -> None:
    text = (
        "token. "
        + "filler words here " * 60
        + "the LoginSchema keeps a refresh token. "
        + "more filler " * 60
    )
    shown = snippet(text, ["loginschema", "login", "refresh", "token"], 120)
    assert "LoginSchema" in shown
    assert "refresh token" in shown
    assert (shown[0], shown[-1]) == ("…", "…")


def test_snippet_of_a_short_text_is_the_text_on_one_line() -> None:
    assert snippet("one\n two", ["two"], 80) == "one two"


def test_snippet_of_a_huge_text_finds_a_late_match() -> None:
    text = (
        "filler words here\n" * 200_000 + "the LoginSchema is here\n" + "filler words here\n" * 1000
    )
    assert "LoginSchema" in snippet(text, ["loginschema", "login", "schema"], 100)
    assert best_window(text, ["absent"], 100) == 0


def test_importing_the_analyzer_does_not_load_the_stemmer() -> None:
    import subprocess

    code = "import sys, smara.core.text; print('Stemmer' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
