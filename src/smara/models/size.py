"""How large a request is: about how many tokens, and how many at the very most."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from smara.core.tokens import TokenCounter
from smara.models.chat import ChatRequest

# Vendors put a few tokens around every message.
_AROUND = 64
# Public comparisons put other vendors' counts of English and code at up to 1.3 of o200k's.
_SAFETY = 1.5
# Numbers, white space and ruled lines, which o200k takes several at a time and others one by one.
_NO_LETTERS = re.compile(r"[\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Size:
    """The tokens of an input, and a number that it should not pass with any vendor's tokenizer."""

    tokens: int
    bound_tokens: int


def size_of(request: ChatRequest, counter: TokenCounter) -> Size:
    """The size of a request's input."""
    text = request.system + "\n" + request.prompt
    tokens = counter.count(text).tokens
    return Size(tokens, bound(text, tokens))


def bound(text: str, tokens: int) -> int:
    """The most tokens that a text should have with anybody's tokenizer, from its o200k count.

    One and a half times the count, and one more for each further character of a run without
    letters, and for letters outside of ASCII all of their bytes but the first, since a tokenizer
    that does not know a script spells it byte by byte. No tokenizer needs more than one token for a
    byte, so that is the most in any case. The published tokenizers at hand use at most 0.6 of it on
    code and prose; a text made for the purpose could pass it, and then counts with what the vendor
    says. For 1,000 tokens of plain words in 4,200 bytes: ``min(1000 × 1.5, 4200) + 64``.

    >>> bound("x" * 4200, 1000)
    1564
    """
    size = len(text.encode("utf-8", "replace"))
    runs = sum(found.end() - found.start() - 1 for found in _NO_LETTERS.finditer(text))
    return min(math.ceil(tokens * _SAFETY) + runs + size - len(text), size) + _AROUND
