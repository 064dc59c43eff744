"""One line of a reply: its mark, its time, its words, and where it belongs.

The asked form is ``* 🔴 (09:15 #12) User said …. (meaning 2025-12-04)``, with indented
``* ->`` lines for details. Models write bullets of every kind, other emoji or none, times
of twelve hours, bold marks around anything, and the pieces in another order.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from smara.core.delimiters import neutralized
from smara.observations.models import Priority
from smara.observations.reply.dates import When, parse_heading, parse_span, take_time
from smara.observations.reply.sections import unescaped
from smara.observations.reply.wording import subject_of

MOST_CHARACTERS = 10_000
"""A longer line is cut: nobody reads it, and no pattern here has to."""

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

_MARK = re.compile(f"([{''.join(_MARKS)}{_DONE}])[\ufe0e\ufe0f]?")
_LEVEL = r"(high|critical|medium|med|low)(?:[ -]priority)?"
_WORD_MARK = re.compile(rf"[\[(]{_LEVEL}[\])]\s?:?|{_LEVEL}:(?=\s)", re.IGNORECASE)
_BULLET = re.compile(r"(?:[*+•◦▪‣·–—-]|\d{1,3}[.)])(?=\s|$)|[•◦▪‣]")
_ARROW = re.compile(r"(?:->|→|⇒|=>|↳|➜|➔|└─{0,3})\s*")
_EMPHASIS = re.compile(r"[*_]{1,3}(?=[\[(\d" + "".join(_MARKS) + _DONE + r"]|\s|$|:)")
_BETWEEN = re.compile(r"[:–—|-](?=\s)|\s+")
_BOLD = re.compile(r"(?<![\w/*])\*\*(?=[^\s*/])([^*\n]{1,400})(?<=[^\s/])\*\*(?![\w/*])")
_MEANING = re.compile(
    r"\s?[(\[]\s?(?:meaning|estimated?|est\.|referring to|refers "
    r"to)(?:/estimated)?\s?:?\s([^()\[\]]{2,60})[)\]][. ]*$",
    re.IGNORECASE,
)
_CITED = re.compile(
    r"#(\d{1,9})(?:\s?[-–]\s?#?(\d{1,9}))?[:,]?(?=\s+(?:user|agent|assistant)\b|\s*[(\[])",
    re.IGNORECASE,
)
_TOPIC = re.compile(r"#{1,6}\s.*|\*\*[^*]{1,200}\*\*:?|\*\*[^*]{1,200}:\*\*")
_INDENT = re.compile(r"[ \t>]*")


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was read. ``note`` begins an observation; the other kinds belong to one or to
    none.
    """

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
    """It has a mark or a time, or is an item that says who did what: nobody writes that by
    accident.
    """


def read_line(line: str, days: Collection[date] = ()) -> Line:
    """What a line of a reply is; ``days`` are those on which something happened."""
    line = line[:MOST_CHARACTERS]
    indent = _INDENT.match(line)
    start = indent.end() if indent else 0
    bare = line[start:].rstrip()
    if not bare or not any(map(str.isalnum, bare)):
        return Line("nothing")
    if (day := parse_heading(bare, days)) is not None:
        return Line("heading", day=day)
    if _TOPIC.fullmatch(bare):
        return Line("nothing")
    is_indented = line[:start].expandtabs(4).count(" ") >= 2
    return _read(bare, is_indented, days)


def _read(bare: str, is_indented: bool, days: Collection[date]) -> Line:
    bullet = _BULLET.match(bare)
    rest = (bare[bullet.end() :] if bullet else bare).lstrip()
    if arrow := _ARROW.match(rest):
        return Line("detail", cleaned(rest[arrow.end() :]))
    head = _Head(rest)
    text, refers_to, meaning = _take_meaning(cleaned(head.rest), days)
    if not any(map(str.isalnum, text)):
        return Line("nothing")
    is_marked = head.priority is not None or head.has_time
    is_about_somebody = subject_of(text) is not None
    if is_indented and not is_marked:
        return Line("detail" if bullet else "more", f"✅ {text}" if head.is_done else text)
    if not (bullet or is_marked or head.is_done or is_about_somebody):
        return Line("more", text)
    is_done = head.is_done or _ends_done(head.rest)
    is_certain = is_marked or is_done or (bullet is not None and is_about_somebody)
    return Line(
        "note",
        text,
        head.priority,
        is_done=is_done,
        when=head.when,
        refers_to=refers_to,
        meaning=meaning,
        day=None,
        is_certain=is_certain,
    )


class _Head:
    """What stands before the words of a line: marks and a time, in any order."""

    def __init__(self, text: str) -> None:
        self.priority: Priority | None = None
        self.is_done = False
        self.when = When()
        self.rest = text
        for _ in range(12):
            if not self._take():
                break
        self.rest = self.rest.strip()

    @property
    def has_time(self) -> bool:
        return self.when.start is not None or self.when.seqs is not None

    def _take(self) -> bool:
        """Take one thing off the beginning; whether there was one."""
        if mark := _MARK.match(self.rest):
            self.is_done = self.is_done or mark[1] in _DONE
            self.priority = self.priority or _MARKS.get(mark[1])
        elif mark := _WORD_MARK.match(self.rest):
            self.priority = self.priority or _WORDS[(mark[1] or mark[2]).lower()]
        elif (mark := _EMPHASIS.match(self.rest)) or (mark := _BETWEEN.match(self.rest)):
            pass
        else:
            return self._take_time()
        self.rest = self.rest[mark.end() :]
        return True

    def _take_time(self) -> bool:
        if self.when.seqs is None and (cited := _CITED.match(self.rest)):
            first, last = int(cited[1]), int(cited[2] or cited[1])
            self.when = self.when._replace(seqs=(min(first, last), max(first, last)))
            self.rest = self.rest[cited.end() :]
            return True
        found, rest = take_time(self.rest)
        if found is None or (self.when.start is not None and found.start is not None):
            return False
        old = self.when
        is_timed = found.start is not None
        self.when = When(
            found.start if is_timed else old.start,
            found.end if is_timed else old.end,
            found.day or old.day,
            seqs=found.seqs or old.seqs,
        )
        self.rest = rest
        return True


def cleaned(text: str) -> str:
    """The words of a line as they may be kept: no entities, no bold, no tag of ours, one line."""
    plain = _BOLD.sub(r"\1", unescaped(text[:MOST_CHARACTERS]))
    return neutralized(" ".join(plain.split())).strip()


def _take_meaning(text: str, days: Collection[date]) -> tuple[str, str | None, str | None]:
    """A text without the date it refers to at its end; that date, or the words that stand for
    one.
    """
    text = text.rstrip(f" {_DONE}\ufe0f")
    match = _MEANING.search(text)
    if match is None:
        return text, None, None
    span = parse_span(match[1], days)
    return text[: match.start()].rstrip(), span, None if span else match[1].strip()


def _ends_done(text: str) -> bool:
    return text.rstrip("\ufe0f .").endswith(tuple(_DONE))
