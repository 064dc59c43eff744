"""Token counts: exact where the tables are known, labelled always."""

from __future__ import annotations

import pytest
import splintr
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.core.terms import pieces
from smara.core.tokens import (
    PIECE_CHARACTERS,
    EstimatingCounter,
    ExactCounter,
    counter_for,
    estimate_o200k,
)

EXACT = ExactCounter("o200k_base")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("hello", 1),
        ("The quick brown fox jumps over the lazy dog.", 10),
    ],
)
def test_o200k_counts_are_exact(text, tokens):
    assert (EXACT.count(text).tokens, EXACT.count(text).method) == (tokens, "o200k_base")


@pytest.mark.parametrize(
    "encoding", ["o200k_base", "cl100k_base", "llama3", "deepseek_v3", "qwen3"]
)
def test_special_tokens_in_a_text_are_counted_as_words_not_as_one(encoding):
    tokenizer = splintr.Tokenizer.from_pretrained(encoding)
    counter = ExactCounter(encoding)
    for token in tokenizer.special_tokens():
        text = f"so {token} ends"
        assert counter.count(text).tokens == len(tokenizer.encode_ordinary(text))


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (None, "o200k_base"), ("gpt-4o-mini", "o200k_base"), ("openai/gpt-5", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("cl100k_base", "cl100k_base"), ("text-embedding-3-small", "cl100k_base"),
        ("claude-sonnet-4", "estimate/claude"),
        ("anthropic/claude-3-opus", "estimate/claude"), ("estimate", "estimate"),
        ("some-unknown-model", "estimate"),
    ],
)  # fmt: skip
def test_every_model_gets_the_best_counter_there_is_and_says_which(model, method):
    assert counter_for(model).count("hello world").method == method


def test_an_estimate_for_claude_errs_on_the_safe_side():
    text = "The session cookie expires after fifteen minutes.\n" * 40
    assert counter_for("claude").count(text).tokens > EXACT.count(text).tokens * 0.9


@pytest.mark.parametrize(
    "text",
    [
        "def parse(header):\n    return header.split(':')\n" * 30,
        "Please rotate the tokens before noon. " * 30,
    ],
)
def test_an_estimate_is_within_a_third_of_the_truth_for_prose_and_code(text):
    exact = EXACT.count(text).tokens
    assert abs(EstimatingCounter().count(text).tokens - exact) < exact / 3


def test_an_estimate_of_something_is_never_nothing():
    assert (
        EstimatingCounter().count("").tokens,
        EstimatingCounter().count("a").tokens,
        round(estimate_o200k("重")),
    ) == (0, 1, 1)


def test_a_long_text_is_counted_in_pieces_and_says_so():
    text = "hello world " * PIECE_CHARACTERS
    counted = EXACT.count(text)
    assert counted.method == "o200k_base/pieces"
    assert abs(counted.tokens - 2 * PIECE_CHARACTERS) < 100


@given(st.text(max_size=50), st.integers(1, 40))
@settings(max_examples=30)
def test_pieces_put_together_are_the_text(text, times):
    whole = (text + " ") * times * 100
    assert "".join(pieces(whole, PIECE_CHARACTERS)) == whole
    assert all(0 < len(piece) <= PIECE_CHARACTERS for piece in pieces(whole, PIECE_CHARACTERS))


@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_any_text_can_be_counted(text):
    assert EXACT.count(text).tokens >= 0
    assert EstimatingCounter().count(text).tokens >= 0
