"""See through colors and signs without width in a text.

`grep --color` writes an escape between a name and its value, a web page a zero-width space
inside a word. A person does not see them; a comparison of bytes must not either. On the hooks'
path: `re` is loaded only for a text that has such a mark.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable
    from typing import AnyStr

# Soft hyphen, the single-byte CSI, Mongolian vowel separator, zero-width and directional signs,
# invisible operators, variation selectors, byte order mark: as UTF-8, by all but the last byte.
_LAST_BYTES = {
    b"\xc2": b"\xad\x9b",
    b"\xcd": b"\x8f",
    b"\xe1\xa0": b"\x8e",
    b"\xe2\x80": bytes((*range(0x8B, 0x90), *range(0xAA, 0xAF))),
    b"\xe2\x81": bytes((*range(0xA0, 0xA5), *range(0xA6, 0xB0))),
    b"\xef\xb8": bytes(range(0x80, 0x90)),
    b"\xef\xbb": b"\xbf",
}
# The escape character and the single-byte CSI as programs and JSON write them.
_ESCAPES = (
    b"u001b", b"u001B", b"u009b", b"u009B", b"\\x1b", b"\\x1B", b"\\033",
    b"\\e[",
)  # fmt: skip
# Signs without width as JSON writes them.
_WRITTEN = (
    b"\\u00ad", b"\\u00AD", b"\\u034f", b"\\u034F", b"\\u180e", b"\\u180E", b"\\u200", b"\\u202",
    b"\\u206", b"\\ufe0", b"\\uFE0", b"\\ufeff", b"\\uFEFF",
)  # fmt: skip
_SPELLED = (*_ESCAPES, *_WRITTEN)
_pattern: "re.Pattern[bytes] | None" = None


def is_veiled(data: bytes) -> bool:
    """Return True if a text has marks that hide words."""
    if b"\x1b" in data or (b"\\" in data and any(mark in data for mark in _SPELLED)):
        return True
    if data.isascii():
        return False
    # The dash of a sentence begins as such a sign does: what follows it decides, and is cheap to
    # see where it stands.
    return any(
        part[:1] in last
        for lead, last in _LAST_BYTES.items()
        if lead in data
        for part in data.split(lead)[1:]
        if part
    )


def unveil(data: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """Return a text without its marks, and where its pieces stood.

    Returns:
        The text, and for each piece that is left its start there and how far it was moved.
    """
    global _pattern  # compiled once, for the first text that has a mark
    if _pattern is None:
        import re

        escape = rb"(?:\x1b|\\+(?:u001[bB]|x1[bB]|033|e(?=\[)))"
        single = rb"(?:\xc2\x9b|\\+u009[bB])"
        # A sequence that sets colors or moves the cursor, one that gives a title or a link, and a
        # short one; nothing in them is longer than terminals read.
        tail = rb"[0-?]{0,64}[ -/]{0,8}[@-~]"
        title = rb"\][^\x07\x1b\n]{0,2048}?(?:\x07|\x1b\\|\\+u0007|\\+u001[bB]\\+)"
        widthless = b"|".join(
            re.escape(lead + bytes([last])) for lead, lasts in _LAST_BYTES.items() for last in lasts
        )
        written = (
            rb"\\+u(?:00[aA][dD]|034[fF]|180[eE]|200[b-fB-F]|202[a-eA-E]|206[0-9a-fA-F]"
            rb"|[fF][eE]0[0-9a-fA-F]|[fF][eE][fF][fF])"
        )
        _pattern = re.compile(
            rb"%s(?:\[%s|%s|[ -/]{0,4}[0-~])?|%s%s|%s|%s"
            % (escape, tail, title, single, tail, widthless, written)
        )
    return cut(data, ((*match.span(), b"") for match in _pattern.finditer(data)))


def cut(
    text: "AnyStr", spans: "Iterable[tuple[int, int, AnyStr]]"
) -> "tuple[AnyStr, list[tuple[int, int]]]":
    """Replace spans of a text; return its pieces' new starts too.

    Each comes with its shift: how much further it began before.

    >>> cut("a secret of b", [(2, 8, "word")])
    ('a word of b', [(0, 0), (6, 2)])
    """
    pieces: list[AnyStr] = []
    moves: list[tuple[int, int]] = []
    size = position = 0
    for start, end, put in spans:
        moves.append((size, position - size))
        pieces += (text[position:start], put)
        size += start - position + len(put)
        position = end
    moves.append((size, position - size))
    pieces.append(text[position:])
    return text[:0].join(pieces), moves
