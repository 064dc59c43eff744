"""Read one line of a reply: mark, time, words and category.

The category is derived from the wording: who did it, and which verb comes first.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Literal

from smara.core.dates import parse_days
from smara.core.escape import neutralize
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.observations.models import Category, Priority
from smara.observations.reply.dates import When, parse_heading, take_time
from smara.observations.reply.sections import CUES, WORDS, unescaped

_SUBJECTS = {
    "user": "user", "human": "user",
    "agent": "agent", "assistant": "agent", "ai": "agent", "claude": "agent", "codex": "agent",
    "model": "agent",
}  # fmt: skip

_USER_VERBS: dict[Category, str] = {
    "request": "request instruct order assign",
    "question": "wonder question",
    "preference": "prefer like dislike hate love favor favour require insist want expect",
    "change": "switch migrate change replace stop move rename drop remove cancel quit",
    "decision": "decide choose chose agree approve reject confirm accept settle pick",
    "blocker": "wait blocked",
}
_AGENT_VERBS: dict[Category, str] = {
    "fix": "fix resolve correct repair patch solve mend",
    "error": "try attempt fail could couldn't unable cannot",
    "command": "run ran rerun reran execute commit push install uninstall call invoke deploy "
               "build built query merge "
               "rebase start stop launch",
    "test": "test",
    "decision": "decide choose chose",
    "code": "write wrote rewrite rewrote create add implement change edit refactor rename move "
            "remove delete configure "
            "set define update introduce extract generate replace migrate modify optimize "
            "optimise import upgrade bump "
            "split apply",
    "answer": "answer explain recommend suggest tell told list describe provide show propose "
              "advise compare summarize "
              "summarise outline reply offer give gave",
    "finding": "find found discover notice learn read view see saw search look investigate "
               "identify determine verify "
               "inspect measure confirm debug explore review analyze analyse locate trace check",
    "question": "ask",
    "blocker": "wait blocked",
    "completion": "complete finish",
}  # fmt: skip
_BEGINNINGS: dict[Category, str] = {
    "blocker": "blocked blocker blockers waiting",
    "error": "error exception traceback failed failure fails crash",
    "test": "test tests coverage",
    "fix": "fix fixed resolved",
    "decision": "decision decided chose",
    "preference": "preference prefer",
    "change": "switched migrated replaced renamed",
    "finding": "found finding cause root discovered according symptom symptoms",
    "command": "ran command committed installed delegated",
    "code": "wrote created added implemented refactored changed removed",
    "question": "question",
    "request": "request requested todo task",
    "answer": "answer answered explained recommended",
    "completion": "completed done finished",
}  # fmt: skip
_PHRASES: dict[Category, str] = {
    "change": r"\b(?:switch(?:ed|ing)|migrat(?:ed|ing)|replac(?:ed|ing)|no longer|instead of"
              r"|changing from)\b|\(was\s"
              r"|\bupdating (?:a |the )?(?:previous|earlier)\b",
    "preference": r"\b(?:prefer(?:s|red|ence)?|rather than|always|never|(?:dis)?likes)\b",
    "decision": r"\b(?:decided|chose|approved|rejected)\b",
    "blocker": r"\b(?:blocked (?:by|on)|waiting (?:for|on))\b",
}  # fmt: skip
_LOOKED_AT = 400


def _forms(verb: str) -> tuple[str, ...]:
    """How a verb is written: ``fix`` also as fixes, fixed, fixing."""
    stem = verb[:-1] if verb.endswith("e") else verb
    forms = [
        verb,
        f"{verb}s",
        f"{verb}es",
        f"{stem}ed",
        f"{stem}ing",
        f"{verb}{verb[-1]}ed",
        f"{verb}{verb[-1]}ing",
    ]
    if verb.endswith("y"):
        forms += [f"{verb[:-1]}ied", f"{verb[:-1]}ies"]
    return tuple(forms)


def _table(verbs: dict[Category, str], is_inflected: bool = True) -> dict[str, Category]:
    return {
        form: category
        for category, listed in verbs.items()
        for verb in listed.split()
        for form in (_forms(verb) if is_inflected else (verb,))
    }


_USER, _AGENT, _BEGINNING = (
    _table(_USER_VERBS),
    _table(_AGENT_VERBS),
    _table(_BEGINNINGS, is_inflected=False),
)
_ASK, _WANT = frozenset(_forms("ask")), frozenset(_forms("want"))
_TESTING = frozenset(form for verb in WORDS["touches tests"] for form in _forms(verb))


def subject_of(text: str) -> str | None:
    """Return who a line is about: ``user``, ``agent`` or None."""
    name = next(
        (word for word in CUES["word of line"].findall(text[:40].lower()) if word != "the"), ""
    )
    return _SUBJECTS.get(re.sub("['’]s$", "", name))


def category_of(text: str) -> Category:
    """Return a line's kind by subject and first verb.

    >>> category_of("User asked how to test it"), category_of("User asked to test it")
    ('question', 'request')
    """
    head = text[:_LOOKED_AT].lstrip(" \"'*`")
    words = CUES["word of line"].findall(head.lower())
    subject = subject_of(head)
    if subject is not None:
        words = [
            word for word in words if word not in WORDS["overlooked"] and not word.endswith("ly")
        ]
        words = words[1:12]
    first = words[0] if words else ""
    is_testing = first in _TESTING and bool({"test", "tests"} & set(words[1:6]))
    if subject == "agent":
        return "test" if is_testing else _AGENT.get(first, "note")
    phrase = next(
        (category for category, form in _PHRASES.items() if re.search(form, head, re.IGNORECASE)),
        None,
    )
    if subject == "user":
        rest = [word for word in words[1:] if word not in _SUBJECTS]
        if first in _ASK:
            return "request" if rest and rest[0] in WORDS["asked to"] else "question"
        is_order = len(words) > 1 and words[1] in _SUBJECTS and "to" in rest[:2]
        if is_order and (first == "told" or first in _WANT):
            return "request"
        return _USER.get(first) or phrase or "statement"
    if first.endswith(("error", "exception")):
        return "error"
    if words[:2] == ["not", "found"]:
        return "finding"
    category = "test" if is_testing else _BEGINNING.get(first) or phrase
    return category or ("error" if CUES["failed"].search(head) else "note")


MOST_CHARACTERS = 10_000
"""A longer line is cut: no reader and no pattern here has to get through it."""

_MARKS: dict[str, Priority] = {
    **dict.fromkeys("🔴🟥🚨❗‼⚠⭐🛑", "high"),
    **dict.fromkeys("🟠🟡🟨🟧🔶🔸", "medium"),
    **dict.fromkeys("🟢🟩🔵🟦⚪⚫🔹🟣🟤", "low"),
}
_DONE = "✅✔☑🎉"
_WORDS: dict[str, Priority] = {
    "high": "high",
    "critical": "high",
    "medium": "medium",
    "med": "medium",
    "low": "low",
}

_MARK = regex(f"([{''.join(_MARKS)}{_DONE}])[\ufe0e\ufe0f]?")
_EMPHASIS = regex(r"[*_]{1,3}(?=[\[(\d" + "".join(_MARKS) + _DONE + r"]|\s|$|:)")


@dataclass(frozen=True, slots=True)
class ReplyLine:
    """A line of a reply; a ``note`` begins an observation."""

    kind: Literal["note", "detail", "more", "heading", "nothing"]
    text: str = ""
    priority: Priority | None = None
    is_done: bool = False
    when: When = field(default_factory=When)
    refers_to: str | None = None
    meaning: str | None = None
    """What the line says it means, where that is no date by itself (``next week``); taken out of
    the text.
    """
    day: date | None = None
    is_certain: bool = False
    """It has a mark or a time, or is an item that says who did what: it is not written by
    accident.
    """


def read_line(line: str, days: Collection[date] = ()) -> ReplyLine:
    """Read a line of a reply.

    ``days`` are those on which something happened.
    """
    line = line[:MOST_CHARACTERS]
    bare = line.lstrip(" \t>").rstrip()
    if not any(map(str.isalnum, bare)):
        return ReplyLine("nothing")
    if (day := parse_heading(bare, days)) is not None:
        return ReplyLine("heading", day=day)
    if CUES["topic"].fullmatch(bare):
        return ReplyLine("nothing")
    is_indented = line[: len(line) - len(line.lstrip(" \t>"))].expandtabs(4).count(" ") >= 2
    bullet = CUES["bullet"].match(bare)
    rest = (bare[bullet.end() :] if bullet else bare).lstrip()
    if arrow := CUES["arrow"].match(rest):
        return ReplyLine("detail", cleaned(rest[arrow.end() :]))
    priority, is_done, when, rest = _read_head(rest)
    text = cleaned(rest).rstrip(f" {_DONE}\ufe0f")
    refers_to = meaning = None
    if match := CUES["meaning"].search(text):
        span = parse_days(match[1], days)
        refers_to, meaning = (span.render(), None) if span else (None, match[1].strip())
        text = text[: match.start()].rstrip()
    if not any(map(str.isalnum, text)):
        return ReplyLine("nothing")
    is_marked = priority is not None or when.start is not None or when.seqs is not None
    has_subject = subject_of(text) is not None
    if is_indented and not is_marked:
        return ReplyLine("detail" if bullet else "more", f"✅ {text}" if is_done else text)
    if not (bullet or is_marked or is_done or has_subject):
        return ReplyLine("more", text)
    is_done = is_done or rest.rstrip("\ufe0f .").endswith(tuple(_DONE))
    return ReplyLine(
        "note",
        text,
        priority,
        is_done=is_done,
        when=when,
        refers_to=refers_to,
        meaning=meaning,
        is_certain=is_marked or is_done or (bullet is not None and has_subject),
    )


def _read_head(rest: str) -> tuple[Priority | None, bool, When, str]:
    """Take marks and a time, in any order, off the beginning of a line."""
    priority: Priority | None = None
    is_done, when = False, When()
    for _ in range(12):
        if mark := _MARK.match(rest):
            is_done = is_done or mark[1] in _DONE
            priority = priority or _MARKS.get(mark[1])
        elif mark := CUES["word mark"].match(rest):
            priority = priority or _WORDS[(mark[1] or mark[2]).lower()]
        elif mark := _EMPHASIS.match(rest) or CUES["between marks"].match(rest):
            pass
        elif when.seqs is None and (mark := CUES["cited messages"].match(rest)):
            first, last = int(mark[1]), int(mark[2] or mark[1])
            when = when._replace(seqs=(min(first, last), max(first, last)))
        else:
            time, left = take_time(rest)
            if time is None or (when.start is not None and time.start is not None):
                break
            timed = when if time.start is None else time
            when = When(timed.start, timed.end, time.day or when.day, seqs=time.seqs or when.seqs)
            rest = left
            continue
        rest = rest[mark.end() :]
    return priority, is_done, when, rest.strip()


def cleaned(text: str) -> str:
    """Return the words of a line without entities, bold marks and tags."""
    plain = CUES["bold"].sub(r"\1", unescaped(text[:MOST_CHARACTERS]))
    return neutralize(" ".join(plain.split())).strip()
