"""Classify a person's sentences: request, question, decision, preference, correction.

Small talk without names or numbers is recognized, so that no note is made of it.
The patterns stand in ``cues.txt``.
"""

from __future__ import annotations

from typing import Literal

from smara.core.startup.regex import re
from smara.observations.offline.notes import CUES, WORDS

Act = Literal[
    "request",
    "question",
    "statement",
    "preference",
    "decision",
    "change",
    "correction",
    "report",
    "chat",
]

DURABLE: frozenset[Act] = frozenset({"preference", "decision", "change", "correction"})
"""Acts that hold beyond the message they stand in; each becomes a note of its own."""

# The acts that a sentence shows by its cues alone, whatever else it does.
_LASTING_ACTS: tuple[tuple[Act, str], ...] = (
    ("correction", "correction"),
    ("decision", "decision"),
    ("change", "change"),
    ("preference", "preference"),
)
_FOREIGN_ACTS: tuple[Act, ...] = ("preference", "change", "decision")
# An English sentence has at least so many plain letters; "naïve café" happens.
_ENGLISH = 0.97
_UP_TO_A_PAUSE = r"(.{1,60}?)(?:[.,;!]|$| (?:and|but|any|in|from|for|since|because)\b)"
_REPLACED = (
    r"\bfrom (.{1,60}?) to\b",
    r"\breplac(?:ed|ing) (.{1,60}?) (?:with|by)\b",
    rf"\b(?:no longer|stopped|don't|not) (?:use|using|on|with|work(?:ing)? with) {_UP_TO_A_PAUSE}",
    r"\b(?:instead of|rather than|got rid of|dropped|removed|retired|deprecated) (?:the )?"
    + _UP_TO_A_PAUSE,
)


def sort(sentence: str, is_coding: bool = True) -> Act:
    """Return what a person does with a sentence."""
    text = sentence.strip().lower().replace("’", "'")[:400]
    if CUES["chat"].fullmatch(text):
        return "chat"
    if opening := CUES["opening"].match(text):
        text = text[opening.end() :]
    if (foreign := _foreign_act(text)) is not None:
        return foreign
    is_question = text.rstrip("\"')] ").endswith(("?", "？"))
    if not is_question:
        for act, cue in _LASTING_ACTS:
            if CUES[cue].search(text):
                return act
    first, verbs = re.split(r"[^a-z']", text, maxsplit=1)[0], WORDS["verbs"]
    wants_words = bool(CUES["asks to tell"].match(text))
    if CUES["asks to do"].match(text):
        # "We need a migration for this?" asks; with "can you" in it, it requests after all.
        is_wish = not text.startswith(("we ", "i ", "you "))
        is_request = not is_question or is_wish or bool(CUES["asks inside"].search(text))
    else:
        # "main was clean; fix the issues" asks in its second half.
        later = any((match[1] or match[2]) in verbs for match in CUES["asks later"].finditer(text))
        is_request = later or (first in verbs and not is_question)
    if is_request and not wants_words:
        return "request"
    if is_question or wants_words or (CUES["question opening"].match(text) and first not in verbs):
        return "question"
    if CUES["report"].search(text):
        return "report"
    is_statement = (
        not is_coding
        or CUES["subject and verb"].match(text)
        or (
            (CUES["statement"].match(text) or (text.isascii() and text.count(" ") >= 3))
            and CUES["verb"].search(text)
        )
    )
    return "statement" if is_statement else "request"


def _foreign_act(text: str) -> Act | None:
    """The act of a sentence in another language; None when it may be English."""
    letters = "" if text.isascii() else list(filter(str.isalpha, text[:120]))
    is_foreign = sum(map(str.isascii, letters)) < _ENGLISH * len(letters)
    if text.rstrip("\"')] ").endswith(("?", "？", "吗", "か。", "呢")):
        return "question" if is_foreign else None
    return next(
        (act for act in _FOREIGN_ACTS if CUES[f"foreign {act}"].search(text)),
        "request" if is_foreign else None,
    )


def replaced_by(sentence: str) -> str:
    """Return what a change ends: "from Redux to Zustand" → Redux."""
    matches = (re.search(pattern, sentence[:600], re.IGNORECASE) for pattern in _REPLACED)
    return next((end for match in matches if match and (end := match[1].strip())), "")


def is_telling(sentence: str) -> bool:
    """Return True if a sentence holds a fact, not a reaction.

    Words that could be said of anything do not.
    """
    words = map(str.lower, CUES["plain word"].findall(sentence[:400]))
    is_about = sum(word not in WORDS["empty"] for word in words) > 1
    return is_about or bool(CUES["names or numbers"].search(sentence))
