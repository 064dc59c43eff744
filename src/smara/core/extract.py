"""Extract pieces, words, names, sentences and code lines from a text.

Everything here is mechanical: no model and no index is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from smara.core.startup.regex import re, regex


def shorten(text: str, most: int) -> str:
    """Shorten a text to `most` characters, with an ellipsis.

    >>> shorten("one two", 7), shorten("one two", 5)
    ('one two', 'one…')
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def one_line(text: str, most: int | None = None) -> str:
    """Return a text as one line, shortened to `most` characters.

    >>> one_line("one\\n  two "), one_line("one\\n  two", 5)
    ('one two', 'one…')
    """
    if most is None:
        return " ".join(text.split())
    # What is cut away is not read: a text may be huge.
    return shorten(" ".join(text[: 8 * most].split()), most)


def word_set(words: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(words.split())


_SECTION = regex(
    r"^\[(words|(?:by line|any case|pattern)(?:, any case)?): ([\w ]+)\]\n", re.MULTILINE
)
_REFERENCE = regex(r"\{([a-z][a-z ]*)\}")


def read_cues(
    module: str, name: str
) -> tuple[dict[str, re.Pattern[str]], dict[str, frozenset[str]]]:
    """Read patterns and sets of words from the file beside a module.

    Each line of a pattern is one alternative; an indented line continues the one above, and the
    name of an earlier pattern in braces stands for it. In a pattern "by line", ``^`` and ``$`` are
    the ends of lines.
    """
    patterns: dict[str, re.Pattern[str]] = {}
    words: dict[str, frozenset[str]] = {}
    with open(f"{os.path.dirname(module)}/{name}", encoding="utf-8") as file:
        _, *sections = _SECTION.split(file.read())
    for kind, title, body in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        lines = [line for line in body.replace("\n  ", "").splitlines() if line and line[0] != "#"]
        if kind == "words":
            words[title] = word_set(" ".join(lines))
        else:
            flags = re.IGNORECASE if "any case" in kind else re.NOFLAG
            flags |= re.MULTILINE if "by line" in kind else re.NOFLAG
            source = _REFERENCE.sub(
                lambda name: f"(?:{patterns[name[1]].pattern})", "|".join(lines)
            )
            patterns[title] = regex(source, flags)
    return patterns, words


_AROUND = ".,;:!?\"'()[]{}<>*~=|&%$^`-“”‘’…—–"
_FENCE = regex(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_SENTENCE = regex(r"[^\n.!?。!?]{8,}(?:[.](?=\w)[^\n.!?]+)*[.!?。!?]?")
_DEFINITION = regex(
    r"\s*(?:export\s+)?(?:async\s+)?(?:def|class|function|const|let|var|type|interface|struct"
    r"|enum|fn|func|impl|trait"
    r"|import|from|CREATE|ALTER|SELECT|INSERT|UPDATE|public|private|protected|module|package|use"
    r"|#include|@\w+)\b.*",
    re.IGNORECASE,
)


def names_in(text: str) -> list[str]:
    """Find names of code: underscores, slashes, dots, or inner capitals."""
    found = []
    for chunk in text.split():
        if chunk.isalpha() and chunk[1:].islower():
            continue
        word = chunk.strip(_AROUND).split("(")[0]
        if not 3 <= len(word) <= 80:
            continue
        if word.isalpha():
            is_name = not word.isupper() and not word[1:].islower()
        else:
            is_joined = "_" in word or "/" in word or "." in word
            is_name = is_joined and word[0] not in "0123456789=" and "\\" not in word
        if is_name:
            found.append(word)
    return found


def first_sentence(text: str) -> str:
    """Return the first meaningful sentence, up to 200 characters.

    Code is skipped.
    """
    match = _SENTENCE.search(_FENCE.sub(" ", text))
    return " ".join(match[0].split())[:200] if match else " ".join(text.split())[:80]


def code_lines(texts: Iterable[str]) -> list[str]:
    """Return distinct code lines that define, import or query."""
    return distinct(
        line.rstrip()[:200]
        for text in texts
        for block in _FENCE.findall(text)
        for line in block.splitlines()
        if _DEFINITION.fullmatch(line)
    )


def fit(items: Sequence[str], characters: int) -> list[str]:
    """As many of the first items as fit; the first always does."""
    fitting: list[str] = []
    used = 0
    for item in items:
        used += len(item) + 2
        if fitting and used > characters:
            break
        fitting.append(item[:characters])
    return fitting


def distinct(items: Iterable[str]) -> list[str]:
    """Each item once, in the order of their first appearance."""
    return list(dict.fromkeys(items))
