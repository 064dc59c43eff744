"""Tell the words of a question that carry no subject.

A question in French among English texts has words that no text holds, and one in Japanese has
endings that every Japanese text holds; neither says what is asked. A question of which more words
are English keeps to those, so that "die" and "pour" stay what they are.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path

from smara.core.extract import word_set
from smara.core.terms import cjk_run, fold
from smara.core.text import find_words

# One such word may be a name, or a word of another language.
_FEWEST = 2
_SCRIPTS = {"HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko"}
_LINES = {
    code: words
    for line in Path(__file__).with_name("function_words.txt").read_text("utf-8").splitlines()
    for code, _, words in (line.partition(": "),)
    if line[0] != "#"
}
STOP_WORDS = word_set(_LINES["en"])


@cache
def function_words(language: str | None) -> frozenset[str]:
    """Return the folded words of a language that carry no subject."""
    return frozenset(map(fold, _LINES.get(language or "", "").split()))


def find_language(text: str) -> str | None:
    """Return the language of most small words; None for English.

    >>> [find_language(each) for each in ("Où est la copie ?", "die Datei ist weg", "消します")]
    ['fr', 'de', 'ja']
    >>> [find_language(each) for each in ("workers die under load", "pour on the table", "重跑 it")]
    [None, None, None]
    """
    written = find_words(text)
    characters = "".join(cjk_run().findall(text))
    if len(characters) > len(written):
        scripts = {unicodedata.name(each, "").partition(" ")[0] for each in characters}
        return next((code for name, code in _SCRIPTS.items() if name in scripts), "zh")
    words = {fold(word).lower() for word in written}
    counts = {code: len(function_words(code) & words) for code in _LINES}
    best = max(counts, key=lambda code: counts[code])
    return best if best != "en" and counts[best] >= _FEWEST else None


def is_grammar(characters: str) -> bool:
    """Return True for Chinese or Japanese characters that carry no subject.

    >>> [is_grammar(each) for each in ("ます", "什么", "消し", "应用", "りん", "の")]
    [True, True, False, False, False, True]
    """
    return characters in function_words("ja") or characters in function_words("zh")
