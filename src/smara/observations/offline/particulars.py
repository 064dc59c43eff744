"""What is particular in a line: names, paths, numbers, quoted words. It is what somebody looks for
later.

Whoever condenses keeps the lines that hold something particular and lets the others go: "All
good, go ahead" can be said of anything. By light patterns, for every language; what is not in
ASCII counts as particular, since nothing is known of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from smara.core.wordlists import word_set
from smara.observations.offline.wording import clip, one_of

_PARTICULAR = one_of(
    r"\d|`|\"\w|“|«",
    r"[^\W_]_\w|[a-z][A-Z]|\w[/\\@#]\w|\w\w\.\w\w",
    r"(?:^|\s)(?:--?[a-z]|[@#$:]\w)",
    r"(?<=[a-z,;] )[A-Z][a-z]",  # a name: a capital inside a sentence
    r"[^\x00-\x7f]{2}",
    flags=0,
)
_DEFINED = re.compile(
    r"(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|unsafe"
    r"|declare|partial|data)\s{1,4}){0,5}"
    r"(?:class|interface|struct|enum|trait|type|module|protocol|record|impl|namespace|defmodule"
    r"|defmacro"
    r"|defp?|fn|func|fun|function|const|let|var|val|table|index|event|field"
    r"|attribute)\s{1,4}[:\"'`]?([A-Za-z_$][\w.$]{1,80})"
)
_NAME = re.compile(r"[@$:]?[A-Za-z_][\w$]*+(?:[./:]{1,2}[\w$]++)*(?=(\()?)")
_JOINED = re.compile(r"[^\W_]_\w|[a-z]\d?[A-Z]|\w[./]\w|^[@$]")
_NO_NAMES = word_set(
    "if for while switch catch return function assert expect raise not and or in do fn def defp "
    "with"
)
_BETWEEN = re.compile(r"(?<=[.!?;…])\s+")
_SHORT = 32
"""A piece of code as short as this is told as it is."""


def is_particular(text: str) -> bool:
    """Whether a text holds a name, a path, a number or quoted words.

    >>> is_particular("The flags live in src/toggles.py"), is_particular("There is no hurry.")
    (True, False)
    """
    return _PARTICULAR.search(text) is not None


def names_in(code: str) -> list[str]:
    """The names in a line of code: what is defined, what is called, what is joined of several
    words.

    >>> names_in("def merge_spans(spans, gap): return Spans(join(spans))")
    ['merge_spans', 'Spans', 'join']
    """
    defined = _DEFINED.match(code)
    found = {defined[1]: None} if defined else {}
    for match in _NAME.finditer(code):
        name = match[0]
        if (match[1] or _JOINED.search(name)) and name not in _NO_NAMES and len(name) > 2:
            found.setdefault(name)
    return [name for name in found if len(name) > 1]


def told_by_names(line: str) -> str:
    """A line on code, ``path: piece; piece``, with its short pieces, and only the names of the
    others; or nothing.
    """
    head, mark, body = line.partition(": ")
    if not mark or " " in head.strip():
        head, mark, body = "", "", line
    kept = dict.fromkeys(name for piece in body.split("; ") for name in _kept(piece))
    return f"{head}{mark}{'; '.join(kept)}" if kept else ""


def _kept(piece: str) -> Iterator[str]:
    if len(piece) <= _SHORT and is_particular(piece):
        yield piece
    elif names := names_in(piece):
        yield ", ".join(names)


def told_in(text: str, characters: int, has_outcome: bool = False) -> str:
    """At most so many characters of a text: its first words, and then the sentences that hold
    something particular.

    With ``has_outcome`` the last piece comes before them.
    """
    if len(text) <= characters:
        return text
    pieces = _BETWEEN.split(text)
    if len(pieces) == 1 or len(pieces[0]) >= characters:
        return clip(text, characters)
    last = len(pieces) - 1 if has_outcome else 0
    wanted = sorted(
        range(1, len(pieces)), key=lambda at: (at != last, not is_particular(pieces[at]), at)
    )
    room = characters - len(pieces[0])
    kept = {0}
    for place in wanted:
        if len(pieces[place]) < room:
            kept.add(place)
            room -= len(pieces[place]) + 1
    told = " ".join(pieces[place] for place in sorted(kept))
    return told if last in kept and has_outcome else f"{told.rstrip(' ,;:…')} …"
