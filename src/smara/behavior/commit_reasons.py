"""Read from commit messages why a change or revert was made.

Commits observed live and commits of the git history use the same reader.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Literal, NamedTuple

from smara.behavior import cues
from smara.behavior.scratchpad import quote

_TRAILER = re.compile(
    r"^(?:[A-Z][A-Za-z]*(?:-[A-Za-z]+)*-(?:by|to|id|on|for|cc|from|reference)|Cc|Bug|Issue|Refs?"
    r"|Closes|Close|Fixes"
    r"|Fix|Resolves|See(?: also)?|Change-Id|Part-of|Link|Backport of|Cherry[- ]pick(?:ed)?"
    r"|Forwardport of|PR|Task"
    r"|Tracker|Ticket|BUG|URL|Merges?|Thanks)\b\s*[:#(]?.{0,200}$"
    r"|^(?:Generated with|🤖|\(cherry picked from|git-svn-id:|\* git-svn|---+$|https?://\S+$)"
)
_TICKET = r"(?:[\w./-]{0,40}#\d{1,9}|[A-Z]{2,10}-\d{1,9})"
"""What a tracker calls a ticket. The two parts have no character in common, so that no line takes
long to read.
"""
_PREFIX = re.compile(
    r"^(?:(?:feat|fix|refactor|perf|docs|tests?|build|ci|chore|style"
    r"|revert)(?:\([^)]{0,60}\))?!?:\s*|\[[^\]]{1,40}\]\s*"
    r"|(?:Fixed|Fixes|Fix|Refs?|Closes|Closed|Resolves|Issue|Bug|Ticket"
    r"|Addresses)\s+(?:CVE-[\d-]{4,20}|"
    rf"{_TICKET}(?:(?:,\s*|\s+)(?:and\s+|refs\s+)?{_TICKET}){{0,9}})\s*(?:--?|:|—|–)\s*"
    r"|(?:#\d{1,9}|[A-Z]{2,10}-\d{1,9})\s*(?:--?|:|—|–)\s*)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(rf"\s*\({_TICKET}(?:[,;]\s*{_TICKET}){{0,9}}\)\.?\s*$")
_LONGEST_SUBJECT = 400
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]`]?\s+(?=[A-Z\"'“‘`(\[_*<]|\d+[.)] )")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|Mr|Dr|St|No|al)\.)$")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_HEADING = re.compile(
    r"^(?:Summary|Solution|Description|Motivation|Background|Why|Context|Rationale):\s+(?:\.\.\.)?",
    re.IGNORECASE,
)
_SEVERITY = re.compile(r"^(?:critical|high|medium|low|nit|p\d)\s*[:\-–—]\s*", re.IGNORECASE)
_ENDS = re.compile(r"[\w`)]$")
_CODE_MARKS = (">", "$ ", ">>> ", "# ", "## ", "### ", "|", "diff --git")
_LONGEST_MESSAGE = 20_000
_LONGEST_LINE = 400
"""A longer line is a dump of something."""


class CommitText(NamedTuple):
    """A message as it can be read."""

    subject: str
    """Its first line, without the marks of a tracker."""
    first_line: str
    """Its first line as it stands."""
    sentences: tuple[str, ...]
    """The sentences of its body, each whole."""
    body: str
    """All of its body that is prose."""


def read_commit(message: str) -> CommitText:
    """The subject and the sentences of a message.

    >>> read_commit("Fixed #7 -- Kept the lock.\\n\\nReleasing it early lets a second\\nwriter in.").sentences
    ('Releasing it early lets a second writer in.',)
    """  # noqa: E501
    # A shell that did not expand it has left the line ends as they were typed.
    lines = message[:_LONGEST_MESSAGE].replace("\\n\\n", "\n\n").strip().splitlines()
    if not lines:
        return CommitText("", "", (), body="")
    first = lines[0][:_LONGEST_SUBJECT].strip()
    paragraphs = _paragraphs(lines[1:], is_squashed=_SUFFIX.search(first) is not None)
    sentences: list[str] = []
    for paragraph in paragraphs:
        is_going_on = False
        for piece in filter(str.strip, _SENTENCE_END.split(paragraph)):
            if is_going_on:
                sentences[-1] = f"{sentences[-1]} {piece}"
            else:
                sentences.append(piece.strip())
            is_going_on = bool(_ABBREVIATION.search(sentences[-1]))
    return CommitText(subject_of(first), first, tuple(sentences), body="\n".join(paragraphs))


def subject_of(first_line: str) -> str:
    """A first line without what only a tracker needs.

    >>> subject_of("fix(db): keep the lock (#12)")
    'keep the lock'
    """
    text, before = first_line[:_LONGEST_SUBJECT].strip(), ""
    while text != before:
        text, before = _SUFFIX.sub("", _PREFIX.sub("", text, count=1)).strip(), text
    return text


def _paragraphs(lines: list[str], is_squashed: bool) -> list[str]:
    """The paragraphs of a body. In a squashed branch, items of lists are the first lines of its
    commits.
    """
    found: list[list[str]] = [[]]
    items: set[int] = set()
    is_fenced = is_trailing = is_quoted = False
    for line in lines:
        bare = line.strip()
        # A line of a list may be set in, too, and goes on what was begun.
        is_set_in = line.startswith(("    ", "\t")) and not _ITEM.match(line) and not found[-1]
        is_quoted = bare.startswith(">") or (is_quoted and bool(bare))
        if bare.startswith(("```", "~~~")):
            is_fenced = not is_fenced
            found.append([])
        elif (
            is_fenced
            or not bare
            or is_set_in
            or line.lstrip().startswith(_CODE_MARKS)
            or len(bare) > _LONGEST_LINE
        ):
            # What is quoted goes on to the end of its paragraph, with a mark before every line or
            # without.
            is_trailing = is_quoted
            found.append([])
        elif _TRAILER.match(bare):
            # A trailer may go on in the next line, as "Thanks to A, B\nand C." does.
            is_trailing = not bare.endswith(".")
            found.append([])
        elif is_trailing:
            is_trailing = is_quoted or not bare.endswith(".")
        elif is_squashed and line.startswith("* "):
            is_trailing = True
            found.append([])
        elif _ITEM.match(line):
            found.append([_SEVERITY.sub("", _ITEM.sub("", line).strip())])
            items.add(len(found) - 1)
        else:
            found[-1].append(bare if found[-1] else _HEADING.sub("", bare))
    # An item of a list is whole without a full stop.
    joined = [
        (at in items, _BOLD.sub(r"\1", " ".join(each))) for at, each in enumerate(found) if each
    ]
    return [f"{each}." if is_item and _ENDS.search(each) else each for is_item, each in joined]


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
    breaking = _breaking(text)
    if breaking is not None:
        return breaking
    at = next((at for at, each in enumerate(text.sentences) if is_reason(each)), None)
    if at is not None:
        why = _with_what_it_refers_to(text, at)
        if why is None:
            return None
        return Reason("reason", _type(f"{text.subject} {why}", why), _subject(text), why=why)
    # A first line may hold the reason itself; but what is fixed is not so any more.
    line = text.subject.rstrip(".")
    is_fixed = _FIX.match(text.first_line) and not _WHY.search(line)
    if is_fixed or not is_reason(f"{line}.", is_line=True):
        return None
    return Reason("reason", _type(line, line), "", why=line)


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
    own, others = (set(_LETTERS.findall(each.casefold())) for each in (why, text.subject))
    adds_nothing = len(own - others) < _LEAST_OWN_WORDS
    if adds_nothing or why.rstrip(".").endswith(":") or _PROBLEM.match(why):
        return None
    return Reason("breaking", "decision", _subject(text), why=why)


def _type(text: str, why: str) -> Literal["decision", "gotcha"]:
    is_trap = cues.TRAP.search(text) and not cues.CHOICE.search(why)
    return "gotcha" if is_trap else "decision"


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
    """Return True if a sentence gives a reason usable by others.

    By a reader who has not seen the change.
    """
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
    """Return True if a text has the words of a reason."""
    return any(each.search(text) for each in (cues.CAUSE, cues.AIM, cues.DAMAGE))


def _is_past(sentence: str) -> bool:
    """Return True if a sentence tells only of what was: a fault that is gone."""
    return (
        cues.PAST.search(sentence) is not None
        and cues.PRESENT.search(cues.UNREAL.sub(" ", sentence)) is None
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
        and (is_line or not cues.OPENING.search(sentence))
        and not cues.WORK.search(sentence)
        and not cues.EARLIER.search(sentence)
        and not cues.ENDED.search(sentence)
    )


_REVERT = re.compile(
    r"(?:^|[-:—–]\s*|\s)revert(?:ed|s"
    r"|ing)?:?\s+[\"“'](?P<what>.{6,200})[\"”']\.?\s*(?:\([^)]*\))?\s*$",
    re.I,
)
_REVERT_OF = re.compile(r"^revert(?:\([^)]{0,60}\))?!?: (?P<what>.{6,200})$", re.I)
_TAKES_BACK = re.compile(
    r"^(?:this )?(?:commit )?(?:partially |mostly |manually )?reverts?(?:ed)? (?:the )?"
    r"(?:commits? |changes? |parts? of )?(?:made (?:in|to) )?(?:r?[0-9a-f]{5,40}\W*(?:and |, )?)+",
    re.I,
)
_BECAUSE = re.compile(r"^(?:because|since|as|due to|which|that|until|in favou?r of|it|,)\b", re.I)
_ONLY_HOW = re.compile(
    r"^(?:conflicts?|reversing|changes made to|keeps?|kept|thanks|(?:the )?(?:tests?|docs) )", re.I
)
_OF_THE_DAY = re.compile(r"\b(?:block the|release|until then|temporar\w+|for the time)\b", re.I)
_WENT_WRONG = re.compile(
    r"\bnot\b(?! only)|n't\b|\b(?:unable|flaw\w*|regress\w*|incompatib\w*|concerns?|slow\w*|too"
    r"|fail\w*|never|wrong\w*"
    r"|insufficient|problem\w*|issues?|no longer|complex\w*|confus\w+|surpris\w+|mistake)\b",
    re.I,
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
    found = _REVERT.search(text.first_line) or _REVERT_OF.match(text.first_line)
    if found is None:
        return None
    what = subject_of(found["what"]).rstrip(".")
    if what.casefold() in done_later or _REVERT.search(what) or what.lower().startswith("revert"):
        return None
    reasons = []
    for sentence in text.sentences:
        # The reason is all of a sentence, or what follows *this reverts commit …*.
        start = _TAKES_BACK.match(sentence)
        rest = sentence if start is None else sentence[start.end() :].lstrip(" ,.;:-")
        if (
            (start is None or _BECAUSE.match(rest))
            and len(rest) >= _LEAST_REVERT
            and not _ONLY_HOW.match(rest)
            and not _OF_THE_DAY.search(rest)
            and is_readable(f"{rest[:1].upper()}{rest[1:]}")
        ):
            reasons.append(rest)
    reasons.sort(key=lambda each: not gives_reason(each))
    why = next((each for each in reasons if gives_reason(each) or _WENT_WRONG.search(each)), None)
    return None if why is None else Revert(what, why)
