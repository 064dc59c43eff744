"""Commits that say why: a decision, or a trap that somebody fell into.

Most messages say what the change shows anyway. Worth keeping is a whole sentence that gives a
reason which still holds when the change is forgotten; by which words such sentences are known
stands in :mod:`~smara.behavior.reasons.cues`.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from smara.behavior.quoting import quote
from smara.behavior.reasons import cues
from smara.behavior.reasons.text import CommitText, read_commit

_AREA = re.compile(r"^[\w./ -]{1,30}: ")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_LEAST, _MOST_OF_ONE, MOST = 45, 320, 420
_LEAST_SUBJECT_WORDS, _LEAST_WORDS, _LEAST_WORDS_OF_AN_AIM = 3, 6, 9
_LEAST_OWN_WORDS = 3
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_PROBLEM = re.compile(r"problem: ", re.IGNORECASE)
_FIX = re.compile(r"(?:\w+(?:\([^)]*\))?!?: )?fix(?:e[sd])?\b", re.IGNORECASE)
_WHY = re.compile(
    r"\b(?:because|since|otherwise|to (?:avoid|prevent)|so that|must|never|cannot|as)\b",
    re.IGNORECASE,
)
_BREAKING = re.compile(r"^BREAKING[ -]CHANGES?:?\s+(?P<what>.{20,})", re.IGNORECASE)
_BREAKING_MARK = re.compile(r"^\w+(?:\([^)]*\))?!:")


class Reason(NamedTuple):
    """What a commit says of why."""

    kind: Literal["reason", "breaking"]
    type: Literal["decision", "gotcha"]
    subject: str
    """What was done; empty when the subject says nothing, or is the reason itself."""
    why: str

    @property
    def content(self) -> str:
        """Both as one statement."""
        why = self.why.rstrip(".")
        told = f"{self.subject}: {why}" if self.subject else why
        return f"{told[:1].upper()}{told[1:]}."

    @property
    def fields(self) -> dict[str, str]:
        """What a memory of its type says besides."""
        return {"cause" if self.type == "gotcha" else "rationale": quote(self.why, 400)}


def reason_of(message: str) -> Reason | None:
    """What a commit decided or warns of, if its message says so.

    >>> reason_of("fix: open the file in binary mode\\n\\nText mode breaks on Windows because of line ends.").type
    'gotcha'
    """  # noqa: E501
    text = read_commit(message)
    if len(_LETTERS.findall(text.subject)) < _LEAST_SUBJECT_WORDS or cues.CHORE.match(
        text.first_line
    ):
        return None
    plain = _AREA.sub("", text.subject)
    if (
        cues.CHORE.match(plain)
        or cues.CHANGED_NOTHING.search(plain)
        or cues.CHANGED_NOTHING.search(text.subject)
    ):
        return None
    return _breaking(text) or _reason(text)


def _breaking(text: CommitText) -> Reason | None:
    found = next(
        (match for each in text.body.split("\n") if (match := _BREAKING.match(each))), None
    )
    if found is not None:
        why = found["what"].strip()
    elif (
        _BREAKING_MARK.match(text.first_line)
        and text.sentences
        and cues.CHANGES.search(text.sentences[0])
    ):
        why = text.sentences[0]
    else:
        return None
    if _adds_nothing(why, text.subject) or why.rstrip(".").endswith(":") or _PROBLEM.match(why):
        return None
    return Reason("breaking", "decision", _subject(text), why=why)


def _adds_nothing(why: str, subject: str) -> bool:
    """Whether a sentence says what the subject says, with a word or two of its own at most."""
    return len(_words(why) - _words(subject)) < _LEAST_OWN_WORDS


def _words(text: str) -> set[str]:
    return set(_LETTERS.findall(text.casefold()))


def _reason(text: CommitText) -> Reason | None:
    at = next((at for at, each in enumerate(text.sentences) if is_reason(each)), None)
    if at is None:
        return _reason_in_subject(text)
    why = _with_what_it_refers_to(text, at)
    return (
        None
        if why is None
        else Reason("reason", _type(f"{text.subject} {why}", why), _subject(text), why=why)
    )


def _reason_in_subject(text: CommitText) -> Reason | None:
    """A first line may hold the reason itself."""
    line = text.subject.rstrip(".")
    if _FIX.match(text.first_line) and not _WHY.search(line):
        return None  # what is fixed is not so any more
    return (
        Reason("reason", _type(line, line), "", why=line)
        if is_reason(f"{line}.", is_line=True)
        else None
    )


def _type(said: str, why: str) -> Literal["decision", "gotcha"]:
    return "gotcha" if cues.TRAP.search(said) and not cues.CHOICE.search(why) else "decision"


def _subject(text: CommitText) -> str:
    return "" if cues.EMPTY_SUBJECT.search(text.subject) else text.subject.rstrip(".:")


def _with_what_it_refers_to(text: CommitText, at: int) -> str | None:
    """A sentence, together with the one before when it leans on it; ``None`` when that cannot be
    told.
    """
    why = text.sentences[at]
    if not cues.REFERS_BACK.match(why):
        return why
    before = text.sentences[at - 1] if at else ""
    if before and _is_past(before):
        return None
    if (
        before
        and len(before) + len(why) < MOST
        and is_readable(before)
        and not cues.REFERS_BACK.match(before)
    ):
        return f"{before} {why}"
    return (
        why
        if cues.REFERS_TO_SUBJECT.match(why) and not cues.EMPTY_SUBJECT.search(text.subject)
        else None
    )


def is_reason(sentence: str, *, is_line: bool = False) -> bool:
    """Whether a sentence gives a reason that somebody can use who has not seen the change."""
    if (
        not _LEAST <= len(sentence) <= _MOST_OF_ONE
        or not is_readable(sentence, is_line=is_line)
        or _is_past(sentence)
    ):
        return False
    if cues.NOW.search(sentence) and not cues.FIRM.search(sentence):
        return False
    if cues.CAUSE.search(sentence):
        return cues.LASTING.search(sentence) is not None
    return (
        cues.AIM.search(sentence) is not None
        and len(_LETTERS.findall(sentence)) >= _LEAST_WORDS_OF_AN_AIM
    )


def gives_reason(text: str) -> bool:
    """Whether a text has the words of a reason in it, also of one that is past."""
    return any(each.search(text) for each in (cues.CAUSE, cues.AIM, cues.DAMAGE))


def _is_past(sentence: str) -> bool:
    """Whether a sentence tells only of what was: a fault that is gone."""
    return (
        cues.PAST.search(sentence) is not None
        and cues.PRESENT.search(cues.UNREAL.sub(" ", sentence)) is None
    )


def is_readable(sentence: str, *, is_line: bool = False) -> bool:
    """Whether a sentence is whole, of a length, about the code, and understood without other
    commits.
    """
    return (
        len(sentence) <= MOST
        and sentence.rstrip("\"'”’)`").endswith((".", "!"))
        and sentence.count("(") == sentence.count(")")
        and sentence.count("`") % 2 == sentence.count("**") % 2 == 0
        and len(_LETTERS.findall(_ADDRESS.sub("", sentence))) >= _LEAST_WORDS
        and (is_line or not cues.OPENING.search(sentence))
        and not cues.WORK.search(sentence)
        and not cues.EARLIER.search(sentence)
        and not cues.ENDED.search(sentence)
    )
