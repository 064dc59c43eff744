"""Expand one word into the terms under which it is indexed.

Identifiers are split, numbers normalized, and English words stemmed: Snowball for regular
forms, a table for irregular ones. The stemmer is loaded on first use.
"""

from __future__ import annotations

import re
import unicodedata
from _thread import allocate_lock
from collections import namedtuple
from functools import cache

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal, NamedTuple

    Kind = Literal["word", "identifier", "part", "path", "cjk", "number"]

    class Term(NamedTuple):
        """One indexed term and what it stands for."""

        text: str
        kind: Kind

    class Expansion(NamedTuple):
        """The terms of one word.

        ``is_code`` says which of the two streams they belong to.
        """

        is_code: bool
        terms: tuple[Term, ...]
else:
    Kind = str
    Term = namedtuple("Term", "text kind")
    Expansion = namedtuple("Expansion", "is_code terms")


def pieces(text: str, size: int) -> Iterator[str]:
    """Split a text into pieces of at most ``size`` characters.

    >>> list(pieces("one two three", 6)), list(pieces("abcdefgh", 3))
    (['one', ' two', ' three'], ['abc', 'def', 'gh'])
    """
    start = 0
    while len(text) - start > size:
        cut = max(text.rfind(" ", start, start + size), text.rfind("\n", start, start + size))
        end = cut if cut > start else start + size
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


_IRREGULAR = """
go went gone; buy bought; run ran; meet met; see seen; take took taken; give gave given; get got
gotten; make made; write wrote written; eat ate eaten; drink drank drunk; drive drove driven; ride
rode ridden; fly flew flown; swim swam swum; begin began begun; sing sang sung; speak spoke spoken;
break broke broken; choose chose chosen; wear wore worn; teach taught; catch caught; bring brought;
think thought; fight fought; seek sought; sell sold; tell told; hold held; keep kept; sleep slept;
feel felt; lose lost; spend spent; send sent; lend lent; build built; win won; sit sat; stand stood;
understand understood; find found; hear heard; say said; pay paid; know knew known; grow grew grown;
throw threw thrown; draw drew drawn; show shown; fall fell fallen; come came; become became; forget
forgot forgotten; steal stole stolen; hide hid hidden; shake shook shaken; wake woke woken; freeze
froze frozen; feed fed; shoot shot; stick stuck; dig dug; hang hung; swing swung; mean meant; deal
dealt; tear tore torn; swear swore sworn; beat beaten; sink sank sunk; shrink shrank shrunk; strike
struck; sweep swept; bend bent; flee fled; slide slid; spin spun; rewrite rewrote rewritten; rebuild
rebuilt; override overrode overridden; child children; man men; woman women; foot feet; tooth teeth;
mouse mice; goose geese; person people; wife wives; knife knives; half halves; shelf shelves; index
indices; matrix matrices; vertex vertices; schema schemata
"""
_BASE_FORMS = {
    form: base for base, *forms in map(str.split, _IRREGULAR.split(";")) for form in forms
}

_lock = allocate_lock()
_stem_word: Callable[[str], str] | None = None


def stem(word: str) -> str:
    """Return the stem of a lower-case ASCII word of three letters."""
    global _stem_word
    if len(word) < 3:
        return word
    with _lock:  # a Snowball stemmer has a buffer of its own and is not safe to share
        if _stem_word is None:
            import Stemmer  # imported at first use: a process that only stores never needs it

            _stem_word = Stemmer.Stemmer("english", 0).stemWord
        return _stem_word(_BASE_FORMS.get(word, word))


LONGEST_TERM = 64
_KEPT_OF_A_LONG_TERM = 48
_KEPT_OF_JUNK = 32

# Han, kana, Hangul; then scripts written without spaces (Thai, Lao, Khmer, Myanmar).
CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"
)
# Signs that belong to the letter before them; without them Hindi or Arabic words fall apart.
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f18-\u0fbc\u102b-\u103e\u17b4-\u17d3\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a"
    "\u00ad\u200c\u200d\ufe00-\ufe0f"
)

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff]+")
_LETTERS = str.maketrans(
    {
        "ß": "ss",
        "ẞ": "Ss",
        "ø": "o",
        "Ø": "O",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
        "ł": "l",
        "Ł": "L",
    }
    | {
        "đ": "d",
        "Đ": "D",
        "ð": "d",
        "Ð": "D",
        "þ": "th",
        "Þ": "Th",
        "ı": "i",
        "ħ": "h",
        "Ħ": "H",
        "ŋ": "ng",
        "’": "'",
    }
)

_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\x00-\x7f]+")
_NUMBER = re.compile(r"[vV]?\d++(?:[.,:/-]\d++)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DATE = re.compile(r"(?:19|20)\d\d([-/.])\d\d?\1\d\d?")
_INSTANT = re.compile(r"((?:19|20)\d\d-\d\d-\d\d)T\d\d[\w:.-]*")
_LINE = re.compile(r"([^:]++)((?::\d++){1,2})")
_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)", re.IGNORECASE)
_UNIT = re.compile(r"(\d+)([A-Za-z]{2,4})")
_COMPOUND = re.compile(r"[A-Z]?[a-z]++(?:-[A-Z]?[a-z]++)++")
_ERROR_CODE = re.compile(r"[A-Za-z]{1,2}\d+[A-Za-z]?|\d+[A-Za-z]")
_HEX = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}", re.IGNORECASE)
_UUID = re.compile(r"([0-9a-fA-F]{8})-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_STEPS = re.compile(r"[/\\@]|::|[:,]")
_EXTENSIONS = frozenset(
    re.findall(
        r"\w+",
        "py pyi ts tsx js jsx mjs cjs md txt json jsonl yaml yml toml ini cfg conf lock sh bash "
        "zsh fish bat ps1 c h cc"
        " cpp hpp cs go rs rb php java kt kts swift scala clj ex exs erl hs lua pl r jl sql html "
        "htm css scss sass less"
        " vue svelte xml svg png jpg jpeg gif webp ico pdf csv tsv zip gz tar log env db sqlite "
        "proto graphql tf ipynb"
        " wasm so dll exe bin map snap patch diff",
    )
)
_SHARP_LANGUAGES = {"c++": "cpp", "c#": "csharp", "f#": "fsharp"}


@cache
def cjk_run() -> re.Pattern[str]:
    """A run of CJK characters; compiled when the first text has some."""
    return re.compile(f"([{CJK}]+)")


@cache
def _foreign() -> re.Pattern[str]:
    # Compatibility forms may unfold into spaces and brackets (``⑴`` is "(1)").
    return re.compile(rf"[^\w'./\\@:,+#{MARKS}-]+")


def fold(word: str) -> str:
    """Fold accents and width variants, keeping case; CJK stays composed."""
    if word.isascii():
        return word
    word = _INVISIBLE.sub("", unicodedata.normalize("NFKC", word)).translate(_LETTERS)
    if not word.isascii() and not cjk_run().search(word):
        decomposed = unicodedata.normalize("NFKD", word)
        word = unicodedata.normalize(
            "NFC", "".join([c for c in decomposed if not unicodedata.combining(c)])
        )
    return _foreign().sub("-", word)


def fit(term: str) -> str:
    """Return the term, or for a long one its head and hash."""
    if len(term) <= LONGEST_TERM:
        return term
    import hashlib

    digest = hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return term[:_KEPT_OF_A_LONG_TERM] + digest


def plain_stem(word: str) -> str | None:
    """Return the stem of a word of prose; ``None`` for anything else."""
    if word.isascii() and word.isalpha() and len(word) <= LONGEST_TERM:
        lower = word.lower()
        if word == lower or word[1:] == lower[1:] or word.isupper():
            return stem(lower)
    return None


def expand(word: str) -> Expansion:
    """Return a word's terms, the whole before its parts.

    No term for a word without letters or digits.
    """
    if (plain := plain_stem(word)) is not None:
        return Expansion(False, (Term(plain, "word"),))
    word = fold(word)
    if not word.isascii() and cjk_run().search(word):
        # A run of CJK, possibly with Latin words glued to it: ``重跑test`` gives 重跑, 跑, test.
        is_code, terms = False, []
        for position, run in enumerate(cjk_run().split(word)):
            if position % 2:
                grams = [run[i : i + 2] for i in range(len(run) - 1)]
                terms += [Term(gram, "cjk") for gram in (*grams, run[-1])]
            elif run:
                expansion = _expand_folded(run)
                is_code = is_code or expansion.is_code
                terms += expansion.terms
        return Expansion(is_code, tuple(terms))
    return _expand_folded(word)


def _expand_folded(word: str) -> Expansion:
    lower = word.lower()
    if lower in _SHARP_LANGUAGES:
        return Expansion(False, (Term(_SHARP_LANGUAGES[lower], "word"),))
    word = word.rstrip("+#")
    if "'" in word:
        return _expand_apostrophe(word)
    if word[:1].isdigit() or word[1:2].isdigit():
        number = _expand_number(word)
        if number:
            return Expansion(False, number)
    if _COMPOUND.fullmatch(word):
        pieces = lower.split("-")
        parts = [stem(piece) for piece in pieces if len(piece) > 1 and len(piece) <= LONGEST_TERM]
        return Expansion(False, _named([(_whole(pieces), "identifier")], parts))
    if _ABBREVIATION.fullmatch(word):
        return Expansion(False, (Term(_part(lower.replace(".", "")), "word"),))
    if ":" in word and (line := _LINE.fullmatch(word)):  # file.py:12:5
        numbers = [Term(fit(number), "number") for number in line[2].split(":") if number]
        return Expansion(True, (*_expand_folded(line[1]).terms, *numbers))
    return _expand_identifier(word)


def _expand_apostrophe(word: str) -> Expansion:
    """``user's`` is user, ``l'école`` is école, ``don't`` is dont, ``O'Brien`` is brien."""
    pieces = [piece for piece in word.split("'") if piece]
    if len(pieces) > 1 and pieces[-1].lower() == "s":
        pieces.pop()
    if len(pieces) > 1 and len(pieces[0]) == 1 and len(pieces[1]) > 2:
        pieces.pop(0)
    if len(pieces) == 2 and len(pieces[1]) <= 2:
        return _expand_folded("".join(pieces).lower())
    expansions = [_expand_folded(piece) for piece in pieces]
    is_code = any(expansion.is_code for expansion in expansions)
    return Expansion(is_code, tuple(term for expansion in expansions for term in expansion.terms))


def _expand_number(word: str) -> tuple[Term, ...]:
    """A number, version, date, time or quantity; nothing when the word is something else."""
    if instant := _INSTANT.fullmatch(word):
        word = instant[1]
    if _NUMBER.fullmatch(word):
        if _THOUSANDS.fullmatch(word):
            return (Term(fit(word.replace(",", "")), "number"),)
        components = re.split(r"[.,:/-]", word.lstrip("vV"))
        terms = [".".join(components)]
        if _DATE.fullmatch(word):
            terms.append(components[0])
        elif len(components) > 2 and "." in word:
            terms.append(".".join(components[:2]))
        return tuple(Term(fit(term), "number") for term in terms)
    if ordinal := _ORDINAL.fullmatch(word):
        return (Term(fit(ordinal[1]), "number"),)
    if unit := _UNIT.fullmatch(word):
        amount, name = unit[1], unit[2].lower()
        return (
            Term(fit(amount + name), "number"),
            Term(fit(amount), "number"),
            Term(stem(name), "part"),
        )
    return ()


def _expand_identifier(word: str) -> Expansion:
    if uuid := _UUID.fullmatch(word):
        return Expansion(
            True, (Term(word.replace("-", "").lower(), "identifier"), Term(uuid[1].lower(), "part"))
        )
    _, found, rest = word.partition("://")
    steps = [step for step in _STEPS.split(rest if found else word) if step.strip("_.-")]
    if not steps:
        return Expansion(False, ())
    is_path = bool(found) or "/" in word or "\\" in word
    wholes: list[tuple[str, Kind]] = []
    parts: list[str] = []
    everything: list[str] = []
    for step in steps:
        atoms = [(atom, _pieces(atom)) for atom in step.split(".") if atom.strip("_-")]
        is_file = len(atoms) > 1 and atoms[-1][0].lower() in _EXTENSIONS
        pieces = [piece for _, found_pieces in atoms for piece in found_pieces]
        everything += pieces
        if len(atoms) > 1:
            wholes.append((_whole(pieces), "path" if is_file else "identifier"))
        for _, atom_pieces in atoms[:-1] if is_file else atoms:
            if len(atom_pieces) > 1:
                wholes.append((_whole(atom_pieces), "identifier"))
            parts += [_part(piece) for piece in atom_pieces if len(piece) > 1 or piece.isdigit()]
    if len(everything) == 1:
        piece = everything[0]
        is_plain = piece == word.lower() and (word.isalpha() or not piece.isascii())
        kind: Kind = (
            "word"
            if is_plain or not piece.isascii()
            else "number"
            if piece.isdigit()
            else "identifier"
        )
        return Expansion(not is_plain, (Term(_part(piece), kind),))
    return Expansion(
        True, _named([(_whole(everything), "path" if is_path else "identifier"), *wholes], parts)
    )


def _named(wholes: list[tuple[str, Kind]], parts: list[str]) -> tuple[Term, ...]:
    """Wholes, then parts, each text once."""
    kinds: dict[str, Kind] = {}
    for text, kind in wholes:
        kinds.setdefault(text, kind)
    for text in parts:
        kinds.setdefault(text, "part")
    return tuple(Term(text, kind) for text, kind in kinds.items() if text)


def _whole(pieces: list[str]) -> str:
    """All pieces as one term: ``youtube`` must meet ``YouTube``, so the whole is stemmed too."""
    return _part("".join(pieces)) if len(pieces) > 1 else _part(pieces[0])


def _part(piece: str) -> str:
    if len(piece) > LONGEST_TERM:
        return fit(piece)
    return stem(piece) if piece.isascii() and piece.isalpha() else piece


def _pieces(atom: str) -> list[str]:
    """``HTTPServer2`` is http, server, 2; ``E0382`` and hashes stay whole; junk keeps its head."""
    pieces: list[str] = []
    for name in re.split(r"[_-]+", atom):
        if not name:
            continue
        if _ERROR_CODE.fullmatch(name) or _HEX.fullmatch(name):
            pieces.append(name.lower())
            continue
        split = _CAMEL.findall(name) if len(name) <= 4 * LONGEST_TERM else [name]
        if len(name) > LONGEST_TERM and len(split) < 3:
            pieces.append(name[:_KEPT_OF_JUNK].lower())
        elif len(split) > 4 and len(name) < 2.6 * len(split):
            pieces.append(
                name[:_KEPT_OF_JUNK].lower() if len(name) > LONGEST_TERM else name.lower()
            )
        else:
            pieces += [piece.lower() for piece in split] or [name.lower()]
    return pieces
