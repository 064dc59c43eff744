"""Escape text before a database or a prompt receives it.

`to_storable` escapes lone surrogates and NUL, and `from_storable` restores them exactly.
`neutralize` stops stored text from opening or closing one of our prompt blocks, however
the tag is disguised. Applying it twice gives the same text as once.
"""

from __future__ import annotations

import json
from functools import lru_cache
from unicodedata import category, normalize

from smara.core.startup.regex import regex

_ESCAPE = "\ufdd0"
_UNSTORABLE = regex(f"[\x00\ud800-\udfff{_ESCAPE}]")
_ESCAPED = regex(f"{_ESCAPE}([0-9a-f]{{4}})")


def to_storable(text: str) -> str:
    """Escape unstorable characters; most texts come back unchanged.

    >>> from_storable(to_storable("a\\x00b\\ud800")) == "a\\x00b\\ud800"
    True
    """
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(lambda match: f"{_ESCAPE}{ord(match[0]):04x}", text)


def from_storable(text: str) -> str:
    """The text as it was before :func:`to_storable`."""
    if _ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


DELIMITERS = (
    "working-memory", "memor", "observ", "unobserved", "reflect", "current-task",
    "suggested-response", "thread",
    "smara", "sys", "instruction", "antml", "function", "tool", "human", "user", "assistant", "|",
)  # fmt: skip
"""How the names of blocks begin: ours, those of the hosts we speak to, and ``<|`` of chat
formats.
"""

BLOCKS = (
    "working-memory", "memories", "memory", "memory-context", "observations", "reflections",
    "observed-fields",
    "unobserved-context", "current-task", "suggested-response", "thread-title", "smara-memory",
    "system-reminder",
)  # fmt: skip
"""The blocks in which memory speaks, by their whole names: what stands inside was not said by
anybody.
"""

_BRACKETS = "<＜﹤≮‹\u2329〈⟨❬❮❰˂ᐸᚲ⧼⦑𝈶"
_BRACKET = regex(f"[{_BRACKETS}]")
_NOT_SEEN = "\u115f\u1160\u2800\u3164\uffa0"  # letters and symbols without ink
_SKIPPED = frozenset("/\\!?_⁄∕⧸╱")
_ALIKE = str.maketrans(
    "аɑαсϲԁеёєɡһіıιіјкκӏмпոоοօσрρԛгѕтτυνԝѡωхуγ", "aaaccdeeeghiiiijkklmnnooooppqrsttuvwwwxyy"
)  # Cyrillic, Greek and Armenian letters that look like Latin ones

_LINE_ENDS = regex("\r\n|[\r\v\f\x85\u2028\u2029]")
_REMOVED = regex(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_UNENCODABLE = regex("[\ud800-\udfff]")


def escape_unseen(line: str) -> str:
    """Escape what cannot be seen in JSON, without changing its meaning."""
    return _REMOVED.sub(lambda match: json.dumps(match[0])[1:-1], line)


def neutralize(text: str) -> str:
    """Make a text safe for a model.

    No block of ours opens or closes in it, nothing in it is hidden.
    """
    # Control characters and what cannot be seen go; joiners stay, which scripts and emoji need.
    visible = _REMOVED.sub("", _LINE_ENDS.sub("\n", text))
    safe = _UNENCODABLE.sub("\ufffd", visible)
    return _BRACKET.sub(
        lambda match: "&lt;" if _opens_a_block(safe, match.end()) else match[0], safe
    )


def _opens_a_block(text: str, at: int) -> bool:
    """Whether a name of ours follows, as a reader who overlooks spaces, dashes and disguises would
    take it.
    """
    name = ""
    while at < len(text) and len(name) < _LONGEST and text[at] not in _BRACKETS:
        name += _read(text[at])
        at += 1
    for part in name.split(":"):
        if part.startswith(_NAMES):
            return True
        if part and not part.isalnum():  # no prefix of a name: our own &lt; is none either
            return False
    return False


@lru_cache(maxsize=4096)
def _read(character: str) -> str:
    """What a lenient reader sees in a character: a small Latin letter, itself, or nothing."""
    plain = normalize("NFKD", character).casefold().translate(_ALIKE)
    return "".join(
        each
        for each in normalize("NFKD", plain)
        if (kind := category(each))[0] not in "MZC"
        and kind != "Pd"
        and each not in _SKIPPED
        and each not in _NOT_SEEN
    )


_NAMES = tuple("".join(map(_read, name)) for name in DELIMITERS)
_LONGEST = 100  # room for a prefix, as in <x:working-memory>
