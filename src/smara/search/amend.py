"""Rank the newer word above the older where one amends the other.

Of what a person said in several conversations, the latest comes first where all answer alike. That
is an order and no statement. What says that it changes something goes further up.

Two conversations are about one subject if, of the words of the messages that answer a query, they
share many that others lack. The later one amends the earlier one if it says of itself that it
changes something. Of two statements, the newer amends the older if the words of both cannot hold
together, by the comparison that also retires memories.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC
from functools import lru_cache
from itertools import combinations
from typing import TypeVar

from smara.core.dates import local_time
from smara.core.extract import shorten
from smara.core.startup.regex import re, regex
from smara.knowledge.contradictions import compare
from smara.knowledge.statements import parse_statement
from smara.search.bm25 import rarity
from smara.search.languages import STOP_WORDS
from smara.search.models import Hit, SearchCandidate
from smara.search.weights import WEIGHTS

LOOKED_AT = 40
_COMPARED, _FEWEST_COMPARED = 10, 10
_LONGEST_STATEMENT = 400
_FEWEST_SHARED_WORDS, _LEAST_SHARED_WORDS = 4, 8
_LOOKED_UP, _BEGINNING = 3, 400
_WORD, _STEM, _LONGEST_TEXT = regex(r"[^\W\d_]{4,}"), 7, 2_000
_LEAST_ANNOUNCED_WORDS = 3
_BRIEF = 60
_FORMER = r"(?:old|older|previous|earlier|former|original|prior|existing|last)"
_RULE = r"(?:rule|decision|policy|plan|agreement|convention|behaviou?r|choice|approach|answer)"
_ANNOUNCED = regex(
    r"(?:^\W*|\b(?:this|our|the) )amendments?\b|\bamendments? (?:to|of)\b"
    r"|\b(?:amend(?:s|ed|ing)?|supersed\w+|overrul\w+|overturn\w*|rescind\w*|retract\w*"
    rf"|revis(?:e[sd]?|ing|ion of) (?:the |our |that |this )(?:{_FORMER} )?{_RULE}"
    rf"|revers(?:e[sd]?|ing|al) (?:of )?(?:the |our |that )?(?:{_FORMER} )?{_RULE}"
    rf"|chang(?:e[sd]?|ing) (?:of |to )?(?:the |our |my |that )(?:{_FORMER} )?(?:mind|{_RULE})"
    rf"|replac(?:e[sd]?|ing) (?:the |our |that )?{_FORMER} {_RULE}|(?:the|our) new {_RULE}"
    rf"|(?:no longer|not) (?:the|our) {_RULE}|{_RULE} (?:has|have) changed"
    r"|on second thought|scratch that(?! \w)|forget what (?:I|we) said"
    r"|tak(?:e|ing) (?:that|it) back)\b",
    re.IGNORECASE,
)
# A part of each way to announce: looking for these takes a twentieth of the time.
_PARTS_ANNOUNCED = (
    "amend", "supersed", "overrul", "overturn", "rescind", "retract", "revis", "revers", "chang",
    "replac", " new ", " longer ", "not the ", "not our ", "second thought", "scratch that",
    "forget what", "that back", "it back",
)  # fmt: skip


Around = Callable[[Sequence[Hit]], Sequence[Hit]]
# So many at the top may answer alike.
_ALIKE = 5


T = TypeVar("T")


def latest_first(
    ranked: list[T], read: Callable[[T], tuple[str, int, float]], count: int
) -> list[tuple[T, T]]:
    """Put the later word first among the first few alike.

    ``read`` returns the conversation, the time and the relevance of one; an empty name stays where
    it is. Returns each older one with the newer one that was put above it.
    """
    moved = []
    for place, below in combinations(range(min(count, len(ranked))), 2):
        older, newer = ranked[place], ranked[below]
        (name, at, relevance), (other, later, rival) = read(older), read(newer)
        is_later = bool(name and other) and name != other and later > at
        if is_later and rival >= max(WEIGHTS.amend.sure, WEIGHTS.amend.nearly * relevance):
            ranked.insert(place, ranked.pop(below))
            moved.append((older, newer))
    return moved


def newer_first(
    best: Sequence[SearchCandidate], around: Around = lambda hits: (), is_timed: bool = False
) -> list[SearchCandidate]:
    """Return ranked candidates with amending ones above what they amend.

    An amended one that is shown says so, with what amended it. ``around`` returns the messages
    that stand around hits: the one that announces a change may share no word with the query. A
    query that names its time is not about the latest word.
    """
    ranked = list(best[:LOOKED_AT])
    moved = latest_first(
        ranked,
        lambda each: (
            each.hit.thread_id or "" if each.hit.role == "user" else "",
            each.hit.created_at,
            each.relevance,
        ),
        count=0 if is_timed else _ALIKE,
    )
    for older, newer in moved:
        newer.multiply("the later word", older.score / newer.score)
        newer.score = older.score
    for older, newer in _amended(ranked, around) if len(ranked) > 1 else ():
        if ranked.index(newer) > ranked.index(older):
            ranked.remove(newer)
            ranked.insert(ranked.index(older), newer)
            newer.multiply("amends what stood above it", older.score / newer.score)
            newer.score = older.score
        # What amends an answer is one, in whatever words.
        newer.relevance = max(newer.relevance, older.relevance)
        # What is hedged already has a reason nearer to it.
        if not older.hit.metadata.get("hedge"):
            day = local_time(UTC, newer.hit.created_at).date()
            words = f": {shorten(' '.join(newer.hit.content.split()), _BRIEF)}"
            words = words if _is_said(newer.hit) else ""
            facts = {"hedge": f"amended on {day} ({newer.hit.id}){words}"}
            older.hit = replace(older.hit, metadata={**older.hit.metadata, **facts})
    return [*ranked, *best[LOOKED_AT:]]


def _amended(
    ranked: Sequence[SearchCandidate], around: Around
) -> list[tuple[SearchCandidate, SearchCandidate]]:
    """Pairs of an older candidate and the newer one that amends it, each older one once."""
    found: dict[int, tuple[SearchCandidate, SearchCandidate]] = {}
    for one, other in combinations(ranked[:_COMPARED], 2):
        older, newer = sorted((one, other), key=lambda each: each.hit.created_at)
        texts = (newer.hit.content, older.hit.content)
        if (
            newer.hit.created_at > older.hit.created_at
            and max(map(len, texts)) <= _LONGEST_STATEMENT
            and _is_said(newer.hit)
        ):
            contradiction = compare(parse_statement(texts[0]), parse_statement(texts[1]))
            if contradiction is not None and contradiction.is_sure:
                found.setdefault(id(older), (older, newer))
    threads: dict[str, list[SearchCandidate]] = {}
    for each in ranked:
        if each.kind == "message" and each.hit.thread_id:
            threads.setdefault(each.hit.thread_id, []).append(each)
    for group, later in amended_threads(list(threads.values()), around):
        # The best of the later one goes above the best of the earlier one; all that is shown of
        # the earlier one says so.
        found |= {id(each): (each, later[0]) for each in group if id(each) not in found}
    return list(found.values())


def amended_threads(
    groups: Sequence[list[SearchCandidate]], around: Around
) -> list[tuple[list[SearchCandidate], list[SearchCandidate]]]:
    """Return pairs of conversations of which the second amends the first.

    Each is given by the messages that answer best.
    """
    found = []
    looked_up = 0
    beside: dict[int, list[Hit]] = {}  # by the later conversation, which several may precede
    for group, later in _of_one_subject(groups):
        hits = [each.hit for each in later]
        announced = list(filter(_announces, hits))
        words = _words(*[each.hit.content for each in group])
        is_little = (
            not announced
            or len(words & _words(*[hit.content for hit in hits])) < _LEAST_SHARED_WORDS
        )
        if is_little and looked_up < _LOOKED_UP:
            looked_up += 1
            if id(later) not in beside:
                beside[id(later)] = list(around(hits))
            hits = beside[id(later)]
            announced = list(filter(_announces, hits))
        if (
            any(len(words & _words(hit.content)) >= _LEAST_ANNOUNCED_WORDS for hit in announced)
            and len(words & _words(*[hit.content for hit in hits])) >= _LEAST_SHARED_WORDS
        ):
            found.append((group, later))
    return found


def _is_said(hit: Hit) -> bool:
    """Return True for words; a call of a tool amends nothing."""
    return not hit.content.startswith("[tool: ")


def _announces(hit: Hit) -> bool:
    return _is_said(hit) and _is_announced(hit.content[:_BEGINNING])


@lru_cache(maxsize=512)
def _is_announced(text: str) -> bool:
    lower = text.lower()
    return any(map(lower.__contains__, _PARTS_ANNOUNCED)) and bool(_ANNOUNCED.search(text))


def _words(*texts: str) -> frozenset[str]:
    """Return the longer words of texts, without their endings: to parse forty texts takes long."""
    return frozenset().union(*[_words_of(text[:_LONGEST_TEXT]) for text in texts])


@lru_cache(maxsize=512)
def _words_of(text: str) -> frozenset[str]:
    return frozenset([word[:_STEM] for word in _WORD.findall(text.lower())]) - STOP_WORDS


def _of_one_subject(
    groups: Sequence[list[SearchCandidate]],
) -> list[tuple[list[SearchCandidate], list[SearchCandidate]]]:
    """Pairs of conversations about one subject, the earlier one first."""
    words = [_words(*[each.hit.content for each in group]) for group in groups]
    spread = Counter(word for each in words for word in each)
    weights = {
        word: rarity(count, max(len(groups), _FEWEST_COMPARED)) for word, count in spread.items()
    }
    sums = [math.fsum(weights[word] for word in each) for each in words]
    pairs = []
    for one, other in combinations(range(len(groups)), 2):
        shared = words[one] & words[other]
        if len(shared) < _FEWEST_SHARED_WORDS:
            continue
        share = math.fsum([weights[word] for word in shared]) / (min(sums[one], sums[other]) or 1.0)
        if share >= WEIGHTS.amend.share:
            first, last = sorted(
                (groups[one], groups[other]), key=lambda group: group[0].hit.created_at
            )
            pairs.append((first, last))
    return pairs
