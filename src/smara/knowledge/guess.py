"""Which type of memory a statement is, by its words alone; the same words always give the same
type.

No model is asked. The words are looked up in a table of cues; the kind with the most weight
wins, and the cues that spoke for it are told, so that a person sees why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from smara.knowledge.guess_cues import COMMAND, IMPERATIVE, IN_HEADINGS, IN_WORDS
from smara.knowledge.models import MemoryType

# Where two kinds weigh the same, the one that would be missed more.
_ORDER: tuple[MemoryType, ...] = (
    "error_pattern", "gotcha", "dead_end", "decision", "requirement", "preference", "pattern",
    "module_insight",
    "workflow_recipe",
)  # fmt: skip
_FENCE = re.compile(r"(`{3,})[^\n]*\n(.*?)(?:\1|\Z)", re.DOTALL)
_INLINE = re.compile(r"`([^`\n]*)`")
_PATH = re.compile(r"[\w@.*{},/-]*/[\w@.*{},/-]*")
_ERROR = re.compile(r"[\w.]*(?:Error|Exception)\b|E[A-Z]{4,}\b")
_STEPS = re.compile(r"(?:^|[\s(])1[.)] .*(?:^|[\s(])2[.)] ", re.DOTALL | re.MULTILINE)
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


def type_of(
    text: str,
    headings: Sequence[str] = (),
    marks: Sequence[str] = (),
    *,
    is_procedure: bool = False,
) -> Guess:
    """The type of memory that a statement is.

    ``headings`` are those it stands under, from the outermost; ``marks`` what its form says of
    it (``warning`` for a notice).

    >>> type_of("Use uv, never pip").type
    'preference'
    >>> type_of("Every endpoint must check permissions").type
    'requirement'
    """
    text = text[:_READ_CHARACTERS]
    if is_procedure or _STEPS.search(text):
        return Guess("workflow_recipe", ("steps in an order",))
    weights = _Weights()
    words = _INLINE.sub(_masked, _FENCE.sub(" ", text)).strip()
    for cue in IN_WORDS:
        if cue.words.search(words):
            weights.add(cue.kind, cue.weight, cue.name)
    # The heading right above says most, one further out half of that.
    for distance, heading in enumerate(reversed(headings[-_HEADINGS_READ:])):
        for cue in IN_HEADINGS:
            if cue.words.search(heading):
                weights.add(cue.kind, cue.weight * _HEADING_SHARE / (1 + distance), cue.name)
    _add_form(weights, text, words, marks=marks)
    return weights.heaviest()


class _Weights:
    """What speaks for each kind."""

    def __init__(self) -> None:
        self._sums: dict[MemoryType, float] = {}
        self._names: dict[MemoryType, list[str]] = {}

    def add(self, kind: MemoryType, weight: float, name: str) -> None:
        self._sums[kind] = self._sums.get(kind, 0.0) + weight
        self._names.setdefault(kind, []).append(name)

    def heaviest(self) -> Guess:
        kind = max(_ORDER, key=lambda each: (self._sums.get(each, 0.0), -_ORDER.index(each)))
        return Guess(kind, tuple(dict.fromkeys(self._names[kind])))


def _add_form(weights: _Weights, text: str, words: str, marks: Sequence[str]) -> None:
    """What the shape of a statement says, beside its words; one of the last two always does."""
    if "warning" in marks:
        weights.add("gotcha", 3, "a notice")
    if _is_command(text):
        weights.add("pattern", 2.5, "a command")
    if IMPERATIVE.match(words):
        weights.add("preference", 2, "an instruction")
    else:
        weights.add("module_insight", 0.8, "a description")


def _is_command(text: str) -> bool:
    """Whether a statement is mostly a command and what it is for: *Lint: `make lint`*."""
    blocks = _FENCE.findall(text)
    if blocks:
        return any(COMMAND.search(code) for _, code in blocks)
    coded = _INLINE.findall(text)
    said = _INLINE.sub(" ", text)
    return len(said.split()) <= _MOST_WORDS_OF_A_COMMAND and any(
        COMMAND.match(code) for code in coded
    )


def _masked(found: re.Match[str]) -> str:
    """Code says nothing of its kind by its words, but a path is a place, and an error an error."""
    return found[0] if _PATH.fullmatch(found[1]) or _ERROR.match(found[1]) else "`code`"
