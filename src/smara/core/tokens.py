"""Count the tokens of a text, exactly or by estimate.

A count says how it was made. An exact counter is used where the model's encoding is known.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, Protocol

from smara.core.startup.record import dataclass
from smara.core.terms import pieces

DEFAULT_ENCODING = "o200k_base"

# A tokenizer is quadratic in the longest run it cannot split (a megabyte of one letter),
# so long texts are counted in pieces, cut at white space where there is some.
PIECE_CHARACTERS = 32_768

_ENCODING_BY_MODEL_PREFIX = (
    ("gpt-4o", "o200k_base"), ("gpt-4.1", "o200k_base"), ("gpt-5", "o200k_base"), ("gpt-oss",
    "o200k_base"),
    ("chatgpt-4o", "o200k_base"), ("o1", "o200k_base"), ("o3", "o200k_base"), ("o4", "o200k_base"),
    ("gpt-4", "cl100k_base"), ("gpt-3.5", "cl100k_base"), ("text-embedding-", "cl100k_base"),
    ("llama-3", "llama3"), ("llama3", "llama3"), ("deepseek", "deepseek_v3"), ("qwen", "qwen3"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A token count and its method, ``o200k_base`` or ``estimate``."""

    tokens: int
    method: str


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def count(self, text: str) -> TokenCount: ...


class ExactCounter:
    """A counter with one encoding's tables, loaded on first use.

    Loading takes about 40 ms.
    """

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        self.encoding = encoding
        self._tokenizer: Any = None
        self._lock = threading.Lock()

    def count(self, text: str) -> TokenCount:
        if not text:
            return TokenCount(0, self.encoding)
        with self._lock:
            if self._tokenizer is None:
                import splintr

                self._tokenizer = splintr.Tokenizer.from_pretrained(self.encoding)
            tokenizer = self._tokenizer
        if len(text) <= PIECE_CHARACTERS:
            return TokenCount(_count_ordinary(tokenizer, text), self.encoding)
        return TokenCount(
            sum(_count_ordinary(tokenizer, piece) for piece in pieces(text, PIECE_CHARACTERS)),
            self.encoding + "/pieces",
        )


@dataclass(frozen=True, eq=False)
class EstimatingCounter:
    """Counts by classes of characters, for models whose tokenizer is not published.

    ``factor`` scales the estimate of o200k tokens to the model at hand.
    """

    factor: float = 1.0
    method: str = "estimate"

    def count(self, text: str) -> TokenCount:
        return TokenCount(round(estimate_o200k(text) * self.factor), self.method)


def estimate_o200k(text: str) -> float:
    """Estimate o200k tokens from a text's length and alphabet.

    Measured over English conversations and coding transcripts, one token is 4.2 bytes
    of ASCII; other alphabets cost about 0.7 tokens a character.

    >>> round(estimate_o200k("hello world " * 35))
    100
    """
    if not text:
        return 0.0
    if text.isascii():
        return max(1.0, len(text) / 4.2)
    ascii_characters = sum(map(str.isascii, text))
    return max(1.0, ascii_characters / 4.2 + 0.7 * (len(text) - ascii_characters))


@lru_cache(maxsize=32)
def counter_for(model: str | None = None) -> TokenCounter:
    """Return the best counter for a model or encoding; default o200k.

    Counters are shared, so that their tables are loaded once in a process.
    """
    name = (model or DEFAULT_ENCODING).lower().split("/")[-1].split(":")[-1]
    if name in ("o200k_base", "cl100k_base"):
        return ExactCounter(name)
    if name.startswith("estimate"):
        return EstimatingCounter()
    if name.startswith("claude"):
        return EstimatingCounter(CLAUDE_FACTOR, "estimate/claude")
    encodings = (each for prefix, each in _ENCODING_BY_MODEL_PREFIX if name.startswith(prefix))
    encoding = next(encodings, None)
    return ExactCounter(encoding) if encoding is not None else EstimatingCounter()


# Anthropic publishes no tokenizer. Public comparisons put Claude's counts of English and
# code 10 to 20 per cent above o200k's; too high is the safe side of a budget.
CLAUDE_FACTOR = 1.2


def _count_ordinary(tokenizer: Any, text: str) -> int:
    try:
        # A buffer of numbers takes half the time of a list of them, but a special token that is
        # spelled out would count as one. All of them begin with this sign.
        if "<" in text:
            return len(tokenizer.encode_ordinary(text))
        return len(tokenizer.encode_flat(text)) // 4
    except UnicodeEncodeError:
        return _count_ordinary(tokenizer, text.encode("utf-8", "replace").decode("utf-8"))
