"""Facts in small talk: what is told of somebody or something, names and numbers; the rest is
reaction.
"""

from __future__ import annotations

import re

from smara.core.wordlists import word_set
from smara.observations.offline.acts import is_outcome
from smara.observations.offline.wording import one_of

_PERSONAL = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|my|mine|me|we|we're|we've|we'll|our|ours|us)\b", re.IGNORECASE
)
_NAMES_OR_NUMBERS = re.compile(r"\d|(?<=[a-z,;] )[A-Z][a-z]|[^\x00-\x7f]{2}")
_OWN_DOING = one_of(  # "Just signed up for a class": the speaker is left out
    r"(?:just|gonna|haven't|hasn't|tried|went|got|started|been|had|btw,?|currently|planning"
    r"|working|thinking)\b",
    r"(?:bought|made|the goal|mostly)\b",
    r"\[image",
)
_REACTION = one_of(
    r"(?:that|it|this|those|they|you|sounds?|looks?|wow|aww?|cool|great|awesome|nice|yeah|yes"
    r"|totally|absolutely)\b",
    r"(?:glad|happy|so|what an?|congrats|can't wait|good luck|take care|keep|hope|no problem"
    r"|definitely|amazing)\b",
    r"(?:interesting|cheers|haha|ha|wonderful|fantastic|agreed|gotcha|same here|me too)\b",
)
_SHORT = 80
_WORD = re.compile(r"[A-Za-z][\w'’-]{0,40}")
_EMPTY = word_set(
    """
        a about absolutely agreed all also always an and any are as at awesome be been but by can
    could cool did do does     exactly fine for from get gets good got great had has have he her
    here him his how if in interesting is it its just     kind like lol lot lots makes many maybe
    much nice no not of off oh ok okay on one or out perfect perhaps pretty     probably quite
    rather really right same sense she so some something sounds such sure than thanks that that's
    the     their them then there these they thing things this those to too true up very was way
    well were what when where which     while who why will with wow would yeah yes you your
    """
)
_FEW = 2


def is_telling(sentence: str) -> bool:
    """Whether a sentence holds a fact: about somebody or something, a name, a number, an outcome.

    A reaction does not, and neither do words that could be said of anything.
    """
    if has_names(sentence) or _OWN_DOING.match(sentence) or is_outcome(sentence):
        return True
    if _REACTION.match(sentence) and len(sentence) < _SHORT:
        return False
    return bool(_PERSONAL.search(sentence)) or _content(sentence) > _FEW


def _content(sentence: str) -> int:
    """How many of its words say what it is about."""
    return sum(word.lower() not in _EMPTY for word in _WORD.findall(sentence[:400]))


def has_names(sentence: str) -> bool:
    """Whether a name (a capital inside the sentence) or a number stands in it."""
    return bool(_NAMES_OR_NUMBERS.search(sentence))
