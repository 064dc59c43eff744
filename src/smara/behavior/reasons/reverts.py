"""Commits that take another one back and say why: dead ends.

A revert without a reason teaches nothing, and one whose change was made again later is no dead end.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Literal, NamedTuple

from smara.behavior.quoting import quote
from smara.behavior.reasons.reading import gives_reason, is_readable
from smara.behavior.reasons.text import read_commit, subject_of

_REVERT = re.compile(
    r"(?:^|[-:—–]\s*|\s)revert(?:ed|s"
    r"|ing)?:?\s+[\"“'](?P<what>.{6,200})[\"”']\.?\s*(?:\([^)]*\))?\s*$",
    re.I,
)
_REVERT_OF = re.compile(r"^revert(?:\([^)]{0,60}\))?!?: (?P<what>.{6,200})$", re.I)
_TAKES_BACK = re.compile(
    r"^(?:this )?(?:commit )?(?:partially |mostly |manually )?reverts?(?:ed)? (?:the )?"
    r"(?:commits? |changes? |parts? of )?(?:made (?:in|to) )?(?:r?[0-9a-f]{5,40}\W*(?:and |, )?)+",
    re.I,
)
_BECAUSE = re.compile(r"^(?:because|since|as|due to|which|that|until|in favou?r of|it|,)\b", re.I)
_ONLY_HOW = re.compile(
    r"^(?:conflicts?|reversing|changes made to|keeps?|kept|thanks|(?:the )?(?:tests?|docs) )", re.I
)
_OF_THE_DAY = re.compile(r"\b(?:block the|release|until then|temporar\w+|for the time)\b", re.I)
_WENT_WRONG = re.compile(
    r"\bnot\b(?! only)|n't\b|\b(?:unable|flaw\w*|regress\w*|incompatib\w*|concerns?|slow\w*|too"
    r"|fail\w*|never|wrong\w*"
    r"|insufficient|problem\w*|issues?|no longer|complex\w*|confus\w+|surpris\w+|mistake)\b",
    re.I,
)
_LEAST = 30


class Reverted(NamedTuple):
    """What was tried and taken back."""

    what: str
    why: str
    type: Literal["dead_end"] = "dead_end"

    @property
    def content(self) -> str:
        """Both as one statement."""
        return f"Tried and reverted: “{self.what}”. {self.why[:1].upper()}{self.why[1:]}"

    @property
    def fields(self) -> dict[str, str]:
        """What a dead end says besides."""
        return {"approach_tried": quote(self.what, 300), "why_it_failed": quote(self.why, 400)}


def revert_of(message: str, done_later: Set[str] = frozenset()) -> Reverted | None:
    """The dead end that a revert tells of. ``done_later`` are the subjects of all newer commits."""
    text = read_commit(message)
    found = _REVERT.search(text.first_line) or _REVERT_OF.match(text.first_line)
    if found is None:
        return None
    what = subject_of(found["what"]).rstrip(".")
    if what.casefold() in done_later or _REVERT.search(what) or what.lower().startswith("revert"):
        return None
    told = [each for each in map(_reason_in, text.sentences) if each]
    why = next((each for each in told if gives_reason(each)), None)
    why = why or next((each for each in told if _WENT_WRONG.search(each)), None)
    return None if why is None else Reverted(what, why)


def _reason_in(sentence: str) -> str | None:
    """The reason in a sentence of a revert: all of it, or what follows *this reverts commit …*."""
    taken = _TAKES_BACK.match(sentence)
    rest = sentence if taken is None else sentence[taken.end() :].lstrip(" ,.;:-")
    if taken is not None and not _BECAUSE.match(rest):
        return None
    if (
        len(rest) < _LEAST
        or _ONLY_HOW.match(rest)
        or _OF_THE_DAY.search(rest)
        or not is_readable(f"{rest[:1].upper()}{rest[1:]}")
    ):
        return None
    return rest
