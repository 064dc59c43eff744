"""What a call costs: a table that others look after, our own setting above it, and honesty where
neither knows.
"""

from __future__ import annotations

import sys

import pytest

from smara.errors import ConfigError
from smara.models.budget import Prices, parse_prices
from smara.models.chat import Usage

MILLION = Usage(1_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("anthropic:claude-haiku-4-5", 6.00),
        ("openai:gpt-5-mini", 2.25),
        ("google:gemini-2.5-flash", 2.80),
    ],
)
def test_list_prices_are_known_without_asking_the_network(model, dollars):
    assert Prices().cost(model, MILLION) == round(dollars * 1_000_000)


def test_what_was_cached_is_cheaper_and_what_is_being_cached_is_dearer():
    plain, read, written = (
        Prices().cost("anthropic:claude-haiku-4-5", Usage(10_000, 0, *cached))
        for cached in [(0, 0), (10_000, 0), (0, 10_000)]
    )
    assert read < plain < written


@pytest.mark.parametrize(
    "model", ["openai:gpt-of-tomorrow", "openai-compatible:gpt-5-mini", "scripted", "anthropic:"]
)
def test_a_price_that_nobody_knows_is_not_guessed(model):
    assert Prices().cost(model, MILLION) is None


def test_what_runs_at_home_costs_nothing():
    assert Prices().cost("ollama:qwen3", MILLION) == 0


@pytest.mark.parametrize(
    ("model", "dollars"), [("3-small", 0.02), ("3-large", 0.13), ("ada-002", 0.10)]
)
def test_the_embedders_of_openai_have_a_price_with_and_without_the_table(
    model, dollars, monkeypatch
):
    expected = round(dollars * 1_000_000)
    assert Prices().cost(f"openai:text-embedding-{model}", Usage(1_000_000)) == expected
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert Prices().cost(f"openai:text-embedding-{model}", Usage(1_000_000)) == expected
    assert Prices().cost("openai:gpt-5-mini", Usage(1_000_000)) is None


def test_nothing_costs_nothing():
    assert Prices().cost("openai:gpt-of-tomorrow", Usage()) == 0


def test_the_setting_wins_over_the_table():
    prices = Prices(parse_prices("openai:gpt-5-mini=10/20.5; openai-compatible:qwen3 = 0.5/2"))
    assert prices.cost("openai:gpt-5-mini", MILLION) == 30_500_000
    assert prices.cost("openai-compatible:qwen3", Usage(1_000, 100)) == 700


def test_a_cost_is_rounded_up():
    assert Prices(parse_prices("a:b=0.1/0.1")).cost("a:b", Usage(1, 0)) == 1


@pytest.mark.parametrize("setting", ["gpt-5", "openai:x=1", "openai:x=one/two", "openai:x=-1/2"])
def test_prices_that_cannot_be_read_are_refused_with_an_example(setting):
    with pytest.raises(ConfigError, match=r"openai-compatible:qwen3=0\.5/2"):
        parse_prices(setting)
