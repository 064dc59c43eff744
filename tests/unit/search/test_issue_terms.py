"""An issue as terms and names."""

from __future__ import annotations

from smara.search.locate import MOST_LOOKED_UP, issue_terms


def test_the_first_line_counts_for_more_than_the_rest():
    found = issue_terms("walrus leaks\n\nthe pelican leaks and leaks")
    assert found.terms["walrus"] > found.terms["pelican"]
    assert found.terms["leak"] > found.terms["walrus"]


def test_forms_comments_and_addresses_say_nothing():
    text = (
        "Crash in loader\n\n<!-- Please describe the walrus -->\n**Expected behavior**\nsee "
        "https://host.example/pelican"
    )
    terms = issue_terms(text).terms
    assert not {"walrus", "pelican", "behavior", "expect"} & set(terms)
    assert "loader" in terms


def test_an_open_comment_hides_the_rest_and_takes_linear_time():
    assert issue_terms("title words\n" + "<!--" * 20_000).terms.keys() == {"titl", "word"}


def test_names_are_what_is_written_as_code():
    names = issue_terms(
        "Wrong result\n\n`parse_config` calls Loader.read_all(path) and then plain words"
    ).names
    assert {"parse_config", "read_all"} <= set(names)
    assert not {"plain", "words", "then"} & set(names)
    assert names["parse_config"] > names["read_all"]


def test_a_long_text_is_looked_up_by_a_bounded_number_of_terms():
    assert (
        len(issue_terms(" ".join(f"word{number}x" for number in range(5_000))).terms)
        == MOST_LOOKED_UP
    )


def test_any_text_can_be_asked():
    for text in ("", "\n\n", "\x00", "\ud800", "重跑データ", "`", "_" * 300):
        issue_terms(text)
