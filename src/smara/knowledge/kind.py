"""Define the spec of a memory type, with all its facts.

`kinds.py` holds one spec for each type. Every table that depends on the type is derived from
them: what is told at which moment and under which title, the weights of the ranking, the shares of
a pack, the cues of a guess, the tool's list of types. A fact without a default has to be stated, so
that a new type cannot be left out of a table by accident.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from smara.core.startup.record import KW_ONLY, dataclass, field
from smara.core.startup.regex import regex
from smara.errors import InvalidInputError
from smara.knowledge.models import MemoryScope, MemoryType

FieldShape = Literal["text", "texts", "count", "number", "fraction", "time", "choice", "steps"]
TellMoment = Literal["start", "search", "file", "read", "edit", "error", "message", "qa"]
"""The start of a session, a search by the agent, a file that is read or edited, before a file is
read whole, before it is edited, an error that comes again, a first message that names the work
or the module, a tester's first look.
"""
ContradictionRule = Literal["claims", "own type", "nothing"]
"""A claim contradicts claims of any type, a count those of its own type, an episode nothing."""
RecordOccasion = Literal["surprise", "wish", "insight"]
CountedPart = Literal["module", "files", "first file", "further files", "sessions"]
"""The module that was counted, files that belong together, and the number of sessions."""
Form = Literal["notice", "command", "instruction", "description", "steps"]
"""What the shape of a statement shows, whatever its words."""

_CAMEL = regex(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_TEXT = 4_000
_MOST_TEXTS = 200
_MOST_STEPS = 50


@dataclass(frozen=True, slots=True)
class KindField:
    """A field of a memory besides its sentence."""

    name: str
    shape: FieldShape
    meaning: str
    is_needed: bool = False
    choices: tuple[str, ...] = ()

    def check(self, value: Any) -> Any:
        """Return a value in its stored form, or raise ``InvalidInputError``."""
        if self.shape == "text":
            return self._text(value)
        if self.shape == "texts":
            if (
                isinstance(value, str)
                or not isinstance(value, Sequence)
                or len(value) > _MOST_TEXTS
            ):
                raise self._refusal(f"a list of at most {_MOST_TEXTS} texts", value)
            return [self._text(text) for text in value]
        if self.shape == "choice":
            if value not in self.choices:
                raise self._refusal(f"one of {', '.join(self.choices)}", value)
            return value
        return self._steps(value) if self.shape == "steps" else self._number(value)

    def _text(self, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_TEXT:
            raise self._refusal(f"a text of 1 to {_LONGEST_TEXT} characters", value)
        return value.strip()

    def _number(self, value: Any) -> int | float:
        is_whole, is_fraction = self.shape in ("count", "time"), self.shape == "fraction"
        is_number = isinstance(value, int if is_whole else (int, float))
        is_number = is_number and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or not 0 <= value < 2**53 or (is_fraction and value > 1):
            raise self._refusal(
                "a fraction from 0 to 1"
                if is_fraction
                else f"a {'whole ' if is_whole else ''}number from 0",
                value,
            )
        return value  # type: ignore[no-any-return]  # checked above

    def _steps(self, value: Any) -> list[dict[str, Any]]:
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        if not is_list or not 1 <= len(value) <= _MOST_STEPS:
            raise self._refusal(f"a list of 1 to {_MOST_STEPS} steps", value)
        steps = []
        for number, item in enumerate(value, 1):
            step = {"description": item} if isinstance(item, str) else item
            if not isinstance(step, Mapping):
                raise self._refusal("a list of texts, or of objects with a description", item)
            given = {"description": None, "order": number, **by_snake_name(step)}
            if not given.keys() <= _STEP_FIELDS.keys():
                raise self._refusal(f"steps with {', '.join(_STEP_FIELDS)}", sorted(given))
            steps.append({name: _STEP_FIELDS[name].check(each) for name, each in given.items()})
        return sorted(steps, key=lambda step: int(step["order"]))

    def _refusal(self, expected: str, got: object) -> InvalidInputError:
        return InvalidInputError(
            f"{self.name} must be {expected}; got {str(got)[:80]!r}.", field=f"data.{self.name}"
        )


_STEP_FIELDS = {
    "order": KindField("order", "count", ""),
    "description": KindField("description", "text", ""),
    "canonical_file": KindField("canonical_file", "text", ""),
    "canonical_line": KindField("canonical_line", "count", ""),
}


@dataclass(frozen=True, slots=True)
class Cue:
    """A sign that a statement is of a type.

    It is looked for in the words of a statement, in the headings above it, or it is a form.
    """

    place: Literal["words", "heading", "form"]
    weight: float
    name: str
    pattern: str


@dataclass(frozen=True, slots=True)
class MemoryKind:
    """The spec of a memory type.

    Attributes:
        title: The heading over confirmed memories at the start of a session.
        name: What one memory is called in a line.
        because: Why it fades as it does.
        told_at: The moments at which it may be injected.
        is_fact: True for what happened or was counted, False for what people want or decided.
        contradicts: Which other memories it can contradict.
        recorded_on: When an agent records it; ``None`` if it is counted or observed instead.
        start_share: Its share of the memories at the start of a session.
        boost: The factor of its score in a search, by phase of the work; 1 where not given.
        share: Its share of a packed answer, by phase of the work.
        subject: The fields that make two memories versions of one thing.
        guess_rank: Which type wins where two weigh the same: the lower number.
        cues: The signs by which a statement is guessed to be of this type.
        is_trap: True if the map of modules counts it as a trap.
        is_applied: True if the code that it names applies it; otherwise it documents the code.
        is_standing: True if what a person said in a session is told at the start of every other.
        is_about_reading: True if its files are read together, which tells nothing of changes.
        planner: Its heading and the most of it in a planner's context; ``None`` for no place there.
        counted: The fields that are filled from counts over many sessions, where rules or a model
            may state it from them; ``None`` if it is not stated so.
    """

    type: MemoryType
    meaning: str
    _: KW_ONLY
    title: str
    name: str
    scope: MemoryScope
    half_life_days: float | None
    because: str
    told_at: tuple[TellMoment, ...]
    is_fact: bool
    contradicts: ContradictionRule
    recorded_on: RecordOccasion | None
    start_share: float = 0.0
    boost: Mapping[str, float] = field(default_factory=dict)
    share: Mapping[str, float] = field(default_factory=dict)
    fields: tuple[KindField, ...] = ()
    subject: tuple[str, ...] = ()
    guess_rank: int = 99
    cues: tuple[Cue, ...] = ()
    is_trap: bool = False
    is_applied: bool = False
    is_standing: bool = False
    is_about_reading: bool = False
    planner: tuple[str, int] | None = None
    counted: Mapping[str, CountedPart] | None = None


def by_snake_name(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values that are not None, their names in snake case.

    >>> by_snake_name({"taskPattern": "x", "steps": None})
    {'task_pattern': 'x'}
    """
    return {
        _CAMEL.sub("_", str(name)).lower(): value
        for name, value in values.items()
        if value is not None
    }
