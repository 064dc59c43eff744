"""Decide if a message is about a decision, by an absolute measure.

In any store something is nearest to any message. So the shared terms are weighed by how rare
they are, here and in what developers write anywhere, and a record passes only if the weight is
large by itself and makes up a good share of the message. Otherwise nothing is told.

Hooks load this module: what costs time is imported when it is used.
"""

from __future__ import annotations

import math
import os

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import NamedTuple

    from smara.database.probe import SqliteProbe
else:
    from collections import namedtuple

    NamedTuple = object

_USUAL = 200
"""The common terms count as so many texts beside those of a project."""
_UNKNOWN_RATE = 2 / 10_000
_ORDINARY = 3.0
"""What weighs less is no sign of a subject."""
_MOST_TEXTS = 300
"""A larger project is measured as one of this size, so that a weight means the same."""
_LONGEST_MESSAGE = 4_000
_MOST_TERMS = 64
MOST_ROWS = 1_500
"""A term that more records have is no sign of a subject."""
LEAST_WEIGHT, LEAST_SHARE = 4.0, 0.12
_BESIDE_BEST = 0.6
_NAME = 2.0

if TYPE_CHECKING:

    class Recalled(NamedTuple):
        """A record that a message is about, and how surely."""

        no: int
        weight: float
        share: float
else:
    Recalled = namedtuple("Recalled", "no weight share")


def recall(
    text: str,
    total: int,
    match: Callable[[str], Sequence[int]],
    in_force: Callable[[Sequence[int]], Collection[int]],
    least_weight: float = LEAST_WEIGHT,
    least_share: float = LEAST_SHARE,
) -> list[Recalled]:
    """Return the records that a message is about, the surest first.

    Args:
        text: The message.
        total: How many records there are.
        match: Gives the numbers of the records that hold a term.
        in_force: Gives those of some records that may be told.
        least_weight: The weight of shared terms that a record needs.
        least_share: The share of the message's weight that it needs.
    """
    if not total:
        return []
    usual = common_terms()
    factors = _terms(text)
    rates = {term: usual.get(term, _UNKNOWN_RATE) for term in factors}
    rare = sorted(rates, key=lambda term: (rates[term], -len(term), term))
    size = min(total, _MOST_TEXTS)
    whole = 0.0
    weights: dict[int, float] = {}
    for place, term in enumerate(rare):
        if _weight(0, size, rates[term]) <= 0:
            break
        rows = match(term) if place < _MOST_TERMS else ()
        weight = _weight(len(rows) * size / total, size, rates[term])
        if weight <= 0 or len(rows) >= MOST_ROWS:
            continue
        weight *= factors[term]
        whole += weight
        for no in rows:
            weights[no] = weights.get(no, 0.0) + weight
    found = [
        Recalled(no, round(weight, 2), round(weight / whole, 3))
        for no, weight in weights.items()
        if weight >= least_weight and weight >= least_share * whole
    ]
    valid = in_force([each.no for each in found]) if found else ()
    found = sorted(
        (each for each in found if each.no in valid), key=lambda each: (-each.weight, -each.no)
    )
    return [each for each in found if each.weight >= _BESIDE_BEST * found[0].weight]


def _weight(count: float, size: int, rate: float) -> float:
    """Return how much a term says about a subject; 0 for an ordinary one."""
    rarity = math.log((size + _USUAL) / (count + _USUAL * rate + 0.5))
    return max(0.0, rarity - _ORDINARY)


def _terms(text: str) -> dict[str, float]:
    """Return the terms of a message; the name of a function counts twice."""
    from smara.core.terms import expand
    from smara.core.text import analyze, find_words

    found = analyze(text[:_LONGEST_MESSAGE])
    terms = dict.fromkeys((*found.prose.split(), *found.code.split()), 1.0)
    for word in find_words(text[:_LONGEST_MESSAGE]):
        for term in expand(word).terms if not word.isalpha() or not word.islower() else ():
            if term.kind == "identifier" and term.text in terms:
                terms[term.text] = _NAME
    return terms


def common_terms() -> dict[str, float]:
    """Return the share of texts in which common terms stand."""
    with open(
        os.path.join(os.path.dirname(__file__), "common_terms.txt"), encoding="utf-8"
    ) as file:
        lines = file.read().splitlines()
    return {
        term: int(rate) / 10_000
        for rate, _, terms in (line.partition(": ") for line in lines if not line.startswith("#"))
        for term in terms.split()
    }


def recall_by_probe(look: SqliteProbe, text: str, actor: str) -> list[dict[str, str]]:
    """Return the lines of decisions in force about a message.

    One that was changed since its line was written is left out.
    """
    total = look.number("SELECT count(*) FROM decisions WHERE project_no = :project")
    if not total:
        return []
    found = recall(
        text,
        total,
        lambda term: look.records(term, _DECISION, MOST_ROWS),
        lambda numbers: {row[0] for row in look.rows(_IN_FORCE, ids=_json(numbers), actor=actor)},
    )
    rows = look.rows(_LINES, ids=_json([each.no for each in found]), actor=actor)
    lines = {row[0]: {"id": row[1], "text": row[2], "label": row[3]} for row in rows}
    return [lines[each.no] for each in found if each.no in lines]


def _json(numbers: Sequence[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


_DECISION = 7
_IN_FORCE = (
    "SELECT m.no FROM memories m WHERE m.no IN (SELECT value FROM json_each(:ids))"
    " AND +m.project_no = :project AND m.deprecated_at IS NULL AND m.stale_at IS NULL"
    " AND (m.taint IN ('', '[]') OR m.is_verified = 1)"
    " AND (m.visibility <> 'personal' OR m.created_by = :actor)"
)
_LINES = (
    "SELECT d.memory_no, m.id, d.line, substr(m.content, 1, 60) FROM decisions d"
    f" JOIN memories m ON m.no = d.memory_no AND m.version = d.version WHERE m.no IN ({_IN_FORCE})"
    " AND d.project_no = :project"
)
