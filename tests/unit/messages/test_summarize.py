"""The summarizer without a model keeps what a later search or a later model needs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.messages.compaction import OfflineSummarizer
from smara.messages.models import Message, Part


def message(text, role="user", seq=1):
    return Message(
        f"m{seq}",
        "t",
        "default",
        seq=seq,
        role=role,
        raw_content=text,
        parts=(Part("text", text),),
        token_count=1,
        token_method="estimate",
        created_at=0,
    )


def summarize(*texts, level=1, role="user"):
    return OfflineSummarizer().summarize(
        [message(text, role, seq) for seq, text in enumerate(texts, 1)], level
    )


@pytest.mark.parametrize(
    "name",
    [
        "src/auth/login.ts",
        "refresh_tokens",
        "authenticateUser",
        "LoginSchema",
        "auth.py",
        "validate",
    ],
)
def test_names_and_paths_are_kept_at_both_levels(name):
    text = (
        f"please look at {name}() again" if name == "validate" else f"please look at {name} again"
    )
    assert name in summarize(text).text
    assert name in summarize(text, level=2).text


def test_what_was_asked_is_kept_and_told_apart_from_what_was_answered():
    run = [
        message("Why does the login fail?"),
        message("Because the cookie expired.", "assistant", 2),
    ]
    text = OfflineSummarizer().summarize(run, 1).text
    assert "User asked: Why does the login fail?" in text
    assert "Assistant: Because the cookie expired." in text


def test_defining_lines_of_code_are_kept_at_level_1_only():
    text = (
        "Done:\n```python\nimport os\ndef login(user):\n    return user.name\nclass Session:\n "
        "   pass\n```\nbye"
    )
    assert summarize(text).code.splitlines() == ["import os", "def login(user):", "class Session:"]
    assert summarize(text, level=2).code == ""


def test_code_in_a_fence_that_is_never_closed_is_kept():
    assert "CREATE TABLE users (id INT);" in summarize("```sql\nCREATE TABLE users (id INT);").code


def test_each_name_and_each_line_is_kept_once():
    found = summarize(
        "see parse_header\n```\nimport os\n```", "see parse_header\n```\nimport os\n```"
    )
    assert found.text.partition("Names: ")[2] == "parse_header."
    assert found.code == "import os"


def test_level_2_is_shorter_than_level_1():
    texts = [
        f"Please fix file_{number}.py and then tell me about module_{number}.name in detail."
        for number in range(30)
    ]
    assert len(summarize(*texts, level=2).text) < len(summarize(*texts).text)


def test_a_run_of_huge_messages_has_a_small_summary():
    found = summarize(*["walrus_name " * 20_000] * 10)
    assert len(found.text) + len(found.code) < 3_000


def test_empty_messages_still_have_a_summary():
    assert summarize("", "  ", "\n").text


def test_it_is_labelled_with_its_method():
    assert OfflineSummarizer.method == "offline-1"


@given(
    st.lists(st.text(st.characters(exclude_categories=()), max_size=60), min_size=1, max_size=4),
    st.sampled_from([1, 2]),
)
def test_any_run_has_a_summary_and_always_the_same(texts, level):
    assert summarize(*texts, level=level).text
    assert summarize(*texts, level=level) == summarize(*texts, level=level)
