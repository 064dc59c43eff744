"""Facts in small talk: what somebody tells of themselves, names and numbers; the rest is reaction."""

from __future__ import annotations

import re

from smara.observations.offline.wording import one_of

_PERSONAL = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|mine|me|we|we're|we've|we'll|our|ours|us)\b", re.IGNORECASE)
_NAMES_OR_NUMBERS = re.compile(r"\d|(?<=[a-z,;] )[A-Z][a-z]|[^\x00-\x7f]{2}")
_OWN_DOING = one_of(  # "Just signed up for a class": the speaker is left out
    r"(?:just|gonna|haven't|hasn't|tried|went|got|started|been|had|btw,?|currently|planning|working|thinking)\b",
    r"(?:bought|made|the goal|mostly)\b",
    r"\[image",
)
_REACTION = one_of(
    r"(?:that|it|this|those|they|you|sounds?|looks?|wow|aww?|cool|great|awesome|nice|yeah|yes|totally|absolutely)\b",
    r"(?:glad|happy|so|what an?|congrats|can't wait|good luck|take care|keep|hope|no problem|definitely|amazing)\b",
    r"(?:interesting|cheers|haha|ha|wonderful|fantastic|agreed|gotcha|same here|me too)\b",
)
_SHORT = 80


def is_telling(sentence: str) -> bool:
    """Whether a sentence holds a fact: somebody's own, a name or a number. A reaction does not."""
    if has_names(sentence) or _OWN_DOING.match(sentence):
        return True
    return bool(_PERSONAL.search(sentence)) and not (_REACTION.match(sentence) and len(sentence) < _SHORT)


def has_names(sentence: str) -> bool:
    """Whether a name (a capital inside the sentence) or a number stands in it."""
    return bool(_NAMES_OR_NUMBERS.search(sentence))
