"""Supersede or carry over older decisions about the same thing.

A person's newer word replaces the older one where both speak of the same point; what it does not
touch still stands and is carried into the new record. So the rule in force is whole, and words
that no longer hold are only named as what was given up.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from smara.core.extract import shorten
from smara.decisions.assemble import Draft
from smara.decisions.utterances import content_terms, count_signs, names_in, sentences
from smara.knowledge.models import Evidence, TypedMemory

_SAME_POINT = 0.5
_LEAST_TOUCHED = 0.2
_LEAST_SHARED, _LEAST_SHARED_WITH_NAME = 0.28, 0.2
_MOST_CARRIED = 1_000
_LONGEST_GIVEN_UP = 200


class Amendment(NamedTuple):
    """A change of an older decision: what stays, what is given up."""

    older: TypedMemory
    carried: tuple[Evidence, ...]
    given_up: tuple[str, ...]


def amendment(draft: Draft, older: TypedMemory) -> Amendment | None:
    """Return how a draft amends an older decision, or None."""
    new_texts = [draft.rule, *(each.text for each in draft.quotations)]
    new = content_terms(" ".join(new_texts))
    listed = [(each, text) for each in older.evidence for text in sentences(each.quote or "")]
    old = content_terms(" ".join((older.content, *(text for _, text in listed))))
    shared = len(new & old) / max(1, min(len(new), len(old)))
    has_name = bool(names_in(new_texts) & names_in([older.content, *(text for _, text in listed)]))
    if shared < (_LEAST_SHARED_WITH_NAME if has_name else _LEAST_SHARED):
        return None
    touched = [text for _, text in listed if _is_same_point(text, new_texts)]
    if len(touched) < _LEAST_TOUCHED * len(listed):
        return None
    left = [(each, text) for each, text in listed if text not in touched]
    carried: list[Evidence] = []
    for each, text in left:
        if sum(len(other.quote or "") for other in carried) + len(text) <= _MOST_CARRIED:
            carried.append(Evidence(message_id=each.message_id, quote=text))
    day = time.strftime("%Y-%m-%d", time.gmtime(older.evidence_at / 1_000))
    given_up = [
        f"until then (since {day}): {shorten(text, _LONGEST_GIVEN_UP)}"
        for text in touched
        if not _is_repeated(text, new_texts)
    ]
    return Amendment(older, tuple(carried), tuple(given_up[:2]))


def _is_same_point(text: str, others: Sequence[str]) -> bool:
    """Return True if one of some texts speaks of the same as a sentence."""
    terms = content_terms(text)
    if not terms:
        return True
    pieces = [content_terms(piece) for other in others for piece in sentences(other)]
    return any(
        len(terms & each) >= _SAME_POINT * min(len(terms), max(3, len(each))) for each in pieces
    )


def _is_repeated(text: str, others: Sequence[str]) -> bool:
    """Return True if a sentence says the same as before, number by number and sign by sign."""
    terms = content_terms(text)
    numbers = {term for term in terms if term.isdigit()}
    refuses = count_signs(text, "refuse") % 2
    for piece in (each for other in others for each in sentences(other)):
        found = content_terms(piece)
        is_near = len(terms & found) >= _SAME_POINT * min(len(terms), max(3, len(found)))
        if is_near and numbers <= found and count_signs(piece, "refuse") % 2 == refuses:
            return True
    return False
