"""Define a detection rule and the building blocks of patterns."""

from __future__ import annotations

from typing import Literal

from smara.core.startup.record import dataclass

Shape = Literal["format", "random", "token", "password", "url", "argument", "prose", "near"]

ALNUM = "[A-Za-z0-9]"
WORD = "[A-Za-z0-9_-]"
LOWER = "[a-z0-9]"
UPPER = "[A-Z0-9]"
HEX = "[0-9a-f]"
BASE64 = "[A-Za-z0-9+/]"

# Where a value may begin. A plain word boundary would miss a token right after the letter of an
# escape: "\nsk-…" inside JSON, "%3Dsk-…" inside a URL, a terminal color ending in "m".
START = r"(?:\b|_|\\[nrtf]|\\u00[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]{0,8}m)"


@dataclass(frozen=True, slots=True)
class Rule:
    """The definition of one kind of secret.

    `shape` names the test that a match must pass: `format` trusts the pattern
    and refuses only obvious examples; `random`, `token`, `password`, `url`, `argument`, `prose`
    and `near` judge the value itself, because any name can be assigned anything.
    """

    name: str
    label: str
    keywords: tuple[str, ...]
    """RE2 openings, any of which starts the match (after `START` when `is_bounded`)."""
    pattern: str
    """RE2 pattern tried where an opening was found (after `START` too); its first matching group is
    the secret.
    """
    shape: Shape = "format"
    min_entropy: float = 2.6
    """Bits per character below which a match is an example such as `ghp_xxxxxxxx`."""
    following: str = ""
    """What must follow any of the keywords in the opening. Rules with the same words here share one
    expression.
    """
    is_bounded: bool = True
    """Whether the opening must stand at the start of a word."""
    lookback_bytes: int = 0
    """How far before the opening the secret may begin; for formats known by their middle or end."""
    reach_bytes: int = 16384
    """How far the pattern may look from the opening."""
    is_open: bool = False
    """Whether the group holds only the beginning of the secret, which then runs to its closing
    quote or to a space.
    """
    literal: str = ""
    """Fixed first characters, when there are any: they betray the value in base64 too."""


def prefixed(
    name: str,
    label: str,
    prefix: str,
    alphabet: str,
    least: int,
    tail: str = "",
    min_entropy: float = 2.6,
    shape: Shape = "format",
) -> Rule:
    """Return the rule of a token with a prefix and an alphabet.

    The length is open-ended: vendors lengthen their tokens, and a token glued
    to more letters must not hide behind an exact count.
    """
    opening = f"{prefix}{alphabet}{{{min(least, 6)}}}"
    plain = prefix.replace("\\", "")
    return Rule(
        name,
        label,
        keywords=(opening,),
        pattern=f"({prefix}{alphabet}{{{least},}}{tail})",
        shape=shape,
        min_entropy=min_entropy,
        literal=plain if len(plain) >= 3 and not set("()[]?*+|{") & set(plain) else "",
    )


def shaped(name: str, label: str, opening: str, rest: str, min_entropy: float = 2.6) -> Rule:
    """Return the rule of a structured token with an opening."""
    return Rule(
        name, label, keywords=(opening,), pattern=f"({opening}{rest})", min_entropy=min_entropy
    )


def around(name: str, label: str, middle: str, pattern: str, lookback_bytes: int) -> Rule:
    """Return the rule of a token known by its middle or end."""
    return Rule(
        name,
        label,
        keywords=(middle,),
        pattern=pattern,
        is_bounded=False,
        lookback_bytes=lookback_bytes,
    )
