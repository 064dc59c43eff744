"""What a query is taken to be after."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.errors import InvalidInputError
from smara.search.query import Hints, understand


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("refresh_tokens", "identifier"), ("where is LoginSchema validated", "identifier"),
        ("src/auth.ts", "identifier"),
        ("why did we choose JWT over sessions", "semantic"), ("认证 为什么 失败", "semantic"), ("",
        "semantic"),
        ("who calls parse_config", "structural"), ("what would break if I change the loader",
        "structural"),
        ("dependents of the parser", "structural"), ("what happened last week", "temporal"),
        ("when did the build turn red", "temporal"), ("decisions of March 2026", "temporal"),
    ],
)  # fmt: skip
def test_kind_of_a_question_is_read_off_its_words(query, kind):
    assert understand(query).type == kind


def test_graph_tool_used_last_makes_a_question_structural():
    assert understand("the loader", Hints(recent_tools=("code-query",))).type == "structural"


def test_names_and_paths_are_told_apart():
    asked = understand("does src/auth.ts still call refresh_tokens and verifyJwt?")
    assert asked.paths == ("src/auth.ts",)
    assert asked.names == ("refresh_tokens", "verifyJwt")
    assert "names refresh_tokens, verifyJwt" in asked.render()


def test_unknown_phase_is_refused_with_the_phases_there_are():
    with pytest.raises(
        InvalidInputError, match="define, implement, validate, refine, explore, reflect"
    ):
        Hints(phase="coding")


@given(st.text(max_size=300))
def test_any_text_is_understood(text):
    assert understand(text).render()
