"""Analyze a query into terms, intent, names and dates.

Any string is a query; quotation marks are its only syntax. Words are analyzed like the texts they
must match. The intent decides how far words, meaning and structure are trusted; it is read from the
query and the caller's hints, without a model. Stop words are dropped unless nothing else is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Literal, NamedTuple

from smara.core.dates import Days, Period, find_past_days, find_period
from smara.core.extract import one_line, shorten, word_set
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.core.terms import Kind, expand, fold
from smara.core.text import find_words
from smara.core.validate import one_of
from smara.errors import InvalidInputError
from smara.search.languages import STOP_WORDS, find_language, function_words, is_grammar
from smara.search.models import PHASES

# Words that measure time are asked for ("how many days ago") far more often than they are said
# where the answer is. They keep a share of their weight; on LongMemEval_S this brought 1.2 points
# of R@5. And people who ask about code name the language, and code does not: 1.1 points of MRR on
# CoSQA.
_WEAK = word_set(
    "second seconds minute minutes hour hours day days week weeks month months year years time "
    "times ago pass passed long "
    "python javascript typescript java ruby golang rust php perl kotlin swift scala bash"
)
# Words that say what kind of answer a question wants ("the total number of") stand seldom where the
# answer is. They are weak in such questions alone; on LongMemEval_S this brought 0.6 points of R@5,
# on a shared haystack 1.2.
_WEAK_IN_WHICH = _WEAK | word_set("total number amount average different order name type kind")

MOST_TERMS = 32
MOST_PHRASES = 8
LONGEST_QUERY = 1_000
_LONGEST_SCANNED = 200_000
LONGEST_SHOWN = 80
_QUOTED = regex(r'"([^"]{1,400})"')
_SIGNS = regex(r"[\W_]+")
_ASKS_WHICH = regex(r"\b(?:what|which|how (?:many|much))\b", re.IGNORECASE)
_TELLS = {"identifier": 4, "path": 4, "cjk": 3, "number": 2, "word": 1, "part": 0}


_LONGEST_ENDING = 4


def shown_term(text: str, kind: str, word: str) -> str:
    """Return a term as a reason names it.

    >>> shown_term("hang", "word", "hangs"), shown_term("schema", "part", "LoginSchema")
    ('hangs', 'schema of LoginSchema')
    >>> shown_term("validatetotal", "identifier", "Order.validate_total")
    'validatetotal of Order.validate_total'
    """
    letters = sum(letter.isalnum() for letter in word)
    is_whole = kind != "part" and letters - len(text) <= _LONGEST_ENDING
    return word if is_whole or " (contains " in word else f"{text} of {word}"


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, folded."""
    return _SIGNS.sub("", text.casefold())


def verified_term(shown: str, term: str, letters: str) -> str | None:
    """Return a reason as far as it stands in a text.

    An index finds words by their stems, and also in the path above a text.

    >>> [verified_term("skipping", "skip", letters) for letters in ("skippingall", "skipall", "x")]
    ['skipping', 'skip of skipping', None]
    """
    part, _, word = shown.partition(" of ")
    if letters_of(part.partition(" (contains ")[0]) in letters:
        return shown
    return f"{term} of {word or part}" if letters_of(term) in letters else None


class QueryTerm(NamedTuple):
    """One term to look for.

    ``group`` numbers the word of the query it came from: a whole identifier and its parts
    share one. ``word`` is that word as written, for reasons a person reads. A weak term
    (*days*, *python*) counts for little. A single CJK character is a prefix: it stands at the
    beginning of the bigrams it occurs in. ``closeness`` is less than 1 for a guess: a name that
    contains a fragment of the query.
    """

    text: str
    kind: Kind
    group: int
    word: str
    is_stop: bool = False
    is_weak: bool = False
    is_prefix: bool = False
    closeness: float = 1.0

    @property
    def shown(self) -> str:
        """The term as a reason names it."""
        return shown_term(self.text, self.kind, self.word)


class Phrase(NamedTuple):
    """Quoted words: their terms as in the index, and as typed."""

    needle: str
    text: str


@dataclass(frozen=True, slots=True)
class Query:
    """A query: at most 32 terms, phrases, and a date."""

    text: str
    terms: tuple[QueryTerm, ...]
    phrases: tuple[Phrase, ...] = ()
    period: Period | None = None
    telling: tuple[QueryTerm, ...] = field(init=False)
    """The terms worth looking up: stop words only where there is nothing else."""

    def __post_init__(self) -> None:
        telling = tuple([term for term in self.terms if not term.is_stop])
        object.__setattr__(self, "telling", telling or self.terms)

    @property
    def first(self) -> Query:
        """The query with its first term alone: a whole name."""
        return Query(self.text, self.terms[:1], (), period=self.period)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple([term.text for term in self.telling])


MOST_HITS = 1_000


def check_query(query: object, limit: object, offset: object = 0) -> None:
    """Raise InvalidInputError for an invalid query, limit or offset."""
    if not isinstance(query, str):
        raise InvalidInputError(f"query must be a text, not {type(query).__name__}.")
    for name, value, least in (("limit", limit, 1), ("offset", offset, 0)):
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or not least <= value <= MOST_HITS:  # type: ignore[operator]
            raise InvalidInputError(
                f"{name} must be a whole number from {least} to {MOST_HITS}; got {value!r}."
            )


def analyze_query(text: str) -> Query:
    """Return the terms of any text.

    Of a long one those that tell most.
    """
    scanned = text[:_LONGEST_SCANNED]
    # Each text once; a mention as a word of its own outweighs one as a stop word.
    distinct: dict[str, QueryTerm] = {}
    for term in _terms(scanned):
        if term.text not in distinct or (distinct[term.text].is_stop and not term.is_stop):
            distinct[term.text] = term
    terms = list(distinct.values())
    if len(scanned) > LONGEST_QUERY or len(terms) > MOST_TERMS:
        telling = sorted(
            terms,
            key=lambda term: (not term.is_stop, _TELLS[term.kind], len(term.text)),
            reverse=True,
        )
        chosen = {term.text for term in telling[:MOST_TERMS]}
        terms = [term for term in terms if term.text in chosen]
    # The terms of each quotation that stand side by side in the index.
    phrases: dict[str, str] = {}
    for quoted in _QUOTED.findall(scanned):
        side_by_side = [term.text for word in find_words(quoted) for term in expand(word).terms[:1]]
        if len(side_by_side) > 1:
            shown = shorten(one_line(quoted), LONGEST_SHOWN)
            phrases.setdefault(f" {' '.join(side_by_side)} ", shown)
    return Query(
        text=text,
        terms=tuple(terms),
        phrases=tuple([Phrase(*each) for each in phrases.items()][:MOST_PHRASES]),
        period=find_period(scanned[:LONGEST_QUERY]),
    )


def _terms(text: str) -> Iterable[QueryTerm]:
    weak = _WEAK_IN_WHICH if _ASKS_WHICH.search(text[:LONGEST_QUERY]) else _WEAK
    stop = STOP_WORDS | function_words(find_language(text[:LONGEST_QUERY]))
    for group, word in enumerate(find_words(text)):
        lower = fold(word).lower().replace("'", "")
        # IT, US, WHO and OR in capitals are names.
        is_stop = lower in stop and not (word.isupper() and len(word) > 1 and word.isalpha())
        terms = expand(word).terms
        for position, (term, kind) in enumerate(terms):
            is_prefix = kind == "cjk" and len(term) == 1
            if is_prefix and position and terms[position - 1].kind == "cjk":
                continue  # the last character of a run is already in the bigram before it
            yield QueryTerm(
                term,
                kind,
                group,
                word=word[:LONGEST_SHOWN],
                is_stop=is_stop or (kind == "cjk" and is_grammar(term)),
                is_weak=lower in weak,
                is_prefix=is_prefix,
            )


QueryType = Literal["identifier", "semantic", "structural", "temporal"]

_STRUCTURAL_TOOLS = frozenset(
    {"code-query", "analyzeImpact", "analyze_impact", "getDependencies", "get_dependencies"}
)
_STRUCTURAL = regex(
    r"\b(?:who|what|which \w+)\s+(?:calls?|imports?|uses|depends? on|breaks?|inherits?)\b"
    r"|\b(?:callers?|callees?|dependents?|dependenc(?:y|ies)|subclass(?:es)?|impact) (?:of|for"
    r"|on)\b"
    r"|\bwhat (?:would |will )?break",
    re.IGNORECASE,
)
_TEMPORAL = regex(
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
    """The caller's phase of work, tools used last, and files in play."""

    phase: str | None = None
    recent_tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.phase is not None:
            one_of(self.phase, PHASES, "phase")


@dataclass(frozen=True, slots=True)
class QueryIntent:
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
        """The period the query names, by date or distance."""
        return self.query.period or self.days

    @property
    def is_about_code(self) -> bool:
        """True if it names code: a name, path, or call."""
        return self.type in ("identifier", "structural")

    def render(self) -> str:
        """One line for a person: ``identifier question; names parse_config; from around May
        2026``.
        """
        facts = {
            "names": ", ".join(self.names[:5]),
            "paths": ", ".join(self.paths[:5]),
            "phrases": ", ".join(f"'{phrase.text}'" for phrase in self.query.phrases),
            "from around": self.period.render() if self.period is not None else "",
            "phase": self.hints.phase,
        }
        return "; ".join(
            [f"{self.type} question", *(f"{name} {fact}" for name, fact in facts.items() if fact)]
        )


def understand(text: str, hints: Hints | None = None, today: date | None = None) -> QueryIntent:
    """Read any text as a query.

    ``today`` tells which days "last week" means.

    >>> understand("parse_config fails").type, understand("what did we decide about caching").type
    ('identifier', 'semantic')
    >>> understand("who calls parse_config").type, understand("when did I buy the tent?").type
    ('structural', 'temporal')
    """
    query, hints = analyze_query(text), hints or Hints()
    days = (
        None
        if today is None or query.period is not None
        else find_past_days(text[:LONGEST_QUERY], today)
    )
    names = tuple(dict.fromkeys([term.word for term in query.telling if term.kind == "identifier"]))
    paths = tuple(dict.fromkeys([term.word for term in query.telling if term.kind == "path"]))
    is_timed = days is not None or query.period is not None
    kind: QueryType = "semantic"
    if _STRUCTURAL.search(text[:LONGEST_QUERY]) or _STRUCTURAL_TOOLS.intersection(
        hints.recent_tools
    ):
        kind = "structural"
    elif names or paths:
        kind = "identifier"
    elif is_timed or _TEMPORAL.search(text[:LONGEST_QUERY]):
        kind = "temporal"
    return QueryIntent(query, kind, names, paths=paths, hints=hints, days=days)
