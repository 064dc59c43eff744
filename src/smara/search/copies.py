"""Fold hits that show the same words into the best of them.

An agent reads one file many times and repeats a plan in several messages; each is a message of its
own, and ten of them say what one says. A hit is a copy of a better one if it holds the stretch
that the better one answers with, which is what a person is shown. The numbers of lines do not
count: they move when lines are added above. Two short texts are copies if all of their words are
the same. What a person said is never folded into what a machine said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from smara.core.startup.regex import re, regex
from smara.core.text import best_window, find_words
from smara.search.models import SNIPPET_WIDTH, Hit
from smara.search.weights import WEIGHTS

# ``  12→``, ``12 | ``, ``12: `` and ``src/auth.py-12-``, as tools list files and matches.
_LINE_NUMBER = regex(r"^(?:[^\s:]{1,200}?[:-])?[ \t]*\d{1,7}(?:→|\t|[:|-]| [:|] )", re.MULTILINE)
_LEAST_LINE = 12


def fold_copies(hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """Return the best hits that are no copies; each names its own."""
    least = WEIGHTS.copies.shared_lines
    distinct: list[tuple[Hit, tuple[object, ...], frozenset[str], list[str]]] = []
    for hit in hits:
        is_long = len(hit.content) > SNIPPET_WIDTH
        key = (hit.source, hit.role == "user", hit.is_trusted, hit.metadata.get("hedge"), is_long)
        # Looking for equal lines costs little; where there are none, nothing else is looked at.
        texts = _lines(hit.content) if is_long else filter(None, [_plain(hit.content)])
        lines = frozenset(texts)
        for better, other_key, other_lines, ids in distinct:
            shared = len(lines & other_lines) if key == other_key else 0
            if not shared or shared < least * min(len(lines), len(other_lines)):
                continue
            if not is_long or _holds(hit.content, lines, better):
                ids.append(hit.id)
                break
        else:
            if len(distinct) < limit:
                distinct.append((hit, key, lines, []))
    return tuple(
        replace(hit, rank=rank, copies=tuple(ids))
        for rank, (hit, _, _, ids) in enumerate(distinct, 1)
    )


def _holds(text: str, lines: frozenset[str], better: Hit) -> bool:
    """Return True if a text holds the stretch that a better hit answers with."""
    whole = better.content
    start = best_window(whole, better.terms, SNIPPET_WIDTH)
    end = start + SNIPPET_WIDTH
    around = whole[whole.rfind("\n", 0, start) + 1 : (whole.find("\n", end) + 1 or len(whole) + 1)]
    line = max(lines.intersection(_lines(around)), key=len, default="")
    if not line:
        return False
    at = text.find(line)
    words = _plain(whole[start:end]).split()
    edge = int(len(words) * WEIGHTS.copies.edge)
    core = f" {' '.join(words[edge : len(words) - edge])} "
    return (
        core in f" {_plain(text[max(0, at - 2 * SNIPPET_WIDTH) : at + len(line) + len(around)])} "
    )


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that tell it from others, without their numbers."""
    for line in _LINE_NUMBER.sub("", text).splitlines():
        bare = line.strip()
        if len(bare) >= _LEAST_LINE:
            yield bare


def _plain(text: str) -> str:
    """Return the words of a text, without the numbers of its lines."""
    return " ".join(find_words(_LINE_NUMBER.sub("", text).lower()))
