"""Decide if a message is about a record, by an absolute measure.

In any store something is nearest to any message. So the shared terms are weighed by how rare
they are, in what developers write anywhere, among the records, and in what is said in this
project: the words that a project uses every day are no sign of a subject. A record passes only if
the weight is large by itself and makes up a good share of the message. Otherwise nothing is told.

Hooks load this module: what costs time is imported when it is used.
"""

from __future__ import annotations

import math
import os

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NamedTuple, Protocol
else:
    from collections import namedtuple

    NamedTuple = Protocol = object

_USUAL = 200
"""The common terms count as so many texts beside those of a project, and as so many messages."""
_UNKNOWN_RATE = 2 / 10_000
_ORDINARY = 3.0
"""What weighs less is no sign of a subject."""
_MOST_TEXTS = 300
"""A larger project is measured as one of this size, so that a weight means the same."""
_LONGEST_MESSAGE = 4_000
_MOST_TERMS, _MOST_WEIGHED = 40, 16
_MOST_NEAR, _MOST_ASKED = 6, 40
MOST_ROWS = 400
"""A term that more records have is no sign of a subject."""
_ASKED_WEIGHT, _ASKED_SHARE = 4.0, 0.12
_LEAST_WEIGHT, _LEAST_SHARE, _MANY = (1.8, 2.6), (0.07, 0.09), 30
"""The bounds for one record, and for so many: among more, chance finds something nearer."""
_LEAST_OF_CORE = 1.5
_FEW_TERMS, _COMMON_RATE, _COMMON_SHARE = 8, 0.01, 0.1
"""A longer message with fewer common terms is in a language whose common terms are not known."""
_BESIDE_BEST = 0.6
_NAME = 2.0

if TYPE_CHECKING:

    class Recalled(NamedTuple):
        """A record that a message is about, and how surely."""

        no: int
        weight: float
        share: float

    class Core(NamedTuple):
        """A record's own texts, without what stands around it."""

        texts: Sequence[tuple[str, float]]
        """Its texts, with what a term counts that stands in them."""
        thread_no: int
        """The session that it comes from; 0 for none."""
else:
    Recalled = namedtuple("Recalled", "no weight share")
    Core = namedtuple("Core", "texts thread_no")


class RecordShelf(Protocol):
    """The records of one kind that a message may be about."""

    total: int
    around: float
    """What a term counts that stands only around a record."""

    def match(self, term: str) -> Sequence[int]: ...

    def cores(self, numbers: Sequence[int]) -> Mapping[int, Core]: ...

    def spread(self, terms: Sequence[str], thread_no: int) -> tuple[list[int], int]: ...


class MessageTerms:
    """The terms of a message, with their weights."""

    def __init__(self, text: str) -> None:
        self.factors = _terms(text)
        self.rates = dict.fromkeys(self.factors, _UNKNOWN_RATE)
        for rate, terms in _common_lines():
            self.rates |= dict.fromkeys(self.factors.keys() & terms.split(), rate)
        self.counts: dict[str, float] = {}
        self.size = 1
        common = sum(rate >= _COMMON_RATE for rate in self.rates.values())
        many = len(self.rates)
        self.is_foreign = many > _FEW_TERMS and common < _COMMON_SHARE * many

    def weight(self, term: str, rate: float = 0.0) -> float:
        """Return a term's weight, given how often the project uses it."""
        rate = max(rate, self.rates[term])
        rarity = math.log((self.size + _USUAL) / (self.counts.get(term, 0.0) + _USUAL * rate + 0.5))
        return max(0.0, rarity - _ORDINARY) * self.factors[term]


def recall(
    text: str | MessageTerms, shelf: RecordShelf, *, is_asked: bool = False
) -> list[Recalled]:
    """Return the records that a message is about, the surest first.

    Args:
        text: The message.
        shelf: The records.
        is_asked: A caller asks for them: what is common in the project counts, too.
    """
    if not shelf.total:
        return []
    message = MessageTerms(text) if isinstance(text, str) else text
    if message.is_foreign and not is_asked:
        return []
    bounds = _bounds(shelf.total, is_asked)
    found, sums, whole = _shared(message, shelf.total, shelf.match)
    near = sorted(
        (no for no in sums if _passes(sums[no], whole, bounds)), key=lambda no: (-sums[no], -no)
    )
    cores = shelf.cores(near[: _MOST_ASKED if is_asked else _MOST_NEAR]) if near else {}
    passed = []
    for no, core in cores.items():
        weight = sums[no] if is_asked else _core_weight(message, shelf, core, found[no])
        rest = whole - sums[no] + weight
        if _passes(weight, rest, bounds):
            passed.append(Recalled(no, round(weight, 2), round(weight / rest, 3)))
    passed.sort(key=lambda each: (-each.weight, -each.no))
    return [each for each in passed if each.weight >= _BESIDE_BEST * passed[0].weight]


def may_recall(text: str, total: int, terms: Mapping[str, Sequence[int]]) -> set[int]:
    """Return the records near a message by their terms alone.

    Args:
        text: The message.
        total: How many records there are.
        terms: The records that hold each term.
    """
    message = MessageTerms(text)
    if not total or message.is_foreign:
        return set()
    _, sums, whole = _shared(message, total, lambda term: terms.get(term, ()))
    bounds = _bounds(total, is_asked=False)
    return {no for no, weight in sums.items() if _passes(weight, whole, bounds)}


def _shared(
    message: MessageTerms, total: int, match: Callable[[str], Sequence[int]]
) -> tuple[dict[int, list[str]], dict[int, float], float]:
    """Return the terms that records share with a message, their weights, and the message's."""
    rates, weights = message.rates, dict[str, float]()
    message.counts, message.size = {}, min(total, _MOST_TEXTS)
    found: dict[int, list[str]] = {}
    for place, term in enumerate(sorted(rates, key=lambda term: (rates[term], -len(term), term))):
        if message.weight(term) <= 0:
            break
        rows = match(term) if place < _MOST_TERMS else ()
        message.counts[term] = len(rows) * message.size / total
        if len(rows) >= MOST_ROWS or not (weight := message.weight(term)):
            continue
        weights[term] = weight
        for no in rows:
            found.setdefault(no, []).append(term)
    sums = {no: sum(weights[term] for term in terms) for no, terms in found.items()}
    return found, sums, sum(weights.values())


def _bounds(total: int, is_asked: bool) -> tuple[float, float]:
    if is_asked:
        return _ASKED_WEIGHT, _ASKED_SHARE
    grown = min(1.0, math.log(total) / math.log(_MANY))
    weight, share = (low + grown * (high - low) for low, high in (_LEAST_WEIGHT, _LEAST_SHARE))
    return weight, share


def _passes(weight: float, whole: float, bounds: tuple[float, float]) -> bool:
    return weight >= bounds[0] and weight >= bounds[1] * whole


def _core_weight(
    message: MessageTerms, shelf: RecordShelf, core: Core, terms: Sequence[str]
) -> float:
    """Return the weight of what a message shares with a record itself.

    A term counts less if it stands only around the record, or is used in other sessions, too.
    """
    places: dict[str, float] = {}
    for text, factor in core.texts:
        for term in _all_terms(text):
            places[term] = max(factor, places.get(term, 0.0))
    heavy = sorted(terms, key=lambda term: -message.weight(term) * places.get(term, shelf.around))
    heavy = heavy[:_MOST_WEIGHED]
    counts, total = shelf.spread(heavy, core.thread_no)
    parts = {
        term: message.weight(term, count / (total + _USUAL)) * places.get(term, shelf.around)
        for term, count in zip(heavy, counts, strict=True)
    }
    own = sum(part for term, part in parts.items() if places.get(term) == 1.0)
    return sum(parts.values()) if own >= _LEAST_OF_CORE else 0.0


def _all_terms(text: str) -> dict[str, float]:
    from smara.core.text import analyze

    found = analyze(text)
    return dict.fromkeys((*found.prose.split(), *found.code.split()), 1.0)


def _terms(text: str) -> dict[str, float]:
    """Return the terms of a message; the name of a function counts twice."""
    from smara.core.terms import expand
    from smara.core.text import find_words

    terms = _all_terms(text[:_LONGEST_MESSAGE])
    for word in find_words(text[:_LONGEST_MESSAGE]):
        for term in expand(word).terms if not word.isalpha() or not word.islower() else ():
            if term.kind == "identifier" and term.text in terms:
                terms[term.text] = _NAME
    return terms


def common_terms() -> dict[str, float]:
    """Return the share of texts in which common terms stand."""
    return {term: rate for rate, terms in _common_lines() for term in terms.split()}


def _common_lines() -> list[tuple[float, str]]:
    path = os.path.join(os.path.dirname(__file__), "common_terms.txt")
    with open(path, encoding="utf-8") as file:
        lines = [line.partition(":") for line in file.read().splitlines() if line[0] != "#"]
    return [(int(rate) / 10_000, terms) for rate, _, terms in lines]
