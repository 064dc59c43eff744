"""What a file says of itself: the docstring, the comment or the paragraph it begins with."""

from __future__ import annotations

import re

_BYTES = 6_000
_PYTHON = re.compile(r"""^(?:#[^\n]*\n|\s)*(?:[rRuU]{0,2})("{3}|'{3}|"|')(.+?)\1""", re.DOTALL)
_BLOCK = re.compile(r"^\s*/\*+!?(.*?)\*/", re.DOTALL)
_LINES = re.compile(r"^\s*((?://[/!]?[^\n]*(?:\n|$))+)")
_LICENSE = re.compile(r"copyright|licen[sc]ed?\b|spdx|all rights reserved", re.IGNORECASE)
_MARKUP = re.compile(r"^(?:[#=~<>|!]|-{2,}|[-*+] |\.\. |:\w+:|```|\[!\[|\[\w+\]:)")
MOST_BYTES = _BYTES
_DIRECTIVE = re.compile(
    r"go:\w|\+build|eslint|jshint|jslint|global |@ts-|@flow|prettier|nolint|vim:|-\*-|#(?:region"
    r"|pragma)"
)
"""What is said to a tool, not to a reader."""
_DRAWN = re.compile(r"([=~\-*^#\"'_+.])\1{2,}")
"""A line that underlines a title."""


def first_words(path: str, text: str) -> str:
    """The first paragraph of a file that says something; empty when it says nothing, or only who
    owns it.
    """
    start = text.lstrip("\ufeff")[:_BYTES]
    name = path.rpartition("/")[2].lower()
    if name.startswith("readme") or name.endswith((".md", ".rst", ".txt")):
        return _prose(start)
    if name.endswith(".py"):
        found = _PYTHON.match(start)
        return _paragraph(found[2]) if found else ""
    return _comment(re.sub(r"^#![^\n]*\n", "", start))


def _comment(start: str) -> str:
    """The first comment that is not a license."""
    while True:
        found = _BLOCK.match(start) or _LINES.match(start)
        if found is None:
            return ""
        words = "\n".join(
            re.sub(r"^\s*(?:\*|//[/!]?)\s?", "", line) for line in found[1].splitlines()
        )
        if words.strip() and not _LICENSE.search(words) and not _DIRECTIVE.match(words.strip()):
            return _paragraph(words)
        start = start[found.end() :]


def _prose(text: str) -> str:
    """The first paragraph that is neither a heading nor a badge."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        kept = [line for line in lines if line and not _MARKUP.match(line)]
        if kept and not _LICENSE.search(kept[0]) and len(" ".join(kept).split()) > 2:
            return re.sub(
                r"[*_`]|\[([^\]]*)\]\([^)]*\)", lambda match: match[1] or "", " ".join(kept)
            )
    return ""


def _paragraph(text: str) -> str:
    """The first paragraph; a title under which only a line is drawn is none, when there is another
    one.
    """
    found = ""
    for paragraph in re.split(r"\n\s*\n", text.strip())[:2]:
        lines = [
            line for line in paragraph.strip().splitlines() if not _DRAWN.fullmatch(line.strip())
        ]
        found = found or "\n".join(lines)
        if len(lines) == len(paragraph.strip().splitlines()):
            return "\n".join(lines)
    return found
