"""Supersede or carry over older decisions about the same thing.

A person's newer word replaces the older one where both speak of the same point; what it does not
touch still stands and is carried into the new record. So the rule in force is whole, and words
that no longer hold are only named as what was given up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from smara.core.extract import shorten
from smara.core.startup.regex import regex
from smara.decisions.assemble import Draft
from smara.decisions.utterances import content_terms, count_signs, names_in, sentences
from smara.knowledge.models import Evidence, TypedMemory

_SAME_POINT = 0.5
_LEAST_TOUCHED = 0.2
_LEAST_SHARED, _LEAST_SHARED_WITH_NAME = 0.28, 0.2
_MOST_CARRIED = 1_000
_WHOLE, _LEAST_TERMS = 0.7, 3
_AMOUNT = regex(r"(\d[\d.,]*)[ -]?([^\W\d_]{1,12}|%)?")
_LONGEST_GIVEN_UP = 200


class Amendment(NamedTuple):
    """A change of an older decision: what stays, what is given up."""

    older: TypedMemory
    carried: tuple[Evidence, ...]
    given_up: tuple[str, ...]
    is_conflict: bool = False
    """Whether another person said the older one: then both stand, and disagree."""


def amendment(draft: Draft, older: TypedMemory) -> Amendment | None:
    """Return how a draft amends an older decision, or None."""
    new = [draft.rule, *(each.text for each in draft.quotations)]
    quotes = [(each, text) for each in older.evidence for text in _pieces(each.quote or "")]
    wording = _pieces(older.content) if older.data.get("wording") == "agent" else []
    old = [*wording, *(text for _, text in quotes)]
    if not _is_same_subject(new, old):
        return None
    touched = _touched(old, new)
    if len(touched) < _LEAST_TOUCHED * len(old):
        return None
    restated = sum(text in touched for text in wording)
    is_whole = len(wording) > 1 and restated >= _WHOLE * len(wording)
    carried: list[Evidence] = []
    # What states the rule in full leaves nothing of the old words; "yes, that" says nothing alone.
    for each, text in quotes if not is_whole else ():
        size = sum(len(other.quote or "") for other in carried) + len(text)
        is_telling = len(content_terms(text)) >= _LEAST_TERMS
        if is_telling and text not in touched and size <= _MOST_CARRIED:
            carried.append(Evidence(message_id=each.message_id, quote=text))
    day = time.strftime("%Y-%m-%d", time.gmtime(older.evidence_at / 1_000))
    given_up = [
        f"until then (since {day}): {shorten(text, _LONGEST_GIVEN_UP)}"
        for text in old
        if text in touched and not _is_repeated(text, new)
    ]
    # A summary says many things in one sentence: of it nothing is carried on.
    return Amendment(older, tuple(carried), tuple(given_up[:2]))


def _pieces(text: str) -> list[str]:
    """Return the statements of a text: its sentences, cut at semicolons."""
    pieces = [piece.strip("… ") for each in sentences(text) for piece in each.split(";")]
    return [piece for piece in pieces if piece]


def _touched(old: Sequence[str], new: Sequence[str]) -> set[str]:
    """Return the older statements that newer ones restate or change.

    "24 euros a day" is touched by "the cap is 30 euros" if a sentence beside it says that the cap
    is 24 euros: the number has gone.
    """
    touched = {text for text in old if _is_same_point(text, new)}
    gone = _amounts(touched) - _amounts(new)
    return touched | {text for text in old if gone & _amounts([text])}


def _amounts(texts: Iterable[str]) -> set[tuple[str, str]]:
    """Return the numbers in texts, each with the word after it."""
    return {pair for text in texts for pair in _AMOUNT.findall(text.lower())}


def left_by_newer(draft: Draft, newer: TypedMemory) -> Draft | None:
    """Return what a newer decision leaves of an older draft.

    Sessions may be read out of their order, as when older ones are imported later.
    """
    texts = [newer.content, *(each.quote or "" for each in newer.evidence)]
    ours = [draft.rule, *(each.text for each in draft.quotations)]
    if not _is_same_subject(ours, texts):
        return draft
    touched = _touched(ours, texts)
    left = tuple(each for each in draft.quotations if each.text not in touched)
    if len(left) > (1 - _LEAST_TOUCHED) * len(draft.quotations):
        return draft
    return draft._replace(quotations=left, wording=None) if left else None


def _is_same_subject(new: Sequence[str], old: Sequence[str]) -> bool:
    """Return True if two decisions share a name of the code, or many words."""
    first, second = content_terms(" ".join(new)), content_terms(" ".join(old))
    ours, theirs = names_in(new), names_in(old)
    if ours and theirs and ours.isdisjoint(theirs):
        return False  # the same form of words about another function
    has_name = bool(ours & theirs)
    share = len(first & second) / max(1, min(len(first), len(second)))
    return share >= (_LEAST_SHARED_WITH_NAME if has_name else _LEAST_SHARED)


def _is_same_point(text: str, others: Sequence[str]) -> bool:
    """Return True if one of some texts speaks of the same as a sentence."""
    terms = content_terms(text)
    if not terms:
        return True
    pieces = [content_terms(piece) for other in others for piece in _pieces(other)]
    return any(
        len(terms & each) >= _SAME_POINT * min(len(terms), max(3, len(each))) for each in pieces
    )


def _is_repeated(text: str, others: Sequence[str]) -> bool:
    """Return True if a sentence says the same as before, number by number and sign by sign."""
    terms = content_terms(text)
    numbers = {term for term in terms if term.isdigit()}
    refuses = count_signs(text, "refuse") % 2
    for piece in (each for other in others for each in _pieces(other)):
        found = content_terms(piece)
        is_near = len(terms & found) >= _SAME_POINT * min(len(terms), max(3, len(found)))
        if is_near and numbers <= found and count_signs(piece, "refuse") % 2 == refuses:
            return True
    return False
