"""Find paths, line numbers, names and numbers in a text.

These are the facts of a note that can be checked against the messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from smara.core.startup.regex import re
from smara.observations.reply.sections import CUES, WORDS

_MOST_FILES = 40
_MOST_LINES = 60
_LEAST_NAME = 4


class TextMentions(NamedTuple):
    """The names and the numbers of a text, each once, in order."""

    names: tuple[str, ...]
    numbers: tuple[str, ...]


def files_in(text: str) -> tuple[str, ...]:
    """Return the paths of files in a text, each once, in order.

    >>> files_in("Agent fixed src/api/users.ts:45 and README.md (Node.js 20, bcrypt.compare)")
    ('src/api/users.ts', 'README.md')
    """
    found: dict[str, None] = {}
    for match in CUES["chunk"].finditer(text):
        word = match[0].rstrip(".").lstrip("+")
        # Nearly every word of a text is no path; tell so without a look around it.
        if (
            "." not in word
            and "/" not in word
            and "\\" not in word
            and word not in WORDS["whole names"]
        ):
            continue
        before = text[match.start() - 1 : match.start()]
        if before != ":" and text[match.end() : match.end() + 1] != "(" and _is_file(word):
            found.setdefault(word)
            if len(found) >= _MOST_FILES:
                break
    return tuple(found)


def _is_file(word: str) -> bool:
    if len(word) > 400 or "//" in word:
        return False
    name = re.split(r"[/\\]", word)[-1]
    if name in WORDS["whole names"]:
        return True
    stem, dot, extension = name.rpartition(".")
    if (
        not dot
        or extension.lower() not in WORDS["extensions"]
        or word.lower() in WORDS["not files"]
    ):
        return (
            not dot
            and "/" in word
            and word.endswith("/")
            and not word.startswith("/")
            and len(word) > 2
        )
    return bool(stem) or extension == "env"


def lines_in(text: str) -> tuple[int, ...]:
    """Return the line numbers in a text, of a range both ends.

    >>> lines_in("viewed auth.ts:45-60, then lines 7-9, at 10:30")
    (45, 60, 7, 9)
    """
    ranges = CUES["line numbers"].findall(CUES["time or date"].sub(" ", text))
    numbers = (int(end) for ends in ranges for end in ends if end)
    return tuple(dict.fromkeys(numbers))[:_MOST_LINES]


def mentions_in(text: str) -> TextMentions:
    """Return the names and numbers of a text that can be checked."""
    bare = CUES["time or date"].sub(" ", text)
    words = (word.strip("./@~+\\-") for word in CUES["word or place"].findall(bare))
    names = dict.fromkeys(
        word for word in words if len(fold(word)) >= _LEAST_NAME and _is_name(word)
    )
    numbers = dict.fromkeys(plain_number(found) for found in CUES["number"].findall(bare))
    return TextMentions(tuple(names), tuple(number for number in numbers if len(number) > 1))


def _is_name(word: str) -> bool:
    if word.isdigit():
        return False
    if word.isalpha():
        return word.isascii() and not word[1:].islower() and not word.isupper()
    if any(mark in word for mark in "_/\\.@"):
        return any(map(str.isalpha, word))
    return any(map(str.isdigit, word)) and any(map(str.isalpha, word)) and "-" not in word


def plain_number(written: str) -> str:
    """A number without the commas of thousands.

    >>> plain_number("30,000"), plain_number("43.7"), plain_number("1,5")
    ('30000', '43.7', '1.5')
    """
    if "," in written:
        head, _, tail = written.rpartition(",")
        written = f"{head}.{tail}" if len(tail) != 3 and "." not in written else written
    return written.replace(",", "")


def fold(text: str) -> str:
    """Return letters and digits alone: ``OAuth 2`` equals ``o_auth2``."""
    return CUES["folded"].sub("", text.casefold())


class SourceText:
    """A text in which mentions are looked up."""

    def __init__(self, texts: Iterable[str]) -> None:
        whole = "\n".join(texts)
        self._folded = fold(whole)
        self._numbers = frozenset(
            plain_number(found) for found in re.findall(r"\d++(?:[.,]\d++)*", whole)
        )
        self._digits = frozenset(re.findall(r"\d++", whole))

    def has_name(self, name: str) -> bool:
        """Return True if the name occurs, however it is cased and joined."""
        return fold(name.split(":")[0]) in self._folded

    def has_number(self, number: str) -> bool:
        """Return True if the number occurs, also as part of a version."""
        return (
            number in self._numbers
            or number in self._digits
            or all(part in self._digits for part in number.split("."))
        )
