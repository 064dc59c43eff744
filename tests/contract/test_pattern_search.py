"""What is known about a pattern that an agent is about to grep for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.knowledge.models import Evidence
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE


@pytest.fixture
def taught(memory):
    memory.memories.remember(
        "refresh_tokens is defined in src/auth/tokens.py and called by the scheduler alone."
    )
    return memory


@pytest.mark.parametrize(
    "pattern",
    [
        r"refresh_?tokens?\(",
        "refreshTokens",
        r"\brefresh_tokens\b",
        "**/auth/tokens.py",
        r"def refresh_tokens\(",
        "class refresh_tokens",
        "refresh.?tokens",
        "refresh[-_]tokens",
    ],
)
def test_memory_that_holds_all_the_words_is_found(taught, pattern):
    assert taught.search_pattern(pattern).content.startswith("refresh_tokens is defined")


@pytest.mark.parametrize("pattern", ["refresh_cookies", "walrus", "", ".*", r"[a-z]+\d{2}", "the"])
def test_pattern_that_says_more_or_nothing_finds_nothing(taught, pattern):
    assert taught.search_pattern(pattern) is None


def test_what_nobody_vouched_for_is_not_offered(memory):
    quoted = [Evidence(quote="a page said so")]
    memory.memories.add(
        "walrus_key lives in evil.py",
        type="gotcha",
        source="mcp_auto",
        taint=("web",),
        evidence=quoted,
    )
    assert memory.search_pattern("walrus_key") is None


@settings(max_examples=30)
@given(st.text(max_size=80))
def test_no_pattern_raises(taught, pattern):
    taught.search_pattern(pattern)
