"""Analyze texts into index terms, and locate matches in the raw text.

An analysis gives the terms of a text. `spans` and `snippet` lead from a term back to its
places in the text as it was written.
"""

from __future__ import annotations

import re
from collections import namedtuple
from functools import cache, lru_cache

from smara.core.terms import LONGEST_TERM, MARKS, cjk_run, expand, fold, pieces, plain_stem

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import NamedTuple

    class Analysis(NamedTuple):
        """A text as two streams of space-separated terms in reading order."""

        prose: str
        code: str
        length: int
else:
    Analysis = namedtuple("Analysis", "prose code length")

# A separator joins two words only when it stands alone between them: ``a.b`` is one word, ``a. b``
# and ``a...b`` two. Possessive quantifiers: nothing is tried twice, so the cost is linear whatever
# the text. Not of a group that may fail in its middle: Python before 3.11.5 keeps what it took of
# it. What follows here never fails: nothing is tried again.
_JOINT = r"(?:[-./\\@'’]|:(?::|//|(?=\d))|,(?=\d\d\d\b))"
_ASCII_WORD = re.compile(rf"\w++(?:{_JOINT}\w++)*(?:\+\+|\#)?", re.ASCII)
_LETTERS = rf"\w++(?:[{MARKS}]\w*+)*+"
_INLINE_CODE = re.compile(r"`([^`\n]{1,400})`")
_CODE, _END = "\x00", "\x01"  # no term has them
_AROUND = ".,;:!?\"'()[]{}<>*~=|&%$^/\\-“”‘’…—–"  # no word begins or ends with these
_HAS_LETTER = re.compile(r"[^\W\d_]")

CHUNK_CHARACTERS = 12_000
"""A longer text is indexed as several rows: no row outgrows what PostgreSQL can index."""

_SLICE = 65_536
_CACHED_CHARACTERS = 6_000_000
_CACHED_CHUNKS = 120_000
_SCANNED_FOR_SNIPPET = 262_144
_NEAR = 2_000
_CACHED_WINDOWS = 32
"""So many of the newest stretches are kept: a search looks for them before they are shown."""
_LONGEST_READ = 2 * LONGEST_TERM


@cache
def _any_word() -> re.Pattern[str]:
    # Compiled when the first text needs it: the tables of other scripts cost several milliseconds.
    return re.compile(rf"{_LETTERS}(?:{_JOINT}{_LETTERS})*(?:\+\+|\#)?")


class _Table(dict[str, str]):
    """What stands between two spaces → its prose terms, then ``_CODE`` code terms ``_END``.

    One look-up gives both streams. What has no prose terms has the two marks alone, so that no two
    spaces meet where terms are joined. ``quoted`` serves text between back quotes, where every term
    is code.
    """

    def __init__(self, older: _Table | None = None) -> None:
        super().__init__()
        self.older = older
        self.quoted: dict[str, str] = {}
        self.characters = 0

    def __missing__(self, chunk: str) -> str:
        older = self.older  # read once: another thread may cut it off between two looks
        terms = None if older is None else older.get(chunk)
        if terms is None:
            bare = chunk.strip(_AROUND)
            terms = self[bare] if bare != chunk else plain_stem(bare) or _expanded(bare)
        self.characters += len(chunk) + len(terms)
        # One string serves as both, most words being their own stem.
        self[chunk] = chunk if terms == chunk else terms
        return terms

    def quote(self, chunk: str) -> str:
        code = self.quoted.get(chunk)
        if code is None:
            code = " ".join(
                [term.text for word in find_words(chunk) for term in expand(word).terms]
            )
            self.quoted[chunk] = code
            self.characters += len(chunk) + len(code)
        return code

    @property
    def is_full(self) -> bool:
        return len(self) + len(self.quoted) > _CACHED_CHUNKS or self.characters > _CACHED_CHARACTERS


def _expanded(chunk: str) -> str:
    prose: list[str] = []
    code: list[str] = []
    for word in find_words(chunk):
        is_code, terms = expand(word)
        (code if is_code else prose).extend([term.text for term in terms])
    if prose and not code:
        return " ".join(prose)
    return " ".join([*prose, f"{_CODE}{' '.join(code)}{_END}"])


_table = _Table()


def _current_table() -> _Table:
    """The table of known chunks. A full one is replaced, never emptied: another thread may be
    reading it.

    The new one fetches what is still in use from the one before, which is then forgotten with the
    next change.
    """
    global _table
    table = _table
    if table.is_full:
        table.older = None
        table = _table = _Table(table)
    return table


def analyze(text: str) -> Analysis:
    """Return the terms of a text, deterministically in linear time.

    Never raises.
    """
    proses: list[str] = []
    codes: list[str] = []
    is_plain = len(text) <= _SLICE and "`" not in text
    for segment, is_quoted in ((text, False),) if is_plain else _segments(text):
        table = _current_table()
        chunks = segment.split()
        if is_quoted:
            codes += map(table.quote, chunks)
            continue
        prose, *rest = " ".join(map(table.__getitem__, chunks)).split(_CODE)
        for stretch in rest:
            terms, _, following = stretch.partition(_END)
            codes.append(terms)
            prose += following[1:]
        proses.append(prose.rstrip())
    prose, code = " ".join(filter(None, proses)), " ".join(filter(None, codes))
    length = (prose.count(" ") + 1 if prose else 0) + (code.count(" ") + 1 if code else 0)
    return Analysis(prose, code, length)


def analyze_chunks(text: str) -> tuple[Analysis, ...]:
    """Return the terms of a text, in several rows if long."""
    if len(text) <= CHUNK_CHARACTERS:
        return (analyze(text),)
    return tuple(analyze(piece) for piece in pieces(text, CHUNK_CHARACTERS))


def _segments(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it stands between back quotes."""
    for number, block in enumerate(text.split("```")):
        is_fenced = number % 2 == 1
        for position, span in enumerate([block] if is_fenced else _INLINE_CODE.split(block)):
            for piece in pieces(span, _SLICE):
                yield piece, is_fenced or position % 2 == 1


def find_words(text: str) -> list[str]:
    """The words of a text as they stand there."""
    return _ASCII_WORD.findall(text) if text.isascii() else _any_word().findall(text)


def iter_words(text: str) -> Iterator[re.Match[str]]:
    """The words of a text with their places."""
    return _ASCII_WORD.finditer(text) if text.isascii() else _any_word().finditer(text)


def words(text: str) -> list[str]:
    """Return distinct surface words for completion, in order.

    Lower case, accents folded, 3 to 64 characters with at least one letter; CJK is left out,
    since its bigrams serve both purposes.
    """
    distinct: dict[str, None] = {}
    for piece in pieces(text, _SLICE):
        for chunk in dict.fromkeys([each.strip(_AROUND) for each in piece.split()]):
            if chunk.isalpha() and chunk.isascii():
                if 3 <= len(chunk) <= LONGEST_TERM:
                    distinct[chunk.lower()] = None
            else:
                for word in find_words(chunk):
                    surface = fold(word).lower().strip("_+#") if len(word) <= _LONGEST_READ else ""
                    if (
                        3 <= len(surface) <= LONGEST_TERM
                        and _HAS_LETTER.search(surface)
                        and "'" not in surface
                        and (surface.isascii() or not cjk_run().search(surface))
                    ):
                        distinct[surface] = None
    return list(distinct)


def spans(text: str, terms: Collection[str], limit: int = 1_000) -> list[tuple[int, int]]:
    """Return up to ``limit`` disjoint spans that match the terms."""
    sought = frozenset(terms)
    if not sought:
        return []
    places: list[tuple[int, int]] = []
    verdicts: dict[str, bool] = {}
    for match in iter_words(text):
        word = match[0]
        is_match = verdicts.get(word)
        if is_match is None:
            is_match = any(term.text in sought for term in expand(word).terms)
            if len(word) <= LONGEST_TERM:
                verdicts[word] = is_match
        if is_match:
            places += _places_in_word(word, match.start(), sought)
            if len(places) >= limit:
                return places[:limit]
    return places


def _places_in_word(word: str, start: int, sought: frozenset[str]) -> list[tuple[int, int]]:
    """The word itself; in a run of CJK only the characters that match."""
    if word.isascii() or not cjk_run().search(word):
        return [(start, start + len(word))]
    places: list[tuple[int, int]] = []
    for position in range(len(word)):
        for size in (2, 1):
            if word[position : position + size] in sought:
                _join(places, start + position, start + min(position + size, len(word)))
                break
    return places or [(start, start + len(word))]


def snippet(text: str, terms: Collection[str], width: int = 240) -> str:
    """Return the stretch with the most distinct terms, about ``width``.

    Cut at words, with … where cut.
    """
    if len(text) <= width:
        return " ".join(text.split())
    start = best_window(text, terms, width)
    end = min(len(text), start + width)
    while start > 0 and end - start < width + 20 and not text[start - 1].isspace():
        start -= 1
    if end < len(text) and not text[end].isspace():
        cut = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = cut if cut > start + width // 2 else end
    inner = " ".join(text[start:end].split())
    return ("…" if start > 0 else "") + inner + ("…" if end < len(text) else "")


def best_window(text: str, terms: Collection[str], width: int) -> int:
    """Return the start of the densest stretch of matches, or 0."""
    return _best_window(text, frozenset(terms), width)


@lru_cache(maxsize=_CACHED_WINDOWS)
def _best_window(text: str, sought: frozenset[str], width: int) -> int:
    matches: list[tuple[int, frozenset[str]]] = []
    for begin, end in _regions(text, sought):
        for start, stop in spans(text[begin:end], sought):
            found = {term.text for term in expand(text[begin + start : begin + stop]).terms}
            matches.append(
                (begin + start, sought & found or frozenset({text[begin + start : begin + stop]}))
            )
    if not matches:
        return 0
    best, best_value, head = 0, -1.0, 0
    for tail, (position, _) in enumerate(matches):
        while position - matches[head][0] > width * 0.8:
            head += 1
        inside = matches[max(head, tail - 40) : tail + 1]
        value = len(frozenset().union(*[found for _, found in inside])) + 0.01 * min(
            len(inside), 20
        )
        if value > best_value:
            best, best_value = matches[head][0], value
    return max(0, best - width // 8)


def _regions(text: str, sought: frozenset[str]) -> list[tuple[int, int]]:
    """The parts of a text worth a close look: all of it, or in a huge one the surroundings of
    literal finds.
    """
    if len(text) <= _SCANNED_FOR_SNIPPET:
        return [(0, len(text))]
    hits: list[int] = [0]
    for term in sorted(sought, key=len, reverse=True)[:16]:
        head = term[:-1] if term.endswith("i") and len(term) > 3 else term
        hits += [text.find(form) for form in (head, head.capitalize(), head.upper())]
    starts = sorted({max(0, hit - _NEAR) for hit in hits if hit >= 0})
    regions: list[tuple[int, int]] = []
    for start in starts:
        _join(regions, start, min(len(text), start + 2 * _NEAR))
    return regions


def _join(spans: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a span behind the others, joined with the last where they touch."""
    if spans and start <= spans[-1][1]:
        spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
    else:
        spans.append((start, end))
