"""Choose the telling words of a command's output."""

from __future__ import annotations

import re
from collections.abc import Iterable

from smara.observations.offline.notes import clip, one_line, one_of

_VARIABLE = re.compile(
    r"\s{0,12}(?:\w{1,12}: )?([A-Za-z_][\w.\[\]]{0,40})\s{0,3}(?:=|:)\s{1,4}(\S.{0,80})"
)
REJECTED = "The user doesn't want to proceed with this tool use"

_PREAMBLE = (
    "warning",
    "Compiling",
    "Generated",
    "Exit code",
    "Checking ",
    "Running ",
    "Getting ",
    "hint:",
    "> ",
)
_VERDICT = one_of(
    r"\b(?:\d{1,9}|no|found|zero)\b.{0,40}"
    r"\b(?:issues?|errors?|warnings?|problems?|suggestions?|violations?|offenses?)\b",
    r"all checks passed|success",
)


def verdict_in(lines: Iterable[str], characters: int = 110) -> str:
    """The last line in which a checker says what it found: "found no issues", "2 errors"."""
    verdict = ""
    for line in lines:
        if _VERDICT.search(line[:300]):
            verdict = line
    return clip(verdict, characters)


def last_words(lines: Iterable[str], characters: int = 110) -> str:
    """The last line of an output that has words in it."""
    for line in reversed(list(lines)[-40:]):
        if sum(map(str.isalpha, line[:60])) >= 4:
            return clip(line, characters)
    return ""


def first_words(lines: Iterable[str], characters: int = 110) -> str:
    """The first line of an output that has words in it, else its first line."""
    first = ""
    for number, line in enumerate(lines):
        words = one_line(line)
        first = first or words
        if number > 60:
            break
        is_margin = line[:1] in "└│┃" or line.startswith("    ")
        if (
            sum(map(str.isalpha, words[:60])) >= 4
            and not is_margin
            and not words.startswith(_PREAMBLE)
        ):
            return clip(words, characters)
    return (
        clip(first, characters)
        if any(map(str.isalnum, first)) and not first.startswith(_PREAMBLE)
        else ""
    )


def variables_in(lines: Iterable[str], most: int = 8) -> dict[str, str]:
    """Values that an output shows: ``left: []``, ``user_id = 42``."""
    found: dict[str, str] = {}
    for line in lines:
        if len(found) >= most:
            break
        if match := _VARIABLE.fullmatch(line.rstrip()):
            found.setdefault(match[1], clip(match[2], 80))
    return found
