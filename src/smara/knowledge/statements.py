"""Compare statements by their words, numbers, names and negations.

Sentences that share nearly all words may mean the opposite ("use pnpm 8", "use pnpm 9"). Numbers,
names and negations are *protected*: statements are the same only if these agree.
"""

from __future__ import annotations

import hashlib
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from smara.core.extract import read_cues
from smara.core.startup.regex import regex
from smara.core.terms import cjk_run, expand, fold
from smara.core.text import iter_words

WordKind = Literal["word", "small", "name", "number", "negation"]

CUES, WORDS = read_cues(__file__, "cues.txt")
"""By what statements are compared and their types guessed: patterns, and sets of words."""

_SENTENCE_END = frozenset(".!?:;\n")
_INNER_CAPITAL = regex(r"[a-z0-9][A-Z]")

SAME_WORDS = 0.8
"""Two statements are alike from this share of common words on, when neither has a word in the place
of another.
"""


class Word(NamedTuple):
    """One word as written and as compared, and its kind."""

    text: str
    stem: str
    kind: WordKind
    is_proper: bool = False
    at: int = 0


class Statement:
    """A text as its words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = tuple(_words(text))

    @cached_property
    def content(self) -> tuple[str, ...]:
        """The words that say something, in order."""
        return tuple(word.stem for word in self.words if word.kind not in ("small", "negation"))

    @cached_property
    def content_set(self) -> frozenset[str]:
        return frozenset(self.content)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(word.stem for word in self.words)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The neighboring words: they tell "A needs B" from "B needs A"."""
        return frozenset(zip(self.content, self.content[1:], strict=False))

    @cached_property
    def protected(self) -> frozenset[str]:
        """The numbers and names, which equal statements share."""
        return frozenset(
            word.stem for word in self.words if word.kind in ("number", "name") or word.is_proper
        )

    @cached_property
    def negations(self) -> int:
        """The number of negations."""
        return sum(word.kind == "negation" for word in self.words) + len(
            CUES["foreign negation"].findall(self.text)
        )

    @cached_property
    def fingerprint(self) -> str:
        """The same for texts that differ in case, spacing and punctuation only."""
        line = " ".join(word.text.casefold() for word in self.words) or " ".join(self.text.split())
        return hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@lru_cache(maxsize=4096)
def parse_statement(text: str) -> Statement:
    """Parse a text into a statement; results are cached."""
    return Statement(text)


def overlap(one: frozenset[Any], other: frozenset[Any]) -> float:
    """Return the share that two sets have in common (Jaccard).

    >>> overlap(frozenset("ab"), frozenset("bc"))
    0.3333333333333333
    """
    either = len(one | other)
    return len(one & other) / either if either else 1.0


def has_same_facts(one: Statement, other: Statement) -> bool:
    """Return True if two statements share numbers, names and negations."""
    return (
        one.negations % 2 == other.negations % 2
        and one.protected <= other.stems | _parts(other)
        and other.protected <= one.stems | _parts(one)
    )


def is_repeated_in(new: Statement, old: Statement) -> bool:
    """Return True if a new statement adds nothing to an old one.

    Every word of it that says something stands in the old one too, in much the same order; a
    word in the place of another makes it another statement, however long both are.
    """
    if not new.content or not new.content_set <= old.content_set or not has_same_facts(new, old):
        return False
    is_alike = overlap(new.content_set, old.content_set) >= SAME_WORDS
    return is_alike and (len(new.content) < 2 or overlap(new.pairs, old.pairs) >= 0.5)


def is_same_in_meaning(new: Statement, old: Statement, cosine: float, least: float) -> bool:
    """Return True if two statements close in meaning are one.

    The same words in another order ("A needs B", "B needs A") lie closest of all and are not the
    same; nor are those in which one word stands for another ("drops comments", "keeps comments").
    """
    if cosine <= least or not has_same_facts(new, old) or is_substituted(new, old):
        return False
    is_reordered = (
        overlap(new.content_set, old.content_set) > 0.9 and overlap(new.pairs, old.pairs) < 0.5
    )
    return not (is_reordered and len(new.content) >= 2)


def is_substituted(new: Statement, old: Statement) -> bool:
    """Return True if two statements differ in one word or two."""
    matcher = SequenceMatcher(None, old.content, new.content, autojunk=False)
    edits = [edit for edit in matcher.get_opcodes() if edit[0] != "equal"]
    if len(edits) != 1 or edits[0][0] != "replace":
        return False
    _, start, end, begin, stop = edits[0]
    return end - start <= 2 and stop - begin <= 2


def _parts(statement: Statement) -> frozenset[str]:
    """The parts of names, so that ``Redis`` meets ``REDIS_URL`` and a path its file."""
    return frozenset(
        term.text
        for word in statement.words
        if word.kind == "name"
        for term in expand(word.text).terms
    )


def _words(text: str) -> list[Word]:
    found: list[Word] = []
    is_start = True
    end = 0
    for match in iter_words(text):
        gap = text[end : match.start()]
        is_start = is_start or not _SENTENCE_END.isdisjoint(gap)
        found += [
            word._replace(at=match.start()) for word in _read_word(match[0], is_start, "`" in gap)
        ]
        is_start, end = False, match.end()
    return found


def _read_word(text: str, is_start: bool, is_quoted: bool) -> list[Word]:
    folded = fold(text)
    lower = folded.lower()
    if not folded.isascii() and cjk_run().search(folded):
        return [Word(text, term.text, "word") for term in expand(folded).terms]
    if lower in WORDS["negations"]:
        return [Word(text, "not", "negation")]
    if lower in WORDS["small"] and not is_quoted:
        return [Word(text, lower, "small")]
    if CUES["number"].fullmatch(lower):
        return [Word(text, lower.lstrip("v").rstrip(".,:_"), "number")]
    if folded.isalpha() and not _INNER_CAPITAL.search(folded) and not is_quoted:
        return [
            Word(
                text,
                expand(folded).terms[0].text if lower.isascii() else lower,
                "word",
                is_proper=folded[0].isupper() and not is_start,
            )
        ]
    is_compound = (
        "-" in folded and folded == lower and all(part.isalpha() for part in folded.split("-"))
    )
    return [Word(text, lower, "word" if is_compound and not is_quoted else "name")]
