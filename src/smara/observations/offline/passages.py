"""The sentences of a message, gathered by what is done with them: requested, asked, reported, told.

A sentence that leans on the one before it ("Fix it.", "They fail, too.") stays with it, or
nobody could tell later what was meant. A question is always told apart: taken for a request it
would be worked on, taken for a statement it would be believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from smara.observations.offline.acts import Act

STRONGEST: tuple[Act, ...] = ("request", "question", "report", "outcome", "statement", "chat")
"""A passage is what its strongest sentence is."""

_LEANS = re.compile(
    r"\b(?:it|its|it's|this|these|those|they|they're|them|their|he|she|him|her)\b"
    r"|^(?:and|but|so|then|because|also|or|otherwise|same|that|that's|the same|the other)\b"
    r"|\bthat[.,;!]{0,2}$",
    re.IGNORECASE,
)
_FEW_WORDS = 3


@dataclass(slots=True)
class Passage:
    """Sentences with one act, in the order in which they were said."""

    act: Act
    sentences: list[tuple[Act, str]] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        return [words for _, words in self.sentences]


def passages(sentences: Iterable[tuple[Act, str]]) -> list[Passage]:
    """The passages of a message, one for each act, in the order in which they begin."""
    found: dict[Act, Passage] = {}
    for group in _groups(sentences):
        act = next(each for each in STRONGEST if each in {act for act, _ in group})
        found.setdefault(act, Passage(act)).sentences.extend(group)
    return list(found.values())


def leans(words: str) -> bool:
    """Whether a sentence needs the one before it to be understood."""
    return len(words.split()) < _FEW_WORDS or bool(_LEANS.search(words))


def _groups(sentences: Iterable[tuple[Act, str]]) -> list[list[tuple[Act, str]]]:
    """Each sentence with those that lean on it."""
    groups: list[list[tuple[Act, str]]] = []
    for act, words in sentences:
        if groups and _stays(groups[-1], act, words):
            groups[-1].append((act, words))
        else:
            groups.append([(act, words)])
    return groups


def _stays(before: Sequence[tuple[Act, str]], act: Act, words: str) -> bool:
    if act == "question":
        return len(words.split()) < _FEW_WORDS
    is_after_question = any(each == "question" for each, _ in before)
    return leans(words) and not (is_after_question and act == "request")
