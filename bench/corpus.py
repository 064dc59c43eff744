"""Synthetic messages: words by Zipf's law, some code and names, about 260 bytes each."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator

VOCABULARY = 50_000
_SYLLABLES = [
    "ba",
    "co",
    "de",
    "fi",
    "go",
    "hu",
    "ka",
    "le",
    "mi",
    "no",
    "pu",
    "ra",
    "se",
    "ti",
    "vo",
    "za",
    "lin",
    "mar",
]
COMMON = re.findall(
    r"\w+",
    "the to and of in is it that for on with as this be are not you have from or an at by we can "
    "if my will use run"
    " file test error code function change add fix new value return name type data call list set "
    "get make need work"
    " build server request response user token database schema query index table commit branch "
    "deploy config",
)


def vocabulary(seed: int = 7) -> list[str]:
    """Common English and coding words first, invented ones behind them."""
    rng = random.Random(seed)
    found = dict.fromkeys(COMMON)
    while len(found) < VOCABULARY:
        found["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4)))] = None
        if len(found) % 3 == 0:
            found["".join(rng.choices(_SYLLABLES, k=5))] = None
    return list(found)


class Corpus:
    """An endless stream of messages, the same for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self._rng = random.Random(seed)
        self.words = vocabulary(seed)
        weights = [1 / (rank + 2.7) for rank in range(len(self.words))]
        self._cumulative = list(itertools.accumulate(weights))

    def text(self, number: int) -> str:
        """One message of about 40 words; one in four with a line of code, one in fifty with a name
        of its own.
        """
        words = self._rng.choices(
            self.words, cum_weights=self._cumulative, k=self._rng.randint(15, 65)
        )
        if number % 4 == 0:
            words.insert(5, f"`{words[0]}_{words[1]}({words[2]})` in src/{words[3]}/{words[4]}.py")
        if number % 50 == 0:
            words.append(rare_name(number, self.words))
        return " ".join(words)

    def messages(self, count: int, start: int = 0) -> Iterator[dict[str, str]]:
        """Messages in turn from user and assistant."""
        for number in range(start, start + count):
            yield {"role": "assistant" if number % 2 else "user", "content": self.text(number)}

    def questions(self, count: int, seed: int = 11) -> list[str]:
        """Natural questions of eight words: question words, common words and two or three telling
        ones.
        """
        rng = random.Random(seed)
        starts = ["how do we", "what did you", "where is the", "why does the", "when did we"]
        return [
            f"{rng.choice(starts)} {' '.join(rng.sample(COMMON[40:], 2))} the "
            f"{self.words[rng.randint(80, 3_000)]} {self.words[rng.randint(1_000, 20_000)]}"
            for _ in range(count)
        ]


def rare_name(number: int, words: list[str]) -> str:
    """A name that stands in one message alone, made of words that stand in many."""
    rng = random.Random(number)
    return "".join(rng.choice(words[60:400]).capitalize() for _ in range(3)) + str(number)
