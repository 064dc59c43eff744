"""A query as terms: what is looked for, where each term came from, how much it tells.

Any string is a query. It has no syntax but quotation marks; everything else is words,
analyzed like the texts they are to meet, so that no query can be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from smara.core.dates import Period, find_period
from smara.core.terms import Kind, Term, expand, fold
from smara.core.text import find_words
from smara.search.stopwords import ANSWER_WORDS, LANGUAGES, STOP_WORDS, TIME_WORDS

MOST_TERMS = 32
MOST_PHRASES = 8
LONGEST_QUERY = 1_000
_LONGEST_SCANNED = 200_000
LONGEST_SHOWN = 80
_QUOTED = re.compile(r'"([^"]{1,400})"')
_WEAK = TIME_WORDS | LANGUAGES
_ASKS_WHICH = re.compile(r"\b(?:what|which|how (?:many|much))\b", re.IGNORECASE)
_TELLS = {"identifier": 4, "path": 4, "cjk": 3, "number": 2, "word": 1, "part": 0}


class QueryTerm(NamedTuple):
    """One term to look for.

    ``group`` numbers the word of the query it came from: a whole identifier and its parts
    share one. ``word`` is that word as written, for reasons a person reads. A weak term
    (*days*, *python*) counts for little. A single CJK character is a prefix: it stands at the
    beginning of the bigrams it occurs in. ``closeness`` is less than 1 for a guess: a name that
    contains a fragment somebody asked for.
    """

    text: str
    kind: Kind
    group: int
    word: str
    is_stop: bool = False
    is_weak: bool = False
    is_prefix: bool = False
    closeness: float = 1.0


@dataclass(frozen=True, slots=True)
class Query:
    """A query: at most 32 distinct terms, phrases as runs of terms that stand side by side, a date
    it names.
    """

    text: str
    terms: tuple[QueryTerm, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    period: Period | None = None
    wanted: tuple[QueryTerm, ...] = field(init=False)
    """The terms worth looking up: stop words only where there is nothing else."""

    def __post_init__(self) -> None:
        telling = tuple([term for term in self.terms if not term.is_stop])
        object.__setattr__(self, "wanted", telling or self.terms)

    @property
    def first(self) -> Query:
        """The same query with its first term alone: of one name, the whole of it without its
        parts.
        """
        return Query(self.text, self.terms[:1], (), period=self.period)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple([term.text for term in self.wanted])


def analyze_query(text: str) -> Query:
    """The terms of a query. Never raises; a long query keeps the terms that tell most."""
    scanned = text[:_LONGEST_SCANNED]
    terms = list(_distinct(_terms(scanned)))
    if len(scanned) > LONGEST_QUERY or len(terms) > MOST_TERMS:
        terms = _most_telling(terms)
    phrases = tuple(dict.fromkeys(filter(None, map(_phrase, _QUOTED.findall(scanned)))))
    return Query(
        text=text,
        terms=tuple(terms),
        phrases=phrases[:MOST_PHRASES],
        period=find_period(scanned[:LONGEST_QUERY]),
    )


def _terms(text: str) -> Iterable[QueryTerm]:
    weak = _WEAK | ANSWER_WORDS if _ASKS_WHICH.search(text[:LONGEST_QUERY]) else _WEAK
    for group, word in enumerate(find_words(text)):
        lower = fold(word).lower().replace("'", "")
        is_stop, is_weak, shown = _is_stop(word, lower), lower in weak, word[:LONGEST_SHOWN]
        terms = expand(word).terms
        for position, (term, kind) in enumerate(terms):
            if kind == "cjk" and len(term) == 1:
                if position and terms[position - 1].kind == "cjk":
                    continue  # the last character of a run is already in the bigram before it
                yield QueryTerm(
                    term, kind, group, word=shown, is_stop=is_stop, is_weak=is_weak, is_prefix=True
                )
            else:
                yield QueryTerm(term, kind, group, word=shown, is_stop=is_stop, is_weak=is_weak)


def _is_stop(word: str, lower: str) -> bool:
    if word.isupper() and len(word) > 1 and word.isalpha():
        return False  # IT, US, WHO and OR in capitals are names
    return lower in STOP_WORDS


def _distinct(terms: Iterable[QueryTerm]) -> Iterable[QueryTerm]:
    """Each text once; a mention as a word of its own outweighs one as part of a name or as a stop
    word.
    """
    best: dict[str, QueryTerm] = {}
    for term in terms:
        known = best.get(term.text)
        if known is None or (known.is_stop and not term.is_stop):
            best[term.text] = term
    return best.values()


def _most_telling(terms: list[QueryTerm]) -> list[QueryTerm]:
    def value(term: QueryTerm) -> tuple[bool, int, int]:
        return (not term.is_stop, _TELLS[term.kind], len(term.text))

    kept = sorted(terms, key=value, reverse=True)[:MOST_TERMS]
    chosen = {term.text for term in kept}
    return [term for term in terms if term.text in chosen]


def _phrase(quoted: str) -> tuple[str, ...]:
    """The terms of a quotation that stand side by side in the index; nothing for a single word."""
    found: list[Term] = [term for word in find_words(quoted) for term in expand(word).terms[:1]]
    return tuple(term.text for term in found) if len(found) > 1 else ()
