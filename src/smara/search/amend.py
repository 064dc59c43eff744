"""Rank the newer word above the older where one amends the other.

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
from itertools import combinations

from smara.core.dates import local_time
from smara.core.extract import shorten
from smara.core.startup.regex import re, regex
from smara.knowledge.contradictions import compare
from smara.knowledge.statements import parse_statement
from smara.search.bm25 import rarity
from smara.search.models import Hit, SearchCandidate
from smara.search.query import STOP_WORDS

LOOKED_AT = 40
_COMPARED = 10
_LONGEST_STATEMENT = 400
_FEWEST_SHARED_WORDS, _LEAST_SHARED_WORDS = 4, 8
_LOOKED_UP, _BEGINNING = 3, 400
_WORD, _STEM, _LONGEST_TEXT = regex(r"[^\W\d_]{4,}"), 7, 2_000
_LEAST_SHARE = 0.21
_LEAST_ANNOUNCED_WORDS = 3
_BRIEF = 60
_FORMER = r"(?:old|older|previous|earlier|former|original|prior|existing|last)"
_RULE = r"(?:rule|decision|policy|plan|agreement|convention|behaviou?r|choice|approach|answer)"
_ANNOUNCED = regex(
    r"\b(?:amend(?:s|ed|ing|ments?)?|supersed\w+|overrul\w+|overturn\w*|rescind\w*|retract\w*"
    rf"|revis(?:e[sd]?|ing|ion) (?:of )?(?:the |our |that |this )?(?:{_FORMER} )?{_RULE}"
    rf"|revers(?:e[sd]?|ing|al) (?:of )?(?:the |our |that )?(?:{_FORMER} )?{_RULE}"
    rf"|chang(?:e[sd]?|ing) (?:of |to )?(?:the |our |my |that )(?:{_FORMER} )?(?:mind|{_RULE})"
    rf"|replac(?:e[sd]?|ing) (?:the |our |that )?{_FORMER}|(?:the|our) new {_RULE}"
    rf"|(?:no longer|not) (?:the|our) {_RULE}|{_RULE} (?:has|have) changed|from now on"
    r"|on second thought|scratch that|forget what (?:I|we) said|tak(?:e|ing) (?:that|it) back)\b",
    re.IGNORECASE,
)


Around = Callable[[Sequence[Hit]], Sequence[Hit]]


def newer_first(
    best: Sequence[SearchCandidate], around: Around = lambda hits: ()
) -> list[SearchCandidate]:
    """Return ranked candidates with amending ones above what they amend.

    An amended one that is shown says so, with what amended it. ``around`` returns the messages
    that stand around hits: the one that announces a change may share no word with the query.
    """
    ranked = list(best[:LOOKED_AT])
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
            words = shorten(" ".join(newer.hit.content.split()), _BRIEF)
            facts = {"hedge": f"amended on {day} ({newer.hit.id}): {words}"}
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
    for group, later in _of_one_subject(groups):
        hits = [each.hit for each in later]
        announced = [hit for hit in hits if _ANNOUNCED.search(hit.content[:_BEGINNING])]
        if not announced and looked_up < _LOOKED_UP:
            looked_up += 1
            hits = list(around(hits))
            announced = [hit for hit in hits if _ANNOUNCED.search(hit.content[:_BEGINNING])]
        words = _words([each.hit for each in group])
        if (
            any(len(words & _words([hit])) >= _LEAST_ANNOUNCED_WORDS for hit in announced)
            and len(words & _words(hits)) >= _LEAST_SHARED_WORDS
        ):
            found.append((group, later))
    return found


def _words(hits: Sequence[Hit]) -> frozenset[str]:
    """Return the longer words of texts, without their endings: to parse forty texts takes long."""
    texts = [hit.content[:_LONGEST_TEXT].lower() for hit in hits]
    return frozenset([word[:_STEM] for text in texts for word in _WORD.findall(text)]) - STOP_WORDS


def _of_one_subject(
    groups: Sequence[list[SearchCandidate]],
) -> list[tuple[list[SearchCandidate], list[SearchCandidate]]]:
    """Pairs of conversations about one subject, the earlier one first."""
    words = [_words([each.hit for each in group]) for group in groups]
    spread = Counter(word for each in words for word in each)
    weights = {word: rarity(count, len(groups)) for word, count in spread.items()}
    sums = [math.fsum(weights[word] for word in each) for each in words]
    pairs = []
    for one, other in combinations(range(len(groups)), 2):
        shared = words[one] & words[other]
        share = math.fsum(weights[word] for word in shared) / (min(sums[one], sums[other]) or 1.0)
        if len(shared) >= _FEWEST_SHARED_WORDS and share >= _LEAST_SHARE:
            first, last = sorted(
                (groups[one], groups[other]), key=lambda group: group[0].hit.created_at
            )
            pairs.append((first, last))
    return pairs
