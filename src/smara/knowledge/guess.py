"""Guess the type of a memory from the words of its statement.

No model is called. Each cue has a weight for one type, more in the statement than in the headings
above it. The type with the most weight wins and its cues are returned as the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from smara.core.startup.record import dataclass
from smara.core.startup.regex import re, regex
from smara.knowledge.kind import Cue, Form
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import MemoryType
from smara.knowledge.statements import CUES

_FENCE = regex(r"(`{3,})[^\n]*\n(.*?)(?:\1|\Z)", re.DOTALL)
_INLINE = regex(r"`([^`\n]*)`")
_STEPS = regex(r"(?:^|[\s(])1[.)] .*(?:^|[\s(])2[.)] ", re.DOTALL | re.MULTILINE)
_HEADING_SHARE = 0.6
_HEADINGS_READ = 3
_MOST_WORDS_OF_A_COMMAND = 10
_READ_CHARACTERS = 4_000
"""What a statement is shows at its beginning; a giant must not cost more than a long one."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The type of a statement, and the cues that spoke for it."""

    type: MemoryType
    why: tuple[str, ...] = ()


def _compiled(place: Literal["words", "heading"]) -> list[tuple[MemoryType, Cue, re.Pattern[str]]]:
    return [
        (kind.type, cue, regex(cue.pattern, re.IGNORECASE))
        for kind in KINDS.values()
        for cue in kind.cues
        if cue.place == place
    ]


_IN_WORDS, _IN_HEADINGS = _compiled("words"), _compiled("heading")


def type_of(
    text: str,
    headings: Sequence[str] = (),
    marks: Sequence[str] = (),
    *,
    is_procedure: bool = False,
) -> Guess:
    """Return the type of memory that a statement is, and why.

    Args:
        text: The statement.
        headings: Those above it, from the outermost.
        marks: What its form says of it (``warning`` for a notice).
        is_procedure: True for a list of steps.

    >>> type_of("Use uv, never pip").type
    'preference'
    >>> type_of("Every endpoint must check permissions").type
    'requirement'
    """
    text = text[:_READ_CHARACTERS]
    words = _INLINE.sub(_masked, _FENCE.sub(" ", text)).strip()
    is_steps = is_procedure or _STEPS.search(text) is not None
    weights: defaultdict[MemoryType, float] = defaultdict(float)
    signs: list[tuple[MemoryType, float, str]] = []
    if not is_steps:  # an order of steps decides alone
        signs += [(kind, cue.weight, cue.name) for kind, cue, x in _IN_WORDS if x.search(words)]
        # The heading right above says most, one further out half of that.
        for distance, heading in enumerate(reversed(headings[-_HEADINGS_READ:])):
            share = _HEADING_SHARE / (1 + distance)
            signs += [
                (kind, cue.weight * share, cue.name)
                for kind, cue, pattern in _IN_HEADINGS
                if pattern.search(heading)
            ]
    forms = {"steps"} if is_steps else _forms(text, words, marks)
    signs += [
        (kind.type, cue.weight, cue.name)
        for kind in KINDS.values()
        for cue in kind.cues
        if cue.place == "form" and cue.pattern in forms
    ]
    for kind, weight, _ in signs:
        weights[kind] += weight
    heaviest = max(weights, key=lambda kind: (weights[kind], -KINDS[kind].guess_rank))
    return Guess(
        heaviest, tuple(dict.fromkeys(name for kind, _, name in signs if kind == heaviest))
    )


def _forms(text: str, words: str, marks: Sequence[str]) -> set[Form]:
    """Return what the shape of a statement shows; it is an instruction or a description."""
    forms: set[Form] = {"instruction" if CUES["imperative"].match(words) else "description"}
    if "warning" in marks:
        forms.add("notice")
    # A command and its purpose: *Lint: `make lint`*.
    blocks = _FENCE.findall(text)
    is_short = len(_INLINE.sub(" ", text).split()) <= _MOST_WORDS_OF_A_COMMAND
    if any(CUES["command"].search(code) for _, code in blocks) or (
        not blocks
        and is_short
        and any(CUES["command"].match(code) for code in _INLINE.findall(text))
    ):
        forms.add("command")
    return forms


def _masked(code: re.Match[str]) -> str:
    """Code says nothing of its kind by its words, but a path is a place, and an error an error."""
    return (
        code[0]
        if CUES["path"].fullmatch(code[1]) or CUES["error name"].match(code[1])
        else "`code`"
    )
