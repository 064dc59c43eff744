"""An issue, an error or a question about code as weighted terms and names.

The first line says most. Forms that every issue fills in, comments and addresses say nothing. A
name written as code, between back quotes, with a dot, an underscore or a bracket, may be one that
the code defines.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

from smara.core.terms import expand, fold
from smara.core.text import find_words
from smara.search.stopwords import STOP_WORDS

LONGEST = 100_000
MOST_LOOKED_UP = 160
"""So many terms of a text are looked up; of them, those that tell most are used."""
_TITLE = 3.0
_OFTEN = 2.1
"""What stands in the text three times or more counts twice; a log that repeats a name a hundred
times says no more.
"""
_PART, _NUMBER = 0.75, 0.3
_FORM_WORDS = (
    "describe bug reproduce expected behavior behaviour environment info python version versions "
    "os linux windows mac"
    " macos pip install installed screenshots additional context steps problem issue example code "
    "output actual result"
    " results using use used run running get make like following error traceback current "
    "currently want see add new"
    " work works feature request solution alternatives question thanks"
)
_FORMS = frozenset(_FORM_WORDS.split())
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"https?://\S+")
_QUOTED = re.compile(r"`([^`\n]{1,400})`")
_NAME = re.compile(r"[^\W\d]\w*")
_CAMEL = re.compile(r"[a-z][A-Z]")
_MOST_NAMES = 400
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class IssueTerms:
    """What a text about code is looked up by: terms with how much each is meant, and names that may
    be defined.
    """

    terms: dict[str, float]
    names: dict[str, float]
    words: dict[str, str]
    """A term → the word it comes from, as it was written first."""


def issue_terms(text: str) -> IssueTerms:
    """Read a text about code. Never raises; a long one is read up to a bound.

    >>> found = issue_terms("Session.close hangs\\n\\nIt waits in `drain_pool` for ever.")
    >>> found.terms["drainpool"], found.terms["hang"], sorted(found.names)
    (1.0, 3.0, ['Session', 'close', 'drain_pool', 'hangs'])
    """
    title, _, body = text[:LONGEST].lstrip().partition("\n")
    body = _ADDRESS.sub(" ", _COMMENT.sub(" ", body))
    terms: dict[str, float] = {}
    words: dict[str, str] = {}
    for term, kind in _counted(title, words):
        terms[term] = terms.get(term, 0.0) + _TITLE * _share(kind)
    for (term, kind), count in _counted(body, words).items():
        terms[term] = terms.get(term, 0.0) + min(1 + math.log(count), _OFTEN) * _share(kind)
    kept = sorted(terms, key=lambda term: (-terms[term], -len(term), term))[:MOST_LOOKED_UP]
    return IssueTerms({term: terms[term] for term in kept}, _names(title, body), words)


def _share(kind: str) -> float:
    return _PART if kind == "part" else _NUMBER if kind == "number" else 1.0


def _counted(text: str, words: dict[str, str]) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for word in find_words(text):
        if _says_nothing(fold(word).lower()):
            continue
        for term, kind in expand(word).terms:
            if not _says_nothing(term):
                counted[term, kind] += 1
                words.setdefault(term, word[:_LONGEST_SHOWN])
    return counted


def _says_nothing(word: str) -> bool:
    return len(word) < 2 or word in STOP_WORDS or word in _FORMS


def _names(title: str, body: str) -> dict[str, float]:
    """Names that may be defined somewhere, each with how much it is meant: once for a mention, more
    for repetition.
    """
    counted: Counter[str] = Counter()
    text = f"{title}\n{body}"
    for quoted in _QUOTED.findall(text):
        for name in _NAME.findall(quoted):
            counted[name] += 2
    for match in _NAME.finditer(text):
        name = match[0]
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        if len(name) > 2 and (
            "_" in name.strip("_") or _CAMEL.search(name) or after == "(" or before == "."
        ):
            counted[name] += 1
    counted.update(name for name in _NAME.findall(title) if len(name) > 3)
    return {
        name: 1 + 0.3 * math.log(count)
        for name, count in counted.most_common(_MOST_NAMES)
        if not _says_nothing(name.lower())
    }
