"""The tokenizer of the offline model: a text, cut into the pieces that have a vector.

The vocabulary is ordered by how early a piece was made, so the pieces of a word are found by
joining, again and again, the two neighbors whose joint piece stands first. That gives what the
model's own tokenizer gives, but for three things: white space between words counts nothing, a CJK
character stands alone, and a character without a piece is left out in place of being spelled in
bytes, which every text of its script would share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain, pairwise

_WORD_START = "▁"
# A character of an alphabet without spaces; letters, digits, underscores or signs. A space in front
# of any marks the start of a word. What is longer than 32 characters is no word, and joining it
# would take long.
_CJK = "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"  # noqa: E501
_UNIT = re.compile(
    rf" ?[{_CJK}]| ?[^\W\d_{_CJK}]{{1,32}}| ?\d{{1,32}}| ?_{{1,32}}| ?[^\w\s]{{1,32}}"
)
_REMEMBERED = 100_000


class Subwords:
    """Cuts texts into the numbers of their pieces; each word is cut once and remembered."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._cut = lru_cache(maxsize=_REMEMBERED)(self._joined)

    def pieces(self, text: str) -> list[int]:
        """The numbers of the pieces of a text, in order."""
        spaced = " " + " ".join(text.split())
        return list(chain.from_iterable(map(self._cut, _UNIT.findall(spaced))))

    def _joined(self, unit: str) -> tuple[int, ...]:
        parts = list(unit.replace(" ", _WORD_START))
        while len(parts) > 1:
            joints = [self._vocabulary.get(left + right) for left, right in pairwise(parts)]
            first = min((number for number in joints if number is not None), default=None)
            if first is None:
                break
            at = joints.index(first)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        known = [part for part in parts if part in self._vocabulary]
        # The start of a word that is not known says nothing.
        return () if known == [_WORD_START] else tuple(self._vocabulary[part] for part in known)
