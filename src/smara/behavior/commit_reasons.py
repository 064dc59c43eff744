"""Read from commit messages why a change or revert was made.

Commits observed live and commits of the git history use the same reader.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Literal, NamedTuple

from smara.behavior.cues import CUES
from smara.behavior.scratchpad import quote
from smara.commits.message import CommitText, read_commit, subject_of
from smara.core.startup.regex import re, regex

_AREA = regex(r"^[\w./ -]{1,30}: ")
_LETTERS = regex(r"[^\W\d_]{2,}")
_LEAST, _MOST_OF_ONE, MOST = 45, 320, 420
_LEAST_SUBJECT_WORDS, _LEAST_WORDS, _LEAST_WORDS_OF_AN_AIM = 3, 6, 9
_LEAST_OWN_WORDS = 3
_ADDRESS = regex(r"https?://\S+", re.IGNORECASE)
_PROBLEM = regex(r"problem: ", re.IGNORECASE)
_BREAKING_MARK = regex(r"^\w+(?:\([^)]*\))?!:")


class Reason(NamedTuple):
    """The reason that a commit states."""

    kind: Literal["reason", "breaking"]
    type: Literal["decision", "gotcha"]
    subject: str
    """What was done; empty when the subject says nothing, or is the reason itself."""
    why: str

    @property
    def content(self) -> str:
        """Both as one statement."""
        why = self.why.rstrip(".")
        words = f"{self.subject}: {why}" if self.subject else why
        return f"{words[:1].upper()}{words[1:]}."

    @property
    def fields(self) -> dict[str, str]:
        """The further fields of its memory."""
        return {"cause" if self.type == "gotcha" else "rationale": quote(self.why, 400)}


def reason_of(message: str) -> Reason | None:
    """Return what a commit decided or warns of, if stated.

    >>> reason_of("fix: open the file in binary mode\\n\\nText mode breaks on Windows because of line ends.").type
    'gotcha'
    """  # noqa: E501
    text = read_commit(message)
    plain = _AREA.sub("", text.subject)
    if (
        len(_LETTERS.findall(text.subject)) < _LEAST_SUBJECT_WORDS
        or any(map(CUES["chore"].match, (text.first_line, plain)))
        or any(map(CUES["changed nothing"].search, (plain, text.subject)))
    ):
        return None
    if (breaking := _breaking(text)) is not None:
        return breaking
    at = next((at for at, each in enumerate(text.sentences) if is_reason(each)), None)
    if at is not None:
        why = _with_what_it_refers_to(text, at)
        if why is None:
            return None
        return Reason("reason", _type(f"{text.subject} {why}", why), _subject(text), why=why)
    # A first line may hold the reason itself; but what is fixed is not so any more.
    line = text.subject.rstrip(".")
    is_fixed = CUES["fix"].match(text.first_line) and not CUES["why"].search(line)
    if is_fixed or not is_reason(f"{line}.", is_line=True):
        return None
    return Reason("reason", _type(line, line), "", why=line)


def _breaking(text: CommitText) -> Reason | None:
    found = next(
        (match for each in text.body.split("\n") if (match := CUES["breaking"].match(each))), None
    )
    if found is not None:
        why = found["what"].strip()
    elif (
        _BREAKING_MARK.match(text.first_line)
        and text.sentences
        and CUES["changes"].search(text.sentences[0])
    ):
        why = text.sentences[0]
    else:
        return None
    own, others = (set(_LETTERS.findall(each.casefold())) for each in (why, text.subject))
    adds_nothing = len(own - others) < _LEAST_OWN_WORDS
    if adds_nothing or why.rstrip(".").endswith(":") or _PROBLEM.match(why):
        return None
    return Reason("breaking", "decision", _subject(text), why=why)


def _type(text: str, why: str) -> Literal["decision", "gotcha"]:
    is_trap = CUES["trap"].search(text) and not CUES["choice"].search(why)
    return "gotcha" if is_trap else "decision"


def _subject(text: CommitText) -> str:
    return "" if CUES["empty subject"].search(text.subject) else text.subject.rstrip(".:")


def _with_what_it_refers_to(text: CommitText, at: int) -> str | None:
    """A sentence, together with the one before when it leans on it; ``None`` when that cannot be
    told.
    """
    why = text.sentences[at]
    if not CUES["refers back"].match(why):
        return why
    before = text.sentences[at - 1] if at else ""
    if before and _is_past(before):
        return None
    if (
        before
        and len(before) + len(why) < MOST
        and is_readable(before)
        and not CUES["refers back"].match(before)
    ):
        return f"{before} {why}"
    is_of_subject = not at and CUES["refers to subject"].match(why)
    return why if is_of_subject and not CUES["empty subject"].search(text.subject) else None


def is_reason(sentence: str, *, is_line: bool = False) -> bool:
    """Return True if a sentence gives a reason usable by others.

    By a reader who has not seen the change.
    """
    if (
        not _LEAST <= len(sentence) <= _MOST_OF_ONE
        or not is_readable(sentence, is_line=is_line)
        or _is_past(sentence)
        or CUES["rule"].search(sentence) is None
    ):
        return False
    if CUES["now"].search(sentence) and not CUES["firm"].search(sentence):
        return False
    if CUES["cause"].search(sentence):
        return CUES["lasting"].search(sentence) is not None
    return (
        CUES["aim"].search(sentence) is not None
        and len(_LETTERS.findall(sentence)) >= _LEAST_WORDS_OF_AN_AIM
    )


def gives_reason(text: str) -> bool:
    """Return True if a text has the words of a reason."""
    return any(each.search(text) for each in (CUES["cause"], CUES["aim"], CUES["damage"]))


def _is_past(sentence: str) -> bool:
    """Return True if a sentence tells of what was: a fault that is gone."""
    return CUES["happened"].search(sentence) is not None or (
        CUES["past"].search(sentence) is not None
        and CUES["present"].search(CUES["unreal"].sub(" ", sentence)) is None
    )


def is_readable(sentence: str, *, is_line: bool = False) -> bool:
    """Return True if a sentence is readable by itself.

    Whole, of a length, about the code, and understood without other commits.
    """
    return (
        len(sentence) <= MOST
        and sentence.rstrip("\"'”’)`").endswith((".", "!"))
        and sentence.count("(") == sentence.count(")")
        and sentence.count("`") % 2 == sentence.count("**") % 2 == 0
        and len(_LETTERS.findall(_ADDRESS.sub("", sentence))) >= _LEAST_WORDS
        and (is_line or not CUES["opening"].search(sentence))
        and not CUES["work"].search(sentence)
        and not CUES["earlier"].search(sentence)
        and not CUES["ended"].search(sentence)
    )


_LEAST_REVERT = 30


class Revert(NamedTuple):
    """A change that was reverted."""

    what: str
    why: str
    type: Literal["dead_end"] = "dead_end"

    @property
    def content(self) -> str:
        """Both as one statement."""
        return f"Tried and reverted: “{self.what}”. {self.why[:1].upper()}{self.why[1:]}"

    @property
    def fields(self) -> dict[str, str]:
        """The further fields of a dead end."""
        return {"approach_tried": quote(self.what, 300), "why_it_failed": quote(self.why, 400)}


def revert_of(message: str, done_later: Set[str] = frozenset()) -> Revert | None:
    """Return the dead end of a revert.

    ``done_later`` are the subjects of all newer commits.
    """
    text = read_commit(message)
    found = CUES["quoted revert"].search(text.first_line) or CUES["revert of"].match(
        text.first_line
    )
    if found is None:
        return None
    what = subject_of(found["what"]).rstrip(".")
    if (
        what.casefold() in done_later
        or CUES["quoted revert"].search(what)
        or what.lower().startswith("revert")
    ):
        return None
    reasons = []
    for sentence in text.sentences:
        # The reason is all of a sentence, or what follows *this reverts commit …*.
        start = CUES["takes back"].match(sentence)
        rest = sentence if start is None else sentence[start.end() :].lstrip(" ,.;:-")
        if (
            (start is None or CUES["because"].match(rest))
            and len(rest) >= _LEAST_REVERT
            and not CUES["only how"].match(rest)
            and not CUES["of the day"].search(rest)
            and is_readable(f"{rest[:1].upper()}{rest[1:]}")
        ):
            reasons.append(rest)
    reasons.sort(key=lambda each: not gives_reason(each))
    why = next(
        (each for each in reasons if gives_reason(each) or CUES["went wrong"].search(each)), None
    )
    return None if why is None else Revert(what, why)
