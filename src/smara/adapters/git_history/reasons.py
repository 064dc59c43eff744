"""Commits that say why: a decision, or a trap that somebody fell into.

Most messages say what the change shows anyway. Worth keeping is a whole sentence that gives a reason, about code
that is still there; by which words such sentences are known stands in :mod:`~smara.adapters.git_history.cues`.
"""

from __future__ import annotations

import re

from smara.adapters.git_history import cues
from smara.adapters.git_history.models import Candidate, Kind, PastCommit
from smara.adapters.git_history.text import CommitText, read_commit, subject_of
from smara.behavior.quoting import quote
from smara.knowledge.models import MemoryType

_AREA = re.compile(r"^[\w./ -]{1,30}: ")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
LEAST, MOST = 45, 420
_LEAST_SUBJECT_WORDS, _LEAST_WORDS = 3, 6
_BREAKING = re.compile(r"^BREAKING[ -]CHANGES?:?\s+(?P<what>.{20,})", re.IGNORECASE)
_BREAKING_MARK = re.compile(r"^\w+(?:\([^)]*\))?!:")


def candidate_of(commit: PastCommit) -> Candidate | None:
    """What a commit decided or warns of, if its message says so."""
    text = read_commit(commit.message)
    if len(_LETTERS.findall(text.subject)) < _LEAST_SUBJECT_WORDS or cues.CHORE.match(text.first_line):
        return None
    plain = _AREA.sub("", text.subject)
    if cues.CHORE.match(plain) or cues.CHANGED_NOTHING.search(plain) or cues.CHANGED_NOTHING.search(text.subject):
        return None
    return _breaking(commit, text) or _reason(commit, text)


def _breaking(commit: PastCommit, text: CommitText) -> Candidate | None:
    found = next((match for each in text.body.split("\n") if (match := _BREAKING.match(each))), None)
    if found is not None:
        why = found["what"].strip()
    elif _BREAKING_MARK.match(text.first_line) and text.sentences:
        why = text.sentences[0]
    else:
        return None
    if subject_of(why).rstrip(".").casefold() == text.subject.rstrip(".").casefold():
        return None
    return _made(commit, text, "breaking", "decision", quote(why, MOST), {"rationale": quote(why, MOST)})


def _reason(commit: PastCommit, text: CommitText) -> Candidate | None:
    chosen = next((at for at, each in enumerate(text.sentences) if is_reason(each)), None)
    if chosen is None:
        return None
    why = _with_what_it_refers_to(text, chosen)
    if why is None:
        return None
    is_trap = bool(cues.TRAP.search(f"{text.subject} {why}")) and not cues.CHOICE.search(why)
    type_: MemoryType = "gotcha" if is_trap else "decision"
    return _made(commit, text, "reason", type_, why, {"cause" if is_trap else "rationale": quote(why, 400)})


def _with_what_it_refers_to(text: CommitText, at: int) -> str | None:
    """A sentence, together with the one before when it leans on it; ``None`` when that cannot be told."""
    why = text.sentences[at]
    if not cues.REFERS_BACK.match(why):
        return why
    before = text.sentences[at - 1] if at else ""
    if before and len(before) + len(why) < MOST and is_readable(before) and not cues.REFERS_BACK.match(before):
        return f"{before} {why}"
    return why if cues.REFERS_TO_SUBJECT.match(why) else None


def is_reason(sentence: str) -> bool:
    """Whether a sentence gives a reason that somebody can use who has not seen the change."""
    return len(sentence) >= LEAST and is_readable(sentence) and gives_reason(sentence)


def gives_reason(text: str) -> bool:
    """Whether a text has the words of a reason in it."""
    return cues.REASON.search(text) is not None


def is_readable(sentence: str) -> bool:
    """Whether a sentence is whole, of a length, about the code, and understood without other commits."""
    return (
        len(sentence) <= MOST
        and sentence.rstrip("\"'”’)`").endswith((".", "!"))
        and len(_LETTERS.findall(sentence)) >= _LEAST_WORDS
        and not cues.NOT_ALONE.search(sentence)
        and not cues.EARLIER.search(sentence)
    )


def _made(
    commit: PastCommit, text: CommitText, kind: Kind, type_: MemoryType, why: str, data: dict[str, str]
) -> Candidate:
    subject = text.subject[:1].upper() + text.subject[1:].rstrip(".:")
    content = f"{subject}. {why[:1].upper()}{why[1:]}"
    said = quote(f"{text.first_line}\n{why}", 600)
    return Candidate(kind, type_, content, ((commit.sha, said),), commit.at_ms, commit.author, data=data)
