"""What a query is after: which kind of question, which names and files, which time.

The kind decides how much words, meaning and structure are trusted. It is read off the
query itself and what the caller says is going on; no model is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

from smara.core.dates import Period
from smara.core.days import Days, days_asked
from smara.errors import InvalidInputError
from smara.search.models import PHASES
from smara.search.query import LONGEST_QUERY, Query, analyze_query

QueryType = Literal["identifier", "semantic", "structural", "temporal"]

_STRUCTURAL_TOOLS = frozenset(
    {"code-query", "analyzeImpact", "analyze_impact", "getDependencies", "get_dependencies"}
)
_STRUCTURAL = re.compile(
    r"\b(?:who|what|which \w+)\s+(?:calls?|imports?|uses|depends? on|breaks?|inherits?)\b"
    r"|\b(?:callers?|callees?|dependents?|dependenc(?:y|ies)|subclass(?:es)?|impact) (?:of|for"
    r"|on)\b"
    r"|\bwhat (?:would |will )?break",
    re.IGNORECASE,
)
_TEMPORAL = re.compile(
    r"\b(?:when|how (?:long|many (?:minutes|hours|days|weeks|months|years))|yesterday|today"
    r"|tonight|ago|"
    r"(?:last|past|previous|this|next) (?:night|week|weekend|month|year|spring|summer|autumn|fall"
    r"|winter|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)|first|latest|most recent(?:ly)?|earliest|before"
    r"|after|since|until)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Hints:
    """What the caller knows beside the query: the phase of the work, the tools used last, the files
    in play.
    """

    phase: str | None = None
    recent_tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.phase is not None and self.phase not in PHASES:
            raise InvalidInputError(
                f"phase must be one of {', '.join(PHASES)}; got {self.phase!r}."
            )


@dataclass(frozen=True, slots=True)
class Understanding:
    """A query, and what it is after."""

    query: Query
    type: QueryType
    names: tuple[str, ...]
    paths: tuple[str, ...]
    hints: Hints
    days: Days | None = None
    """The days that words such as "last week" mean."""

    @property
    def period(self) -> Period | Days | None:
        """The time the query names, by a date or by its distance from today."""
        return self.query.period or self.days

    @property
    def is_about_code(self) -> bool:
        """Whether it names code: a name, a path, or what calls what."""
        return self.type in ("identifier", "structural")

    def render(self) -> str:
        """One line for a person: ``identifier question; names parse_config; from around May
        2026``.
        """
        told = [f"{self.type} question"]
        if self.names:
            told.append("names " + ", ".join(self.names[:5]))
        if self.paths:
            told.append("paths " + ", ".join(self.paths[:5]))
        if self.query.phrases:
            told.append(
                "phrases " + ", ".join(f"'{' '.join(phrase)}'" for phrase in self.query.phrases)
            )
        if self.period is not None:
            told.append(f"from around {self.period.render()}")
        if self.hints.phase:
            told.append(f"phase {self.hints.phase}")
        return "; ".join(told)


def understand(text: str, hints: Hints | None = None, today: date | None = None) -> Understanding:
    """Read a query. Never raises for a text. With ``today`` it is known which days "last week"
    means.

    >>> understand("parse_config fails").type, understand("what did we decide about caching").type
    ('identifier', 'semantic')
    >>> understand("who calls parse_config").type, understand("when did I buy the tent?").type
    ('structural', 'temporal')
    """
    query, hints = analyze_query(text), hints or Hints()
    days = (
        None
        if today is None or query.period is not None
        else days_asked(text[:LONGEST_QUERY], today)
    )
    names = tuple(dict.fromkeys([term.word for term in query.wanted if term.kind == "identifier"]))
    paths = tuple(dict.fromkeys([term.word for term in query.wanted if term.kind == "path"]))
    is_timed = days is not None or query.period is not None
    kind = _type(text[:LONGEST_QUERY], is_timed, bool(names or paths), hints=hints)
    return Understanding(query, kind, names, paths=paths, hints=hints, days=days)


def _type(text: str, is_timed: bool, has_names: bool, hints: Hints) -> QueryType:
    if _STRUCTURAL.search(text) or _STRUCTURAL_TOOLS.intersection(hints.recent_tools):
        return "structural"
    if has_names:
        return "identifier"
    if is_timed or _TEMPORAL.search(text):
        return "temporal"
    return "semantic"
