"""Draw texts for people: unseen characters, differences and numbered lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from markupsafe import Markup, escape

from smara.core.startup.regex import regex

_PLAIN = regex(r"[\n\t\r]+")
_WORDS = regex(r"\s+|\w+|[^\w\s]")
_MOST_WORDS = 2_000
_MOST_LINES = 400
_LONGEST_LINE = 2_000
_LEFT_OUT = ("version", "updated_at", "updatedAt")


def shown(text: str | None) -> Markup:
    """Return a text in which characters without ink are visible."""
    if _PLAIN.sub("", text or "").isprintable():  # nearly every text; letter by letter is slow
        return escape(text or "")
    pieces = [
        Markup('<span class="unseen" title="U+{0:04X}">U+{0:04X}</span>').format(ord(each))
        if is_unseen(each)
        else escape(each)
        for each in text or ""
    ]
    return Markup("").join(pieces)


def breaks(path: str) -> Markup:
    """Return a path that a line may break after each slash."""
    return Markup("/<wbr>").join(shown(each) for each in path.split("/"))


def is_unseen(character: str) -> bool:
    """Return True for a character that a reader does not see."""
    return character not in "\n\t\r" and unicodedata.category(character) in {
        "Cc",
        "Cf",
        "Co",
        "Cn",
        "Zl",
        "Zp",
    }


def diff(before: str, after: str) -> Markup:
    """Return what changed between two texts, word by word."""
    old, new = _WORDS.findall(before)[:_MOST_WORDS], _WORDS.findall(after)[:_MOST_WORDS]
    pieces: list[Markup] = []
    for act, first, last, start, end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        gone, come = shown("".join(old[first:last])), shown("".join(new[start:end]))
        if act == "equal":
            pieces.append(come)
            continue
        if gone:
            pieces.append(Markup("<del>{}</del>").format(gone))
        if come:
            pieces.append(Markup("<ins>{}</ins>").format(come))
    return Markup('<span class="diff">{}</span>').format(Markup("").join(pieces))


def changes(event: Mapping[str, Any]) -> Markup:
    """Return what an event changed, field by field, with differences."""
    before, after = event.get("before") or {}, event.get("after") or {}
    lines = [
        Markup("<dt>{}</dt><dd>{}</dd>").format(name, diff(_plain(before.get(name)), _plain(value)))
        for name, value in after.items()
        if name not in _LEFT_OUT and name in before and value != before[name]
    ]
    return (
        Markup('<dl class="change">{}</dl>').format(Markup("").join(lines)) if lines else Markup()
    )


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None or value == "" else str(value)


def numbered(text: str, quote: str = "") -> Markup:
    """Return a text line by line, those of a quotation marked."""
    lines = text.splitlines()[:_MOST_LINES] or [""]
    first, last = _place(lines, quote)
    items = [
        Markup('<li id="l{}"{}><span>{}</span></li>').format(
            no, Markup(' class="hit"') if first <= no <= last else "", shown(line[:_LONGEST_LINE])
        )
        for no, line in enumerate(lines, 1)
    ]
    return Markup('<ol class="lines">{}</ol>').format(Markup("").join(items))


def _place(lines: list[str], quote: str) -> tuple[int, int]:
    """Return the first and the last line of a quotation; (0, -1) if it is not there.

    >>> _place(["We use", "red and", "blue"], "use red and")
    (1, 2)
    """
    words = " ".join(quote.split())
    if not words:
        return 0, -1
    text, starts = "", []
    for line in lines:
        starts.append(len(text))
        text += " ".join(line.split()) + " "
    at = text.find(words)
    if at < 0:
        return 0, -1
    end = at + len(words)
    return (
        sum(start <= at for start in starts),
        sum(start < end for start in starts),
    )
