"""What a call costs, in millionths of a dollar.

The prices are those of the package genai-prices, which comes with pydantic-ai: a table of the
vendors' list prices, looked after by others, of the day its version was published, and read without
asking the network. The setting ``model_prices`` wins over it. What runs under Ollama costs nothing.
Cohere's rerankers, which that table does not know, are paid for by the search. A model that neither
knows has no price: its tokens count against the budget, its money cannot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from smara.errors import ConfigError
from smara.models.chat import Usage

MICRO = 1_000_000
"""Millionths of a dollar in a dollar; also the tokens that a price is given for."""

_LISTED = ("anthropic", "openai", "google")
# Cohere's list price is 2 dollars for 1,000 searches, each of up to 100 pieces of 500 tokens.
_SEARCH_MICRODOLLARS = 2_000
_SEARCH_TOKENS = 50_000
_OWN = re.compile(r"(?P<model>\S+?)\s*=\s*(?P<read>\d+(?:\.\d+)?)\s*/\s*(?P<written>\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens read and written."""

    read: Decimal
    written: Decimal

    def cost(self, usage: Usage) -> int:
        """Rounded up: many small calls must not be free.

        >>> Price(Decimal("1"), Decimal("5")).cost(Usage(10_000, 200))
        11000
        """
        return math.ceil(self.read * usage.input_tokens + self.written * usage.output_tokens)


# OpenAI's embedders are asked without the extra that brings the table, so what they cost must be
# known without it.
_EMBEDDERS = {
    f"openai:text-embedding-{name}": Price(Decimal(dollars), Decimal(0))
    for name, dollars in (("3-small", "0.02"), ("3-large", "0.13"), ("ada-002", "0.10"))
}


class Prices:
    """Knows the price of models by their names, such as ``openai:gpt-5-mini``."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = own or {}

    def cost(self, model: str, usage: Usage) -> int | None:
        """What this usage of a model costs; ``None`` when its price is not known."""
        if usage.tokens == 0:
            return 0
        if model in self._own:
            return self._own[model].cost(usage)
        vendor, _, name = model.partition(":")
        if vendor == "ollama":
            return 0
        if vendor == "cohere":
            return _SEARCH_MICRODOLLARS * math.ceil(usage.input_tokens / _SEARCH_TOKENS)
        # A compatible server may serve anybody's model, at a price of its own: nothing is guessed
        # there.
        found = _listed(vendor, name, usage) if vendor in _LISTED else None
        return _EMBEDDERS[model].cost(usage) if found is None and model in _EMBEDDERS else found


def parse_prices(setting: str | None) -> dict[str, Price]:
    """The prices of the setting ``model_prices``.

    >>> parse_prices("openai:gpt-x=0.5/2; ollama:qwen3=0/0")["openai:gpt-x"]
    Price(read=Decimal('0.5'), written=Decimal('2'))
    """
    found = {}
    for part in filter(None, (each.strip() for each in (setting or "").split(";"))):
        match = _OWN.fullmatch(part)
        if match is None:
            raise ConfigError(
                f"{part!r} of the setting model_prices cannot be read. Write "
                "VENDOR:MODEL=READ/WRITTEN in dollars per "
                "million tokens, such as openai-compatible:qwen3=0.5/2, with ; between two models."
            )
        found[match["model"]] = Price(Decimal(match["read"]), Decimal(match["written"]))
    return found


def _listed(vendor: str, name: str, usage: Usage) -> int | None:
    try:
        import genai_prices
    except ImportError:
        return None
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = genai_prices.calc_price(counted, model_ref=name, provider_id=vendor)
    except LookupError:
        return None
    return math.ceil(found.total_price * MICRO)
